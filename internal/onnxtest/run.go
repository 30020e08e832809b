package onnxtest

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// errNone says that the table lacks an operator.
var errNone = errors.New("no mapping")

// Run computes the case in a batch on a device and compares the results with
// those of ONNX. The error names the elements that differ, or the operation that cannot be computed.
func (c *Case) Run(ctx context.Context, dev *device.Device) error {
	do, ok := operators[c.Node.Operator]
	if !ok {
		return fmt.Errorf("%s: %w", c.Node.Operator, errNone)
	}
	r := newRecorder(dev, c)
	out := do(r)
	if r.err != nil {
		return fmt.Errorf("%s: %w", c.Node.Operator, r.err)
	}
	if err := r.Err(); err != nil {
		return reason(err)
	}
	var named []batch.Value
	for i, want := range c.Out {
		if want == nil {
			continue
		}
		if i >= len(out) {
			return fmt.Errorf("%s: no result %d", c.Node.Operator, i)
		}
		named = append(named, out[i])
	}
	if err := r.Execute(ctx, named...); err != nil {
		return reason(err)
	}
	for i, want := range c.Out {
		if want == nil {
			continue
		}
		if err := r.compare(ctx, out[i], want); err != nil {
			return fmt.Errorf("%s: result %d: %w", c.Node.Operator, i, err)
		}
	}
	return nil
}

// reason returns the mistake of a recording without the line of the mapping.
func reason(err error) error {
	var o *device.OpError
	if errors.As(err, &o) {
		return fmt.Errorf("%s of %v: %w", o.Op, o.Shapes, o.Err)
	}
	return err
}

// compare compares a value that has been computed with what ONNX has.
func (r *recorder) compare(ctx context.Context, v batch.Value, want *Tensor) error {
	if v.Type() != want.Type.DType() {
		return fmt.Errorf("of type %v, want %v", v.Type(), want.Type)
	}
	if !v.Shape().Equal(want.Shape) {
		return fmt.Errorf("of shape %v, want %v", v.Shape(), want.Shape)
	}
	got, err := r.read(ctx, v)
	if err != nil {
		return err
	}
	largest := 0.0
	for _, w := range want.Data {
		if w-w == 0 {
			largest = max(largest, math.Abs(w))
		}
	}
	for i, w := range want.Data {
		if err := r.check(got[i], w, largest, v.Type()); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

const (
	// theirs is by how many units in the last place ONNX's own results, which
	// NumPy computes in float32, may be off.
	theirs = 4
	// ONNX's own tolerance.
	relative, absolute = 1e-3, 1e-7
)

// rounded names the cases whose results ONNX has with four digits.
var rounded = map[string]bool{
	"averagepool_2d_ceil_last_window_starts_on_pad": true,
	"gridsample_bicubic":                            true,
}

// summed names the cases whose results near 0 are sums in float32 of large elements that cancel.
var summed = map[string]bool{"dft_inverse": true, "dft_inverse_opset19": true}

// check compares an element with ONNX's: within the tolerance of the operation if
// the case is one, else within what some float32 sums lose, and never farther
// than ONNX allows, except in cases of summed.
func (r *recorder) check(got, want, largest float64, t op.DType) error {
	if got == want || got != got && want != want {
		return nil
	}
	if got-got != 0 || want-want != 0 || !t.Float() {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	bound := 16*0x1p-23*math.Abs(want) + 8*0x1p-23*largest
	if r.like != nil {
		tol := r.like.Tolerance()
		tol.ULP += theirs
		bound = tol.Bound(want, math.Abs(want), op.F32)
	}
	if limit := relative*math.Abs(want) + absolute; rounded[r.c.Name] {
		bound = limit
	} else if !summed[r.c.Name] {
		bound = min(bound, limit)
	}
	// Both results are rounded to a narrower type.
	bound += map[op.DType]float64{op.F16: t.Eps(), op.BF16: t.Eps()}[t] * math.Abs(want)
	if math.Abs(got-want) > bound {
		return fmt.Errorf("got %v, want %v: off by %.3g, the bound is %.3g", got, want, math.Abs(got-want), bound)
	}
	return nil
}

// read returns the elements of a value that has been computed.
func (r *recorder) read(ctx context.Context, v batch.Value) ([]float64, error) {
	switch v.Type() {
	case op.F16:
		return readAs(ctx, r, v, func(e op.Float16) float64 { return float64(e.Float32()) })
	case op.BF16:
		return readAs(ctx, r, v, func(e op.BFloat16) float64 { return float64(e.Float32()) })
	case op.I32:
		return readAs(ctx, r, v, func(e int32) float64 { return float64(e) })
	case op.U32, op.Bool:
		return readAs(ctx, r, v, func(e uint32) float64 { return float64(e) })
	}
	return readAs(ctx, r, v, func(e float32) float64 { return float64(e) })
}

func readAs[T device.Element](ctx context.Context, r *recorder, v batch.Value, as func(T) float64) ([]float64, error) {
	got, err := batch.Read[T](ctx, r.Batch, v)
	list := make([]float64, len(got))
	for i, e := range got {
		list[i] = as(e)
	}
	return list, err
}
