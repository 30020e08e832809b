package devicetest

import (
	"slices"

	"github.com/rayo-go/rayo/op"
)

// look returns a view of value x, or the concatenation of x and another value.
func (r *graph) look(x int) (Case, []int) {
	g, s := r.g, r.values[x].shape
	if len(s) == 0 {
		return Case{Op: op.Expand, Extents: []int{1 + g.IntN(3)}}, []int{x}
	}
	axis := g.IntN(len(s))
	switch g.IntN(7) {
	case 0:
		return Case{Op: op.Permute, Extents: g.Perm(len(s))}, []int{x}
	case 1:
		step := []int{1, 2, 3, -1, -2}[g.IntN(5)]
		return Case{Op: op.Slice, Extents: []int{axis, g.IntN(s[axis]+1) * min(1, max(step, 0)), op.End, step}}, []int{x}
	case 2:
		return Case{Op: op.Flip, Extents: []int{axis}}, []int{x}
	case 3:
		return Case{Op: op.Expand, Extents: append([]int{1 + g.IntN(3)}, s...)}, []int{x}
	case 4:
		return Case{Op: op.Pad, Extents: []int{axis, g.IntN(4), g.IntN(4)}, Params: []float32{float32(g.IntN(5) - 2)}}, []int{x}
	case 5:
		n := s[axis]
		for d := 2; d <= n; d++ {
			if n%d == 0 {
				return Case{Op: op.Reshape, Extents: append(append(slices.Clone(s[:axis]), d, n/d), s[axis+1:]...)}, []int{x}
			}
		}
		return Case{Op: op.Reshape, Extents: []int{-1}}, []int{x}
	}
	y := r.pick(func(v known) bool { return v.typ == r.values[x].typ && v.shape.Equal(s) })
	return Case{Op: op.Concat, Extents: []int{axis}}, []int{x, y}
}
