package cpu

import (
	"context"
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// BenchmarkHalves is a program of five operations over one operand of 16 bits.
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
					body := []driver.Instr{
						{Op: op.Scale, Attrs: op.Floats(1.25), Args: []int{0}, Type: typ},
						{Op: op.Add, Args: []int{1, 0}, Type: typ},
						{Op: op.Relu, Args: []int{2}, Type: typ},
						{Op: op.Mul, Args: []int{3, 0}, Type: typ},
						{Op: op.Sub, Args: []int{4, 1}, Type: typ},
					}
					p.Steps = []driver.Step{{Post: &driver.Fused{In: []driver.Operand{full(0)}, Body: body, Out: []int{5}, Shape: s}, Out: []driver.Operand{full(1)}}}
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
