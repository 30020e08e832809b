//go:build cgo && !nowebgpu && !js

package devicetest

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/op"
)

// bound is the number of float32 elements in a binding in the tests below.
const bound = 128

func smallBindings(t *testing.T) {
	wear(t, &mask{change: func(a *gpu.Adapter) { a.Binding, a.StorageAlign = 4*bound, 64 }})
}

// TestWebGPUCut runs every operation that is not elementwise over arrays around the size of a binding and of several
// bindings. No operation may return an error.
func TestWebGPUCut(t *testing.T) {
	smallBindings(t)
	dev := start(t, openMasked)
	free := deviationsOf(t.Context(), dev)
	seed := testutil.Seed(t)
	g, some := newGenerator(seed), firstAndSome(seed, 1, 3)
	try := func(c Case) {
		t.Helper()
		if short() && !some(&c) {
			return
		}
		_, err := c.run(t.Context(), dev, free)
		if err != nil && !lacks(dev, c.In[0].Type, err) {
			t.Errorf("%v: %v", &c, err)
		}
	}
	tensor := func(value func(op.DType) float64, s ...int) Tensor { return g.tensor(op.F32, s, value) }
	lengths := []int{bound - 1, bound, bound + 1, 3*bound + 5}
	for _, o := range op.Catalogue() {
		if notCut(o) {
			continue
		}
		switch o.Class() {
		case op.Reduction:
			g.cutReductions(o, lengths, try)
		case op.Row:
			g.cutRows(o, lengths, try)
		}
	}
	half := func(s ...int) Tensor { return g.tensor(op.F16, s, g.tame) }
	few := func(op.DType) float64 { return float64(g.IntN(4)) }
	ids := func(rows int, s ...int) Tensor { return g.ids(s, rows) }
	positions := func(n int) Tensor {
		t := g.tensor(op.I32, op.Shape{n}, g.tame)
		for i := range t.Data {
			t.Data[i] = float64(g.IntN(5000))
		}
		return t
	}
	transA, transB := op.MatMulOpts{TransA: true}, op.MatMulOpts{TransB: true}
	// Small products, so that few kernels are compiled.
	for _, c := range []Case{
		{Op: op.TopK, Options: op.TopKOpts{K: 7}, In: []Tensor{tensor(few, 2, 4*bound+3)}},
		{Op: op.TopK, Options: op.TopKOpts{K: 7}, In: []Tensor{tensor(g.wild, 3*bound)}},
		{Op: op.TopK, Options: op.TopKOpts{K: 7}, In: []Tensor{half(1, 4*bound+2)}},
		{Op: op.TopK, Options: op.TopKOpts{K: 7}, In: []Tensor{half(3, 2*bound+1)}},
		{Op: op.TopK, Options: op.TopKOpts{K: bound}, In: []Tensor{tensor(g.tame, 2*bound)}},
		{Op: op.Gather, In: []Tensor{tensor(g.wild, 300, 5), ids(300, 2, 70)}},
		{Op: op.Gather, In: []Tensor{tensor(g.tame, bound+1, 1), ids(bound+1, 3)}},
		{Op: op.Gather, In: []Tensor{half(401, 3), ids(401, 31)}},
		{Op: op.Gather, In: []Tensor{g.quantised(op.Q8_0, op.Shape{65, 64}), ids(65, 7)}},
		{Op: op.Transpose, In: []Tensor{tensor(g.wild, 2, 33, 41)}},
		{Op: op.Transpose, In: []Tensor{tensor(g.wild, 1, 2*bound+1)}},
		{Op: op.Transpose, In: []Tensor{half(35, 47)}},
		{Op: op.Transpose, In: []Tensor{g.tensor(op.I32, op.Shape{29, 70}, g.wild)}},
		// Rows of a, then terms; columns; terms of both; columns of a; rows; a part for each matrix.
		{Op: op.MatMul, In: []Tensor{tensor(g.tame, 7, 101), tensor(g.tame, 101, 9), tensor(g.tame, 9)}, Options: op.MatMulOpts{Act: op.Relu}},
		{Op: op.MatMul, In: []Tensor{tensor(g.tame, 3, 70), tensor(g.tame, 33, 70), tensor(g.tame, 33)}, Options: transB},
		{Op: op.MatMul, In: []Tensor{tensor(g.tame, 90, 7), tensor(g.tame, 8, 90)}, Options: op.MatMulOpts{TransA: true, TransB: true}},
		{Op: op.MatMul, In: []Tensor{tensor(g.tame, 3, 8), tensor(g.tame, 3, 81)}, Options: transA},
		{Op: op.MatMul, In: []Tensor{tensor(g.tame, 8, 3), tensor(g.tame, 3, 81)}},
		{Op: op.MatMul, In: []Tensor{tensor(g.tame, 2, 5, 61), tensor(g.tame, 61, 9)}},
		{Op: op.MatMul, In: []Tensor{tensor(g.tame, 1, 3), tensor(g.tame, 3, bound+9)}},
		{Op: op.MatMul, In: []Tensor{half(3, 101), half(101, 13), half(13)}, Options: op.MatMulOpts{Act: op.Relu}},
		{Op: op.MatVec, In: []Tensor{tensor(g.tame, 65, 63), tensor(g.tame, 63)}},
		{Op: op.MatVec, In: []Tensor{tensor(g.tame, 129, 31), tensor(g.tame, 129)}, Options: op.MatVecOpts{Trans: true}},
		{Op: op.MatVec, In: []Tensor{tensor(g.tame, 3, bound+1), tensor(g.tame, bound+1)}},
		{Op: op.MatMulQ, In: []Tensor{tensor(g.tame, 3, 64), g.quantised(op.Q8_0, op.Shape{70, 64}), tensor(g.tame, 70)}, Options: op.MatMulQOpts{Act: op.Relu}},
		{Op: op.MatMulQ, In: []Tensor{tensor(g.tame, 9, 64), g.quantised(op.Q8_0, op.Shape{7, 64})}},
		// Windows, then channels; groups.
		{Op: op.Conv2D, In: []Tensor{tensor(g.tame, 1, 5, 9, 8), tensor(g.tame, 3, 5, 3, 3), tensor(g.tame, 3)}, Options: op.Conv2DOpts{Pad: [2]int{1, 1}, Act: op.Relu}},
		{Op: op.Conv2D, In: []Tensor{tensor(g.tame, 2, 6, 7, 5), tensor(g.tame, 9, 2, 3, 2)}, Options: op.Conv2DOpts{Groups: 3, Stride: [2]int{1, 2}}},
		{Op: op.Conv2D, In: []Tensor{half(1, 16, 9, 9), half(4, 16, 1, 1), half(4)}},
		// Heads of keys.
		{Op: op.Attention, In: []Tensor{tensor(g.tame, 2, 4, 2, 16), tensor(g.tame, 2, 2, 3, 16), tensor(g.tame, 2, 2, 3, 16)}, Options: op.AttentionOpts{Causal: true}},
		{Op: op.Attention, In: []Tensor{tensor(g.tame, 5, 3, 32), tensor(g.tame, 5, 3, 32), tensor(g.tame, 5, 3, 32)}, Options: op.AttentionOpts{Causal: true, Scale: 0.3}},
		{Op: op.Rope, In: []Tensor{tensor(g.tame, 70, 2, 8)}, Options: op.RopeOpts{Start: -20}},
		{Op: op.Rope, In: []Tensor{tensor(g.tame, 70, 2, 8), positions(70)}, Options: op.RopeOpts{Interleaved: true}},
	} {
		try(c)
	}
	// Operands that broadcast along inner axes.
	try(Case{Op: op.Add, In: []Tensor{tensor(g.tame, 9, 1, bound/10), tensor(g.tame, 5, 1)}})
	try(Case{Op: op.Mul, In: []Tensor{tensor(g.tame, bound/4, 1), tensor(g.tame, 1, 13)}})
}

