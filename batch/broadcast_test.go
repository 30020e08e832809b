package batch_test

import (
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestBroadcastShapes adds two arrays of random shapes that broadcast, and multiplies the sum by a
// third one. The elements are integers, as i32 and as f32, so that results are exact.
func TestBroadcastShapes(t *testing.T) {
	r := testutil.Rand(t)
	dev := open()
	defer dev.Close()
	extents := []int{1, 2, 3, 7, 8, 31, 33, 48, 64, 97, 251, 300}
	for range 60 {
		full := make(op.Shape, 1+r.IntN(4))
		for i, n := 0, 1; i < len(full); i++ {
			if full[i] = extents[r.IntN(len(extents))]; n*full[i] > 100_000 {
				full[i] = 2
			}
			n *= full[i]
		}
		var shapes [3]op.Shape
		var x [3][]int32
		for k := range x {
			s := append(op.Shape(nil), full[r.IntN(len(full)):]...)
			if k == 0 {
				s = append(op.Shape(nil), full...)
			}
			n := 1
			for i := range s {
				if r.IntN(3) == 0 && k > 0 {
					s[i] = 1
				}
				n *= s[i]
			}
			shapes[k], x[k] = s, make([]int32, n)
			for i := range x[k] {
				x[k][i] = int32(r.IntN(200) - 100)
			}
		}
		want := make([]int32, len(x[0]))
		for i := range want {
			var v [3]int32
			for k, s := range shapes {
				rest, at, step := i, 0, 1
				for a := len(full) - 1; a >= 0; a-- {
					d := rest % full[a]
					rest /= full[a]
					if b := a - (len(full) - len(s)); b >= 0 {
						if s[b] > 1 {
							at += d * step
						}
						step *= s[b]
					}
				}
				v[k] = x[k][at]
			}
			want[i] = (v[0] + v[1]) * v[2]
		}
		b := batch.New(dev)
		var ints, floats [3]batch.Value
		for k := range x {
			f := make([]float32, len(x[k]))
			for i, v := range x[k] {
				f[i] = float32(v)
			}
			ints[k], floats[k] = batch.Upload(b, x[k], shapes[k]...), b.Upload(f, shapes[k]...)
		}
		sum := b.Add(ints[0], ints[1])
		y, z := b.Mul(sum, ints[2]), b.Mul(b.Add(floats[0], floats[1]), floats[2])
		if err := b.Execute(t.Context()); err != nil {
			t.Fatal(shapes, err)
		}
		got, err := batch.Read[int32](t.Context(), b, y)
		if err != nil {
			t.Fatal(err)
		}
		reals, err := batch.Read[float32](t.Context(), b, z)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if got[i] != want[i] || reals[i] != float32(want[i]) {
				t.Fatalf("%v: element %d is %d and %v, not %d", shapes, i, got[i], reals[i], want[i])
			}
		}
	}
}

// TestStackLast stacks arrays along a new last axis, up to the number that kernels support and
// more, and reads each from the result.
func TestStackLast(t *testing.T) {
	r := testutil.Rand(t)
	dev := open()
	defer dev.Close()
	for k := 1; k <= 10; k++ {
		for _, n := range []int{1, 2, 7, 8, 9, 17, 1000, 40_001} {
			b := batch.New(dev)
			x, values := make([][]int32, k), make([]batch.Value, k)
			for i := range x {
				x[i] = make([]int32, n)
				for j := range x[i] {
					x[i][j] = r.Int32()
				}
				values[i] = batch.Upload(b, x[i], n)
			}
			y := b.Stack(-1, values...)
			if err := b.Execute(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, err := batch.Read[int32](t.Context(), b, y)
			if err != nil {
				t.Fatal(err)
			}
			for at, v := range got {
				if want := x[at%k][at/k]; v != want {
					t.Fatalf("%d arrays of %d: element %d is %d, not %d", k, n, at, v, want)
				}
			}
		}
	}
}
