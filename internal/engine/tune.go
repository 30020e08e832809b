package engine

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// Tuned has the measurements of the variants of one operation.
type Tuned struct {
	Best  string
	Times []VariantTime // in the order of preference before the measurement
}

// VariantTime is the shortest device time of a variant.
type VariantTime struct {
	Variant string
	Took    time.Duration
}

// tuneTime is the time for which each variant is measured, and tuneRuns the minimum number of runs.
const (
	tuneTime = 30 * time.Millisecond
	tuneRuns = 3
)

// Target returns the features of the device for portable kernels. ok is false if the device does
// not run them.
func (e *Engine) Target() (t portable.Target, ok bool) {
	if dev, ok := e.dev.(driver.Tunable); ok {
		return dev.Target(), true
	}
	return t, false
}

// Tune measures the kernels from which the device can choose for an operation over operands of the given
// types and shapes, makes the device prefer the fastest for such operands, and stores this choice. It
// returns ErrUnsupported if the device always takes the same kernel.
func (e *Engine) Tune(ctx context.Context, o *op.Operation, a *op.Attrs, types []op.DType, shapes []op.Shape) (t Tuned, err error) {
	defer guard(&err)
	if err := e.alive(ctx); err != nil {
		return t, err
	}
	if !e.enter() {
		return t, e.Err()
	}
	defer e.exit()
	dev, ok := e.dev.(driver.Tunable)
	if !ok {
		return t, fmt.Errorf("%v has nothing to tune: %w", e.name, driver.ErrUnsupported)
	}
	r := &portable.Request{Op: o, Attrs: *a, Target: dev.Target()}
	g, refs, outs, err := single(r, types, shapes)
	if err != nil {
		return t, err
	}
	names, err := dev.Variants(r)
	if err != nil {
		return t, err
	}
	if len(names) == 0 {
		return t, fmt.Errorf("%v has one kernel for %v: %w", e.name, o, driver.ErrUnsupported)
	}
	key := portable.Key(r)
	for _, name := range names {
		dev.Tune(key, name)
		took, err := e.timed(ctx, g, refs, outs)
		if err != nil {
			return t, fmt.Errorf("variant %s: %w", name, err)
		}
		t.Times = append(t.Times, VariantTime{name, took})
	}
	least := time.Duration(math.MaxInt64)
	for _, v := range t.Times {
		if v.Took < least {
			least, t.Best = v.Took, v.Variant
		}
	}
	dev.Tune(key, t.Best)
	e.plans.clear() // compile earlier plans again
	return t, dev.Keep(key)
}

// single returns the graph of one operation over new operands with random numbers, and completes
// the request for it.
func single(r *portable.Request, types []op.DType, shapes []op.Shape) (*graph.Graph, []Ref, [][]byte, error) {
	ts, err := r.Op.Types(&r.Attrs, types)
	if err != nil {
		return nil, nil, nil, err
	}
	ss, err := r.Op.Shapes(&r.Attrs, shapes)
	if err != nil {
		return nil, nil, nil, err
	}
	g := &graph.Graph{}
	n := graph.Node{Kind: graph.Compute, Op: r.Op, Attrs: r.Attrs, NIn: uint8(len(types)), Type: ts[0], Shape: ss[0]}
	var refs []Ref
	for i, t := range types {
		r.In = append(r.In, portable.Array{Type: t, Shape: shapes[i]})
		n.In[i] = g.Add(graph.Node{Kind: graph.Input, Type: t, Shape: shapes[i], Ref: int32(i)})
		data, err := anything(t, shapes[i])
		if err != nil {
			return nil, nil, nil, err
		}
		refs = append(refs, Ref{Host: data})
	}
	id := g.Add(n)
	g.Outputs = []graph.ID{id}
	var outs [][]byte
	for i := range ts {
		r.Out = append(r.Out, portable.Array{Type: ts[i], Shape: ss[i]})
		if i > 0 {
			g.Outputs = append(g.Outputs, g.Add(graph.Node{Kind: graph.Result, Ref: int32(i), Type: ts[i], Shape: ss[i], NIn: 1, In: [graph.MaxInputs]graph.ID{id}}))
		}
		size, err := ts[i].Bytes(ss[i])
		if err != nil {
			return nil, nil, nil, err
		}
		outs = append(outs, Bytes(make([]uint32, (size+3)/4))[:size])
	}
	return g, refs, outs, nil
}

// anything returns an array of small numbers.
func anything(t op.DType, s op.Shape) ([]byte, error) {
	size, err := t.Bytes(s)
	if err != nil {
		return nil, err
	}
	data := Bytes(make([]uint32, (size+3)/4))[:size]
	if t.Quantized() {
		for i := range data {
			data[i] = byte(rand.Uint32())
		}
		return data, nil
	}
	n, _ := s.Size()
	for i := range n {
		t.PutFloat64(data, i, float64(rand.IntN(3)-1))
	}
	return data, nil
}

// timed returns the shortest device time of the steps of a graph.
func (e *Engine) timed(ctx context.Context, g *graph.Graph, refs []Ref, outs [][]byte) (time.Duration, error) {
	p, err := e.build(ctx, g)
	if err != nil {
		return 0, err
	}
	defer p.exec.end()
	least := time.Duration(math.MaxInt64)
	times := driver.Times{Steps: make([]driver.Span, len(p.prog.Steps))}
	for i, start := 0, time.Now(); i <= tuneRuns || time.Since(start) < tuneTime; i++ {
		if err := p.Run(ctx, refs, outs, &times); err != nil {
			return 0, err
		}
		if i == 0 {
			continue // the first run compiles kernels and allocates memory
		}
		took := time.Duration(0)
		for _, s := range times.Steps {
			took += s.End - s.Start
		}
		least = min(least, took)
	}
	return least, nil
}
