package batch

import (
	"context"
	"fmt"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/devicehook"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/memory"
)

// Execute runs the recording in one submission and waits. The results are all values that no
// operation consumes, and the values of Keep and ReadInto. With outs, the results are only these
// values and those of Keep and ReadInto; values that none of them needs are not computed. [Read]
// returns the results.
//
// A batch is executed once; Reset it to record again.
//
// # Errors
//   - the first mistake of the recording, with file and line.
//   - the error of ctx. The slices of the batch are no longer used then.
func (b *Batch) Execute(ctx context.Context, outs ...Value) error {
	p, dst, err := b.prepare(ctx, outs)
	if err != nil {
		return err
	}
	if err := p.Run(ctx, b.refs, dst, nil); err != nil {
		return b.explain(err)
	}
	b.finish(dst)
	return nil
}

// ExecuteAsync is Execute without waiting. The slices of the batch belong to
// it until the Pending is done, and so does the batch itself: Read waits.
func (b *Batch) ExecuteAsync(ctx context.Context, outs ...Value) *device.Pending {
	p, dst, err := b.prepare(ctx, outs)
	if err != nil {
		return pending(driver.Completed(err), nil)
	}
	what := b.what()
	b.pending = pending(p.Start(ctx, b.refs, dst), func(err error) error { return explain(err, what) })
	b.finish(dst)
	return b.pending
}

// pending returns the [device.Pending] of a completion. explain, if not nil, completes its errors.
func pending(c *driver.Completion, explain func(error) error) *device.Pending {
	return devicehook.NewPending(c, explain).(*device.Pending)
}

// what names the batch in errors.
func (b *Batch) what() string { return fmt.Sprintf("batch of %d nodes on %v", len(b.g.Nodes), b.dev) }

// explain adds the failed call to an error. It returns errors of contexts unchanged.
func explain(err error, what string) error {
	if err == nil || err == context.Canceled || err == context.DeadlineExceeded {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (b *Batch) explain(err error) error {
	if err == nil {
		return nil
	}
	return explain(err, b.what())
}

// prepare determines the outputs, compiles the plan, and allocates memory for the results.
func (b *Batch) prepare(ctx context.Context, outs []Value) (*engine.Plan, [][]byte, error) {
	if b.unusable() {
		return nil, nil, b.err
	}
	if b.ran {
		return nil, nil, fmt.Errorf("batch: already executed: call Reset and record again, or Compile a plan: %w", device.ErrExecuted)
	}
	if err := b.outputs(outs); err != nil {
		return nil, nil, err
	}
	p, err := b.eng.Compile(ctx, &b.g)
	if err != nil {
		return nil, nil, b.explain(err)
	}
	dst := make([][]byte, len(b.g.Outputs))
	for i, id := range b.g.Outputs {
		if i >= len(b.g.Outputs)-len(b.dsts) {
			dst[i] = b.dsts[i-(len(b.g.Outputs)-len(b.dsts))].dst
			continue
		}
		if dst[i], err = b.memory(id); err != nil {
			return nil, nil, err
		}
	}
	b.ran = true
	return p, dst, nil
}

// outputs lists the outputs: named or not consumed, then kept, then outputs with a destination,
// which are last and need no other memory.
func (b *Batch) outputs(outs []Value) error {
	places := make([][]byte, len(b.dsts))
	for i := range b.dsts {
		places[i] = b.dsts[i].dst
	}
	if err := distinct(places); err != nil {
		return fmt.Errorf("read into: %w", err)
	}
	b.g.Outputs = b.g.Outputs[:0]
	seen := make(map[graph.ID]bool)
	for _, g := range b.dsts {
		seen[g.id] = true
	}
	put := func(id graph.ID) {
		if !seen[id] {
			seen[id] = true
			b.g.Outputs = append(b.g.Outputs, id)
		}
	}
	for _, v := range outs {
		if !b.own(v) {
			return b.foreign(v)
		}
		put(v.id)
	}
	if len(outs) == 0 {
		for i := range b.g.Nodes {
			n := &b.g.Nodes[i]
			if !b.used[i] && (n.Kind == graph.Compute || n.Kind == graph.Result || n.Kind == graph.Launch) {
				put(graph.ID(i))
			}
		}
	}
	for _, id := range b.kept {
		put(id)
	}
	for _, g := range b.dsts {
		b.g.Outputs = append(b.g.Outputs, g.id)
	}
	return nil
}

// memory returns memory for the value of a node, aligned for its elements.
func (b *Batch) memory(id graph.ID) ([]byte, error) {
	n := &b.g.Nodes[id]
	size, err := n.Shape.Size()
	if err != nil {
		return nil, err
	}
	bytes := size * n.Type.Size()
	f, err := memory.Floats((bytes + 3) / 4)
	if err != nil {
		return nil, fmt.Errorf("result %v: %w", n.Shape, err)
	}
	return engine.Bytes(f)[:bytes], nil
}

// finish stores the memory of the results.
func (b *Batch) finish(dst [][]byte) {
	b.results = make(map[graph.ID][]byte, len(dst))
	for i, id := range b.g.Outputs {
		b.results[id] = dst[i]
	}
}

// Read returns the elements of v, a result of Execute, as a slice of T. The slice is the caller's;
// reading v again returns the same one. After ExecuteAsync it waits for the end of the execution or
// for ctx.
//
//	y, err := batch.Read[float32](ctx, b, v)
//
// Slices of int64 take values of i32, u32 and bool, whose elements Read converts.
//
// # Errors
//   - [device.ErrNotExecuted] before Execute, and for a value that was not kept: see [Batch.Keep].
//   - [device.ErrUnsupported] if slices of T do not hold the element type of v.
func Read[T Number](ctx context.Context, b *Batch, v Value) ([]T, error) {
	if b.err != nil && (!b.ran || v.b == nil) {
		return nil, b.err // v may be invalid because of the error
	}
	if !b.own(v) {
		return nil, b.foreign(v)
	}
	if b.pending != nil {
		if err := b.pending.Wait(ctx); err != nil {
			return nil, err
		}
	}
	data, ok := b.results[v.id]
	if !ok {
		if b.ran {
			return nil, notKept{}
		}
		return nil, fmt.Errorf("read: call Execute first, or pass BindOutput to the plan's Run: %w", device.ErrNotExecuted)
	}
	y, ok := viewed[T](data, v.Type())
	if !ok {
		return nil, fmt.Errorf("value of type %v read as %T: read it as its own type or Cast it: %w", v.Type(), *new(T), device.ErrUnsupported)
	}
	return y, nil
}

// notKept is the [device.ErrNotExecuted] for a value of an executed batch that is not a result.
type notKept struct{}

func (notKept) Error() string {
	return "read: the value was not kept: an operation consumed it; Keep it, or name it as an output of Execute"
}

func (notKept) Is(err error) bool { return err == device.ErrNotExecuted }
