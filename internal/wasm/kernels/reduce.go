package kernels

import (
	"math"

	"github.com/rayo-go/rayo/internal/wasm"
	"github.com/rayo-go/rayo/internal/wasm/frame"
)

// reduction is a reduction of many numbers to one.
type reduction struct {
	name string
	two  bool // a reduction of x and y
	// first says that lanes without an element hold the first element instead of 0. The join is then a comparison, which
	// ignores NaN: it is one instruction of processors, while F32x4Max is eight. A separate comparison of each element
	// with itself finds NaN.
	first bool
	// value prepares x, and y above it, on the stack.
	value func(f *wasm.Func)
	join  wasm.Op
}

func square(f *wasm.Func) {
	t := f.Local(wasm.V128)
	f.Tee(t)
	f.Get(t)
	f.Op(wasm.F32x4Mul)
}

func magnitude(f *wasm.Func) { f.Op(wasm.F32x4Abs) }

// reductions in the order of package simd's kinds.
var reductions = []reduction{
	{name: "sum", join: wasm.F32x4Add},
	{name: "sumabs", join: wasm.F32x4Add, value: magnitude},
	{name: "sumsquares", join: wasm.F32x4Add, value: square},
	{name: "dot", two: true, join: wasm.F32x4Add, value: func(f *wasm.Func) { f.Op(wasm.F32x4Mul) }},
	{name: "max", first: true, join: wasm.F32x4PMax},
	{name: "min", first: true, join: wasm.F32x4PMin},
	// The bits of magnitudes have the order of the magnitudes, with NaN as the greatest.
	{name: "maxabs", join: wasm.I32x4MaxU, value: magnitude},
}

// across appends code that joins the lanes of v into the first lane.
func across(f *wasm.Func, v wasm.Local, join wasm.Op) {
	for _, w := range [][4]byte{{2, 3, 2, 3}, {1, 1, 1, 1}} {
		f.Get(v)
		f.Get(v)
		f.Get(v)
		f.ShuffleWords(w[0], w[1], w[2], w[3])
		f.Op(join)
		f.Set(v)
	}
}

// loadPart sets the first n lanes of v, one to three, to the elements at p, and the other lanes to the vector that rest pushes.
func loadPart(f *wasm.Func, v, p, n wasm.Local, rest func()) {
	rest()
	f.Set(v)
	for i := range 3 {
		lane := func() {
			f.Get(p)
			f.Get(v)
			f.LoadLane(wasm.V128Load32Lane, 4*i, i)
			f.Set(v)
		}
		if i == 0 {
			lane()
			continue
		}
		f.Get(n)
		f.Int(int32(i))
		f.Op(wasm.I32GtS)
		f.If(lane)
	}
}

// storePart stores the first n lanes of v at p, one to three.
func storePart(f *wasm.Func, v, p, n wasm.Local) {
	for i := range 3 {
		lane := func() {
			f.Get(p)
			f.Get(v)
			f.LoadLane(wasm.V128Store32Lane, 4*i, i)
		}
		if i == 0 {
			lane()
			continue
		}
		f.Get(n)
		f.Int(int32(i))
		f.Op(wasm.I32GtS)
		f.If(lane)
	}
}

var oneRow = wasm.Signature{Params: []wasm.Type{wasm.I32, wasm.I32, wasm.I32}, Results: []wasm.Type{wasm.F32}}

// reducing is the function that reduces a row, under construction.
type reducing struct {
	*wasm.Func
	reduction
	x, y, n   wasm.Local
	acc       []wasm.Local
	v, w, nan wasm.Local
}

// reduce returns a function of x, y and n > 0 that reduces a row. Several accumulators hide the latency of
// additions. With x and y there are four, and an iteration adds two vectors to each: V8 keeps four of eight
// accumulators in memory, which takes a third longer, and iterations of four vectors take up to a fifth longer.
func (s *Set) reduce(r reduction) *wasm.Func {
	f := s.m.Func(oneRow)
	g := &reducing{Func: f, reduction: r, x: f.Param(0), y: f.Param(1), n: f.Param(2), acc: make([]wasm.Local, 8)}
	if r.two {
		g.acc = g.acc[:4]
	}
	for i := range g.acc {
		g.acc[i] = f.Local(wasm.V128)
		if r.first {
			f.Get(g.x)
			f.Load(wasm.V128Load32Splat, 0)
			f.Set(g.acc[i])
		}
	}
	g.v, g.w, g.nan = f.Local(wasm.V128), f.Local(wasm.V128), f.Local(wasm.V128)
	for c := 8; c >= 4; c /= 2 {
		f.While(g.n, 4*c, func() { g.vectors(c) })
	}
	f.While(g.n, 4, func() { g.vectors(1) })
	f.Get(g.n)
	f.If(g.tail)
	g.finish()
	return f
}

