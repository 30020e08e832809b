package devicetest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// copies tests copies from buffer to buffer: on one device, to another device of the same kind, and to and
// from the CPU.
func copies(t *testing.T, open Open) {
	dev := start(t, open)
	other := start(t, open)
	cpu := start(t, func(t testing.TB) *device.Device {
		d, err := device.Open(t.Context(), device.Require(device.CPU))
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
	for name, way := range map[string][2]*device.Device{
		"on one device":      {dev, dev},
		"to another device":  {dev, other},
		"from the processor": {cpu, dev},
		"to the processor":   {dev, cpu},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{0, 1, 7, 1000, 70001} {
				carry[float32](t, way[0], way[1], n)
				carry[op.BFloat16](t, way[0], way[1], n)
				carry[uint32](t, way[0], way[1], n)
			}
			carryBlocks(t, way[0], way[1])
		})
	}
	refused(t, dev, other)
}

// carry copies n elements from one device to another and checks both buffers.
func carry[T device.Element](t *testing.T, from, to *device.Device, n int) {
	t.Helper()
	ctx := t.Context()
	d := device.TypeOf[T]()
	in, out := newArray(d, n), newArray(d, n)
	for i := range n {
		d.PutFloat64(in.data, i, float64(rand.IntN(200)))
	}
	src, err := device.Upload(ctx, from, view[T](in), n)
	if err != nil {
		if !lacks(from, d, err) {
			t.Error(err)
		}
		return
	}
	defer src.Close()
	dst, err := to.NewBuffer(ctx, d, 1, n)
	if err != nil {
		if !lacks(to, d, err) {
			t.Error(err)
		}
		return
	}
	defer dst.Close()
	if err := device.Copy(ctx, dst, src); err != nil {
		t.Errorf("%d of %v: %v", n, d, err)
		return
	}
	if err := device.Copy(ctx, src, src); err != nil {
		t.Errorf("%d of %v to itself: %v", n, d, err)
	}
	for _, b := range []*device.Buffer{dst, src} {
		out.poison()
		if err := device.Read(ctx, view[T](out), b); err != nil || !bytes.Equal(in.data, out.data) {
			t.Errorf("%d of %v came changed, %v", n, d, err)
		}
	}
}

// carryBlocks is carry for an array of an odd number of quantised blocks.
func carryBlocks(t *testing.T, from, to *device.Device) {
	t.Helper()
	ctx := t.Context()
	x := newGenerator(3).quantised(op.Q8_0, op.Shape{3, 32})
	src, err := device.UploadBlocks(ctx, from, x.Blocks, op.Q8_0, 3, 32)
	if err != nil {
		t.Error(err)
		return
	}
	defer src.Close()
	dst, err := to.NewBuffer(ctx, op.Q8_0, 3, 32)
	if err != nil {
		t.Error(err)
		return
	}
	defer dst.Close()
	out := make([]byte, len(x.Blocks))
	if err := device.Copy(ctx, dst, src); err != nil {
		t.Error(err)
	} else if err := device.ReadBlocks(ctx, out, dst); err != nil || !bytes.Equal(out, x.Blocks) {
		t.Errorf("blocks came changed, %v", err)
	}
}

// refused calls Copy with wrong arguments, and checks that it leaves the buffers unchanged.
func refused(t *testing.T, dev, other *device.Device) {
	ctx := t.Context()
	fresh := func(d *device.Device, typ op.DType, n int) *device.Buffer {
		b, err := d.NewBuffer(ctx, typ, n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	for _, to := range []*device.Device{dev, other} {
		src, gone := fresh(dev, op.F32, 5), fresh(to, op.F32, 5)
		_ = gone.Close()
		for name, c := range map[string]struct{ got, want error }{
			"nil":          {device.Copy(ctx, nil, src), device.ErrForeign},
			"of nil":       {device.Copy(ctx, src, nil), device.ErrForeign},
			"a length":     {device.Copy(ctx, fresh(to, op.F32, 6), src), device.ErrShape},
			"a type":       {device.Copy(ctx, fresh(to, op.I32, 5), src), device.ErrUnsupported},
			"closed":       {device.Copy(ctx, gone, src), device.ErrClosed},
			"of closed":    {device.Copy(ctx, src, gone), device.ErrClosed},
			"context over": {device.Copy(over, fresh(to, op.F32, 5), src), context.Canceled},
		} {
			if !errors.Is(c.got, c.want) {
				t.Errorf("%s: %v, want %v", name, c.got, c.want)
			}
		}
	}
}
