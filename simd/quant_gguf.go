package simd

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/blockdecode"
)

func init() {
	blockdecode.Dequantize = func(format uint8, dst []float32, src []byte, total int) {
		dequantizePart(block.Format(format), dst, src, total)
	}
}
