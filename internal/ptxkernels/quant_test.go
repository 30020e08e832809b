package ptxkernels

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx/emu"
)

// randomBlocks returns blocks of random bytes with scales of moderate size.
func randomBlocks(d op.DType, s op.Shape) []byte {
	n, err := d.Bytes(s)
	if err != nil {
		panic(err)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	for i := 0; i < n; i += d.Block().Bytes() {
		l := d.Block().Layout()
		for _, f := range []block.Float{l.Scale, l.Bias} {
			var v [2]byte
			switch f.Encoding {
			case block.Binary16:
				op.F16.PutFloat64(v[:], 0, rand.NormFloat64()/64)
			case block.E8M0:
				v[0] = byte(120 + rand.IntN(8))
			default:
				continue
			}
			for _, field := range f.Number {
				putBits(b[i:], &field, uint32(v[0])|uint32(v[1])<<8)
			}
		}
	}
	return b
}

// putBits stores v in a field that has one item.
func putBits(b []byte, f *block.Field, v uint32) {
	for i := range f.Bits {
		at := f.At + i
		b[at/8] = b[at/8]&^(1<<(at%8)) | byte(v>>(f.Shift+i)&1)<<(at%8)
	}
}

// skipped reports whether to skip a trial: half of them at random, and more of formats that share
// most of their code.
func skipped(blocks op.DType) bool {
	if blockDecoders[blocks.Block()].levels != nil {
		return rand.IntN(8) > 0
	}
	return rand.IntN(2) == 0
}

// whole reports whether a type has kernels for rows of k weights: some types only have them for
// multiples of 256.
func whole(blocks op.DType, k int) bool { return blockDecoders[blocks.Block()].fits(k) }

// quantTrial is a product with a quantised matrix.
type quantTrial struct {
	request *portable.Request
	in      [][]byte
	want    *op.Array
}

// newQuantTrial returns a product of m rows of random activations of type t, with or
// without bias.
func newQuantTrial(t, blocks op.DType, m, k, n int, bias bool, o op.MatMulQOpts, reference bool) (*quantTrial, error) {
	return newQuantTrialOf(normal(m, k), t, blocks, n, bias, o, reference)
}

// newQuantTrialOf returns a product of the activations a.
func newQuantTrialOf(a *op.Array, t, blocks op.DType, n int, bias bool, o op.MatMulQOpts, reference bool) (*quantTrial, error) {
	m, k := a.Shape[0], a.Shape[1]
	w := randomBlocks(blocks, op.Shape{n, k})
	x := &quantTrial{request: &portable.Request{Op: op.MatMulQ, Attrs: o.Attrs(),
		In: []portable.Array{{Type: t, Shape: op.Shape{m, k}}, {Type: blocks, Shape: op.Shape{n, k}}, {}}, Out: []portable.Array{{Type: t, Shape: op.Shape{m, n}}}}}
	types := []op.DType{t, blocks, op.InvalidType}
	values := []*op.Array{a, nil, nil}
	x.in = [][]byte{optest.Encode(values[0], t), w, nil}
	if bias {
		types[2], values[2] = t, normal(n)
		x.in[2] = optest.Encode(values[2], t)
		x.request.In[2] = portable.Array{Type: t, Shape: op.Shape{n}}
	}
	if !reference {
		return x, nil
	}
	for i, s := range types {
		if values[i] != nil || i == 1 {
			a, err := s.Array(x.request.In[i].Shape, x.in[i])
			if err != nil {
				return nil, err
			}
			values[i] = a
		}
	}
	want, err := op.MatMulQ.Reference(&x.request.Attrs, values, types)
	if err != nil {
		return nil, err
	}
	x.want = want[0]
	return x, nil
}

// check compares a result with the reference.
func (x *quantTrial) check(out []byte) error {
	return optest.Judge(op.MatMulQ, []*op.Array{x.want}, typesOf(x.request.Out), [][]byte{out})
}

func (x *quantTrial) run(g *rig, p *Plan) error {
	out := optest.Poisoned(int64(len(x.want.Data) * x.request.Out[0].Type.Size()))
	if err := g.run(p, x.in, [][]byte{out}); err != nil {
		return err
	}
	return x.check(out)
}

// fewSpecs are variants to test in addition to the chosen ones.
var fewSpecs = []func(s *quantFewSpec){
	func(s *quantFewSpec) { s.Tensor = false },
	func(s *quantFewSpec) { s.Warps, s.SharingWarps, s.Groups, s.Stages, s.Tensor = 4, 4, 1, 2, false },
	func(s *quantFewSpec) { s.Warps, s.SharingWarps, s.Groups, s.Stages = 4, 4, 2, 2 },
	func(s *quantFewSpec) { s.Warps, s.SharingWarps, s.Groups, s.Stages, s.Tensor = 2, 1, 3, 3, false },
	func(s *quantFewSpec) {
		if s.Digits > 0 {
			s.Digits = 6
		}
	},
	func(s *quantFewSpec) { s.Digits = 0 },
}

// fewPlan returns the plan of a product of a few rows. change, if not nil, modifies the schedule;
// the result is nil if the modified schedule does not fit.
func fewPlan(t *testing.T, x *quantTrial, d *Device, change func(s *quantFewSpec)) *Plan {
	t.Helper()
	p, err := op.MatMulQOf([]op.Shape{x.request.In[0].Shape, x.request.In[1].Shape})
	if err != nil {
		t.Fatal(err)
	}
	s, err := quantFewFor(p, x.request.In[0].Type, x.request.In[1].Type, d)
	if errors.Is(err, op.ErrUnsupported) && d.Shared < h200.Shared {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(s)
		s.Tensor = s.Tensor && s.tileable()
		if !s.fit(d) {
			return nil
		}
	}
	plan, err := s.plan(x.request, p, d)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestMatMulQFew(t *testing.T) {
	few := h200
	few.Multiprocessors = 2
	for _, blocks := range blockTypes() {
		unit := blocks.Block().Elements()
		for i, s := range []struct{ m, k, n int }{
			{1, 512, 53}, {1, 1280, 1}, {2, 2048, 35}, {2, 768, 33}, {3, 1536, 17}, {8, unit, 16}, {1, 256 + unit, 40}, {1, 23 * unit, 19}, {5, 3 * unit, 100}, {1, 2048, 70}, {1, 4096, 160},
		} {
			if !sampled() || !whole(blocks, s.k) || skipped(blocks) { // to save time
				continue
			}
			typ := []op.DType{op.F32, op.F16, op.BF16}[rand.IntN(3)]
			var o op.MatMulQOpts
			if i%2 == 1 {
				o.Act = op.Relu
			}
			x, err := newQuantTrial(typ, blocks, s.m, s.k, s.n, i%2 == 0, o, true)
			if err != nil {
				t.Fatal(err)
			}
			for j, change := range []func(s *quantFewSpec){nil, fewSpecs[rand.IntN(len(fewSpecs))]} {
				d := few
				if j > 0 && rand.IntN(2) == 0 {
					d = a100
				}
				plan := fewPlan(t, x, &d, change)
				if plan == nil {
					continue
				}
				if err = x.run(&rig{device: d, schedule: emu.Schedule(rand.IntN(3))}, plan); err != nil {
					t.Errorf("%v %v %v %s: %v", typ, blocks, s, plan.Variant, err)
				}
			}
		}
	}
}

// TestMatMulQWide multiplies activations that digits cannot represent: their magnitudes are too
// different, or not finite, or at an end of the range.
func TestMatMulQWide(t *testing.T) {
	const k = 512
	for i, f := range []func(j int) float64{
		func(int) float64 { return rand.NormFloat64() * math.Exp2(float64(rand.IntN(120)-60)) },
		func(j int) float64 {
			if j == 300 {
				return 1e30
			}
			return rand.NormFloat64()
		},
		func(int) float64 { return rand.NormFloat64() * 0x1p-100 },
		func(int) float64 { return rand.NormFloat64() * 0x1p100 },
		func(j int) float64 { return []float64{0, math.Copysign(0, -1), 1}[j/200] },
		func(int) float64 { return 0 },
	} {
		a := op.NewArray(op.Shape{1, k})
		for j := range a.Data {
			a.Data[j] = float64(float32(f(j)))
		}
		for _, blocks := range blockTypes() {
			x, err := newQuantTrialOf(a, op.F32, blocks, 20, false, op.MatMulQOpts{}, true)
			if err != nil {
				t.Fatal(err)
			}
			if err := x.run(&rig{device: h200}, fewPlan(t, x, &h200, nil)); err != nil {
				t.Errorf("%d %v: %v", i, blocks, err)
			}
		}
	}
	a := normal(1, k)
	for i, v := range []float64{math.Inf(1), math.NaN(), math.Inf(-1), math.NaN()} {
		a.Data[77] = v
		blocks := op.Q4_K
		if i >= 2 {
			blocks = levelTypes()[rand.IntN(len(levelTypes()))]
		}
		x, err := newQuantTrialOf(a, op.F32, blocks, 20, false, op.MatMulQOpts{}, false)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]byte, 4*20)
		if err := (&rig{device: h200}).run(fewPlan(t, x, &h200, nil), x.in, [][]byte{out}); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			if y := op.F32.Float64(out, i); y-y == 0 {
				t.Errorf("%v times a matrix of %v has element %d %v", v, blocks, i, y)
			}
		}
	}
}

