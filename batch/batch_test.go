package batch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

func openCPU(t testing.TB) *device.Device {
	t.Helper()
	dev, err := device.Open(context.Background(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

func equal(t *testing.T, got []float32, want ...float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestExecuteAndRead(t *testing.T) {
	ctx := context.Background()
	b := batch.New(openCPU(t))
	x := b.Upload([]float32{1, 2, -3, 4})
	y := b.Scale(b.Relu(x), 2)
	if _, err := batch.Read[float32](ctx, b, y); !errors.Is(err, device.ErrNotExecuted) {
		t.Errorf("Read before Execute: %v", err)
	}
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	out, err := batch.Read[float32](ctx, b, y)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, out, 2, 4, 0, 8)
	b.Reset()
	if _, err := batch.Read[float32](ctx, b, y); !errors.Is(err, device.ErrForeign) {
		t.Errorf("Read of an old value: %v", err)
	}
}

func TestValueString(t *testing.T) {
	b := batch.New(openCPU(t))
	v := b.Upload(make([]float32, 6), 2, 3)
	for want, v := range map[string]batch.Value{"f32 [2 3]": v, "i32 [2 3]": b.Cast(v, op.I32), "no value": {}} {
		if got := fmt.Sprint(v); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	b.Reset()
	if got := v.String(); got != "no value" {
		t.Errorf("after Reset: %s", got)
	}
}

func TestFirstMistakeSticksWithItsPlace(t *testing.T) {
	b := batch.New(openCPU(t))
	x := b.Upload(make([]float32, 6), 2, 3)
	y := b.Upload(make([]float32, 8), 2, 4)
	_, _, line, _ := runtime.Caller(0)
	b.Relu(b.Add(x, y)) // the line in the error
	err := b.Execute(context.Background())
	if !errors.Is(err, device.ErrShape) || !strings.Contains(err.Error(), fmt.Sprintf("batch_test.go:%d", line+1)) {
		t.Errorf("got %v", err)
	}
	var oe *device.OpError
	if !errors.As(err, &oe) || oe.Op != "add" || len(oe.Shapes) != 2 {
		t.Errorf("got %#v", oe)
	}
}

func TestPlanReplaysWithOtherOperands(t *testing.T) {
	ctx := context.Background()
	b := batch.New(openCPU(t))
	x := b.Upload(make([]float32, 3))
	s := b.Sum(b.Square(x))
	y := b.Div(x, b.Map(op.Sqrt, s))
	p, err := b.Compile(ctx, y, s)
	if err != nil {
		t.Fatal(err)
	}
	in, out, sum := []float32{3, 0, 4}, make([]float32, 3), make([]float32, 1)
	if err := p.Run(ctx, batch.BindInput(x, in), batch.BindOutput(y, out), batch.BindOutput(s, sum)); err != nil {
		t.Fatal(err)
	}
	equal(t, out, 0.6, 0, 0.8)
	equal(t, sum, 25)
	// In place: the result is written to the memory of the operand.
	if err := p.Run(ctx, batch.BindInput(x, in), batch.BindOutput(y, in)); err != nil {
		t.Fatal(err)
	}
	equal(t, in, 0.6, 0, 0.8)
	if err := p.Run(ctx, batch.BindInput(x, in[:2])); !errors.Is(err, device.ErrShape) {
		t.Errorf("short operand: %v", err)
	}
}

func TestStoresKeepTheirPlace(t *testing.T) {
	ctx := context.Background()
	dev := openCPU(t)
	buf, err := device.Upload(ctx, dev, []float32{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	b := batch.New(dev)
	before := b.Use(buf)
	b.Store(buf, 2, b.Upload([]float32{30, 40}))
	after := b.Use(buf)
	x, y := b.Neg(before), b.Neg(after)
	b.Store(buf, 0, b.Scale(after, 10))
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	gx, _ := batch.Read[float32](ctx, b, x)
	gy, _ := batch.Read[float32](ctx, b, y)
	equal(t, gx, -1, -2, -3, -4)
	equal(t, gy, -1, -2, -30, -40)
	got := make([]float32, 4)
	if err := device.Read(ctx, got, buf); err != nil {
		t.Fatal(err)
	}
	equal(t, got, 10, 20, 300, 400)
}

func TestWhatIsNotMadeByItsConstructorIsAnError(t *testing.T) {
	ctx := context.Background()
	var zero batch.Batch
	zero.Upload([]float32{1, 2}, 2)
	if err := zero.Execute(ctx); !errors.Is(err, device.ErrNoDevice) {
		t.Errorf("zero batch: %v", err)
	}
	dev := openCPU(t)
	b := batch.New(dev)
	b.Use(&device.Buffer{})
	if err := b.Execute(ctx); !errors.Is(err, device.ErrForeign) {
		t.Errorf("zero buffer: %v", err)
	}
	b = batch.New(dev)
	b.Const(1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	if err := b.Execute(ctx); !errors.Is(err, device.ErrLimit) {
		t.Errorf("nine extents: %v", err)
	}
	if _, err := dev.NewBuffer(ctx, op.F32, 1, 1, 1, 1, 1, 1, 1, 1, 1); !errors.Is(err, device.ErrLimit) {
		t.Errorf("buffer of nine extents: %v", err)
	}
}

func TestNothingIsRecordedAfterExecute(t *testing.T) {
	ctx := context.Background()
	b := batch.New(openCPU(t))
	x := b.Upload([]float32{1, -2, 3, 4})
	y := b.Relu(x)
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	b.Const(1, 2, 1)
	if !x.Shape().Equal(op.Shape{4}) || !errors.Is(b.Err(), device.ErrExecuted) {
		t.Errorf("after Execute: %v, %v", x.Shape(), b.Err())
	}
	if out, err := batch.Read[float32](ctx, b, y); err != nil || out[1] != 0 {
		t.Errorf("results after an unrelated call: %v, %v", out, err)
	}
}

// TestMovingFactor checks that changing a factor that is an operand of one element compiles no new plans.
func TestMovingFactor(t *testing.T) {
	dev := openCPU(t)
	x, factor := []float32{1, 2, -3}, make([]float32, 1)
	before := dev.Stats().Compiled
	for i := range 10 {
		factor[0] = float32(i)
		b := batch.New(dev)
		y := b.Mul(b.Upload(x), b.Upload(factor))
		if err := b.Execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := batch.Read[float32](t.Context(), b, y)
		if err != nil || got[2] != -3*float32(i) {
			t.Fatalf("times %d: %v, %v", i, got, err)
		}
	}
	if n := dev.Stats().Compiled - before; n != 1 {
		t.Errorf("%d plans, not one", n)
	}
}
