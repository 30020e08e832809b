package webgpu

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// In WGSL the conversion of float32 to half floats may round to either neighbour, and its result is
// undefined outside their range. GPUs round to nearest even and give infinities: if a test confirms
// this, the conversion rounds values, instead of about fifteen operations on their bits.

// narrowOperands returns, for each exponent, half floats, the midpoints of two half floats, and
// their neighbours. Their number is a multiple of the workgroup size.
func narrowOperands() []float32 {
	var x []float32
	put := func(bits uint32) {
		x = append(x, math.Float32frombits(bits), math.Float32frombits(bits|1<<31))
	}
	for h := 0; h < 0x7c00; h += 1 + h%37 {
		low, high := math.Float32bits(op.F16ToFloat32(uint16(h))), math.Float32bits(op.F16ToFloat32(uint16(h+1)))
		if h == 0x7bff {
			high = math.Float32bits(1 << 16)
		}
		middle := math.Float32bits(math.Float32frombits(low)/2 + math.Float32frombits(high)/2)
		for _, bits := range []uint32{low, low + 1, middle - 1, middle, middle + 1, high - 1} {
			put(bits)
		}
	}
	for _, v := range []float32{65504, 65519, 65519.996, 65520, 65536, 1e5, math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN()), 0x1p-30} {
		put(math.Float32bits(v))
	}
	for len(x)%approxLanes != 0 {
		x = append(x, 1)
	}
	return x
}

// narrowKernel rounds numbers to half floats.
var narrowKernel *kernel.Kernel

func makeNarrowKernel() *kernel.Kernel {
	return kernel.New("narrows", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(approxLanes, 1, 1)
		x, y := kernel.Input[kernel.F32](b, "x"), kernel.Output[kernel.F32](b, "y")
		i := b.Index()
		round := ir.NewRound(ir.RoundF16, ir.NewArg(0, ir.F32))
		y.Set(i, kernel.As[kernel.F32](b, portable.Inline(b, []*ir.Node{round}, []kernel.Dynamic{kernel.Dyn(x.At(i))}, nil)[0]))
	})
}

// measureNarrows returns nil if conversions to half floats round to nearest even, otherwise an
// error with the reason.
func (d *device) measureNarrows(ctx context.Context) error {
	t := d.target
	t.Narrows = true
	x := narrowOperands()
	y, err := d.measure(ctx, narrowKernel, t, x, 1)
	if err != nil {
		return err
	}
	for i, v := range x {
		got, want := math.Float32frombits(binary.NativeEndian.Uint32(y[4*i:])), float32(op.F16.Round(float64(v)))
		if got != want && (got == got || want == want) {
			return fmt.Errorf("%v as a half float is %v, not %v", v, got, want)
		}
	}
	return nil
}