// cutReductions makes cases of a reduction of one row that is several parts.
func (g *generator) cutReductions(o *op.Operation, lengths []int, try func(c Case)) {
	put := func(rows bool, opts Options, d op.DType, s op.Shape, value func(op.DType) float64, special map[int]float64) {
		c := Case{Op: o, Options: opts, Rows: rows}
		for range o.Inputs() {
			c.In = append(c.In, g.tensor(d, s, value))
		}
		for i, v := range special {
			c.In[0].Data[i] = v
		}
		try(c)
	}
	long := lengths[len(lengths)-1]
	put(false, nil, op.F32, op.Shape{3, bound + 1}, g.tame, nil)
	put(true, nil, op.F32, op.Shape{3, bound + 1}, g.tame, nil)
	if o == op.Var || o == op.ArgMin || o == op.Sum {
		for i, n := range lengths {
			put(i%2 == 1, nil, op.F32, op.Shape{n}, g.tame, nil)
		}
		put(false, nil, op.F16, op.Shape{2*bound + 2}, g.tame, nil)
		put(false, nil, op.F16, op.Shape{2*bound + 1}, g.tame, nil)
		put(true, nil, op.F16, op.Shape{5, 101}, g.tame, nil)
	}
	// Equal extremes in every part.
	put(false, nil, op.F32, op.Shape{long}, func(op.DType) float64 { return float64(g.IntN(3)) }, nil)
	put(false, nil, op.F32, op.Shape{long}, func(op.DType) float64 { return math.Copysign(0, float64(g.IntN(2))-0.5) }, nil)
	for _, at := range []int{0, bound, long - 1} {
		put(false, nil, op.F32, op.Shape{long}, g.tame, map[int]float64{at: math.NaN()})
		put(false, nil, op.F32, op.Shape{long}, g.tame, map[int]float64{at: math.Inf(1 - 2*(at%2))})
	}
	put(false, nil, op.F32, op.Shape{long}, g.tame, map[int]float64{bound + 7: math.NaN(), 2*bound + 3: math.NaN(), 5: math.Inf(1)})
	if o == op.Var {
		put(false, op.VarOpts{DDOF: 1}, op.F32, op.Shape{long}, g.tame, nil)
		put(false, op.VarOpts{DDOF: long}, op.F32, op.Shape{long}, g.tame, nil)
		// Parts with very different and with nearly equal numbers far from 0, and a sum beyond the range.
		put(false, nil, op.F32, op.Shape{long}, func(d op.DType) float64 { return d.Round(1e4 + g.NormFloat64()) }, nil)
		put(false, nil, op.F32, op.Shape{long}, func(op.DType) float64 { return 3e38 }, nil)
		i := 0
		put(false, nil, op.F32, op.Shape{long}, func(d op.DType) float64 { i++; return d.Round(float64(i / bound * 1000)) }, nil)
	}
}

