package kernels

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/wasm"
)

// halves writes the conversions between float32 and the types of 16 bits.
func (s *Set) halves() {
	word := func(v uint32) *ir.Node { return ir.NewConst(float64(v), ir.U32) }
	bits := func(x *ir.Node) *ir.Node { return ir.NewBitcast(x, ir.U32) }
	float := func(x *ir.Node) *ir.Node { return ir.NewBitcast(x, ir.F32) }
	and := func(x *ir.Node, mask uint32) *ir.Node { return node(ir.And, x, word(mask)) }
	h, x := ir.NewArg(0, ir.U32), ir.NewArg(0, ir.F32)

	s.cast("widen.bf16", node(ir.Shl, h, word(16)), true)
	s.cast("narrow.bf16", node(ir.Shr, bits(ir.NewRound(ir.RoundBF16, x)), word(16)), false)

	// Shifted to the position of a float's bits, the magnitude of a half is 2**-112 times its value.
	magnitude := node(ir.Shl, and(h, 0x7fff), word(13))
	finite := bits(node(ir.Mul, float(magnitude), ir.NewConst(0x1p112, ir.F32)))
	large := node(ir.Eq, and(h, 0x7c00), word(0x7c00))
	wide := node(ir.Select, large, node(ir.Or, magnitude, word(0x7f800000)), finite)
	s.cast("widen.f16", node(ir.Or, wide, node(ir.Shl, and(h, 0x8000), word(16))), true)

	y := ir.NewRound(ir.RoundF16, x)
	size := and(bits(y), 0x7fffffff)
	scaled := node(ir.Shr, bits(node(ir.Mul, float(size), ir.NewConst(0x1p-112, ir.F32))), word(13))
	special := node(ir.Or, and(node(ir.Shr, size, word(13)), 0x3ff), word(0x7c00))
	narrow := node(ir.Select, node(ir.Lt, size, word(0x7f800000)), scaled, special)
	s.cast("narrow.f16", node(ir.Or, narrow, node(ir.Shr, and(bits(y), 1<<31), word(16))), false)
}

// cast adds a kernel that converts words from or to elements of 16 bits.
func (s *Set) cast(name string, root *ir.Node, widens bool) {
	e, err := wasm.Lower(root)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	s.add(name, func(k kernel) {
		dst, x, n := k.pointer(0), k.pointer(1), k.int(0)
		b := e.Begin(k.Func, 0)
		v := k.Local(wasm.V128)
		from, to := 4, 2
		if widens {
			from, to = 2, 4
		}
		step := func(elements int, load func(), store wasm.Op) {
			b.Emit(func(int) { k.Get(x); load() })
			if !widens {
				k.Set(v)
				k.Get(v)
				k.Get(v)
				k.Op(wasm.I16x8NarrowU)
			}
			k.Set(v)
			k.Get(dst)
			k.Get(v)
			if store == wasm.V128Store {
				k.Store(store, 0)
			} else {
				k.LoadLane(store, 0, 0)
			}
			k.Add(x, from*elements)
			k.Add(dst, to*elements)
			k.Add(n, -elements)
		}
		four, one := wasm.V128Store64Lane, wasm.V128Store16Lane
		loadFour, loadOne := func() { k.Load(wasm.V128Load, 0) }, func() { k.Load(wasm.V128Load32Splat, 0) }
		if widens {
			four, one = wasm.V128Store, wasm.V128Store32Lane
			loadFour, loadOne = func() { k.Load(wasm.V128Load16x4U, 0) }, func() { k.Load(wasm.I32Load16, 0); k.Op(wasm.I32x4Splat) }
		}
		k.While(n, 4, func() { step(4, loadFour, four) })
		k.While(n, 1, func() { step(1, loadOne, one) })
	})
}
