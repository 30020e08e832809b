package devicetest

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// storesBytes converts, moves and stores arrays of bytes, with all remainders of the length divided by four.
// Bytes around the stored bytes must not change.
func storesBytes(t *testing.T, dev *device.Device) {
	t.Helper()
	ctx := t.Context()
	floats := []float32{-1e9, -129, -128.5, -1.9, float32(math.NaN()), 1.9, 127.5, 128, 255.9, 256, 1e9}
	whole := []int32{-129, -128, -1, 0, 127, 128, 255, 256, 257, math.MaxInt32, math.MinInt32}
	unsigned, signed := []uint8{0, 0, 0, 0, 0, 1, 127, 128, 255, 255, 255}, []int8{-128, -128, -128, -1, 0, 1, 127, 127, 127, 127, 127}
	for n := 1; n <= len(floats); n++ {
		cache, err := device.Upload(ctx, dev, slices.Repeat([]uint8{7}, n+8))
		if err != nil {
			t.Fatal(err)
		}
		b := batch.New(dev)
		x := b.Upload(floats[:n])
		u, s := b.Cast(x, op.U8), b.Cast(x, op.I8)
		low, lowSigned := b.Cast(batch.Upload(b, whole[:n]), op.U8), b.Cast(batch.Upload(b, whole[:n]), op.I8)
		back := b.Concat(0, b.Flip(u, 0), batch.Upload(b, []uint8{1, 200}))
		scaled := b.Cast(b.AddScalar(b.Cast(s, op.F32), 1), op.I8)
		b.Store(cache, 4, u)
		for _, v := range []batch.Value{u, s, low, lowSigned, back, scaled} {
			b.Keep(v)
		}
		if err := b.Execute(ctx); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		flipped, wrapped, wrappedSigned, more := slices.Clone(unsigned[:n]), make([]uint8, n), make([]int8, n), make([]int8, n)
		slices.Reverse(flipped)
		for i := range n {
			wrapped[i], wrappedSigned[i], more[i] = uint8(whole[i]), int8(whole[i]), int8(min(int(signed[i])+1, math.MaxInt8))
		}
		readBytes(t, b, u, unsigned[:n])
		readBytes(t, b, s, signed[:n])
		readBytes(t, b, low, wrapped)
		readBytes(t, b, lowSigned, wrappedSigned)
		readBytes(t, b, back, append(flipped, 1, 200))
		readBytes(t, b, scaled, more)
		got, want := make([]uint8, n+8), slices.Repeat([]uint8{7}, n+8)
		copy(want[4:], unsigned[:n])
		if err := device.Read(ctx, got, cache); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d bytes between others: %v, %v, want %v", n, got, err, want)
		}
		if err := cache.Close(); err != nil {
			t.Error(err)
		}
	}
	b := batch.New(dev)
	x := batch.Upload(b, []uint8{1, 2})
	b.Add(x, x)
	if err := b.Execute(ctx); !errors.Is(err, device.ErrUnsupported) || !strings.Contains(err.Error(), "cast it") {
		t.Errorf("a sum of bytes: %v, want an ErrUnsupported that says to cast", err)
	}
}

func readBytes[T uint8 | int8](t *testing.T, b *batch.Batch, v batch.Value, want []T) {
	t.Helper()
	if got, err := batch.Read[T](t.Context(), b, v); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d bytes: %v, %v, want %v", len(want), got, err, want)
	}
}
