package ptxkernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// attentionCase is an attention to run on a GPU.
type attentionCase struct {
	t                   op.DType
	causal              bool
	b, h, kv, tq, tk, d int
}

func (c attentionCase) String() string {
	kind := "full"
	if c.causal {
		kind = "causal"
	}
	return fmt.Sprintf("%v_%dx%d_%d_%dx%dx%d_%s", c.t, c.b, c.h, c.kv, c.tq, c.tk, c.d, kind)
}

func (c attentionCase) request() *portable.Request {
	q, kv := op.Shape{c.b, c.h, c.tq, c.d}, op.Shape{c.b, c.kv, c.tk, c.d}
	return &portable.Request{Op: op.Attention, Attrs: op.AttentionOpts{Causal: c.causal}.Attrs(),
		In: []portable.Array{{Type: c.t, Shape: q}, {Type: c.t, Shape: kv}, {Type: c.t, Shape: kv}}, Out: []portable.Array{{Type: c.t, Shape: q}}}
}

func (c attentionCase) cut() *attentionCut {
	s, _ := op.AttentionOf(&op.Attrs{}, []op.Shape{{c.b, c.h, c.tq, c.d}, {c.b, c.kv, c.tk, c.d}, {c.b, c.kv, c.tk, c.d}})
	return &attentionCut{AttentionSizes: s, causal: c.causal, typ: c.t, to: plainEpilogue(c.t)}
}

// flops returns the number of operations. Causal attention counts half, as is usual.
func (c attentionCase) flops() float64 {
	n := 4 * float64(c.b*c.h) * float64(c.tq) * float64(c.tk) * float64(c.d)
	if c.causal && c.tq > 1 {
		n /= 2
	}
	return n
}

// operands returns random arrays.
func (c attentionCase) operands() [][]byte {
	var in [][]byte
	for _, x := range c.request().In {
		in = append(in, randomBytes(x))
	}
	return in
}

// checkRows compares random rows and the last rows of a result with the reference.
func (c attentionCase) checkRows(in [][]byte, out []byte, n int) error {
	decode := func(b []byte, first, n int) *op.Array {
		x := op.NewArray(op.Shape{1, n / c.d, c.d})
		for i := range x.Data {
			x.Data[i] = c.t.Float64(b, first+i)
		}
		return x
	}
	s := c.cut().AttentionSizes
	for i := range n {
		row := max(c.b*c.h*c.tq-1-i/2, 0)
		if i%2 == 0 {
			row = rand.IntN(c.b * c.h * c.tq)
		}
		seen := s.Seen(row%c.tq, c.causal)
		head := row / c.tq / (c.h / c.kv)
		q := decode(in[0], row*c.d, c.d)
		k, v := decode(in[1], head*c.tk*c.d, seen*c.d), decode(in[2], head*c.tk*c.d, seen*c.d)
		want, err := op.Attention.Reference(&op.Attrs{}, []*op.Array{q, k, v}, []op.DType{c.t, c.t, c.t})
		if err != nil {
			return err
		}
		for j, w := range want[0].Data {
			if err := op.Attention.Check(c.t.Float64(out, row*c.d+j), w, want[0].Mag[j], c.t); err != nil {
				return fmt.Errorf("row %d, element %d: %w", row, j, err)
			}
		}
	}
	return nil
}

// gpuAttention are sizes that were not tuned.
var gpuAttention = []attentionCase{
	{op.F16, false, 1, 2, 2, 128, 128, 64}, {op.F16, true, 1, 2, 2, 256, 256, 128}, {op.BF16, true, 2, 3, 3, 509, 509, 128}, {op.F16, false, 1, 8, 2, 1000, 1999, 80},
	{op.F16, true, 2, 140, 70, 333, 777, 64}, {op.BF16, false, 1, 3, 1, 2049, 4099, 96}, {op.F16, true, 1, 4, 4, 700, 301, 128}, {op.F16, true, 1, 5, 5, 600, 600, 256},
	{op.F16, true, 2, 8, 8, 1, 5003, 128}, {op.BF16, true, 3, 16, 2, 1, 3001, 64}, {op.F16, true, 1, 8, 1, 4, 2047, 128}, {op.F16, true, 1, 2, 2, 65, 9001, 128}, {op.F16, true, 1, 4, 2, 3, 5003, 200},
	{op.F32, true, 2, 40, 40, 333, 777, 64}, {op.F32, false, 1, 8, 2, 700, 1000, 128}, {op.F32, true, 1, 4, 4, 300, 300, 256}, {op.F32, true, 2, 8, 8, 1, 5003, 100},
	{op.BF16, true, 2, 40, 40, 777, 777, 256}, {op.F16, false, 2, 40, 20, 1000, 555, 192}, {op.F16, true, 4, 16, 16, 2048, 2048, 128}, {op.BF16, false, 4, 16, 16, 1111, 1999, 64},
}

func TestGPUAttention(t *testing.T) {
	g := openGPU(t)
	for _, c := range gpuAttention {
		if testing.Short() && c.b*c.h*c.tq*c.tk*c.d > 1<<29 {
			continue
		}
		p, err := For(c.request(), g.desc)
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		in, out := c.operands(), optest.Poisoned(int64(c.t.Size()*c.b*c.h*c.tq*c.d))
		if err := g.run(p, in, [][]byte{out}); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		if err := c.checkRows(in, out, 24); err != nil {
			t.Errorf("%v: %s: %v", c, p.Variant, err)
		}
	}
}

