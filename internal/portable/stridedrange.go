//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Kernels read rows in units: vectors of four elements if the length of rows is a multiple of four,
// and single elements otherwise. Neighbouring lanes read neighbouring units.

// unitOf returns the number of elements of a unit for rows of cols elements.
func unitOf(t op.DType, cols int) int {
	if cols%4 == 0 && (t == op.F32 || t == op.F16) {
		return 4
	}
	return 1
}

// units reads unit i of an operand.
type units func(i kernel.U32) []kernel.F32

// inputUnits declares a floating-point operand that is read in units.
func inputUnits(b *kernel.Builder, name string, t op.DType, unit int) units {
	var at func(i kernel.U32) kernel.Vec4F
	switch {
	case unit == 1:
		x := input(b, name, t)
		return func(i kernel.U32) []kernel.F32 { return []kernel.F32{x(i)} }
	case t == op.F16:
		x := kernel.Input[kernel.Vec4H](b, name)
		at = func(i kernel.U32) kernel.Vec4F { return x.At(i).Vec4F() }
	default:
		at = kernel.Input[kernel.Vec4F](b, name).At
	}
	return func(i kernel.U32) []kernel.F32 {
		v := at(i)
		return []kernel.F32{v.X(), v.Y(), v.Z(), v.W()}
	}
}

// stridedRange is a range of units of a row. Lane i of a lane group reads units first+i,
// first+i+GroupLanes and so on.
type stridedRange struct {
	t           *laneGroup
	first, last kernel.U32 // the range: first is included, last is not
	// Each is the maximum number of units of a lane if the kernel is unrolled for it, and otherwise
	// 0.
	Each int
	filled
	shared       *inShared // the first units, if workgroup memory keeps them
	fewRegisters bool      // a fallback path that must not need more registers than the rest of the kernel
}

// filled says which of the units of a lane exist.
type filled uint8

const (
	allButLast filled = iota // each unit of a lane exists, except that the last may not
	all                      // each unit exists
	anyOf                    // any unit may be missing
)

// unroll is the number of units that a lane reads before it computes, in a loop over many units.
const (
	unroll       = 4
	unrollSingle = 8 // unroll for units of one element
)

// unrolled returns the number of units of the given size that a lane reads before it computes.
func unrolled(unit int) int {
	if unit == 1 {
		return unrollSingle
	}
	return unroll
}

// each runs f for the lane's units, several at a time. at holds their positions. If an element of
// is is false, this unit is missing and the first unit of the range is read instead.
func (s *stridedRange) each(unit int, f func(at []kernel.U32, is []kernel.Bool)) {
	b, from := s.t.b, s.first.Add(s.t.lane)
	lanes := func(n int) kernel.U32 { return kernel.U(uint32(n * s.t.GroupLanes)) }
	run := func(from kernel.U32, n int) (at []kernel.U32, is []kernel.Bool) {
		for k := range n {
			at, is = append(at, from.Add(lanes(k))), append(is, kernel.B(true))
		}
		return at, is
	}
	if s.Each > 0 {
		at, is := run(from, s.Each)
		for k := range at {
			if s.filled == anyOf || s.filled == allButLast && k == s.Each-1 {
				is[k] = at[k].Lt(s.last)
				at[k] = kernel.Select(is[k], at[k], s.first)
			}
		}
		f(at, is)
		return
	}
	if k := s.shared; k != nil {
		at, is := run(from, k.n)
		k.store(at, func() { f(at, is) })
		s.behind().each(unit, f)
		return
	}
	if s.fewRegisters {
		b.ForStep(from, s.last, lanes(1), func(i kernel.U32) { f(run(i, 1)) })
		return
	}
	n := unrolled(unit)
	turn := lanes(n)
	whole := s.first.Add(s.last.Sub(s.first).Div(turn).Mul(turn))
	b.ForStep(from, whole, turn, func(i kernel.U32) { f(run(i, n)) })
	b.ForStep(whole.Add(s.t.lane), s.last, lanes(1), func(i kernel.U32) { f(run(i, 1)) })
}

// back is each for many units, from the last to the first, because the elements that were read last
// may still be in a cache.
func (s *stridedRange) back(unit int, f func(at []kernel.U32, is []kernel.Bool)) {
	b, n := s.t.b, unrolled(unit)
	lanes := func(n int) kernel.U32 { return kernel.U(uint32(n * s.t.GroupLanes)) }
	if k := s.shared; k != nil {
		s.behind().back(unit, f)
		var at []kernel.U32
		var is []kernel.Bool
		for i := range k.n {
			at, is = append(at, s.first.Add(s.t.lane).Add(lanes(i))), append(is, kernel.B(true))
		}
		k.again(func() { f(at, is) })
		return
	}
	iterations := s.last.Sub(s.first).Div(lanes(n))
	whole := s.first.Add(iterations.Mul(lanes(n)))
	b.ForStep(whole.Add(s.t.lane), s.last, lanes(1), func(i kernel.U32) { f([]kernel.U32{i}, []kernel.Bool{kernel.B(true)}) })
	b.For(kernel.U(0), iterations, func(i kernel.U32) {
		from := whole.Sub(i.Add(kernel.U(1)).Mul(lanes(n))).Add(s.t.lane)
		var at []kernel.U32
		var is []kernel.Bool
		for k := range n {
			at, is = append(at, from.Add(lanes(k))), append(is, kernel.B(true))
		}
		f(at, is)
	})
}

