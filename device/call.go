package device

import (
	"context"
	"math"
	"sync"
	"time"
	"unsafe"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

// pick returns the engine that runs a one-shot call of o.
func (d *Device) pick(o *op.Operation, a *op.Attrs, in, out []engine.Host) *engine.Engine {
	if d.route == nil {
		return d.engine()
	}
	return d.route.Pick(o, engine.WorkOf(o, a, in, out))
}

// flat is the amount of work of an elementwise operation or reduction with the given number of
// arrays of n elements.
func flat(n, arrays int) engine.Work {
	return engine.Work{Bytes: 4 * int64(n) * int64(arrays), Flops: float64(n)}
}

// routed runs a synchronous call on the faster device. It measures calls until it knows which
// device is faster.
func (d *Device) routed(o *op.Operation, w engine.Work, call func(*engine.Engine) error) error {
	if d.route == nil {
		return call(d.engine())
	}
	e := d.route.Pick(o, w)
	if d.route.Settled(o, w) {
		return call(e)
	}
	start := time.Now()
	err := call(e)
	if err == nil {
		d.route.Observe(e, o, w, time.Since(start))
	}
	return err
}

// share reports whether two slices have memory in common, and whether they are the same slice.
func share(a, b []float32) (some, all bool) {
	if len(a) == 0 || len(b) == 0 {
		return false, false
	}
	a0, b0 := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if a0 == b0 && len(a) == len(b) {
		return true, true
	}
	return a0 < b0+uintptr(len(b))*4 && b0 < a0+uintptr(len(a))*4, false
}

// inPlace returns ErrOverlap if dst shares memory with x, operand i of o, and is not the same slice
// as x.
func inPlace(o *op.Operation, i int, dst, x []float32) error {
	if some, all := share(dst, x); some && !all {
		return fmt.Errorf("dst overlaps %s partially: dst must be %[1]s itself or share no memory with it: %w", o.Inputs()[i], ErrOverlap)
	}
	return nil
}

// checkElementwise checks a call of an elementwise operation on slices.
func checkElementwise(o *op.Operation, a *op.Attrs, dst, x, y, z []float32) error {
	if o == nil {
		return ErrUnsupported
	}
	if err := o.Err(); err != nil {
		return err
	}
	if err := a.Err(); err != nil {
		return err
	}
	_, arity := o.Arity()
	n := len(dst)
	if len(x) != n || arity > 1 && len(y) != n || arity > 2 && len(z) != n {
		return fmt.Errorf("the result has %d elements; all slices must have the same length: %w", n, ErrShape)
	}
	if err := inPlace(o, 0, dst, x); err != nil {
		return err
	}
	if arity > 1 {
		if err := inPlace(o, 1, dst, y); err != nil {
			return err
		}
		if arity > 2 {
			return inPlace(o, 2, dst, z)
		}
	}
	return nil
}

// fail completes the error of an elementwise call or a reduction. lens are the lengths of three or
// two operands, including operands that the operation does not take.
func (d *Device) fail(err error, o *op.Operation, lens ...int) error {
	if o != nil {
		_, n := o.Arity()
		lens = lens[:min(n, len(lens))]
	}
	var shapes []op.Shape
	for _, n := range lens {
		shapes = append(shapes, op.Shape{n})
	}
	return d.wrap(err, o, shapes...)
}

func (d *Device) elementwise(ctx context.Context, o *op.Operation, a op.Attrs, dst, x, y, z []float32) error {
	err := checkElementwise(o, &a, dst, x, y, z)
	if err == nil {
		if d.route == nil {
			err = d.engine().Elementwise(ctx, o, &a, dst, x, y, z)
		} else {
			_, arity := o.Arity()
			err = d.routed(o, flat(len(dst), arity+1), func(e *engine.Engine) error { return e.Elementwise(ctx, o, &a, dst, x, y, z) })
		}
	}
	if err != nil {
		return d.fail(err, o, len(x), len(y), len(z))
	}
	return nil
}

func (d *Device) elementwiseAsync(ctx context.Context, o *op.Operation, a op.Attrs, dst, x, y, z []float32) *Pending {
	if err := checkElementwise(o, &a, dst, x, y, z); err != nil {
		return failed(d.fail(err, o, len(x), len(y), len(z)))
	}
	n := op.Shape{len(dst)}
	in := []engine.Host{f32(x, n), f32(y, n), f32(z, n)}
	_, arity := o.Arity()
	return d.start(ctx, o, a, in[:arity], f32(dst, n))
}

// start runs an operation without waiting for it.
func (d *Device) start(ctx context.Context, o *op.Operation, a op.Attrs, in []engine.Host, out ...engine.Host) *Pending {
	programs.use()
	return &Pending{p: d.pick(o, &a, in, out).Start(ctx, o, &a, in, out), explain: func(err error) error { return d.explain(err, o, in) }}
}

func f32(x []float32, s op.Shape) engine.Host {
	return engine.HostOf(engine.Bytes(x), op.F32, s)
}

func i32(x []int32, s op.Shape) engine.Host {
	return engine.HostOf(engine.Bytes(x), op.I32, s)
}

// Map runs an elementwise operation, built in or the user's own, on slices of equal length. in has
// as many operands as the operation takes. Parameters have their default values.
//
// # Errors
//   - [ErrShape] if the lengths or the number of operands differ from what the operation takes.
//   - [ErrUnsupported] if the operation is not elementwise, is invalid, does not compute on float32 only, or has a
//     parameter without a default value; for example, scale has a method of its own for its factor.
//   - [ErrOverlap] if dst partly overlaps an operand.
func (d *Device) Map(ctx context.Context, dst []float32, o *op.Operation, in ...[]float32) error {
	programs.use()
	var v [3][]float32
	if err := checkMap(o, in); err != nil {
		return d.fail(err, o, lengths(in)...)
	}
	copy(v[:], in)
	return d.elementwise(ctx, o, o.Defaults(), dst, v[0], v[1], v[2])
}

// MapAsync starts [Device.Map] and returns a pending result.
func (d *Device) MapAsync(ctx context.Context, dst []float32, o *op.Operation, in ...[]float32) *Pending {
	var v [3][]float32
	if err := checkMap(o, in); err != nil {
		return failed(d.fail(err, o, lengths(in)...))
	}
	copy(v[:], in)
	return d.elementwiseAsync(ctx, o, o.Defaults(), dst, v[0], v[1], v[2])
}

func lengths(in [][]float32) []int {
	var n []int
	for _, x := range in {
		n = append(n, len(x))
	}
	return n
}

func checkMap(o *op.Operation, in [][]float32) error {
	if o == nil || o.Class() != op.Elementwise {
		return fmt.Errorf("the operation is nil or not elementwise: Map computes elementwise operations only: %w", ErrUnsupported)
	}
	if err := o.Err(); err != nil {
		return err
	}
	if err := o.CheckDefaults(); err != nil {
		return err
	}
	if fewest, most := o.Arity(); len(in) < fewest || len(in) > most {
		return fmt.Errorf("there are %d operands; the operation takes %d: %w", len(in), most, ErrShape)
	}
	types := [op.MaxInputs]op.DType{op.F32, op.F32, op.F32}
	a := o.Defaults()
	out, err := o.Types(&a, types[:len(in)])
	if err == nil && out[0] != op.F32 {
		err = fmt.Errorf("the result has type %v: use a batch, whose values have any type: %w", out[0], ErrUnsupported)
	}
	return err
}

// checkReduce checks a reduction of all elements.
func checkReduce(o *op.Operation, a *op.Attrs, x, y []float32) error {
	if err := a.Err(); err != nil {
		return err
	}
	if _, arity := o.Arity(); arity > 1 && len(x) != len(y) {
		return ErrShape
	}
	if len(x) > 0 {
		return nil
	}
	// Some reductions of empty arrays are defined, and some are not.
	_, arity := o.Arity()
	own := *a // the caller's value can stay on its stack
	_, err := o.Shapes(&own, []op.Shape{{0}, {0}}[:arity])
	return err
}

// reduceBits returns the 32 bits of the result of a reduction, and 0 if there is an error.
func (d *Device) reduceBits(ctx context.Context, o *op.Operation, a *op.Attrs, x, y []float32) (bits uint32, err error) {
	reductions.use()
	if err = checkReduce(o, a, x, y); err == nil {
		if d.route == nil {
			bits, err = d.engine().Reduce(ctx, o, a, x, y)
		} else {
			_, arity := o.Arity()
			err = d.routed(o, flat(len(x), arity), func(e *engine.Engine) (err error) {
				bits, err = e.Reduce(ctx, o, a, x, y)
				return err
			})
		}
	}
	if err != nil {
		return 0, d.fail(err, o, len(x), len(y))
	}
	return bits, nil
}

func (d *Device) reduce(ctx context.Context, o *op.Operation, a op.Attrs, x, y []float32) (float32, error) {
	bits, err := d.reduceBits(ctx, o, &a, x, y)
	return math.Float32frombits(bits), err
}

func (d *Device) reduceIndex(ctx context.Context, o *op.Operation, a op.Attrs, x []float32) (int, error) {
	bits, err := d.reduceBits(ctx, o, &a, x, nil)
	return int(int32(bits)), err
}

func (d *Device) reduceStart(ctx context.Context, o *op.Operation, a op.Attrs, x, y []float32, t op.DType, to []byte) *Pending {
	reductions.use()
	if err := checkReduce(o, &a, x, y); err != nil {
		return failed(d.fail(err, o, len(x), len(y)))
	}
	in := []engine.Host{f32(x, op.Shape{len(x)}), f32(y, op.Shape{len(y)})}
	_, arity := o.Arity()
	return d.start(ctx, o, a, in[:arity], engine.HostOf(to, t, nil))
}

func (d *Device) reduceAsync(ctx context.Context, o *op.Operation, a op.Attrs, x, y []float32) *Future[float32] {
	v := new([1]float32)
	p := d.reduceStart(ctx, o, a, x, y, op.F32, engine.Bytes(v[:]))
	return &Future[float32]{Pending: p, value: func() float32 { return v[0] }}
}

func (d *Device) reduceIndexAsync(ctx context.Context, o *op.Operation, a op.Attrs, x []float32) *Future[int] {
	v := new([1]int32)
	p := d.reduceStart(ctx, o, a, x, nil, op.I32, i32(v[:], nil).Data)
	return &Future[int]{Pending: p, value: func() int { return int(v[0]) }}
}

// matrix checks that a slice holds rows·cols elements.
func matrix(x []float32, rows, cols int) error {
	if n, err := (op.Shape{rows, cols}).Size(); err != nil {
		return err
	} else if n != len(x) {
		return fmt.Errorf("a slice has %d elements; expected %d rows of %d: %w", len(x), rows, cols, ErrShape)
	}
	return nil
}

// request is a call of an operation that is not elementwise. The caller adds the operands first and
// then the results. do runs the request and begin starts it; both free the request for reuse.
type request struct {
	o    *op.Operation
	a    op.Attrs
	in   [op.MaxInputs]engine.Host
	nin  int
	out  [2]engine.Host
	nout int
	err  error // the result of the checks

	overlap error // an overlap of a result and an operand; reported if the checks find no other error

	seen shapeCache // of o
}

// requests are the pooled requests, indexed by operation, so that each keeps the shape cache of
// earlier calls of its operation.
var requests [op.MaxID]sync.Pool

// newRequest returns a request without operands.
func newRequest(o *op.Operation, a *op.Attrs, err error) *request {
	r, _ := requests[o.ID()].Get().(*request)
	if r == nil {
		r = new(request)
	}
	if err == nil {
		err = a.Err()
	}
	r.o, r.a, r.err = o, *a, err
	return r
}

func (r *request) free() {
	for i := range r.in[:r.nin] {
		r.in[i].Data = nil
	}
	for i := range r.out[:r.nout] {
		r.out[i].Data = nil
	}
	r.nin, r.nout, r.err, r.overlap = 0, 0, nil, nil
	requests[r.o.ID()].Put(r)
}

// operand adds an operand.
func (r *request) operand(data []byte, t op.DType, s ...int) {
	r.in[r.nin].Set(data, t, s)
	r.nin++
}

// floats adds an operand of float32.
func (r *request) floats(x []float32, s ...int) { r.operand(engine.Bytes(x), op.F32, s...) }

// optional adds a vector, absent if x is nil.
func (r *request) optional(x []float32) {
	if x == nil {
		r.operand(nil, op.InvalidType)
		return
	}
	r.floats(x, len(x))
}

// result adds a result, whose shape may follow from the rules of the operation. It checks that the
// result shares no memory with an operand; some operations allow dst == x.
func (r *request) result(data []byte, t op.DType, s ...int) {
	r.out[r.nout].Set(data, t, s)
	r.nout++
	for j := range r.in[:r.nin] {
		x := r.in[j].Data
		same := len(x) == len(data) && len(x) > 0 && &x[0] == &data[0] && r.o.Class() == op.Row && j == 0
		if r.overlap == nil && !same && engine.Overlap(data, x) {
			r.overlap = fmt.Errorf("result %d of %d shares memory with operand %s: %w", r.nout, r.o.Results(), r.o.Inputs()[j], ErrOverlap)
		}
	}
}

// mistake returns the error of the checks. It reports an overlap only if the lengths are right.
func (r *request) mistake() error {
	if r.err != nil {
		return r.err
	}
	return r.overlap
}

// rules applies the operation's rules, and compares the results with what they give.
func (r *request) rules() {
	if r.err == nil && !r.seen.lookup(r) {
		r.err = r.validate()
	}
}

// validate applies the rules to a request that is not in the cache.
func (r *request) validate() error {
	shapes, types := make([]op.Shape, r.nin), make([]op.DType, r.nin)
	for i := range shapes {
		h := &r.in[i]
		if h.Type == op.InvalidType {
			continue
		}
		types[i] = h.Type
		shapes[i] = h.Shape()
		if n, err := h.Shape().Size(); err != nil || n*h.Type.Size() != len(h.Data) {
			if err == nil {
				err = fmt.Errorf("the slice for %[2]s has %[1]d elements, and its shape is %[3]v: %[4]w", len(h.Data)/h.Type.Size(), r.o.Inputs()[i], h.Shape(), ErrShape)
			}
			return err
		}
	}
	// The signatures of the methods determine the types, except those of an activation and of the
	// results of Reduce.
	results, err := r.o.Types(&r.a, types)
	if err != nil {
		return err
	}
	for i := range r.out[:r.nout] {
		if t := r.out[i].Type; t != results[i] {
			return fmt.Errorf("the result slice has type %v; the operation gives %v: %w", t, results[i], ErrUnsupported)
		}
	}
	out, err := r.o.Shapes(&r.a, shapes)
	if err != nil {
		return err
	}
	for i, s := range out {
		h := &r.out[i]
		n, err := s.Size()
		if err == nil && n*h.Type.Size() != len(h.Data) {
			err = fmt.Errorf("the result slice has %d elements; the result has shape %v: %w", len(h.Data)/h.Type.Size(), s, ErrShape)
		}
		if err != nil {
			return err
		}
		h.Reshape(s)
	}
	r.seen.note(r)
	return nil
}

// explain wraps err with the operation and the shapes of the operands.
func (d *Device) explain(err error, o *op.Operation, in []engine.Host) error {
	var shapes []op.Shape
	for i := range in {
		shapes = append(shapes, append(op.Shape(nil), in[i].Shape()...))
	}
	return d.wrap(err, o, shapes...)
}

// do runs a request and waits.
func (d *Device) do(ctx context.Context, r *request) error {
	err := r.mistake()
	switch {
	case err != nil:
	case d.route == nil:
		err = d.engine().Call(ctx, r.o, &r.a, r.in[:r.nin], r.out[:r.nout])
	default:
		err = d.routed(r.o, engine.WorkOf(r.o, &r.a, r.in[:r.nin], r.out[:r.nout]), func(e *engine.Engine) error {
			return e.Call(ctx, r.o, &r.a, r.in[:r.nin], r.out[:r.nout])
		})
	}
	if err != nil {
		err = d.explain(err, r.o, r.in[:r.nin])
	}
	r.free()
	return err
}

// begin starts a request and returns a pending result.
func (d *Device) begin(ctx context.Context, r *request) *Pending {
	defer r.free()
	if err := r.mistake(); err != nil {
		return failed(d.explain(err, r.o, r.in[:r.nin]))
	}
	o := r.o
	p := d.pick(o, &r.a, r.in[:r.nin], r.out[:r.nout]).Start(ctx, o, &r.a, r.in[:r.nin], r.out[:r.nout])
	in := append([]engine.Host(nil), r.in[:r.nin]...) // a copy of the operands without their data
	for i := range in {
		in[i].Data = nil
	}
	return &Pending{p: p, explain: func(err error) error { return d.explain(err, o, in) }}
}

// rows returns the request of a reduction along rows.
func rows(o *op.Operation, a op.Attrs, dst []byte, t op.DType, x, y []float32, rows, cols int) *request {
	r := newRequest(o, &a, nil)
	r.floats(x, rows, cols)
	if r.err == nil {
		r.err = matrix(x, rows, cols)
	}
	if _, arity := o.Arity(); arity > 1 {
		r.floats(y, rows, cols)
		if r.err == nil {
			r.err = matrix(y, rows, cols)
		}
	}
	if r.err == nil && len(dst)/4 != rows {
		r.err = fmt.Errorf("the result slice has %d elements; there are %d rows: %w", len(dst)/4, rows, ErrShape)
	}
	r.result(dst, t, len(dst)/4)
	r.rules()
	return r
}

// Reduce computes reduction o of each row of its operands. An operand has rows·cols elements, row
// after row. dst has rows elements, of int32 for [op.ArgMax], [op.ArgMin] and [op.CountNonzero],
// and otherwise of float32. a is the zero Attrs, or the Attrs of the options:
//
//	err := device.Reduce(ctx, dev, dst, op.Var, op.VarOpts{DDOF: 1}.Attrs(), 2, 3, x)
//
// dst must not overlap an operand. Reduce returns [ErrUnsupported] if o is not a reduction, or if
// the type of its results is not that of dst.
func Reduce[T float32 | int32](ctx context.Context, d *Device, dst []T, o *op.Operation, a op.Attrs, rows, cols int, in ...[]float32) error {
	r, err := reduceRows(o, a, engine.Bytes(dst), TypeOf[T](), rows, cols, in)
	if err != nil {
		return d.fail(err, o, lengths(in)...)
	}
	return d.do(ctx, r)
}

// ReduceAsync starts [Reduce] and returns a pending result.
func ReduceAsync[T float32 | int32](ctx context.Context, d *Device, dst []T, o *op.Operation, a op.Attrs, rows, cols int, in ...[]float32) *Pending {
	r, err := reduceRows(o, a, engine.Bytes(dst), TypeOf[T](), rows, cols, in)
	if err != nil {
		return failed(d.fail(err, o, lengths(in)...))
	}
	return d.begin(ctx, r)
}

// reduceRows returns the request of a reduction along rows.
func reduceRows(o *op.Operation, a op.Attrs, dst []byte, t op.DType, nrows, cols int, in [][]float32) (*request, error) {
	if o == nil || o.Class() != op.Reduction {
		return nil, fmt.Errorf("the operation is nil or not a reduction: Reduce computes reductions only: %w", ErrUnsupported)
	}
	_, arity := o.Arity()
	if len(in) != arity {
		return nil, fmt.Errorf("there are %d operands; the operation takes %d: %w", len(in), arity, ErrShape)
	}
	reductions.use()
	return rows(o, a.Rows(), dst, t, in[0], in[arity-1], nrows, cols), nil
}

// rowwise returns the request of a row operation. gamma and beta may be nil.
func rowwise(o *op.Operation, a op.Attrs, dst, x, gamma, beta []float32, rows, cols int) *request {
	rowwises.use()
	r := newRequest(o, &a, nil)
	r.floats(x, rows, cols)
	if r.err == nil {
		r.err = matrix(x, rows, cols)
	}
	if r.err == nil {
		r.err = matrix(dst, rows, cols)
	}
	for _, w := range [...][]float32{gamma, beta} {
		if w != nil && r.err == nil && len(w) != cols {
			r.err = fmt.Errorf("there are %d weights; rows have %d elements, and each needs one weight: %w", len(w), cols, ErrShape)
		}
	}
	if gamma != nil || beta != nil {
		r.optional(gamma)
	}
	if beta != nil {
		r.optional(beta)
	}
	r.result(engine.Bytes(dst), op.F32, rows, cols)
	return r
}

func (d *Device) rowwise(ctx context.Context, o *op.Operation, a op.Attrs, dst, x, gamma, beta []float32, rows, cols int) error {
	return d.do(ctx, rowwise(o, a, dst, x, gamma, beta, rows, cols))
}

func (d *Device) rowwiseAsync(ctx context.Context, o *op.Operation, a op.Attrs, dst, x, gamma, beta []float32, rows, cols int) *Pending {
	return d.begin(ctx, rowwise(o, a, dst, x, gamma, beta, rows, cols))
}
