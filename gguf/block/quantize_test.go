package block

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// rootError returns the greatest allowed root mean square of the error, relative to the root mean square of the
// numbers. It is at least 8 standard deviations above the mean of 400 trials of the worst distribution in
// TestQuantizeComesNear.
var rootError = map[Format]float64{
	Q4_0: 0.12, Q4_1: 0.105, Q5_0: 0.06, Q5_1: 0.055, Q8_0: 0.0075,
	Q2_K: 0.33, Q3_K: 0.19, Q4_K: 0.095, Q5_K: 0.048, Q6_K: 0.025,
	IQ1_S: 0.55, IQ1_M: 0.52, IQ2_XXS: 0.41, IQ2_XS: 0.36, IQ2_S: 0.31, IQ3_XXS: 0.23, IQ3_S: 0.19,
	IQ4_NL: 0.1, IQ4_XS: 0.1, TQ1_0: 0.56, TQ2_0: 0.56, MXFP4: 0.15, NVFP4: 0.13, Q1_0: 0.73, Q2_0: 0.46,
}

// elementError is the greatest error of one number, relative to the greatest magnitude of its 256 neighbours, for
// formats without a search for the scale. It is half a level, or a whole level if the other sign has fewer levels,
// plus the error of rounding to binary16. Formats with a search minimise the sum of squared errors and may change the
// sign of one of eight numbers: see anyElement.
var elementError = map[Format]float64{
	Q4_0: 1.0/8 + 1.0/1024,
	Q5_0: 1.0/16 + 1.0/1024,
	Q8_0: 0.5/127 + 1.0/1024,
	Q4_1: 1.0/15 + 2.0/1024, // half of 1/15 of a range of twice the magnitude
	Q5_1: 1.0/31 + 2.0/1024,
}

// anyElement is the greatest error for formats that are not in elementError. A decoded number has at most the greatest
// magnitude plus the step of the coarsest scale, so the error is below twice the greatest magnitude (at most 1.05
// times in 400 trials).
const anyElement = 2

func roundTrip(t testing.TB, f Format, x []float32) []float32 {
	t.Helper()
	size, err := f.Size(len(x))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = 0xa5
	}
	if err := f.QuantizeWeighted(b, x, ones(f)); err != nil {
		t.Fatalf("%v: %v", f, err)
	}
	y := poisoned(len(x))
	if err := f.Dequantize(y, b); err != nil {
		t.Fatal(err)
	}
	return y
}

// TestQuantizeComesNear checks that the errors of numbers of several distributions are within the bounds that follow
// from the levels of each format.
func TestQuantizeComesNear(t *testing.T) {
	r := testutil.Rand(t)
	draw := map[string]func(i int) float64{
		"normal":   func(int) float64 { return r.NormFloat64() },
		"uniform":  func(int) float64 { return r.Float64() - 0.5 },
		"positive": func(int) float64 { return 1 + r.Float64() },
		"negative": func(int) float64 { return -1 - r.Float64() },
		"cosine":   func(i int) float64 { return 0.1 + 2*math.Cos(float64(i)) },
		"constant": func(int) float64 { return -3 },
		"small":    func(int) float64 { return r.NormFloat64() * 1e-2 },
		"large":    func(int) float64 { return r.NormFloat64() * 1e4 },
	}
	for _, f := range quantised() {
		bound := elementError[f]
		if bound == 0 {
			bound = anyElement
		}
		for name, v := range draw {
			if name == "large" && f == NVFP4 {
				continue // its scales end at 224
			}
			x := make([]float32, 4*superElements)
			for i := range x {
				x[i] = float32(v(i))
			}
			y := roundTrip(t, f, x)
			if e := rmse(x, y) / rmse(x, make([]float32, len(x))); !(e <= rootError[f]) {
				t.Errorf("%v, %s: the error is %.4f of the numbers, more than %v", f, name, e, rootError[f])
			}
			for i := range x {
				top := float64(magnitude(extreme(x[i/superElements*superElements:][:superElements])))
				if e := math.Abs(float64(x[i]) - float64(y[i])); !(e <= top*bound) {
					t.Fatalf("%v, %s: element %d is %v, was %v: off by %.3f of the greatest", f, name, i, y[i], x[i], e/top)
				}
			}
		}
	}
}

