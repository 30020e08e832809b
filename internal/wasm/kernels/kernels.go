// Package kernels writes the two modules of SIMD128 kernels of package simd: the kernels that
// are not elementwise, and the loop around an elementwise expression.
package kernels

import (
	"slices"

	"github.com/rayo-go/rayo/internal/wasm"
	"github.com/rayo-go/rayo/internal/wasm/frame"
)

// Set is a module of kernels.
type Set struct {
	m     *wasm.Module
	names []string // in the order of the table

	maximum *wasm.Func // of a row
}

var (
	kernelType = wasm.Signature{Params: []wasm.Type{wasm.I32}}
	coreType   = wasm.Signature{Params: []wasm.Type{wasm.I32, wasm.I32, wasm.I32, wasm.I32, wasm.I32, wasm.I32}}
)

// NewElementwise returns the module that every page loads. It has the kernels that elementwise operations need, except
// the loops, which [Set.Map] adds: "map", which calls a loop, the conversions of 16 bits, and the largest magnitude.
func NewElementwise() *Set {
	s := &Set{m: &wasm.Module{}}
	s.run()
	s.elementwise()
	s.halves()
	s.reduction(reductions[slices.IndexFunc(reductions, func(r reduction) bool { return r.name == "maxabs" })])
	return s
}

// New returns the module with the other kernels of package simd, which only pages that use one of them load.
func New() *Set {
	s := &Set{m: &wasm.Module{}}
	s.run()
	s.reductions()
	s.rowOperations()
	s.products()
	s.quantizedBlocks()
	s.integerColumns()
	return s
}

// Bytes returns the module.
func (s *Set) Bytes() []byte { return s.m.Bytes() }

// Names returns the names of the kernels in the order of the table. The names of elementwise
// loops begin with "map.".
func (s *Set) Names() []string { return s.names }

// run writes the exported function, which runs count calls that are adjacent in memory.
func (s *Set) run() {
	f := s.m.Func(wasm.Signature{Params: []wasm.Type{wasm.I32, wasm.I32}})
	at, count := f.Param(0), f.Param(1)
	f.While(count, 1, func() {
		f.Get(at)
		f.Get(at)
		f.Load(wasm.I32Load, frame.Kernel)
		f.CallIndirect(kernelType)
		f.Add(at, frame.Size)
		f.Add(count, -1)
	})
	s.m.Export("run", f)
}

// enter puts f in the table.
func (s *Set) enter(name string, f *wasm.Func) {
	s.m.Enter(f)
	s.names = append(s.names, name)
}

// kernel is a kernel under construction: its parameter is the address of the call.
type kernel struct{ *wasm.Func }

// add enters a kernel.
func (s *Set) add(name string, write func(k kernel)) {
	k := kernel{s.m.Func(kernelType)}
	write(k)
	s.enter(name, k.Func)
}

// load returns a variable with the value at an offset in the call.
func (k kernel) load(op wasm.Op, t wasm.Type, offset int) wasm.Local {
	l := k.Local(t)
	k.Get(k.Param(0))
	k.Load(op, offset)
	k.Set(l)
	return l
}

func (k kernel) pointer(i int) wasm.Local {
	return k.load(wasm.I32Load, wasm.I32, frame.Pointers+8*i)
}

func (k kernel) int(i int) wasm.Local { return k.load(wasm.I32Load, wasm.I32, frame.Ints+8*i) }

// splat returns a variable with a float in all lanes.
func (k kernel) splat(i int) wasm.Local {
	return k.load(wasm.V128Load32Splat, wasm.V128, frame.Floats+4*i)
}

// times4 returns a variable with four times n: the bytes of n numbers.
func times4(f *wasm.Func, n wasm.Local) wasm.Local {
	l := f.Local(wasm.I32)
	f.Get(n)
	f.Int(2)
	f.Op(wasm.I32Shl)
	f.Set(l)
	return l
}

// elementwise writes the kernel that calls an elementwise loop for whole vectors, and again for
// a copy of the tail.
func (s *Set) elementwise() {
	s.add("map", func(k kernel) {
		in := [3]wasm.Local{k.pointer(1), k.pointer(2), k.pointer(3)}
		dst, n := k.pointer(0), k.int(0)
		call := func(dst func(), operand func(i int), count func()) {
			dst()
			for i := range in {
				operand(i)
			}
			count()
			k.Get(k.Param(0))
			k.Int(frame.Floats)
			k.Op(wasm.I32Add)
			k.Get(k.Param(0))
			k.Load(wasm.I32Load, frame.Core)
			k.CallIndirect(coreType)
		}
		whole := k.Local(wasm.I32)
		k.Get(n)
		k.Int(-4)
		k.Op(wasm.I32And)
		k.Tee(whole)
		k.If(func() {
			call(func() { k.Get(dst) }, func(i int) { k.Get(in[i]) }, func() { k.Get(whole) })
		})
		k.Get(n)
		k.Int(3)
		k.Op(wasm.I32And)
		k.Tee(n)
		k.Op(wasm.I32Eqz)
		k.If(k.Return)
		bytes := times4(k.Func, whole)
		k.AddLocal(dst, bytes)
		scratch := func(i int) {
			k.Get(k.Param(0))
			k.Int(int32(frame.Scratch + 16*i))
			k.Op(wasm.I32Add)
		}
		from, to := k.Local(wasm.I32), k.Local(wasm.I32)
		for i, x := range in {
			k.Get(x)
			k.If(func() {
				k.Get(x)
				k.Get(bytes)
				k.Op(wasm.I32Add)
				k.Set(from)
				scratch(i)
				k.Set(to)
				copyWords(k.Func, to, from, n)
			})
		}
		call(func() { scratch(3) }, scratch, func() { k.Int(4) })
		scratch(3)
		k.Set(from)
		copyWords(k.Func, dst, from, n)
	})
}

// copyWords copies one to three words.
func copyWords(f *wasm.Func, to, from, n wasm.Local) {
	for i := range 3 {
		word := func() {
			f.Get(to)
			f.Get(from)
			f.Load(wasm.I32Load, 4*i)
			f.Store(wasm.I32Store, 4*i)
		}
		if i == 0 {
			word()
			continue
		}
		f.Get(n)
		f.Int(int32(i))
		f.Op(wasm.I32GtS)
		f.If(word)
	}
}

// Map adds the loop of an elementwise expression to the table. An iteration accesses the largest offset from
// an address first: hosts that check bounds in code, such as wazero, then do not check the smaller offsets.
func (s *Set) Map(name string, e *wasm.Expression) {
	f := s.m.Func(coreType)
	pointers := []wasm.Local{f.Param(0)}
	for i := range 3 {
		if e.Uses(i) {
			pointers = append(pointers, f.Param(1+i))
		}
	}
	n := f.Param(4)
	b := e.Begin(f, f.Param(5))
	body := func(copies int) {
		for c := copies - 1; c >= 0; c-- {
			f.Get(f.Param(0))
			b.EmitWord(func(i int) {
				f.Get(f.Param(1 + i))
				f.Load(wasm.V128Load, 16*c)
			})
			f.Store(wasm.V128Store, 16*c)
		}
		for _, p := range pointers {
			f.Add(p, 16*copies)
		}
		f.Add(n, -4*copies)
	}
	if e.Len() <= shortBody {
		f.While(n, 16, func() { body(4) })
	}
	f.While(n, 4, func() { body(1) })
	s.enter("map."+name, f)
}

// shortBody is the number of codes up to which the body of a loop is unrolled.
const shortBody = 8
