package cpu

import (
	"context"
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// BenchmarkRun measures calls of one elementwise operation over host memory.
func BenchmarkRun(b *testing.B) {
	for _, threads := range []int{1, 2} {
		for _, n := range []int{16, 1000, 100_000, 1_000_000} {
			for _, o := range []*op.Operation{op.Relu, op.Tanh, op.Add} {
				b.Run(fmt.Sprintf("%s/%d/threads=%d", o.Name(), n, threads), func(b *testing.B) {
					d := open(b, threads)
					r := newRig(b, 1)
					_, arity := o.Arity()
					r.single(o, attrsOf(o), []op.DType{op.F32, op.F32}[:arity], []op.Shape{{n}, {n}}[:arity])
					call := r.call(d)
					b.SetBytes(int64(4 * n * (arity + 1)))
					for b.Loop() {
						if err := call(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkCall measures calls of operations of other classes.
func BenchmarkCall(b *testing.B) {
	for _, u := range []sample{
		{op: op.Sum, shapes: []op.Shape{{16}}},
		{op: op.Dot, shapes: []op.Shape{{1000}, {1000}}},
		{op: op.Softmax, shapes: []op.Shape{{1, 16}}},
		{op: op.MatMul, shapes: []op.Shape{{4, 4}, {4, 4}, nil}},
		{op: op.Gather, shapes: []op.Shape{{8, 4}, {3}}, types: []op.DType{0, op.I32}, at: 8},
	} {
		b.Run(u.op.Name(), func(b *testing.B) {
			d := open(b, 1)
			r := newRig(b, 1)
			r.use(d, u, op.F32, alone)
			call := r.call(d)
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReplay runs a plan of 20 steps over a few elements, to measure the overhead of a
// step.
func BenchmarkReplay(b *testing.B) {
	d := open(b, 1)
	for _, k := range []struct {
		name string
		u    sample
	}{
		{"sum", sample{op: op.Sum, attrs: op.Sum.Defaults().Rows(), shapes: []op.Shape{{4, 4}}}},
		{"softmax", sample{op: op.Softmax, shapes: []op.Shape{{2, 8}}}},
		{"matmul", sample{op: op.MatMul, shapes: []op.Shape{{4, 4}, {4, 4}, nil}}},
		{"transpose", sample{op: op.Transpose, shapes: []op.Shape{{4, 4}}}},
	} {
		b.Run(k.name, func(b *testing.B) {
			r := newRig(b, 1)
			for range 20 {
				r.use(d, k.u, op.F32, alone)
			}
			benchSubmit(b, d, r)
		})
	}
	b.Run("add", func(b *testing.B) {
		r := newRig(b, 1)
		for range 20 {
			r.single(op.Add, op.Attrs{}, []op.DType{op.F32, op.F32}, []op.Shape{{16}, {16}})
		}
		benchSubmit(b, d, r)
	})
}

func benchSubmit(b *testing.B, d *processor, r *rig) {
	b.ReportAllocs()
	e := prepare(b, d, &r.p)
	s, ctx := &driver.Submission{Ext: r.bindings(), Wait: true}, context.Background()
	for b.Loop() {
		if _, err := e.Submit(ctx, s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChain measures relu, scale and add in one program and in three.
func BenchmarkChain(b *testing.B) {
	for _, threads := range []int{1, 2} {
		d := open(b, threads)
		for _, n := range []int{1000, 100_000, 1_000_000, 10_000_000} {
			s := op.Shape{n}
			full := func(slot int) driver.Operand { return driver.Operand{Slot: slot, Type: op.F32, N: n} }
			ins := []driver.Instr{
				{Op: op.Relu, Args: []int{0}, Type: op.F32},
				{Op: op.Scale, Attrs: op.Floats(2), Args: []int{2}, Type: op.F32},
				{Op: op.Add, Args: []int{3, 1}, Type: op.F32},
			}
			p := driver.Program{Ext: 5}
			for i := range 5 {
				p.Slots = append(p.Slots, driver.Slot{Type: op.F32, Shape: s, Bytes: int64(4 * n), Ext: i, Written: i > 1})
			}
			q := p
			p.Steps = []driver.Step{{Post: &driver.Fused{In: []driver.Operand{full(0), full(1)}, Body: ins, Out: []int{4}, Shape: s}, Out: []driver.Operand{full(2)}}}
			one := func(o driver.Instr, out int, in ...int) driver.Step {
				f := &driver.Fused{Shape: s, Out: []int{len(in)}}
				o.Args = nil
				for i, s := range in {
					f.In = append(f.In, full(s))
					o.Args = append(o.Args, i)
				}
				f.Body = []driver.Instr{o}
				return driver.Step{Post: f, Out: []driver.Operand{full(out)}}
			}
			q.Steps = []driver.Step{one(ins[0], 3, 0), one(ins[1], 4, 3), one(ins[2], 2, 4, 1)}
			for name, prog := range map[string]*driver.Program{"fused": &p, "separate": &q} {
				b.Run(fmt.Sprintf("%d/threads=%d/%s", n, threads, name), func(b *testing.B) {
					var ext []driver.Binding
					for range 5 {
						m, v := alloc(b, d, n)
						for i := range v {
							v[i] = float32(i%17) - 8
						}
						defer m.Free()
						ext = append(ext, driver.Binding{Mem: m})
					}
					e := prepare(b, d, prog)
					sub, ctx := &driver.Submission{Ext: ext, Wait: true}, context.Background()
					b.SetBytes(int64(12 * n))
					for b.Loop() {
						if _, err := e.Submit(ctx, sub); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkSubmit measures a plan of one step over a few elements.
func BenchmarkSubmit(b *testing.B) {
	d := open(b, 1)
	for _, where := range []string{"host", "device"} {
		b.Run(where, func(b *testing.B) {
			r := newRig(b, 1)
			r.single(op.Add, op.Attrs{}, []op.DType{op.F32, op.F32}, []op.Shape{{16}, {16}})
			if where == "host" {
				benchSubmit(b, d, r)
				return
			}
			e := prepare(b, d, &r.p)
			ext := r.bindings()
			for i := range ext {
				m, _ := alloc(b, d, 16)
				defer m.Free()
				ext[i] = driver.Binding{Mem: m}
			}
			s, ctx := &driver.Submission{Ext: ext, Wait: true}, context.Background()
			for b.Loop() {
				if _, err := e.Submit(ctx, s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
