package cpu

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// prepareStep returns s prepared for e.
func (d *processor) prepareStep(s *driver.Step, e *executable) (step, error) {
	if s.Op == nil {
		if s.Post == nil {
			return nil, fmt.Errorf("empty step: %w", driver.ErrUnsupported)
		}
		return d.prepareMap(s)
	}
	if s.Op.Class() == op.Elementwise {
		return nil, fmt.Errorf("elementwise, but not as a program: %w", driver.ErrUnsupported)
	}
	o, err := d.prepareOp(s, e)
	if err != nil {
		return nil, err
	}
	return o.fused()
}

// opStep is a step of an operation that is not elementwise. What the operation
// reads are arrays of float32, or of 32-bit integers: an operand in another
// form is brought into that by a program, which is the prologue if there is
// one. Results likewise pass through a program into their form in memory,
// which is the epilogue if there is one.
//
// The general way is to make all these arrays in the arena; operations that
// can do better do: see fused.
type opStep struct {
	d     *processor
	op    *op.Operation
	attrs op.Attrs
	dims  []op.Shape
	in    []arrayOperand
	out   []arrayOperand // results of the operation
	e     *executable
}

// An arrayOperand is an operand or result of an operation.
type arrayOperand struct {
	absent bool
	slot   int      // where it is, if p is nil
	p      *program // what makes it of memory, or for a result memory of it
	typ    op.DType // F32, I32, U32 or Bool: of the array
	n      int
	temp   int // in the arena, if p is not nil
}

// prepareOp makes the programs of s.
func (d *processor) prepareOp(s *driver.Step, e *executable) (*opStep, error) {
	o := &opStep{d: d, op: s.Op, attrs: s.Attrs, dims: s.Dims, e: e}
	results := s.Op.Results()
	if len(s.Dims) != len(s.In)+results {
		return nil, fmt.Errorf("%d shapes of %d operands and %d results: %w", len(s.Dims), len(s.In), results, driver.ErrShape)
	}
	types := make([]op.DType, len(s.In))
	for i := range s.In {
		in := &s.In[i]
		var pre *driver.Fused
		if s.Pre != nil {
			pre = s.Pre[i]
		}
		a := arrayOperand{slot: in.Slot, typ: register(in.Type)}
		if in.Slot < 0 && pre == nil {
			a.absent = true
			o.in = append(o.in, a)
			continue
		}
		types[i] = in.Type
		n, err := s.Dims[i].Size()
		if err != nil {
			return nil, err
		}
		a.n = n
		if pre == nil && in.Type.Size() != 4 {
			pre = &driver.Fused{In: []driver.Operand{{Slot: in.Slot, Type: in.Type, N: n}}, Out: []int{0}, Shape: s.Dims[i]}
		}
		if pre != nil {
			if a.p, err = d.fuse(pre, []driver.Operand{{Slot: -1, Type: a.typ, N: n}}); err != nil {
				return nil, err
			}
		}
		o.in = append(o.in, a)
	}
	made, err := s.Op.Types(&s.Attrs, types)
	if err != nil {
		return nil, err
	}
	for i := range results {
		n, err := s.Dims[len(s.In)+i].Size()
		if err != nil {
			return nil, err
		}
		a := arrayOperand{slot: -1, typ: register(made[i]), n: n}
		switch {
		case s.Post != nil && i > 0:
			return nil, fmt.Errorf("epilogue of an operation with %d results: %w", results, driver.ErrUnsupported)
		case s.Post != nil:
			if a.p, err = d.fuse(s.Post, s.Out); err != nil {
				return nil, err
			}
		case i >= len(s.Out):
			return nil, fmt.Errorf("%d outputs of %d: %w", len(s.Out), results, driver.ErrShape)
		case s.Out[i].Type.Size() != 4:
			narrow := &driver.Fused{In: []driver.Operand{{Slot: -1, Type: a.typ, N: n}}, Out: []int{0}, Shape: s.Dims[len(s.In)+i]}
			if a.p, err = d.fuse(narrow, s.Out[i:i+1]); err != nil {
				return nil, err
			}
		default:
			a.slot = s.Out[i].Slot
		}
		o.out = append(o.out, a)
	}
	return o, nil
}

// reserve gives operand or result a its place in the arena, for steps that
// make it there.
func (o *opStep) reserve(a *arrayOperand) {
	if a.p != nil {
		a.temp = o.e.reserve(a.n * 4)
	}
}

// core computes an operation over arrays in memory; absent ones are nil.
type core interface {
	compute(ctx context.Context, in, out []unsafe.Pointer) error
}

// plainStep is the general way: arrays in the arena before and after.
type plainStep struct {
	*opStep
	core func() core // for one frame
}

// plainRunner runs it.
type plainRunner struct {
	s         plainStep
	core      core
	in, out   []unsafe.Pointer
	pre, post []*mapTask
}

func (o *opStep) plain(c func() core) step {
	for i := range o.in {
		o.reserve(&o.in[i])
	}
	for i := range o.out {
		o.reserve(&o.out[i])
	}
	return plainStep{o, c}
}

func (s plainStep) runner(f *frame) runner {
	r := &plainRunner{s: s, core: s.core(), in: make([]unsafe.Pointer, len(s.in)), out: make([]unsafe.Pointer, len(s.out))}
	r.pre, r.post = tasksOf(f, s.in), tasksOf(f, s.out)
	return r
}

// tasksOf returns a task for each program among as, nil for the others.
func tasksOf(f *frame, as []arrayOperand) []*mapTask {
	ts := make([]*mapTask, len(as))
	for i := range as {
		if p := as[i].p; p != nil {
			ts[i] = &mapTask{d: f.d, p: p, at: make([]place, len(p.streams))}
		}
	}
	return ts
}

func (r *plainRunner) run(ctx context.Context, f *frame) error {
	for i, t := range r.pre {
		a := &r.s.in[i]
		switch {
		case a.absent:
		case t == nil:
			r.in[i] = f.base[a.slot]
		default:
			r.in[i] = unsafe.Add(f.temp, a.temp)
			t.bind(f)
			t.at[t.p.inputs].base = r.in[i]
			if err := t.run(ctx, &f.lane); err != nil {
				return err
			}
		}
	}
	for i, t := range r.post {
		a := &r.s.out[i]
		if t == nil {
			r.out[i] = f.base[a.slot]
		} else {
			r.out[i] = unsafe.Add(f.temp, a.temp)
		}
	}
	if err := r.core.compute(ctx, r.in, r.out); err != nil {
		return err
	}
	for i, t := range r.post {
		if t != nil {
			t.bind(f)
			t.at[0].base = r.out[i]
			if err := t.run(ctx, &f.lane); err != nil {
				return err
			}
		}
	}
	return nil
}
