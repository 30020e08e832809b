package simd

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/blockdecode"
)

// UseBlocks makes package gguf decode blocks with the kernels of this package. Only a page that imports gguf
// and simd but not batch must call it, before it reads tensors; elsewhere it was called before main.
func UseBlocks() {
	blockdecode.Dequantize = func(format uint8, dst []float32, src []byte, total int) {
		dequantizePart(block.Format(format), dst, src, total)
	}
}
