package kernels

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/wasm"
	"github.com/rayo-go/rayo/internal/wasm/frame"
)

func node(c ir.Code, args ...*ir.Node) *ir.Node {
	n, err := ir.New(c, args...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return n
}

// expOfNegative returns e**x times 2**expScale for x from leastExponent to 0, with the constants of
// ir: a number that is not too small for a float. Below there is no number to expect.
func expOfNegative() *ir.Node {
	c := func(v float64) *ir.Node { return ir.NewConst(v, ir.F32) }
	e := ir.ExpansionConstants()
	x := ir.NewArg(0, ir.F32)
	// The lower bits of t are the exponent of 2**(n+expScale) as a float has it.
	magic := c(e.Magic + 127 + expScale)
	t := node(ir.Fma, x, c(math.Log2E), magic)
	n := node(ir.Sub, t, magic)
	r := node(ir.Fma, n, c(-e.Ln2[0]), x)
	r = node(ir.Fma, n, c(-e.Ln2[1]), r)
	p := c(e.Exp[len(e.Exp)-1])
	for i := len(e.Exp) - 2; i >= 0; i-- {
		p = node(ir.Fma, p, r, c(e.Exp[i]))
	}
	power := node(ir.Shl, ir.NewBitcast(t, ir.I32), ir.NewConst(23, ir.I32))
	return node(ir.Mul, p, ir.NewBitcast(power, ir.F32))
}

const (
	// expScale is 64, as 2**n has not the range.
	expScale = 64
	// leastExponent is the least x whose exponential is not 0. The kernels write 0 for those
	// below, without an underflow on the way, which some processors take long for.
	leastExponent = -104
)

func (s *Set) rowOperations() {
	s.exponentials(true)
	s.exponentials(false)
	s.affine()
}

// expAtOnce is how many vectors of exponentials are computed at a time: their steps wait for each other.
const expAtOnce = 4

// exponentials writes the kernels of the exponentials of a softmax, that store them or
// only add them up.
func (s *Set) exponentials(store bool) {
	name := "exp.sum"
	if store {
		name = "exp.store"
	}
	e := wasm.Expanded(expOfNegative())
	f := s.m.Func(wasm.Signature{Params: []wasm.Type{wasm.I32, wasm.I32, wasm.I32, wasm.V128}, Results: []wasm.Type{wasm.F32}})
	dst, x, n, m := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	b := e.Begin(f, 0)
	var sums [expAtOnce]wasm.Local
	for i := range sums {
		sums[i] = f.Local(wasm.V128)
	}
	v, least, scale := f.Local(wasm.V128), f.Local(wasm.V128), f.Local(wasm.V128)
	f.Splat(math.Float32bits(leastExponent))
	f.Set(least)
	f.Splat(math.Float32bits(1.0 / (1 << expScale)))
	f.Set(scale)
	// one leaves the exponential of the element that load pushes in v, and adds it up.
	one := func(i int, load func()) {
		d := f.Local(wasm.V128)
		load()
		f.Get(m)
		f.Op(wasm.F32x4Sub)
		f.Set(d)
		b.Emit(func(int) { f.Get(d) })
		f.Get(d)
		f.Get(least)
		f.Op(wasm.F32x4Lt, wasm.V128AndNot)
		f.Get(scale)
		f.Op(wasm.F32x4Mul)
		f.Set(v)
		f.Get(sums[i])
		f.Get(v)
		f.Op(wasm.F32x4Add)
		f.Set(sums[i])
	}
	count := func(c int) {
		for i := range c {
			one(i, func() { f.Get(x); f.Load(wasm.V128Load, 16*i) })
			if store {
				f.Get(dst)
				f.Get(v)
				f.Store(wasm.V128Store, 16*i)
			}
		}
		f.Add(x, 16*c)
		f.Add(dst, 16*c)
		f.Add(n, -4*c)
	}
	f.While(n, 4*expAtOnce, func() { count(expAtOnce) })
	f.While(n, 4, func() { count(1) })
	f.Get(n)
	f.If(func() {
		part := f.Local(wasm.V128)
		// The exponential of minus infinity is 0.
		loadPart(f, part, x, n, func() { f.Splat(math.Float32bits(float32(math.Inf(-1)))) })
		one(1, func() { f.Get(part) })
		if store {
			storePart(f, v, dst, n)
		}
	})
	for _, l := range sums[1:] {
		f.Get(sums[0])
		f.Get(l)
		f.Op(wasm.F32x4Add)
		f.Set(sums[0])
	}
	across(f, sums[0], wasm.F32x4Add)
	f.Get(sums[0])
	f.Lane(wasm.F32x4ExtractLane, 0)

	s.add(name, func(k kernel) {
		k.Get(k.Param(0))
		k.Get(k.pointer(0))
		k.Get(k.pointer(1))
		k.Get(k.int(0))
		k.Get(k.splat(0))
		k.Call(f)
		k.Store(wasm.F32Store, frame.Results)
	})
	s.add(name+".rows", func(k kernel) {
		dst, x, m, sum, rows, cols := k.pointer(0), k.pointer(1), k.pointer(2), k.pointer(3), k.int(0), k.int(1)
		step := times4(k.Func, cols)
		k.While(rows, 1, func() {
			k.Get(sum)
			k.Get(dst)
			k.Get(x)
			k.Get(cols)
			k.Get(m)
			k.Load(wasm.V128Load32Splat, 0)
			k.Call(f)
			k.Store(wasm.F32Store, 0)
			k.AddLocal(dst, step)
			k.AddLocal(x, step)
			k.Add(m, 4)
			k.Add(sum, 4)
			k.Add(rows, -1)
		})
	})
}

// affine writes the kernels that finish a row: ((x-m)*s+b)*gamma+beta, with a function
// for each of the cases of gamma and beta.
func (s *Set) affine() {
	sig := wasm.Signature{Params: []wasm.Type{wasm.I32, wasm.I32, wasm.I32, wasm.I32, wasm.I32, wasm.V128, wasm.V128, wasm.V128}}
	var rows [4]*wasm.Func
	for i := range rows {
		rows[i] = s.affineRow(sig, i&1 != 0, i&2 != 0)
	}
	// choose calls the function of the case.
	choose := func(k kernel, gamma, beta wasm.Local, arguments func()) {
		for i, f := range rows {
			for j, p := range []wasm.Local{gamma, beta} {
				k.Get(p)
				k.Op(wasm.I32Eqz)
				if i&(1<<j) != 0 {
					k.Op(wasm.I32Eqz)
				}
			}
			k.Op(wasm.I32And)
			k.If(func() {
				arguments()
				k.Call(f)
			})
		}
	}
	s.add("affine", func(k kernel) {
		dst, x, gamma, beta, n := k.pointer(0), k.pointer(1), k.pointer(2), k.pointer(3), k.int(0)
		c := []wasm.Local{dst, x, gamma, beta, n, k.splat(0), k.splat(1), k.splat(2)}
		choose(k, gamma, beta, func() {
			for _, l := range c {
				k.Get(l)
			}
		})
	})
	s.add("affine.rows", func(k kernel) {
		dst, x, gamma, beta, msb, count, cols := k.pointer(0), k.pointer(1), k.pointer(2), k.pointer(3), k.pointer(4), k.int(0), k.int(1)
		step := times4(k.Func, cols)
		k.While(count, 1, func() {
			choose(k, gamma, beta, func() {
				for _, l := range []wasm.Local{dst, x, gamma, beta, cols} {
					k.Get(l)
				}
				for i := range 3 {
					k.Get(msb)
					k.Load(wasm.V128Load32Splat, 4*i)
				}
			})
			k.Add(msb, 12)
			k.AddLocal(dst, step)
			k.AddLocal(x, step)
			k.Add(count, -1)
		})
	})
}

func (s *Set) affineRow(sig wasm.Signature, gamma, beta bool) *wasm.Func {
	f := s.m.Func(sig)
	dst, x, n := f.Param(0), f.Param(1), f.Param(4)
	pointers := []wasm.Local{dst, x}
	var weights []wasm.Local
	var ops []wasm.Op
	if gamma {
		weights, ops = append(weights, f.Param(2)), append(ops, wasm.F32x4Mul)
	}
	if beta {
		weights, ops = append(weights, f.Param(3)), append(ops, wasm.F32x4Add)
	}
	pointers = append(pointers, weights...)
	finish := func(load func(p wasm.Local)) {
		load(x)
		f.Get(f.Param(5))
		f.Op(wasm.F32x4Sub)
		f.Get(f.Param(6))
		f.Op(wasm.F32x4Mul)
		f.Get(f.Param(7))
		f.Op(wasm.F32x4Add)
		for i, w := range weights {
			load(w)
			f.Op(ops[i])
		}
	}
	count := func(c int) {
		for i := range c {
			f.Get(dst)
			finish(func(p wasm.Local) { f.Get(p); f.Load(wasm.V128Load, 16*i) })
			f.Store(wasm.V128Store, 16*i)
		}
		for _, p := range pointers {
			f.Add(p, 16*c)
		}
		f.Add(n, -4*c)
	}
	f.While(n, 16, func() { count(4) })
	f.While(n, 4, func() { count(1) })
	f.While(n, 1, func() {
		t := f.Local(wasm.V128)
		finish(func(p wasm.Local) { f.Get(p); f.Load(wasm.V128Load32Zero, 0) })
		f.Set(t)
		f.Get(dst)
		f.Get(t)
		f.LoadLane(wasm.V128Store32Lane, 0, 0)
		for _, p := range pointers {
			f.Add(p, 4)
		}
		f.Add(n, -1)
	})
	return f
}