// cutRows makes cases of a row operation with rows that are several parts.
func (g *generator) cutRows(o *op.Operation, lengths []int, try func(c Case)) {
	put := func(d op.DType, s op.Shape, value func(op.DType) float64, weights int, special map[int]float64) {
		c := Case{Op: o, In: []Tensor{g.tensor(d, s, value)}}
		for i := range len(o.Inputs()) - 1 {
			if weights>>i&1 != 0 {
				for len(c.In) <= i {
					c.In = append(c.In, Tensor{})
				}
				c.In = append(c.In, g.tensor(d, s[len(s)-1:], g.tame))
			}
		}
		for i, v := range special {
			c.In[0].Data[i] = v
		}
		try(c)
	}
	long := lengths[len(lengths)-1]
	wide := func(d op.DType) float64 { return d.Round(g.NormFloat64() * 30) }
	for i, n := range lengths {
		if n > bound || o == op.LayerNorm || o == op.Cumsum {
			put(op.F32, op.Shape{n}, g.tame, i, nil)
		}
	}
	put(op.F32, op.Shape{3, bound + 1}, wide, 3, nil)
	// Half floats in parts that are whole words, and in parts that are not.
	put(op.F16, op.Shape{2, bound + 1}, g.tame, 3, nil)
	put(op.F16, op.Shape{5, 101}, g.tame, 3, nil)
	put(op.F16, op.Shape{2*bound + 1}, g.tame, 3, nil)
	if o == op.Cumsum {
		put(op.F16, op.Shape{2*bound + 2}, g.tame, 0, nil)
	}
	put(op.F32, op.Shape{long}, func(d op.DType) float64 { return d.Round(50 + g.NormFloat64()) }, 0, nil)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		put(op.F32, op.Shape{2, long}, g.tame, 0, map[int]float64{bound + 9: v})
	}
	put(op.F32, op.Shape{bound + 1}, func(op.DType) float64 { return math.Inf(-1) }, 0, nil)
	put(op.F32, op.Shape{bound + 1}, func(op.DType) float64 { return -1000 }, 0, nil)
}

