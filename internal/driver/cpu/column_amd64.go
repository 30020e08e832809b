//go:build amd64 && !noasm

package cpu

import (
	"context"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// columnLimits are the limits of reductions of columns, measured on 2 cores of an AMD EPYC with AVX2, 2026-11-28.
var columnLimits = struct{ lanes, few, row, array int }{
	lanes: 256, // lanes to which shorter contiguous rows are joined
	few:   16,  // rows up to which arrays are reduced by one call
	row:   8,   // shorter rows, of arrays smaller than array, are transposed and reduced together
	array: 64,  // see row
}

// A columnFold is a reduction with a kernel that combines rows elementwise.
type columnFold struct {
	kernel string // the name of the kernel after that of the type
	copies bool   // accumulators are initialised with the first row, otherwise with start
	start  uint32
	finish func(x []uint32, rows int) // converts accumulators to results; nil if they are the results
}

var columnFolds = map[*op.Operation]columnFold{
	op.Sum:    {kernel: "add"},
	op.Prod:   {kernel: "mul", copies: true},
	op.Max:    {kernel: "maximum", copies: true},
	op.Min:    {kernel: "minimum", copies: true},
	op.Mean:   {kernel: "add", finish: finishMean},
	op.NormL2: {kernel: "squares", finish: finishNorm},
	op.CountNonzero: {kernel: "zeros", finish: func(x []uint32, rows int) {
		for i := range x {
			x[i] += uint32(rows)
		}
	}},
	op.Any: {kernel: "any"},
	op.All: {kernel: "all", start: 1},
	op.Var: {kernel: "add"},
}

// begin returns the value from which the fold starts on elements of a type.
func (f *columnFold) begin(t op.DType) uint32 {
	switch {
	case f.kernel == "mul":
		return oneWord(t)
	case f.kernel == "maximum" && t == op.F32:
		return math.Float32bits(float32(math.Inf(-1)))
	case f.kernel == "minimum" && t == op.F32:
		return math.Float32bits(float32(math.Inf(1)))
	case f.kernel == "maximum":
		return leastWord(t)
	case f.kernel == "minimum":
		return greatestWord(t)
	}
	return f.start
}

func finishMean(x []uint32, rows int) {
	n := float32(rows)
	finishBy("code.div.vs", x, &n)
}

func finishNorm(x []uint32, _ int) { finishBy("sqrt", x, nil) }

// finishBy applies an elementwise kernel to accumulators.
func finishBy(name string, x []uint32, p *float32) {
	f := simd.Map(name)
	for len(x) > 0 {
		n := min(len(x), callElements)
		y := (*float32)(unsafe.Pointer(&x[0]))
		f(y, y, nil, nil, n, p)
		x = x[n:]
	}
}

// A columnTask reduces the middle axis of an array [outer cols inner] as a foldTask does, with
// kernels that combine many rows in one call. Results do not depend on the number of threads.
type columnTask struct {
	d                  *processor
	op                 *op.Operation
	typ                op.DType
	layout             *op.Layout
	ddof               int
	fold               columnFold
	kernel, merge      simd.ColumnFold     // merge combines results of the kernel
	arrays             simd.ArrayFold      // for many arrays with few rows; nil if it is not faster
	bytes              simd.ByteColumnFold // instead of kernel if the elements are bytes
	outer, cols, inner int
	parts, chunks      int  // number of parts of the middle axis, and of chunks of the last axis
	part, chunk        int  // their length
	unit               int  // number of arrays in a piece of work; 0 if pieces are parts of an array
	products           bool // the elements are the products of two arrays, and are added

	x            source
	dst, scratch unsafe.Pointer
	ctx          context.Context
	stopped      atomic.Bool
}

// A madeColumns is a columnTask whose operand is made by a program, block by block.
type madeColumns struct{ columnTask }

// source implements fed.
func (t *madeColumns) source(p *program, at []place) {
	t.x.p, t.x.at = p, at
	t.products = t.fold.kernel == "add" && t.typ == op.F32 && p.straight && p.inputs == 2 && p.block[0].name == "mul"
}

const (
	// columnBlock is the number of elements of whole rows that a program makes at once. A longer row is made alone.
	columnBlock = 8192
)

// columns returns a core that reduces columns with special kernels, or nil.
func (o *opStep) columns() core {
	fold, ok := columnFolds[o.op]
	if !ok {
		return nil
	}
	typ := o.in[0].typ
	if typ == op.U8 {
		return o.byteColumns(fold)
	}
	name, merge := typ.String(), fold.kernel
	if typ == op.Bool {
		if fold.finish == nil && o.op != op.Any && o.op != op.All {
			return nil
		}
		name = op.U32.String()
	}
	c := &madeColumns{columnTask{d: o.d, op: o.op, typ: typ, layout: o.in[0].layout, fold: fold, kernel: simd.FoldColumns(name + "." + fold.kernel)}}
	t := &c.columnTask
	switch fold.kernel {
	case "zeros":
		name, merge = op.I32.String(), "add"
	case "squares":
		merge = "add"
	case "any":
		name, merge = op.U32.String(), "maximum"
	case "all":
		name, merge = op.U32.String(), "minimum"
	}
	t.merge = simd.FoldColumns(name + "." + merge)
	if t.kernel == nil {
		return nil
	}
	t.arrays = simd.FoldArrays(typ.String() + "." + fold.kernel)
	if typ == op.Bool {
		t.arrays = simd.FoldArrays("u32." + fold.kernel)
	}
	short := t.configure(o.op, &o.attrs, o.dims) != nil || t.inner < columnLimits.row && t.cols*t.inner < columnLimits.array
	if t.cols == 0 || short && o.op != op.Var {
		return nil
	}
	if o.in[0].p != nil && o.op != op.Var { // a variance reads its operand twice
		return c
	}
	return t
}

// byteColumns returns a core that reduces columns of bytes to truth values.
func (o *opStep) byteColumns(fold columnFold) core {
	t := &columnTask{d: o.d, op: o.op, typ: op.U8, layout: o.in[0].layout, fold: fold}
	t.bytes, t.merge = foldBytes(o.op)
	return t
}

// foldBytes returns the kernels of any and all: for bytes, and for truth values of 32 bits. An element is 0 or it counts as
// true, so the maximum of bytes is their disjunction and the minimum their conjunction.
func foldBytes(o *op.Operation) (simd.ByteColumnFold, simd.ColumnFold) {
	maximum, minimum := simd.FoldByteColumns()
	if o == op.Any {
		return maximum, simd.FoldColumns("u32.maximum")
	}
	return minimum, simd.FoldColumns("u32.minimum")
}

// foldsByteColumns reports whether columns reads bytes for an operation.
func foldsByteColumns(o *op.Operation) bool {
	f, _ := foldBytes(o)
	return f != nil && (o == op.Any || o == op.All)
}

// variesColumns reports whether the variances of columns are computed without a copy.
func variesColumns(s op.Shape, l *op.Layout) bool {
	_, inner, ok := l.Columns(s.Rows())
	return ok && inner >= columnLimits.row && simd.FoldColumns("f32.add") != nil
}

// configure implements core.
func (t *columnTask) configure(o *op.Operation, a *op.Attrs, dims []op.Shape) error {
	n, err := dims[0].Size()
	if err != nil {
		return err
	}
	t.outer, t.cols, t.inner = 1, n, 1
	if a.I[0] == op.AlongRows {
		t.outer, t.cols = dims[0].Rows()
	}
	if t.layout != nil && a.I[0] == op.AlongRows {
		t.outer, t.inner, _ = t.layout.Columns(t.outer, t.cols)
	}
	if o == op.Var {
		t.ddof = op.VarOptsOf(a).DDOF
	}
	t.chunk = min(t.inner, foldLanes)
	if o == op.Var {
		// Choose chunks that stay in the cache until the second pass.
		t.chunk = min(t.inner, max(64, min(foldLanes, 1<<16/max(1, t.cols))))
	}
	t.chunks = max(1, (t.inner+max(1, t.chunk)-1)/max(1, t.chunk))
	t.part = foldSteps * t.together()
	t.parts = max(1, (t.cols+t.part-1)/t.part)
	if o == op.Var {
		t.parts = 1
	}
	t.unit = 0
	if t.parts*t.chunks == 1 {
		t.unit = max(1, callElements/max(1, t.cols*t.inner))
	}
	return nil
}

// together returns the number of rows that the kernel processes as one row.
func (t *columnTask) together() int {
	k := 1
	for 2*k*t.inner <= columnLimits.lanes && 4*k <= t.cols {
		k *= 2
	}
	return k
}

// compute implements core.
func (t *columnTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	if t.outer*t.inner == 0 {
		return nil
	}
	t.x.base, t.dst, t.ctx = in[0], out[0], ctx
	t.stopped.Store(false)
	defer func() { t.x.base, t.dst, t.scratch, t.ctx = nil, nil, nil, nil }()
	element := 0.1
	if t.x.p != nil {
		element += float64(t.x.p.cost.seed)
	}
	ns := float64(t.outer) * (20 + element*float64(t.cols*t.inner))
	if t.unit > 0 {
		t.run((t.outer+t.unit-1)/t.unit, ns)
		return t.err()
	}
	if t.parts > 1 {
		b, err := t.d.memory.Get(4 * t.outer * t.parts * t.inner)
		if err != nil {
			return err
		}
		defer b.Free()
		t.scratch = base(b)
	}
	t.run(t.outer*t.parts*t.chunks, ns)
	for i := 0; i < t.outer*t.chunks && t.parts > 1 && t.err() == nil; i++ {
		o, j := i/t.chunks, i%t.chunks*t.chunk
		dst := unsigned(unsafe.Add(t.dst, 4*(o*t.inner+j)), min(t.chunk, t.inner-j))
		t.combine(t.merge, dst, unsafe.Add(t.scratch, 4*(o*t.parts*t.inner+j)), t.parts, t.inner)
		t.end(dst)
	}
	return t.err()
}

func (t *columnTask) err() error {
	if t.stopped.Load() {
		return t.ctx.Err()
	}
	return nil
}

// run executes n pieces of work, on several threads if this is faster.
func (t *columnTask) run(n int, ns float64) {
	if !t.d.pool.Worth(ns) {
		for i := range n {
			t.Part(i)
		}
		return
	}
	t.d.pool.Spread(n, t.d.pool.Turn(), t)
}

// Part implements workers.Task.
func (t *columnTask) Part(i int) {
	if t.stopped.Load() || t.ctx.Err() != nil {
		t.stopped.Store(true)
		return
	}
	l := lanes.Get().(*lane)
	defer lanes.Put(l)
	var made *lane
	if t.x.p != nil && !t.products {
		made = lanes.Get().(*lane)
		defer lanes.Put(made)
		made.open(&t.x, max(columnBlock, t.chunk))
		defer made.shut(&t.x)
	}
	if t.unit > 0 && t.x.p == nil && t.arrays != nil && t.op != op.Var && t.inner >= columnLimits.row && t.cols <= columnLimits.few {
		o := i * t.unit
		n := min(t.unit, t.outer-o)
		dst := unsigned(unsafe.Add(t.dst, 4*o*t.inner), n*t.inner)
		t.arrays(&dst[0], (*uint32)(unsafe.Add(t.x.base, 4*o*t.cols*t.inner)), t.inner, t.cols, n, t.fold.begin(t.typ))
		t.end(dst)
		return
	}
	if t.unit > 0 {
		for o := i * t.unit; o < min((i+1)*t.unit, t.outer); o++ {
			t.piece(l, made, o, 0, 0)
		}
		return
	}
	o, rest := i/(t.parts*t.chunks), i%(t.parts*t.chunks)
	t.piece(l, made, o, rest/t.chunks, rest%t.chunks)
}

// piece folds a part of the middle axis in a chunk of the last, of array o. A program makes its operand in the lane made.
func (t *columnTask) piece(l, made *lane, o, part, chunk int) {
	from, to := part*t.part, min((part+1)*t.part, t.cols)
	j := chunk * t.chunk
	w := min(t.chunk, t.inner-j)
	first := (o*t.cols+from)*t.inner + j
	if t.op == op.Var {
		x := unsafe.Add(t.x.base, 4*first)
		t.variance(l, x, unsafe.Slice((*float32)(unsafe.Add(t.dst, 4*(o*t.inner+j))), w))
		return
	}
	dst := unsigned(unsafe.Add(t.dst, 4*(o*t.inner+j)), w)
	if t.parts > 1 {
		dst = unsigned(unsafe.Add(t.scratch, 4*((o*t.parts+part)*t.inner+j)), w)
	}
	k, acc := 1, dst
	if w == t.inner {
		k = min(t.together(), to-from)
	}
	if t.bytes != nil {
		t.foldBytes(l, dst, (*uint8)(unsafe.Add(t.x.base, first)), to-from, k)
		return
	}
	if k > 1 {
		l.reserve(k * w)
		acc = unsigned(unsafe.Pointer(unsafe.SliceData(l.extra)), k*w)
	}
	rows := to - from
	step, stride := rows, t.inner
	if t.products {
		t.addProducts(acc, first, rows, k)
		rows = 0
	} else if t.x.p != nil { // rows follow each other, or one is made at a time
		step, stride = 1, w
		if w == t.inner {
			step = max(k, columnBlock/w/k*k)
		}
	}
	for r := 0; r < rows; r += step {
		n, at := min(step, rows-r), first+r*t.inner
		var x unsafe.Pointer
		if t.x.p == nil {
			x = unsafe.Add(t.x.base, 4*at)
		} else {
			x = unsafe.Pointer(unsafe.SliceData(made.feed(&t.x, at, at+(n-1)*t.inner+w)))
		}
		t.rows(acc, x, n, k, stride, r == 0)
	}
	for ; k > 1; k = (k + 1) / 2 {
		h := (k + 1) / 2
		t.take(t.merge, &acc[0], unsafe.Pointer(&acc[h*w]), (k-h)*w, 1, w)
	}
	copy(dst, acc)
	if t.parts == 1 {
		t.end(dst)
	}
}

// foldBytes sets dst to the truth values of columns of bytes, whose rows begin at x. The kernel processes k adjacent rows as
// one long row.
func (t *columnTask) foldBytes(l *lane, dst []uint32, x *uint8, rows, k int) {
	w := len(dst)
	n := k * w
	l.reserve((n + 7) / 8 * 2)
	acc := unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(l.extra))), n)
	copy(acc, unsafe.Slice(x, n))
	row := func(r int) *uint8 { return (*uint8)(unsafe.Add(unsafe.Pointer(x), r*t.inner)) }
	r := k
	for step := max(1, 4*callElements/n) * k; r+k <= rows; {
		c := min(step, (rows-r)/k*k)
		t.bytes(&acc[0], row(r), n, c/k, k*t.inner)
		r += c
	}
	if r < rows {
		t.bytes(&acc[0], row(r), (rows-r)*w, 1, t.inner)
	}
	for ; k > 1; k = (k + 1) / 2 {
		h := (k + 1) / 2
		t.bytes(&acc[0], &acc[h*w], (k-h)*w, 1, w)
	}
	const low, high = 0x7f7f7f7f7f7f7f7f, 0x8080808080808080
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&acc[0])), (w+7)/8)
	for i, v := range words { // a byte becomes 1 unless it is 0
		words[i] = (v&low + low | v) & high >> 7
	}
	simd.Map("cast.u8.u32")(address(unsafe.Pointer(&dst[0])), address(unsafe.Pointer(&acc[0])), nil, nil, w, nil)
}

