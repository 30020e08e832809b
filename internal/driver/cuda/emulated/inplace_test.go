package emulated

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cuda"
	"github.com/rayo-go/rayo/op"
)

// TestRowsInPlace has log_softmax of log_softmax, which changes little, over one
// temporary array that each step reads and writes: rows that begin with a vector
// need no copy of it.
func TestRowsInPlace(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		rows, cols int
		copies     bool
	}{{4, 256, false}, {7, 12, false}, {9, 7, false}, {2, 2052, false}, {3, 2051, true}} {
		e := newEmulator(cu.Capability{Major: 9}, true)
		d, err := cuda.New(e)
		if err != nil {
			t.Fatal(err)
		}
		shape := op.Shape{c.rows, c.cols}
		n := c.rows * c.cols
		const steps = 5
		p := &driver.Program{Ext: 2, Arena: int64(4*n+255) &^ 255}
		for i := range steps + 1 {
			s := driver.Slot{Type: op.F32, Shape: shape, Bytes: 4 * int64(n), Ext: -1, Written: i > 0}
			switch i {
			case 0:
				s.Ext = 0
			case steps:
				s.Ext = 1
			}
			p.Slots = append(p.Slots, s)
		}
		for i := range steps {
			p.Steps = append(p.Steps, driver.Step{Op: op.LogSoftmax, Attrs: op.LogSoftmax.Defaults(), Dims: []op.Shape{shape, shape},
				In:  []driver.Operand{{Slot: i, Type: op.F32, N: n}},
				Out: []driver.Operand{{Slot: i + 1, Type: op.F32, N: n}}})
		}
		x, err := d.Prepare(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		in, out := make([]byte, 4*n), make([]byte, 4*n)
		for range 4 { // at last as a graph
			for i := range n {
				op.F32.PutFloat64(in, i, rand.NormFloat64())
				op.F32.PutFloat64(out, i, math.NaN())
			}
			e.copies = 0
			if _, err := x.Submit(ctx, &driver.Submission{Ext: []driver.Binding{{Host: in}, {Host: out}}, Wait: true}); err != nil {
				t.Fatal(err)
			}
			if got := e.copies > 0; got != c.copies && e.launches > 0 {
				t.Errorf("%v: %d copies", shape, e.copies)
			}
			for r := range c.rows {
				sum := 0.0
				for j := range c.cols {
					sum += math.Exp(op.F32.Float64(in, r*c.cols+j))
				}
				for j := range c.cols {
					want := op.F32.Float64(in, r*c.cols+j) - math.Log(sum)
					if got := op.F32.Float64(out, r*c.cols+j); !(math.Abs(got-want) < 2e-5) {
						t.Fatalf("%v: element %d of row %d is %v, not %v", shape, j, r, got, want)
					}
				}
			}
		}
		x.Close()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
