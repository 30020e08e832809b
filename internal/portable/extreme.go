//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// extremes reduces rows to the greatest of their keys: see [keyOf].
var extremes = maker[reduceParams, reduceSpec]{name: "reduce_extreme", build: func(b *kernel.Builder, p *reduceParams, s reduceSpec, e *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	keys := s.keys(b)
	out := op.F32
	if s.Split {
		out = op.U32
	}
	put := s.result(b, out, e)
	c := pieceOf(b, p, t, s.Split)
	st := c.units(t, &s)
	best := kernel.NewVar(b, "best", kernel.U(0))
	// A missing unit contributes a neutral value.
	st.each(s.Unit, func(at []kernel.U32, _ []kernel.Bool) { best.Set(best.Get().Max(keys(at))) })
	k := t.max(best.Get())
	b.If(c.Is.And(t.lane.Eq(kernel.U(0))), func() {
		if s.Split {
			put(c.Number, kernel.Dyn(k))
			return
		}
		var v kernel.F32
		switch s.Op {
		case "min":
			v = numberOf(reverseKey(k))
		case "max":
			v = numberOf(k)
		case "norm_linf":
			v = k.AsF32()
		}
		put(c.Number, kernel.Dyn(v))
	})
}}

// keys declares the operand and returns a function that reads the greatest key of some units. A key
// is 0 only for norm_linf, where 0 is the key of the number 0.
func (s *reduceSpec) keys(b *kernel.Builder) func(at []kernel.U32) kernel.U32 {
	if s.Pieces {
		x := kernel.Input[kernel.U32](b, "keys")
		return func(at []kernel.U32) kernel.U32 {
			return chain(len(at), kernel.U32.Max, func(i int) kernel.U32 { return x.At(at[i]) })
		}
	}
	x := s.input(b, "x")
	return func(at []kernel.U32) kernel.U32 {
		var us []kernel.U32
		for _, v := range x.read(at) {
			us = append(us, v.AsU32())
		}
		greatest := chain(len(us), kernel.U32.Max, func(i int) kernel.U32 { return us[i].And(kernel.U(0x7fffffff)) })
		if s.Op == "norm_linf" {
			return greatest
		}
		order := func(i int) kernel.U32 { return orderOf(us[i]) }
		var k kernel.U32
		if s.Op == "min" {
			k = chain(len(us), kernel.U32.Min, order).Not()
		} else {
			k = chain(len(us), kernel.U32.Max, order)
		}
		return kernel.Select(greatest.Gt(kernel.U(infBits)), kernel.U(nanKey), k)
	}
}

// places reduces rows to the position of the greatest key. Of equal keys it takes the first.
var places = maker[reduceParams, reduceSpec]{name: "reduce_place", build: func(b *kernel.Builder, p *reduceParams, s reduceSpec, e *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	var x units
	var keys, places kernel.Buffer[kernel.U32]
	if s.Pieces {
		keys, places = kernel.Input[kernel.U32](b, "keys"), kernel.Input[kernel.U32](b, "places")
	} else {
		x = s.input(b, "x")
	}
	put := func(i kernel.U32, k, at kernel.U32) {}
	if s.Split {
		ks, ps := kernel.Output[kernel.U32](b, "part_keys"), kernel.Output[kernel.U32](b, "part_places")
		put = func(i, k, at kernel.U32) { ks.Set(i, k); ps.Set(i, at) }
	} else {
		result := e.result(b, op.I32)
		put = func(i, _, at kernel.U32) { result(i, kernel.Dyn(at.I32())) }
	}
	c := pieceOf(b, p, t, s.Split)
	st := c.units(t, &s)
	best := kernel.NewVar(b, "best", kernel.U(0))
	place := kernel.NewVar(b, "at", kernel.U(1<<31-1))
	st.each(s.Unit, func(at []kernel.U32, _ []kernel.Bool) {
		better := func(k, at kernel.U32) {
			is := k.Gt(best.Get())
			place.Set(kernel.Select(is, at, place.Get()))
			best.Set(kernel.Select(is, k, best.Get()))
		}
		var vs []kernel.F32
		if !s.Pieces {
			vs = x.read(at)
		}
		for n, i := range at {
			if s.Pieces {
				better(keys.At(i), places.At(i))
				continue
			}
			first := i.Mul(kernel.U(uint32(s.Unit))).Sub(c.Row)
			for m := range s.Unit {
				better(s.placeKey(vs[n*s.Unit+m].AsU32()), first.Add(kernel.U(uint32(m))))
			}
		}
	})
	k := t.max(best.Get())
	first := t.min(kernel.Select(best.Get().Eq(k), place.Get(), kernel.U(1<<31-1)))
	b.If(c.Is.And(t.lane.Eq(kernel.U(0))), func() { put(c.Number, k, first) })
}}

// placeKey returns the key by which the position of a number is sought. No key is 0, and both zeros
// have the same key.
func (s *reduceSpec) placeKey(u kernel.U32) kernel.U32 {
	magnitude, sign := u.And(kernel.U(0x7fffffff)), u.I32().Shr(kernel.U(31)).U32()
	number := magnitude.Xor(sign).Sub(sign)
	top := kernel.U(0x80000000)
	if s.Op == "argmin" {
		top = kernel.U(0x7fffffff) // for the opposite order
	}
	return kernel.Select(magnitude.Gt(kernel.U(infBits)), kernel.U(nanKey), number.Xor(top))
}
