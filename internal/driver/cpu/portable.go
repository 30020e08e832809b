package cpu

import (
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/interp"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// portablePlan computes an operation without a core of this device, with launches of the portable
// library in the interpreter.
type portablePlan struct {
	d       *processor
	plan    *portable.Plan
	kernels []compiled
	bytes   []int64 // sizes of the operands, then of the results
	inputs  int
	scratch int64
	consts  [][]byte
}

// portableTarget has the features that the interpreter supports and executes fast.
var portableTarget = portable.Target{Lanes: 1024, Shared: 48 << 10, Subgroups: true, Votes: true}

// portable returns the launches that compute o, or an error with the reason why there are none.
func (o *opStep) portable() (*portablePlan, error) {
	r, in, out, err := o.request()
	if err != nil {
		return nil, err
	}
	p := &portablePlan{d: o.d, inputs: len(in), bytes: append(in, out...)}
	if p.plan, err = portable.For(r); err != nil {
		return nil, err
	}
	for i := range p.plan.Stages {
		prog, err := p.plan.Stages[i].Kernel.Program()
		if err != nil {
			return nil, err
		}
		k, err := p.d.programs.of(prog)
		if err != nil {
			return nil, err
		}
		p.kernels = append(p.kernels, k)
	}
	for _, c := range p.plan.Constants {
		p.consts = append(p.consts, aligned(c))
	}
	for _, n := range p.plan.Scratch {
		p.scratch += (n + 255) &^ 255
	}
	return p, nil
}

// configure does nothing, because the launches are already planned.
func (p *portablePlan) configure(*op.Operation, *op.Attrs, []op.Shape) error { return nil }

func (p *portablePlan) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	var temp unsafe.Pointer
	if p.scratch > 0 {
		b, err := p.d.memory.Get(int(p.scratch))
		if err != nil {
			return fmt.Errorf("temporary memory: %w", err)
		}
		defer b.Free()
		temp = base(b)
	}
	for i := range p.plan.Stages {
		s := &p.plan.Stages[i]
		l := interp.Launch{Grid: s.Grid, Params: s.Params, Runner: poolRunner{p.d.pool}}
		for _, r := range s.Bind {
			l.Buffers = append(l.Buffers, p.memory(r, in, out, temp))
		}
		if err := p.kernels[i].Run(ctx, l); err != nil {
			return launchError(err)
		}
	}
	return nil
}

// memory returns the array that r refers to.
func (p *portablePlan) memory(r portable.Ref, in, out []unsafe.Pointer, temp unsafe.Pointer) []byte {
	switch r.Kind {
	case portable.InputRef:
		x := unsafe.Slice((*byte)(in[r.Index]), p.bytes[r.Index])
		if n := len(x); n%4 != 0 { // quantised blocks, which are read by words
			x = append(make([]byte, 0, n+4), x...)[:(n+3)&^3]
		}
		return x
	case portable.ConstantRef:
		return p.consts[r.Index]
	case portable.OutputRef:
		return unsafe.Slice((*byte)(out[r.Index]), p.bytes[p.inputs+r.Index])
	}
	for _, n := range p.plan.Scratch[:r.Index] {
		temp = unsafe.Add(temp, (n+255)&^255)
	}
	return unsafe.Slice((*byte)(temp), p.plan.Scratch[r.Index])
}