// TestMatMulQMutants removes synchronisation from kernels and requires that the emulator detects it.
func TestMatMulQMutants(t *testing.T) {
	for _, m := range []struct {
		rows     int
		old, new string
	}{
		{1, "bar.sync 0;", ""},
		{1, "bar.warp.sync 4294967295;", ""},
		{1, ", 2304;", ", 2288;"},
		{20, "mbarrier.arrive.shared.b64 _, ", "// "},
		{20, ", 12288;", ", 12272;"},
	} {
		x, err := newQuantTrial(op.F32, op.Q4_K, m.rows, 4096, 40, false, op.MatMulQOpts{}, true)
		if err != nil {
			t.Fatal(err)
		}
		p, err := For(x.request, h200)
		if err != nil {
			t.Fatal(err)
		}
		if m.rows == 1 {
			p = fewPlan(t, x, &h200, nil)
		}
		found := false
		err = x.run(&rig{device: h200, mutate: func(text string) string {
			found = found || strings.Contains(text, m.old)
			return strings.ReplaceAll(text, m.old, m.new)
		}}, p)
		if !found || err == nil {
			t.Errorf("%s: no error without %q (found: %v)", p.Variant, m.old, found)
		}
	}
}

// TestMatMulQPtxas assembles kernels. Kernels for few rows must not spill. Kernels for many rows
// use all registers, and the assembler may spill some.
func TestMatMulQPtxas(t *testing.T) {
	of := 12
	if testing.Short() {
		of = 30
	}
	for _, blocks := range blockTypes() {
		if rand.IntN(of) > 0 { // each assembly is slow
			continue
		}
		for _, c := range []struct {
			m     int
			d     *Device
			stage int
		}{{1, &h200, 0}, {4, &h200, 0}, {1, &a100, 0}, {100, &h200, 1}} {
			p := op.Product{M: c.m, K: 4096, N: 1}
			x, err := newQuantTrial(op.F32, blocks, c.m, p.K, p.N, false, op.MatMulQOpts{}, false)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := For(x.request, *c.d)
			if err != nil {
				t.Log(blocks, c.m, err)
				continue
			}
			out := assemble(t, plan.Stages[c.stage].Kernel, c.d.Target)
			if strings.Contains(out, "C75") || c.stage == 0 && !strings.Contains(out, " 0 bytes spill stores") {
				t.Errorf("%v %v: %s", blocks, plan.Variant, out)
			}
		}
	}
}

