package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/opcase"
	"github.com/rayo-go/rayo/op"
)

// The catalogue group has every operation that is not in the other tables. It runs each over
// arrays of one size, as a plan over slices that is replayed.

// catalogueSize is the number of elements for operations that accept any number of elements.
const catalogueSize = 1_000_000

// catalogueCells returns the cells of the operations that are not in measured.
func catalogueCells(measured []string) (cs []cell) {
	for _, o := range op.Catalogue() {
		if slices.Contains(measured, o.Name()) {
			continue
		}
		for _, t := range threadCounts {
			cs = append(cs, cell{Op: o.Name(), N: catalogueSize, Threads: t})
		}
	}
	return cs
}

// caseOf returns the case of a cell of the group, or false.
func caseOf(c cell) (opcase.Case, bool) {
	o := op.Lookup(c.Op)
	if o == nil || c.N != catalogueSize || slices.Contains(arrayOps, c.Op) || c.M != 0 {
		return opcase.Case{}, false
	}
	return opcase.Of(o, c.N)
}

// peersOf has the systems that have an operation, for operations that not all systems have.
var peersOf = map[string][]string{
	"conv2d": {"torch"}, "attention": {"torch"}, "topk": {"torch"}, "sort": {"torch"}, "mish": {"torch"}, "hard_swish": {"torch"},
	"matmul_q": {}, "matmul_experts": {}, "rope": {}, "iota": {}, "threefry": {}, "bitcast_f32": {}, "bitcast_i32": {}, "bitcast_u32": {}, "slice_at": {}, "update": {}, "celu": {"torch"}, "hard_sigmoid": {"torch"}, "shrink": {"torch"},
	"lu": {"torch"}, "solve_triangular": {"torch"}, "threshold": {"torch"}, "prelu": {"torch"}, "softsign": {"torch"}, "erfinv": {"torch"}, "cbrt": {"numpy"},
	"logsumexp": {"torch"}, "logcumsumexp": {"torch"},
}

// A domain maps operands to an interval: to |x|·Scale + Offset if Abs is set, and to
// x·Scale + Offset otherwise, in float32. Its zero value does not change operands.
type domain struct {
	Abs    bool    `json:"abs"`
	Scale  float32 `json:"scale"`
	Offset float32 `json:"offset"`
	// Diagonal is added to the diagonal of the first operand, which must then be square.
	Diagonal float32 `json:"diagonal"`
}

var (
	positive = domain{Abs: true, Scale: 1, Offset: 0.5}
	unit     = domain{Scale: 0.24} // inside (-1, 1): inputs are in [-4, 4)
	aboveOne = domain{Abs: true, Scale: 1, Offset: 1}
	dominant = domain{Scale: 1, Diagonal: 4096} // a positive definite matrix that is far from singular
)

// domains has the domains of operations that are not defined everywhere, so that benchmarks
// do not measure NaN. Peers receive the domain with each request.
var domains = map[string]domain{
	"log": positive, "log2": positive, "log10": positive, "log1p": positive, "sqrt": positive, "rsqrt": positive, "pow": positive,
	"asin": unit, "acos": unit, "atanh": unit, "erfinv": unit, "acosh": aboveOne,
	"cholesky": dominant, "lu": dominant, "solve": dominant, "solve_triangular": dominant,
	"cumprod": {Abs: true, Scale: 1e-6, Offset: 1}, "prod": {Abs: true, Scale: 1e-6, Offset: 1}, // of a million factors
}

func (d domain) apply(x float32) float32 {
	if d == (domain{}) {
		return x
	}
	if d.Abs {
		x = max(x, -x)
	}
	if d.Scale == 1 && d.Offset == 0 {
		return x
	}
	return float32(x*d.Scale) + d.Offset // the conversion rounds the product, because peers do not fuse it with the sum
}

// element returns element j of operand i: an input of all benchmarks, mapped to the domain of the
// operation, or an index of a row of the first operand.
func element(k *opcase.Case, i, j int) float64 {
	switch {
	case k.Types[i] == op.I32 || k.Types[i] == op.U32:
		return float64(j * 7919 % k.Shapes[0][0])
	case k.Types[i] == op.Bool:
		return map[bool]float64{true: 1}[input(j, i+1) > 0]
	case k.Types[i].Quantized():
		return 0
	}
	d := domains[k.Op.Name()]
	x := d.apply(float32(input(j, i+1)))
	if s := k.Shapes[i]; d.Diagonal != 0 && i == 0 && j%(s[len(s)-1]+1) == 0 {
		x += d.Diagonal
	}
	return float64(x)
}

