package ptxkernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

// halfTrial is a batched product of matrices of 16-bit numbers, or of float32 with TF32 allowed.
func halfTrial(t op.DType, o op.MatMulOpts, batch, m, k, n int, shared bool) *trial {
	o.TF32 = t == op.F32
	lead := op.Shape{batch}
	turned := func(lead op.Shape, a, b int, trans bool) *op.Array {
		if trans {
			a, b = b, a
		}
		return normal(append(append(op.Shape{}, lead...), a, b)...)
	}
	a := turned(lead, m, k, o.TransA)
	if shared {
		lead = nil
	}
	return newTrial(op.MatMul, o.Attrs(), t, a, turned(lead, k, n, o.TransB))
}

var layouts = []op.MatMulOpts{{}, {TransB: true}, {TransA: true}, {TransA: true, TransB: true}}

// halfOf returns the product of a trial.
func halfOf(c *trial) *halfProduct {
	p, err := op.MatMulOf(&c.attrs, []op.Shape{c.values[0].Shape, c.values[1].Shape})
	if err != nil {
		panic(err)
	}
	o := op.MatMulOptsOf(&c.attrs)
	return &halfProduct{p, c.types[0], o.TransA, o.TransB, len(c.values) > 2, nil}
}

func TestWgmmaMatMul(t *testing.T) {
	few := h200
	few.Multiprocessors = 2 // several tiles for each block
	for j, s := range []wgmmaSpec{
		{Rows: 128, Cols: 64, Groups: 2, Stages: 2, Cluster: 1},
		{Rows: 128, Cols: 128, Groups: 1, Stages: 3, Cluster: 1},
	} {
		for i := range 12 {
			if (i+i/4)%2 != j || !sampled() {
				continue
			}
			o, sizes := layouts[i%4], [][3]int{{136, 136, 72}, {131, 67, 71}, {130, 70, 130}}[i/4]
			c := halfTrial([]op.DType{op.BF16, op.F16}[i%2], o, 2, sizes[0], sizes[1], sizes[2], i%2 == 1)
			t.Run(fmt.Sprint(s.String(), " ", i), func(t *testing.T) {
				r, err := c.request()
				if err != nil {
					t.Fatal(err)
				}
				p, err := halfOf(c).warpgroupsOf(wgmmaSchedule{wgmmaSpec: s, parts: 1}, &few)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.runPlan(&rig{device: few, schedule: emu.Shuffled}, r, p); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestMmaMatMul(t *testing.T) {
	for j, s := range []mmaSpec{
		{Rows: 64, Cols: 64, High: 32, Wide: 32, Stages: 3},
		{Rows: 128, Cols: 64, High: 64, Wide: 16, Stages: 4},
	} {
		for i := range 24 {
			if (i+i/4)%2 != j || !sampled() {
				continue
			}
			o, sizes := layouts[i%4], [][3]int{{136, 104, 152}, {131, 67, 71}, {130, 70, 130}}[i/4%3]
			c := halfTrial([]op.DType{op.BF16, op.F16, op.F32, op.F32}[i%2+i/12*2], o, 2, sizes[0], sizes[1], sizes[2], i%2 == 1)
			t.Run(fmt.Sprint(s.String(), " ", i), func(t *testing.T) {
				r, err := c.request()
				if err != nil {
					t.Fatal(err)
				}
				p, err := halfOf(c).warpsOf(s)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.runPlan(&rig{device: a100, schedule: emu.Shuffled}, r, p); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestHalfMatMul multiplies matrices of all types and layouts, with every kind of bias and epilogue.
func TestHalfMatMul(t *testing.T) {
	for i := range 24 {
		if !sampled() {
			continue
		}
		o := layouts[i%4]
		if i%3 == 1 {
			o.Act = op.Gelu
		}
		typ := []op.DType{op.BF16, op.F16}[rand.IntN(2)]
		if i >= 12 {
			typ, o.TF32 = op.F32, true
		}
		side := func() int { return []int{1, 8, 40, 65, 127, 128, 129, 144}[rand.IntN(8)] }
		c := halfTrial(typ, o, 1+rand.IntN(2), side(), side(), side(), rand.IntN(2) == 1)
		if i%2 == 1 {
			n := len(c.values[1].Shape)
			c = newTrial(op.MatMul, o.Attrs(), c.types[0], append(c.values, normal(c.values[1].Shape[n-1-integer(o.TransB)]))...)
		}
		d := []Device{h200, a100}[i/2%2]
		c.must(t, d)
		if i%8 > 3 {
			c.mustFuse(t, d)
		}
	}
}

// TestSplitMatMul computes few results with long sums, which use split-K.
func TestSplitMatMul(t *testing.T) {
	for i, n := range []int{8, 33, 64, 36, 33, 64, 40} {
		o, typ, terms := layouts[(i+1)%4], op.BF16, 1100
		if i%3 > 0 {
			o.Act = op.Relu
		}
		if i > 2 {
			typ, o.TF32, terms = op.F32, true, 548
		}
		c := halfTrial(typ, o, 2, 9, terms, n, false)
		c = newTrial(op.MatMul, o.Attrs(), typ, append(c.values, normal(n))...)
		r, err := c.request()
		if err != nil {
			t.Fatal(err)
		}
		h := halfOf(c)
		if o.Act != nil {
			if h.after, err = finish(r, n); err != nil {
				t.Fatal(err)
			}
		}
		p, err := h.warpgroupsOf(wgmmaSchedule{wgmmaSpec: wgmmaSpec{Rows: 64, Cols: 64, Groups: 1, Stages: 3, Cluster: 1}, parts: 4, copyB: o.TransA && !o.TransB && typ == op.F32}, &h200)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.runPlan(&rig{device: h200, schedule: emu.Shuffled}, r, p); err != nil {
			t.Errorf("%v: %v", r.In, err)
		}
	}
}

func integer(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestWgmmaTiles requires that every tile supports every layout and fits into the shared memory of
// a block. A tile whose copies would bring more bytes to a stage than it holds must be refused,
// because the kernel would hang.
func TestWgmmaTiles(t *testing.T) {
	for _, o := range layouts {
		p := &halfProduct{Product: op.Product{Batch: 1, M: 512, K: 512, N: 512}, Type: op.BF16, TransA: o.TransA, TransB: o.TransB}
		single := *p
		single.Type = op.F32
		for _, s := range wgmmaTiles {
			if _, err := p.warpgroupsOf(wgmmaSchedule{wgmmaSpec: s.wgmmaSpec, parts: 1}, &h200); err != nil || s.bytes() > h200.Shared {
				t.Errorf("%s, %v, %d bytes: %v", s.String(), o, s.bytes(), err)
			}
			for _, w := range wgmmaCopies {
				w.wgmmaSpec, w.parts = s.wgmmaSpec, 1
				a, b := single.alongs(&w)
				if _, err := single.warpgroupsOf(w, &h200); (a || b) != (err == nil) {
					t.Errorf("%s of floats, %v: %v", w.String(), o, err)
				}
			}
		}
		_, err := p.warpgroupsOf(wgmmaSchedule{wgmmaSpec: wgmmaSpec{Rows: 128, Cols: 192, Groups: 2, Stages: 4, Cluster: 2}, parts: 1}, &h200)
		if o.TransB != (err == nil) {
			t.Errorf("a cluster with 96 columns a block, %v: %v", o, err)
		}
	}
}

// assemble runs ptxas and returns its output.
func assemble(t *testing.T, k *Kernel, target ptx.Target) string {
	t.Helper()
	testutil.Need(t, "ptxas")
	m := ptx.NewModule(target)
	m.Kernel("k", k.Build)
	text, err := m.AppendPTX(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "k.ptx")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ptxas", "-v", "-arch", target.String(), "-o", filepath.Join(dir, "k.cubin"), name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestWgmmaMatMulPtxas assembles every tile: no register may be spilled and no product serialised,
// which ptxas reports in remarks numbered C75xx. Short runs assemble a random third of the tiles.
func TestWgmmaMatMulPtxas(t *testing.T) {
	r := testutil.Rand(t)
	for i, w := range wgmmaTiles {
		if testing.Short() && r.IntN(3) > 0 {
			continue
		}
		s := w.wgmmaSpec
		s.Type, s.TransA, s.TransB = []op.DType{op.BF16, op.F16}[i%2], layouts[i%4].TransA, layouts[i%4].TransB
		loose, split := s, s
		loose.Loose, loose.Bias = true, true
		split.Split, split.Odd = true, true
		s = []wgmmaSpec{s, loose, split}[i%3]
		needClean(t, s.String(), assemble(t, s.kernel(nil), ptx.SM90a))
	}
}

// needClean checks the output of ptxas for a wgmma kernel.
func needClean(t *testing.T, name, out string) {
	t.Helper()
	if strings.Contains(out, "C75") || !strings.Contains(out, " 0 bytes spill stores") {
		t.Errorf("%s: %s", name, out)
	}
}

// TestMmaMatMulPtxas assembles every tile of each layout. Short runs assemble a random third of them.
func TestMmaMatMulPtxas(t *testing.T) {
	r := testutil.Rand(t)
	for _, s := range mmaTiles {
		for i, o := range layouts {
			if testing.Short() && r.IntN(3) > 0 {
				continue
			}
			s := s.mmaSpec
			target := []ptx.Target{ptx.SM80, ptx.SM86, ptx.SM90a, ptx.SM120}[i]
			for _, typ := range []op.DType{[]op.DType{op.BF16, op.F16}[i%2], op.F32} {
				s.Type, s.TransA, s.TransB = typ, o.TransA, o.TransB
				if out := assemble(t, s.kernel(nil), target); !strings.Contains(out, " 0 bytes spill stores") {
					t.Errorf("%v: %s", s, out)
				}
			}
		}
	}
}

// halfPlan returns the request of a trial and the plan that f makes.
func halfPlan(t *testing.T, c *trial, f func(p *halfProduct) (*Plan, error)) (*portable.Request, *Plan) {
	t.Helper()
	r, err := c.request()
	if err != nil {
		t.Fatal(err)
	}
	p, err := f(halfOf(c))
	if err != nil {
		t.Fatal(err)
	}
	return r, p
}

// TestHalfMatMulMutants breaks the kernels and requires that the emulator detects each mutation.
func TestHalfMatMulMutants(t *testing.T) {
	c := halfTrial(op.BF16, op.MatMulOpts{TransB: true}, 1, 136, 264, 72, false)
	single := halfTrial(op.F32, op.MatMulOpts{}, 1, 136, 264, 72, false)
	one := h200
	one.Multiprocessors = 1
	wgmma := func(p *halfProduct) (*Plan, error) {
		return p.warpgroupsOf(wgmmaSchedule{wgmmaSpec: wgmmaSpec{Rows: 64, Cols: 64, Groups: 1, Stages: 2, Cluster: 1}, parts: 1}, &one)
	}
	turned := func(p *halfProduct) (*Plan, error) {
		return p.warpgroupsOf(wgmmaSchedule{wgmmaSpec: wgmmaSpec{Rows: 128, Cols: 64, Groups: 1, Stages: 2, Cluster: 1}, parts: 1}, &one)
	}
	mma := func(p *halfProduct) (*Plan, error) {
		return p.warpsOf(mmaSpec{Rows: 64, Cols: 64, High: 32, Wide: 32, Stages: 3})
	}
	for _, m := range []struct {
		trial    *trial
		plan     func(p *halfProduct) (*Plan, error)
		old, new string
	}{
		{c, wgmma, "fence.proxy.async.shared::cta;", ""},
		{c, wgmma, "wgmma.fence.sync.aligned;", ""},
		{c, wgmma, "wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;"},
		{c, wgmma, "bar.warp.sync 4294967295;", ""},
		{c, wgmma, "cp.async.bulk.wait_group.read 0;", ""},
		{c, wgmma, "bar.sync 0;", ""},
		{single, turned, "wgmma.fence.sync.aligned;", ""},
		{single, turned, "wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;"},
		{single, turned, "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;"},
		{single, turned, ", 4;", ", 1;"}, // warps do not wait for the loads of other warps
		{single, turned, "bar.sync 0;", ""},
		{c, mma, "bar.sync 0;", ""},
		{c, mma, "cp.async.wait_group 1;", "cp.async.wait_group 2;"},
		{c, mma, "ldmatrix.sync.aligned.m8n8.x4.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"},
		{single, mma, "0f39AAAAAB", "0f3C000000"}, // a much larger addend before truncation
	} {
		d, c := one, m.trial
		if strings.HasPrefix(m.old, "0f") || strings.Contains(m.old, "ldmatrix") || strings.Contains(m.old, "cp.async.wait_group ") {
			d = a100
		}
		r, p := halfPlan(t, c, m.plan)
		found := false
		err := c.runPlan(&rig{device: d, mutate: func(text string) string {
			found = found || strings.Contains(text, m.old)
			return strings.ReplaceAll(text, m.old, m.new)
		}}, r, p)
		if !found || err == nil {
			t.Errorf("%s: no error without %q (found: %v)", p.Variant, m.old, found)
		}
	}
}

// TestHalfMatMulBanks requires that no access to shared memory has a bank conflict, and that each
// tile reads its part of each operand once.
func TestHalfMatMulBanks(t *testing.T) {
	for _, o := range layouts {
		wgmma := func(groups int) func(p *halfProduct) (*Plan, error) {
			return func(p *halfProduct) (*Plan, error) {
				return p.warpgroupsOf(wgmmaSchedule{wgmmaSpec: wgmmaSpec{Rows: 128, Cols: 128, Groups: groups, Stages: 2, Cluster: 1}, parts: 1}, &h200)
			}
		}
		for i, f := range []func(p *halfProduct) (*Plan, error){
			wgmma(2), wgmma(1), wgmma(2),
			func(p *halfProduct) (*Plan, error) {
				return p.warpsOf(mmaSpec{Rows: 128, Cols: 128, High: 64, Wide: 32, Stages: 3})
			},
			func(p *halfProduct) (*Plan, error) { return p.warpsOf(mmaTiles[0].mmaSpec) },
		} {
			typ := []op.DType{op.F16, op.F32, op.F32, op.F16, op.F32}[i]
			if (i == 1 || i == 2) && o.TransA && !o.TransB {
				continue // an operand is transposed first
			}
			c := halfTrial(typ, o, 1, 128, 128, 128, false)
			r, p := halfPlan(t, c, f)
			if err := c.runPlan(&rig{device: []Device{h200, h200, h200, a100, a100}[i], unchecked: true, stats: func(_ int, s *emu.Stats) {
				if s.Conflicts != 0 {
					t.Errorf("%s %v: %d bank conflicts", p.Variant, o, s.Conflicts)
				}
				if want := int64(2 * 128 * 128 * typ.Size()); s.LoadBytes != want {
					t.Errorf("%s %v: %d bytes are read, not %d", p.Variant, o, s.LoadBytes, want)
				}
			}}, r, p); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestHalfMatMulResidual adds a full array and an array with one element for each row to the
// product. The result has the type of the operands, so the stores of the kernel write it.
func TestHalfMatMulResidual(t *testing.T) {
	for i, n := range []int{72, 33, 70, 8} {
		typ := []op.DType{op.BF16, op.F16}[i%2]
		m, k := 67, []int{40, 1500}[i/3]
		a, b, full, rows := normal(m, k), normal(k, n), normal(m, n), normal(m)
		c := newTrial(op.MatMul, op.Attrs{}, typ, a, b)
		arg := func(i int) *ir.Node { return ir.NewArg(i, ir.F32) }
		sum := arg(0)
		for i := range 2 {
			var err error
			if sum, err = ir.New(ir.Add, sum, arg(i+1)); err != nil {
				t.Fatal(err)
			}
		}
		c.post = &portable.Epilogue{In: []portable.Operand{{Type: typ, Broadcast: op.Full, N: m * n}, {Type: op.F32, Broadcast: op.Repeated, N: m}}, Exprs: []*ir.Node{sum}}
		c.out = []op.DType{typ}
		r, err := c.request()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []Device{h200, a100} {
			p, err := For(r, d)
			if err != nil {
				t.Fatal(err)
			}
			out := [][]byte{optest.Poisoned(int64(m * n * 2))}
			if err := (&rig{device: d}).run(p, append(c.use().Memory(), optest.Encode(full, typ), optest.Encode(rows, op.F32)), out); err != nil {
				t.Fatalf("%s: %v", p.Variant, err)
			}
			for j := range m * n {
				want, mag := typ.Round(full.Data[j])+rows.Data[j/n], math.Abs(full.Data[j])+math.Abs(rows.Data[j/n])
				for l := range k {
					v := typ.Round(a.Data[j/n*k+l]) * typ.Round(b.Data[l*n+j%n])
					want, mag = want+v, mag+math.Abs(v)*op.Depth(k)
				}
				if err := op.MatMul.Check(typ.Float64(out[0], j), want, mag, typ); err != nil {
					t.Fatalf("%s, %d columns, element %d: %v", p.Variant, n, j, err)
				}
			}
		}
	}
}

// TestHalfMatMulSpecial multiplies infinities and NaN, which must stay in their rows and columns:
// elements outside both matrices count as 0.
func TestHalfMatMulSpecial(t *testing.T) {
	for i, o := range layouts {
		for j, typ := range []op.DType{[]op.DType{op.BF16, op.F16}[i%2], op.F32} {
			c := halfTrial(typ, o, 1, 70, 67, []int{72, 71}[(i/2+j)%2], false)
			a, b := c.values[0], c.values[1]
			a.Data[len(a.Data)-1], a.Data[0] = math.Inf(1), 3e38
			b.Data[len(b.Data)-1] = math.NaN()
			b.Data[rand.IntN(len(b.Data)-1)] = math.Inf(-1)
			c.must(t, h200)
			c.must(t, a100)
		}
	}
}

// BenchmarkHalfMatMulPlan measures the time of planning with a cached kernel.
func BenchmarkHalfMatMulPlan(b *testing.B) {
	r := &portable.Request{Op: op.MatMul, In: []portable.Array{{Type: op.BF16, Shape: op.Shape{1000, 1000}}, {Type: op.BF16, Shape: op.Shape{1000, 1000}}}, Out: []portable.Array{{Type: op.BF16, Shape: op.Shape{1000, 1000}}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := For(r, h200); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCutMatMul computes the upper and the lower rows with two launches.
func TestCutMatMul(t *testing.T) {
	for i, n := range []int{72, 71, 136, 72, 136} {
		o := op.MatMulOpts{TransB: i%2 == 0, TF32: i > 2}
		c := halfTrial([]op.DType{op.BF16, op.F16, op.BF16, op.F32, op.F32}[i], o, 1, 203, []int{70, 72, 67, 36, 67}[i], n, true)
		c = newTrial(op.MatMul, o.Attrs(), c.types[0], append(c.values, normal(n))...)
		r, err := c.request()
		if err != nil {
			t.Fatal(err)
		}
		h := halfOf(c)
		h.Bias = true
		w := wgmmaSchedule{wgmmaSpec: wgmmaTiles[4].wgmmaSpec, parts: 1, top: 128, below: wgmmaTiles[6].wgmmaSpec, belowParts: 1 + i%2}
		a, b := h.lay()
		w.copyA, w.copyB = a.inner*a.bytes%16 != 0, b.inner*b.bytes%16 != 0
		p, err := h.warpgroupsOf(w, &h200)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.runPlan(&rig{device: h200, schedule: emu.Shuffled}, r, p); err != nil {
			t.Errorf("%v: %v", r.In, err)
		}
	}
}

// TestWgmmaBest checks the chosen schedules: products whose last wave would have few blocks
// are split into two launches, and others are not.
func TestWgmmaBest(t *testing.T) {
	for _, c := range []struct {
		m, k, n int
		cut     bool
	}{{4096, 4096, 4096, false}, {8192, 8192, 8192, false}, {2048, 2048, 2048, false}, {5000, 5000, 5000, true}, {4097, 4097, 4097, true}, {1, 1, 1, false}} {
		p := &halfProduct{Product: op.Product{Batch: 1, M: c.m, K: c.k, N: c.n}, Type: op.BF16}
		w, us := p.best(&h200)
		if (w.top > 0) != c.cut {
			t.Errorf("%v: %s", c, w.String())
		}
		t.Logf("%v: %s, %d rows, %.0f µs", c, w.String(), w.top, us)
	}
}

// TestHalfFewRows requires that products with one or two rows do not use the kernels of tiles.
func TestHalfFewRows(t *testing.T) {
	for _, typ := range []op.DType{op.F16, op.BF16} {
		for _, o := range layouts {
			for _, c := range [][4]int{{1, 1, 515, 200}, {3, 2, 100, 37}, {1, 70, 1026, 1}, {1, 1, 3001, 64}, {1, 2, 64, 8}, {2, 1, 33, 1}} {
				if !sampled() {
					continue
				}
				x := halfTrial(typ, o, c[0], c[1], c[2], c[3], c[0] == 1 && !o.TransA)
				r, err := x.request()
				if err != nil {
					t.Fatal(err)
				}
				p, err := For(r, h200)
				if err == nil && !strings.HasPrefix(p.Variant, "skinny") {
					t.Errorf("%v %v: %s", typ, c, p.Variant)
				}
				if err == nil {
					err = x.runPlan(&rig{device: h200}, r, p)
				}
				if err != nil {
					t.Errorf("%v %+v %v: %v", typ, o, c, err)
				}
			}
		}
	}
}