func TestQuantizeZeros(t *testing.T) {
	for _, f := range quantised() {
		for _, v := range []float32{0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, -0x1p-130, 0x1p-60} {
			x := make([]float32, superElements)
			for i := range x {
				x[i] = v
			}
			for i, y := range roundTrip(t, f, x) {
				if y != 0 && (f != MXFP4 || magnitude(y) > 2*magnitude(v)+0x1p-125) {
					t.Fatalf("%v: element %d is %v, was %v", f, i, y, v)
				}
			}
		}
	}
}

// TestQuantizeRefuses checks that numbers that no block can represent give an error with their position.
func TestQuantizeRefuses(t *testing.T) {
	for _, f := range quantised() {
		for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -1e30, 0x1p40} {
			if f == MXFP4 && v-v == 0 {
				continue // its greatest number is 3/4 of 2^128
			}
			x := make([]float32, 4*superElements)
			at := 2*superElements + 77
			x[at] = v
			b := make([]byte, len(x)/f.Elements()*f.Bytes())
			var e *RangeError
			if err := f.QuantizeWeighted(b, x, ones(f)); !errors.As(err, &e) || e.Block != at/f.Elements() {
				t.Errorf("%v: element %v in block %d: %v", f, v, at/f.Elements(), err)
			}
		}
	}
}

// TestScalars checks that formats of single numbers round to nearest even, and give errors for numbers beyond their
// range.
func TestScalars(t *testing.T) {
	for _, c := range []struct {
		f     Format
		v     float32
		bytes []byte // nil: an error
	}{
		{F32, 1.5, []byte{0, 0, 0xc0, 0x3f}}, {F16, 1.5, []byte{0, 0x3e}}, {F16, 65520, nil},
		{BF16, 0x1.01p0, []byte{0x80, 0x3f}}, {BF16, 0x1.03p0, []byte{0x82, 0x3f}}, {BF16, math.MaxFloat32, nil},
		{F64, -2, []byte{0, 0, 0, 0, 0, 0, 0, 0xc0}},
		{I8, -128, []byte{0x80}}, {I8, 2.5, []byte{2}}, {I8, 128, nil}, {I8, -128.6, nil},
		{I16, -2, []byte{0xfe, 0xff}}, {I16, 32768, nil}, {I32, 1 << 30, []byte{0, 0, 0, 0x40}}, {I32, 1 << 31, nil},
		{I64, -1, []byte{255, 255, 255, 255, 255, 255, 255, 255}}, {I64, 1 << 63, nil},
	} {
		got := make([]byte, c.f.Bytes())
		err := c.f.Quantize(got, []float32{c.v})
		var e *RangeError
		if c.bytes == nil {
			if !errors.As(err, &e) {
				t.Errorf("%v holds %v: %v", c.f, c.v, err)
			}
		} else if err != nil || !bytes.Equal(got, c.bytes) {
			t.Errorf("%v of %v: % x, %v; want % x", c.f, c.v, got, err, c.bytes)
		}
	}
}

// TestImportance checks that numbers with a greater importance have smaller errors, and that invalid importances give
// errors.
func TestImportance(t *testing.T) {
	r := testutil.Rand(t)
	for _, f := range quantised() {
		const rows = 64
		x, w := make([]float32, rows*superElements), make([]float32, superElements)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		for i := range w {
			w[i] = 1
			if i%2 == 0 {
				w[i] = 100
			}
		}
		weighted := func(importance []float32) (e float64) {
			b := make([]byte, len(x)/f.Elements()*f.Bytes())
			if err := f.QuantizeWeighted(b, x, importance); err != nil {
				t.Fatal(err)
			}
			y := make([]float32, len(x))
			if err := f.Dequantize(y, b); err != nil {
				t.Fatal(err)
			}
			for i := range x {
				d := float64(x[i] - y[i])
				e += float64(w[i%len(w)]) * d * d
			}
			return e
		}
		with, without := weighted(w), weighted(slices.Repeat([]float32{1}, superElements))
		// The mean of with/without is 9 standard deviations below 1 for Q2_0 and more for the other formats,
		// except formats in which importances have little effect.
		bound := 1.0
		switch f {
		case Q8_0, Q1_0, TQ1_0, TQ2_0, MXFP4:
			bound = 1.05
		}
		if !(with < bound*without) {
			t.Errorf("%v: error %v with importances, %v with equal ones", f, with, without)
		}
		b := make([]byte, len(x)/f.Elements()*f.Bytes())
		for _, bad := range [][]float32{{}, w[:1], w[:f.Elements()-1], {float32(math.NaN())}, slices.Repeat([]float32{-1}, superElements), slices.Repeat([]float32{1}, 3*superElements)} {
			if err := f.QuantizeWeighted(b, x, bad); !errors.Is(err, ErrImportance) {
				t.Errorf("%v: %d importances: %v", f, len(bad), err)
			}
		}
		if err := f.Quantize(b, x); errors.Is(err, ErrImportance) != f.Layout().Weighted {
			t.Errorf("%v without importances: %v", f, err)
		}
	}
}

