package cpu

import (
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// A productTask multiplies matrices, or a matrix and a vector.
type productTask struct {
	d    *processor
	gemm simd.Gemm // without the memory
	a, b operandPart
	in   []*op.Layout
	epilogue
}

// operandPart is the range of elements in memory that an operand occupies.
type operandPart struct{ from, n int }

// slice returns the part, given the memory p of the whole array.
func (o operandPart) slice(p unsafe.Pointer) []float32 {
	if p == nil || o.n == 0 {
		return nil
	}
	return slice(unsafe.Add(p, 4*o.from), o.n)
}

// halves is slice for elements of 16 bits.
func (o operandPart) halves(p unsafe.Pointer) []uint16 {
	if p == nil || o.n == 0 {
		return nil
	}
	return arrayOf[uint16](unsafe.Add(p, 2*o.from), o.n)
}

// layouts implements reader.
func (t *productTask) layouts(ls []*op.Layout) { t.in = ls }

// matrices has the strides of an operand: between matrices, between rows and between columns. If
// matrices have no constant stride, from has their offsets.
type matrices struct {
	stride, row, col int
	from             []int
}

// matricesOf returns the first element and the strides of an operand of shape s in a layout: one
// stride for all axes before the last two if they can be merged, or a stride for each.
func matricesOf(l *op.Layout, s op.Shape) (off int, axes op.Shape, strides []int, ok bool) {
	n := len(s) - 2
	axes = append(op.Shape{size(s[:n])}, s[n:]...)
	if off, strides, ok = l.Strides(axes); !ok {
		axes = s
		off, strides, ok = l.Strides(axes)
	}
	return off, axes, strides, ok
}

// strided returns the part of an operand in a layout, and its strides.
func strided(l *op.Layout, s op.Shape) (o operandPart, m matrices, err error) {
	off, axes, strides, ok := matricesOf(l, s)
	if !ok {
		return o, m, driver.ErrUnsupported
	}
	n := len(axes) - 2
	m.row, m.col = strides[n], strides[n+1]
	if n == 1 {
		m.stride = strides[0]
	} else {
		m.from = make([]int, size(axes[:n]))
		for i := range m.from {
			for k, rest := n-1, i; k >= 0; k-- {
				m.from[i] += rest % axes[k] * strides[k]
				rest /= axes[k]
			}
		}
	}
	// A single row or column has no stride; kernels prefer the stride of a contiguous matrix.
	if axes[n+1] == 1 {
		m.col = 1
	}
	if axes[n] == 1 {
		m.row = axes[n+1]
	}
	first, end := l.Bounds()
	return operandPart{off, end - first}, m, nil
}

// An epilogue is the computation on finished pieces of rows of a result: none, an activation, or a
// program with the piece as operand 0.
type epilogue struct {
	n      int  // elements of a row
	late   bool // rows are short, so the whole epilogue runs after the product
	act    kernel
	params [2]float32
	post   source
	// finish is a method value, which is created once because this allocates.
	finish func(row []float32, i, j int)
}

func (t *productTask) configure(o *op.Operation, a *op.Attrs, dims []op.Shape) error {
	t.gemm = simd.Gemm{}
	g := &t.gemm
	if o == op.MatVec {
		g.Batch, g.M, g.K, g.N = 1, dims[0][0], dims[0][1], 1
		g.ARow, g.ACol = g.K, 1
		if op.MatVecOptsOf(a).Trans {
			g.M, g.K = g.K, g.M
			g.ARow, g.ACol = 1, g.M
		}
		g.BRow, g.BCol = 1, 1
		t.a, t.b = operandPart{n: g.M * g.K}, operandPart{n: g.K}
		return t.epilogue.configure(a, 1)
	}
	p, err := op.MatMulOf(a, dims[:2])
	if err != nil {
		return err
	}
	opts := op.MatMulOptsOf(a)
	g.M, g.N, g.K = p.M, p.N, p.K
	g.Batch = p.Batch
	g.ARow, g.ACol = p.K, 1
	if opts.TransA {
		g.ARow, g.ACol = 1, p.M
	}
	g.BRow, g.BCol = p.N, 1
	if opts.TransB {
		g.BRow, g.BCol = 1, p.K
	}
	g.AStride, g.CStride = p.M*p.K, p.M*p.N
	g.BStride = p.K * p.N
	t.a, t.b = operandPart{n: p.Batch * p.M * p.K}, operandPart{n: p.Batch * p.K * p.N}
	if p.SharedB {
		g.BStride, t.b.n = 0, p.K*p.N
	}
	if err := t.place(dims, opts); err != nil {
		return err
	}
	if p.SharedB {
		if g.AFrom == nil && g.AStride == g.M*g.ARow && !opts.TransA || p.Batch == 1 {
			// One matrix for all rows: the batch is one taller product.
			g.M, g.Batch = p.Batch*p.M, 1
		}
	}
	return t.epilogue.configure(a, p.N)
}

// place sets the strides of operands in layouts.
func (t *productTask) place(dims []op.Shape, opts op.MatMulOpts) error {
	g := &t.gemm
	if len(t.in) > 0 && t.in[0] != nil {
		o, m, err := strided(t.in[0], dims[0])
		if err != nil {
			return err
		}
		t.a, g.AStride, g.ARow, g.ACol, g.AFrom = o, m.stride, m.row, m.col, m.from
		if opts.TransA {
			g.ARow, g.ACol = m.col, m.row
		}
	}
	if len(t.in) > 1 && t.in[1] != nil {
		o, m, err := strided(t.in[1], dims[1])
		if err != nil {
			return err
		}
		t.b, g.BStride, g.BRow, g.BCol, g.BFrom = o, m.stride, m.row, m.col, m.from
		if opts.TransB {
			g.BRow, g.BCol = m.col, m.row
		}
	}
	return nil
}

// lateColumns is the row length from which on the epilogue is called for each row.
const lateColumns = 32

// configure sets the activation of a.
func (e *epilogue) configure(a *op.Attrs, n int) error {
	e.n, e.act, e.late = n, nil, n < lateColumns
	if o, attrs := a.Activation(); o != nil {
		e.act = activation(o)
		e.params = [2]float32{attrs.Float(0), attrs.Float(1)}
		if e.act == nil {
			return driver.ErrUnsupported
		}
	}
	return nil
}

// run applies the epilogue to a piece of row i, from column j on.
func (e *epilogue) run(row []float32, i, j int) {
	if e.post.p == nil {
		p := unsafe.SliceData(row)
		e.act(p, p, nil, nil, len(row), &e.params[0])
		return
	}
	lo := i*e.n + j
	l := lanes.Get().(*lane)
	l.at = append(l.at[:0], e.post.at...)
	l.at[0] = place{unsafe.Pointer(unsafe.SliceData(row)), lo}
	l.begin(e.post.p, l.at, len(row))
	l.run(l.at, lo, lo+len(row))
	l.shut(&e.post)
	lanes.Put(l)
}

// hook returns the function that the product calls with finished pieces, or nil.
func (e *epilogue) hook() func(row []float32, i, j int) {
	if e.act == nil && e.post.p == nil || e.late {
		return nil
	}
	if e.finish == nil {
		e.finish = e.run
	}
	return e.finish
}

// after applies a late activation to the whole result. The step runs late programs.
func (e *epilogue) after(y []float32) {
	if !e.late || e.act == nil {
		return
	}
	for len(y) > 0 {
		n := min(callElements, len(y))
		e.run(y[:n], 0, 0)
		y = y[n:]
	}
}

// tail returns the epilogue of the task.
func (e *epilogue) tail() *epilogue { return e }

// slice returns n elements at p.
func slice(p unsafe.Pointer, n int) []float32 {
	if p == nil || n == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(p), n)
}

