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

// expOfNegative returns e**x times 2**scale, with the constants of ir, for x from leastNormal to 0, or from
// leastExponent to 0 if scale is 64. The result is a normal float32.
func expOfNegative(scale int) *ir.Node {
	c := func(v float64) *ir.Node { return ir.NewConst(v, ir.F32) }
	e := ir.ExpansionConstants()
	x := ir.NewArg(0, ir.F32)
	// The lower bits of t are the biased exponent of 2**n.
	magic := c(e.Magic + 127)
	t := node(ir.Fma, x, c(math.Log2E), magic)
	n := node(ir.Sub, t, magic)
	r := node(ir.Fma, n, c(-e.Ln2[0]), x)
	r = node(ir.Fma, n, c(-e.Ln2[1]), r)
	p := c(e.Exp[len(e.Exp)-1])
	for i := len(e.Exp) - 2; i >= 0; i-- {
		p = node(ir.Fma, p, r, c(e.Exp[i]))
	}
	power := node(ir.Shl, ir.NewBitcast(t, ir.I32), ir.NewConst(23, ir.I32))
	if scale != 0 {
		power = node(ir.Add, power, ir.NewConst(float64(scale<<23), ir.I32))
	}
	return node(ir.Mul, p, ir.NewBitcast(power, ir.F32))
}

const (
	// leastExponent is the least x whose exponential is not 0. For smaller x the kernels write 0
	// without an intermediate underflow, which is slow on some processors.
	leastExponent = -104
	// leastNormal is an x from which on no exponential is subnormal. For smaller x, 2**n may be subnormal, so the
	// kernels compute it times 2**expScale first.
	leastNormal = -87
	expScale    = 64
)

func (s *Set) rowOperations() {
	s.softmax(s.exponentials(true))
	s.exponentials(false)
	s.affine()
}

// expAtOnce is the number of vectors of exponentials that are computed at a time. One test checks whether all of them
// are normal.
const expAtOnce = 4

// exponentialRow writes the function that computes the exponentials of a row of a softmax, and stores them or only adds
// them up. Its parameters are dst, x, the number of elements and the maximum.
func (s *Set) exponentialRow(store bool) *wasm.Func {
	f := s.m.Func(wasm.Signature{Params: []wasm.Type{wasm.I32, wasm.I32, wasm.I32, wasm.V128}, Results: []wasm.Type{wasm.F32}})
	w := newExpWriter(f)
	x, n := f.Param(1), f.Param(2)
	var sums, d [expAtOnce]wasm.Local
	for i := range sums {
		sums[i], d[i] = f.Local(wasm.V128), f.Local(wasm.V128)
	}
	// use stores vector i of exponentials, and adds it up.
	use := func(i int) {
		if store {
			f.Get(f.Param(0))
			f.Get(w.v)
			f.Store(wasm.V128Store, 16*i)
		}
		w.add(sums[i], w.v)
	}
	advance := func(c int) {
		f.Add(x, 16*c)
		if store {
			f.Add(f.Param(0), 16*c)
		}
		f.Add(n, -4*c)
	}
	one := func() {
		w.difference(d[0], func() { f.Get(x); f.Load(wasm.V128Load, 0) })
		w.any(d[0])
		use(0)
		advance(1)
	}
	f.While(n, 4*expAtOnce, func() {
		for i, d := range d {
			w.difference(d, func() { f.Get(x); f.Load(wasm.V128Load, 16*i) })
		}
		w.notNormal(d[:])
		f.IfElse(func() {
			turns := f.Local(wasm.I32)
			f.Int(expAtOnce)
			f.Set(turns)
			f.While(turns, 1, func() { one(); f.Add(turns, -1) })
		}, func() {
			for i, d := range d {
				w.normal(d)
				use(i)
			}
			advance(expAtOnce)
		})
	})
	f.While(n, 4, one)
	f.Get(n)
	f.If(func() {
		// The exponential of minus infinity is 0.
		loadPart(f, d[0], x, n, func() { f.Splat(math.Float32bits(float32(math.Inf(-1)))) })
		w.difference(d[0], func() { f.Get(d[0]) })
		w.any(d[0])
		w.add(sums[1], w.v)
		if store {
			storePart(f, w.v, f.Param(0), n)
		}
	})
	for _, l := range sums[1:] {
		w.add(sums[0], l)
	}
	across(f, sums[0], wasm.F32x4Add)
	f.Get(sums[0])
	f.Lane(wasm.F32x4ExtractLane, 0)
	return f
}

// exponentials writes the kernels that call such a function, for one row and for many rows. It returns the function.
func (s *Set) exponentials(store bool) *wasm.Func {
	name := "exp.sum"
	if store {
		name = "exp.store"
	}
	f := s.exponentialRow(store)
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
	return f
}

