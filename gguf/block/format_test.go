package block

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

func TestSize(t *testing.T) {
	for _, f := range Formats() {
		for _, blocks := range []int{0, 1, 2, 1000} {
			if n, err := f.Size(blocks * f.Elements()); err != nil || n != blocks*f.Bytes() {
				t.Errorf("%v: %d blocks take %d bytes, %v", f, blocks, n, err)
			}
		}
		bad := []int{-1, -f.Elements()}
		if !f.Scalar() {
			bad = append(bad, 1, f.Elements()-1, f.Elements()+1, 16)
		}
		if f.Bytes() > f.Elements() {
			bad = append(bad, math.MaxInt/f.Elements()*f.Elements()) // more bytes than an int can count
		}
		for _, n := range bad {
			var e *SizeError
			if size, err := f.Size(n); !errors.As(err, &e) || e.Elements != n || e.Format != f {
				t.Errorf("%v: %d elements take %d bytes, %v", f, n, size, err)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, f := range Formats() {
		n, size := 2*f.Elements(), 2*f.Bytes()
		for _, c := range [][2]int{{n, size - 1}, {n, size + 1}, {n - 1, size}, {n, 0}, {0, size}, {n - f.Elements(), size}} {
			x, b := make([]float32, c[0]), make([]byte, c[1])
			for i := range x {
				x[i] = 7
			}
			var e *SizeError
			if err := f.Dequantize(x, b); !errors.As(err, &e) {
				t.Errorf("%v: %d bytes dequantized to %d numbers: %v", f, c[1], c[0], err)
			}
			if slices.ContainsFunc(x, func(v float32) bool { return v != 7 }) {
				t.Errorf("%v: numbers written in spite of the error", f)
			}
			if err := f.Quantize(b, x); !errors.As(err, &e) {
				t.Errorf("%v: %d numbers quantized to %d bytes: %v", f, c[0], c[1], err)
			}
			if slices.ContainsFunc(b, func(v byte) bool { return v != 0 }) {
				t.Errorf("%v: bytes written in spite of the error", f)
			}
		}
		var e *SizeError
		for _, i := range []int{-1, 2, math.MaxInt} {
			if err := f.DequantizeRow(make([]float32, f.Elements()), make([]byte, size), i); !errors.As(err, &e) {
				t.Errorf("%v: row %d of 2: %v", f, i, err)
			}
		}
		if err := f.Check(make([]byte, size+1)); f.Bytes() > 1 && !errors.As(err, &e) {
			t.Errorf("%v: Check of a part of a block: %v", f, err)
		}
	}
	for _, f := range []Format{Invalid, I64 + 1, 255} {
		if f.Valid() || f.ID() != 0 || f.Elements() != 0 || f.Bytes() != 0 || f.String() == "" {
			t.Errorf("%v has a layout", f)
		}
		_, size := f.Size(32)
		_, row := f.Row(make([]byte, 64), 32, 0)
		for _, err := range []error{size, row, f.Dequantize(nil, nil), f.Quantize(nil, nil), f.QuantizeWeighted(nil, nil, nil), f.DequantizeRow(nil, nil, 0), f.Check(nil)} {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("%v: %v, want ErrFormat", f, err)
			}
		}
	}
	if ByID(5) != Invalid || ByID(4) != Invalid || ByName("invalid") != Invalid || ByName("q4_0") != Invalid {
		t.Error("found formats that are none")
	}
}

// setScales replaces the scales of a block at the positions that its layout gives.
func setScales(f Format, b []byte, bits func(Encoding) uint32) {
	l := f.Layout()
	if f == F64 {
		binary.LittleEndian.PutUint64(b, math.Float64bits(float64(math.Float32frombits(bits(Binary32)))))
		return
	}
	for _, s := range []*Float{&l.Scale, &l.Bias} {
		if s.Encoding == NoFloat {
			continue
		}
		old, v := make([]uint32, s.Number.Items()), make([]uint32, s.Number.Items())
		s.Number.unpack(old, append(slices.Clone(b), make([]byte, 8)...))
		for i := range v {
			v[i] = old[i] ^ bits(s.Encoding)
		}
		// Fields are packed over zeros, so the old bits are taken out.
		mask := make([]byte, len(b))
		s.Number.pack(mask, v)
		for i, m := range mask {
			b[i] ^= m
		}
	}
}

// randomBlocks returns random bytes, n blocks, with scales of a sensible size.
func randomBlocks(r *rand.Rand, f Format, n int) []byte {
	b := make([]byte, n*f.Bytes())
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for i := 0; i < len(b); i += f.Bytes() {
		setScales(f, b[i:][:f.Bytes()], func(e Encoding) uint32 {
			switch e {
			case E8M0:
				return 110 + r.Uint32N(20)
			case UE4M3:
				return r.Uint32N(127)
			case BFloat16:
				return math.Float32bits(float32(r.NormFloat64())) >> 16
			case Binary32:
				return math.Float32bits(float32(r.NormFloat64()))
			}
			return uint32(halfBits(float32(r.NormFloat64() / 64)))
		})
	}
	return b
}

// TestRows checks that decoding a single row gives the same numbers as decoding the whole matrix.
func TestRows(t *testing.T) {
	r := testutil.Rand(t)
	for _, f := range Formats() {
		const rows = 3
		cols := 2 * f.Elements()
		b := randomBlocks(r, f, rows*2)
		all := poisoned(rows * cols)
		if err := f.Dequantize(all, b); err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			row := poisoned(cols)
			if err := f.DequantizeRow(row, b, i); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(row, all[i*cols:][:cols]) {
				t.Errorf("%v: row %d differs", f, i)
			}
		}
	}
}

// TestDamagedScales checks that Check finds scales that are not finite, and that Dequantize returns numbers that are
// not finite for them.
func TestDamagedScales(t *testing.T) {
	r := testutil.Rand(t)
	damaged := map[Encoding][]uint32{
		Binary16: {0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xffff},
		BFloat16: {0x7f80, 0xff80, 0x7fc0, 0xffff},
		Binary32: {0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff},
		E8M0:     {254, 255},
	}
	for _, f := range Formats() {
		for e, all := range damaged {
			if e != f.Layout().Scale.Encoding {
				continue
			}
			for _, bits := range all {
				b := randomBlocks(r, f, 5)
				if err := f.Check(b); err != nil {
					t.Fatalf("%v: random blocks: %v", f, err)
				}
				setScales(f, b[3*f.Bytes():][:f.Bytes()], func(Encoding) uint32 { return bits })
				var e *RangeError
				if err := f.Check(b); !errors.As(err, &e) || e.Block != 3 || e.Format != f {
					t.Errorf("%v: scale %#04x in block 3: %v", f, bits, err)
				}
				x := make([]float32, 5*f.Elements())
				if err := f.Dequantize(x, b); err != nil {
					t.Fatal(err)
				}
				for i, v := range x {
					if i/f.Elements() != 3 && v-v != 0 {
						t.Fatalf("%v: element %d is %v", f, i, v)
					}
				}
				if !slices.ContainsFunc(x, func(v float32) bool { return v-v != 0 }) {
					t.Errorf("%v: scale %#04x gives finite numbers", f, bits)
				}
			}
		}
	}
}

// TestMagnitudes compares magnitudes with separately computed terms, because the numbers of a block are linear in its
// scale and its bias.
func TestMagnitudes(t *testing.T) {
	r := testutil.Rand(t)
	for _, f := range Formats() {
		n := 4 * f.Elements()
		b := randomBlocks(r, f, 4)
		want := make([]float64, n)
		for _, dropped := range []*Float{&f.Layout().Bias, &f.Layout().Scale} {
			part := slices.Clone(b)
			if f.Layout().Bias.Encoding == NoFloat {
				if dropped == &f.Layout().Scale {
					continue
				}
			} else {
				for i := 0; i < len(part); i += f.Bytes() {
					clear(part[i+dropped.Number[0].At/8:][:2])
				}
			}
			x := poisoned(n)
			if err := f.Dequantize(x, part); err != nil {
				t.Fatal(err)
			}
			for i, v := range x {
				want[i] += math.Abs(float64(v))
			}
		}
		got := poisoned(n)
		if err := f.Magnitudes(got, b); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if math.Abs(float64(got[i])-w) > 1e-6*w {
				t.Fatalf("%v: element %d: %v, want %v", f, i, got[i], w)
			}
		}
		var e *SizeError
		if err := f.Magnitudes(got[1:], b); !errors.As(err, &e) {
			t.Errorf("%v: %v", f, err)
		}
	}
}
