package ptxkernels

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

// sgemmTrial is a product of random matrices, b times if b is above 1.
func sgemmTrial(b, m, k, n int, o op.MatMulOpts, bias bool) *trial {
	x, y := []int{b, m, k}, []int{b, k, n}
	if o.TransA {
		x = []int{b, k, m}
	}
	if o.TransB {
		y = []int{b, n, k}
	}
	if b == 1 {
		x, y = x[1:], y[1:]
	}
	values := []*op.Array{normal(x...), normal(y...)}
	if bias {
		values = append(values, normal(n))
	}
	return newTrial(op.MatMul, o.Attrs(), op.F32, values...)
}

// runSgemm computes the trial with schedule w. terms replaces exactTerms.
func runSgemm(g *rig, c *trial, w sgemmSchedule, terms int) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	q, err := newSgemm(r, &g.device)
	if err != nil {
		return err
	}
	q.terms = terms
	p, err := q.plan(w)
	if err != nil {
		return err
	}
	return c.runPlan(g, r, p)
}

func TestSgemmTiles(t *testing.T) {
	both := [2]bool{true, true}
	for _, rated := range sgemmTiles {
		tile := rated.sgemmTile
		for i, c := range []struct {
			b, m, k, n int
			o          op.MatMulOpts
			bias       bool
			split      int
			terms      int
			pack       [2]bool
		}{
			{1, tile.Rows + 4, 45, 12, op.MatMulOpts{}, true, 1, 1000, [2]bool{}},
			{1, 11, 3*tile.Depth + 1, tile.Cols + 3, op.MatMulOpts{TransB: true}, false, 2, 1000, [2]bool{}},
			{2, 12, 7*tile.Depth + 3, 20, op.MatMulOpts{TransA: true}, false, 1, 2 * tile.Depth / tile.Slices, [2]bool{}},
			{1, 13, 3, 1, op.MatMulOpts{TransA: true, TransB: true, Act: op.Relu}, true, 1, 1000, [2]bool{}},
			{2, 13, 39, 35, op.MatMulOpts{TransB: true}, true, 1, 1000, both},
			{1, 13, 39, 10, op.MatMulOpts{TransA: true}, false, 1, 1000, both},
			{1, tile.Rows + 1, 37, 6, op.MatMulOpts{}, true, 2, 1000, [2]bool{true, false}},
		} {
			if i > 0 && rand.IntN(3) > 0 || !sampled() {
				continue
			}
			w := sgemmSchedule{tile, c.split, c.pack}
			g := &rig{device: h200, schedule: emu.Schedule(rand.IntN(3))}
			if err := runSgemm(g, sgemmTrial(c.b, c.m, c.k, c.n, c.o, c.bias), w, c.terms); err != nil {
				t.Errorf("%v %v: %v", w, c, err)
			}
		}
	}
}

// TestSgemm computes products with the chosen schedules.
func TestSgemm(t *testing.T) {
	for _, c := range [][4]int{{1, 9, 9, 9}, {1, 65, 1, 67}, {3, 33, 40, 31}, {1, 16, 1100, 12}, {1, 130, 20, 260}, {2, 9, 260, 70}} {
		for i := range 8 {
			if i > 0 && rand.IntN(4) > 0 || !sampled() {
				continue
			}
			o := op.MatMulOpts{TransA: i&1 != 0, TransB: i&2 != 0}
			if i == 7 {
				o.Act = op.Silu
			}
			sgemmTrial(c[0], c[1], c[2], c[3], o, i&4 != 0).must(t, []Device{h200, a100}[rand.IntN(2)])
		}
	}
	// Many a share one b; they are stacked to one product unless a is transposed.
	for _, trans := range []bool{false, true} {
		a := normal(3, 17, 19)
		n := 19
		if trans {
			n = 17
		}
		newTrial(op.MatMul, op.MatMulOpts{TransA: trans}.Attrs(), op.F32, a, normal(n, 10)).must(t, h200)
	}
}

// TestSgemmChoice requires that the planner chooses the fastest schedule for sizes that were measured.
func TestSgemmChoice(t *testing.T) {
	for _, c := range []struct {
		m, k, n int
		want    string
	}{
		{1024, 1024, 1024, "128x64x32/4"},
		{2048, 2048, 2048, "128x128x16"},
		{8192, 8192, 8192, "128x128x16+a"},
		{4095, 1023, 2049, "128x64x16+a+b"},
		{8192, 8192, 64, "128x64x16*6"},
	} {
		p, err := For(product{c.m, c.k, c.n}.request(op.MatMulOpts{}), h200)
		if err != nil || p.Variant != c.want {
			t.Errorf("%v: %v, %v", c, p.Variant, err)
		}
	}
}

// TestSgemmMutants checks that the emulator reports a finding if a barrier, or the wait for
// copies, is missing.
func TestSgemmMutants(t *testing.T) {
	for _, m := range []struct{ name, old, new string }{
		{"barrier", "bar.sync", "// bar.sync"},
		{"wait", "cp.async.wait_group 1", "cp.async.wait_group 3"},
	} {
		g := &rig{device: h200, mutate: func(s string) string {
			i := strings.LastIndex(s, m.old)
			if i < 0 {
				t.Fatalf("no %s", m.old)
			}
			return s[:i] + strings.Replace(s[i:], m.old, m.new, 1)
		}}
		if err := runSgemm(g, sgemmTrial(1, 130, 100, 70, op.MatMulOpts{}, false), sgemmSchedule{sgemmTile: sgemmTiles[0].sgemmTile, Split: 1}, 1000); err == nil {
			t.Errorf("%s: no finding", m.name)
		}
	}
}

// TestSgemmAssembles requires that ptxas spills no registers of any tile.
func TestSgemmAssembles(t *testing.T) {
	for _, tile := range sgemmTiles {
		for _, k := range []int{512, 8192} {
			for _, target := range []ptx.Target{ptx.SM80, ptx.SM90} {
				if rand.IntN(2) > 0 || !sampled() {
					continue
				}
				q, err := newSgemm(product{9, k, 9}.request(op.MatMulOpts{}), &h200)
				if err != nil {
					t.Fatal(err)
				}
				p, err := q.plan(sgemmSchedule{sgemmTile: tile.sgemmTile, Split: 1})
				if err != nil {
					t.Fatal(err)
				}
				if out := assemble(t, p.Stages[0].Kernel, target); !strings.Contains(out, " 0 bytes spill stores") {
					t.Errorf("%v for %v: %s", tile, target, out)
				}
			}
		}
	}
}

// TestSgemmSpecial checks that infinities and NaN reach their own row or column and no other, also
// at the ends of rows and columns, where tiles are padded.
func TestSgemmSpecial(t *testing.T) {
	for i := range 4 {
		for _, pack := range [][2]bool{{}, {true, true}} {
			if !sampled() {
				continue
			}
			c := sgemmTrial(1, 13, 21, 10, op.MatMulOpts{TransA: i&1 != 0, TransB: i&2 != 0}, false)
			for j, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				x := c.values[j%2].Data
				x[len(x)-1-7*j] = v
			}
			w := sgemmSchedule{sgemmTiles[i].sgemmTile, 1, pack}
			if err := runSgemm(&rig{device: h200}, c, w, 1000); err != nil {
				t.Errorf("%v transposed %d: %v", w, i, err)
			}
		}
	}
}