// join joins the vector on top of the stack with the accumulator below it.
func (g *reducing) join(acc wasm.Local) {
	if g.value != nil {
		g.value(g.Func)
	}
	if g.first {
		g.Tee(g.v)
	}
	g.Op(g.reduction.join)
	g.Set(acc)
	if g.first {
		g.Get(g.v)
		g.Get(g.v)
		g.Op(wasm.F32x4Ne)
		g.Get(g.nan)
		g.Op(wasm.V128Or)
		g.Set(g.nan)
	}
}

// vectors joins c vectors with the accumulators, in turn.
func (g *reducing) vectors(c int) {
	pointers := []wasm.Local{g.x}
	if g.two {
		pointers = append(pointers, g.y)
	}
	for i := range c {
		acc := g.acc[i%len(g.acc)]
		g.Get(acc)
		for _, p := range pointers {
			g.Get(p)
			g.Load(wasm.V128Load, 16*i)
		}
		g.join(acc)
	}
	for _, p := range pointers {
		g.Add(p, 16*c)
	}
	g.Add(g.n, -4*c)
}

// tail joins the last elements, one to three.
func (g *reducing) tail() {
	last := g.acc[len(g.acc)-1]
	rest := func() {
		if g.first {
			g.Get(last)
		} else {
			g.Splat(0)
		}
	}
	loadPart(g.Func, g.v, g.x, g.n, rest)
	if g.two {
		loadPart(g.Func, g.w, g.y, g.n, rest)
	}
	g.Get(last)
	g.Get(g.v)
	if g.two {
		g.Get(g.w)
	}
	g.join(last)
}

// finish joins the accumulators and pushes the result.
func (g *reducing) finish() {
	for d := len(g.acc) / 2; d > 0; d /= 2 {
		for i := range d {
			g.Get(g.acc[i])
			g.Get(g.acc[i+d])
			g.Op(g.reduction.join)
			g.Set(g.acc[i])
		}
	}
	across(g.Func, g.acc[0], g.reduction.join)
	if g.first {
		g.Get(g.nan)
		g.Op(wasm.V128AnyTrue)
		g.If(func() {
			g.Splat(math.Float32bits(float32(math.NaN())))
			g.Set(g.acc[0])
		})
	}
	g.Get(g.acc[0])
	g.Lane(wasm.F32x4ExtractLane, 0)
}

func (s *Set) reductions() {
	for _, r := range reductions {
		row := s.reduction(r)
		if r.name == "max" {
			s.maximum = row
		}
		s.rows("reduce."+r.name+".rows", row, true)
		if r.two {
			s.rows("reduce."+r.name+".each", row, false)
		}
	}
	s.deviations()
	s.index()
}

// reduction writes the function that reduces a row, and the kernel that calls it once.
func (s *Set) reduction(r reduction) *wasm.Func {
	row := s.reduce(r)
	s.add("reduce."+r.name, func(k kernel) {
		k.Get(k.Param(0))
		k.Get(k.pointer(0))
		k.Get(k.pointer(1))
		k.Get(k.int(0))
		k.Call(row)
		k.Store(wasm.F32Store, frame.Results)
	})
	return row
}

// rows writes the kernel that reduces each of many rows. With moves each row has its own y; otherwise all
// rows have the same y.
func (s *Set) rows(name string, row *wasm.Func, moves bool) {
	s.add(name, func(k kernel) {
		dst, x, y, rows, cols := k.pointer(0), k.pointer(1), k.pointer(2), k.int(0), k.int(1)
		step := times4(k.Func, cols)
		k.While(rows, 1, func() {
			k.Get(dst)
			k.Get(x)
			k.Get(y)
			k.Get(cols)
			k.Call(row)
			k.Store(wasm.F32Store, 0)
			k.Add(dst, 4)
			k.AddLocal(x, step)
			if moves {
				k.AddLocal(y, step)
			}
			k.Add(rows, -1)
		})
	})
}

// deviationsOfRow returns a function that stores the sums of x-m and of (x-m)² of a row at two addresses.
func (s *Set) deviationsOfRow() *wasm.Func {
	f := s.m.Func(wasm.Signature{Params: []wasm.Type{wasm.I32, wasm.I32, wasm.V128, wasm.I32, wasm.I32}})
	x, n, m := f.Param(0), f.Param(1), f.Param(2)
	var s1, s2 [4]wasm.Local
	for i := range s1 {
		s1[i], s2[i] = f.Local(wasm.V128), f.Local(wasm.V128)
	}
	d := f.Local(wasm.V128)
	one := func(i int) {
		f.Get(m)
		f.Op(wasm.F32x4Sub)
		f.Set(d)
		f.Get(s1[i])
		f.Get(d)
		f.Op(wasm.F32x4Add)
		f.Set(s1[i])
		f.Get(s2[i])
		f.Get(d)
		f.Get(d)
		f.Op(wasm.F32x4Mul, wasm.F32x4Add)
		f.Set(s2[i])
	}
	count := func(c int) {
		for i := range c {
			f.Get(x)
			f.Load(wasm.V128Load, 16*i)
			one(i)
		}
		f.Add(x, 16*c)
		f.Add(n, -4*c)
	}
	f.While(n, 16, func() { count(4) })
	f.While(n, 4, func() { count(1) })
	f.Get(n)
	f.If(func() {
		v := f.Local(wasm.V128)
		loadPart(f, v, x, n, func() { f.Get(m) })
		f.Get(v)
		one(3)
	})
	for j, acc := range [][4]wasm.Local{s1, s2} {
		for d := 2; d > 0; d /= 2 {
			for i := range d {
				f.Get(acc[i])
				f.Get(acc[i+d])
				f.Op(wasm.F32x4Add)
				f.Set(acc[i])
			}
		}
		across(f, acc[0], wasm.F32x4Add)
		f.Get(f.Param(3 + j))
		f.Get(acc[0])
		f.LoadLane(wasm.V128Store32Lane, 0, 0)
	}
	return f
}

