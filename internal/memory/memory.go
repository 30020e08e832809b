// Package memory allocates the arrays that kernels run on. Each array starts on a
// cache line, and large arrays are on huge pages if the system supports them. Running
// out of memory is an error if the system reports it.
//
// There are two kinds of memory. Floats returns ordinary slices that the garbage
// collector frees; they cannot be misused. A Pool returns Blocks that are freed by hand
// and reused while they are in the caches. Its large blocks are outside the Go heap, so
// they do not influence the garbage collector, and their memory is free after their last
// use.
package memory

import (
	"errors"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Line is the alignment in bytes of every allocation: a cache line, and the
// width of the widest vector register.
const Line = 64

// Huge is the size in bytes of a huge page, and of the smallest allocation on huge
// pages.
const Huge = 2 << 20

// ErrOutOfMemory means that an allocation was refused by the system or by a
// Pool's limit, or that its size is negative or not addressable.
var ErrOutOfMemory = errors.New("out of memory")

// An Element is a type of elements of arrays.
type Element interface {
	~float32 | ~float64 | ~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64
}

// Size returns the bytes that n elements of T take, or ErrOutOfMemory if n is
// negative or the product exceeds what the machine can address.
func Size[T Element](n int) (int, error) {
	var t T
	if n < 0 || n > largest/int(unsafe.Sizeof(t)) {
		return 0, fmt.Errorf("cannot allocate %d elements of %d bytes: expected a size from 0 to the limit of the address space: %w", n, unsafe.Sizeof(t), ErrOutOfMemory)
	}
	return n * int(unsafe.Sizeof(t)), nil
}

// Floats returns n zeroed elements of ordinary Go memory that start on a
// cache line and, from 2 MiB on, on a huge page. The garbage collector frees
// them.
//
// # Errors
//   - [ErrOutOfMemory] if n is negative or too large for the machine. Only
//     systems that map memory for a Pool can tell the latter in advance, and
//     pages for arrays of 64 MiB and more. Otherwise an allocation that does
//     not fit ends the program, as make does.
func Floats(n int) ([]float32, error) {
	b, err := Slice[float32](n)
	return b, err
}

// Slice is Floats for elements of any type.
func Slice[T Element](n int) ([]T, error) {
	size, err := Size[T](n)
	if err != nil {
		return nil, err
	}
	b, err := heap(size)
	if err != nil {
		return nil, err
	}
	return view[T](b), nil
}

// heap returns size zeroed bytes of Go memory, aligned.
func heap(size int) ([]byte, error) {
	if size == 0 {
		return []byte{}, nil
	}
	if size < Huge {
		return align(make([]byte, size+Line-1), Line)[:size:size], nil
	}
	// The Go runtime ends the program if the system refuses memory, so ask the
	// system first, with a mapping that is never touched.
	if err := probe(size + Huge); err != nil {
		return nil, err
	}
	b := align(make([]byte, size+Huge-1), Huge)
	adviseHuge(b[:size&^(Huge-1)])
	return b[:size:size], nil
}

// align returns the part of b from the first address that is a multiple of a.
func align(b []byte, a uintptr) []byte {
	return b[-uintptr(unsafe.Pointer(unsafe.SliceData(b)))&(a-1):]
}

// view returns b, which must be aligned, as a slice of T.
func view[T Element](b []byte) []T {
	var t T
	n := len(b) / int(unsafe.Sizeof(t))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)[:n:n]
}
