package devicetest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// rounding checks that each value of a 16-bit type is rounded to its type, whether it is stored, read by another
// operation of the same kernel, or both.
func rounding(t *testing.T, open Open) {
	t.Run("casts", func(t *testing.T) { roundedCasts(t, start(t, open)) })
	t.Run("kept", func(t *testing.T) { roundedValues(t, start(t, open)) })
}

// roundings has numbers and their roundings to 16-bit types.
var roundings = map[op.DType][][2]float64{
	op.F16: {
		{1, 1}, {2049, 2048}, {2051, 2052}, {4098, 4096}, {65504, 65504}, {65519, 65504}, {65520, math.Inf(1)}, {100001, math.Inf(1)},
		{3e9, math.Inf(1)}, {math.MaxFloat32, math.Inf(1)}, {math.Inf(1), math.Inf(1)}, {math.NaN(), math.NaN()}, {0, 0}, {math.Copysign(0, -1), math.Copysign(0, -1)},
		{float64(float32(0.1)), 0.0999755859375}, {0x1p-14, 0x1p-14}, {0x1.ffcp-15, 0x1.ff8p-15 + 0x1p-24}, {0x1.ffep-15, 0x1p-14},
		{0x1.8p-24, 0x1p-23}, {0x1.4p-24, 0x1p-24}, {0x1p-25, 0}, {0x1.000002p-25, 0x1p-24}, {0x1p-26, 0}, {0x1.802p-13, 0x1.8p-13}, {0x1.806p-13, 0x1.808p-13},
	},
	op.BF16: {
		{1, 1}, {257, 256}, {259, 260}, {65520, 65536}, {100001, 99840}, {3e9, 179 << 24}, {math.MaxFloat32, math.Inf(1)}, {0x1.fefffep127, 0x1.fep127},
		{0x1.ffp127, math.Inf(1)}, {math.Inf(1), math.Inf(1)}, {math.NaN(), math.NaN()}, {0, 0}, {math.Copysign(0, -1), math.Copysign(0, -1)},
		{float64(float32(0.1)), 0.10009765625}, {0x1.01p-14, 0x1p-14}, {0x1.03p-14, 0x1.04p-14}, {0x1.010002p-14, 0x1.02p-14}, {0x1p-126, 0x1p-126},
	},
}

// middle has the operations between two casts.
type middle struct {
	name   string
	record func(b *batch.Batch, v batch.Value, half []batch.Value) batch.Value
	want   func(v float64, d op.DType) float64
}

var middles = []middle{
	{"nothing", func(_ *batch.Batch, v batch.Value, _ []batch.Value) batch.Value { return v }, func(v float64, _ op.DType) float64 { return v }},
	{"neg", func(b *batch.Batch, v batch.Value, _ []batch.Value) batch.Value { return b.Neg(v) }, func(v float64, _ op.DType) float64 { return -v }},
	{"minimum", func(b *batch.Batch, v batch.Value, half []batch.Value) batch.Value { return b.Minimum(v, half[0]) },
		func(v float64, d op.DType) float64 { return min(v, d.Round(3000)) }},
	{"mul", func(b *batch.Batch, v batch.Value, half []batch.Value) batch.Value { return b.Mul(v, half[1]) },
		func(v float64, d op.DType) float64 { return d.Round(v * 1.125) }},
	{"mul add", func(b *batch.Batch, v batch.Value, half []batch.Value) batch.Value {
		return b.Add(b.Mul(v, half[1]), half[1])
	},
		func(v float64, d op.DType) float64 { return d.Round(d.Round(v*1.125) + 1.125) }},
	{"other type", func(b *batch.Batch, v batch.Value, _ []batch.Value) batch.Value {
		return b.Cast(b.Cast(v, op.BF16), op.F16)
	},
		func(v float64, d op.DType) float64 { return op.F16.Round(op.BF16.Round(v)) }},
}

// roundedCasts casts numbers of 32 bits to 16 bits and back, with operations between the casts.
func roundedCasts(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	for half, list := range roundings {
		for _, from := range []op.DType{op.F32, op.I32, op.U32} {
			var x, want []float64
			for _, r := range list {
				switch {
				case from == op.F32:
					x, want = append(x, r[0], -r[0]), append(want, r[1], -r[1])
				case r[0] == math.Trunc(r[0]) && r[0] < 1<<31 && (r[0] != 0 || !math.Signbit(r[0])):
					x, want = append(x, r[0]), append(want, r[1])
				}
			}
			for _, m := range middles {
				for _, kept := range []bool{false, true} {
					if err := m.check(ctx, dev, from, half, x, want, kept); err != nil {
						t.Errorf("%v to %v, %s, kept %v: %v", from, half, m.name, kept, err)
					}
				}
			}
		}
	}
}

