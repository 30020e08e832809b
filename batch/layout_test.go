package batch_test

import (
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// TestExpandedOperands tests operations that read layouts with operands that repeat one element or
// one row.
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

// TestBroadcastRuns tests operands with runs in memory, in programs of one operation and of several.
func TestBroadcastRuns(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, s := range [][3]int{{3, 5, 7}, {2, 9, 47}, {3, 4, 48}, {5, 40, 100}, {3, 2, 130}, {3, 2, 256}, {2, 30, 999}, {1, 3, 70_001}, {90, 1, 60}} {
		outer, mid, n := s[0], s[1], s[2]
		x, y, z := make([]float32, outer*n), make([]float32, mid), make([]float32, mid*n)
		for i := range x {
			x[i] = float32(i%1013) / 8
		}
		for i := range y {
			y[i] = float32(i*i%101) / 4
		}
		for i := range z {
			z[i] = float32(i%509) / 8
		}
		b := batch.New(dev)
		u, v, w := b.Upload(x, outer, 1, n), b.Upload(y, mid, 1), b.Upload(z, mid, n)
		cases := []struct {
			y batch.Value
			f func(u, v, w float32) float32
		}{
			{b.Sub(u, v), func(u, v, _ float32) float32 { return u - v }},
			{b.Sub(v, u), func(u, v, _ float32) float32 { return v - u }},
			{b.Sub(b.Mul(u, v), u), func(u, v, _ float32) float32 { return u*v - u }},
			{b.Sub(b.Expand(w, outer, mid, n), v), func(_, v, w float32) float32 { return w - v }},
			{b.Cast(b.Sub(b.Cast(u, op.F16), b.Cast(v, op.F16)), op.F32), func(u, v, _ float32) float32 { return u - v }},
		}
		for _, c := range cases {
			b.Keep(c.y)
		}
		if err := b.Execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		for k, c := range cases {
			got, err := batch.Read[float32](t.Context(), b, c.y)
			if err != nil {
				t.Fatal(err)
			}
			for i, g := range got {
				if want := c.f(x[i/n/mid*n+i%n], y[i/n%mid], z[i%(mid*n)]); g != want {
					t.Fatalf("%v, case %d: element %d is %v, not %v", s, k, i, g, want)
				}
			}
		}
	}
}

// TestLayoutPointers concatenates expanded operands, which repeat a few elements of memory, and permuted operands, whose copies end at the end of
// their memory. Under the race detector the program ends if code computes a pointer outside of an array.
func TestLayoutPointers(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const rows, cols = 304, 16
	x, one, want := make([]float32, cols*rows), []float32{7}, make([]float32, 0, rows*(cols+1))
	for i := range x {
		x[i] = float32(i)
	}
	for r := range rows {
		for c := range cols {
			want = append(want, x[c*rows+r])
		}
		want = append(want, 7)
	}
	b := batch.New(dev)
	y := b.Concat(1, b.Permute(b.Upload(x, cols, rows), 1, 0), b.Expand(b.Upload(one, 1, 1), rows, 1))
	long := b.Concat(1, b.Expand(b.Upload(one, 1, 1), 1<<20, 1), b.Expand(b.Upload(one, 1, 1), 1<<20, 1))
	if err := b.Execute(t.Context(), y, long); err != nil {
		t.Fatal(err)
	}
	if got, err := batch.Read[float32](t.Context(), b, y); err != nil || !slices.Equal(got, want) {
		t.Errorf("other elements, error %v", err)
	}
	if got, err := batch.Read[float32](t.Context(), b, long); err != nil || slices.ContainsFunc(got, func(v float32) bool { return v != 7 }) {
		t.Errorf("repeated elements: other elements, error %v", err)
	}
}