// TestWebGPUCutHalves stores results that are computed in parts into larger arrays. The parts
// are not a whole number of words.
func TestWebGPUCutHalves(t *testing.T) {
	smallBindings(t)
	dev := start(t, openMasked)
	free := deviationsOf(t.Context(), dev)
	g := newGenerator(testutil.Seed(t))
	half := func(s ...int) Tensor { return g.tensor(op.F16, s, g.tame) }
	for i, c := range []Case{
		{Op: op.Relu, In: []Tensor{half(2*bound + 1)}},
		{Op: op.Add, In: []Tensor{half(5, 101), half(101)}},
		{Op: op.Mul, In: []Tensor{half(5, 101), half(5, 1)}},
		{Op: op.Softmax, In: []Tensor{half(5, 101)}},
		{Op: op.LayerNorm, In: []Tensor{half(7, 63), half(63), half(63)}},
		{Op: op.RMSNorm, In: []Tensor{half(2*bound + 1), half(2*bound + 1)}},
		{Op: op.Transpose, In: []Tensor{half(35, 47)}},
		{Op: op.Gather, In: []Tensor{half(401, 3), g.ids(op.Shape{101}, 401)}},
		{Op: op.MatMul, In: []Tensor{half(31, 9), half(9, 13)}},
	} {
		if err := c.runBatch(t.Context(), dev, free); err != nil {
			t.Errorf("%v: %v", &c, err)
		}
		for _, at := range []int{0, 2, 32}[i%2:] { // 32 are the alignment
			if err := storedAt[op.Float16](t, dev, free, &c, at); err != nil {
				t.Errorf("%v, stored at %d: %v", &c, at, err)
			}
		}
	}
}

// TestWebGPUCutFused compares chains that end with operations in parts with the results of
// the CPU device.
func TestWebGPUCutFused(t *testing.T) {
	smallBindings(t)
	dev := start(t, openMasked)
	cpu, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer cpu.Close()
	g := newGenerator(testutil.Seed(t))
	numbers := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(g.NormFloat64())
		}
		return x
	}
	long, square, cols, one := numbers(3*bound+5), numbers(33*21), numbers(33), numbers(1)
	for name, record := range map[string]func(b *batch.Batch) batch.Value{
		"softmax": func(b *batch.Batch) batch.Value {
			x := b.Upload(long)
			return b.Add(b.Scale(b.Softmax(x), 3), b.Relu(x))
		},
		"var":    func(b *batch.Batch) batch.Value { return b.Mul(b.Sqrt(b.Var(b.Upload(long))), b.Upload(one)) },
		"mean":   func(b *batch.Batch) batch.Value { return b.Add(b.Mean(b.Upload(long)), b.Upload(one)) },
		"argmax": func(b *batch.Batch) batch.Value { return b.Scale(b.Cast(b.ArgMax(b.Upload(long)), op.F32), 0.5) },
		"cumsum": func(b *batch.Batch) batch.Value { x := b.Upload(long); return b.Mul(b.Cumsum(x), x) },
		"matmul": func(b *batch.Batch) batch.Value {
			y := b.MatMul(b.Upload(square, 21, 33), b.Upload(square, 33, 21), batch.None, op.MatMulOpts{Act: op.Gelu})
			return b.Tanh(b.Add(y, b.Upload(square[:21*21], 21, 21)))
		},
		"norm, rows": func(b *batch.Batch) batch.Value {
			return b.Add(b.RMSNorm(b.Upload(square, 21, 33), batch.None), b.Upload(cols))
		},
		"transpose": func(b *batch.Batch) batch.Value {
			return b.Add(b.Transpose(b.Upload(square, 21, 33)), b.Upload(square, 33, 21))
		},
	} {
		var got [2][]float32
		for i, d := range []*device.Device{dev, cpu} {
			b := batch.New(d)
			y := record(b)
			if err := b.Execute(t.Context()); err != nil {
				t.Fatalf("%s on %v: %v", name, d, err)
			}
			if got[i], err = batch.Read[float32](t.Context(), b, y); err != nil {
				t.Fatalf("%s on %v: %v", name, d, err)
			}
		}
		for i, want := range got[1] {
			if d := math.Abs(float64(got[0][i] - want)); !(d <= 1e-4*(1+math.Abs(float64(want)))) {
				t.Errorf("%s: element %d is %v, not %v", name, i, got[0][i], want)
				break
			}
		}
	}
}

