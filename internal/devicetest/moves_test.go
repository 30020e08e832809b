package devicetest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// movesElements permutes, flips, slices and pads random arrays of types that kernels convert or move by their bits, and
// compares every bit with a loop. The bfloat16 are neither NaN nor subnormal, whose bits WebGPU may change.
func movesElements(t *testing.T, dev *device.Device) {
	t.Helper()
	rnd := testutil.Rand(t)
	for _, s := range []op.Shape{{1, 1}, {65, 67}, {7, 33, 3}, {3, 32, 40}, {5, 2, 3, 70}, {16, 8, 4, 6}, {128, 96}} {
		movesOf(t, dev, rnd, s, func(bits uint32) uint8 { return uint8(bits) })
		movesOf(t, dev, rnd, s, func(bits uint32) int8 { return int8(bits) })
		movesOf(t, dev, rnd, s, func(bits uint32) op.BFloat16 { return op.BFloat16(bits&^0x4000 | 0x2000) })
	}
	for _, s := range []op.Shape{{40, 24}, {3, 50, 70}, {257, 260}} {
		transposesOf(t, dev, rnd, s, func(bits uint32) uint8 { return uint8(bits) })
		transposesOf(t, dev, rnd, s, func(bits uint32) op.BFloat16 { return op.BFloat16(bits&^0x4000 | 0x2000) })
		transposesOf(t, dev, rnd, s, func(bits uint32) op.Float16 { return op.Float16(bits&^0x4000 | 0x2000) })
	}
}

// transposesOf transposes matrices of one shape and type.
func transposesOf[T uint8 | op.BFloat16 | op.Float16](t *testing.T, dev *device.Device, rnd *rand.Rand, s op.Shape, from func(bits uint32) T) {
	t.Helper()
	n, err := s.Size()
	if err != nil {
		t.Fatal(err)
	}
	x := make([]T, n)
	want := make([]T, len(x))
	rows, cols := s[len(s)-2], s[len(s)-1]
	for i := range x {
		x[i] = from(rnd.Uint32())
		matrix, row, col := i/(rows*cols), i/cols%rows, i%cols
		want[(matrix*cols+col)*rows+row] = x[i]
	}
	b := batch.New(dev)
	v := b.Transpose(batch.Upload(b, x, s...))
	if err := b.Execute(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if got, err := batch.Read[T](t.Context(), b, v); err != nil || !slices.Equal(got, want) {
		t.Errorf("%T of %v is not transposed: %v", x, s, err)
	}
}

// movesOf is movesElements for one shape and type.
func movesOf[T uint8 | int8 | op.BFloat16](t *testing.T, dev *device.Device, rnd *rand.Rand, s op.Shape, from func(bits uint32) T) {
	t.Helper()
	size, err := s.Size()
	if err != nil {
		t.Fatal(err)
	}
	x := make([]T, size)
	for i := range x {
		x[i] = from(rnd.Uint32())
	}
	order, axis, step := rnd.Perm(len(s)), rnd.IntN(len(s)), 1+rnd.IntN(2)
	permuted := permutedShape(s, order)
	n := (permuted[axis] + step - 1) / step // elements that the slice takes, from the last one backwards
	padded := slices.Clone(permuted)
	padded[axis] = n + 3
	var want []T
	at := make([]int, len(s))
	for range size / permuted[axis] * padded[axis] {
		var element T
		if k := at[axis] - 1; k >= 0 && k < n {
			index := 0
			for a := range s {
				p := at[slices.Index(order, a)]
				if a == order[axis] {
					p = permuted[axis] - 1 - k*step
				}
				index = index*s[a] + p
			}
			element = x[index]
		}
		want = append(want, element)
		for a := len(at) - 1; a >= 0; a-- {
			if at[a]++; at[a] < padded[a] {
				break
			}
			at[a] = 0
		}
	}
	b := batch.New(dev)
	v := b.Permute(batch.Upload(b, x, s...), order...)
	v = b.Pad(b.Slice(v, axis, -1, op.End, -step), axis, 1, 2, 0)
	b.Keep(v)
	if err := b.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := batch.Read[T](t.Context(), b, v)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%T %v in the order %v, axis %d with step %d: %v", x, s, order, axis, -step, err)
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("element %d is %v, not %v", i, got[i], want[i])
			}
		}
	}
}

// permutedShape returns the shape of the result.
func permutedShape(s op.Shape, order []int) (out op.Shape) {
	for _, k := range order {
		out = append(out, s[k])
	}
	return out
}
