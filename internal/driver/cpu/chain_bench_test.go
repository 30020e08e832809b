//go:build (js || wazero) && !noasm

package cpu

import (
	"fmt"
	"math"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// BenchmarkGenerated measures gelu(x*a + b)*c and relu(x*a + b)*c with one generated kernel and
// with a kernel for each instruction. a, b and c are single numbers.
func BenchmarkGenerated(b *testing.B) {
	for _, n := range []int{1000, 1 << 20} {
		for _, o := range []*op.Operation{op.Gelu, op.Relu} {
			for name, after := range map[string]int64{"chain": 1, "calls": math.MaxInt64} {
				b.Run(fmt.Sprintf("%s/%d/%s", o.Name(), n, name), func(b *testing.B) {
					defer func(after int64, codes int) { chainAfter, chainCodes = after, codes }(chainAfter, chainCodes)
					chainAfter, chainCodes = after, 1000
					d, r := open(b, 1), newRig(b, 1)
					full := op.Shape{n}
					f := &driver.Fused{Shape: full, Out: []int{7}}
					for _, s := range []op.Shape{full, {1}, {1}, {1}} {
						slot, _ := r.input(op.F32, s)
						f.In = append(f.In, r.operand(slot, full))
					}
					f.Body = []driver.Instr{
						{Op: op.Mul, Args: []int{0, 1}, Type: op.F32}, {Op: op.Add, Args: []int{4, 2}, Type: op.F32},
						{Op: o, Args: []int{5}, Type: op.F32}, {Op: op.Mul, Args: []int{6, 3}, Type: op.F32},
					}
					y := r.slot(op.F32, full, true)
					r.p.Steps = append(r.p.Steps, driver.Step{Post: f, Out: []driver.Operand{r.operand(y, nil)}})
					e, err := d.Prepare(b.Context(), &r.p)
					if err != nil {
						b.Fatal(err)
					}
					defer e.Close()
					s := &driver.Submission{Ext: r.bindings(), Wait: true}
					for range max(8, 1<<22/n) { // engines optimise code after it has run for a while
						if _, err := e.Submit(b.Context(), s); err != nil {
							b.Fatal(err)
						}
					}
					b.SetBytes(int64(8 * n))
					for b.Loop() {
						if _, err := e.Submit(b.Context(), s); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
