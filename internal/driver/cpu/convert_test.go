package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/op"
)

func TestHalves(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		got, want := fromF16(h), op.F16ToFloat32(h)
		if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
			t.Fatalf("%#x is %v, not %v", h, got, want)
		}
		if back := toF16(want); back != h && want == want {
			t.Fatalf("%v is %#x, not %#x", want, back, h)
		}
	}
	check := func(b uint32) {
		v := math.Float32frombits(b)
		got, want := toF16(v), op.F16FromFloat32(v)
		if v != v {
			if got&0x7c00 != 0x7c00 || got&0x3ff == 0 {
				t.Fatalf("NaN %#x became %#x", b, got)
			}
		} else if got != want {
			t.Fatalf("%v (%#x) became %#x, not %#x", v, b, got, want)
		}
	}
	// All halves' neighbourhoods, where rounding is decided, and anything.
	for i := range 1 << 16 {
		b := math.Float32bits(fromF16(uint16(i)))
		for _, d := range []uint32{0, 1, 0xfff, 0x1000, 0x1001, 0x1fff} {
			check(b + d)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 1_000_000 {
		check(r.Uint32())
	}
}

func BenchmarkHalves(b *testing.B) {
	const n = 1024
	x, h := make([]float32, n), make([]float32, n/2)
	for i := range x {
		x[i] = float32(i)*0.37 - 100
	}
	for _, k := range []struct {
		name   string
		fn     kernel
		dst, x *float32
	}{{"widenF16", widenF16, &x[0], &h[0]}, {"narrowF16", narrowF16, &h[0], &x[0]}, {"widenBF16", widenBF16, &x[0], &h[0]}, {"narrowBF16", narrowBF16, &h[0], &x[0]}} {
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(6 * n)
			for b.Loop() {
				k.fn(k.dst, k.x, nil, nil, n, nil)
			}
		})
	}
}
