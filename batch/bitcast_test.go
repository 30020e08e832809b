package batch_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// TestBitcast compares bitcasts in both directions with math.Float32bits, alone and fused with the
// operations before and after.
func TestBitcast(t *testing.T) {
	dev := openCPU(t)
	x := []float32{0, float32(math.Copysign(0, -1)), 1, -1.5, math.MaxFloat32, float32(math.Inf(-1)), 0x1p-126, 3}
	b := batch.New(dev)
	in := b.Upload(x)
	bits := b.Bitcast(in, op.U32)
	exponent := b.ShiftRight(b.Bitcast(b.Abs(in), op.I32), b.Cast(b.Const(23, 1), op.I32))
	back := b.Bitcast(b.Bitcast(bits, op.I32), op.F32)
	same := b.Bitcast(in, op.F32)
	if same != in {
		t.Error("a bitcast to the type that a value has gives another value")
	}
	if err := b.Execute(t.Context(), bits, exponent, back); err != nil {
		t.Fatal(err)
	}
	u, err := batch.Read[uint32](t.Context(), b, bits)
	if err != nil {
		t.Fatal(err)
	}
	e, err := batch.Read[int32](t.Context(), b, exponent)
	if err != nil {
		t.Fatal(err)
	}
	y, err := batch.Read[float32](t.Context(), b, back)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range x {
		want := math.Float32bits(v)
		if u[i] != want || e[i] != int32(want&math.MaxInt32>>23) || math.Float32bits(y[i]) != want {
			t.Errorf("%v: bits %#x, exponent %d and back %#x; want %#x", v, u[i], e[i], math.Float32bits(y[i]), want)
		}
	}
}

// TestBitcastRefuses checks that types other than f32, i32 and u32 give errors.
func TestBitcastRefuses(t *testing.T) {
	dev := openCPU(t)
	for _, to := range []op.DType{op.InvalidType, op.F16, op.BF16, op.Bool, op.Q4_0, op.DType(200)} {
		b := batch.New(dev)
		b.Bitcast(b.Upload([]float32{1}), to)
		if err := b.Execute(t.Context()); !errors.Is(err, device.ErrUnsupported) {
			t.Errorf("to %v: %v", to, err)
		}
		if !slices.Contains(op.DTypes(), to) || to == op.InvalidType {
			continue
		}
		b = batch.New(dev)
		b.Bitcast(b.Cast(b.Upload([]float32{1}), to), op.I32)
		if err := b.Execute(t.Context()); !errors.Is(err, device.ErrUnsupported) {
			t.Errorf("from %v: %v", to, err)
		}
	}
	b := batch.New(dev)
	b.Bitcast(batch.Value{}, op.F32)
	if err := b.Execute(t.Context()); err == nil {
		t.Error("the zero value is taken")
	}
}
