package cpu

import (
	"context"
	"math"
	"unsafe"

	blocks "github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// An expertsTask multiplies each row by the matrix that an id selects. It sorts the rows by their
// matrix and multiplies all rows of a matrix together, so that it reads each selected matrix once,
// and the other matrices not at all.
type expertsTask struct {
	d       *processor
	weights blocks.Format
	sizes   op.Experts
	int8    bool
	matrix  int // size of a matrix in bytes
	most    int // maximum number of rows in one product
	product quantTask
	in      [2]unsafe.Pointer // operands of the product
	out     [1]unsafe.Pointer

	// In scratch memory:
	first []int32        // for each matrix, the first index of its rows in order: see sort
	order []int32        // the rows, sorted by their matrix
	a, c  []float32      // rows that are multiplied together, and their products
	rest  unsafe.Pointer // scratch memory of the product
}

// formatOf returns the block format of an operand with weights.
func formatOf(a *arrayOperand) blocks.Format {
	switch {
	case a.half == op.F16:
		return blocks.F16
	case a.half == op.BF16:
		return blocks.BF16
	case a.typ.Quantized():
		return a.typ.Block()
	}
	return blocks.F32
}

// expertRows is the maximum number of rows that are multiplied together: enough to read a matrix
// once for many rows, with little scratch memory.
const expertRows = 256

func (t *expertsTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) (err error) {
	if t.sizes, err = op.ExpertsOf(dims); err != nil {
		return err
	}
	x := t.sizes
	t.most = max(1, min(x.Rows, expertRows))
	t.int8 = op.MatMulExpertsOptsOf(a).Int8 && !t.weights.Scalar()
	t.product = quantTask{d: t.d, format: t.weights}
	row, err := t.weights.Size(x.K)
	t.matrix = x.N * row
	return err
}

// sized sets the number of rows of the product to m.
func (t *expertsTask) sized(m int) error {
	return t.product.sized(op.Product{Batch: 1, M: m, K: t.sizes.K, N: t.sizes.N, SharedB: true}, t.int8)
}

// scratch implements scratcher. The scratch size depends on the number of rows, because few rows
// are multiplied in another way.
func (t *expertsTask) scratch() int {
	words := t.sizes.Experts + 1 + t.sizes.Rows + t.most*(t.sizes.K+t.sizes.N)
	bytes := 0
	for _, m := range []int{1, quantLimits.few, quantLimits.few + 1, simd.Int8Few, simd.Int8Few + 1, t.most} {
		if m = min(m, t.most); t.sized(m) == nil {
			bytes = max(bytes, t.product.scratch())
		}
	}
	return 4*words + bytes
}

// place implements scratcher.
func (t *expertsTask) place(p unsafe.Pointer) {
	x := t.sizes
	take := func(n int) unsafe.Pointer {
		at := p
		p = unsafe.Add(p, 4*n)
		return at
	}
	t.first, t.order = integers(take(x.Experts+1), x.Experts+1), integers(take(x.Rows), x.Rows)
	t.a, t.c = slice(take(t.most*x.K), t.most*x.K), slice(take(t.most*x.N), t.most*x.N)
	t.rest = p
}

// sort sorts the rows by their matrix and returns the number of rows with a valid id. It sets the
// results of the other rows to NaN and leaves them out. The rows of matrix e begin at first[e+1].
func (t *expertsTask) sort(ids []int32, c []float32) (named int) {
	x := t.sizes
	clear(t.first)
	for i, id := range ids {
		if e, ok := x.Expert(id); ok {
			t.first[e+1]++
			continue
		}
		for j := range x.N {
			c[i*x.N+j] = float32(math.NaN())
		}
	}
	for e := range x.Experts {
		t.first[e+1] += t.first[e]
	}
	named = int(t.first[x.Experts])
	for i := len(ids) - 1; i >= 0; i-- { // fill from the ends; afterwards first has the beginnings
		if e, ok := x.Expert(ids[i]); ok {
			t.first[e+1]--
			t.order[t.first[e+1]] = int32(i)
		}
	}
	return named
}

// compute implements core.
func (t *expertsTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	x := t.sizes
	c, ids := slice(out[0], x.Rows*x.N), integers(in[2], x.Rows)
	if len(c) == 0 {
		return ctx.Err()
	}
	a := slice(in[0], x.Rows/x.Each*x.K)
	named := t.sort(ids, c)
	for e := x.Experts - 1; e >= 0; e-- {
		from := int(t.first[e+1])
		for rows := t.order[from:named]; len(rows) > 0; {
			n := min(len(rows), t.most)
			if err := t.multiply(ctx, unsafe.Add(in[1], e*t.matrix), a, c, rows[:n]); err != nil {
				return err
			}
			rows = rows[n:]
		}
		named = from
	}
	return ctx.Err()
}

// multiply multiplies the rows of one matrix, which is at w.
func (t *expertsTask) multiply(ctx context.Context, w unsafe.Pointer, a, c []float32, rows []int32) error {
	x, from, to := t.sizes, t.a, t.c
	if len(rows) == 1 { // multiply it in place
		i := int(rows[0])
		from, to = a[i/x.Each*x.K:], c[i*x.N:]
	} else {
		for i, r := range rows {
			copy(from[i*x.K:][:x.K], a[int(r)/x.Each*x.K:])
		}
	}
	if err := t.sized(len(rows)); err != nil {
		return err
	}
	t.product.place(t.rest)
	t.in = [2]unsafe.Pointer{unsafe.Pointer(unsafe.SliceData(from)), w}
	t.out[0] = unsafe.Pointer(unsafe.SliceData(to))
	if err := t.product.compute(ctx, t.in[:], t.out[:]); err != nil {
		return err
	}
	if len(rows) > 1 {
		for i, r := range rows {
			copy(c[int(r)*x.N:][:x.N], to[i*x.N:])
		}
	}
	return nil
}
