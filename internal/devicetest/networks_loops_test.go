package devicetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// computation is one call of a composed method: its operands, the call, and its results as
// computed by loops in float64.
type computation struct {
	name string
	in   []ndarray
	do   func(b *batch.Batch, in []batch.Value) []batch.Value
	want func(in []ndarray) []ndarray
}

// networks compares the methods of neural networks with loops in float64. On slow devices it compares a sample.
func networks(t *testing.T, open Open, slow bool) {
	seed := testutil.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	dev := start(t, open)
	list := slices.Concat(poolings(rng), convolutions(rng), resizings(rng), norms(rng), losses(rng), recurrences(rng), transforms(rng))
	for i, c := range list {
		if slow && (i+int(seed%3))%3 != 0 {
			continue
		}
		b := batch.New(dev)
		var in []batch.Value
		for _, a := range c.in {
			data := make([]float32, len(a.v))
			for i, v := range a.v {
				data[i] = float32(v)
			}
			in = append(in, b.Upload(data, a.s...))
		}
		out := c.do(b, in)
		if err := b.Execute(t.Context(), out...); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for k, want := range c.want(c.in) {
			if err := near(t, b, out[k], want); err != nil {
				t.Errorf("%s: result %d: %v", c.name, k, err)
			}
		}
	}
}

// near compares a result with the expected one.
func near(t *testing.T, b *batch.Batch, v batch.Value, want ndarray) error {
	if !slices.Equal(v.Shape(), want.s) {
		return fmt.Errorf("shape %v, want %v", v.Shape(), want.s)
	}
	got := make([]float64, len(want.v))
	if v.Type() == op.I32 {
		list, err := batch.Read[int32](t.Context(), b, v)
		if err != nil {
			return err
		}
		for i, e := range list {
			got[i] = float64(e)
		}
	} else {
		list, err := batch.Read[float32](t.Context(), b, v)
		if err != nil {
			return err
		}
		for i, e := range list {
			got[i] = float64(e)
		}
	}
	largest := 0.0
	for _, w := range want.v {
		if w-w == 0 {
			largest = max(largest, math.Abs(w))
		}
	}
	for i, w := range want.v {
		if got[i] == w || got[i] != got[i] && w != w {
			continue
		}
		// The tolerance allows some roundings of sums of the magnitude of the largest element.
		if bound := 0x1p-23 * (24*math.Abs(w) + 16*largest); v.Type() == op.I32 || !(math.Abs(got[i]-w) <= bound) {
			return fmt.Errorf("element %d of %v: got %v, want %v", i, want.s, got[i], w)
		}
	}
	return nil
}