// attentionBench returns cases with 32 heads and batch 4, or batch 2 for the longest.
func attentionBench() (cases []attentionCase) {
	for _, d := range []int{128, 64} {
		for _, n := range []int{2048, 4096, 8192, 16384} {
			for _, causal := range []bool{true, false} {
				cases = append(cases, attentionCase{op.F16, causal, min(4, 32768/n), 32, 32, n, n, d})
			}
		}
	}
	return cases
}

// attentionTried are the variants to measure.
var attentionTried = []attentionWgmma{
	{Groups: 2, Keys: 128, Stages: 2, Head: 128},
	{Groups: 2, Keys: 128, Stages: 2, Turns: true, Head: 128},
	{Groups: 2, Keys: 176, Stages: 2, Turns: true, Head: 128},
	{Groups: 2, Keys: 176, Stages: 2, Head: 128},
	{Groups: 2, Keys: 160, Stages: 2, Head: 128},
	{Groups: 3, Keys: 128, Stages: 2, Head: 64},
	{Groups: 3, Keys: 128, Stages: 3, Turns: true, Head: 64},
	{Groups: 3, Keys: 112, Stages: 3, Head: 64},
	{Groups: 3, Keys: 96, Stages: 3, Turns: true, Head: 64},
}

// BenchmarkGPUAttention measures the wgmma kernels and the mma kernel.
func BenchmarkGPUAttention(b *testing.B) {
	g := openGPU(b)
	for _, c := range attentionBench() {
		var plans []*Plan
		for _, w := range attentionTried {
			if w.Head != 0 && w.Head != c.d {
				continue
			}
			w = w.with(c.cut())
			p := c.cut().planWgmma(&g.desc, w)
			p.Variant = fmt.Sprintf("g%d k%d s%d %v", w.Groups, w.Keys, w.Stages, w.Turns)
			plans = append(plans, p)
		}
		g.compareAttention(b, c, plans)
	}
}

// BenchmarkGPUAttentionChosen measures the kernels that the planner chooses.
func BenchmarkGPUAttentionChosen(b *testing.B) {
	g := openGPU(b)
	for _, c := range append(attentionBench(), attentionCase{op.F32, true, 4, 32, 32, 2048, 2048, 64}, attentionCase{op.F32, false, 4, 32, 32, 2048, 2048, 128}) {
		p, err := For(c.request(), g.desc)
		if err != nil {
			b.Fatal(err)
		}
		g.compareAttention(b, c, []*Plan{p})
	}
}

// BenchmarkGPUAttentionDecode measures one query and a few queries on long caches. The lower bound
// is the time to read the keys and values.
func BenchmarkGPUAttentionDecode(b *testing.B) {
	g := openGPU(b)
	for _, c := range []attentionCase{
		{op.F16, true, 16, 32, 32, 1, 8192, 128}, {op.F16, true, 16, 32, 8, 1, 32768, 128}, {op.F16, true, 1, 32, 8, 1, 131072, 128},
		{op.F16, true, 64, 32, 32, 1, 4096, 64}, {op.F16, true, 8, 32, 8, 4, 32768, 128},
	} {
		p, err := For(c.request(), g.desc)
		if err != nil {
			b.Fatal(err)
		}
		g.compareAttention(b, c, []*Plan{p})
	}
}

// compareAttention checks and measures plans for one case with the same operands.
func (g *gpu) compareAttention(b *testing.B, c attentionCase, plans []*Plan) {
	in := c.operands()
	n := int64(c.t.Size() * c.b * c.h * c.tq * c.d)
	arrays, err := g.arrays(&Plan{}, in, []int64{n})
	if err != nil {
		b.Fatal(err)
	}
	defer arrays.free()
	out := make([]byte, n)
	for _, p := range plans {
		b.Run(fmt.Sprintf("%v/%s", c, p.Variant), func(b *testing.B) {
			more, err := g.arrays(p, nil, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer more.free()
			arrays.arrays[portable.ScratchRef] = more.arrays[portable.ScratchRef]
			f, err := g.launches(p, arrays)
			if err != nil {
				b.Fatal(err)
			}
			for _, s := range p.Stages {
				if i := g.code[s.Kernel].fn.Info(); i.Spilled > 0 {
					b.Errorf("%s: %d registers and %d bytes spilled", s.Kernel.Name, i.Registers, i.Spilled)
				}
			}
			if err := g.stream.Set32(arrays.arrays[portable.OutputRef][0], optest.Poison, n/4); err != nil {
				b.Fatal(err)
			}
			if err := f(); err != nil {
				b.Fatal(err)
			}
			if err := g.stream.Download(out, arrays.arrays[portable.OutputRef][0]); err != nil {
				b.Fatal(err)
			}
			if err := c.checkRows(in, out, 8); err != nil {
				b.Fatalf("%s: %v", p.Variant, err)
			}
			repeat := max(1, int(math.Round(2e12/c.flops())))
			took, err := g.timed(f, min(repeat, 20))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(took.Seconds()*1e6, "us")
			if c.tq < 16 {
				b.ReportMetric(float64(2*c.t.Size()*c.b*c.kv*c.tk*c.d)/took.Seconds()/1e12, "TB/s")
				return
			}
			b.ReportMetric(c.flops()/took.Seconds()/1e12, "TFLOP/s")
		})
	}
}
