package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/incomparable"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// selfTestResult is the result of the self-test of the kernels of one operation.
type selfTestResult struct {
	_ incomparable.Type

	ok  atomic.Bool
	err error // set if the kernels are wrong; under Engine.selfTestMu
}

// untested reports whether o needs no separate test. Elementwise operations other than conversions
// are tested together when the device is opened (in pages, of a CPU only Relu, and of other devices only those without
// functions: see [TestFunctions]); reshape moves nothing; and the reference itself computes operations with neither a
// probe nor a portable kernel.
func untested(o *op.Operation) bool {
	switch o.Class() {
	case op.Elementwise:
		return irhook.SelfTestOf(o) == nil
	case op.Shaped:
		return o == op.Reshape || irhook.SelfTestOf(o) == nil && !portable.Has(o)
	}
	return false
}

// The size classes. Kernels of portable operations depend on the size, so each class is tested
// separately; so is each type of quantised weights. usual is the class of operations whose kernels
// do not depend on the size.
const (
	usual = 1
	sizes = 6
)

// widths are the row lengths with which reductions and row operations are tested, one for each size
// class, and upTo the longest rows of each class.
var (
	widths = [sizes]int{13, 67, 700, 3000, 6000, 20000}
	upTo   = [sizes - 1]int{16, 256, 1024, 4096, 8191}
)

// products has the sizes m, k, n with which products of matrices are tested.
var products = [sizes][3]int{{5, 9, 7}, {5, 9, 7}, {33, 40, 70}, {700, 20, 800}, {700, 20, 800}, {1500, 20, 1500}}

// multiplies reports whether o is a product of matrices.
func multiplies(o *op.Operation) bool {
	c := irhook.SelfTestOf(o)
	return c != nil && c.Product
}

// sizeOf returns the size class of operands.
func sizeOf(o *op.Operation, a *op.Attrs, in []op.Shape) int {
	switch {
	case multiplies(o):
		out, err := o.Shapes(a, in)
		if err != nil {
			return usual
		}
		s := out[0]
		switch n, err := s.Size(); {
		case err != nil || s[len(s)-2] <= 8:
			return usual
		case n < 512<<10:
			return 2
		case n < 2<<20:
			return 3
		}
		return sizes - 1
	case o.Class() == op.Reduction || o.Class() == op.Row:
		_, cols := in[0].Rows()
		if o.Class() == op.Reduction && a.I[0] == op.AllElements {
			cols, _ = in[0].Size()
		}
		for k, most := range upTo {
			if cols <= most {
				return k
			}
		}
		return sizes - 1
	}
	return usual
}

// selfTestOf returns the operation whose test covers o: one kernel reads all views that move
// elements.
func selfTestOf(o *op.Operation) *op.Operation {
	if o.View() && o != op.Reshape && irhook.SelfTestOf(o) == nil {
		return op.Permute
	}
	return o
}

// testKernels is (*Engine).test after [UseSelfTests].
var testKernels func(e *Engine, ctx context.Context, o *op.Operation, size int) error

// UseSelfTests links the tests of operations that are not elementwise. Pages call it before they use one;
// other programs call it before main begins.
func UseSelfTests() { testKernels = (*Engine).test }

// selfTest tests the kernels of o for a size class of operands before their first use on this
// device, except operations that are [untested]: it compares a small case with the reference. A
// device that fails gives an ErrUnsupported for the operation, not wrong results.
func (e *Engine) selfTest(ctx context.Context, o *op.Operation, size int) error {
	if id := o.ID(); id >= 0 && size < sizes && e.selfTests[id][size].ok.Load() {
		return nil
	}
	o = selfTestOf(o)
	if untested(o) {
		return nil
	}
	var p *selfTestResult
	if blocks := blockOperand(o); blocks > 0 {
		if quantise == nil {
			return nil
		}
		p = &e.blockSelfTests[size]
	} else {
		p = &e.selfTests[o.ID()][size]
	}
	if p.ok.Load() {
		return nil
	}
	e.selfTestMu.Lock()
	defer e.selfTestMu.Unlock()
	if p.ok.Load() || p.err != nil {
		return p.err
	}
	if testKernels == nil {
		return driver.ErrUnsupported // package device calls UseSelfTests before it uses such operations
	}
	err := testKernels(e, ctx, o, size)
	switch {
	case err == nil:
		p.ok.Store(true)
	case errors.Is(err, driver.ErrLimit):
		return nil // the case does not fit on the device, so nothing is tested
	case errors.Is(err, ErrWrong):
		p.err = err
	}
	return err
}