// compute implements core.
func (t *productTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	g := t.gemm
	g.A, g.B = t.a.slice(in[0]), t.b.slice(in[1])
	g.C = slice(out[0], g.Batch*g.M*g.N)
	if len(in) > 2 && in[2] != nil {
		g.Bias = slice(in[2], g.N)
	}
	g.Epilogue = t.hook()
	if len(g.C) == 0 {
		return nil
	}
	if g.Batch*g.M*g.N*g.K <= tinyProduct {
		tiny(&g)
	} else if ctx.Done() == nil || g.M*g.Batch <= longProduct/max(1, g.N*g.K) {
		g.Run(t.d.pool)
	} else if err := t.long(ctx, g); err != nil {
		return err
	}
	t.after(g.C)
	return ctx.Err()
}

// longProduct is the number of multiplications after which a product checks its context: about ten
// milliseconds.
var longProduct = 1 << 30

// long runs a long product in bands of rows and checks the context between them. A product has only
// few parts for each thread, so checks between parts would be too rare.
func (t *productTask) long(ctx context.Context, g simd.Gemm) error {
	// Each band prepares B again, so bands need enough rows to make the cost small.
	const least = 336 // a multiple of the heights of all tiles
	row := max(1, g.N*g.K)
	band := max(1, longProduct/row/least) * least
	pool := t.d.pool.Under(ctx)
	defer pool.Release()
	if band >= g.M { // many short matrices
		g.Run(pool)
		return nil
	}
	for m := range g.Batch {
		for i := 0; i < g.M; i += band {
			if err := ctx.Err(); err != nil {
				return err
			}
			part := g.Product(m)
			part.M = min(band, g.M-i)
			part.A, part.C = part.A[i*g.ARow:], part.C[i*g.N:]
			if at := m*g.M + i; g.Epilogue != nil {
				part.Epilogue = func(row []float32, i, j int) { g.Epilogue(row, at+i, j) }
			}
			part.Run(pool)
		}
	}
	return nil
}

