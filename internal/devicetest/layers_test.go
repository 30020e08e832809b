package devicetest

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// attentionLayer is a layer of a transformer, from packed queries, keys and values to
// merged heads.
type attentionLayer struct {
	typ                            op.DType
	batch, tokens, heads, kv, head int
	o                              op.AttentionOpts
	mask, lengths, rope            bool
}

var attentionLayers = []attentionLayer{
	{typ: op.F32, batch: 2, tokens: 70, heads: 4, kv: 2, head: 16, o: op.AttentionOpts{Causal: true}},
	{typ: op.F32, batch: 1, tokens: 70, heads: 2, kv: 2, head: 64},
	{typ: op.F32, batch: 2, tokens: 9, heads: 4, kv: 1, head: 5, o: op.AttentionOpts{Causal: true}},
	{typ: op.F32, batch: 1, tokens: 3, heads: 4, kv: 4, head: 8},
	{typ: op.F16, batch: 2, tokens: 19, heads: 4, kv: 2, head: 24, o: op.AttentionOpts{Causal: true}},
	{typ: op.BF16, batch: 1, tokens: 66, heads: 2, kv: 1, head: 64, o: op.AttentionOpts{Causal: true}},
	{typ: op.F16, batch: 2, tokens: 130, heads: 2, kv: 1, head: 64, o: op.AttentionOpts{Causal: true}},
	{typ: op.F32, batch: 2, tokens: 17, heads: 4, kv: 2, head: 12, o: op.AttentionOpts{Window: 5}, mask: true},
	{typ: op.F32, batch: 3, tokens: 20, heads: 2, kv: 1, head: 32, lengths: true},
	{typ: op.F32, batch: 1, tokens: 33, heads: 4, kv: 2, head: 16, o: op.AttentionOpts{Causal: true}, rope: true},
	{typ: op.F16, batch: 2, tokens: 10, heads: 3, kv: 3, head: 8, o: op.AttentionOpts{Causal: true}, rope: true},
}

func (l *attentionLayer) String() string {
	return fmt.Sprintf("%v/%dx%d/%dx%d/%d/%+v", l.typ, l.batch, l.tokens, l.heads, l.kv, l.head, l.o)
}

// inputs returns tokens, the weights before and after attention, and the operands that hide keys.
func (l *attentionLayer) inputs(g *generator) []Tensor {
	width := l.heads * l.head
	small := func(d op.DType) float64 { return g.tame(d) / float64(width) }
	in := []Tensor{g.tensor(l.typ, op.Shape{l.batch, l.tokens, width}, g.tame),
		g.tensor(l.typ, op.Shape{width, (l.heads + 2*l.kv) * l.head}, small),
		g.tensor(l.typ, op.Shape{width, width}, small)}
	if l.lengths {
		in = append(in, g.tensor(op.I32, op.Shape{l.batch}, func(op.DType) float64 { return float64(1 + g.IntN(l.tokens)) }))
	}
	if l.mask {
		in = append(in, g.tensor(op.Bool, op.Shape{l.tokens, l.tokens}, func(op.DType) float64 { return float64(g.IntN(2)) }))
	}
	return in
}

// run runs the layer. With copied, operations get contiguous copies of their operands.
func (l *attentionLayer) run(t *testing.T, dev *device.Device, in []Tensor, copied bool) (out []float32, plan *batch.Plan) {
	t.Helper()
	b := batch.New(dev)
	whole := func(v batch.Value) batch.Value {
		if copied {
			y := b.Relu(v)
			return b.Sub(y, b.Relu(b.Neg(v)))
		}
		return v
	}
	var x []batch.Value
	for _, v := range in {
		x = append(x, arrayOf(v).upload(b, v.Shape))
	}
	packed := b.Reshape(b.MatMul(x[0], x[1], batch.None), l.batch, l.tokens, l.heads+2*l.kv, l.head)
	parts := b.Split(packed, 2, l.heads, l.kv, l.kv)
	for i, x := range parts[:2] {
		if l.rope {
			s := x.Shape()
			x = b.Rope(whole(b.Reshape(x, s[0]*s[1], s[2], s[3])), batch.RopeInputs{})
			parts[i] = b.Reshape(x, s...)
		}
	}
	for i, x := range parts {
		parts[i] = whole(b.Permute(x, 0, 2, 1, 3))
	}
	q, k, v := parts[0], parts[1], parts[2]
	var with batch.AttentionInputs
	switch {
	case l.mask:
		with.Mask = x[3]
	case l.lengths:
		with.Lengths = x[3]
	}
	y := b.Attention(q, k, v, with, l.o)
	merged := b.Reshape(b.Permute(y, 0, 2, 1, 3), l.batch*l.tokens, l.heads*l.head)
	y = b.Cast(b.MatMul(whole(merged), x[2], batch.None), op.F32)
	plan, err := b.Compile(t.Context(), y)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plan.Close() })
	n, _ := y.Shape().Size()
	out = make([]float32, n)
	if err := plan.Run(t.Context(), batch.BindOutput(y, out)); err != nil {
		t.Fatal(err)
	}
	return out, plan
}

