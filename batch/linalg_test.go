package batch_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

func ExampleBatch_Solve() {
	dev, _ := device.Open(ctx)
	defer dev.Close()
	b := batch.New(dev)
	x := b.Solve(b.Upload([]float32{2, 1, 1, 3}, 2, 2), b.Upload([]float32{3, 5}))
	_ = b.Execute(ctx)
	y, _ := batch.Read[float32](ctx, b, x)
	fmt.Printf("%.3f\n", y)
	// Output: [0.800 1.400]
}

func ExampleBatch_Lstsq() {
	dev, _ := device.Open(ctx)
	defer dev.Close()
	b := batch.New(dev)
	// The line y = c + d·x through (0, 1), (1, 3) and (2, 5).
	line := b.Lstsq(b.Upload([]float32{1, 0, 1, 1, 1, 2}, 3, 2), b.Upload([]float32{1, 3, 5}))
	_ = b.Execute(ctx)
	y, _ := batch.Read[float32](ctx, b, line)
	fmt.Printf("%.3f\n", y)
	// Output: [1.000 2.000]
}

func ExampleBatch_Eigh() {
	dev, _ := device.Open(ctx)
	defer dev.Close()
	b := batch.New(dev)
	w, _ := b.Eigh(b.Upload([]float32{2, 1, 1, 2}, 2, 2))
	_ = b.Execute(ctx)
	y, _ := batch.Read[float32](ctx, b, w)
	fmt.Printf("%.3f\n", y)
	// Output: [1.000 3.000]
}

