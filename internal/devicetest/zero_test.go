package devicetest

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// TestZeroDevice calls every method of the zero Device. None may panic, and methods with an error result must return
// ErrNoDevice.
func TestZeroDevice(t *testing.T) {
	none := new(device.Device)
	ctx := t.Context()
	errs := everyMethod(ctx, none)
	if len(errs) < 100 {
		t.Errorf("only %d methods were called", len(errs))
	}
	x := make([]float32, 2)
	errs["Rope"] = none.Rope(ctx, x, x[:0], 0, 1, 2)
	errs["Tune"] = second(none.Tune(ctx, op.MatMul, op.Attrs{}, []op.DType{op.F32, op.F32}, []op.Shape{{2, 2}, {2, 2}}))
	errs["Upload"] = second(device.Upload(ctx, none, x))
	errs["UploadBlocks"] = second(device.UploadBlocks(ctx, none, make([]byte, 34), op.Q8_0, 32))
	errs["Kernel"] = second(none.Kernel(ctx, kernel.New("one", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(1, 1, 1)
		kernel.Output[kernel.F32](b, "y").Set(kernel.U(0), kernel.F(1))
	})))
	b := batch.New(none)
	b.Relu(b.Upload(x))
	errs["a batch"] = b.Execute(ctx)
	for name, err := range errs {
		if name == "Rope" && errors.Is(err, device.ErrShape) {
			continue
		}
		if !errors.Is(err, device.ErrNoDevice) {
			t.Errorf("%s: %v, want ErrNoDevice", name, err)
		}
	}
	for i := range reflect.TypeOf(none).NumMethod() {
		if m := reflect.ValueOf(none).Method(i); m.Type().NumIn() == 0 {
			m.Call(nil)
		}
	}
	select {
	case <-none.Lost():
	default:
		t.Error("the zero Device is not lost")
	}
}

// TestZeroValues checks that methods of other zero values return errors too.
func TestZeroValues(t *testing.T) {
	dev := start(t, cpu(1))
	ctx := t.Context()
	x := make([]float32, 1)
	buf, err := device.Upload(ctx, dev, x)
	if err != nil {
		t.Fatal(err)
	}
	zero := new(device.Buffer)
	for name, c := range map[string]struct{ got, want error }{
		"copy from":        {device.Copy(ctx, buf, zero), device.ErrForeign},
		"copy to":          {device.Copy(ctx, zero, buf), device.ErrForeign},
		"close":            {zero.Close(), device.ErrForeign},
		"wait":             {new(device.Pending).Wait(ctx), device.ErrForeign},
		"value":            {second(new(device.Future[float32]).Value(ctx)), device.ErrForeign},
		"map":              {dev.Map(ctx, x, new(op.Operation), x), device.ErrUnsupported},
		"map of nothing":   {dev.Map(ctx, x, new(op.Operation)), device.ErrUnsupported},
		"map, not waiting": {dev.MapAsync(ctx, x, new(op.Operation)).Wait(ctx), device.ErrUnsupported},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if zero.Type() != op.InvalidType || zero.Shape() != nil || zero.Device() != nil {
		t.Error("the zero Buffer is something")
	}
	select {
	case <-new(device.Pending).Done():
	default:
		t.Error("the zero Pending is not over")
	}
	b := batch.New(dev)
	b.Map(new(op.Operation), b.Upload(x))
	if !errors.Is(b.Err(), device.ErrUnsupported) {
		t.Errorf("map in a batch: %v", b.Err())
	}
}

// TestErrorTexts checks that errors say what was given and what to do.
func TestErrorTexts(t *testing.T) {
	dev, twin := start(t, cpu(1)), start(t, cpu(1))
	ctx := t.Context()
	x := make([]float32, 16)
	buf, err := device.Upload(ctx, twin, x)
	if err != nil {
		t.Fatal(err)
	}
	recorded := func(f func(b *batch.Batch)) error {
		b := batch.New(dev)
		f(b)
		return b.Execute(ctx)
	}
	for name, c := range map[string]struct {
		err  error
		is   error
		says string
	}{
		"clip":           {dev.Map(ctx, x[:4], op.Clip, x[4:8]), device.ErrUnsupported, "lo and hi, which Map cannot pass: call the method Clip"},
		"axpy":           {dev.Map(ctx, x[:4], op.Axpy, x[4:8], x[4:8]), device.ErrUnsupported, "call the method Axpy"},
		"scale":          {dev.MapAsync(ctx, x[:4], op.Scale, x[4:8]).Wait(ctx), device.ErrUnsupported, "call the method Scale"},
		"add_scalar":     {recorded(func(b *batch.Batch) { b.Map(op.AddScalar, b.Upload(x)) }), device.ErrUnsupported, "call the method AddScalar"},
		"leaky_relu":     {dev.Map(ctx, x[:4], op.LeakyRelu, x[4:8]), nil, ""},
		"twin":           {recorded(func(b *batch.Batch) { b.Use(buf) }), device.ErrForeign, "buffer of another Device of cpu:0, which was opened twice"},
		"no buffer":      {recorded(func(b *batch.Batch) { b.Use(nil) }), device.ErrForeign, "not of this device"},
		"overlap of add": {dev.Add(ctx, x[:4], x[8:12], x[2:6]), device.ErrOverlap, "overlaps y partially"},
		"overlap":        {dev.MatMul(ctx, x[:4], x[4:8], x[2:6], nil, 2, 2, 2), device.ErrOverlap, "operand b"},
		"shape first":    {dev.MatMul(ctx, x[:4], x[4:8], x[2:6], nil, 2, 3, 2), device.ErrShape, "shape"},
		"types":          {recorded(func(b *batch.Batch) { v := b.Upload(x); b.Exp(b.Less(v, v)) }), device.ErrUnsupported, "operand of type bool: expected f32, f16, bf16"},
	} {
		if !errors.Is(c.err, c.is) || c.err != nil && !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v, want %v with %q", name, c.err, c.is, c.says)
		}
	}
}
