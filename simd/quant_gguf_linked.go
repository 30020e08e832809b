//go:build !js

package simd

func init() { UseBlocks() }
