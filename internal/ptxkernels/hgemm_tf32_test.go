package ptxkernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

// wgmmaCopies are the four choices of operands to copy.
var wgmmaCopies = []wgmmaSchedule{{}, {copyA: true}, {copyB: true}, {copyA: true, copyB: true}}

// TestWgmmaTF32 multiplies float32 matrices in all layouts, with all choices of transposing copies.
func TestWgmmaTF32(t *testing.T) {
	few := h200
	few.Multiprocessors = 2 // several tiles for each block
	specs := []wgmmaSpec{
		{Rows: 128, Cols: 64, Groups: 2, Stages: 2, Cluster: 1},
		{Rows: 128, Cols: 128, Groups: 1, Stages: 3, Cluster: 1},
		{Rows: 64, Cols: 64, Groups: 1, Stages: 2, Cluster: 1},
	}
	turn := 0
	for i, o := range layouts {
		for _, w := range wgmmaCopies {
			for _, sizes := range [][3]int{{136, 136, 72}, {132, 67, 71}, {131, 67, 71}, {70, 68, 130}} {
				p := &halfProduct{Product: op.Product{Batch: 2, M: sizes[0], K: sizes[1], N: sizes[2]}, Type: op.F32, TransA: o.TransA, TransB: o.TransB}
				a, b := p.lay()
				alongA, alongB := p.alongs(&w)
				if !w.copyA && a.inner%4 != 0 || !w.copyB && b.inner%4 != 0 || !alongA && !alongB {
					continue
				}
				turn++
				if !sampled() {
					continue
				}
				w := w
				w.wgmmaSpec, w.parts = specs[turn%len(specs)], 1
				c := halfTrial(op.F32, o, 2, sizes[0], sizes[1], sizes[2], turn%2 == 1)
				t.Run(fmt.Sprint(w.String(), " ", i, sizes), func(t *testing.T) {
					r, plan := halfPlan(t, c, func(p *halfProduct) (*Plan, error) { return p.warpgroupsOf(w, &few) })
					if err := c.runPlan(&rig{device: few, schedule: emu.Shuffled}, r, plan); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
	if turn < 20 {
		t.Errorf("%d ways", turn)
	}
}

// TestWgmmaTF32Ptxas assembles every tile with A in registers, with A in shared memory, and turned.
// Short runs take a random one of these three.
func TestWgmmaTF32Ptxas(t *testing.T) {
	r := testutil.Rand(t)
	for i, w := range wgmmaTiles {
		one := r.IntN(3)
		for l := range 3 {
			if testing.Short() && l != one {
				continue
			}
			s := w.of(op.F32, l != 1, l != 2)
			s.Odd, s.Loose = i%3 == 1, i%3 > 0
			s.Split, s.Bias = i%3 == 2, i%3 < 2
			needClean(t, s.String(), assemble(t, s.kernel(nil), ptx.SM90a))
		}
	}
}

// TestTF32Many multiplies more matrices than one copy can transpose, and requires that they are not copied.
func TestTF32Many(t *testing.T) {
	for n, want := range map[int]string{maxLaidOut: "wgmma", maxLaidOut + 1: "mma"} {
		r := &portable.Request{Op: op.MatMul, Attrs: op.MatMulOpts{TransA: true, TF32: true}.Attrs(),
			In: []portable.Array{{Type: op.F32, Shape: op.Shape{n, 8, 12}}, {Type: op.F32, Shape: op.Shape{n, 8, 16}}}, Out: []portable.Array{{Type: op.F32, Shape: op.Shape{n, 12, 16}}}}
		p, err := For(r, h200)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(p.Variant, want) {
			t.Errorf("%d: %s", n, p.Variant)
		}
		for i := range p.Stages {
			if g := p.Stages[i].Grid; g[1] > maxLaidOut || g[2] > maxLaidOut {
				t.Errorf("%d: a grid of %v", n, g)
			}
		}
	}
}

// TestTF32Gains requires that a product uses float32 if TF32 is not faster.
func TestTF32Gains(t *testing.T) {
	for _, c := range []struct {
		m, k, n int
		o       op.MatMulOpts
		here    [2]bool // on an H200 and an A100
	}{
		{m: 4096, k: 4096, n: 4096, here: [2]bool{true, true}}, {m: 64, k: 64, n: 64, here: [2]bool{true, true}}, {m: 257, k: 257, n: 257, here: [2]bool{true, true}},
		{m: 33, k: 33, n: 33}, {m: 3, k: 1000, n: 1000}, {m: 5000, k: 5000, n: 4}, {m: 5001, k: 5001, n: 16}, {m: 16, k: 5001, n: 5001},
		{m: 24, k: 1001, n: 1001, here: [2]bool{true, true}}, {m: 96, k: 5001, n: 5001, here: [2]bool{true, true}},
		{m: 16, k: 5000, n: 5000, here: [2]bool{true, false}}, {m: 100, k: 5000, n: 100, here: [2]bool{true, false}},
		{m: 5001, k: 5000, n: 16, here: [2]bool{true, false}}, {m: 5001, k: 5000, n: 16, o: op.MatMulOpts{TransA: true}},
	} {
		p := &halfProduct{Product: op.Product{Batch: 1, M: c.m, K: c.k, N: c.n}, Type: op.F32, TransA: c.o.TransA}
		for i, d := range []Device{h200, a100} {
			if p.gains(&d) != c.here[i] {
				t.Errorf("%v on %v: %v", c, d.Target, !c.here[i])
			}
			r := p.full()
			o := c.o
			o.TF32 = true
			r.Attrs = o.Attrs()
			plan, err := For(r, d)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(plan.Variant, "mma") != c.here[i] {
				t.Errorf("%v on %v: %s", c, d.Target, plan.Variant)
			}
		}
	}
}

// TestWgmmaTF32Exact multiplies numbers of 11 bits with small ones: no product is rounded, so each
// result must be exact.
func TestWgmmaTF32Exact(t *testing.T) {
	const m, k, n = 72, 40, 68
	for i, o := range layouts {
		c := halfTrial(op.F32, o, 1, m, k, n, false)
		for j, x := range c.values {
			largest := []int{2047, 3}[(i+j)%2]
			for e := range x.Data {
				x.Data[e] = float64(rand.IntN(2*largest+1) - largest)
			}
		}
		r, err := c.request()
		if err != nil {
			t.Fatal(err)
		}
		p, err := For(r, h200)
		if err != nil {
			t.Fatal(err)
		}
		out := [][]byte{optest.Poisoned(4 * m * n)}
		if err := (&rig{device: h200}).run(p, c.use().Memory(), out); err != nil {
			t.Fatal(err)
		}
		want, err := op.MatMul.Reference(&c.attrs, c.values, c.types)
		if err != nil {
			t.Fatal(err)
		}
		for e, w := range want[0].Data {
			if v := op.F32.Float64(out[0], e); v != w {
				t.Fatalf("%s %+v, element %d: %v, not %v", p.Variant, o, e, v, w)
			}
		}
	}
}

func TestTF32NaN(t *testing.T) {
	for _, d := range []Device{h200, a100} {
		tf32NaN(t, d, (&rig{device: d}).run)
	}
}

// tf32NaN checks the results for NaN in either operand. Only a signalling NaN whose set mantissa
// bits TF32 drops may become infinite.
func tf32NaN(t *testing.T, d Device, run func(p *Plan, in, out [][]byte) error) {
	nans := []uint32{0x7fffffff, 0x7fc00000, 0xffc00000, 0x7f802000, 0xff800001}
	const m, k, n = 20, 36, 24
	for _, o := range layouts {
		for operand := range 2 {
			c := halfTrial(op.F32, o, 1, m, k, n, false)
			r, err := c.request()
			if err != nil {
				t.Fatal(err)
			}
			p, err := For(r, d)
			if err != nil {
				t.Fatal(err)
			}
			in := c.use().Memory()
			for i, bits := range nans { // in row i of a, or column i of b
				e := []int{i*k + 5, 5*n + i}[operand]
				switch {
				case operand == 0 && o.TransA:
					e = 5*m + i
				case operand == 1 && o.TransB:
					e = i*k + 5
				}
				binary.LittleEndian.PutUint32(in[operand][4*e:], bits)
			}
			out := [][]byte{make([]byte, 4*m*n)}
			if err := run(p, in, out); err != nil {
				t.Fatalf("%s: %v", p.Variant, err)
			}
			for e := range m * n {
				v, i := op.F32.Float64(out[0], e), []int{e / n, e % n}[operand]
				ok := math.Abs(v) < 100
				if i < len(nans) {
					ok = math.IsNaN(v) || i == len(nans)-1 && math.IsInf(v, 0)
				}
				if !ok {
					t.Errorf("%s %+v, NaN in operand %d: element %d is %v", p.Variant, o, operand, e, v)
				}
			}
		}
	}
}
