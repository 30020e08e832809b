package cpu

import (
	"context"
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// fiveHalves returns a program of five operations over one 16-bit operand.
func fiveHalves(typ op.DType) []driver.Instr {
	return []driver.Instr{
		{Op: op.Scale, Attrs: op.Floats(1.25), Args: []int{0}, Type: typ},
		{Op: op.Add, Args: []int{1, 0}, Type: typ},
		{Op: op.Relu, Args: []int{2}, Type: typ},
		{Op: op.Mul, Args: []int{3, 0}, Type: typ},
		{Op: op.Sub, Args: []int{4, 1}, Type: typ},
	}
}

// BenchmarkHalves measures a program of five operations over one 16-bit operand.
func BenchmarkHalves(b *testing.B) {
	for _, typ := range []op.DType{op.F16, op.BF16} {
		for _, n := range []int{1 << 16, 1 << 20} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%v/%d/threads=%d", typ, n, threads), func(b *testing.B) {
					d, s := open(b, threads), op.Shape{n}
					full := func(slot int) driver.Operand { return driver.Operand{Slot: slot, Type: typ, N: n} }
					p := driver.Program{Ext: 2}
					for i := range 2 {
						p.Slots = append(p.Slots, driver.Slot{Type: typ, Shape: s, Bytes: int64(2 * n), Ext: i, Written: i > 0})
					}
					p.Steps = []driver.Step{{Post: &driver.Fused{In: []driver.Operand{full(0)}, Body: fiveHalves(typ), Out: []int{5}, Shape: s}, Out: []driver.Operand{full(1)}}}
					var ext []driver.Binding
					for range 2 {
						m, v := alloc(b, d, n/2)
						for i := range v {
							v[i] = 1.0078125 // 1 and 1.0078125 as bf16, 0.125 and 1.875 as f16
						}
						defer m.Free()
						ext = append(ext, driver.Binding{Mem: m})
					}
					benchHalves(b, prepare(b, d, &p), ext, n)
				})
			}
		}
	}
}

func benchHalves(b *testing.B, e driver.Executable, ext []driver.Binding, n int) {
	sub, ctx := &driver.Submission{Ext: ext, Wait: true}, context.Background()
	b.SetBytes(int64(4 * n))
	for b.Loop() {
		if _, err := e.Submit(ctx, sub); err != nil {
			b.Fatal(err)
		}
	}
}

// TestHalfCalls counts the kernel calls of programs over 16-bit values. Short operations must not
// need a separate call for rounding, and values must not be rounded before a store that rounds
// them.
func TestHalfCalls(t *testing.T) {
	d := open(t, 1)
	for _, typ := range []op.DType{op.F16, op.BF16} {
		for _, c := range []struct {
			name string
			in   []op.DType
			body []driver.Instr
			out  []int
			want int
		}{
			{"chain", []op.DType{typ}, fiveHalves(typ), []int{5}, 7}, // one widens, five compute, one narrows
			{"kept", []op.DType{typ}, fiveHalves(typ), []int{5, 2}, 8},
			{"long operation", []op.DType{typ}, []driver.Instr{
				{Op: op.Exp, Args: []int{0}, Type: typ}, {Op: op.Neg, Args: []int{1}, Type: typ}}, []int{2}, 5},
			{"product and sum", []op.DType{op.F32, op.F32, op.F32}, []driver.Instr{
				{Op: op.Mul, Args: []int{0, 1}, Type: op.F32}, {Op: op.Add, Args: []int{3, 2}, Type: op.F32},
				{Op: op.Cast, Attrs: op.CastTo(typ), Args: []int{4}, Type: typ},
				{Op: op.Cast, Attrs: op.CastTo(op.F32), Args: []int{5}, Type: op.F32}}, []int{6}, 1},
		} {
			const n = 1000
			f := driver.Fused{Body: c.body, Out: c.out, Shape: op.Shape{n}}
			for i, in := range c.in {
				f.In = append(f.In, driver.Operand{Slot: i, Type: in, N: n})
			}
			var out []driver.Operand
			for i, v := range c.out {
				out = append(out, driver.Operand{Slot: len(c.in) + i, Type: typeOf(&f, v), N: n})
			}
			p, err := d.fuse(&f, out)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.block) != c.want {
				t.Errorf("%s of %v: %d kernels for a block, want %d", c.name, typ, len(p.block), c.want)
			}
		}
	}
}
