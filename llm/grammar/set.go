package grammar

import (
	"slices"
	"unicode/utf8"
)

// runeSet is a set of characters: sorted ranges, each with its first and last character.
type runeSet struct {
	ranges []rune
	ascii  [2]uint64
}

// newSet returns the set of the given ranges, which may be unsorted, or its complement.
func newSet(ranges []rune, negate bool) *runeSet {
	type span struct{ lo, hi rune }
	var spans []span
	for i := 0; i < len(ranges); i += 2 {
		spans = append(spans, span{ranges[i], ranges[i+1]})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo - b.lo) })
	s := &runeSet{}
	for _, r := range spans {
		if n := len(s.ranges); n > 0 && r.lo <= s.ranges[n-1]+1 {
			s.ranges[n-1] = max(s.ranges[n-1], r.hi)
			continue
		}
		s.ranges = append(s.ranges, r.lo, r.hi)
	}
	if negate {
		s.ranges = complement(s.ranges)
	}
	for r := range rune(128) {
		if s.search(r) {
			s.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	return s
}

// complement returns the complement of sorted ranges.
func complement(ranges []rune) (out []rune) {
	next := rune(0)
	for i := 0; i < len(ranges); i += 2 {
		if next < ranges[i] {
			out = append(out, next, ranges[i]-1)
		}
		next = ranges[i+1] + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, next, utf8.MaxRune)
	}
	return out
}

func (s *runeSet) has(r rune) bool {
	if r < 128 {
		return s.ascii[r>>6]>>(r&63)&1 != 0
	}
	return s.search(r)
}

func (s *runeSet) search(r rune) bool { return s.meets(r, r) }

// meets reports whether any character from lo to hi is in the set.
func (s *runeSet) meets(lo, hi rune) bool {
	i, j := 0, len(s.ranges)/2
	for i < j {
		if h := (i + j) / 2; s.ranges[2*h+1] < lo {
			i = h + 1
		} else {
			j = h
		}
	}
	return 2*i < len(s.ranges) && s.ranges[2*i] <= hi
}
