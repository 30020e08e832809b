package batch_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// columnReductions are reductions of floats: the result in float64, and the scale of its error.
var columnReductions = []struct {
	name string
	of   func(b *batch.Batch, x batch.Value, along op.Along) batch.Value
	want func(x []float64) (y, scale float64)
}{
	{"sum", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value { return b.Sum(x, a) }, func(x []float64) (s, scale float64) {
		for _, v := range x {
			s, scale = s+v, scale+math.Abs(v)
		}
		return s, scale
	}},
	{"mean", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value { return b.Mean(x, a) }, func(x []float64) (s, scale float64) {
		for _, v := range x {
			s, scale = s+v/float64(len(x)), scale+math.Abs(v)/float64(len(x))
		}
		return s, scale
	}},
	{"prod", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value { return b.Prod(x, a) }, func(x []float64) (p, scale float64) {
		p = 1
		for _, v := range x {
			p *= v
		}
		return p, math.Abs(p) * float64(len(x))
	}},
	{"var", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value { return b.Var(x, op.VarOpts{Along: a}) }, variance(0)},
	{"var with ddof 1", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value {
		return b.Var(x, op.VarOpts{Along: a, DDOF: 1})
	}, variance(1)},
	{"norm", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value { return b.NormL2(x, a) }, func(x []float64) (s, scale float64) {
		for _, v := range x {
			s += v * v
		}
		return math.Sqrt(s), math.Sqrt(s)
	}},
	{"max", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value { return b.Max(x, a) }, func(x []float64) (s, scale float64) {
		s = x[0]
		for _, v := range x {
			s = max(s, v)
		}
		return s, 0
	}},
	{"min", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value { return b.Min(x, a) }, func(x []float64) (s, scale float64) {
		s = x[0]
		for _, v := range x {
			s = min(s, v)
		}
		return s, 0
	}},
	{"count_nonzero", counted((*batch.Batch).CountNonzero, op.F32), func(x []float64) (float64, float64) { return nonzeros(x), 0 }},
	{"any", counted((*batch.Batch).Any, op.F32), func(x []float64) (float64, float64) { return min(1, nonzeros(x)), 0 }},
	{"all", counted((*batch.Batch).All, op.F32), func(x []float64) (float64, float64) {
		return float64(truth(nonzeros(x) == float64(len(x)))), 0
	}},
	{"any of bools", counted((*batch.Batch).Any, op.Bool), func(x []float64) (float64, float64) { return min(1, nonzeros(x)), 0 }},
	{"all of bools", counted((*batch.Batch).All, op.Bool), func(x []float64) (float64, float64) {
		return float64(truth(nonzeros(x) == float64(len(x)))), 0
	}},
}

func counted(f func(b *batch.Batch, x batch.Value, along ...op.Along) batch.Value, t op.DType) func(b *batch.Batch, x batch.Value, along op.Along) batch.Value {
	return func(b *batch.Batch, x batch.Value, along op.Along) batch.Value {
		return b.Cast(f(b, b.Cast(x, t), along), op.F32)
	}
}

func nonzeros(x []float64) (n float64) {
	for _, v := range x {
		n += float64(truth(v != 0))
	}
	return n
}

// variance returns the variance with a tolerance for a mean that is far from 0.
func variance(ddof int) func(x []float64) (float64, float64) {
	return func(x []float64) (float64, float64) {
		mean, m2 := 0.0, 0.0
		for _, v := range x {
			mean += v / float64(len(x))
		}
		for _, v := range x {
			m2 += (v - mean) * (v - mean)
		}
		m2 /= float64(max(0, len(x)-ddof))
		return m2, m2 + mean*mean*1e-20 // the reference has a rounding error too
	}
}

// TestReduceColumns reduces the middle axis of arrays [outer cols inner], of lengths around those at which the CPU
// divides them.
func TestReduceColumns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 4))
	fill := map[string]func() float32{
		"normal":   func() float32 { return float32(g.NormFloat64()) },
		"far":      func() float32 { return float32(1000 + g.NormFloat64()) },
		"huge":     func() float32 { return float32(g.NormFloat64() * 1e30) },
		"zeros":    func() float32 { return [4]float32{0, float32(math.Copysign(0, -1)), 0, 1}[g.IntN(4)] },
		"-0":       func() float32 { return float32(math.Copysign(0, -1)) },
		"infinite": func() float32 { return [4]float32{float32(math.Inf(1)), 1, 2, 3}[min(3, g.IntN(60))] },
		"special": func() float32 {
			return [8]float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, 1, 2, 3, 4}[min(7, g.IntN(40))]
		},
	}
	dev := open()
	defer dev.Close()
	for _, s := range [][3]int{{1, 3, 4099}, {3, 5, 8}, {2, 257, 33}, {5, 2, 63}, {2, 1100, 9}, {1, 5, 9000}, {3, 256, 7}, {1, 700, 130}, {40, 67, 1}, {2, 1, 100}, {1, 20_000, 3}} {
		for kind, f := range fill {
			x := make([]float32, s[0]*s[1]*s[2])
			for i := range x {
				x[i] = f()
			}
			for _, r := range columnReductions {
				if testing.Short() && g.IntN(3) > 0 {
					continue
				}
				b := batch.New(dev)
				v := r.of(b, batch.Upload(b, x, s[:]...), op.Axes(1))
				checkColumns(t, b, v, x, s, r.name+" of "+kind+" numbers", r.want)
			}
		}
	}
}

