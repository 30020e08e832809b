package block

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// worstError returns how far a quantized number of a block may be from the
// number, relative to the greatest magnitude of its group: half a level, the
// part of the range that the sign with fewer levels lacks, and what rounding
// the scales costs.
var worstError = map[Format]float64{Q4_0: 0.13, Q5_0: 0.065, Q8_0: 0.0046, Q4_K: 0.25, Q5_K: 0.2, Q6_K: 0.06}

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
	if err := f.Quantize(b, x); err != nil {
		t.Fatalf("%v: %v", f, err)
	}
	y := poisoned(len(x))
	if err := f.Dequantize(y, b); err != nil {
		t.Fatal(err)
	}
	return y
}

func TestQuantizeComesNear(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 4))
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
	for _, f := range Formats() {
		for name, v := range draw {
			x := make([]float32, 4*superElements)
			for i := range x {
				x[i] = float32(v(i))
			}
			y := roundTrip(t, f, x)
			for i := range x {
				top := float64(magnitude(extreme(x[i/superElements*superElements:][:superElements])))
				if e := math.Abs(float64(x[i]) - float64(y[i])); !(e <= top*worstError[f]) {
					t.Fatalf("%v, %s: element %d is %v, was %v: off by %.3f of the greatest", f, name, i, y[i], x[i], e/top)
				}
			}
		}
	}
}

func TestQuantizeZeros(t *testing.T) {
	for _, f := range Formats() {
		for _, v := range []float32{0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, -0x1p-130, 0x1p-60} {
			x := make([]float32, superElements)
			for i := range x {
				x[i] = v
			}
			for i, y := range roundTrip(t, f, x) {
				if y != 0 {
					t.Fatalf("%v: element %d is %v, was %v", f, i, y, v)
				}
			}
		}
	}
}

// TestQuantizeRefuses: what no block can hold is an error that says where.
func TestQuantizeRefuses(t *testing.T) {
	for _, f := range Formats() {
		for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -1e30, 0x1p40} {
			x := make([]float32, 4*superElements)
			at := 2*superElements + 77
			x[at] = v
			b := make([]byte, len(x)/f.Elements()*f.Bytes())
			var e *RangeError
			if err := f.Quantize(b, x); !errors.As(err, &e) || e.Block != at/f.Elements() {
				t.Errorf("%v: element %v in block %d: %v", f, v, at/f.Elements(), err)
			}
		}
	}
}

// FuzzDequantize: any bytes are blocks of numbers, the same ones row by row.
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

// FuzzQuantize: any numbers become blocks or an error, and the blocks are no
// worse than zeros.
func FuzzQuantize(f *testing.F) {
	f.Add(uint8(Q4_K), make([]byte, 4*superElements))
	for name := range golden(f).Types {
		f.Add(uint8(ByName(name)), []byte(golden(f).Input))
	}
	f.Fuzz(func(t *testing.T, format uint8, bytes []byte) {
		b := Format(format)
		if !b.Valid() {
			return
		}
		n := min(len(bytes)/4, 4*superElements) / b.Elements() * b.Elements()
		x := make([]float32, n)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
		}
		dst := make([]byte, n/b.Elements()*b.Bytes())
		if err := b.Quantize(dst, x); err != nil {
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
			// Scales below the least binary16 round to it or to nothing.
			if got, bound := rmse(x[:len(zeros)], y[:len(zeros)]), 1.01*rmse(x[:len(zeros)], zeros)+0x1p-18; !(got <= bound) {
				t.Fatalf("%v: rmse %g, of zeros %g: %v", b, got, bound, x[:len(zeros)])
			}
		}
	})
}
