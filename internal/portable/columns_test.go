package portable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// columnsLayout returns the layout of rows [outer*inner cols] in a memory [outer cols inner].
func columnsLayout(t *testing.T, outer, cols, inner int) *op.Layout {
	order, err := op.PermuteTo(0, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	l, ok := op.Permute.Layout(&order, op.RowMajor(outer*cols*inner), op.Shape{outer, cols, inner}, op.Shape{outer, inner, cols}, op.F32)
	if !ok {
		t.Fatal("no layout")
	}
	return &l
}

// TestColumns reduces and scans the middle axis of arrays with every variant that reads columns.
func TestColumns(t *testing.T) {
	rnd := rand.New(rand.NewPCG(testutil.Seed(t), 1))
	ran := map[string]int{}
	for _, o := range op.Catalogue() {
		if !o.Scans() && o.Class() != op.Reduction || o.Inputs()[0] != "x" || len(o.Inputs()) > 1 {
			continue
		}
		for i, s := range [][3]int{{1, 2, 16}, {2, 9, 33}, {1, 65, 130}, {3, 130, 17}, {1, 600, 40}, {1, 1500, 2}, {1, 5000, 3}, {2, 2100, 16}} {
			outer, cols, inner := s[0], s[1], s[2]
			x := normal(rnd, outer*inner, cols)
			switch i {
			case 1:
				x = with(rnd, x, missing, missing, 0, 0)
			case 3:
				x = with(rnd, x, inf, -inf, 0, 0)
			case 5:
				copy(x.Data[cols:], x.Data[:cols/2]) // equal elements
			}
			l := columnsLayout(t, outer, cols, inner)
			for _, name := range append(foldSchedules.names(), scanSchedules.names()...) {
				if !sampled() && ran[name] > 0 {
					continue
				}
				c := &trial{o: o, attrs: o.Defaults(), types: []op.DType{op.F32}, values: []*op.Array{x}}
				if o.Class() == op.Reduction {
					c.attrs = c.attrs.Rows()
				}
				from, to := l, l
				switch {
				case o.Class() == op.Reduction:
					to = nil
				case i%3 == 1:
					from = nil
				case i%3 == 2:
					to = nil
				}
				err := c.runColumns(name, l, from, to, inner)
				if errors.Is(err, op.ErrUnsupported) {
					continue // the variant is for other shapes
				}
				ran[name]++
				if err != nil {
					t.Errorf("%v of %v by %s: %v", o, s, name, err)
				}
			}
		}
	}
	for _, name := range append(foldSchedules.names(), scanSchedules.names()...) {
		if strings.Contains(name, "columns") && ran[name] == 0 {
			t.Errorf("no case has the variant %s", name)
		}
	}
}

// runColumns computes the trial with a variant, where the operand and the result have the given
// layouts.
func (c *trial) runColumns(variant string, columns, from, to *op.Layout, inner int) error {
	r, err := c.request(Target{Lanes: 256})
	if err != nil {
		return err
	}
	n := columns.Size()
	r.Variant = variant
	memory := optest.Encode(c.values[0], op.F32)
	switch {
	case c.o.Class() == op.Reduction:
		r.Inner = inner
		memory = optest.Lay(memory, op.F32, columns, n)
	case from != nil:
		r.In[0].Layout, r.In[0].N = from, n
		memory = optest.Lay(memory, op.F32, from, n)
	}
	if to != nil {
		r.Out[0].Layout, r.Out[0].N = to, n
	}
	p, err := For(r)
	if err != nil {
		return err
	}
	out := optest.Poisoned(int64(size(r.Out[0].Shape) * r.Out[0].Type.Size()))
	if err := (&rig{check: true}).run(p, [][]byte{memory}, [][]byte{out}); err != nil {
		return fmt.Errorf("variant %s: %w", p.Variant, err)
	}
	if to != nil {
		out = optest.Taken(out, r.Out[0].Type, to)
	}
	return c.use().Compare(typesOf(r.Out), [][]byte{out})
}
