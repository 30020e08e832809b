package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/opcase"
	"github.com/rayo-go/rayo/internal/roofline"
	"github.com/rayo-go/rayo/op"
)

// A resident cell measures one operation over arrays on the device with the device's own clock. On
// a GPU, a call on slices would mostly measure the transfer.

// resident is an operation over buffers.
type resident struct{ opcase.Case }

// residentCells returns the cells for every operation.
func residentCells(sizes []int) (cells []cell) {
	for _, o := range op.Catalogue() {
		for i, n := range sizes {
			c, ok := opcase.Of(o, n)
			if !ok || i > 0 && o.Class() == op.Shaped {
				break
			}
			cells = append(cells, cell{op: o.Name(), size: c.Size + ", resident", resident: &resident{c}})
		}
	}
	return cells
}

// record records the operation over new buffers, and stores its first result in another buffer. It
// returns the number of bytes that the operation moves, and a function that frees the buffers.
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
	var in []batch.Value
	for i, s := range r.Shapes {
		buf, err := keep(r.operand(ctx, dev, i, s))
		if err != nil {
			return 0, free, err
		}
		in = append(in, b.Use(buf))
	}
	y := r.Record(b, in)
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

// operand returns operand i: random numbers, indices of rows of the first operand, or zeros.
func (r *resident) operand(ctx context.Context, dev *device.Device, i int, s op.Shape) (*device.Buffer, error) {
	n, err := s.Size()
	if err != nil {
		return nil, err
	}
	switch r.Types[i] {
	case op.F32:
		return device.Upload(ctx, dev, numbers(n), s...)
	case op.I32:
		ids := make([]int32, n)
		for j := range ids {
			ids[j] = int32(j * 7919 % r.Shapes[0][0])
		}
		return device.Upload(ctx, dev, ids, s...)
	}
	return dev.NewBuffer(ctx, r.Types[i], s...)
}

// measure measures the operation relative to the limits of the device: the limits in roof or, if it
// has none, the speed of a copy and a product on the device.
func (r *resident) measure(a *app, dev *device.Device, roof roofline.Roofline) (measured, error) {
	m := measured{Op: r.Op.Name(), Size: r.Size + ", resident"}
	b := batch.New(dev)
	bytes, free, err := r.record(a.ctx, dev, b)
	defer free()
	var p *batch.Profile
	if err == nil {
		p, err = b.Profile(a.ctx)
	}
	if errors.Is(err, device.ErrUnsupported) {
		m.Bound = "unsupported" // for example a type that not every GPU supports
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w", m.Op, err)
	}
	if roof.Copy == 0 || roof.FMA == 0 {
		roof = roofline.Roofline{Read: p.Bandwidth, Copy: p.Bandwidth, FMA: p.Flops}
	}
	w := work{bytes: bytes, flops: flopsOf(r.Op, r.Attrs(), r.Shapes...), reads: r.Op.Class() == op.Reduction}
	return m.under(roof, w, max(p.Total.P50, 1)), nil
}

// sliced reports whether cells measure the operation on slices.
func sliced(cells []cell, name string) bool {
	return slices.ContainsFunc(cells, func(c cell) bool { return c.resident == nil && strings.EqualFold(c.op, name) })
}