func poolings(rng *rand.Rand) (list []computation) {
	spoilt := func(s ...int) ndarray {
		x := normals(rng, s...)
		x.v[rng.IntN(len(x.v))], x.v[rng.IntN(len(x.v))] = math.NaN(), math.Inf(-1)
		return x
	}
	for _, c := range []struct {
		s    []int
		w    sliding
		ceil bool
	}{
		{[]int{2, 3, 8, 6}, sliding{2, 2, 0, 0, 1}, false},
		{[]int{1, 2, 7, 9}, sliding{3, 2, 1, 1, 1}, true},
		{[]int{1, 2, 9, 10}, sliding{2, 1, 1, 2, 3}, false},
		{[]int{2, 2, 11}, sliding{3, 3, 2, 0, 1}, true},
		{[]int{1, 2, 5, 4, 6}, sliding{2, 2, 0, 1, 1}, true},
		{[]int{0, 2, 4, 4}, sliding{2, 2, 0, 0, 1}, false},
	} {
		o := op.PoolOpts{Stride: []int{c.w.stride}, Pad: []int{c.w.before}, PadAfter: []int{c.w.after}, Dilation: []int{c.w.dilation}, Ceil: c.ceil}
		size, x, name := []int{c.w.size}, normals(rng, c.s...), fmt.Sprintf("%v %+v", c.s, c.w)
		with := x
		if len(x.v) > 0 {
			with = spoilt(c.s...)
		}
		list = append(list, computation{"max pool " + name, []ndarray{with}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			y, at := b.MaxPoolIndices(in[0], size, o)
			return []batch.Value{b.MaxPool(in[0], size, o), y, at}
		}, func(in []ndarray) []ndarray {
			y := pool(in[0], c.w, c.ceil, func(v []float64, _ []int, _ int) float64 { return most(v) })
			at := pool(in[0], c.w, c.ceil, func(v []float64, at []int, _ int) float64 {
				i := slices.IndexFunc(v, func(e float64) bool { return e == most(v) || e != e })
				if i < 0 {
					return -1
				}
				return float64(at[i])
			})
			return []ndarray{y, y, at}
		}}, computation{"average pool " + name, []ndarray{x}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			all := o
			all.CountPad = true
			return []batch.Value{b.AvgPool(in[0], size, o), b.AvgPool(in[0], size, all)}
		}, func(in []ndarray) []ndarray {
			mean := pool(in[0], c.w, c.ceil, func(v []float64, _ []int, _ int) float64 { return total(v) / float64(len(v)) })
			return []ndarray{mean, pool(in[0], c.w, c.ceil, func(v []float64, _ []int, n int) float64 { return total(v) / float64(n) })}
		}}, computation{"norm pool " + name, []ndarray{x}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			three := o
			three.P = 3
			return []batch.Value{b.LpPool(in[0], size, o), b.LpPool(in[0], size, three)}
		}, func(in []ndarray) []ndarray {
			var ys []ndarray
			for _, p := range []float64{2, 3} {
				ys = append(ys, pool(in[0], c.w, c.ceil, func(v []float64, _ []int, _ int) float64 { return pNorm(v, p) }))
			}
			return ys
		}})
	}
	for _, m := range []int{1, 3, 4, 7, 11} {
		list = append(list, computation{fmt.Sprintf("adaptive pool to %d", m), []ndarray{normals(rng, 2, 3, 8)}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			return []batch.Value{b.AdaptiveAvgPool(in[0], []int{m}), b.AdaptiveMaxPool(in[0], []int{m})}
		}, func(in []ndarray) []ndarray {
			mean, greatest := newNDArray(2, 3, m), newNDArray(2, 3, m)
			each(mean.s, func(o []int) {
				first := o[0]*24 + o[1]*8
				v := in[0].v[first+o[2]*8/m : first+int(math.Ceil(float64(o[2]+1)*8/float64(m)))]
				mean.set(total(v)/float64(len(v)), o...)
				greatest.set(most(v), o...)
			})
			return []ndarray{mean, greatest}
		}})
	}
	return list
}

// most returns the greatest element, or NaN if any element is NaN.
func most(v []float64) float64 {
	m := math.Inf(-1)
	for _, e := range v {
		m = max(m, e)
	}
	return m
}

func total(v []float64) (sum float64) {
	for _, e := range v {
		sum += e
	}
	return sum
}

func pNorm(v []float64, p float64) (sum float64) {
	for _, e := range v {
		sum += math.Pow(math.Abs(e), p)
	}
	return math.Pow(sum, 1/p)
}