// selfTestNode tests the kernel of node n of g before its first use.
func (e *Engine) selfTestNode(ctx context.Context, g *graph.Graph, n *graph.Node) error {
	size := usual
	switch blocks := blockOperand(n.Op); {
	case blocks > 0:
		size = slices.Index(op.QuantTypes(), g.Nodes[n.In[blocks]].Type)
	case e.imm == nil: // kernels of the CPU do not depend on the size
		var in []op.Shape
		for _, i := range n.Inputs() {
			in = append(in, nil)
			if i != graph.Absent {
				in[len(in)-1] = g.Nodes[i].Shape
			}
		}
		size = sizeOf(n.Op, &n.Attrs, in)
	}
	return e.selfTest(ctx, n.Op, size)
}

// ErrWrong is the error of kernels that fail their self-test. It wraps ErrUnsupported.
var ErrWrong = fmt.Errorf("self-test failed: %w", driver.ErrUnsupported)

// blockOperand returns the operand of o that has a quantised type, or 0 for none.
func blockOperand(o *op.Operation) int {
	if c := irhook.SelfTestOf(o); c != nil {
		return c.Blocks
	}
	return 0
}

// operand makes operand i of a test.
func (t *selfTest) operand(i, size int) (*op.Array, Host, error) {
	s, typ := t.shapes[i], op.F32
	if i > 0 && i == t.Index {
		typ = op.I32
	}
	if t.Start {
		typ = op.U32
	}
	x := op.NewArray(s)
	for k := range x.Data {
		x.Data[k] = float64((k*7919+i*5)%23-11) / 4 // exact and unsorted numbers
		switch typ {
		case op.U32:
			x.Data[k] = 1<<32 - 5 // sums wrap around
		case op.I32:
			x.Data[k] = float64((k*5 + 3) % t.shapes[0][0])
		}
		if t.Large && k%9 == 4 {
			x.Data[k] *= 1 << 31
		}
	}
	if t.Dominant && i == 0 {
		rows, cols := s[len(s)-2], s[len(s)-1]
		for k := range x.Data {
			if k/cols%rows == k%cols {
				x.Data[k] += 16 + float64(k%cols)
			}
		}
	}
	if i > 0 && i == t.Blocks {
		return quantise(x, op.QuantTypes()[size])
	}
	h := HostOf(Bytes(make([]uint32, len(x.Data))), typ, s)
	for k, v := range x.Data {
		typ.PutFloat64(h.Data, k, v)
	}
	return x, h, nil
}

// test computes a small case of o and compares it with the reference.
func (e *Engine) test(ctx context.Context, o *op.Operation, size int) error {
	t := &selfTest{o: o}
	if c := irhook.SelfTestOf(o); c != nil {
		t.SelfTest = *c
		t.attrs, _ = c.Attrs.(op.Attrs)
		for _, s := range c.Shapes {
			t.shapes = append(t.shapes, s)
		}
	}
	rows := 0 // number of rows of the result to compare, or 0 for all
	switch {
	case t.Product:
		p := products[size]
		t.shapes = []op.Shape{p[:2], p[1:]}
		rows = 6
	case o.Class() == op.Reduction:
		t.shapes = []op.Shape{{widths[size]}, {widths[size]}}[:len(o.Inputs())]
		t.attrs = o.Defaults()
	case o.Class() == op.Row:
		t.shapes = []op.Shape{{3, widths[size]}}
		t.attrs = o.Defaults()
	}
	in, err := t.operands(size)
	if err != nil {
		return err
	}
	if err := t.compute(rows); err != nil {
		return err
	}
	out, err := t.results()
	if err != nil {
		return err
	}
	g, refs, outs := graphOf(o, &t.attrs, in, out)
	p, err := e.plan(ctx, g, g)
	if err != nil {
		return err
	}
	defer p.Close()
	p.silent = true
	if err := p.Run(ctx, refs, outs, nil); err != nil {
		return err
	}
	if err := t.compare(out); err != nil {
		return fmt.Errorf("%s on %s: %v: %w", o, e.name, err, ErrWrong)
	}
	return nil
}