// layersOn checks that layers of transformers have no steps that only move elements, and that the results equal
// those for contiguous copies of the operands. Software GPUs take long to compile the kernels, so in short runs
// GPUs compute only some of the layers.
func layersOn(t *testing.T, open Open) {
	dev := start(t, open)
	g := newGenerator(testutil.Seed(t))
	layers := attentionLayers
	if dev.Info().Kind != device.CPU {
		layers = someOf(g, layers, 6)
	}
	for _, l := range layers {
		t.Run(l.String(), func(t *testing.T) {
			in := l.inputs(g)
			got, plan := l.run(t, dev, in, false)
			if n := copiesOf(plan); n > 0 {
				t.Errorf("%d copies:\n%v", n, plan)
			}
			want, _ := l.run(t, dev, in, true)
			near := map[op.DType]float64{op.F32: 1e-4, op.F16: 2e-3, op.BF16: 2e-2}[l.typ]
			for i, y := range want {
				if d := math.Abs(float64(got[i] - y)); !(d <= near*(1+math.Abs(float64(y)))) {
					t.Fatalf("element %d is %v where operands lie, %v with copies", i, got[i], y)
				}
			}
		})
	}
}

// laidViews has views that concat, update and rope read without a copy, and some that they copy first.
var laidViews = map[string]func(b *batch.Batch, x batch.Value) batch.Value{
	"heads":       func(b *batch.Batch, x batch.Value) batch.Value { return b.Permute(x, 1, 0, 2) },
	"part":        func(b *batch.Batch, x batch.Value) batch.Value { return b.Slice(x, 1, 1, 3, 1) },
	"columns":     func(b *batch.Batch, x batch.Value) batch.Value { return b.Slice(x, 2, 4, 8, 1) },
	"odd columns": func(b *batch.Batch, x batch.Value) batch.Value { return b.Slice(x, 2, 1, 7, 1) },
	"flipped":     func(b *batch.Batch, x batch.Value) batch.Value { return b.Flip(x, 0, 2) },
	"padded":      func(b *batch.Batch, x batch.Value) batch.Value { return b.Pad(x, 2, 4, 8, 1) },
	"odd padding": func(b *batch.Batch, x batch.Value) batch.Value { return b.Pad(b.Pad(x, 2, 1, 2, 1), 0, 1, 0, 1) },
	"repeated":    func(b *batch.Batch, x batch.Value) batch.Value { return b.Expand(b.Slice(x, 1, 2, 3, 1), 3, 5, 8) },
	"transposed":  func(b *batch.Batch, x batch.Value) batch.Value { return b.Transpose(x) },
}

// placesOn compares the results of concat, update and rope on views with those on contiguous
// copies of the same elements, bit for bit.
func placesOn(t *testing.T, open Open) {
	dev := start(t, open)
	g := newGenerator(testutil.Seed(t))
	for _, d := range []op.DType{op.F32, op.F16, op.BF16, op.I32, op.Bool} {
		x := g.tensor(d, op.Shape{3, 4, 8}, func(d op.DType) float64 {
			if d == op.Bool {
				return float64(g.IntN(2))
			}
			return g.tame(d)
		})
		for _, name := range slices.Sorted(maps.Keys(laidViews)) {
			view := laidViews[name]
			run := func(f func(b *batch.Batch) batch.Value) (*array, op.Shape) {
				b := batch.New(dev)
				y := f(b)
				n, _ := y.Shape().Size()
				out := newArray(d, n)
				out.get(b, y)
				if err := b.Execute(t.Context()); err != nil {
					t.Fatalf("%v, %s: %v", d, name, err)
				}
				return out, y.Shape()
			}
			there := func(b *batch.Batch) batch.Value { return view(b, arrayOf(x).upload(b, x.Shape)) }
			seen, s := run(there)
			inOrder := func(b *batch.Batch) batch.Value { return seen.upload(b, s) }
			axis := g.IntN(3)
			for use, f := range map[string]func(b *batch.Batch, y batch.Value) batch.Value{
				"concat": func(b *batch.Batch, y batch.Value) batch.Value { return b.Concat(axis, y, y) },
				"update": func(b *batch.Batch, y batch.Value) batch.Value {
					return b.Update(b.Concat(1, y, y), 1, batch.Upload(b, []int32{1}), y)
				},
				"rope": func(b *batch.Batch, y batch.Value) batch.Value {
					return b.Rope(y, batch.RopeInputs{}, op.RopeOpts{Interleaved: len(name)%2 == 0})
				},
			} {
				if use == "rope" && (!d.Float() || s[2]%2 > 0) {
					continue
				}
				got, _ := run(func(b *batch.Batch) batch.Value { return f(b, there(b)) })
				want, _ := run(func(b *batch.Batch) batch.Value { return f(b, inOrder(b)) })
				if !bytes.Equal(got.data, want.data) {
					t.Errorf("%v, %s of %s: differs from that of the elements in order", d, use, name)
				}
			}
		}
	}
}
