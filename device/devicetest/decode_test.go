package devicetest

import (
	"math"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// TestDecode decodes 300 tokens with one plan.
func TestDecode(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	plan := decode(t, dev, 300, 1)
	t.Logf("%d copies in 4 layers", copiesOf(plan))
}

// TestTransformerCopies counts the steps that move elements alone in a transformer
// layer, from packed queries, keys and values to merged heads: none on the CPU.
func TestTransformerCopies(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const tokens, heads, kv, dim = 70, 4, 2, 16
	g := newGenerator(freshSeed(t))
	x := g.tensor(op.F32, op.Shape{2, tokens, heads * dim}, g.tame)
	w := g.tensor(op.F32, op.Shape{heads * dim, (heads + 2*kv) * dim}, g.tame)
	layer := func(copied bool) (out []float32, copies int) {
		b := batch.New(dev)
		whole := func(v batch.Value) batch.Value {
			if copied { // by way of the host, each operand in order
				y := b.Relu(v)
				return b.Sub(y, b.Relu(b.Neg(v)))
			}
			return v
		}
		packed := b.Reshape(b.MatMul(arrayOf(x).upload(b, x.Shape), arrayOf(w).upload(b, w.Shape)), 2, tokens, heads+2*kv, dim)
		parts := b.Split(b.Permute(packed, 0, 2, 1, 3), 1, heads, kv, kv)
		y := b.Attention(whole(parts[0]), whole(parts[1]), whole(parts[2]), op.AttentionOpts{Causal: true})
		merged := b.Reshape(b.Permute(y, 0, 2, 1, 3), 2*tokens, heads*dim)
		y = b.MatMul(whole(merged), arrayOf(w).upload(b, w.Shape))
		n, _ := y.Shape().Size()
		out = make([]float32, n)
		plan, err := b.Compile(t.Context(), y)
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Run(t.Context(), batch.Get(y, out)); err != nil {
			t.Fatal(err)
		}
		if !copied {
			t.Log(plan)
		}
		return out, copiesOf(plan)
	}
	got, copies := layer(false)
	want, _ := layer(true)
	if copies > 0 {
		t.Errorf("%d copies", copies)
	}
	for i, v := range want {
		if d := math.Abs(float64(v - got[i])); !(d <= 1e-4*(1+math.Abs(float64(v)))) {
			t.Fatalf("element %d is %v where operands lie, %v with copies", i, got[i], v)
		}
	}
}
