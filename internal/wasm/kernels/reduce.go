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

// reduce returns a function of x, y and n > 0 that reduces a row. Several accumulators hide the latency of
// additions. With x and y there are four: V8 loads all operands of an iteration first, and has registers for eight
// loads and four accumulators. With eight accumulators it keeps four of them in memory, which takes a third longer.
func (s *Set) reduce(r reduction) *wasm.Func {
	f := s.m.Func(oneRow)
	x, y, n := f.Param(0), f.Param(1), f.Param(2)
	pointers := []wasm.Local{x}
	if r.two {
		pointers = append(pointers, y)
	}
	acc := make([]wasm.Local, 8)
	if r.two {
		acc = acc[:4]
	}
	last := len(acc) - 1
	for i := range acc {
		acc[i] = f.Local(wasm.V128)
		if r.first {
			f.Get(x)
			f.Load(wasm.V128Load32Splat, 0)
			f.Set(acc[i])
		}
	}
	v, w, nan := f.Local(wasm.V128), f.Local(wasm.V128), f.Local(wasm.V128)
	// join joins the vector on top of the stack with the accumulator below it.
	join := func(acc wasm.Local) {
		if r.value != nil {
			r.value(f)
		}
		if r.first {
			f.Tee(v)
		}
		f.Op(r.join)
		f.Set(acc)
		if r.first {
			f.Get(v)
			f.Get(v)
			f.Op(wasm.F32x4Ne)
			f.Get(nan)
			f.Op(wasm.V128Or)
			f.Set(nan)
		}
	}
	count := func(c int) {
		for i := range c {
			f.Get(acc[i])
			for _, p := range pointers {
				f.Get(p)
				f.Load(wasm.V128Load, 16*i)
			}
			join(acc[i])
		}
		for _, p := range pointers {
			f.Add(p, 16*c)
		}
		f.Add(n, -4*c)
	}
	f.While(n, 4*len(acc), func() { count(len(acc)) })
	if !r.two {
		f.Get(n)
		f.Int(16)
		f.Op(wasm.I32GeS)
		f.If(func() { count(4) })
	}
	f.While(n, 4, func() { count(1) })
	f.Get(n)
	f.If(func() {
		rest := func() {
			if r.first {
				f.Get(acc[last])
			} else {
				f.Splat(0)
			}
		}
		loadPart(f, v, x, n, rest)
		if r.two {
			loadPart(f, w, y, n, rest)
		}
		f.Get(acc[last])
		f.Get(v)
		if r.two {
			f.Get(w)
		}
		join(acc[last])
	})
	for d := len(acc) / 2; d > 0; d /= 2 {
		for i := range d {
			f.Get(acc[i])
			f.Get(acc[i+d])
			f.Op(r.join)
			f.Set(acc[i])
		}
	}
	across(f, acc[0], r.join)
	if r.first {
		f.Get(nan)
		f.Op(wasm.V128AnyTrue)
		f.If(func() {
			f.Splat(math.Float32bits(float32(math.NaN())))
			f.Set(acc[0])
		})
	}
	f.Get(acc[0])
	f.Lane(wasm.F32x4ExtractLane, 0)
	return f
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

// deviations writes the kernels for the sums of x-m and of (x-m)². The function for one row
// stores the sums at two addresses.
func (s *Set) deviations() {
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

// index writes the search for the first element that equals v, or for the first NaN.
func (s *Set) index() {
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
