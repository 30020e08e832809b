// Package frame describes the layout in memory of a call of a SIMD128 kernel. Hosts
// write arguments in this layout, and the kernels of package kernels read them. One
// call of the module runs any number of calls that are adjacent in memory.
package frame

// Offsets in bytes. Pointers and integers take eight bytes each, and
// kernels read the lower four of them. Floats take four bytes.
const (
	Kernel   = 0 // index of the kernel in the table
	Core     = 4 // for an elementwise kernel, the index of its loop
	Pointers = 8
	Ints     = Pointers + 8*NumPointers
	Floats   = Ints + 8*NumInts
	Results  = Floats + 4*NumFloats // two floats, or an integer
	Scratch  = Results + 8          // scratch memory of the kernel
	Size     = Scratch + 4*NumScratch

	NumPointers = 6
	NumInts     = 10
	NumFloats   = 4
	NumScratch  = 48
)