func convolutions(rng *rand.Rand) (list []computation) {
	for _, c := range []struct {
		x, w   []int
		s      sliding
		groups int
		more   int
	}{
		{[]int{2, 4, 9}, []int{6, 2, 3}, sliding{0, 2, 1, 2, 1}, 2, 1},
		{[]int{1, 3, 6, 7}, []int{4, 3, 3, 2}, sliding{0, 1, 1, 1, 2}, 1, 0},
		{[]int{2, 4, 7, 5}, []int{4, 1, 3, 3}, sliding{0, 2, 0, 1, 1}, 4, 1},
		{[]int{1, 4, 5, 4, 6}, []int{6, 2, 2, 3, 2}, sliding{0, 2, 1, 1, 1}, 2, 1},
		{[]int{1, 2, 3, 4, 5}, []int{2, 2, 1, 2, 3}, sliding{0, 3, 0, 0, 1}, 1, 2},
		{[]int{1, 2, 4, 4}, []int{2, 3, 2, 2}, sliding{0, 2, 0, 0, 1}, 1, 0},
	} {
		o := op.ConvOpts{Stride: []int{c.s.stride}, Pad: []int{c.s.before}, PadAfter: []int{c.s.after}, Dilation: []int{c.s.dilation}, Groups: c.groups}
		name := fmt.Sprintf("%v by %v in %d groups, %+v", c.x, c.w, c.groups, c.s)
		if c.x[1] == c.w[1]*c.groups {
			list = append(list, computation{"convolution " + name, []ndarray{normals(rng, c.x...), normals(rng, c.w...), normals(rng, c.w[0])},
				func(b *batch.Batch, in []batch.Value) []batch.Value {
					return []batch.Value{b.Conv(in[0], in[1], in[2], o)}
				},
				func(in []ndarray) []ndarray { return []ndarray{convolve(in[0], in[1], in[2], c.s, c.groups)} }})
		}
		turned := o
		turned.OutPad = []int{c.more}
		window := slices.Clone(c.w)
		window[0] = c.x[1]
		list = append(list, computation{"transposed convolution " + name, []ndarray{normals(rng, c.x...), normals(rng, window...), normals(rng, window[1]*c.groups)},
			func(b *batch.Batch, in []batch.Value) []batch.Value {
				return []batch.Value{b.ConvTranspose(in[0], in[1], in[2], turned)}
			},
			func(in []ndarray) []ndarray { return []ndarray{spreadOut(in[0], in[1], in[2], c.s, c.groups, c.more)} }})
	}
	return list
}

func resizings(rng *rand.Rand) (list []computation) {
	triangle := func(x float64) float64 { return max(0, 1-math.Abs(x)) }
	cubic := func(x float64) float64 { // Keys' kernel with a = -0.75
		switch x = math.Abs(x); {
		case x < 1:
			return 1.25*x*x*x - 2.25*x*x + 1
		case x < 2:
			return -0.75*x*x*x + 3.75*x*x - 6*x + 3
		}
		return 0
	}
	box := func(x float64) float64 { // the lower of two neighbours
		if x > -0.5 && x <= 0.5 {
			return 1
		}
		return 0
	}
	for _, size := range [][2]int{{5, 10}, {7, 21}, {6, 3}, {5, 8}, {9, 4}, {1, 3}, {40, 3}, {3, 12}} {
		n, m := size[0], size[1]
		scale := float64(m) / float64(n)
		half := func(i float64) float64 { return (i+0.5)/scale - 0.5 }
		corners := func(i float64) float64 {
			if m == 1 {
				return 0
			}
			return i * float64(n-1) / float64(m-1)
		}
		for _, c := range []struct {
			name          string
			o             op.ResizeOpts
			place, kernel func(float64) float64
			reach         int
		}{
			{"linear", op.ResizeOpts{}, half, triangle, 2},
			{"corners", op.ResizeOpts{Coordinates: op.AlignCorners}, corners, triangle, 2},
			{"cubic", op.ResizeOpts{Mode: op.Cubic, Coordinates: op.Asymmetric}, func(i float64) float64 { return i / scale }, cubic, 3},
			{"nearest", op.ResizeOpts{Mode: op.Nearest}, half, box, 1},
			{"antialias", op.ResizeOpts{Antialias: true}, half, func(x float64) float64 { return triangle(x * min(1, scale)) }, 2 + int(1/scale)},
		} {
			x := normals(rng, 2, n)
			// Resize n elements as the only spatial axis, and as the first of two.
			list = append(list, computation{fmt.Sprintf("resize %s %d to %d", c.name, n, m), []ndarray{x}, func(b *batch.Batch, in []batch.Value) []batch.Value {
				column := b.Resize(b.Unsqueeze(in[0], 2), []int{m, 1}, c.o)
				return []batch.Value{b.Resize(in[0], []int{m}, c.o), b.Squeeze(column, 2)}
			}, func(in []ndarray) []ndarray {
				y := resample(in[0], m, c.place, c.kernel, c.reach)
				return []ndarray{y, y}
			}})
		}
	}
	for _, o := range []op.GridSampleOpts{{}, {AlignCorners: true}, {Outside: op.OutsideBorder}} {
		list = append(list, computation{fmt.Sprintf("grid sample %+v", o), []ndarray{normals(rng, 2, 3, 4, 5), normals(rng, 2, 3, 6, 2)}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			return []batch.Value{b.GridSample(in[0], in[1], o)}
		}, func(in []ndarray) []ndarray {
			return []ndarray{bilinear(in[0], in[1], o.AlignCorners, o.Outside == op.OutsideBorder)}
		}})
	}
	return list
}