// TestLinearAlgebra compares methods that are composed of factorisations with values
// computed by hand.
func TestLinearAlgebra(t *testing.T) {
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	up := func(b *batch.Batch, shape []int, x ...float32) batch.Value { return b.Upload(x, shape...) }
	two, three := []int{2, 2}, []int{3, 3}
	for name, c := range map[string]struct {
		record func(b *batch.Batch) batch.Value
		shape  op.Shape
		want   []float32
	}{
		"inv":             {func(b *batch.Batch) batch.Value { return b.Inv(up(b, two, 1, 2, 3, 4)) }, op.Shape{2, 2}, []float32{-2, 1, 1.5, -0.5}},
		"inv of singular": {func(b *batch.Batch) batch.Value { return b.Inv(up(b, two, 1, 2, 2, 4)) }, op.Shape{2, 2}, []float32{nan, nan, nan, nan}},
		"inv of many":     {func(b *batch.Batch) batch.Value { return b.Inv(up(b, []int{2, 1, 1}, 2, 4)) }, op.Shape{2, 1, 1}, []float32{0.5, 0.25}},
		"det":             {func(b *batch.Batch) batch.Value { return b.Det(up(b, three, 0, 2, 0, 3, 0, 0, 0, 0, 4)) }, op.Shape{}, []float32{-24}},
		"det of singular": {func(b *batch.Batch) batch.Value { return b.Det(up(b, two, 1, 2, 2, 4)) }, op.Shape{}, []float32{0}},
		"det of nothing":  {func(b *batch.Batch) batch.Value { return b.Det(up(b, []int{2, 0, 0})) }, op.Shape{2}, []float32{1, 1}},
		"det of many":     {func(b *batch.Batch) batch.Value { return b.Det(up(b, []int{2, 2, 2}, 1, 2, 3, 4, 0, 1, 1, 0)) }, op.Shape{2}, []float32{-2, -1}},
		"sign":            {func(b *batch.Batch) batch.Value { s, _ := b.SlogDet(up(b, two, 0, 2, 3, 0)); return s }, op.Shape{}, []float32{-1}},
		"log":             {func(b *batch.Batch) batch.Value { _, l := b.SlogDet(up(b, two, 0, 2, 3, 0)); return l }, op.Shape{}, []float32{float32(math.Log(6))}},
		"log of singular": {func(b *batch.Batch) batch.Value { _, l := b.SlogDet(up(b, two, 0, 0, 3, 0)); return l }, op.Shape{}, []float32{-inf}},
		"vector":          {func(b *batch.Batch) batch.Value { return b.Solve(up(b, two, 2, 0, 0, 4), up(b, []int{2}, 2, 2)) }, op.Shape{2}, []float32{1, 0.5}},
		"broadcast": {func(b *batch.Batch) batch.Value {
			return b.Solve(up(b, two, 2, 0, 0, 4), up(b, []int{2, 2, 1}, 2, 2, 4, 4))
		}, op.Shape{2, 2, 1}, []float32{1, 0.5, 2, 1}},
		"broadcast of a": {func(b *batch.Batch) batch.Value {
			return b.Solve(up(b, []int{2, 1, 1}, 2, 4), up(b, []int{1, 2}, 4, 8))
		}, op.Shape{2, 1, 2}, []float32{2, 4, 1, 2}},
		"least squares": {func(b *batch.Batch) batch.Value {
			return b.Lstsq(up(b, []int{3, 1}, 1, 1, 1), up(b, []int{3, 1}, 1, 2, 6))
		}, op.Shape{1, 1}, []float32{3}},
		"least solution": {func(b *batch.Batch) batch.Value { return b.Lstsq(up(b, []int{1, 2}, 3, 4), up(b, []int{1}, 25)) }, op.Shape{2}, []float32{3, 4}},
		"pinv":           {func(b *batch.Batch) batch.Value { return b.Pinv(up(b, []int{3, 2}, 2, 0, 0, 0, 0, 0)) }, op.Shape{2, 3}, []float32{0.5, 0, 0, 0, 0, 0}},
		"rank": {func(b *batch.Batch) batch.Value {
			return b.Cast(b.MatrixRank(up(b, []int{2, 2, 2}, 1, 2, 2, 4, 1, 2, 3, 4)), op.F32)
		}, op.Shape{2}, []float32{1, 2}},
		"rank of nothing": {func(b *batch.Batch) batch.Value { return b.Cast(b.MatrixRank(up(b, []int{0, 2})), op.F32) }, op.Shape{}, []float32{0}},
		"fifth power":     {func(b *batch.Batch) batch.Value { return b.MatrixPower(up(b, two, 1, 1, 0, 1), 5) }, op.Shape{2, 2}, []float32{1, 5, 0, 1}},
		"power of 0":      {func(b *batch.Batch) batch.Value { return b.MatrixPower(up(b, []int{2, 1, 1}, 7, 8), 0) }, op.Shape{2, 1, 1}, []float32{1, 1}},
		"power below 0":   {func(b *batch.Batch) batch.Value { return b.MatrixPower(up(b, two, 2, 0, 0, 4), -2) }, op.Shape{2, 2}, []float32{0.25, 0, 0, 0.0625}},
		"Cholesky":        {func(b *batch.Batch) batch.Value { return b.Cholesky(up(b, two, 4, nan, 2, 5)) }, op.Shape{2, 2}, []float32{2, 0, 1, 2}},
		"indefinite":      {func(b *batch.Batch) batch.Value { return b.Cholesky(up(b, two, 1, 2, 2, 1)) }, op.Shape{2, 2}, []float32{nan, nan, nan, nan}},
		"triangle": {func(b *batch.Batch) batch.Value {
			return b.SolveTriangular(up(b, two, 2, nan, 1, 4), up(b, []int{2}, 2, 9))
		}, op.Shape{2}, []float32{1, 2}},
		"singular values":    {func(b *batch.Batch) batch.Value { _, s, _ := b.SVD(up(b, two, 0, 3, -4, 0)); return s }, op.Shape{2}, []float32{4, 3}},
		"unwanted results":   {func(b *batch.Batch) batch.Value { _, _, vt := b.SVD(up(b, []int{1, 2}, 3, 4)); return b.Abs(vt) }, op.Shape{1, 2}, []float32{0.6, 0.8}},
		"pivots":             {func(b *batch.Batch) batch.Value { _, p := b.LU(up(b, two, 1, 2, 3, 4)); return b.Cast(p, op.F32) }, op.Shape{2}, []float32{1, 1}},
		"triangular factors": {func(b *batch.Batch) batch.Value { _, r := b.QR(up(b, []int{2, 1}, 3, 4)); return b.Abs(r) }, op.Shape{1, 1}, []float32{5}},
	} {
		b := batch.New(dev)
		x := c.record(b)
		if err := b.Execute(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := batch.Read[float32](ctx, b, x)
		if err != nil || !x.Shape().Equal(c.shape) {
			t.Errorf("%s: %v, shape %v, want %v", name, err, x.Shape(), c.shape)
			continue
		}
		for i, w := range c.want {
			if d := math.Abs(float64(got[i] - w)); d > 1e-5 && got[i] != w || (got[i] != got[i]) != (w != w) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
				break
			}
		}
	}
}

