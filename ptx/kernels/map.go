package kernels

import (
	"sync"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// Elementwise programs are limited by the memory, and the portable kernels are as
// fast as that where elements have four bytes. Those of two bytes are read here as
// they are, eight with one access.

const (
	mapThreads = 256
	mapWide    = 8 // elements of a thread
)

// planMap makes the plan of an elementwise program with 16-bit floats in it.
func planMap(r *lib.Request) (*Plan, error) {
	if r.Post == nil || len(r.Out) == 0 || len(r.Out) != len(r.Post.Exprs) {
		return nil, unsupported("no elementwise program")
	}
	n, err := r.Out[0].Shape.Size()
	if err != nil {
		return nil, err
	}
	if n > maxMapElements {
		return nil, unsupported("%d elements", n)
	}
	short := false
	for _, o := range r.Out {
		if size(o.Shape) != n {
			return nil, unsupported("results of different sizes")
		}
		short = short || o.Type.Size() == 2
	}
	for _, in := range r.Post.In {
		if err := lib.CheckSpread(in, n); err != nil {
			return nil, err
		}
		short = short || in.Type.Size() == 2
	}
	if !short {
		return nil, unsupported("an elementwise program without 16-bit floats")
	}
	for _, x := range r.Post.Exprs {
		list, _ := ir.Flatten(x)
		for _, v := range list {
			if v.Code == ir.Param || v.Code == ir.Arg && (v.Index >= len(r.Post.In) || v.Type != op.Register(r.Post.In[v.Index].Type)) {
				return nil, unsupported("an expression of operand %d, of %d", v.Index, len(r.Post.In))
			}
		}
	}
	if n == 0 {
		return &Plan{}, nil
	}
	e, err := newEpilogue(r, r.Post, 0)
	if err != nil {
		return nil, err
	}
	groups := (n + mapWide*mapThreads - 1) / (mapWide * mapThreads)
	args := append([]Arg{word(uint32(n))}, e.args()...)
	return &Plan{Stages: []Stage{{Kernel: mapKernel(e), Grid: [3]uint32{uint32(groups), 1, 1}, Args: args, Zero: -1}}, Variant: "short"}, nil
}

// maxMapElements leaves room for the threads beyond the end.
const maxMapElements = 1<<31 - 1 - mapWide*mapThreads

var mapKernels = struct {
	sync.Mutex
	byKey map[string]*Kernel
}{byKey: map[string]*Kernel{}}

// mapKernel returns the kernel of an elementwise program.
func mapKernel(e *epilogue) *Kernel {
	mapKernels.Lock()
	defer mapKernels.Unlock()
	k := mapKernels.byKey[e.key]
	if k == nil {
		if len(mapKernels.byKey) >= 4096 { // programs are the users'
			clear(mapKernels.byKey)
		}
		k = &Kernel{Name: "map", Target: ptx.SM70, Block: [3]uint32{mapThreads, 1, 1}, Build: func(k *ptx.Kernel) { buildMap(k, e) }}
		mapKernels.byKey[e.key] = k
	}
	return k
}

func buildMap(k *ptx.Kernel, e *epilogue) {
	k.Block(mapThreads, 1, 1)
	n := ptx.Param[ptx.U32](k, "n")
	s := e.sink(k)
	i := k.Special(ptx.CtaidX).MulAdd(ptx.U(mapThreads), k.Special(ptx.TidX)).Mul(ptx.U(mapWide))
	k.IfElse(i.Add(ptx.U(mapWide)).Le(n), func() {
		s.set(i, make([]ptx.F32, mapWide)...)
	}, func() {
		// What is left at the end.
		k.For(i, n, ptx.U(1), func(j ptx.U32) { s.set(j, ptx.F(0)) })
	})
}
