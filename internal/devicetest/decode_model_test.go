package devicetest

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// model is a small decoder of random weights: each layer has attention over a cache and a gated product.
type model struct {
	dev                           *device.Device
	layers                        []layer
	heads, kv, dim, width, tokens int // kv heads of keys, and of values
	keys, values                  []*device.Buffer
}

type layer struct{ qkv, out, up, down *device.Buffer }

// newModel returns a model whose caches have room for the given number of tokens.
func newModel(t *testing.T, dev *device.Device, g *generator, layers, tokens int) *model {
	m := &model{dev: dev, heads: 4, kv: 2, dim: 8, tokens: tokens}
	m.width = m.heads * m.dim
	weights := func(rows, cols int) *device.Buffer {
		w := make([]float32, rows*cols)
		for i := range w {
			w[i] = float32(g.NormFloat64() / math.Sqrt(float64(rows)))
		}
		b, err := device.Upload(t.Context(), dev, w, rows, cols)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return b
	}
	for range layers {
		m.layers = append(m.layers, layer{weights(m.width, (m.heads+2*m.kv)*m.dim), weights(m.width, m.width), weights(m.width, 2*m.width), weights(m.width, m.width)})
	}
	return m
}

// clear sets the caches of the model to zeros.
func (m *model) clear(t *testing.T) {
	m.keys, m.values = nil, nil
	for range m.layers {
		for _, to := range []*[]*device.Buffer{&m.keys, &m.values} {
			b, err := device.Upload(t.Context(), m.dev, make([]float32, m.kv*m.tokens*m.dim), m.kv, m.tokens, m.dim)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
			*to = append(*to, b)
		}
	}
}

// heads returns the heads of packed projections: [1, n·dim] as [n, 1, dim].
func (m *model) split(b *batch.Batch, x batch.Value) (q, k, v batch.Value) {
	b2 := b.Reshape(x, 1, m.heads+2*m.kv, m.dim)
	parts := b.Split(b.Permute(b2, 1, 0, 2), 0, m.heads, m.kv, m.kv)
	return parts[0], parts[1], parts[2]
}

// step records the computation of one token. Its place is an operand, and so is length, which is one more.
func (m *model) step(b *batch.Batch, x, at, length batch.Value) batch.Value {
	for i, l := range m.layers {
		q, k, v := m.split(b, b.MatMul(b.RMSNorm(x, batch.None), b.Use(l.qkv), batch.None))
		b.StoreAt(m.keys[i], 1, at, k)
		b.StoreAt(m.values[i], 1, at, v)
		y := b.Attention(q, b.Use(m.keys[i]), b.Use(m.values[i]), batch.AttentionInputs{Lengths: length}, op.AttentionOpts{Causal: true})
		x = m.rest(b, l, x, y)
	}
	return x
}

// fixed records the computation of one token at a constant place, which needs a new plan for each token.
func (m *model) fixed(b *batch.Batch, x batch.Value, at int) batch.Value {
	for i, l := range m.layers {
		q, k, v := m.split(b, b.MatMul(b.RMSNorm(x, batch.None), b.Use(l.qkv), batch.None))
		past := func(buf *device.Buffer, v batch.Value) batch.Value {
			w := b.Concat(1, b.Slice(b.Use(buf), 1, 0, at, 1), v)
			for h := range m.kv {
				b.Store(buf, (h*m.tokens+at)*m.dim, b.Slice(v, 0, h, h+1, 1))
			}
			return w
		}
		y := b.Attention(q, past(m.keys[i], k), past(m.values[i], v), batch.AttentionInputs{}, op.AttentionOpts{Causal: true})
		x = m.rest(b, l, x, y)
	}
	return x
}

// rest records the part of a layer after attention.
func (m *model) rest(b *batch.Batch, l layer, x, y batch.Value) batch.Value {
	merged := b.Reshape(b.Permute(y, 1, 0, 2), 1, m.width)
	x = b.Add(x, b.MatMul(merged, b.Use(l.out), batch.None))
	up := b.Split(b.MatMul(b.RMSNorm(x, batch.None), b.Use(l.up), batch.None), 1, m.width, m.width)
	return b.Add(x, b.MatMul(b.Mul(b.Silu(up[0]), up[1]), b.Use(l.down), batch.None))
}

// decode decodes tokens with one plan, and again with a plan for each token. Both must give the same numbers.
// The one plan must be compiled only once and have no copies.
func decode(t *testing.T, dev *device.Device, tokens, every int) {
	g := newGenerator(testutil.Seed(t))
	m := newModel(t, dev, g, 4, tokens)
	inputs, outputs := make([][]float32, tokens), make([][]float32, tokens)
	m.clear(t)
	b := batch.New(dev)
	x := b.Upload(make([]float32, m.width), 1, m.width)
	at, length := batch.Upload(b, []int32{0}), batch.Upload(b, []int32{1})
	y := m.step(b, x, at, length)
	before := dev.Stats().Compiled
	plan, err := b.Compile(t.Context(), y)
	if err != nil {
		t.Fatal(err)
	}
	if n := copiesOf(plan); n > 0 {
		t.Errorf("%d copies:\n%v", n, plan)
	}
	for i := range tokens {
		inputs[i], outputs[i] = make([]float32, m.width), make([]float32, m.width)
		for k := range inputs[i] {
			inputs[i][k] = float32(g.NormFloat64())
		}
		if err := plan.Run(t.Context(), batch.BindInput(x, inputs[i]), batch.BindInput(at, []int32{int32(i)}), batch.BindInput(length, []int32{int32(i + 1)}), batch.BindOutput(y, outputs[i])); err != nil {
			t.Fatal(err)
		}
	}
	if n := dev.Stats().Compiled - before; n != 1 {
		t.Errorf("%d compilations for %d tokens, want 1", n, tokens)
	}
	m.clear(t)
	for i := range tokens {
		b := batch.New(dev)
		y := m.fixed(b, b.Upload(inputs[i], 1, m.width), i)
		got := make([]float32, m.width)
		batch.ReadInto(b, y, got)
		if err := b.Execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i%every > 0 && i != tokens-1 {
			continue
		}
		for k, v := range got {
			if d := math.Abs(float64(v - outputs[i][k])); !(d <= 1e-4*(1+math.Abs(float64(v)))) {
				t.Fatalf("token %d: element %d is %v with the plan for all, %v with one of its own", i, k, outputs[i][k], v)
			}
		}
	}
}

// copiesOf counts the steps of a plan that only move elements.
func copiesOf(plan fmt.Stringer) int {
	n := 0
	for _, line := range strings.Split(plan.String(), "\n") {
		if f := strings.Fields(line); len(f) > 2 && (f[1] == "copy" || f[1] == "transpose") {
			n++
		}
	}
	return n
}