func norms(rng *rand.Rand) []computation {
	x, one := normals(rng, 2, 6, 5), func() ndarray { return normals(rng, 6) }
	positive := one()
	for i := range positive.v {
		positive.v[i] = math.Abs(positive.v[i])
	}
	// along returns f of the elements of x that share all indices but those of some axes.
	along := func(x ndarray, group func(i []int) int, f func(v []float64, e float64) float64) ndarray {
		y, groups := newNDArray(x.s...), map[int][]float64{}
		each(x.s, func(i []int) { groups[group(i)] = append(groups[group(i)], x.at(i...)) })
		each(x.s, func(i []int) { y.set(f(groups[group(i)], x.at(i...)), i...) })
		return y
	}
	normal := func(v []float64, e float64) float64 {
		mean, variance := total(v)/float64(len(v)), 0.0
		for _, e := range v {
			variance += (e - mean) * (e - mean) / float64(len(v))
		}
		return (e - mean) / math.Sqrt(variance+1e-5)
	}
	affine := func(x, scale, bias ndarray) ndarray {
		each(x.s, func(i []int) { x.set(x.at(i...)*scale.at(i[1])+bias.at(i[1]), i...) })
		return x
	}
	return []computation{
		{"batch norm", []ndarray{x, one(), positive, one(), one()}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			return []batch.Value{b.BatchNorm(in[0], in[1], in[2], in[3], in[4])}
		}, func(in []ndarray) []ndarray {
			y := newNDArray(x.s...)
			each(y.s, func(i []int) { y.set((x.at(i...)-in[1].at(i[1]))/math.Sqrt(in[2].at(i[1])+1e-5), i...) })
			return []ndarray{affine(y, in[3], in[4])}
		}},
		{"group norm", []ndarray{x, one(), one()}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			return []batch.Value{b.GroupNorm(in[0], 3, in[1], in[2]), b.InstanceNorm(in[0], in[1], in[2])}
		}, func(in []ndarray) []ndarray {
			groups := along(x, func(i []int) int { return i[0]*3 + i[1]/2 }, normal)
			return []ndarray{affine(groups, in[1], in[2]), affine(along(x, func(i []int) int { return i[0]*6 + i[1] }, normal), in[1], in[2])}
		}},
		{"local response norm", []ndarray{x}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			return []batch.Value{b.LocalResponseNorm(in[0], 4, op.LRNOpts{Alpha: 0.5})}
		}, func(in []ndarray) []ndarray {
			y := newNDArray(x.s...)
			each(y.s, func(i []int) {
				sum := 0.0
				for k := max(0, i[1]-1); k <= min(5, i[1]+2); k++ {
					sum += x.at(i[0], k, i[2]) * x.at(i[0], k, i[2])
				}
				y.set(x.at(i...)/math.Pow(1+0.5*sum/4, 0.75), i...)
			})
			return []ndarray{y}
		}},
		{"normalize", []ndarray{x}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			return []batch.Value{b.Normalize(in[0]), b.Normalize(in[0], op.NormalizeOpts{P: 3, Along: op.Axes(0, 1)}), b.Normalize(in[0], op.NormalizeOpts{P: float32(math.Inf(1))}), b.Normalize(b.Scale(in[0], 0))}
		}, func(in []ndarray) []ndarray {
			rows := func(i []int) int { return i[0]*6 + i[1] }
			return []ndarray{along(x, rows, func(v []float64, e float64) float64 { return e / pNorm(v, 2) }),
				along(x, func(i []int) int { return i[2] }, func(v []float64, e float64) float64 { return e / pNorm(v, 3) }),
				along(x, rows, func(v []float64, e float64) float64 { return e / max(slices.Max(v), -slices.Min(v)) }),
				newNDArray(x.s...)}
		}},
		{"hardmax, glu", []ndarray{x}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			return []batch.Value{b.Hardmax(in[0], op.Axes(1)), b.GLU(in[0], 1)}
		}, func(in []ndarray) []ndarray {
			hard := along(x, func(i []int) int { return i[0]*5 + i[2] }, func(v []float64, e float64) float64 {
				if e == slices.Max(v) {
					return 1
				}
				return 0
			})
			glu := newNDArray(2, 3, 5)
			each(glu.s, func(i []int) { glu.set(x.at(i...)*sigmoid(x.at(i[0], i[1]+3, i[2])), i...) })
			return []ndarray{hard, glu}
		}},
		{"quantize", []ndarray{x, positive, one()}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			o := op.QuantizeOpts{Axis: 1, Signed: true}
			scale := b.Add(b.Scale(in[1], 0.01), b.Const(0.001))
			zero := b.Cast(b.Scale(in[2], 20), op.I32)
			q := b.Quantize(in[0], scale, zero, o)
			y, s, z := b.DynamicQuantize(in[0])
			return []batch.Value{b.Cast(b.Less(b.Abs(b.Sub(b.Dequantize(q, scale, zero, o), b.Clip(in[0], -0.1, 0.1))), b.Const(10)), op.I32),
				b.Cast(b.LessEqual(b.Abs(b.Sub(b.Dequantize(y, s, z), in[0])), b.Mul(s, b.Const(0.501))), op.I32), b.Quantize(in[0], b.Const(0.25), batch.None, op.QuantizeOpts{Bits: 4, Signed: true})}
		}, func(in []ndarray) []ndarray {
			ones, four := newNDArray(x.s...), newNDArray(x.s...)
			for i := range ones.v {
				ones.v[i], four.v[i] = 1, min(max(math.RoundToEven(x.v[i]/0.25), -8), 7)
			}
			return []ndarray{ones, ones, four}
		}},
	}
}