// selfTest is a test case with its operands and the results of the reference.
type selfTest struct {
	irhook.SelfTest
	o      *op.Operation
	attrs  op.Attrs
	shapes []op.Shape
	arrays []*op.Array
	in     []op.DType
	out    []op.DType
	of     []op.Shape // shapes of the results
	first  int        // first row of the results to compare
	want   []*op.Array
}

// operands makes the operands.
func (t *selfTest) operands(size int) (in []Host, err error) {
	for i := range t.shapes {
		x, h, err := t.operand(i, size)
		if err != nil {
			return nil, err
		}
		in, t.arrays, t.in = append(in, h), append(t.arrays, x), append(t.in, h.Type)
	}
	return in, nil
}

// compute computes the reference. If rows is not 0, it computes only the last rows of a product.
func (t *selfTest) compute(rows int) (err error) {
	if t.out, err = t.o.Types(&t.attrs, t.in); err != nil {
		return err
	}
	if t.of, err = t.o.Shapes(&t.attrs, t.shapes); err != nil {
		return err
	}
	if total := t.shapes[0][0]; rows > 0 && total > rows {
		cols := t.shapes[0][1]
		t.first = total - rows
		t.arrays[0] = &op.Array{Shape: op.Shape{rows, cols}, Data: t.arrays[0].Data[t.first*cols:]}
	}
	if t.want, err = t.o.Reference(&t.attrs, t.arrays, t.in); err != nil {
		return err
	}
	for len(t.out) < len(t.want) {
		t.out = append(t.out, op.I32) // the indices of topk and sort
	}
	return nil
}

// shape returns the shape of a result.
func (t *selfTest) shape(i int) op.Shape { return t.of[min(i, len(t.of)-1)] }

// results returns memory for the results, filled with NaN.
func (t *selfTest) results() (out []Host, err error) {
	for i := range t.want {
		n, err := t.shape(i).Size()
		if err != nil {
			return nil, err
		}
		r := make([]float32, n)
		for k := range r {
			r[k] = float32(math.NaN())
		}
		out = append(out, HostOf(Bytes(r), t.out[i], t.shape(i)))
	}
	return out, nil
}

// compare compares results with the reference.
func (t *selfTest) compare(out []Host) error {
	for i, w := range t.want {
		skip := 0
		if t.first > 0 && len(t.shape(i)) > 0 {
			skip = t.first * t.shapes[1][1]
		}
		for k, v := range w.Data {
			mag := 0.0
			if w.Mag != nil {
				mag = w.Mag[k]
			}
			if err := t.o.Check(t.out[i].Float64(out[i].Data, skip+k), v, mag, t.out[i]); err != nil {
				return fmt.Errorf("element %d of result %d: %v", skip+k, i, err)
			}
		}
	}
	if !t.o.CheckedAsWhole() {
		return nil
	}
	got := make([]*op.Array, len(t.want))
	for i, w := range t.want {
		got[i] = op.NewArray(w.Shape)
		for k := range got[i].Data {
			got[i].Data[k] = t.out[i].Float64(out[i].Data, k)
		}
	}
	return t.o.CheckResults(&t.attrs, t.arrays, got)
}
