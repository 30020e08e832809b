package ptxkernels

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx/emu"
)

// ringPlanOf returns the plan with shared stages for a product of one row. change, if not nil,
// modifies the schedule.
func ringPlanOf(t *testing.T, x *quantTrial, d *Device, change func(s *quantFewSpec)) *Plan {
	t.Helper()
	p, err := op.MatMulQOf([]op.Shape{x.request.In[0].Shape, x.request.In[1].Shape})
	if err != nil {
		t.Fatal(err)
	}
	s, err := ringFor(p, x.request.In[0].Type, x.request.In[1].Type, d)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(s)
	}
	plan, err := s.plan(x.request, p, d)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// divideBy sets the number of warps and the width of stages. If such stages do not fit, it sets the
// width to eight.
func divideBy(s *quantFewSpec, warps, width int, d *Device) {
	s.Warps, s.SharingWarps, s.Width, s.Tall, s.Solid = warps, warps, width, 1, false
	s.Fill = max(s.Fill, ringFill)
	s.Groups = ceilDiv(width, warps)
	if !s.fit(d) {
		s.Width, s.Groups = 8, 1
	}
}

// TestMatMulQRing multiplies one row, or a few, by matrices of all formats. The rows begin at
// multiples of 16 bytes, of 8, or only of 2; several blocks share a row; the last group of a row is
// partial; a stage holds many short rows; no tile divides the number of rows; and there are enough
// rows that blocks claim the last ones dynamically.
func TestMatMulQRing(t *testing.T) {
	for _, blocks := range blockTypes() {
		for i, s := range []struct{ k, n, blocks int }{
			{2048, 1, 132}, {4096, 419, 2}, {5120, 33, 3}, {2816, 70, 132}, {11008, 421, 2}, {2304, 1013, 6}, {20736, 50, 4}, {28672, 100, 8}, {11008, 150, 8}, {18944, 90, 8},
			{1792, 40, 5}, {2880, 77, 3}, {29568, 50, 8}, {2080, 100, 5}, {4352, 33, 4}, {1568, 55, 5}, {3104, 41, 5}, {4128, 101, 2}, {8224, 60, 3},
			{1024, 611, 3}, {1536, 419, 2}, {512, 301, 2}, {256, 700, 2}, {2560, 77, 3},
		} {
			if _, err := ringFor(op.Product{M: 1, K: s.k, N: s.n}, op.F32, blocks, &h200); err != nil {
				continue // short rows that begin at multiples of 2 bytes
			}
			if s.k%blocks.Block().Elements() != 0 || !sampled() || skipped(blocks) || testing.Short() && rand.IntN(2) == 0 { // to save time
				continue
			}
			d := h200
			d.Multiprocessors = s.blocks
			typ := []op.DType{op.F32, op.F16, op.BF16}[rand.IntN(3)]
			var o op.MatMulQOpts
			if i%2 == 1 {
				o.Act = op.Relu
			}
			m := 1
			if rand.IntN(3) == 0 {
				m += rand.IntN(maxRing)
				if _, err := ringFor(op.Product{M: m, K: s.k, N: s.n}, typ, blocks, &d); err != nil {
					m = 1
				}
			}
			x, err := newQuantTrial(typ, blocks, m, s.k, s.n, i%3 == 0, o, true)
			if err != nil {
				t.Fatal(err)
			}
			plan := ringPlanOf(t, x, &d, []func(s *quantFewSpec){
				nil,
				func(s *quantFewSpec) { s.Stages = 3 },
				func(s *quantFewSpec) { s.Digits = 6 },
				func(s *quantFewSpec) {
					s.Fill = 8
					divideBy(s, 8, 9+rand.IntN(8), &h200)
				},
				func(s *quantFewSpec) { divideBy(s, 12, 8+rand.IntN(8), &h200) },
				func(w *quantFewSpec) {
					old := *w
					if m > 1 || !w.widen(ceilDiv(s.k, digitGroup), 24, &d) {
						*w = old
					}
				},
			}[rand.IntN(6)])
			if err := x.run(&rig{device: d, schedule: emu.Schedule(rand.IntN(3))}, plan); err != nil {
				t.Errorf("%v %v %v %s: %v", typ, blocks, s, plan.Variant, err)
			}
		}
	}
}

