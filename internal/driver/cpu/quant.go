package cpu

import (
	"context"
	"math"
	"sync/atomic"
	"unsafe"

	blocks "github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// quantLimits are the limits of products with quantised weights, and times of one thread in nanoseconds for an
// element of w, measured on 2026-11-25 (go test -bench MatMulQ ./internal/driver/cpu).
var quantLimits = struct {
	depth, few    int
	ns, productNS float64
}{
	depth:     1024, // elements of a panel along k, at most: adding to C then costs little compared with the products
	few:       3,    // rows up to which they are multiplied by encoded blocks: decoding the blocks for each row is faster than storing decoded panels
	ns:        0.1,  // to decode the element
	productNS: 0.02, // to multiply it
}

// A quantTask multiplies rows by the transpose of a quantised matrix. A panel is a part of some
// rows of the matrix. Panels are decoded to float32 in the caches and multiplied there, so that
// memory is read once, as blocks. Few rows are multiplied directly by encoded blocks.
type quantTask struct {
	d       *processor
	format  blocks.Format
	m, k, n int
	row     int // size of a row of w in bytes
	rows    int // number of rows in a panel
	depth   int // number of elements of a panel along k: whole blocks
	lanes   []quantLane
	int8    *int8Part // &rounded if rows are rounded to 8 bits, otherwise nil
	rounded int8Part
	epilogue

	// Set during a run.
	ctx        context.Context
	a, c, bias []float32
	sums       []float32 // sums of groups of a, if a has few rows
	w          []byte
	next       atomic.Int64 // index of the next panel to compute
}

// A quantLane is the memory of one thread.
type quantLane struct {
	t      *quantTask
	panel  []float32
	first  int // first column of the panel in C
	finish func(row []float32, i, j int)
}

// quantPanel returns the maximum number of elements of a panel: it takes a quarter of the
// second-level cache, which also holds the packed operands of a product.
func quantPanel() int { return memory.CPUCaches().L2 / 16 }

// operands implements typed.
func (t *quantTask) operands(types []op.DType) { t.format = types[1].Block() }

func (t *quantTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) error {
	p, err := op.MatMulQOf(dims[:2])
	if err != nil {
		return err
	}
	if t.format == blocks.Invalid {
		return driver.ErrUnsupported // one-shot calls have no quantised operands
	}
	if err := t.sized(p, op.MatMulQOptsOf(a).Int8); err != nil {
		return err
	}
	return t.epilogue.configure(a, p.N)
}

// sized sets the sizes of the product. If rounded is set and there is a kernel for it, rows are
// rounded to 8 bits. It allocates memory only if t had fewer lanes before.
func (t *quantTask) sized(p op.Product, rounded bool) (err error) {
	t.m, t.k, t.n, t.int8 = p.M, p.K, p.N, nil
	if t.row, err = t.format.Size(p.K); err != nil {
		return err
	}
	if rounded && simd.FastInt8(t.format, p.M, p.K) {
		t.configureInt8(p)
		return nil
	}
	threads := t.d.pool.Threads()
	e := t.format.Elements()
	t.depth = max(e, min(p.K, quantLimits.depth/e*e))
	if t.few() {
		t.depth = p.K
	}
	t.rows = max(1, min(quantPanel()/max(1, t.depth), (p.N+threads-1)/threads))
	if t.rows > panelUnit {
		t.rows = t.rows / panelUnit * panelUnit
	}
	t.work(min(threads, t.panels()))
	return nil
}

// work sets the number of lanes of t.
func (t *quantTask) work(lanes int) {
	if cap(t.lanes) < lanes {
		t.lanes = make([]quantLane, lanes)
	}
	t.lanes = t.lanes[:lanes]
}

// groupSize is the number of elements of a in each of the sums.
const groupSize = 32

// panelUnit is the unit of the number of rows in a panel, which suits the kernels of products.
const panelUnit = 16

func (t *quantTask) few() bool { return t.m <= quantLimits.few && !t.format.Scalar() }

func (t *quantTask) panels() int { return (t.n + t.rows - 1) / t.rows }

// scratch implements scratcher.
func (t *quantTask) scratch() int {
	if t.int8 != nil {
		return 4 * (t.int8.words + len(t.lanes)*t.int8.lane)
	}
	if t.few() {
		return t.m * t.k / groupSize * 4 // the sums
	}
	return len(t.lanes) * t.rows * t.depth * 4
}

// place implements scratcher.
func (t *quantTask) place(p unsafe.Pointer) {
	size := t.rows * t.depth
	if q := t.int8; q != nil {
		q.product.Bind(slice(p, q.words))
		p, size = unsafe.Add(p, 4*q.words), q.lane
	}
	for i := range t.lanes {
		l := &t.lanes[i]
		l.t = t
		if !t.few() || t.int8 != nil {
			l.panel = slice(unsafe.Add(p, 4*i*size), size)
		}
	}
	if t.few() && t.int8 == nil {
		t.sums = slice(p, t.m*t.k/groupSize)
	}
}

// compute implements core.
func (t *quantTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	if t.m == 0 || t.n == 0 {
		return nil
	}
	t.ctx, t.a, t.c = ctx, slice(in[0], t.m*t.k), slice(out[0], t.m*t.n)
	if t.row > 0 {
		t.w = unsafe.Slice((*byte)(in[1]), t.n*t.row)
	}
	if len(in) > 2 && in[2] != nil {
		t.bias = slice(in[2], t.n)
	}
	product := quantLimits.productNS
	switch {
	case t.int8 != nil:
		t.roundInt8()
		product = int8ProductNS
	case t.few():
		simd.GroupSums(t.sums, t.a)
	}
	t.next.Store(0)
	ns := float64(t.k) * float64(t.n) * (quantLimits.ns + product*float64(t.m))
	if t.d.pool.Worth(ns) {
		t.d.pool.Do(len(t.lanes), t)
	} else {
		t.Part(0)
	}
	t.after(t.c)
	t.ctx, t.a, t.c, t.w, t.bias, t.sums = nil, nil, nil, nil, nil, nil
	return ctx.Err()
}

// Part computes panels until there are none left or the context ends.
func (t *quantTask) Part(i int) {
	l := &t.lanes[i]
	for t.ctx.Err() == nil {
		p := int(t.next.Add(1)) - 1
		if p >= t.panels() {
			return
		}
		first, end := p*t.rows, min((p+1)*t.rows, t.n)
		switch {
		case t.int8 != nil:
			l.columnsInt8(first, end)
		case t.few():
			t.dots(first, end)
		default:
			l.rows(first, end)
		}
	}
}

// dots computes columns first to end of a C with few rows.
func (t *quantTask) dots(first, end int) {
	groups := t.k / groupSize
	for j := first; j < end; j++ {
		w := t.w[j*t.row:][:t.row]
		for i := range t.m {
			v := simd.DotBlocks(t.format, t.a[i*t.k:][:t.k], t.sums[i*groups:][:groups], w)
			if t.bias != nil {
				v += t.bias[j]
			}
			t.c[i*t.n+j] = v
		}
	}
	if t.hook() != nil {
		for i := range t.m {
			t.epilogue.run(t.c[i*t.n:][first:end], i, first)
		}
	}
}

// rows computes columns first to end of C.
func (l *quantLane) rows(first, end int) {
	t := l.t
	l.first = first
	g := simd.Gemm{M: t.m, N: end - first, ARow: t.k, ACol: 1, C: t.c[first:], CRow: t.n}
	for k0 := 0; k0 == 0 || k0 < t.k; k0 += t.depth {
		g.K = min(t.depth, t.k-k0)
		g.A = t.a[k0:]
		l.columns(&g, first, k0)
		g.Bias, g.Accumulate = nil, k0 > 0
		if k0 == 0 && t.bias != nil {
			g.Bias = t.bias[first:end]
		}
		if k0+g.K >= t.k && t.hook() != nil {
			if l.finish == nil {
				l.finish = func(row []float32, i, j int) { l.t.epilogue.run(row, i, l.first+j) }
			}
			g.Epilogue = l.finish
		}
		g.Run(nil)
	}
}

// columns sets B of g to the rows of w from first on, from element k0 of each row on: directly if w
// is float32, otherwise to a decoded panel.
func (l *quantLane) columns(g *simd.Gemm, first, k0 int) {
	t := l.t
	if t.format == blocks.F32 {
		g.B, g.BRow, g.BCol = slice(unsafe.Pointer(unsafe.SliceData(t.w)), t.n*t.k)[first*t.k+k0:], 1, t.k
		return
	}
	widen, size := halfKernel(t.format), g.K/t.format.Elements()*t.format.Bytes()
	for j := range g.N {
		to, b := l.panel[j*g.K:][:g.K], t.w[(first+j)*t.row+k0/t.format.Elements()*t.format.Bytes():][:size]
		switch {
		case widen == nil:
			simd.Dequantize(t.format, to, b)
		case g.K > 0:
			widen(unsafe.SliceData(to), (*float32)(unsafe.Pointer(unsafe.SliceData(b))), nil, nil, g.K, nil)
		}
	}
	g.B, g.BRow, g.BCol = l.panel, 1, g.K
}

// halfKernel returns the kernel that converts 16-bit floats to float32, or nil for other formats.
func halfKernel(f blocks.Format) simd.MapFunc {
	switch f {
	case blocks.F16:
		return simd.VectorMap("cast.f16.f32")
	case blocks.BF16:
		return simd.VectorMap("cast.bf16.f32")
	}
	return nil
}

// A quantGather gathers rows of a quantised table.
type quantGather struct {
	format     blocks.Format
	dst        []float32
	table      []byte
	ids        []int32
	rows, cols int
	row        int // size of a row of the table in bytes
	group      int // number of rows in a part
}

// run computes dst on the threads of d.
func (t *quantGather) run(d *processor) {
	t.row = len(t.table) / max(1, t.rows)
	t.group = len(t.ids)
	if d.pool.Worth(float64(len(t.dst)) * quantLimits.ns) {
		t.group = max(1, len(t.ids)/(partsPerThread*d.pool.Threads()))
	}
	d.pool.Do((len(t.ids)+t.group-1)/t.group, t)
}

// Part gathers a few rows.
func (t *quantGather) Part(i int) {
	nan := float32(math.NaN())
	for i, last := i*t.group, min((i+1)*t.group, len(t.ids)); i < last; i++ {
		dst := t.dst[i*t.cols:][:t.cols]
		if id, ok := (op.Indexed{Extent: t.rows}).Row(t.ids[i]); ok {
			simd.Dequantize(t.format, dst, t.table[id*t.row:][:t.row])
			continue
		}
		for j := range dst {
			dst[j] = nan
		}
	}
}
