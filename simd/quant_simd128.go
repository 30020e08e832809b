//go:build (js || wazero) && !noasm

package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/gguf/block"
)

func quantKernelsOf(l Level) []quantKernels {
	if hasArrays(l) {
		return []quantKernels{
			block.Q4_0: quantAtPlaces(block.Q4_0, placeDequantizeQ40, placeDotQ40),
			block.Q8_0: quantAtPlaces(block.Q8_0, placeDequantizeQ80, placeDotQ80),
			block.Q4_K: quantAtPlaces(block.Q4_K, placeDequantizeQ4k, placeDotQ4k),
			block.Q6_K: quantAtPlaces(block.Q6_K, placeDequantizeQ6k, placeDotQ6k),
		}
	}
	return nil
}

func quantAtPlaces(f block.Format, dequantize, dot uint32) quantKernels {
	return quantKernels{
		dequantize: func(dst *float32, src *byte, blocks int) {
			c := arrays.Begin(dequantize)
			c.Write(0, unsafe.Pointer(dst), 4*blocks*f.Elements())
			c.Read(2, unsafe.Pointer(src), blocks*f.Bytes())
			c.Ints[0] = blocks
			c.Run()
		},
		dot: func(x, sums *float32, src *byte, blocks int) float32 {
			c := arrays.Begin(dot)
			c.Read(0, unsafe.Pointer(x), 4*blocks*f.Elements())
			c.Read(1, unsafe.Pointer(sums), 4*blocks*f.Elements()/32)
			c.Read(2, unsafe.Pointer(src), blocks*f.Bytes())
			c.Ints[0] = blocks
			return c.Run()[0]
		},
	}
}