// prepareCase records a case and compiles it.
func (r *rayo) prepareCase(k *opcase.Case, dev *device.Device) (prepared, error) {
	b := batch.New(dev)
	var in []batch.Value
	for i, s := range k.Shapes {
		n, err := s.Size()
		if err != nil {
			return prepared{}, err
		}
		switch t := k.Types[i]; {
		case t.Quantized():
			bytes, err := t.Bytes(s)
			if err != nil {
				return prepared{}, err
			}
			in = append(in, b.UploadBlocks(make([]byte, bytes), t, s...))
		case t == op.I32:
			ids := make([]int32, n)
			for j := range ids {
				ids[j] = int32(element(k, i, j))
			}
			in = append(in, batch.Upload(b, ids, s...))
		case t == op.U32:
			x := make([]uint32, n)
			for j := range x {
				x[j] = uint32(element(k, i, j))
			}
			in = append(in, batch.Upload(b, x, s...))
		case t == op.Bool: // peers also compute the operand by a comparison
			in = append(in, b.Greater(b.Upload(alloc(n, i+1), s...), b.Const(0)))
		default:
			x := alloc(n, 0)
			for j := range x {
				x[j] = float32(element(k, i, j))
			}
			in = append(in, b.Upload(x, s...))
		}
	}
	y := k.Record(b, in)
	n, err := y.Shape().Size()
	if err != nil || b.Err() != nil {
		return prepared{}, fmt.Errorf("%v: %w", k.Op, b.Err())
	}
	check := get(b, y, n)
	plan, err := b.Compile(r.ctx)
	if err != nil {
		return prepared{}, err
	}
	return choose([]form{{"plan.Run", func() error { return plan.Run(r.ctx) }}}, check)
}

// get reads y into a slice of its type, and returns a function that returns its first and last elements.
func get(b *batch.Batch, y batch.Value, n int) func() []float64 {
	switch y.Type() {
	case op.F16:
		dst := make([]op.Float16, n)
		batch.ReadInto(b, y, dst)
		return endsOf(n, func(i int) float64 { return float64(dst[i].Float32()) })
	case op.U32:
		dst := make([]uint32, n)
		batch.ReadInto(b, y, dst)
		return endsOf(n, func(i int) float64 { return float64(dst[i]) })
	case op.I32:
		dst := make([]int32, n)
		batch.ReadInto(b, y, dst)
		return endsOf(n, func(i int) float64 { return float64(dst[i]) })
	case op.Bool:
		dst := make([]uint32, n)
		batch.ReadInto(b, y, dst)
		return endsOf(n, func(i int) float64 { return float64(dst[i]) })
	}
	dst := alloc(n, 0)
	batch.ReadInto(b, y, dst)
	return endsOf(n, func(i int) float64 { return float64(dst[i]) })
}

func endsOf(n int, at func(i int) float64) func() []float64 {
	return func() []float64 { return []float64{at(0), at(n / 2), at(n - 1)} }
}

// truths caches the results of the references of cases, because a reference takes as long
// as a measurement.
var truths sync.Map // from an operation's name to [2][]float64: the ends of the result, and their scales of errors

// caseReference returns the first and last elements of the result of a case in float64, and the
// numbers to which rounding errors are relative.
func caseReference(k *opcase.Case) (want, scale []float64) {
	if v, ok := truths.Load(k.Op.Name()); ok {
		w := v.([2][]float64)
		return w[0], w[1]
	}
	var in []*op.Array
	for i, s := range k.Shapes {
		x := op.NewArray(s)
		for j := range x.Data {
			x.Data[j] = element(k, i, j)
		}
		in = append(in, x)
	}
	a := k.Attrs()
	y, err := k.Op.Reference(&a, in, k.Types)
	if err != nil {
		return nil, nil
	}
	for _, i := range []int{0, len(y[0].Data) / 2, len(y[0].Data) - 1} {
		size := 1.0
		if y[0].Mag != nil {
			size = y[0].Mag[i]
		}
		want, scale = append(want, y[0].Data[i]), append(scale, size)
	}
	truths.Store(k.Op.Name(), [2][]float64{want, scale})
	return want, scale
}

// caseBytes is the minimum memory traffic of a case.
func caseBytes(k *opcase.Case) float64 {
	total := 0
	add := func(t op.DType, s op.Shape) {
		n, _ := t.Bytes(s)
		total += n
	}
	for i, s := range k.Shapes {
		add(k.Types[i], s)
	}
	a := k.Attrs()
	types, err := k.Op.Types(&a, k.Types)
	shapes, err2 := k.Op.Shapes(&a, k.Shapes)
	if err == nil && err2 == nil {
		add(types[0], shapes[0])
	}
	return float64(total)
}

// catalogueTable returns a table with a line for each operation that is not in the other tables.
func (r *results) catalogueTable() string {
	var b strings.Builder
	for _, c := range catalogueCells(measuredElsewhere()) {
		k, ok := caseOf(c)
		rayo := r.of(c, "rayo")
		if !ok || rayo == nil {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("| operation | size | threads | rayo | GB/s | NumPy | ÷ rayo | q25 | PyTorch | ÷ rayo | q25 |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %.3g | %s |\n", c.Op, k.Size, c.Threads, timeOf(rayo), caseBytes(&k)/rayo.median(), r.beside(c, "numpy", "torch"))
	}
	return b.String()
}

// measuredElsewhere are the operations that other tables have.
func measuredElsewhere() []string { return append(slices.Clone(arrayOps), "matmul") }