func TestMatMulQMany(t *testing.T) {
	for _, blocks := range blockTypes() {
		for i, s := range []struct{ m, k, n int }{
			{9, 512, 53}, {17, 1280, 130}, {33, 2048, 40}, {65, 256, 129}, {130, 512, 17},
		} {
			if !sampled() || skipped(blocks) { // to save time
				continue
			}
			typ := []op.DType{op.F32, op.F16, op.BF16}[rand.IntN(3)]
			x, err := newQuantTrial(typ, blocks, s.m, s.k, s.n, i%2 == 0, op.MatMulQOpts{}, true)
			if err != nil {
				t.Fatal(err)
			}
			p, err := op.MatMulQOf([]op.Shape{x.request.In[0].Shape, x.request.In[1].Shape})
			if err != nil {
				t.Fatal(err)
			}
			spec, err := quantManyFor(p, typ, blocks, &h200)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := spec.plan(x.request, p, &h200)
			if err == nil {
				err = x.run(&rig{device: h200, schedule: emu.Schedule(rand.IntN(3))}, plan)
			}
			if err != nil {
				t.Errorf("%v %v %v %v: %v", typ, blocks, s, spec, err)
			}
		}
	}
}

// TestMatMulQSevenWarps multiplies rows of 14336, which leave too little shared memory for eight
// warps that copy two groups at a time.
func TestMatMulQSevenWarps(t *testing.T) {
	x, err := newQuantTrial(op.F32, op.Q8_0, 1, 14336, 150, false, op.MatMulQOpts{}, true)
	if err != nil {
		t.Fatal(err)
	}
	few := h200
	few.Multiprocessors = 2
	p := fewPlan(t, x, &few, nil)
	if !strings.Contains(p.Variant, "_w7_") {
		t.Error(p.Variant)
	}
	out := optest.Poisoned(4 * 150)
	if err := (&rig{device: few}).run(p, x.in, [][]byte{out}); err != nil {
		t.Fatal(err)
	}
	if err := x.check(out); err != nil {
		t.Error(err)
	}
}

// blockTypes returns the quantised types that have kernels here.
func blockTypes() []op.DType {
	return slices.DeleteFunc(op.QuantTypes(), func(d op.DType) bool { return blockDecoders[d.Block()] == nil })
}
