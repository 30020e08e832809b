package batch_test

import (
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
)

// TestExpandedOperands: operations that read layouts read values that are one element,
// or one row, many times.
func TestExpandedOperands(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	b := batch.New(dev)
	one := b.Expand(b.Neg(b.Upload([]float32{-5}, 1, 1)), 3, 1, 1)
	row := b.Expand(b.Neg(b.Upload([]float32{-1, -2}, 1, 2)), 2, 2)
	column := b.Expand(b.Neg(b.Upload([]float32{-1, -2}, 2, 1)), 2, 2)
	matrix := b.Expand(b.Neg(b.Upload([]float32{-1, -2, -3, -4}, 2, 2)), 2, 2, 2)
	rows := b.Upload([]float32{1, 0, 0, 1, 2, 0, 0, 2}, 2, 2, 2)
	cases := []struct {
		name string
		y    batch.Value
		want []float32
	}{
		{"one element", b.Concat(0, one, one), []float32{5, 5, 5, 5, 5, 5}},
		{"a row", b.Concat(0, row, row), []float32{1, 2, 1, 2, 1, 2, 1, 2}},
		{"a column", b.Concat(0, column, column), []float32{1, 1, 2, 2, 1, 1, 2, 2}},
		{"a matrix for each product", b.MatMul(rows, matrix, batch.None), []float32{1, 2, 3, 4, 2, 4, 6, 8}},
	}
	for _, c := range cases {
		b.Keep(c.y)
	}
	if err := b.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if got, err := batch.Read[float32](t.Context(), b, c.y); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}
