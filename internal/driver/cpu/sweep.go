package cpu

import (
	"runtime"

	"github.com/rayo-go/rayo/internal/memory"
)

// A sweep processes elements lo to hi in pieces, forwards or backwards. Large calls alternate
// direction: a call begins where the previous call ended, because the caches still hold the end of
// the same arrays, or of a result that is now an operand. With a fixed direction, arrays that are a
// little larger than a cache would always miss it.
type sweep struct {
	lo, hi, step int
	back         bool
}

// Sizes of pieces of a backward sweep, in elements. Elements of a piece are processed in ascending
// order, and each piece needs a call. Pieces are short if the caches of a core hold everything,
// where the order matters most. In a page all pieces are long: a call takes as long as a thousand elements, and
// nothing else can run between calls.
const (
	backPiece      = 8192
	shortPiece     = 2048
	pagePiece      = 256 << 10
	maxShortPieces = 128 // maximum number of short pieces
)

// sweepOf returns the sweep over elements lo to hi.
func sweepOf(lo, hi int, back bool) sweep {
	switch {
	case runtime.GOARCH == "wasm":
		return sweep{lo, hi, pagePiece, back}
	case !back:
		return sweep{lo, hi, callElements, back}
	case hi-lo <= maxShortPieces*shortPiece:
		return sweep{lo, hi, shortPiece, back}
	}
	return sweep{lo, hi, backPiece, back}
}

// next returns the next piece. ok is false after the last piece.
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

// alternates reports whether calls that only read the given bytes, with the given threads,
// alternate direction. This pays if the private caches hold a noticeable share of the bytes, and
// also if the bytes are too large for the last-level cache, which holds a share of them. For sizes
// in between, the last-level cache may hold everything, and adaptive replacement works better with
// a fixed direction: with alternating directions some lines are reused at once and others late.
func alternates(bytes float64, threads int) bool {
	c := memory.CPUCaches()
	return bytes <= noticeable*float64(threads)*float64(c.L2) || bytes > float64(c.Last)/2
}

// noticeable is the largest ratio of the size of the arrays to the size of the private caches for
// which alternating directions has an effect.
const noticeable = 16
