//go:build !js || !nowebgpu

package portable

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/rayo-go/rayo/kernel"
)

// planner collects the stages of a plan, and the first error.
type planner struct {
	plan Plan
	err  error
}

// scratch adds a temporary array of n elements of four bytes.
func (p *planner) scratch(n int) Ref {
	p.plan.Scratch = append(p.plan.Scratch, 4*int64(n))
	return Ref{ScratchRef, len(p.plan.Scratch) - 1}
}

// constant adds a constant array of float32 numbers.
func (p *planner) constant(v []float32) Ref {
	w := make([]uint32, len(v))
	for i, f := range v {
		w[i] = math.Float32bits(f)
	}
	return p.words(w)
}

// words adds a constant array of 32-bit words.
func (p *planner) words(v []uint32) Ref {
	m := make([]byte, 4*len(v))
	for i, w := range v {
		binary.NativeEndian.PutUint32(m[4*i:], w)
	}
	p.plan.Constants = append(p.plan.Constants, m)
	return Ref{ConstantRef, len(p.plan.Constants) - 1}
}

// stage adds a launch of k over the grid. bind holds the buffers of k in the order in which k
// declares them.
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

// A maker makes the kernels of a family, one for each specialisation and epilogue. Makers are
// package variables with constant initial values, so that the linker leaves them out of programs
// that do not use them. It cannot leave out variables that a call initialises.
type maker[P any, S comparable] struct {
	name  string
	build func(b *kernel.Builder, p *P, s S, e *epilogue)
	once  sync.Once
	plain *kernel.Family[S] // kernels without epilogues, made at the first use
	fusedKernels
}

// fusedKernels holds the kernels of a maker that apply epilogues. The type is not generic, so that
// programs have its code only once.
type fusedKernels struct {
	mu    sync.Mutex
	fused map[fusion]*kernel.Kernel
	older map[fusion]*kernel.Kernel // the previous generation; a kernel that is used again moves back
}

type fusion struct {
	s   any
	key string
}

// maxFused limits the number of kernels with epilogues that a maker keeps. A maker drops kernels
// that were not requested while maxFused/2 others were.
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