// TestWebGPUUncut checks that operations which are too large even in parts are refused with
// an error that has the size, and that the device works afterwards.
func TestWebGPUUncut(t *testing.T) {
	smallBindings(t)
	dev := start(t, openMasked)
	g := newGenerator(testutil.Seed(t))
	tensor := func(s ...int) Tensor { return g.tensor(op.F32, s, g.tame) }
	for _, c := range []Case{
		{Op: op.Attention, In: []Tensor{tensor(2, 4, 8), tensor(1, 90, 8), tensor(1, 90, 8)}},
		{Op: op.Attention, In: []Tensor{tensor(3, 2, 32), tensor(1, 3, 32), tensor(1, 3, 32)}},
		{Op: op.Conv2D, In: []Tensor{tensor(1, 1, 12, 12), tensor(1, 1, 2, 2)}},
		{Op: op.Rope, In: []Tensor{tensor(1, 2, bound)}},
	} {
		_, err := c.run(t.Context(), dev, deviations{})
		if !errors.Is(err, device.ErrLimit) || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%v: %v", &c, err)
		}
	}
	x := make([]float32, 2*bound)
	if s, err := dev.Sum(t.Context(), x); err != nil || s != 0 {
		t.Errorf("%v %v", s, err)
	}
}

// TestWebGPUCutLayouts tests attention with layouts of operands and results, and with arrays that are larger than a
// binding.
func TestWebGPUCutLayouts(t *testing.T) {
	smallBindings(t)
	dev := start(t, openMasked)
	g := newGenerator(testutil.Seed(t))
	const heads, head = 2, 4
	for _, s := range []struct {
		tq, tk int
		keys   bool // the operands have layouts; otherwise the result has one
	}{{24, 5, true}, {7, bound / 4, false}} {
		q := g.tensor(op.F32, op.Shape{heads, s.tq, head}, g.tame)
		kv := g.tensor(op.F32, op.Shape{s.tk, heads, head}, g.tame)
		if !s.keys {
			kv.Shape = op.Shape{heads, s.tk, head}
		}
		run := func(copied bool) []float32 {
			b := batch.New(dev)
			x := arrayOf(kv).upload(b, kv.Shape)
			if s.keys {
				x = b.Permute(x, 1, 0, 2)
				if copied {
					x = b.Abs(x)
				}
			}
			y := b.Attention(arrayOf(q).upload(b, q.Shape), x, x, batch.AttentionInputs{})
			if !s.keys {
				if copied {
					y = b.Sqrt(b.Square(y)) // a step of its own
				}
				y = b.Permute(y, 1, 0, 2)
			}
			out := make([]float32, s.tq*heads*head)
			batch.ReadInto(b, y, out)
			if err := b.Execute(t.Context()); err != nil {
				t.Fatal(err)
			}
			return out
		}
		for i := range kv.Data {
			kv.Data[i] = math.Abs(kv.Data[i])
		}
		got, want := run(false), run(true)
		for i, v := range want {
			if d := math.Abs(float64(v - got[i])); !(d <= 1e-5*(1+math.Abs(float64(v)))) {
				t.Fatalf("%v: element %d is %v in layouts, %v in order", s, i, got[i], v)
			}
		}
	}
}