// TestLinearAlgebraMistakes checks that wrong shapes and types give errors and do not panic.
func TestLinearAlgebraMistakes(t *testing.T) {
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for name, record := range map[string]func(b *batch.Batch, x, v, half batch.Value){
		"Cholesky":        func(b *batch.Batch, x, v, _ batch.Value) { b.Cholesky(x) },
		"Inv":             func(b *batch.Batch, x, v, _ batch.Value) { b.Inv(x) },
		"Det":             func(b *batch.Batch, x, v, _ batch.Value) { b.Det(v) },
		"SlogDet":         func(b *batch.Batch, x, v, _ batch.Value) { b.SlogDet(x) },
		"LU":              func(b *batch.Batch, x, v, _ batch.Value) { b.LU(v) },
		"QR":              func(b *batch.Batch, x, v, _ batch.Value) { b.QR(v) },
		"Eigh":            func(b *batch.Batch, x, v, _ batch.Value) { b.Eigh(x) },
		"SVD":             func(b *batch.Batch, x, v, _ batch.Value) { b.SVD(v) },
		"Pinv":            func(b *batch.Batch, x, v, _ batch.Value) { b.Pinv(v) },
		"MatrixRank":      func(b *batch.Batch, x, v, _ batch.Value) { b.MatrixRank(v) },
		"MatrixPower":     func(b *batch.Batch, x, v, _ batch.Value) { b.MatrixPower(x, 3) },
		"MatrixPower 0":   func(b *batch.Batch, x, v, _ batch.Value) { b.MatrixPower(v, 0) },
		"Solve":           func(b *batch.Batch, x, v, _ batch.Value) { b.Solve(x, v) },
		"Solve a vector":  func(b *batch.Batch, x, v, _ batch.Value) { b.Solve(v, v) },
		"SolveTriangular": func(b *batch.Batch, x, v, _ batch.Value) { b.SolveTriangular(x, v) },
		"Lstsq":           func(b *batch.Batch, x, v, _ batch.Value) { b.Lstsq(v, v) },
		"Lstsq rows":      func(b *batch.Batch, x, v, _ batch.Value) { b.Lstsq(x, v) },
		"Lstsq scalar":    func(b *batch.Batch, x, v, _ batch.Value) { b.Lstsq(x, b.Const(1)) },
		"zero value":      func(b *batch.Batch, x, v, _ batch.Value) { b.Solve(batch.Value{}, v) },
		"zero matrix":     func(b *batch.Batch, x, v, _ batch.Value) { b.Inv(batch.Value{}) },
		"leading extents": func(b *batch.Batch, x, v, _ batch.Value) {
			b.Solve(b.Upload(make([]float32, 8), 2, 2, 2), b.Upload(make([]float32, 6), 3, 2, 1))
		},
		"type": func(b *batch.Batch, x, v, half batch.Value) { b.Det(half) },
	} {
		b := batch.New(dev)
		half := batch.Upload(b, make([]op.Float16, 4), 2, 2)
		record(b, b.Upload(make([]float32, 6), 2, 3), b.Upload(make([]float32, 5)), half)
		want := device.ErrShape
		if name == "type" {
			want = device.ErrUnsupported
		}
		if err := b.Execute(ctx); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}
