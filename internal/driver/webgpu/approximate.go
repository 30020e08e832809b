package webgpu

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// WGSL bounds the errors of a device's built-in functions, but the bounds are too wide. A device
// with more accurate functions, such as NVIDIA's, gets shorter functions ([wgsl.Target].Approximate): when
// the first kernel uses one, the device tests it with numbers of all exponents, once for each open
// device.

// approxCase is a function of operand 0 to test.
type approxCase struct {
	expr *ir.Node
	tol  op.Tolerance
}

// approxCases has the functions whose code depends on Target.Approximate.
var approxCases = sync.OnceValue(func() (list []approxCase) {
	of := func(c ir.Code, args ...*ir.Node) *ir.Node {
		n, err := ir.New(c, args...)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		return n
	}
	limit := func(v float64) *ir.Node {
		return ir.NewConst(max(-math.MaxFloat32, min(math.MaxFloat32, v)), ir.F32)
	}
	for _, c := range ir.Codes() {
		units := ir.ApproxUnits(c)
		if units == 0 {
			continue
		}
		x := ir.NewArg(0, ir.F32)
		list = append(list, approxCase{of(c, x), op.Tolerance{ULP: units}})
		for _, r := range ir.Narrows(c) {
			y := of(ir.Min, of(ir.Max, x, limit(r.Operand.Lo)), limit(r.Operand.Hi))
			list = append(list, approxCase{of(c, y), op.Tolerance{ULP: units + r.More}})
		}
	}
	return list
})

const (
	approxLanes = 64
	approxEach  = 16 // numbers for each exponent and sign
)

// approxOperands returns the operands. Their number is a multiple of the workgroup size.
func approxOperands() []float32 {
	inf := float32(math.Inf(1))
	x := []float32{0, float32(math.Copysign(0, -1)), 1, -1, inf, -inf, float32(math.NaN()), math.Float32frombits(0xffc00000),
		math.MaxFloat32, -math.MaxFloat32, 0x1p-126, -0x1p-126, 88.72, 88.73, 90, -87, -110, 128, -126, 0.6, -0.6, 14.5, -14.5}
	rnd := rand.New(rand.NewPCG(1, 1))
	for bits := uint32(1 << 23); bits < 0x7f800000; bits += 1 << 23 {
		for range approxEach {
			m := bits | rnd.Uint32()>>9
			x = append(x, math.Float32frombits(m), math.Float32frombits(m|1<<31))
		}
	}
	for len(x)%approxLanes != 0 {
		x = append(x, 1)
	}
	return x
}

// approxKernel computes all cases. The results of a case follow those of the previous one.
var approxKernel = kernel.New("near", func(b *kernel.Builder, _ *struct{}) {
	b.LocalSize(approxLanes, 1, 1)
	x, y := kernel.Input[kernel.F32](b, "x"), kernel.Output[kernel.F32](b, "y")
	i := b.Index()
	var exprs []*ir.Node
	for _, c := range approxCases() {
		exprs = append(exprs, c.expr)
	}
	for k, v := range portable.Inline(b, exprs, []kernel.Dynamic{kernel.Dyn(x.At(i))}, nil) {
		y.Set(i.Add(x.Len().Mul(kernel.U(uint32(k)))), kernel.As[kernel.F32](b, v))
	}
})

// measureApprox returns nil if the functions of the device are accurate enough for Target.Approximate,
// otherwise an error with the reason.
func (d *device) measureApprox(ctx context.Context) error {
	t := d.target
	t.Approximate = true
	x := approxOperands()
	results, err := d.measure(ctx, approxKernel, t, x, len(approxCases()))
	if err != nil {
		return err
	}
	for k, c := range approxCases() {
		if err := c.check(x, results[k*4*len(x):]); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if a result is wrong. A subnormal result may be 0.
func (c *approxCase) check(x []float32, results []byte) error {
	e := ir.NewEvaluator(c.expr)
	for i, v := range x {
		got := float64(math.Float32frombits(binary.NativeEndian.Uint32(results[4*i:])))
		want := e.Eval([]float64{float64(v)}, nil)
		if math.Abs(want) < 0x1p-126 && math.Abs(got) <= 0x1p-126 {
			continue
		}
		if err := c.tol.Check(got, want, 0, op.F32); err != nil {
			return fmt.Errorf("%s of %v: %w", ir.Format(c.expr, nil, nil), v, err)
		}
	}
	return nil
}