func losses(rng *rand.Rand) []computation {
	x, y, p := normals(rng, 3, 4, 5), normals(rng, 3, 4, 5), newNDArray(3, 4, 5)
	for i := range p.v {
		p.v[i] = float64(rng.Float32())
	}
	p.v[7], p.v[8] = 0, 1
	labels := newNDArray(3, 5)
	for i := range labels.v {
		labels.v[i] = float64(rng.IntN(4))
	}
	labels.v[2], labels.v[9] = -100, -100
	sums := func(f func(i int) float64) []ndarray {
		all, sum := newNDArray(x.s...), newNDArray()
		for i := range all.v {
			all.v[i] = f(i)
		}
		sum.v = []float64{total(all.v)}
		return []ndarray{all, sum, {[]int{}, []float64{sum.v[0] / float64(len(all.v))}}}
	}
	pairs := func(name string, a, c ndarray, do func(b *batch.Batch, x, y batch.Value, opts ...op.LossOpts) batch.Value, f func(x, y float64) float64) computation {
		return computation{name, []ndarray{a, c}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			return []batch.Value{do(b, in[0], in[1], op.LossOpts{Reduce: op.ReduceNone}), do(b, in[0], in[1], op.LossOpts{Reduce: op.ReduceSum}), do(b, in[0], in[1])}
		}, func([]ndarray) []ndarray { return sums(func(i int) float64 { return f(a.v[i], c.v[i]) }) }}
	}
	bce := func(p, y float64) float64 {
		return -y*max(math.Log(p), -100) - (1-y)*max(math.Log1p(-p), -100)
	}
	weights := newNDArray(4)
	for i := range weights.v {
		weights.v[i] = float64(rng.Float32()) + 0.5
	}
	return []computation{
		pairs("mse", x, y, (*batch.Batch).MSE, func(x, y float64) float64 { return (x - y) * (x - y) }),
		pairs("huber", x, y, (*batch.Batch).Huber, func(x, y float64) float64 {
			if d := math.Abs(x - y); d > 1 {
				return d - 0.5
			}
			return (x - y) * (x - y) / 2
		}),
		pairs("bce", p, y, (*batch.Batch).BCE, bce),
		pairs("bce with logits", x, p, (*batch.Batch).BCEWithLogits, func(x, y float64) float64 { return bce(sigmoid(x), y) }),
		pairs("kl", x, p, (*batch.Batch).KLDiv, func(q, p float64) float64 {
			if p == 0 {
				return 0
			}
			return p * (math.Log(p) - q)
		}),
		{"cross entropy", []ndarray{x, labels, weights}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			o, ids := op.LossOpts{Ignore: []int{-100}}, b.Cast(in[1], op.I32)
			each := o
			each.Reduce = op.ReduceNone
			return []batch.Value{b.CrossEntropy(in[0], ids, in[2], each), b.CrossEntropy(in[0], ids, in[2], o), b.CrossEntropy(in[0], ids, batch.None, o)}
		}, func([]ndarray) []ndarray {
			all, weighted, plain, w, n := newNDArray(3, 5), 0.0, 0.0, 0.0, 0.0
			each(all.s, func(i []int) {
				label := int(labels.at(i...))
				if label < 0 {
					return
				}
				sum := 0.0
				for c := range 4 {
					sum += math.Exp(x.at(i[0], c, i[1]))
				}
				loss := math.Log(sum) - x.at(i[0], label, i[1])
				all.set(loss*weights.at(label), i...)
				weighted, w, plain, n = weighted+loss*weights.at(label), w+weights.at(label), plain+loss, n+1
			})
			return []ndarray{all, {[]int{}, []float64{weighted / w}}, {[]int{}, []float64{plain / n}}}
		}},
	}
}