// softmax writes the kernel that computes the softmax of each of many rows. It completes one row before the next, so
// that a row stays in the first cache.
func (s *Set) softmax(exp *wasm.Func) {
	scale := s.scaleRow()
	s.add("softmax.rows", func(k kernel) {
		dst, x, rows, cols := k.pointer(0), k.pointer(1), k.int(0), k.int(1)
		step, m, lowest := times4(k.Func, cols), k.Local(wasm.F32), float32(math.Inf(-1))
		k.While(rows, 1, func() {
			k.Get(x)
			k.Get(x)
			k.Get(cols)
			k.Call(s.maximum)
			k.Tee(m)
			k.Float(lowest)
			k.Op(wasm.F32Eq)
			k.If(func() { // the exponentials of this row are 0, and their quotients NaN
				k.Float(0)
				k.Set(m)
			})
			k.Get(dst)
			k.Get(cols)
			k.Float(1)
			k.Get(dst)
			k.Get(x)
			k.Get(cols)
			k.Get(m)
			k.Op(wasm.F32x4Splat)
			k.Call(exp)
			k.Op(wasm.F32Div, wasm.F32x4Splat)
			k.Call(scale)
			k.AddLocal(dst, step)
			k.AddLocal(x, step)
			k.Add(rows, -1)
		})
	})
}

// scaleRow writes the function that multiplies a row by a number. Its parameters are the row, the number of elements
// and a vector of the number.
func (s *Set) scaleRow() *wasm.Func {
	f := s.m.Func(wasm.Signature{Params: []wasm.Type{wasm.I32, wasm.I32, wasm.V128}})
	p, n, by := f.Param(0), f.Param(1), f.Param(2)
	count := func(c int) {
		for i := range c {
			f.Get(p)
			f.Get(p)
			f.Load(wasm.V128Load, 16*i)
			f.Get(by)
			f.Op(wasm.F32x4Mul)
			f.Store(wasm.V128Store, 16*i)
		}
		f.Add(p, 16*c)
		f.Add(n, -4*c)
	}
	f.While(n, 16, func() { count(4) })
	f.While(n, 4, func() { count(1) })
	f.Get(n)
	f.If(func() {
		v := f.Local(wasm.V128)
		loadPart(f, v, p, n, func() { f.Splat(0) })
		f.Get(v)
		f.Get(by)
		f.Op(wasm.F32x4Mul)
		f.Set(v)
		storePart(f, v, p, n)
	})
	return f
}

// expWriter writes exponentials relative to a maximum, parameter 3 of the function, into variable v.
type expWriter struct {
	f                      *wasm.Func
	v, least, lower, scale wasm.Local
	large, small           *wasm.Body
}

func newExpWriter(f *wasm.Func) *expWriter {
	w := &expWriter{f: f, v: f.Local(wasm.V128), least: f.Local(wasm.V128), lower: f.Local(wasm.V128), scale: f.Local(wasm.V128)}
	w.large = wasm.Expanded(expOfNegative(0)).Begin(f, 0)
	w.small = wasm.Expanded(expOfNegative(expScale)).Begin(f, 0)
	for i, l := range []wasm.Local{w.least, w.lower, w.scale} {
		f.Splat(math.Float32bits([]float32{leastNormal, leastExponent, 1.0 / (1 << expScale)}[i]))
		f.Set(l)
	}
	return w
}

func (w *expWriter) add(to, l wasm.Local) {
	w.f.Get(to)
	w.f.Get(l)
	w.f.Op(wasm.F32x4Add)
	w.f.Set(to)
}

// difference sets d to the vector that load pushes, minus the maximum.
func (w *expWriter) difference(d wasm.Local, load func()) {
	load()
	w.f.Get(w.f.Param(3))
	w.f.Op(wasm.F32x4Sub)
	w.f.Set(d)
}

// notNormal pushes 1 if one of the exponentials of d may be subnormal. If an element is NaN it may push 0, because the
// sum is NaN anyway.
func (w *expWriter) notNormal(d []wasm.Local) {
	w.f.Get(d[0])
	for _, l := range d[1:] {
		w.f.Get(l)
		w.f.Op(wasm.F32x4PMin)
	}
	w.f.Get(w.least)
	w.f.Op(wasm.F32x4Lt, wasm.V128AnyTrue)
}

// normal sets v to the exponential of d, which is not less than leastNormal.
func (w *expWriter) normal(d wasm.Local) {
	w.large.Emit(func(int) { w.f.Get(d) })
	w.f.Set(w.v)
}

// any sets v to the exponential of d.
func (w *expWriter) any(d wasm.Local) {
	w.small.Emit(func(int) { w.f.Get(d) })
	w.f.Get(d)
	w.f.Get(w.lower)
	w.f.Op(wasm.F32x4Lt, wasm.V128AndNot)
	w.f.Get(w.scale)
	w.f.Op(wasm.F32x4Mul)
	w.f.Set(w.v)
}

// affine writes the kernels that finish a row: ((x-m)*s+b)*gamma+beta. There is a function
// for each case of present and absent gamma and beta.
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
		f.MulAdd(f.Param(7))
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
