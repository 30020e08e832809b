// Package frame says how a call of a SIMD128 kernel lies in memory: what the
// kernels of package kernels read their arguments from, and what hosts write
// them to. One call of the module runs any number of calls that lie one after
// the other.
package frame

// Offsets in bytes. Pointers and integers take eight bytes each, and
// kernels read the lower four of them. Floats take four bytes.
const (
	Kernel   = 0 // place of the kernel in the table
	Core     = 4 // of an elementwise kernel, the place of its loop
	Pointers = 8
	Ints     = Pointers + 8*NumPointers
	Floats   = Ints + 8*NumInts
	Results  = Floats + 4*NumFloats // two floats, or an integer
	Scratch  = Results + 8          // memory of the kernel's own
	Size     = Scratch + 4*NumScratch

	NumPointers = 6
	NumInts     = 10
	NumFloats   = 4
	NumScratch  = 48
)