func recurrences(rng *rand.Rand) (list []computation) {
	const steps, n, in, width = 3, 2, 4, 3
	for _, c := range []struct {
		name              string
		gates, directions int
		after             bool
	}{{"rnn", 1, 1, false}, {"gru", 3, 2, false}, {"gru after", 3, 1, true}, {"lstm", 4, 2, false}} {
		d, g := c.directions, c.gates
		operands := []ndarray{normals(rng, steps, n, in), normals(rng, d, g*width, in), normals(rng, d, g*width, width), normals(rng, d, 2*g*width),
			normals(rng, d, n, width), normals(rng, d, n, width), normals(rng, d, 3*width)}
		list = append(list, computation{c.name, operands, func(b *batch.Batch, v []batch.Value) []batch.Value {
			o := op.RecurrentOpts{ResetAfter: c.after}
			var y, h, last batch.Value
			switch g {
			case 1:
				y, h = b.RNN(v[0], v[1], v[2], v[3], v[4], o)
			case 3:
				y, h = b.GRU(v[0], v[1], v[2], v[3], v[4], o)
			case 4:
				y, h, last = b.LSTM(v[0], v[1], v[2], v[3], v[4], v[5], v[6], o)
				return []batch.Value{y, h, last}
			}
			return []batch.Value{y, h}
		}, func(in []ndarray) []ndarray {
			k := network{in[0], in[1], in[2], in[3], in[4], in[5], in[6], c.after}
			y, h, last := k.recur(g)
			return []ndarray{y, h, last}[:2+g/4]
		}})
	}
	return list
}
