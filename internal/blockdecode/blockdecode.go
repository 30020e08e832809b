// Package blockdecode is where package simd leaves its decoder of blocks for package
// gguf, which stands below it and imports nothing but the standard library. Programs in
// which simd has left it read the numbers of tensors with vector instructions, the others in plain Go; the
// numbers have the same bits.
package blockdecode

// Dequantize writes the numbers that the whole blocks of src stand for to dst. format is a
// block.Format. dst is a part of total numbers that are written: many are stored around the caches.
// It is nil in programs that do not link package simd. In pages it is nil unless package batch is linked or
// simd.UseBlocks was called; elsewhere it is set before main begins.
var Dequantize func(format uint8, dst []float32, src []byte, total int)