// tinyProduct is the number of multiplications up to which tiny computes a product, because
// choosing a kernel would take longer.
const tinyProduct = 128

// tiny computes g with simple loops.
func tiny(g *simd.Gemm) {
	for m := range g.Batch {
		a, b := g.AAt(m), g.BAt(m)
		for i := range g.M {
			row := g.C[m*g.CStride+i*g.N:][:g.N]
			if g.Bias != nil {
				copy(row, g.Bias)
			} else {
				clear(row)
			}
			for k := range g.K {
				a, b := g.A[a+i*g.ARow+k*g.ACol], g.B[b+k*g.BRow:]
				if g.BCol == 1 {
					for j, v := range b[:len(row)] {
						row[j] += a * v
					}
					continue
				}
				for j := range row {
					row[j] += a * b[j*g.BCol]
				}
			}
			if g.Epilogue != nil {
				g.Epilogue(row, m*g.M+i, 0)
			}
		}
	}
}

// finisher is a core with an epilogue for pieces of rows of its result.
type finisher interface {
	core
	tail() *epilogue
}

// productStep is a product of matrices, or a convolution, whose epilogue runs on finished pieces of
// rows.
type productStep struct {
	*opStep
	over int // index of the output in whose memory the product is computed, or -1 for the arena
	temp int // offset in the arena of the scratch memory of the task, if it needs any
}

// scratcher is a task that needs scratch memory.
type scratcher interface {
	// scratch returns the size of the scratch memory in bytes. It is called after configure.
	scratch() int
	// place sets the address of the scratch memory.
	place(p unsafe.Pointer)
}

type productRunner struct {
	s       productStep
	task    finisher
	in, out []unsafe.Pointer
	pre     []*mapTask
	post    *mapTask
}

// step implements [stepper].
func (t *productTask) step(o *opStep) (step, error) { return o.productStep() }

// step implements [stepper].
func (t *quantTask) step(o *opStep) (step, error) { return o.productStep() }

// step implements [stepper].
func (t *convTask) step(o *opStep) (step, error) { return o.productStep() }

func (o *opStep) productStep() (step, error) {
	s := productStep{opStep: o, over: -1}
	for i := range o.in {
		o.reserve(&o.in[i])
	}
	if p := o.out[0].p; p != nil {
		for k, st := range p.streams[p.inputs:] {
			if st.size == 4 {
				s.over = k
				break
			}
		}
		if s.over < 0 {
			o.reserve(&o.out[0])
		}
	}
	c := o.newCore()
	if err := c.configure(o.op, &o.attrs, o.dims); err != nil {
		return nil, err
	}
	if c, ok := c.(scratcher); ok {
		s.temp = o.e.reserve(c.scratch())
	}
	return s, nil
}

func (s productStep) runner(f *frame) runner {
	r := &productRunner{s: s, in: make([]unsafe.Pointer, len(s.in)), out: make([]unsafe.Pointer, 1)}
	r.task = s.newCore().(finisher)
	_ = r.task.configure(s.op, &s.attrs, s.dims) // it succeeded before
	r.pre = tasksOf(f, s.in)
	if r.post = tasksOf(f, s.out)[0]; r.post != nil {
		r.task.tail().post = source{p: r.post.p, at: r.post.at}
	}
	return r
}

func (r *productRunner) run(ctx context.Context, f *frame) error {
	if err := f.materialize(ctx, r.s.in, r.pre, r.in); err != nil {
		return err
	}
	a := &r.s.out[0]
	switch {
	case r.post == nil:
		r.out[0] = f.base[a.slot]
	case r.s.over >= 0:
		r.post.bind(f)
		r.out[0] = r.post.at[a.p.inputs+r.s.over].base
	default:
		r.post.bind(f)
		r.out[0] = unsafe.Add(f.temp, a.temp)
	}
	if t, ok := r.task.(scratcher); ok {
		t.place(unsafe.Add(f.temp, r.s.temp))
	}
	if err := r.task.compute(ctx, r.in, r.out); err != nil {
		return err
	}
	if r.post != nil && r.task.tail().late {
		r.post.at[0].base = r.out[0]
		return r.post.run(ctx, &f.lane)
	}
	return nil
}