// TestMatMulQRingWide multiplies activations that digits cannot represent.
func TestMatMulQRingWide(t *testing.T) {
	const k, n = 2304, 37
	for _, blocks := range blockTypes() {
		if testing.Short() && rand.IntN(2) == 0 {
			continue
		}
		m := 1 + rand.IntN(maxRing)
		a := normal(m, k)
		if blocks.Block().Elements() == 32 && whole(blocks, k-32) && rand.IntN(2) == 0 {
			a = normal(m, k-32)
		}
		for j := range a.Data {
			a.Data[j] = float64(float32(a.Data[j] * math.Exp2(float64(rand.IntN(120)-60))))
		}
		x, err := newQuantTrialOf(a, op.F32, blocks, n, false, op.MatMulQOpts{}, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.run(&rig{device: h200}, ringPlanOf(t, x, &h200, nil)); err != nil {
			t.Errorf("%v: %v", blocks, err)
		}
	}
	a := normal(1, k)
	a.Data[1077] = math.NaN()
	x, err := newQuantTrialOf(a, op.F32, op.Q6_K, n, false, op.MatMulQOpts{}, false)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 4*n)
	if err := (&rig{device: h200}).run(ringPlanOf(t, x, &h200, nil), x.in, [][]byte{out}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if y := op.F32.Float64(out, i); y == y {
			t.Errorf("NaN times a matrix has element %d %v", i, y)
		}
	}
}

// TestMatMulQLong multiplies rows that do not fit into one block: several blocks share each row,
// and a second launch adds their sums.
func TestMatMulQLong(t *testing.T) {
	for _, blocks := range blockTypes() {
		if !sampled() || skipped(blocks) { // to save time
			continue
		}
		x, err := newQuantTrial(op.BF16, blocks, 1, 28672, 35, true, op.MatMulQOpts{Act: op.Relu}, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []Device{h200, a100} {
			d.Multiprocessors = 7
			plan := fewPlan(t, x, &d, nil)
			// With small formats, a whole row fits into one block.
			if small := blocks.Block().Bytes()*256/blocks.Block().Elements() < 144; !small && (!strings.Contains(plan.Variant, "_p") || len(plan.Stages) != 2) {
				t.Errorf("%v does not split rows", plan.Variant)
			}
			if err := x.run(&rig{device: d, schedule: emu.Schedule(rand.IntN(3))}, plan); err != nil {
				t.Errorf("%v %v: %v", blocks, plan.Variant, err)
			}
		}
	}
}

// TestMatMulQRingMutants removes synchronisation from kernels and requires that the emulator detects it.
func TestMatMulQRingMutants(t *testing.T) {
	for _, k := range []int{5120, 1536} { // one copy for each row, and one for each stage
		x, err := newQuantTrial(op.F32, op.Q6_K, 1, k, 419, false, op.MatMulQOpts{}, true)
		if err != nil {
			t.Fatal(err)
		}
		d := h200
		d.Multiprocessors = 2
		p := ringPlanOf(t, x, &d, func(s *quantFewSpec) { s.Stages = 3 })
		if solid := strings.Contains(p.Variant, "solid"); solid != (k == 1536) {
			t.Errorf("%s of %d", p.Variant, k)
		}
		for _, m := range []struct{ old, new string }{
			{"bar.sync 1, ", "// "},
			{"mbarrier.arrive.shared.b64 _, ", "// "},
			{"min.u32", "max.u32"},               // copies from beyond the matrix
			{"global.inc.u32", "global.add.u32"}, // leaves counters that are not 0
		} {
			found := false
			err := x.run(&rig{device: d, mutate: func(text string) string {
				found = found || strings.Contains(text, m.old)
				return strings.ReplaceAll(text, m.old, m.new)
			}}, p)
			if !found || err == nil {
				t.Errorf("%s: no error without %q (found: %v)", p.Variant, m.old, found)
			}
		}
	}
}