// deviations writes the kernels for the sums of x-m and of (x-m)².
func (s *Set) deviations() {
	f := s.deviationsOfRow()
	s.add("reduce.deviations", func(k kernel) {
		k.Get(k.pointer(0))
		k.Get(k.int(0))
		k.Get(k.splat(0))
		for i := range 2 {
			k.Get(k.Param(0))
			k.Int(int32(frame.Results + 4*i))
			k.Op(wasm.I32Add)
		}
		k.Call(f)
	})
	s.add("reduce.deviations.rows", func(k kernel) {
		p1, p2, x, m, rows, cols := k.pointer(0), k.pointer(1), k.pointer(2), k.pointer(3), k.int(0), k.int(1)
		step := times4(k.Func, cols)
		k.While(rows, 1, func() {
			k.Get(x)
			k.Get(cols)
			k.Get(m)
			k.Load(wasm.V128Load32Splat, 0)
			k.Get(p1)
			k.Get(p2)
			k.Call(f)
			k.AddLocal(x, step)
			for _, p := range []wasm.Local{p1, p2, m} {
				k.Add(p, 4)
			}
			k.Add(rows, -1)
		})
	})
}

// indexInRow returns a function that finds the first element of a row that equals v, or the first NaN.
func (s *Set) indexInRow() *wasm.Func {
	f := s.m.Func(wasm.Signature{Params: []wasm.Type{wasm.I32, wasm.I32, wasm.F32}, Results: []wasm.Type{wasm.I32}})
	x, n, v := f.Param(0), f.Param(1), f.Param(2)
	wide, hit, at, left := f.Local(wasm.V128), f.Local(wasm.V128), f.Local(wasm.I32), f.Local(wasm.I32)
	nan := f.Local(wasm.V128)
	f.Get(v)
	f.Op(wasm.F32x4Splat)
	f.Tee(wide)
	f.Get(wide)
	f.Op(wasm.F32x4Ne)
	f.Set(nan)
	f.Get(n)
	f.Set(left)
	// test sets the lanes of hit whose element matches.
	element := f.Local(wasm.V128)
	test := func() {
		f.Set(element)
		f.Get(element)
		f.Get(wide)
		f.Op(wasm.F32x4Eq)
		f.Get(element)
		f.Get(element)
		f.Op(wasm.F32x4Ne)
		f.Get(nan)
		f.Op(wasm.V128And, wasm.V128Or)
		f.Set(hit)
	}
	// found returns the index of the first lane of hit that is set.
	found := func() {
		f.Get(hit)
		f.Op(wasm.V128AnyTrue)
		f.If(func() {
			f.Get(at)
			f.Get(hit)
			f.Op(wasm.I32x4Bitmask, wasm.I32Ctz, wasm.I32Add)
			f.Return()
		})
	}
	f.While(left, 4, func() {
		f.Get(x)
		f.Load(wasm.V128Load, 0)
		test()
		found()
		f.Add(x, 16)
		f.Add(at, 4)
		f.Add(left, -4)
	})
	f.While(left, 1, func() {
		f.Get(x)
		f.Load(wasm.V128Load32Splat, 0)
		test()
		found()
		f.Add(x, 4)
		f.Add(at, 1)
		f.Add(left, -1)
	})
	f.Get(n)
	return f
}

// index writes the kernels that search for an element.
func (s *Set) index() {
	f := s.indexInRow()
	s.add("reduce.index", func(k kernel) {
		k.Get(k.Param(0))
		k.Get(k.pointer(0))
		k.Get(k.int(0))
		k.Get(k.load(wasm.F32Load, wasm.F32, frame.Floats))
		k.Call(f)
		k.Store(wasm.I32Store, frame.Results)
	})
	s.add("reduce.index.rows", func(k kernel) {
		dst, x, v, rows, cols := k.pointer(0), k.pointer(1), k.pointer(2), k.int(0), k.int(1)
		step := times4(k.Func, cols)
		k.While(rows, 1, func() {
			k.Get(dst)
			k.Get(x)
			k.Get(cols)
			k.Get(v)
			k.Load(wasm.F32Load, 0)
			k.Call(f)
			k.Store(wasm.I32Store, 0)
			k.Add(dst, 4)
			k.Add(v, 4)
			k.AddLocal(x, step)
			k.Add(rows, -1)
		})
	})
}
