package main

import (
	"context"
	"fmt"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// cell is one operation at one size.
type cell struct {
	op, size string
	prepare  func(ctx context.Context, dev *device.Device) (work, error)
	resident *resident // used instead of prepare, if not nil
}

// work is what a cell measures: a call, the minimum number of bytes that it must move, and its
// arithmetic operations.
type work struct {
	run   func() error
	bytes float64
	flops float64
	reads bool // nearly all of the bytes are read
}

// cellsOf returns the cells of the table: calls on slices, and every operation over arrays on the
// device. On a CPU it omits the latter for operations that are measured on slices, because a CPU
// device transfers nothing.
func cellsOf(kind device.Kind, quick bool) []cell {
	sizes := []int{10_000, 1_000_000, 10_000_000}
	squares := []int{256, 512, 1024, 2048}
	if quick {
		sizes, squares = []int{10_000, 1_000_000}, []int{256, 1024}
	}
	var cs []cell
	for _, o := range []*op.Operation{op.Relu, op.Add, op.Exp, op.Tanh, op.Sigmoid, op.Gelu} {
		for _, n := range sizes {
			cs = append(cs, mapCell(o, n))
		}
	}
	for _, n := range sizes {
		cs = append(cs,
			reduceCell("sum", n, 1, func(ctx context.Context, d *device.Device, x, _ []float32) error { _, err := d.Sum(ctx, x); return err }),
			reduceCell("dot", n, 2, func(ctx context.Context, d *device.Device, x, y []float32) error {
				_, err := d.Dot(ctx, x, y)
				return err
			}),
			reduceCell("argmax", n, 1, func(ctx context.Context, d *device.Device, x, _ []float32) error {
				_, err := d.ArgMax(ctx, x)
				return err
			}))
	}
	for _, n := range sizes[:len(sizes)-1] {
		cs = append(cs, softmaxCell(n/1000))
	}
	for _, n := range squares {
		cs = append(cs, matMulCell(n, n, n))
	}
	cs = append(cs, matMulCell(1, 4096, 4096), matMulCell(8, 4096, 4096),
		convCell(64, 56, 64, 3), attentionCell(8, 512, 64), transposeCell(2048), topKCell(1000, 1000, 10))
	for _, n := range sizes[1:] {
		cs = append(cs, fusedCell(n))
	}
	calls := cs
	for _, c := range residentCells(sizes[1:]) {
		if kind != device.CPU || !sliced(calls, c.op) {
			cs = append(cs, c)
		}
	}
	return cs
}

// count writes a number of elements as 10K or 1M.
func count(n int) string {
	switch {
	case n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n%1000 == 0:
		return fmt.Sprintf("%dK", n/1000)
	}
	return fmt.Sprint(n)
}

// numbers returns n numbers between -1 and 1, the same every time.
func numbers(n int) []float32 {
	x := device.Alloc(n)
	s := uint32(1)
	for i := range x {
		s = s*1664525 + 1013904223
		x[i] = float32(int32(s)) / (1 << 31)
	}
	return x
}

func mapCell(o *op.Operation, n int) cell {
	return cell{op: o.Name(), size: count(n), prepare: func(ctx context.Context, dev *device.Device) (work, error) {
		_, arity := o.Arity()
		in := make([][]float32, arity)
		for i := range in {
			in[i] = numbers(n)
		}
		dst := device.Alloc(n)
		return work{run: func() error { return dev.Map(ctx, dst, o, in...) }, bytes: 4 * float64(n*(arity+1)), flops: float64(n)}, nil
	}}
}

func reduceCell(name string, n, operands int, f func(ctx context.Context, d *device.Device, x, y []float32) error) cell {
	return cell{op: name, size: count(n), prepare: func(ctx context.Context, dev *device.Device) (work, error) {
		x, y := numbers(n), numbers(n)
		return work{run: func() error { return f(ctx, dev, x, y) }, bytes: 4 * float64(n*operands), flops: float64(n * operands), reads: true}, nil
	}}
}

func softmaxCell(rows int) cell {
	const cols = 1000
	return cell{op: "softmax", size: fmt.Sprintf("%d×%d", rows, cols), prepare: func(ctx context.Context, dev *device.Device) (work, error) {
		x, y := numbers(rows*cols), device.Alloc(rows*cols)
		s := op.Shape{rows, cols}
		return work{run: func() error { return dev.Softmax(ctx, y, x, rows, cols) }, bytes: 8 * float64(rows*cols),
			flops: flopsOf(op.Softmax, op.Attrs{}, s)}, nil
	}}
}

// flopsOf returns the number of arithmetic operations of one use of o.
func flopsOf(o *op.Operation, a op.Attrs, in ...op.Shape) float64 {
	out, err := o.Shapes(&a, in)
	if err != nil {
		return 0
	}
	return o.Flops(&a, in, out)
}

func matMulCell(m, k, n int) cell {
	return cell{op: "matmul", size: fmt.Sprintf("%d×%d×%d", m, k, n), prepare: func(ctx context.Context, dev *device.Device) (work, error) {
		x, y, z := numbers(m*k), numbers(k*n), device.Alloc(m*n)
		return work{run: func() error { return dev.MatMul(ctx, z, x, y, nil, m, k, n) }, bytes: 4 * float64(m*k+k*n+m*n),
			flops: flopsOf(op.MatMul, op.Attrs{}, op.Shape{m, k}, op.Shape{k, n}), reads: m < 64}, nil
	}}
}

func convCell(channels, side, windows, window int) cell {
	return cell{op: "conv2d", size: fmt.Sprintf("%d×%d×%d, %d of %d×%d", channels, side, side, windows, window, window),
		prepare: func(ctx context.Context, dev *device.Device) (work, error) {
			xs, ws := [4]int{1, channels, side, side}, [4]int{windows, channels, window, window}
			o := op.Conv2DOpts{Pad: [2]int{window / 2, window / 2}}
			x, w, y := numbers(channels*side*side), numbers(windows*channels*window*window), device.Alloc(windows*side*side)
			return work{run: func() error { return dev.Conv2D(ctx, y, x, w, nil, xs, ws, o) }, bytes: 4 * float64(len(x)+len(w)+len(y)),
				flops: flopsOf(op.Conv2D, o.Attrs(), xs[:], ws[:])}, nil
		}}
}

func attentionCell(heads, t, dim int) cell {
	return cell{op: "attention", size: fmt.Sprintf("%d heads %d×%d", heads, t, dim), prepare: func(ctx context.Context, dev *device.Device) (work, error) {
		n := heads * t * dim
		q, k, v, y := numbers(n), numbers(n), numbers(n), device.Alloc(n)
		s := op.Shape{heads, t, dim}
		size := device.AttentionSize{Heads: heads, Tq: t, Tk: t, Dim: dim}
		return work{run: func() error { return dev.Attention(ctx, y, q, k, v, size) }, bytes: 16 * float64(n),
			flops: flopsOf(op.Attention, op.AttentionOpts{}.Attrs(), s, s, s)}, nil
	}}
}

func transposeCell(n int) cell {
	return cell{op: "transpose", size: fmt.Sprintf("%d×%d", n, n), prepare: func(ctx context.Context, dev *device.Device) (work, error) {
		x, y := numbers(n*n), device.Alloc(n*n)
		return work{run: func() error { return dev.Transpose(ctx, y, x, n, n) }, bytes: 8 * float64(n*n)}, nil
	}}
}

func topKCell(rows, cols, k int) cell {
	return cell{op: "topk", size: fmt.Sprintf("%d×%d, k=%d", rows, cols, k), prepare: func(ctx context.Context, dev *device.Device) (work, error) {
		x, v, i := numbers(rows*cols), make([]float32, rows*k), make([]int32, rows*k)
		return work{run: func() error { return dev.TopK(ctx, v, i, x, rows, cols, k) }, bytes: float64(4*rows*cols + 8*rows*k), reads: true}, nil
	}}
}

// fusedCell is a batch of three operations that become one kernel.
func fusedCell(n int) cell {
	return cell{op: "relu+scale+add in a batch", size: count(n), prepare: func(ctx context.Context, dev *device.Device) (work, error) {
		x, y, z := numbers(n), numbers(n), device.Alloc(n)
		b := batch.New(dev)
		return work{run: func() error {
			b.Reset()
			batch.ReadInto(b, b.Add(b.Scale(b.Relu(b.Upload(x)), 0.5), b.Upload(y)), z)
			return b.Execute(ctx)
		}, bytes: 12 * float64(n), flops: 3 * float64(n)}, nil
	}}
}
