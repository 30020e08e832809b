package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// proof is what an engine knows of the kernels of one operation.
type proof struct {
	ok  atomic.Bool
	err error // under Engine.proofM: they are wrong
}

// probes are the operands on which operations of class Shaped are tested, by
// shape; a second type for those that take indices.
var probes = map[*op.Operation]struct {
	attrs  op.Attrs
	shapes []op.Shape
	index  int // the operand that holds indices, below 3; 0 for none
}{
	op.MatMul:    {shapes: []op.Shape{{5, 9}, {9, 7}}},
	op.MatVec:    {shapes: []op.Shape{{5, 9}, {9}}},
	op.Transpose: {shapes: []op.Shape{{5, 7}}},
	op.Conv2D:    {attrs: op.Conv2DOpts{}.Attrs(), shapes: []op.Shape{{1, 2, 6, 5}, {3, 2, 3, 3}}},
	op.Attention: {shapes: []op.Shape{{2, 5, 8}, {2, 6, 8}, {2, 6, 8}}},
	op.Rope:      {attrs: op.RopeOpts{}.Attrs(), shapes: []op.Shape{{3, 2, 8}}},
	op.Gather:    {shapes: []op.Shape{{6, 5}, {4}}, index: 1},
	op.TopK:      {attrs: op.TopKOpts{K: 2}.Attrs(), shapes: []op.Shape{{3, 9}}},
}

// unproven are the operations that need no test or have none: reshape moves
// nothing, and quantised blocks have no reference that could be made here.
var unproven = map[*op.Operation]bool{op.Reshape: true, op.MatMulQ: true}

// prove tests the kernels of o, unless it is elementwise (those are tested as
// a family when the device is opened), before their first use on this device:
// a small case against the reference. A device that fails gives an
// ErrUnsupported for the operation, not wrong results.
func (e *Engine) prove(ctx context.Context, o *op.Operation) error {
	if o.Class() == op.Elementwise || unproven[o] {
		return nil
	}
	p := &e.proofs[o.ID()]
	if p.ok.Load() {
		return nil
	}
	e.proofM.Lock()
	defer e.proofM.Unlock()
	if p.ok.Load() || p.err != nil {
		return p.err
	}
	err := e.test(ctx, o)
	switch {
	case err == nil:
		p.ok.Store(true)
	case errors.Is(err, errWrong):
		p.err = err
	}
	return err
}

// errWrong is the error of kernels that fail their test.
var errWrong = fmt.Errorf("self-test failed: %w", driver.ErrUnsupported)

// test computes a small case of o and compares it with the reference.
func (e *Engine) test(ctx context.Context, o *op.Operation) error {
	c := probes[o]
	a := c.attrs
	switch o.Class() {
	case op.Reduction:
		c.shapes = []op.Shape{{67}, {67}}[:len(o.Inputs())]
		a = o.Defaults()
	case op.Row:
		c.shapes = []op.Shape{{3, 21}}
		a = o.Defaults()
	}
	var in, out []Host
	var arrays []*op.Array
	var types []op.DType
	for i, s := range c.shapes {
		x, t := op.NewArray(s), op.F32
		if i > 0 && i == c.index {
			t = op.I32
		}
		for k := range x.Data {
			x.Data[k] = float64((k*7919+i*5)%23-11) / 4 // exact, without order
			if t == op.I32 {
				x.Data[k] = float64((k*5 + 3) % c.shapes[0][0])
			}
		}
		h := HostOf(Bytes(make([]uint32, len(x.Data))), t, s)
		for k, v := range x.Data {
			t.PutFloat64(h.Data, k, v)
		}
		in, arrays, types = append(in, h), append(arrays, x), append(types, t)
	}
	want, err := o.Reference(&a, arrays, types)
	if err != nil {
		return err
	}
	results, err := o.Types(&a, types)
	if err != nil {
		return err
	}
	for len(results) < len(want) {
		results = append(results, op.I32) // the places that topk found
	}
	for i, w := range want {
		r := make([]float32, len(w.Data))
		for k := range r {
			r[k] = float32(math.NaN())
		}
		out = append(out, HostOf(Bytes(r), results[i], w.Shape))
	}
	g, refs, outs := graphOf(o, &a, in, out)
	p, err := e.plan(ctx, g)
	if err != nil {
		return err
	}
	defer p.Close()
	p.silent = true
	if err := p.Run(ctx, refs, outs, nil); err != nil {
		return err
	}
	for i, w := range want {
		for k, v := range w.Data {
			mag := 0.0
			if w.Mag != nil {
				mag = w.Mag[k]
			}
			if err := o.Check(results[i].Float64(out[i].Data, k), v, mag, results[i]); err != nil {
				return fmt.Errorf("%s on %s: element %d of result %d: %v: %w", o, e.name, k, i, err, errWrong)
			}
		}
	}
	return nil
}
