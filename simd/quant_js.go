//go:build js && !noasm

package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/gguf/block"
)

var quantSIMD128 = []quantKernels{
	block.Q4_0: quantAtPlaces(placeDequantizeQ40, placeDotQ40),
	block.Q8_0: quantAtPlaces(placeDequantizeQ80, placeDotQ80),
	block.Q4_K: quantAtPlaces(placeDequantizeQ4k, placeDotQ4k),
	block.Q6_K: quantAtPlaces(placeDequantizeQ6k, placeDotQ6k),
}

func quantKernelsOf(l Level) []quantKernels {
	if l == SIMD128 {
		return quantSIMD128
	}
	return nil
}

func quantAtPlaces(dequantize, dot uint32) quantKernels {
	call := func(place uint32, x, sums *float32, src *byte, blocks int) float32 {
		c := begin(place)
		pointersTo(c, x, sums)
		c.Pointers[2] = unsafe.Pointer(src)
		c.Ints[0] = blocks
		host.Run()
		return c.Results[0]
	}
	return quantKernels{
		dequantize: func(dst *float32, src *byte, blocks int) { call(dequantize, dst, nil, src, blocks) },
		dot: func(x, sums *float32, src *byte, blocks int) float32 {
			return call(dot, x, sums, src, blocks)
		},
	}
}