func (m *middle) check(ctx context.Context, dev *device.Device, from, half op.DType, x, want []float64, kept bool) error {
	n := len(x)
	b := batch.New(dev)
	in := arrayOf(Tensor{Type: from, Shape: op.Shape{n}, Data: x})
	c := b.Cast(in.upload(b, op.Shape{n}), half)
	limits := []batch.Value{b.Cast(b.Upload([]float32{3000}), half), b.Cast(b.Upload([]float32{1.125}), half)}
	y := newArray(op.F32, n)
	y.get(b, b.Cast(m.record(b, c, limits), op.F32))
	stored := newArray(half, n)
	if kept {
		stored.get(b, c)
	}
	if err := b.Execute(ctx); err != nil {
		return err
	}
	same := func(got, want float64) bool {
		return got != got && want != want || got == want && (got != 0 || m.name != "nothing" || math.Signbit(got) == math.Signbit(want))
	}
	for i, w := range want {
		if got := half.Float64(stored.data, i); kept && !same(got, w) {
			return fmt.Errorf("%v is stored as %v, want %v", x[i], got, w)
		}
		if got := op.F32.Float64(y.data, i); !same(got, m.want(w, half)) {
			return fmt.Errorf("%v becomes %v, want %v", x[i], got, m.want(w, half))
		}
	}
	return y.intact()
}

// doubled is a single operation, whose intermediate values are not rounded.
var doubled = op.Unary("doubled", func(x op.Expr) op.Expr { return x.Square().Div(x).Mul(op.Const(2)) })

// answer and third are constant functions.
var (
	answer = op.Unary("answer", func(op.Expr) op.Expr { return op.Const(0.42) })
	third  = op.Unary("third", func(op.Expr) op.Expr { return op.Const(1).Div(op.Const(3)) })
)

// roundedValues checks that operations and the host read the same values of 16-bit types.
func roundedValues(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	data := []float32{300, 255, 1.0009765625, 3.5, 0.0001, 7, 65504, 11}
	for _, half := range []op.DType{op.F16, op.BF16} {
		for name, record := range map[string]func(b *batch.Batch, x batch.Value) batch.Value{
			"square":   func(b *batch.Batch, x batch.Value) batch.Value { return b.Square(x) },
			"exp":      func(b *batch.Batch, x batch.Value) batch.Value { return b.Exp(x) },
			"sigmoid":  func(b *batch.Batch, x batch.Value) batch.Value { return b.Sigmoid(x) },
			"doubled":  func(b *batch.Batch, x batch.Value) batch.Value { return b.Map(doubled, x) },
			"constant": func(b *batch.Batch, x batch.Value) batch.Value { return b.Map(answer, x) },
			"folded":   func(b *batch.Batch, x batch.Value) batch.Value { return b.Map(third, x) },
			"of sums": func(b *batch.Batch, x batch.Value) batch.Value {
				return b.Map(answer, b.Sum(b.Reshape(x, 2, 4), op.Axes(-1)))
			},
			"of a product": func(b *batch.Batch, x batch.Value) batch.Value {
				return b.Map(answer, b.MatMul(b.Reshape(x, 8, 1), b.Reshape(x, 1, 8), batch.None))
			},
			"of a large product": func(b *batch.Batch, x batch.Value) batch.Value {
				w := b.Cast(b.Upload(make([]float32, 128*64), 128, 64), half)
				return b.Map(answer, b.MatMul(w, w, batch.None, op.MatMulOpts{TransB: true}))
			},
			"of a softmax": func(b *batch.Batch, x batch.Value) batch.Value { return b.Map(answer, b.Softmax(b.Reshape(x, 2, 4))) },
			"greater": func(b *batch.Batch, x batch.Value) batch.Value {
				return b.Where(b.Greater(b.Map(answer, x), b.Map(third, x)), b.Map(third, x), x)
			},
			"matmul": func(b *batch.Batch, x batch.Value) batch.Value {
				return b.MatMul(b.Reshape(x, 8, 1), b.Reshape(x, 1, 8), batch.None)
			},
			"activated": func(b *batch.Batch, x batch.Value) batch.Value {
				return b.MatMul(b.Reshape(x, 8, 1), b.Reshape(x, 1, 8), batch.None, op.MatMulOpts{Act: op.Relu})
			},
			"softmax": func(b *batch.Batch, x batch.Value) batch.Value { return b.Softmax(b.Reshape(x, 2, 4)) },
			"sum":     func(b *batch.Batch, x batch.Value) batch.Value { return b.Sum(b.Reshape(x, 2, 4), op.Axes(-1)) },
		} {
			b := batch.New(dev)
			q := record(b, b.Cast(b.Upload(data), half))
			n, err := q.Shape().Size()
			if err != nil {
				t.Fatal(err)
			}
			stored, read, alone := newArray(half, n), newArray(op.F32, n), newArray(op.F32, n)
			stored.get(b, q)
			read.get(b, b.Cast(q, op.F32))
			if err := b.Execute(ctx); err != nil {
				t.Errorf("%s of %v: %v", name, half, err)
				continue
			}
			b = batch.New(dev)
			alone.get(b, b.Cast(record(b, b.Cast(b.Upload(data), half)), op.F32))
			if err := b.Execute(ctx); err != nil {
				t.Errorf("%s of %v: %v", name, half, err)
				continue
			}
			for i := range n {
				s, r, a := half.Float64(stored.data, i), op.F32.Float64(read.data, i), op.F32.Float64(alone.data, i)
				if s != r && s == s || a != half.Round(a) && a == a {
					t.Errorf("%s of %v, element %d: stored %v, read %v; not stored %v", name, half, i, s, r, a)
				}
			}
		}
	}
}
