package block

import (
	"sync"
	"sync/atomic"
)

//go:generate go run gen.go

// Grid is a codebook: the levels of Width neighbouring elements for each code.
type Grid struct {
	Width int
	Rows  int

	alphabet []int8 // the levels that occur
	bits     int    // bits of the index of a level in the alphabet
	packed   string // the indices, row after row, from the least bit of a byte on

	once   sync.Once
	levels []int8
	nearby []atomic.Pointer[nearRows] // for each point with coordinates from the alphabet: see gridsearch.go
}

// row returns the levels of a code.
func (g *Grid) row(code int) []int8 {
	g.once.Do(g.unpack)
	return g.levels[code*g.Width:][:g.Width]
}

// Levels returns a copy of the levels of all codes, Width for each.
func (g *Grid) Levels() []int8 {
	g.once.Do(g.unpack)
	return append([]int8(nil), g.levels...)
}

func (g *Grid) unpack() {
	g.levels = make([]int8, g.Rows*g.Width)
	g.nearby = make([]atomic.Pointer[nearRows], g.points())
	for i := range g.levels {
		at := i * g.bits
		v := uint(g.packed[at/8])
		if at%8+g.bits > 8 {
			v |= uint(g.packed[at/8+1]) << 8
		}
		g.levels[i] = g.alphabet[v>>(at%8)&(1<<g.bits-1)]
	}
}
