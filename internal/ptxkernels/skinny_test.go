package ptxkernels

import (
	"strings"
	"testing"

	"github.com/rayo-go/rayo/op"
)

func TestSkinny(t *testing.T) {
	small := h200
	small.Multiprocessors = 2 // so that a few hundred lines are enough
	for _, typ := range []op.DType{op.F32, op.F16, op.BF16} {
		for _, trans := range []bool{false, true} {
			for _, c := range [][2]int{{1, 1}, {3, 7}, {64, 64}, {257, 130}, {5, 3001}, {3, 4096}, {1032, 72}, {70, 1026}} {
				if !sampled() {
					continue
				}
				m, k := c[0], c[1]
				a := normal(m, k)
				if trans {
					a = normal(k, m)
				}
				newTrial(op.MatVec, op.MatVecOpts{Trans: trans}.Attrs(), typ, a, normal(k)).must(t, h200)
				newTrial(op.MatVec, op.MatVecOpts{Trans: trans}.Attrs(), typ, a, normal(k)).must(t, small)
			}
		}
	}
	for i := range 16 {
		o := op.MatMulOpts{TransA: i&1 != 0, TransB: i&2 != 0}
		if i&4 != 0 {
			o.Act = op.Relu
		}
		for _, c := range [][4]int{{1, 3, 515, 200}, {2, 200, 48, 5}, {1, 8, 100, 4}, {3, 1, 2100, 64}, {1, 300, 36, 8}} {
			if !sampled() {
				continue
			}
			x := sgemmTrial(c[0], c[1], c[2], c[3], o, i&8 != 0)
			r, err := x.request()
			if err != nil {
				t.Fatal(err)
			}
			p, err := planSkinny(r, &small)
			if err == nil {
				err = x.runPlan(&rig{device: small}, r, p)
			}
			if err != nil {
				t.Errorf("%+v %v: %v", o, c, err)
			}
		}
	}
}

// TestSkinnyBarrier removes the barrier before the sums are added and requires that the emulator
// detects the race.
func TestSkinnyBarrier(t *testing.T) {
	for _, trans := range []bool{false, true} {
		a := normal(4, 2048)
		if trans {
			a = normal(2048, 4)
		}
		g := &rig{device: h200, mutate: func(s string) string { return strings.Replace(s, "bar.sync", "// bar.sync", 1) }}
		if err := newTrial(op.MatVec, op.MatVecOpts{Trans: trans}.Attrs(), op.F32, a, normal(2048)).run(g); err == nil {
			t.Errorf("transposed %v: no finding", trans)
		}
	}
}
