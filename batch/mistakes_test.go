package batch_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
)

// TestOneBindingForEachValue checks that two bindings to one value, and two results in one slice,
// give errors.
func TestOneBindingForEachValue(t *testing.T) {
	ctx := t.Context()
	dev := openCPU(t)
	b := batch.New(dev)
	x := b.Upload([]float32{1, 2})
	y, z := b.Neg(x), b.Exp(x)
	own := make([]float32, 2)
	batch.ReadInto(b, z, own)
	p, err := b.Compile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	one, two := []float32{3, 4}, []float32{5, 6}
	for name, bind := range map[string][]batch.Binding{
		"two inputs bound to one value":                       {batch.BindInput(x, one), batch.BindOutput(y, two), batch.BindInput(x, one)},
		"two outputs bound to one value":                      {batch.BindOutput(y, one), batch.BindOutput(y, two)},
		"two outputs bound to one slice":                      {batch.BindOutput(y, one), batch.BindOutput(z, one)},
		"two outputs bound to overlapping slices":             {batch.BindOutput(y, two[:2]), batch.BindOutput(z, two[:2])},
		"an output bound to the slice of a recorded ReadInto": {batch.BindOutput(y, own)},
	} {
		if err := p.Run(ctx, bind...); !errors.Is(err, device.ErrOverlap) {
			t.Errorf("%s: %v, want ErrOverlap", name, err)
		}
		if err := p.RunAsync(ctx, bind...).Wait(ctx); !errors.Is(err, device.ErrOverlap) {
			t.Errorf("%s, async: %v, want ErrOverlap", name, err)
		}
	}
	// An operand may share memory with a result.
	if err := p.Run(ctx, batch.BindInput(x, one), batch.BindOutput(y, one), batch.BindOutput(z, two)); err != nil || one[0] != -3 || one[1] != -4 {
		t.Errorf("in place: %v, %v", one, err)
	}
	b = batch.New(dev)
	x = b.Upload([]float32{1, 2})
	batch.ReadInto(b, b.Neg(x), own)
	batch.ReadInto(b, b.Exp(x), own)
	if err := b.Execute(ctx); !errors.Is(err, device.ErrOverlap) {
		t.Errorf("two recorded Gets into one slice: %v, want ErrOverlap", err)
	}
}

// TestReadSaysWhyThereIsNothing checks that the errors of Read say why there is no result.
func TestReadSaysWhyThereIsNothing(t *testing.T) {
	ctx := t.Context()
	b := batch.New(openCPU(t))
	x := b.Upload([]float32{1, 2})
	y := b.Neg(x)
	z := b.Exp(y)
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := batch.Read[float32](ctx, b, y)
	if !errors.Is(err, device.ErrNotExecuted) || !strings.Contains(err.Error(), "not kept") || strings.Contains(err.Error(), "not executed") {
		t.Errorf("a value that another consumed: %v", err)
	}
	late := b.Relu(z)
	if _, err := batch.Read[float32](ctx, b, late); !errors.Is(err, device.ErrExecuted) {
		t.Errorf("a value recorded after Execute: %v", err)
	}
	if _, err := batch.Read[float32](ctx, b, z); err != nil {
		t.Errorf("a result after that mistake: %v", err)
	}
}

// TestZeroValuesReturnErrors calls every method of zero values with zero arguments.
func TestZeroValuesReturnErrors(t *testing.T) {
	for _, v := range []any{new(batch.Batch), batch.New(new(device.Device)), new(batch.Plan), new(device.Pending), new(batch.Profile),
		new(batch.Baseline), batch.Value{}} {
		r := reflect.ValueOf(v)
		for i := range r.NumMethod() {
			name, m := r.Type().Method(i).Name, r.Method(i)
			var args []reflect.Value
			for k := range m.Type().NumIn() {
				if m.Type().IsVariadic() && k == m.Type().NumIn()-1 {
					break
				}
				in := m.Type().In(k)
				switch {
				case in == reflect.TypeFor[context.Context]():
					args = append(args, reflect.ValueOf(t.Context()))
				case in.Kind() == reflect.Interface:
					args = append(args, reflect.ValueOf(new(strings.Builder)))
				default:
					args = append(args, reflect.Zero(in))
				}
			}
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%T.%s: panic: %v", v, name, p)
					}
				}()
				out := m.Call(args)
				if len(out) == 0 || m.Type().Out(len(out)-1) != reflect.TypeFor[error]() || name == "WriteTo" || name == "WriteTrace" {
					return
				}
				if out[len(out)-1].IsNil() {
					t.Errorf("%T.%s returns no error", v, name)
				}
			}()
		}
	}
	if _, err := batch.Read[int32](t.Context(), new(batch.Batch), batch.None); err == nil {
		t.Error("Read of a zero Batch returns no error")
	}
	if v := batch.Upload(new(batch.Batch), []int32{1}); v.Shape() != nil {
		t.Error("Upload to a zero Batch gives a value")
	}
	select {
	case <-new(device.Pending).Done():
	default:
		t.Error("a zero Pending is never done")
	}
}

// TestMistakesNameTheOperand checks that errors say which operand is wrong, and what was expected.
func TestMistakesNameTheOperand(t *testing.T) {
	ctx := t.Context()
	dev := openCPU(t)
	other := batch.New(dev).Upload([]float32{1, 2})
	for _, c := range []struct {
		record func(b *batch.Batch, x batch.Value)
		want   string
	}{
		{func(b *batch.Batch, x batch.Value) { b.Add(x, batch.None) }, "operand 2: the value is None"},
		{func(b *batch.Batch, x batch.Value) { b.Add(other, x) }, "operand 1: the value belongs to another batch"},
		{func(b *batch.Batch, x batch.Value) { b.MSE(x, batch.None) }, "operand 2: the value is None"},
		{func(b *batch.Batch, x batch.Value) { b.Reshape(x, 4, -1) }, "[6] has 6 elements, and the other extents of the shape [4 -1] hold 4: the extent -1 cannot be computed"},
	} {
		b := batch.New(dev)
		c.record(b, b.Upload(make([]float32, 6)))
		if err := b.Execute(ctx); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	b := batch.New(dev)
	y := b.Neg(b.Upload([]float32{1, 2}))
	if _, err := b.Compile(ctx, y); err != nil {
		t.Fatal(err)
	}
	if _, err := batch.Read[float32](ctx, b, y); !errors.Is(err, device.ErrNotExecuted) || !strings.Contains(err.Error(), "BindOutput") {
		t.Errorf("a value of a compiled batch: %v", err)
	}
}