// rows combines n rows, which begin at x and are stride apart, with acc. If first is set, acc has no contents yet. The kernel
// processes k adjacent rows as one long row.
func (t *columnTask) rows(acc []uint32, x unsafe.Pointer, n, k, stride int, first bool) {
	switch {
	case first:
		t.combine(t.kernel, acc, x, n/k, k*stride)
	case n >= k:
		t.take(t.kernel, &acc[0], x, len(acc), n/k, k*stride)
	}
	if rest := n % k; rest > 0 {
		t.take(t.kernel, &acc[0], unsafe.Add(x, 4*(n-rest)*stride), rest*stride, 1, rest*stride)
	}
}

// addProducts sets acc to the sums of products of rows rows, which begin at element first. It adds k adjacent rows as one long row.
func (t *columnTask) addProducts(acc []uint32, first, rows, k int) {
	clear(acc)
	x := unsafe.Add(t.x.at[0].base, 4*(first-t.x.at[0].org))
	y := unsafe.Add(t.x.at[1].base, 4*(first-t.x.at[1].org))
	add := func(n, rows, from, stride int) {
		for step := max(1, callElements/n); rows > 0; from, rows = from+step*stride, rows-step {
			simd.ColumnProducts((*float32)(unsafe.Pointer(&acc[0])), (*float32)(unsafe.Add(x, 4*from)), (*float32)(unsafe.Add(y, 4*from)), n, min(step, rows), stride)
		}
	}
	add(len(acc), rows/k, 0, k*t.inner)
	if rest := rows % k; rest > 0 {
		add(rest*t.inner, 1, (rows-rest)*t.inner, rest*t.inner)
	}
}

