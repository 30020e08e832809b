package batch_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// axisReductions are reductions of integers, over the elements in their order.
var axisReductions = []struct {
	name string
	of   func(b *batch.Batch, x batch.Value, along ...op.Along) batch.Value
	want func(x []int64) int64
}{
	{"sum", (*batch.Batch).Sum, func(x []int64) (s int64) {
		for _, v := range x {
			s += v
		}
		return s
	}},
	{"prod", (*batch.Batch).Prod, func(x []int64) int64 {
		p := int64(1)
		for _, v := range x {
			p = int64(int32(p * v))
		}
		return p
	}},
	{"max", (*batch.Batch).Max, slices.Max[[]int64]},
	{"min", (*batch.Batch).Min, slices.Min[[]int64]},
	{"argmax", (*batch.Batch).ArgMax, func(x []int64) int64 { return int64(slices.Index(x, slices.Max(x))) }},
	{"argmin", (*batch.Batch).ArgMin, func(x []int64) int64 { return int64(slices.Index(x, slices.Min(x))) }},
	{"count_nonzero", (*batch.Batch).CountNonzero, func(x []int64) int64 { return int64(len(x)) - zeros(x) }},
	{"any", (*batch.Batch).Any, func(x []int64) int64 { return truth(zeros(x) < int64(len(x))) }},
	{"all", (*batch.Batch).All, func(x []int64) int64 { return truth(zeros(x) == 0) }},
}

func zeros(x []int64) (n int64) {
	for _, v := range x {
		n += truth(v == 0)
	}
	return n
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// TestReduceIntegers reduces each axis of arrays [outer cols inner], of lengths around those at
// which the CPU divides rows. A few different values at both ends of the type produce ties and sums
// that wrap around.
func TestReduceIntegers(t *testing.T) {
	g := testutil.Rand(t)
	dev := open()
	defer dev.Close()
	shapes := [][3]int{{3, 5, 1}, {2, 10, 100}, {2, 300, 64}, {3, 2, 63}, {2, 3, 65}, {5, 1, 1023}, {2, 1, 4097}, {1, 2, 65537}, {1, 1, 200_001}, {2, 1030, 20}, {1, 520, 4100}}
	for _, s := range shapes {
		if testing.Short() && g.IntN(3) > 0 {
			continue
		}
		reduceIntegers(t, dev, s, []int32{math.MinInt32, math.MinInt32 + 1, -1, 0, 3, math.MaxInt32}, g)
		reduceIntegers(t, dev, s, []uint32{0, 1, 7, 1 << 31, math.MaxUint32 - 1, math.MaxUint32}, g)
		reduceIntegers(t, dev, s, []int32{0}, g)
		reduceIntegers(t, dev, s, []uint32{5}, g)
	}
}

func reduceIntegers[T int32 | uint32](t *testing.T, dev *device.Device, s [3]int, from []T, g *rand.Rand) {
	t.Helper()
	x := make([]T, s[0]*s[1]*s[2])
	for i := range x {
		x[i] = from[g.IntN(len(from))]
	}
	for axis := range s {
		n, inner := s[axis], 1
		for _, d := range s[axis+1:] {
			inner *= d
		}
		for _, r := range axisReductions {
			b := batch.New(dev)
			v := batch.Upload(b, x, s[:]...)
			if g.IntN(2) == 0 { // an operand that a program computes
				k := batch.Upload(b, []T{T(g.Uint32())}, 1)
				v = b.Sub(b.Add(v, k), k)
			}
			y := b.Cast(r.of(b, v, op.Axes(axis)), op.I32)
			if err := b.Execute(ctx, y); err != nil {
				t.Fatal(err)
			}
			got, err := batch.Read[int32](ctx, b, y)
			if err != nil {
				t.Fatal(err)
			}
			row := make([]int64, n)
			for i, v := range got {
				for k := range row {
					row[k] = int64(x[(i/inner*n+k)*inner+i%inner])
				}
				if want := r.want(row); v != int32(want) {
					t.Fatalf("%s of %T %v along axis %d: element %d is %d, not %d", r.name, x, s, axis, i, v, int32(want))
				}
			}
		}
	}
}

// TestCountBytes counts truth values that are bytes in memory, along axes and all of them, few or
// many that are not 0.
func TestCountBytes(t *testing.T) {
	g, dev := testutil.Rand(t), open()
	defer dev.Close()
	for _, s := range [][2]int{{3, 7}, {20, 33}, {5, 1000}, {2, 70_001}, {1, 300_007}} {
		for _, one := range []int{1, 2, 1 << 20} {
			x := make([]uint8, s[0]*s[1])
			for i := range x {
				if g.IntN(one) == 0 {
					x[i] = 1 << g.IntN(8)
				}
			}
			for _, r := range axisReductions[6:] {
				b := batch.New(dev)
				v := b.Cast(batch.Upload(b, x, s[:]...), op.Bool)
				rows, all := b.Cast(r.of(b, v, op.Axes(1)), op.I32), b.Cast(r.of(b, v), op.I32)
				if err := b.Execute(ctx, rows, all); err != nil {
					t.Fatal(err)
				}
				gotRows, err := batch.Read[int32](ctx, b, rows)
				if err != nil {
					t.Fatal(err)
				}
				gotAll, err := batch.Read[int32](ctx, b, all)
				if err != nil {
					t.Fatal(err)
				}
				wide := make([]int64, len(x))
				for i, e := range x {
					wide[i] = int64(e)
				}
				for i, v := range gotRows {
					if want := r.want(wide[i*s[1]:][:s[1]]); int64(v) != want {
						t.Errorf("%s of %v: row %d is %d, not %d", r.name, s, i, v, want)
					}
				}
				if want := r.want(wide); int64(gotAll[0]) != want {
					t.Errorf("%s of %v: all are %d, not %d", r.name, s, gotAll[0], want)
				}
			}
		}
	}
}

// TestSumNegativeZeros checks that the sum of -0 is +0, because a sum begins with +0.
func TestSumNegativeZeros(t *testing.T) {
	dev := open()
	defer dev.Close()
	for _, s := range [][3]int{{3, 10, 100}, {2, 5000, 3}, {1, 2, 64}, {4, 1, 100}, {20, 3, 3}} {
		x := make([]float32, s[0]*s[1]*s[2])
		for i := range x {
			x[i] = float32(math.Copysign(0, -1))
		}
		for axis := range s {
			b := batch.New(dev)
			y := b.Sum(b.Upload(x, s[:]...), op.Axes(axis))
			if err := b.Execute(ctx, y); err != nil {
				t.Fatal(err)
			}
			got, err := batch.Read[float32](ctx, b, y)
			if err != nil {
				t.Fatal(err)
			}
			if i := slices.IndexFunc(got, func(v float32) bool { return math.Float32bits(v) != 0 }); i >= 0 {
				t.Errorf("%v along axis %d: element %d is %v with bits %#x, not +0", s, axis, i, got[i], math.Float32bits(got[i]))
			}
		}
	}
}