// behind returns the range without the units that workgroup memory keeps.
func (s *stridedRange) behind() *stridedRange {
	r := *s
	r.shared, r.first = nil, s.first.Add(kernel.U(uint32(s.shared.n*s.t.GroupLanes)))
	return &r
}

// inShared holds vectors of a row in workgroup memory. Each lane stores its vectors after it has
// read them for the first time.
type inShared struct {
	row *row
	n   int // number of vectors of a lane
	x   kernel.Array[kernel.Vec4F]
}

// store keeps the vectors at positions at, and runs f, which reads them from registers.
func (k *inShared) store(at []kernel.U32, f func()) {
	t := k.row.t
	var vs [][]kernel.F32
	for i, p := range at {
		v := k.row.units(p)
		vs = append(vs, v)
		k.x.Set(k.place(i), t.b.Vec4F(v[0], v[1], v[2], v[3]))
	}
	k.instead(func(i int) []kernel.F32 { return vs[i] }, f)
}

// again runs f once more. It reads the vectors from workgroup memory.
func (k *inShared) again(f func()) {
	k.instead(func(i int) []kernel.F32 {
		v := k.x.At(k.place(i))
		return []kernel.F32{v.X(), v.Y(), v.Z(), v.W()}
	}, f)
}

func (k *inShared) place(i int) kernel.U32 {
	return k.row.t.lane.Add(kernel.U(uint32(i * k.row.t.GroupLanes)))
}

// instead runs f so that its ith load of a unit calls at(i).
func (k *inShared) instead(at func(i int) []kernel.F32, f func()) {
	before, i := k.row.units, 0
	k.row.units = func(kernel.U32) []kernel.F32 {
		i++
		return at(i - 1)
	}
	f()
	k.row.units = before
}

// taken returns the number of units of the lane.
func (s *stridedRange) taken() kernel.U32 {
	return s.last.Sub(s.first).Add(kernel.U(uint32(s.t.GroupLanes - 1))).Sub(s.t.lane).Div(kernel.U(uint32(s.t.GroupLanes)))
}

// read returns the elements of the units at.
func (x units) read(at []kernel.U32) (vs []kernel.F32) {
	for _, i := range at {
		vs = append(vs, x(i)...)
	}
	return vs
}

// only returns the elements vs of units, with neutral in place of the elements of missing units.
func only(vs []kernel.F32, is []kernel.Bool, neutral kernel.F32) []kernel.F32 {
	unit := len(vs) / len(is)
	out := make([]kernel.F32, len(vs))
	for i, v := range vs {
		out[i] = kernel.Select(is[i/unit], v, neutral)
	}
	return out
}

// tree adds numbers in pairs.
func tree(vs []kernel.F32) kernel.F32 {
	vs = append([]kernel.F32(nil), vs...)
	for len(vs) > 1 {
		for i := range len(vs) / 2 {
			vs[i] = vs[2*i].Add(vs[2*i+1])
		}
		if len(vs)%2 == 1 {
			vs[len(vs)/2] = vs[len(vs)-1]
		}
		vs = vs[:(len(vs)+1)/2]
	}
	return vs[0]
}

// sums returns n sums over the lane's elements. add returns the terms of some units, one for each
// sum.
func (s *stridedRange) sums(unit, n int, add func(at []kernel.U32, is []kernel.Bool) []kernel.F32) []kernel.F32 {
	b := s.t.b
	if s.Each > 0 {
		var vs []kernel.F32
		s.each(unit, func(at []kernel.U32, is []kernel.Bool) { vs = add(at, is) })
		return vs
	}
	all := kernel.NewVars(b, "all", n, kernel.F(0))
	some := kernel.NewVars(b, "some", n, kernel.F(0))
	iterations := kernel.NewVar(b, "turns", kernel.U(0))
	flush := func() {
		for k := range all {
			all[k].Set(all[k].Get().Add(some[k].Get()))
			some[k].Set(kernel.F(0))
		}
	}
	s.each(unit, func(at []kernel.U32, is []kernel.Bool) {
		for k, v := range add(at, is) {
			some[k].Set(some[k].Get().Add(v))
		}
		iterations.Set(iterations.Get().Add(kernel.U(1)))
		b.If(iterations.Get().And(kernel.U(sumTerms-1)).Eq(kernel.U(0)), flush)
	})
	flush()
	return values(all)
}
