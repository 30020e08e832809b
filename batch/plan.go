package batch

import (
	"context"
	"fmt"
	"sync"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/op"
)

// Plan is a compiled recording, which can run many times with different operands. It is safe for
// concurrent use, and does not depend on its batch.
type Plan struct {
	p    *engine.Plan
	name string
	refs []engine.Ref // as recorded
	outs []planOut
	gen  uint32
	b    *Batch // identifies the values of the plan; its contents are not used
	in   map[graph.ID]planIn
	runs sync.Pool // of *planRun
}

type planIn struct {
	ref int32
	typ op.DType
}

type planOut struct {
	id    graph.ID
	typ   op.DType
	bytes int
	dst   []byte // of a recorded ReadInto
}

// planRun has the bindings of one run.
type planRun struct {
	refs []engine.Ref
	outs [][]byte
	// spare has memory for results without a binding.
	spare [][]byte
}

// Compile makes a plan of the recording, which holds memory of the device for temporaries until it
// is closed. The outputs are those of Execute. Every run uses the buffers of Use and Store, and the
// slices of Upload and ReadInto unless it binds others.
func (b *Batch) Compile(ctx context.Context, outs ...Value) (*Plan, error) {
	if b.unusable() {
		return nil, b.err
	}
	if err := b.outputs(outs); err != nil {
		return nil, err
	}
	p, err := b.eng.CompileOwn(ctx, &b.g)
	if err != nil {
		return nil, b.explain(err)
	}
	k := &Plan{p: p, name: b.dev.String(), b: b, gen: b.gen, refs: append([]engine.Ref(nil), b.refs...), in: make(map[graph.ID]planIn)}
	for i := range b.g.Nodes {
		if n := &b.g.Nodes[i]; n.Kind == graph.Input {
			k.in[graph.ID(i)] = planIn{n.Ref, n.Type}
		}
	}
	for i, id := range b.g.Outputs {
		n := &b.g.Nodes[id]
		size, _ := n.Shape.Size()
		o := planOut{id: id, typ: n.Type, bytes: size * n.Type.Size()}
		if at := i - (len(b.g.Outputs) - len(b.dsts)); at >= 0 {
			o.dst = b.dsts[at].dst
		}
		k.outs = append(k.outs, o)
	}
	return k, nil
}

// Close waits for running runs, including those of RunAsync, and frees the plan's device memory.
// Later runs return [device.ErrClosed]. Close may be called more than once and from any goroutine;
// the garbage collector closes unreachable plans, and closing a device closes its plans.
func (p *Plan) Close() error {
	if p.p == nil {
		return errNoPlan
	}
	p.p.Close()
	return nil
}

// errNoPlan is the error of the zero Plan.
var errNoPlan = fmt.Errorf("the plan was not made by Compile: use the plan that Batch.Compile returns: %w", device.ErrNotExecuted)

// Binding gives a run of a plan an operand or a place for a result: see
// [BindInput] and [BindOutput].
type Binding struct {
	v    Value
	data []byte
	typ  op.DType
	set  bool
	err  error // of the slice
}

// BindInput binds a slice to a value that was recorded with Upload, for one run. Elements of
// int64 become i32 as in [Upload]; the run returns the [RangeError].
func BindInput[T Number](v Value, data []T) Binding {
	raw, t, err := elements(data)
	return Binding{v, raw, t, true, err}
}

// BindOutput binds a slice to an output, for one run: the result goes into dst.
func BindOutput[T device.Element](v Value, dst []T) Binding {
	return Binding{v, engine.Bytes(dst), device.TypeOf[T](), false, nil}
}

// Run runs the plan once and waits. Results for which there is no BindOutput
// here and no ReadInto in the recording are dropped.
//
// # Errors
//   - [device.ErrForeign] for a binding to a value that is not an operand or output of the plan.
//   - [device.ErrShape] for a slice of another length than recorded.
//   - [device.ErrUnsupported] for a slice of another element type.
//   - [device.ErrOverlap] for two bindings to one value, and for two results in the same memory.
//   - [device.ErrNotExecuted] for a plan that Compile did not make.
//   - the error of ctx. The slices are no longer used then.
func (p *Plan) Run(ctx context.Context, bind ...Binding) error {
	if p.p == nil {
		return errNoPlan
	}
	r := p.run()
	err := p.bind(r, bind)
	if err == nil {
		err = p.p.Run(ctx, r.refs, r.outs, nil)
	}
	p.free(r)
	if err != nil {
		return p.explain(err)
	}
	return nil
}

