package webgpu

import (
	"errors"
	"slices"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// A binding has a maximum size (gpu.Limits.Binding). Larger arrays are processed in windows, as
// several operations over parts of the arrays: elementwise programs over runs of elements, and
// other operations over rows, or over their leading extents. An operation on a single row, or one
// that needs a whole array that is too large, is composed of other requests, which may be divided
// too: see pieces.

// maxWindows is the maximum number of windows of a step.
const maxWindows = 4096

// compute adds the launches that compute a request. in are its operands, followed by the operands
// of the epilogue.
func (e *preparer) compute(r *portable.Request, in, out []arrayRef) error {
	large := int64(0)
	for _, as := range [][]arrayRef{in, out} {
		for _, a := range as {
			large = max(large, a.bytes)
		}
	}
	if n := elementsOf(r); large <= e.d.limits.Binding && !(n > 0 && portable.Ragged(r.Post, n, r.Target)) {
		return e.plan(r, in, out)
	}
	if r.Op != nil && !portable.Has(r.Op) {
		return errNoKernel
	}
	if r.Op != nil && empty(r.Out) {
		return nil
	}
	tooLarge := errNoKernel
	if large > e.d.limits.Binding && !(r.Op != nil && operations.byReference != nil && operations.byReference(r.Op)) {
		tooLarge = fmt.Errorf("an array has %d bytes; a binding has at most %d: %w", large, e.d.limits.Binding, driver.ErrLimit)
	}
	w := &windows{preparer: e, r: r, in: in, out: out, tooLarge: tooLarge}
	steps, local := len(e.steps), e.local
	err := w.cutUp()
	if errors.Is(err, errHalfWord) {
		e.steps, e.local = e.steps[:steps], local
		return w.widened()
	}
	return err
}

// elementsOf returns the number of elements of an elementwise program, or 0 for other requests.
func elementsOf(r *portable.Request) int {
	if r.Op != nil {
		return 0
	}
	n, err := r.Out[0].Shape.Size()
	if err != nil {
		return 0
	}
	return n
}

// cutUp chooses how to divide the request, and computes it.
func (w *windows) cutUp() error {
	r := w.r
	switch {
	case r.Op == nil:
		return w.elements()
	case operations.cutUp == nil:
		return w.tooLarge
	}
	return operations.cutUp(w)
}

// operation is cutUp for an operation that is not elementwise.
func (w *windows) operation() error {
	r := w.r
	if hasLayouts(r) {
		return w.inOrder()
	}
	if r.Op.Class() != op.Reduction || r.Attrs.I[0] != op.AllElements {
		if l, ok := batchAxesOf(r); ok && w.separable(l) {
			return w.rows(l)
		}
	}
	if r.Post != nil {
		return w.unfused()
	}
	return w.pieces()
}

// hasLayouts reports whether arrays of a request have layouts.
func hasLayouts(r *portable.Request) bool {
	is := func(a portable.Array) bool { return a.Layout != nil }
	return slices.ContainsFunc(r.In, is) || slices.ContainsFunc(r.Out, is)
}

// inOrder computes the request with copies of the arrays that have layouts, row by row.
func (w *windows) inOrder() error {
	copied := func(to located, a located, l *op.Layout) error {
		x := operand{portable.Operand{Type: a.Type, Broadcast: op.Strided, N: a.N, Layout: l}, a.at}
		return w.program(to, ir.NewArg(0, irhook.Register(uint8(a.Type))), x)
	}
	sub := *w.r
	sub.In, sub.Out = slices.Clone(w.r.In), slices.Clone(w.r.Out)
	in, out := slices.Clone(w.in), slices.Clone(w.out)
	for i, a := range w.r.In {
		if a.Layout == nil {
			continue
		}
		y, err := w.reserve(a.Type, a.Shape)
		if err == nil {
			err = copied(y, w.given(i), a.Layout)
		}
		if err != nil {
			return err
		}
		sub.In[i], in[i] = y.Array, y.at
	}
	for i, a := range w.r.Out {
		if a.Layout == nil {
			continue
		}
		y, err := w.reserve(a.Type, a.Shape)
		if err != nil {
			return err
		}
		sub.Out[i], out[i] = y.Array, y.at
	}
	if err := w.compute(&sub, in, out); err != nil {
		return err
	}
	for i, a := range w.r.Out {
		if a.Layout == nil {
			continue
		}
		l, ok := a.Layout.Inverse(a.N)
		if !ok {
			return w.tooLarge
		}
		y := located{portable.Array{Type: a.Type, N: a.N}, out[i]}
		if err := copied(w.result(i).shaped(a.N), y, &l); err != nil {
			return err
		}
	}
	return nil
}

// empty reports whether arrays have no elements.
func empty(as []portable.Array) bool {
	for _, a := range as {
		if n, err := a.Shape.Size(); err != nil || n > 0 {
			return false
		}
	}
	return true
}

// windows computes a request part by part.
type windows struct {
	*preparer
	r        *portable.Request
	in, out  []arrayRef
	tooLarge error
}

// fit returns the largest number of elements, at most m, from element i0 on, for which all operands
// can be cut.
func fit(ops []portable.Operand, n, i0, m int) int {
	for range 8 {
		before := m
		for _, o := range ops {
			unit := 1
			switch {
			case o.Broadcast == op.Tiled && o.N > 0:
				unit = o.N
			case o.Broadcast == op.Repeated && o.N > 0:
				unit = n / o.N
			case o.Broadcast == op.Strided && o.Layout.Rank > 0:
				unit = n / o.Layout.F[0].N
			}
			// Stop at the end of a period or run, or take whole periods or runs.
			if left := unit - i0%unit; left < unit || unit > m {
				m = min(m, left)
			} else {
				m -= m % unit
			}
		}
		if m == before {
			return m
		}
	}
	return 0
}

// cut returns the part of an operand for m of n elements, from element i0 on.
func (w *windows) cut(o portable.Operand, a arrayRef, n, i0, m int) (portable.Operand, arrayRef, error) {
	size := int64(o.Type.Size())
	take := func(s op.BroadcastKind, from, count int) (portable.Operand, arrayRef, error) {
		b, err := w.aligned(a.part(int64(from)*size, int64(count)*size))
		return portable.Operand{Type: o.Type, Broadcast: s, N: count}, b, err
	}
	switch o.Broadcast {
	case op.Scalar:
		return o, a, nil
	case op.Tiled:
		if i0%o.N == 0 && m%o.N == 0 {
			return o, a, nil
		}
		if at := i0 % o.N; at+m <= o.N {
			return take(op.Full, at, m)
		}
		return o, a, w.tooLarge
	case op.Repeated:
		run := n / o.N
		if i0%run == 0 && m%run == 0 {
			return take(op.Repeated, i0/run, m/run)
		}
		if i0/run == (i0+m-1)/run {
			return take(op.Scalar, i0/run, 1)
		}
		return o, a, w.tooLarge
	case op.Strided:
		l, ok := o.Layout.Part(i0, m)
		if !ok || a.bytes > w.d.limits.Binding {
			return o, a, w.tooLarge
		}
		return portable.Operand{Type: o.Type, Broadcast: l.BroadcastKind(o.N), N: o.N, Layout: &l}, a, nil
	}
	return take(op.Full, i0, m)
}

// aligned returns an operand at an offset that can be bound. If the offset of a cannot, it copies
// a.
func (w *windows) aligned(a arrayRef) (arrayRef, error) {
	if a.off%max(w.d.limits.StorageAlign, 4) == 0 {
		return a, nil
	}
	if a.off%4 != 0 {
		return a, errHalfWord
	}
	if a.bytes > w.d.limits.Binding {
		return a, w.tooLarge
	}
	there := w.Reserve(a.bytes)
	return there, w.copy(there, a)
}

// window computes one part: a separate request over parts of the arrays.
func (w *windows) window(sub *portable.Request, in, out []arrayRef) error {
	type pair struct{ dst, src arrayRef }
	var back []pair
	for i, a := range out {
		if a.off%max(w.d.limits.StorageAlign, 4) != 0 {
			if a.off%4 != 0 {
				return errHalfWord
			}
			out[i] = w.Reserve(a.bytes)
			back = append(back, pair{a, out[i]})
		}
	}
	if err := w.compute(sub, in, out); err != nil {
		if errors.Is(err, errNoKernel) {
			return w.tooLarge // otherwise the reference would have to compute all of it
		}
		return err
	}
	for _, p := range back {
		if err := w.copy(p.dst, p.src); err != nil {
			return err
		}
	}
	return nil
}

// elements computes an elementwise program over runs of elements.
func (w *windows) elements() error {
	n, err := w.r.Out[0].Shape.Size()
	if err != nil {
		return err
	}
	align := int(max(w.d.limits.StorageAlign, 4))
	most := int(w.d.limits.Binding / 4)
	most -= most % align
	local := w.local
	for i0, count := 0, 0; i0 < n; count++ {
		m := min(n-i0, most)
		if portable.Ragged(w.r.Post, m, w.r.Target) {
			m -= m % align
		}
		m = fit(w.r.Post.In, n, i0, m)
		if m == 0 || count == maxWindows {
			return w.tooLarge
		}
		w.local = local // all windows use the same temporary buffers
		sub := *w.r
		sub.Post = &portable.Epilogue{Exprs: w.r.Post.Exprs}
		in, out := []arrayRef(nil), []arrayRef(nil)
		for i, o := range w.r.Post.In {
			o, a, err := w.cut(o, w.in[i], n, i0, m)
			if err != nil {
				return err
			}
			sub.Post.In, in = append(sub.Post.In, o), append(in, a)
		}
		sub.Out = nil
		for i, o := range w.r.Out {
			size := int64(o.Type.Size())
			sub.Out, out = append(sub.Out, portable.Array{Type: o.Type, Shape: op.Shape{m}}), append(out, w.out[i].part(int64(i0)*size, int64(m)*size))
		}
		if err := w.window(&sub, in, out); err != nil {
			return err
		}
		i0 += m
	}
	return nil
}

// batchAxes has the number of leading extents of each operand and each result that count the rows
// of an operation. It is whole for an array that every row needs.
type batchAxes struct{ in, out []int }

const whole = -1

// batchAxesOf returns the batch axes of a request, or false if it has no independent rows.
func batchAxesOf(r *portable.Request) (batchAxes, bool) {
	if len(r.In) == 0 {
		return batchAxes{}, false
	}
	rank := len(r.In[0].Shape)
	switch r.Op {
	case op.MatMul:
		return matMulAxes(r)
	case op.Gather:
		ids := len(r.In[1].Shape)
		l := sameAxis(r, ids)
		l.in[0] = whole
		l.in[1] = ids
		return l, r.Attrs.I[0] == 0
	case op.Rope:
		l := sameAxis(r, 1)
		for i := range l.in {
			l.in[i] = 1
		}
		if len(l.in) > op.RopeByFrequencies {
			l.in[op.RopeByFrequencies] = whole
		}
		return l, true
	case op.MatVec:
		return sameAxis(r, 1), !op.MatVecOptsOf(&r.Attrs).Trans
	case op.Conv2D:
		return sameAxis(r, 1), true
	case op.Transpose:
		return sameAxis(r, rank-2), true
	case op.MatMulQ, op.TopK:
		return sameAxis(r, rank-1), true
	}
	l := sameAxis(r, max(rank, 1)-1)
	switch r.Op.Class() {
	case op.Row:
		return l, true
	case op.Reduction:
		for i := range l.in {
			l.in[i] = l.in[0]
		}
		return l, true
	}
	return l, false
}

// sameAxis returns the batch axes of a request whose first operand and results have the rows along axis. The other
// operands are needed as a whole.
func sameAxis(r *portable.Request, axis int) batchAxes {
	var l batchAxes
	for range r.In {
		l.in = append(l.in, whole)
	}
	l.in[0] = axis
	for range r.Out {
		l.out = append(l.out, axis)
	}
	return l
}

// matMulAxes is batchAxesOf for products: the batch, or the rows of a single product.
func matMulAxes(r *portable.Request) (batchAxes, bool) {
	rank := len(r.In[0].Shape)
	p, err := op.MatMulOf(&r.Attrs, []op.Shape{r.In[0].Shape, r.In[1].Shape})
	switch {
	case err != nil:
		return batchAxes{}, false
	case p.Batch <= 1:
		return sameAxis(r, rank-1), !op.MatMulOptsOf(&r.Attrs).TransA
	}
	l := sameAxis(r, rank-2)
	if !p.SharedB {
		l.in[1] = len(r.In[1].Shape) - 2
	}
	return l, true
}

// separable reports whether the operation has several independent rows, and the arrays that each
// row needs as a whole can be bound: for several products or images, one at a time suffices, and
// weights are no longer than a row.
func (w *windows) separable(l batchAxes) bool {
	total, _ := split(w.r.Out[0].Shape, l.out[0])
	if total < 2 {
		return false
	}
	switch w.r.Op {
	case op.MatMul, op.MatMulQ, op.MatVec, op.Gather:
		if w.r.Op == op.MatMul && l.out[0] < len(w.r.Out[0].Shape)-1 {
			return true
		}
		for i, a := range w.r.In {
			if l.in[i] == whole && a.Shape != nil && w.in[i].bytes > w.d.limits.Binding {
				return false
			}
		}
	}
	return true
}

// split returns the number of rows of an array, which lead leading extents count, and the elements
// of a row.
func split(s op.Shape, lead int) (rows, each int) {
	rows, each = 1, 1
	for i, d := range s {
		if i < lead {
			rows *= d
		} else {
			each *= d
		}
	}
	return rows, each
}

// rows computes an operation over some of its rows at a time.
func (w *windows) rows(l batchAxes) error {
	r := w.r
	total, each := split(r.Out[0].Shape, l.out[0])
	if each == 0 || total == 0 {
		return w.tooLarge
	}
	// A row that does not fit is a window, which is divided further.
	most := max(w.span(total, w.rowBytes(l, each)...), 1)
	local := w.local
	for row, count := 0, 0; row < total; count++ {
		rows := min(total-row, most)
		if r.Post != nil {
			rows = fit(r.Post.In, total*each, row*each, rows*each) / each
		}
		if rows == total && r.Post != nil {
			return w.unfused()
		}
		if rows == 0 || count == maxWindows || rows == total {
			return w.tooLarge
		}
		w.local = local
		if err := w.someRows(l, row, rows, total, each); err != nil {
			return err
		}
		row += rows
	}
	return nil
}

// rowBytes returns the size of a row in each array that is divided into rows. A row of the result has each elements.
func (w *windows) rowBytes(l batchAxes, each int) (bytes []int64) {
	consider := func(a portable.Array, at arrayRef, lead int) {
		if lead == whole || a.Shape == nil {
			return
		}
		if n, _ := split(a.Shape, lead); n > 0 {
			bytes = append(bytes, at.bytes/int64(n))
		}
	}
	for i, a := range w.r.In {
		consider(a, w.in[i], l.in[i])
	}
	for i, a := range w.r.Out {
		consider(a, w.out[i], l.out[i])
	}
	if w.r.Post != nil {
		for _, o := range w.r.Post.In {
			if o.Broadcast == op.Full {
				bytes = append(bytes, int64(each*o.Type.Size()))
			}
		}
	}
	return bytes
}

// someRows computes rows of the total rows, from row on. A row of the result has each elements.
func (w *windows) someRows(l batchAxes, row, rows, total, each int) error {
	r := w.r
	sub := *r
	if r.Op == op.Rope {
		sub.Attrs.I[0] += row // the first number of the window
	}
	var in, out []arrayRef
	sub.In, sub.Out = nil, nil
	part := func(x portable.Array, a arrayRef, lead int) (portable.Array, arrayRef) {
		if x.Shape == nil {
			return x, a
		}
		if lead == whole {
			if r.Op == op.MatMul && len(x.Shape) > 2 {
				x.Shape = x.Shape[len(x.Shape)-2:] // remove batch extents of 1
			}
			return x, a
		}
		n, _ := split(x.Shape, lead)
		bytes := a.bytes / int64(max(n, 1))
		return portable.Array{Type: x.Type, Shape: append(op.Shape{rows}, x.Shape[lead:]...)}, a.part(int64(row)*bytes, int64(rows)*bytes)
	}
	for i := range r.In {
		x, a := part(r.In[i], w.in[i], l.in[i])
		if x.Shape != nil && l.in[i] != whole {
			var err error
			if a, err = w.alignedOr(a); err != nil {
				return err
			}
		}
		sub.In, in = append(sub.In, x), append(in, a)
	}
	if r.Post != nil {
		sub.Post = &portable.Epilogue{Exprs: r.Post.Exprs}
		for i, o := range r.Post.In {
			o, a, err := w.cut(o, w.in[len(r.In)+i], total*each, row*each, rows*each)
			if err != nil {
				return err
			}
			sub.Post.In, in = append(sub.Post.In, o), append(in, a)
		}
	}
	for i := range r.Out {
		x, a := part(r.Out[i], w.out[i], l.out[i])
		sub.Out, out = append(sub.Out, x), append(out, a)
	}
	return w.window(&sub, in, out)
}

// span returns the number of rows, at most total, that fit into a binding; bytes has the size of a
// row in each array. If possible, the number is such that the next row begins at an offset that can
// be bound. It returns 0 if a single row does not fit.
func (w *windows) span(total int, bytes ...int64) int {
	most, unit := total, 1
	for _, n := range bytes {
		if n > 0 {
			most = int(min(int64(most), w.d.limits.Binding/n))
			align := max(w.d.limits.StorageAlign, 4)
			unit = lcm(unit, int(align/gcd(n%align, align)))
		}
	}
	if most >= unit {
		return most - most%unit
	}
	return most - most%min(2, max(most, 1)) // an even number, so that half floats end at words
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func lcm(a, b int) int { return a / int(gcd(int64(a), int64(b))) * b }
