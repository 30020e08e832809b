package block

import (
	"encoding/binary"
	"math"
	"testing"
)

// TestHalf compares both directions with the definition of binary16: for every value, for the midpoints of
// neighbouring values, and for the numbers next to the midpoints.
func TestHalf(t *testing.T) {
	value := func(h int) float64 {
		e, m := h>>10&31, float64(h&1023)
		if e == 0 {
			return math.Ldexp(m, -24)
		}
		return math.Ldexp(1024+m, e-25)
	}
	var b [2]byte
	for h := range 0x7c00 {
		v := value(h)
		for _, sign := range []int{0, 0x8000} {
			want := float32(v)
			if sign != 0 {
				want = -want
			}
			binary.LittleEndian.PutUint16(b[:], uint16(h|sign))
			if got := half(b[:]); math.Float32bits(got) != math.Float32bits(want) {
				t.Fatalf("%#04x is %v, want %v", h|sign, got, want)
			}
			mid := float32((v + value(h+1)) / 2) // exact; above the last one 65520
			for _, c := range []struct {
				v    float32
				want int
			}{{float32(v), h}, {mid, h + h&1}, {math.Nextafter32(mid, 0), h}, {math.Nextafter32(mid, 1e9), h + 1}} {
				if sign != 0 {
					c.v = -c.v
				}
				if got := int(halfBits(c.v)); got != c.want|sign {
					t.Fatalf("%v gives %#04x, want %#04x", c.v, got, c.want|sign)
				}
			}
		}
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, v := range []float32{inf, 65520, 65536, math.MaxFloat32} {
		if halfBits(v) != 0x7c00 || halfBits(-v) != 0xfc00 {
			t.Errorf("%v is not infinite", v)
		}
	}
	if v := rounded(nan); v == v {
		t.Errorf("NaN gives %v", v)
	}
	for h := range uint16(0x400) {
		binary.LittleEndian.PutUint16(b[:], 0x7c00+h)
		if v := half(b[:]); h == 0 && v != inf || h != 0 && v == v {
			t.Errorf("%#04x is %v", 0x7c00+h, v)
		}
	}
}