// RunAsync is Run without waiting. The slices belong to the run until the
// Pending is done.
//
// Start the next run before waiting for the last: RunAsync and Wait by turns take longer than Run, because another
// goroutine waits for the device and has to wake this one. On an H100 an MLP of one row takes 67 µs by
// Run, 86 µs by turns, and 55 µs with 64 runs under way.
func (p *Plan) RunAsync(ctx context.Context, bind ...Binding) *device.Pending {
	if p.p == nil {
		return pending(driver.Completed(errNoPlan), nil)
	}
	r := p.run()
	if err := p.bind(r, bind); err != nil {
		p.free(r)
		return pending(driver.Completed(p.explain(err)), nil)
	}
	// Spare results may be written after this planRun was returned to the pool, and by several runs
	// at the same time. Nothing reads them.
	pend := p.p.Start(ctx, r.refs, r.outs)
	r.spare = nil
	p.free(r)
	return pending(pend, p.explain)
}

func (p *Plan) explain(err error) error { return explain(err, "plan on "+p.name) }

func (p *Plan) run() *planRun {
	if r, ok := p.runs.Get().(*planRun); ok {
		return r
	}
	return &planRun{refs: make([]engine.Ref, len(p.refs)), outs: make([][]byte, len(p.outs))}
}

func (p *Plan) free(r *planRun) {
	clear(r.refs)
	clear(r.outs)
	p.runs.Put(r)
}

func (p *Plan) bind(r *planRun, bind []Binding) error {
	copy(r.refs, p.refs)
	for i := range p.outs {
		r.outs[i] = p.outs[i].dst
	}
	for i := range bind {
		d := &bind[i]
		if d.err != nil {
			return fmt.Errorf("binding %d: %w", i, d.err)
		}
		if d.v.b != p.b || d.v.gen != p.gen {
			return fmt.Errorf("binding %d: the value is None or belongs to another recording: use a value that was recorded before Compile: %w", i, device.ErrForeign)
		}
		for j := range bind[:i] {
			if bind[j].v.id == d.v.id && bind[j].set == d.set {
				return fmt.Errorf("bindings %d and %d to one value: bind it once: %w", j, i, device.ErrOverlap)
			}
		}
		found := false
		if d.set {
			var in planIn
			if in, found = p.in[d.v.id]; found {
				if err := d.fits(i, in.typ, len(p.refs[in.ref].Host)); err != nil {
					return err
				}
				r.refs[in.ref].Host = d.data
			}
		} else {
			for j := range p.outs {
				if o := &p.outs[j]; o.id == d.v.id && !found {
					if err := d.fits(i, o.typ, o.bytes); err != nil {
						return err
					}
					r.outs[j], found = d.data, true
				}
			}
		}
		if !found {
			return fmt.Errorf("binding %d: the value is %s: %w", i, d.misplaced(), device.ErrForeign)
		}
	}
	if err := distinct(r.outs); err != nil {
		return err
	}
	for i, o := range p.outs {
		if r.outs[i] != nil || o.bytes == 0 {
			continue
		}
		if r.spare == nil {
			r.spare = make([][]byte, len(p.outs))
		}
		if r.spare[i] == nil {
			r.spare[i] = make([]byte, o.bytes)
		}
		r.outs[i] = r.spare[i]
	}
	return nil
}

// distinct returns an error if two results share memory.
func distinct(outs [][]byte) error {
	for i := range outs {
		for j := range outs[:i] {
			if engine.Overlap(outs[i], outs[j]) {
				return fmt.Errorf("two results share memory: give each its own slice: %w", device.ErrOverlap)
			}
		}
	}
	return nil
}

// misplaced describes why the value of a binding is wrong for its function.
func (d *Binding) misplaced() string {
	if d.set {
		return "no operand of the plan: BindInput takes values of Upload"
	}
	return "no output of the plan: name it in Compile"
}

// fits checks the slice of binding i against an array of the plan.
func (d *Binding) fits(i int, t op.DType, bytes int) error {
	if d.typ != t && !(t == op.Bool && d.typ == op.U32) {
		return fmt.Errorf("binding %d: slice of %v: expected elements of %v: %w", i, d.typ, t, device.ErrUnsupported)
	}
	if len(d.data) != bytes {
		return fmt.Errorf("binding %d: slice of %d elements: expected %d: %w", i, len(d.data)/d.typ.Size(), bytes/d.typ.Size(), device.ErrShape)
	}
	return nil
}

// String lists the steps of the plan, the fused expressions, the slots of values, and the memory
// that sharing saves.
func (p *Plan) String() string {
	if p.p == nil {
		return errNoPlan.Error()
	}
	return p.p.Listing()
}
