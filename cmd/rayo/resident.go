package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/roofline"
	"github.com/rayo-go/rayo/op"
)

// What is measured resident is one operation over arrays that stay on the device,
// recorded and timed by the device's own clock: on a GPU, where a call on slices is
// mostly their transfer.

// resident is an operation over operands of these types and shapes.
type resident struct {
	o      *op.Operation
	size   string
	types  []op.DType
	shapes []op.Shape
	args   []any // of the method, behind the operands
}

// shapedOperands are the operands of the operations that have shapes of their own. The
// first type is float32 unless types says otherwise.
var shapedOperands = map[*op.Operation]resident{
	op.MatMul:    {size: "1024³", shapes: []op.Shape{{1024, 1024}, {1024, 1024}}},
	op.MatVec:    {size: "4096×4096", shapes: []op.Shape{{4096, 4096}, {4096}}},
	op.MatMulQ:   {size: "8×4096×4096", types: []op.DType{op.F32, op.Q4_0}, shapes: []op.Shape{{8, 4096}, {4096, 4096}}},
	op.Transpose: {size: "2048×2048", shapes: []op.Shape{{2048, 2048}}},
	op.Conv2D:    {size: "64×56×56, 64 of 3×3", shapes: []op.Shape{{1, 64, 56, 56}, {64, 64, 3, 3}}},
	op.Attention: {size: "8 heads 512×64", shapes: []op.Shape{{8, 512, 64}, {8, 512, 64}, {8, 512, 64}}},
	op.Rope:      {size: "512×8×64", shapes: []op.Shape{{512, 8, 64}}},
	op.Gather:    {size: "4096 of 10000×256", types: []op.DType{op.F32, op.I32}, shapes: []op.Shape{{10_000, 256}, {4096}}},
	op.TopK:      {size: "1000×1000, k=10", shapes: []op.Shape{{1000, 1000}}, args: []any{10}},
	op.Reshape:   {size: "1M", shapes: []op.Shape{{1000, 1000}}, args: []any{1_000_000}},
}

// residentsOf returns the measurements of an operation for arrays of about n elements.
func residentsOf(o *op.Operation, n int) (resident, bool) {
	r := resident{size: count(n)}
	switch o.Class() {
	case op.Elementwise:
		for range o.Inputs() {
			r.shapes = append(r.shapes, op.Shape{n})
		}
		if o == op.Where {
			r.types = []op.DType{op.Bool, op.F32, op.F32}
		}
	case op.Reduction:
		for range o.Inputs() {
			r.shapes = append(r.shapes, op.Shape{n})
		}
	case op.Row:
		r.size = fmt.Sprintf("%d×1000", n/1000)
		r.shapes = []op.Shape{{n / 1000, 1000}}
		for range o.Inputs()[1:] {
			r.shapes = append(r.shapes, op.Shape{1000})
		}
	default:
		var ok bool
		if r, ok = shapedOperands[o]; !ok {
			return r, false
		}
	}
	switch {
	case o == op.Cast:
		r.args = []any{op.F16}
	case o.Options() == "":
		for i := range o.Params() {
			r.args = append(r.args, float32(i)-0.5) // the limits of clip rise
		}
	}
	for len(r.types) < len(r.shapes) {
		r.types = append(r.types, op.F32)
	}
	r.o = o
	return r, true
}

// residentCells returns what is measured of every operation.
func residentCells(sizes []int) (cells []cell) {
	for _, o := range op.Catalogue() {
		for i, n := range sizes {
			r, ok := residentsOf(o, n)
			if !ok || i > 0 && o.Class() == op.Shaped {
				break
			}
			cells = append(cells, cell{op: o.Name(), size: r.size + ", resident", resident: &r})
		}
	}
	return cells
}

// record records the operation over new buffers, its first result stored into another,
// and returns the bytes that move and what frees the buffers.
func (r *resident) record(ctx context.Context, dev *device.Device, b *batch.Batch) (bytes float64, free func(), err error) {
	var buffers []*device.Buffer
	free = func() {
		for _, buf := range buffers {
			buf.Close()
		}
	}
	keep := func(buf *device.Buffer, err error) (*device.Buffer, error) {
		if err == nil {
			n, _ := buf.Type().Bytes(buf.Shape())
			bytes += float64(n)
			buffers = append(buffers, buf)
		}
		return buf, err
	}
	var args []reflect.Value
	for i, s := range r.shapes {
		buf, err := keep(r.operand(ctx, dev, i, s))
		if err != nil {
			return 0, free, err
		}
		args = append(args, reflect.ValueOf(b.Use(buf)))
	}
	for _, a := range r.args {
		args = append(args, reflect.ValueOf(a))
	}
	y := reflect.ValueOf(b).MethodByName(r.o.GoName()).Call(args)[0].Interface().(batch.Value)
	if b.Err() != nil {
		return 0, free, b.Err()
	}
	buf, err := keep(dev.NewBuffer(ctx, y.Type(), y.Shape()...))
	if err != nil {
		return 0, free, err
	}
	b.Store(buf, 0, y)
	return bytes, free, b.Err()
}

// operand returns operand i: numbers, places among the rows of the first operand, or
// zeros.
func (r *resident) operand(ctx context.Context, dev *device.Device, i int, s op.Shape) (*device.Buffer, error) {
	n, err := s.Size()
	if err != nil {
		return nil, err
	}
	switch r.types[i] {
	case op.F32:
		return device.Upload(ctx, dev, numbers(n), s...)
	case op.I32:
		ids := make([]int32, n)
		for j := range ids {
			ids[j] = int32(j * 7919 % r.shapes[0][0])
		}
		return device.Upload(ctx, dev, ids, s...)
	}
	return dev.NewBuffer(ctx, r.types[i], s...)
}

// measure measures the operation against the limits of the device: those of roof, or,
// where it has none, what a copy and a product on the device reach.
func (r *resident) measure(a *app, dev *device.Device, roof roofline.Roofline) (measured, error) {
	m := measured{Op: r.o.Name(), Size: r.size + ", resident"}
	b := batch.New(dev)
	bytes, free, err := r.record(a.ctx, dev, b)
	defer free()
	var p *batch.Profile
	if err == nil {
		p, err = b.Profile(a.ctx)
	}
	if errors.Is(err, device.ErrUnsupported) {
		m.Bound = "unsupported" // as a type that not every GPU has
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w", m.Op, err)
	}
	if roof.Copy == 0 || roof.FMA == 0 {
		roof = roofline.Roofline{Read: p.Bandwidth, Copy: p.Bandwidth, FMA: p.Flops}
	}
	attrs := r.o.Defaults()
	if r.o == op.TopK {
		attrs = op.TopKOpts{K: r.args[0].(int)}.Attrs()
	}
	w := work{bytes: bytes, flops: flopsOf(r.o, attrs, r.shapes...), reads: r.o.Class() == op.Reduction}
	return m.under(roof, w, max(p.Total.P50, 1)), nil
}

// sliced reports whether cells measure the operation on slices.
func sliced(cells []cell, name string) bool {
	for _, c := range cells {
		if c.resident == nil && strings.EqualFold(c.op, name) {
			return true
		}
	}
	return false
}
