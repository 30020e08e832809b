package cpu

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
	backPiece  = 8192
	nearPiece  = 2048
	nearPieces = 128 // up to so many are short
)

// sweepOf returns the sweep over elements lo to hi.
func sweepOf(lo, hi int, back bool) sweep {
	switch {
	case !back:
		return sweep{lo, hi, callElements, back}
	case hi-lo <= nearPieces*nearPiece:
		return sweep{lo, hi, nearPiece, back}
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
