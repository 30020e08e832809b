//go:build amd64 && !noasm && !wazero

package simd

import "github.com/rayo-go/rayo/gguf/block"

var quantAVX512 = []quantKernels{
	block.Q4_0: {dequantizeQ4_0AVX512, dequantizeQ4_0StreamAVX512, dotQ4_0AVX512},
	block.Q4_1: {dequantizeQ4_1AVX512, dequantizeQ4_1StreamAVX512, dotQ4_1AVX512},
	block.Q5_0: {dequantizeQ5_0AVX512, dequantizeQ5_0StreamAVX512, dotQ5_0AVX512},
	block.Q5_1: {dequantizeQ5_1AVX512, dequantizeQ5_1StreamAVX512, dotQ5_1AVX512},
	block.Q8_0: {dequantizeQ8_0AVX512, dequantizeQ8_0StreamAVX512, dotQ8_0AVX512},
	block.Q4_K: {dequantizeQ4_KAVX512, dequantizeQ4_KStreamAVX512, dotQ4_KAVX512},
	block.Q5_K: {dequantizeQ5_KAVX512, dequantizeQ5_KStreamAVX512, dotQ5_KAVX512},
	block.Q6_K: {dequantizeQ6_KAVX512, dequantizeQ6_KStreamAVX512, dotQ6_KAVX512},
}

var quantAVX2 = []quantKernels{
	block.Q4_0: {dequantizeQ4_0AVX2, dequantizeQ4_0StreamAVX2, dotQ4_0AVX2},
	block.Q4_1: {dequantizeQ4_1AVX2, dequantizeQ4_1StreamAVX2, dotQ4_1AVX2},
	block.Q5_0: {dequantizeQ5_0AVX2, dequantizeQ5_0StreamAVX2, dotQ5_0AVX2},
	block.Q5_1: {dequantizeQ5_1AVX2, dequantizeQ5_1StreamAVX2, dotQ5_1AVX2},
	block.Q8_0: {dequantizeQ8_0AVX2, dequantizeQ8_0StreamAVX2, dotQ8_0AVX2},
	block.Q4_K: {dequantizeQ4_KAVX2, dequantizeQ4_KStreamAVX2, dotQ4_KAVX2},
	block.Q5_K: {dequantizeQ5_KAVX2, dequantizeQ5_KStreamAVX2, dotQ5_KAVX2},
	block.Q6_K: {dequantizeQ6_KAVX2, dequantizeQ6_KStreamAVX2, dotQ6_KAVX2},
}

func quantKernelsOf(l Level) []quantKernels {
	switch l {
	case AVX512:
		return quantAVX512
	case AVX2:
		return quantAVX2
	}
	return nil
}
