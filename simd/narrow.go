package simd

import "unsafe"

// word returns the address of the element i places after p.
func word(p *uint32, i int) *uint32 { return (*uint32)(unsafe.Add(unsafe.Pointer(p), i*4)) }

// wordOf converts p to a pointer to the bits of the element.
func wordOf(p *float32) *uint32 { return (*uint32)(unsafe.Pointer(p)) }

// A JoinPart is an operand of [JoinPieces]: rows of Bytes bytes, at least 32, which begin Stride bytes apart, the next one At bytes after X.
type JoinPart struct {
	X                 unsafe.Pointer
	At, Bytes, Stride int
}