// take calls a kernel for at most callElements elements at a time.
func (t *columnTask) take(f simd.ColumnFold, dst *uint32, x unsafe.Pointer, n, rows, stride int) {
	step := max(1, callElements/n)
	for from := 0; from < rows; from += step { // computes no pointer beyond the last row
		f(dst, (*uint32)(unsafe.Add(x, 4*from*stride)), n, min(step, rows-from), stride)
	}
}

// combine reduces rows, whose elements begin at x and are stride apart, into dst.
func (t *columnTask) combine(f simd.ColumnFold, dst []uint32, x unsafe.Pointer, rows, stride int) {
	if t.fold.copies {
		copy(dst, unsigned(x, len(dst)))
		if rows--; rows == 0 {
			return
		}
		x = unsafe.Add(x, 4*stride)
	} else {
		clear(dst) // faster than a loop
		for i := 0; t.fold.start != 0 && i < len(dst); i++ {
			dst[i] = t.fold.start
		}
	}
	t.take(f, &dst[0], x, len(dst), rows, stride)
}

// end converts accumulators to results.
func (t *columnTask) end(x []uint32) {
	if t.fold.finish != nil {
		t.fold.finish(x, t.cols)
	}
}

// variance computes the variance of each of len(dst) adjacent columns. x points to the first
// element of the first column. Up to foldSteps rows are summed in float32, and those sums in
// float64. The mean is rounded to float32, so the sum of the distances from it is not 0; this sum
// corrects the variance, as in package simd.
func (t *columnTask) variance(l *lane, x unsafe.Pointer, dst []float32) {
	if t.cols <= foldSteps && t.together() == 1 {
		t.varianceOfFew(l, x, dst)
		return
	}
	w, k := len(dst), 1
	if w == t.inner {
		k = t.together()
	}
	n := k * w
	l.reserve(4*w + 3*n)
	sums := unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(l.extra))), 2*w)
	clear(sums)
	mean, s1, s2 := l.extra[4*w:][:n], l.extra[4*w+n:][:n], l.extra[4*w+2*n:][:n]
	each := func(f func(at unsafe.Pointer, lanes, rows int), found ...[]float32) {
		step := foldSteps * k
		for r := 0; r < t.cols; r += step {
			rows := min(step, t.cols-r)
			at := unsafe.Add(x, 4*r*t.inner)
			for _, s := range found {
				clear(s)
			}
			if rows >= k {
				f(at, n, rows/k)
			}
			if rest := rows % k; rest > 0 {
				f(unsafe.Add(at, 4*(rows-rest)*t.inner), rest*w, 1)
			}
			for i, s := range found {
				y := sums[i*w:][:w]
				for h := 0; h < n; h += w {
					for j, v := range s[h:][:w] {
						y[j] += float64(v)
					}
				}
			}
		}
	}
	each(func(at unsafe.Pointer, lanes, rows int) {
		t.take(t.kernel, (*uint32)(unsafe.Pointer(&mean[0])), at, lanes, rows, k*t.inner)
	}, mean)
	count := float64(t.cols)
	for j := range w {
		mean[j] = float32(sums[j] / count)
		sums[j] = 0
	}
	for h := w; h < n; h += w {
		copy(mean[h:], mean[:w])
	}
	each(func(at unsafe.Pointer, lanes, rows int) {
		step := max(1, callElements/lanes)
		for from := 0; from < rows; from += step {
			simd.ColumnDeviations(&s1[0], &s2[0], (*float32)(unsafe.Add(at, 4*from*k*t.inner)), &mean[0], lanes, min(step, rows-from), k*t.inner)
		}
	}, s1, s2)
	divisor := max(0, count-float64(t.ddof))
	for j := range dst {
		d, m2 := sums[j], sums[w+j]
		if m2 -= d / count * d; m2-m2 != 0 {
			m2 = t.deviations(unsafe.Add(x, 4*j))
		}
		dst[j] = float32(max(0, m2) / divisor)
	}
}