// checkColumns compares v with reductions in float64 of the middle axis of x.
func checkColumns(t *testing.T, b *batch.Batch, v batch.Value, x []float32, s [3]int, name string, reduce func(x []float64) (y, scale float64)) {
	t.Helper()
	ctx := t.Context()
	if err := b.Execute(ctx, v); err != nil {
		t.Fatal(err)
	}
	got, err := batch.Read[float32](ctx, b, v)
	if err != nil {
		t.Fatal(err)
	}
	column := make([]float64, s[1])
	for i, y := range got {
		for k := range column {
			column[k] = float64(x[(i/s[2]*s[1]+k)*s[2]+i%s[2]])
		}
		if want, scale := reduce(column); !reduced(float64(y), want, scale, s[1], name) {
			t.Fatalf("%s of %v: result %d is %v, want %v", name, s, i, y, want)
		}
	}
}

// TestReduceMadeColumns reduces the middle axis of values that elementwise operations make of arrays, of numbers for a
// column or a row, of a scalar and of bytes. Products are exact, so that a device may fuse them with sums.
func TestReduceMadeColumns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 4))
	dev := open()
	defer dev.Close()
	fill := func(n int, f func() float32) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = f()
		}
		return x
	}
	power := func() float32 { return float32(math.Ldexp(1, g.IntN(3)-1)) }
	for _, s := range [][3]int{{1, 3, 4099}, {3, 5, 8}, {2, 257, 33}, {5, 2, 63}, {2, 1100, 9}, {1, 5, 9000}, {3, 256, 7}, {1, 700, 130}, {40, 67, 1}, {2, 1, 100}, {1, 20_000, 3}} {
		n := s[0] * s[1] * s[2]
		x, w := fill(n, func() float32 { return float32(g.NormFloat64()) }), fill(n, power)
		rows, columns := fill(s[1], power), fill(s[2], func() float32 { return float32(g.IntN(3)) })
		bytes, made, fromBytes := make([]uint8, n), make([]float32, n), make([]float32, n)
		for i := range bytes {
			bytes[i] = uint8(g.IntN(4) / 3 * 7)
			fromBytes[i] = float32(bytes[i])
			made[i] = x[i]*w[i]*rows[i/s[2]%s[1]]*2 + columns[i%s[2]]
		}
		for _, r := range columnReductions {
			if testing.Short() && g.IntN(3) > 0 || r.name == "prod" && s[1] > 20 { // partial products would overflow
				continue
			}
			b := batch.New(dev)
			v := b.Mul(b.Mul(batch.Upload(b, x, s[:]...), batch.Upload(b, w, s[:]...)), batch.Upload(b, rows, s[1], 1))
			v = b.Add(b.Mul(v, b.Const(2)), batch.Upload(b, columns, s[2]))
			checkColumns(t, b, r.of(b, v, op.Axes(1)), made, s, r.name+" of a program", r.want)
			b = batch.New(dev)
			v = b.Cast(batch.Upload(b, bytes, s[:]...), op.F32)
			checkColumns(t, b, r.of(b, v, op.Axes(1)), fromBytes, s, r.name+" of bytes", r.want)
		}
	}
}

// reduced reports whether a result is within the tolerance of sums in blocks. If a sum overflows in
// float32, it may be infinite or NaN.
func reduced(got, want, scale float64, n int, name string) bool {
	if got-got != 0 {
		overflows := math.Abs(want) > math.MaxFloat32 || scale > math.MaxFloat32 || strings.HasPrefix(name, "norm") && want*want > math.MaxFloat32
		return got == want || got != got && want != want || overflows && want-want == 0
	}
	return math.Abs(got-want) <= 0x1p-23*(8+float64(min(n, 1024))/8)*scale+1e-37
}

// TestReduceByteColumns compares any and all of bytes along the middle axis with loops.
func TestReduceByteColumns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 5))
	dev := open()
	defer dev.Close()
	for _, s := range [][3]int{{1, 1, 1}, {3, 2, 31}, {2, 3, 32}, {1, 70, 33}, {4, 5, 7}, {2, 900, 1}, {1, 5000, 3}, {2, 700, 100}, {1, 3, 70_001}, {2, 2500, 257}} {
		n := s[0] * s[1] * s[2]
		x, signed, wide := make([]uint8, n), make([]int8, n), make([]float32, n)
		for j := range s[0] * s[2] {
			kind, lone := g.IntN(4), g.IntN(s[1])
			for k := range s[1] {
				i := (j/s[2]*s[1]+k)*s[2] + j%s[2]
				if zero := [...]bool{false, true, k == lone, k != lone}[kind]; !zero {
					x[i] = uint8(1 + g.IntN(255))
				}
				signed[i], wide[i] = int8(x[i]), float32(x[i])
			}
		}
		for _, r := range columnReductions {
			if !strings.HasSuffix(r.name, " of bools") {
				continue
			}
			b := batch.New(dev)
			checkColumns(t, b, r.of(b, batch.Upload(b, x, s[:]...), op.Axes(1)), wide, s, r.name+" from u8", r.want)
			b = batch.New(dev)
			checkColumns(t, b, r.of(b, batch.Upload(b, signed, s[:]...), op.Axes(1)), wide, s, r.name+" from i8", r.want)
		}
	}
}
