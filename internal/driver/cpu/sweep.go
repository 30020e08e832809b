package cpu

import "github.com/rayo-go/rayo/internal/memory"

// A sweep goes over elements lo to hi in pieces, from the first to the last or
// back. Large calls go to and fro: a call begins where the last one ended,
// which is what the caches still hold, of the same arrays or of a result that is
// now an operand. In one direction only, arrays that are a little larger than a
// cache would be read from beyond it from end to end.
type sweep struct {
	lo, hi, step int
	back         bool
}

// Pieces on the way back, in elements. Within one elements come in rising
// order, and each costs a call: they are short where the caches of a core hold
// everything and the first of them counts.
const (
	backPiece      = 8192
	shortPiece     = 2048
	maxShortPieces = 128 // up to so many are short
)

// sweepOf returns the sweep over elements lo to hi.
func sweepOf(lo, hi int, back bool) sweep {
	switch {
	case !back:
		return sweep{lo, hi, callElements, back}
	case hi-lo <= maxShortPieces*shortPiece:
		return sweep{lo, hi, shortPiece, back}
	}
	return sweep{lo, hi, backPiece, back}
}

// next returns the next piece; false: there is none.
func (s *sweep) next() (lo, hi int, ok bool) {
	if s.lo >= s.hi {
		return 0, 0, false
	}
	if s.back {
		lo, hi = max(s.lo, (s.hi-1)/s.step*s.step), s.hi
		s.hi = lo
	} else {
		lo, hi = s.lo, min(s.lo+s.step, s.hi)
		s.lo = hi
	}
	return lo, hi, true
}

// alternates reports whether calls that only read so many bytes, with so many
// threads, go to and fro. Where the caches of the cores hold a noticeable share
// of the bytes that saves reading it, and likewise where the last cache does, of
// what is too large for it. In between the last cache may hold everything, and
// it keeps what comes again after a while: on the way back some lines come at
// once and others late, and a cache that admits lines only after several passes
// takes more of those.
func alternates(bytes float64, threads int) bool {
	c := memory.CPUCaches()
	return bytes <= noticeable*float64(threads)*float64(c.L2) || bytes > float64(c.Last)/2
}

// noticeable is how many times the caches of the cores arrays may be for a
// share of theirs to be noticed.
const noticeable = 16
