package devicetest

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// buffers tests arrays on the device.
func buffers(t *testing.T, open Open) {
	dev := start(t, open)
	ctx := t.Context()
	before := dev.Stats()
	for _, n := range []int{0, 1, 7, 1000} {
		roundTrip[float32](t, dev, n)
		roundTrip[int32](t, dev, n)
		roundTrip[uint32](t, dev, n)
		roundTrip[op.Float16](t, dev, n)
		roundTrip[op.BFloat16](t, dev, n)
		roundTrip[uint8](t, dev, n)
		roundTrip[int8](t, dev, n)
	}
	storesBytes(t, dev)
	movesElements(t, dev)

	for _, d := range []op.DType{op.F32, op.F16} {
		scatterInPlace(t, dev, d)
	}

	// Stores and uses take effect in the order of recording.
	cache, err := dev.NewBuffer(ctx, op.F32, 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	b := batch.New(dev)
	zero := b.Use(cache)
	b.Keep(zero)
	row := b.Upload([]float32{1, 2, 3, 4})
	b.Store(cache, 4, b.Scale(row, 10))
	between := b.AddScalar(b.Use(cache), 1)
	b.Store(cache, 7, b.Upload([]float32{-1, -2}))
	after := b.AddScalar(b.Use(cache), 1)
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		v    batch.Value
		want []float32
	}{
		"before the stores":  {zero, []float32{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		"between the stores": {between, []float32{1, 1, 1, 1, 11, 21, 31, 41, 1, 1, 1, 1}},
		"after the stores":   {after, []float32{1, 1, 1, 1, 11, 21, 31, 0, -1, 1, 1, 1}},
	} {
		got, err := batch.Read[float32](ctx, b, c.v)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
	got := make([]float32, 12)
	if err := device.Read(ctx, got, cache); err != nil || !slices.Equal(got, []float32{0, 0, 0, 0, 10, 20, 30, -1, -2, 0, 0, 0}) {
		t.Errorf("the buffer holds %v, %v", got, err)
	}
	// An update in place: the stored value depends on the old value.
	b.Reset()
	b.Store(cache, 0, b.Add(b.Use(cache), b.Use(cache)))
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	if err := device.Read(ctx, got, cache); err != nil || !slices.Equal(got, []float32{0, 0, 0, 0, 20, 40, 60, -2, -4, 0, 0, 0}) {
		t.Errorf("doubled in place the buffer holds %v, %v", got, err)
	}
	for name, c := range map[string]struct{ got, want error }{
		"write too few":    {device.Write(ctx, cache, got[:11]), device.ErrShape},
		"read too few":     {device.Read(ctx, got[:11], cache), device.ErrShape},
		"write a type":     {device.Write(ctx, cache, make([]int32, 12)), device.ErrUnsupported},
		"read a type":      {device.Read(ctx, make([]int32, 12), cache), device.ErrUnsupported},
		"upload, no shape": {second(device.Upload(ctx, dev, got, 5)), device.ErrShape},
		"write to nil":     {device.Write(ctx, nil, got), device.ErrForeign},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	for range 2 {
		if err := cache.Close(); err != nil {
			t.Errorf("Close of a buffer: %v", err)
		}
	}
	if err := device.Read(ctx, got, cache); !errors.Is(err, device.ErrClosed) {
		t.Errorf("read of a closed buffer: %v, want ErrClosed", err)
	}
	b.Reset()
	b.Relu(b.Use(cache))
	if err := b.Execute(ctx); !errors.Is(err, device.ErrClosed) {
		t.Errorf("use of a closed buffer: %v, want ErrClosed", err)
	}
	if s := dev.Stats(); s.Buffers != before.Buffers || s.BufferBytes != before.BufferBytes {
		t.Errorf("%d buffers of %d bytes are left open", s.Buffers-before.Buffers, s.BufferBytes-before.BufferBytes)
	}
}

// scatterInPlace writes rows to places in a buffer, some of them twice and some outside,
// and checks that the elements between them are unchanged.
func scatterInPlace(t *testing.T, dev *device.Device, d op.DType) {
	t.Helper()
	const rows, cols = 7, 3
	buf, err := dev.NewBuffer(t.Context(), d, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Close()
	b := batch.New(dev)
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = float32(i) / 4
	}
	b.Store(buf, 0, b.Cast(b.Upload(x, rows, cols), d))
	ids := []int32{2, -1, 5, 2, 7, -8, 0, 6, 2}
	v := make([]float32, len(ids)*cols)
	for i := range v {
		v[i] = float32(100 + i)
	}
	b.Store(buf, 0, b.Scatter(b.Use(buf), batch.Upload(b, ids), b.Cast(b.Upload(v, len(ids), cols), d)))
	y := b.Cast(b.Use(buf), op.F32)
	if err := b.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := batch.Read[float32](t.Context(), b, y)
	for i, id := range ids {
		if id < 0 {
			id += rows
		}
		if id >= 0 && id < rows {
			copy(x[id*cols:][:cols], v[i*cols:])
		}
	}
	if err != nil || !slices.Equal(got, x) {
		t.Errorf("scatter of %v in place: %v, %v, want %v", d, got, err, x)
	}
}

// roundTrip carries bits to the device and back unchanged. Half floats may pass
// through float32, where a signalling NaN becomes a quiet one.
func roundTrip[T device.Element](t *testing.T, dev *device.Device, n int) {
	t.Helper()
	ctx := t.Context()
	d := device.TypeOf[T]()
	g := newGenerator(uint64(n))
	in, out := newArray(d, n), newArray(d, n)
	for i := range in.data {
		in.data[i] = byte(g.Uint32())
	}
	quiet := func() {
		for i := range n {
			if v := d.Float64(in.data, i); d.Size() == 2 && v != v {
				d.PutFloat64(in.data, i, v)
			}
		}
	}
	quiet()
	buf, err := device.Upload(ctx, dev, view[T](in), n)
	if err != nil {
		if !lacks(dev, d, err) {
			t.Errorf("upload of %d %v: %v", n, d, err)
		}
		return
	}
	defer buf.Close()
	for range 2 {
		out.poison()
		if err := device.Read(ctx, view[T](out), buf); err != nil {
			t.Errorf("read of %d %v: %v", n, d, err)
		} else if !bytes.Equal(in.data, out.data) || out.intact() != nil {
			t.Errorf("%d %v came back changed", n, d)
		}
		for i := range in.data {
			in.data[i] ^= byte(i)
		}
		quiet()
		if err := device.Write(ctx, buf, view[T](in)); err != nil {
			t.Errorf("write of %d %v: %v", n, d, err)
		}
	}
}