// varianceOfFew is variance for at most foldSteps rows.
func (t *columnTask) varianceOfFew(l *lane, x unsafe.Pointer, dst []float32) {
	w, inverse := len(dst), 1/float32(t.cols)
	l.reserve(3 * w)
	clear(l.extra[:3*w])
	mean, s1, s2 := l.extra[:w], l.extra[w:][:w], l.extra[2*w:][:w]
	t.take(t.kernel, (*uint32)(unsafe.Pointer(&mean[0])), x, w, t.cols, t.inner)
	for j := range mean {
		mean[j] *= inverse
	}
	simd.ColumnDeviations(&s1[0], &s2[0], (*float32)(x), &mean[0], w, t.cols, t.inner)
	divisor := float32(max(0, t.cols-t.ddof))
	for j, m2 := range s2 {
		m2 -= s1[j] * s1[j] * inverse
		if m2-m2 != 0 {
			m2 = float32(t.deviations(unsafe.Add(x, 4*j)))
		}
		dst[j] = max(0, m2) / divisor
	}
}

// deviations returns the sum of the squared distances from the mean of the column at x in float64,
// for sums that overflow float32.
func (t *columnTask) deviations(x unsafe.Pointer) float64 {
	at := func(i int) float64 { return float64(*(*float32)(unsafe.Add(x, 4*i*t.inner))) }
	mean, m2 := 0.0, 0.0
	for i := range t.cols {
		mean += at(i)
	}
	mean /= float64(t.cols)
	for i := range t.cols {
		m2 += (at(i) - mean) * (at(i) - mean)
	}
	return m2
}
