package simd

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/blockdecode"
)

// UseBlocks lets package gguf decode blocks with the kernels of this package. Pages call it with package
// batch; other programs call it before main begins.
func UseBlocks() {
	blockdecode.Dequantize = func(format uint8, dst []float32, src []byte, total int) {
		dequantizePart(block.Format(format), dst, src, total)
	}
}
