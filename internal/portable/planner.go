//go:build !js || !nowebgpu

package portable

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/rayo-go/rayo/kernel"
)

// planner collects the stages of a plan. The first mistake sticks.
type planner struct {
	plan Plan
	err  error
}

// scratch adds a temporary of n elements of four bytes.
func (p *planner) scratch(n int) Ref {
	p.plan.Scratch = append(p.plan.Scratch, 4*int64(n))
	return Ref{ScratchRef, len(p.plan.Scratch) - 1}
}

// constant adds an array of numbers.
func (p *planner) constant(v []float32) Ref {
	w := make([]uint32, len(v))
	for i, f := range v {
		w[i] = math.Float32bits(f)
	}
	return p.words(w)
}

// words adds an array of four bytes an element.
func (p *planner) words(v []uint32) Ref {
	m := make([]byte, 4*len(v))
	for i, w := range v {
		binary.NativeEndian.PutUint32(m[4*i:], w)
	}
	p.plan.Constants = append(p.plan.Constants, m)
	return Ref{ConstantRef, len(p.plan.Constants) - 1}
}

// stage adds a launch of k over the grid. bind are its buffers in the order in
// which the kernel declares them.
func (p *planner) stage(k *kernel.Kernel, grid kernel.Size, params any, bind ...Ref) {
	if p.err == nil {
		p.err = grid.Err()
	}
	if p.err != nil {
		return
	}
	block, err := k.AppendParams(nil, params)
	if err != nil {
		p.err = err
		return
	}
	p.plan.Stages = append(p.plan.Stages, Stage{Kernel: k, Grid: grid.Groups(), Params: block, Bind: bind})
}

func (p *planner) done(variant string) (*Plan, error) {
	if p.err != nil {
		return nil, p.err
	}
	p.plan.Variant = variant
	return &p.plan, nil
}

// inputs returns the operands of the operation that are present.
func (q *request) inputs() []Ref {
	var rs []Ref
	for i := range q.In {
		if q.In[i].Shape != nil {
			rs = append(rs, Ref{InputRef, i})
		}
	}
	return rs
}

// outputs returns the buffers that [epilogue.result] declares, and the buffers of additional
// results: the arrays to write, then the operands of the epilogue.
func (q *request) outputs() []Ref {
	var rs []Ref
	for i := range q.Out {
		rs = append(rs, Ref{OutputRef, i})
	}
	if q.Post != nil {
		for i := range q.Post.In {
			rs = append(rs, Ref{InputRef, len(q.In) + i})
		}
	}
	return rs
}

// A maker makes the kernels of a family for each specialisation and each epilogue. Makers are
// package variables of constant contents: the linker leaves them out of programs that do not use
// them, which it cannot do with variables that a call initializes.
type maker[P any, S comparable] struct {
	name  string
	build func(b *kernel.Builder, p *P, s S, e *epilogue)
	once  sync.Once
	plain *kernel.Family[S] // the kernels without epilogues; made once
	fusedKernels
}

// fusedKernels are the kernels of a maker that apply epilogues. They are not generic: programs would have the code
// once for each maker.
type fusedKernels struct {
	mu    sync.Mutex
	fused map[fusion]*kernel.Kernel
	older map[fusion]*kernel.Kernel // the previous generation, whose used kernels return
}

type fusion struct {
	s   any
	key string
}

// maxFused limits the kernels with epilogues that a maker keeps: it drops kernels that were not
// requested while half as many others were.
const maxFused = 256

// of returns the kernel for s that applies e; e is nil for no epilogue.
func (m *maker[P, S]) of(s S, e *epilogue) *kernel.Kernel {
	if e == nil {
		m.once.Do(func() {
			m.plain = kernel.NewFamily(m.name, func(b *kernel.Builder, p *P, s S) { m.build(b, p, s, nil) })
		})
		return m.plain.Of(s)
	}
	return m.withEpilogue(fusion{s, e.key}, func() *kernel.Kernel {
		return kernel.New(m.name, func(b *kernel.Builder, p *P) { m.build(b, p, s, e) })
	})
}

func (m *fusedKernels) withEpilogue(key fusion, make func() *kernel.Kernel) *kernel.Kernel {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.fused[key]; k != nil {
		return k
	}
	k := m.older[key]
	if k == nil {
		k = make()
	}
	if m.fused == nil || len(m.fused) >= maxFused/2 {
		m.fused, m.older = map[fusion]*kernel.Kernel{}, m.fused
	}
	m.fused[key] = k
	return k
}