// FuzzDequantize decodes random bytes, together and row by row, and requires equal numbers.
func FuzzDequantize(f *testing.F) {
	f.Add(uint8(Q4_0), make([]byte, 36))
	for name, g := range golden(f).Types {
		f.Add(uint8(ByName(name)), []byte(g.Random))
	}
	f.Fuzz(func(t *testing.T, format uint8, src []byte) {
		b := Format(format)
		if !b.Valid() {
			if err := b.Dequantize(make([]float32, 32), src); !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		if len(src)%b.Bytes() != 0 {
			var e *SizeError
			if err := b.Dequantize(make([]float32, len(src)/b.Bytes()*b.Elements()), src); !errors.As(err, &e) {
				t.Fatal(err)
			}
			src = src[:len(src)/b.Bytes()*b.Bytes()]
		}
		n := len(src) / b.Bytes() * b.Elements()
		x := make([]float32, n+1)
		x[n] = 42
		if err := b.Dequantize(x[:n], src); err != nil {
			t.Fatal(err)
		}
		finite := true
		row := poisoned(b.Elements())
		for i, v := range x[:n] {
			if i%len(row) == 0 {
				if err := b.DequantizeRow(row, src, i/len(row)); err != nil {
					t.Fatal(err)
				}
			}
			if math.Float32bits(v)&^(1<<31) != math.Float32bits(row[i%len(row)])&^(1<<31) {
				t.Fatalf("element %d is %v, in its row %v", i, v, row[i%len(row)])
			}
			finite = finite && v-v == 0
		}
		if x[n] != 42 {
			t.Fatal("written beyond the end")
		}
		if b.Check(src) == nil && !finite {
			t.Fatal("finite scales give a number that is not")
		}
	})
}

// FuzzQuantize quantises random numbers. If quantising succeeds, the numbers that the blocks represent must
// be at least as close to the original numbers as zeros are.
func FuzzQuantize(f *testing.F) {
	f.Add(uint8(Q4_K), make([]byte, 4*superElements))
	for name := range golden(f).Types {
		f.Add(uint8(ByName(name)), []byte(golden(f).Input))
	}
	f.Fuzz(func(t *testing.T, format uint8, data []byte) {
		b := Format(format)
		if !b.Valid() || b.Scalar() {
			return
		}
		n := min(len(data)/4, superElements) / b.Elements() * b.Elements()
		x := make([]float32, n)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		dst := make([]byte, n/b.Elements()*b.Bytes())
		if err := b.QuantizeWeighted(dst, x, ones(b)); err != nil {
			var e *RangeError
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			return
		}
		y := poisoned(n)
		if err := b.Dequantize(y, dst); err != nil {
			t.Fatal(err)
		}
		for ; len(x) > 0; x, y = x[b.Elements():], y[b.Elements():] {
			zeros := make([]float32, b.Elements())
			// Scales below the least binary16 are rounded to it or to 0.
			if got, bound := rmse(x[:len(zeros)], y[:len(zeros)]), 1.01*rmse(x[:len(zeros)], zeros)+0x1p-18; !(got <= bound) {
				t.Fatalf("%v: rmse %g, of zeros %g: %v", b, got, bound, x[:len(zeros)])
			}
		}
	})
}
