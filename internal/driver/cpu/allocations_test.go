//go:build !race

// The race detector allocates, and drops items of pools at random.

package cpu

import (
	"context"
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestMemoryFlat checks that repeated submissions allocate nothing and keep nothing.
func TestMemoryFlat(t *testing.T) {
	d := open(t, 2)
	r := newRig(t, 5)
	r.random(spreads[0], 10)
	r.use(d, sample{op: op.Softmax, shapes: []op.Shape{{7, 100}}}, op.F32, alone)
	r.use(d, sample{op: op.MatMul, shapes: []op.Shape{{16, 16}, {16, 16}, nil}}, op.F32, alone)
	r.use(d, sample{op: op.Sum, shapes: []op.Shape{{1000}}}, op.F16, alone)
	e := prepare(t, d, &r.p)
	s := &driver.Submission{Ext: r.bindings(), Wait: true}
	ctx := context.Background()
	run := func() {
		if _, err := e.Submit(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	if n := testutil.Allocations(500, run); n != 0 {
		t.Errorf("%v allocations a submission", n)
	}
	if n := testutil.Growth(600, 0, run); n != 0 {
		t.Errorf("%d bytes more on the heap after each submission", n)
	}
	mapped := d.memory.Stats().Mapped
	e.Close()
	for range 50 {
		x, err := d.Prepare(ctx, &r.p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Submit(ctx, s); err != nil {
			t.Fatal(err)
		}
		x.Close()
	}
	if s := d.memory.Stats(); s.Live != 0 || s.Mapped > mapped {
		t.Errorf("mapped %d before, now %+v", mapped, s)
	}
}

// TestCallsAllocateNothing checks that calls of single operations do not allocate in the steady state.
func TestCallsAllocateNothing(t *testing.T) {
	d := open(t, 1)
	user := op.Binary("u", func(x, y op.Expr) op.Expr { return x.Mul(y).Add(op.Const(2)).Tanh() })
	for _, n := range []int{16, 5000} {
		for _, o := range []*op.Operation{op.Relu, op.Add, op.Clip, user} {
			r := newRig(t, 1)
			_, arity := o.Arity()
			types, shapes := []op.DType{op.F32, op.F32, op.F32}[:arity], []op.Shape{{n}, {n}, {n}}[:arity]
			r.single(o, attrsOf(o), types, shapes)
			r.steady(d, fmt.Sprint(o.Name(), n))
		}
		for _, u := range []sample{
			{op: op.Sum, shapes: []op.Shape{{n}}}, {op: op.Dot, shapes: []op.Shape{{n}, {n}}}, {op: op.ArgMax, shapes: []op.Shape{{n}}},
			{op: op.Softmax, shapes: []op.Shape{{n / 4, 4}}}, {op: op.MatMul, attrs: op.MatMulOpts{Act: op.Relu}.Attrs(), shapes: []op.Shape{{n, 4}, {4, 40}, {40}}},
			{op: op.TopK, attrs: op.TopKOpts{K: 2}.Attrs(), shapes: []op.Shape{{n / 4, 4}}},
		} {
			r := newRig(t, 1)
			r.use(d, u, op.F32, alone)
			r.steady(d, u.String())
		}
	}
}

func (r *rig) steady(d *processor, what string) {
	r.t.Helper()
	call := r.call(d)
	run := func() {
		if err := call(); err != nil {
			r.t.Fatal(err)
		}
	}
	runs := 1000
	if testing.Short() {
		runs = 100
	}
	if n := testutil.Allocations(runs, run); n != 0 {
		r.t.Errorf("%s: %v allocations a call", what, n)
	}
}
