package simd

import "unsafe"

const (
	// LinesAhead is the number of offsets after those of the rows for TransposeLines, for prefetches.
	LinesAhead = 64

	lineBytes  = 64
	linesLeast = 16 // columns that are transposed together, at least
	linesMost  = 64 // and at most
	linesFetch = 16 // rows from a row to one that is prefetched, at least
)

// A LinesMemory is the memory of TransposeLines.
type LinesMemory struct {
	columns [lineBytes + linesMost*2*lineBytes]byte // permutations and elements of the columns
	lines   [linesMost]int                          // their addresses
}

// first returns the first address of a cache line in the memory of the columns.
func (m *LinesMemory) first() *byte {
	return &m.columns[-uintptr(unsafe.Pointer(&m.columns))%lineBytes]
}

// PlanesMost is the largest number of planes for MixPlanes.
const PlanesMost = 4
