package op

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/testutil"
)

// quantised returns n random numbers as blocks of d.
func quantised(t testing.TB, r *rand.Rand, d DType, n int) []byte {
	t.Helper()
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	size, err := d.Block().Size(n)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	even := make([]float32, n)
	for i := range even {
		even[i] = 1
	}
	if err := d.Block().QuantizeWeighted(b, x, even); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestQuantTypes(t *testing.T) {
	for _, q := range QuantTypes() {
		f := q.Block()
		if d := QuantType(f); d.Block() != f || !d.Quantized() || d.Size() != 0 || d.Eps() != 0 || d.Float() {
			t.Errorf("type of %v: %v", f, d)
		}
	}
	if QuantType(block.Invalid) != InvalidType {
		t.Error("no format has a type")
	}
	for _, d := range append(DTypes(), InvalidType, DType(200)) {
		if d.Quantized() {
			t.Errorf("%v is quantised", d)
		}
	}
}

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		d    DType
		s    Shape
		want int // -1: refused
	}{
		{F32, Shape{3, 5}, 60}, {F16, Shape{}, 2}, {InvalidType, Shape{4}, 0}, {F32, Shape{-1}, -1},
		{Q4_0, Shape{32}, 18}, {Q4_0, Shape{3, 64}, 108}, {Q4_0, Shape{0, 64}, 0}, {Q4_0, Shape{64, 0}, 0},
		{Q4_0, Shape{}, -1}, {Q4_0, Shape{33}, -1}, {Q4_0, Shape{32, 3}, -1}, {Q4_0, Shape{2, 16}, -1}, {Q4_0, Shape{0, 5}, -1},
		{Q6_K, Shape{2, 256}, 420}, {Q6_K, Shape{8, 64}, -1}, {Q8_0, Shape{math.MaxInt, 32}, -1},
	} {
		n, err := c.d.Bytes(c.s)
		if c.want < 0 && !errors.Is(err, ErrShape) || c.want >= 0 && (err != nil || n != c.want) {
			t.Errorf("%v of %v: %d bytes, %v, want %d", c.s, c.d, n, err, c.want)
		}
	}
}

// TestQuantArray checks that the elements of an array, read together and one by one, are those that
// package block decodes from the memory.
func TestQuantArray(t *testing.T) {
	r := testutil.Rand(t)
	for _, d := range QuantTypes() {
		s := Shape{3, 2 * d.Block().Elements()}
		n, _ := s.Size()
		b := quantised(t, r, d, n)
		want := make([]float32, n)
		if err := d.Block().Dequantize(want, b); err != nil {
			t.Fatal(err)
		}
		a, err := d.Array(s, b)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if a.Data[i] != float64(w) || d.Float64(b, i) != float64(w) || a.Mag[i] < math.Abs(a.Data[i]) {
				t.Fatalf("%v: element %d: %v and %v of magnitude %v, want %v", d, i, a.Data[i], d.Float64(b, i), a.Mag[i], w)
			}
		}
		if _, err := d.Array(s, b[:len(b)-1]); !errors.Is(err, ErrShape) {
			t.Errorf("%v: an array of too few bytes: %v", d, err)
		}
		scale := d.Block().Layout().Scale
		if scale.Encoding != block.Binary16 || len(scale.Number) != 1 {
			continue // the scale does not have two bytes, or is always finite
		}
		binary.LittleEndian.PutUint16(b[scale.Number[0].At/8:], 0x7e00)
		if a, err = d.Array(s, b); err != nil || !math.IsInf(a.Mag[0], 1) || math.IsInf(a.Mag[n-1], 1) {
			t.Errorf("%v: with a damaged scale: %v, magnitudes %v and %v", d, err, a.Mag[0], a.Mag[n-1])
		}
	}
}

func TestMatMulQTypes(t *testing.T) {
	gelu := MatMulQOpts{Act: Gelu}.Attrs()
	for _, c := range []struct {
		o    *Operation
		a    Attrs
		in   []DType
		want DType // InvalidType: refused
	}{
		{MatMulQ, Attrs{}, []DType{F32, Q4_0}, F32},
		{MatMulQ, gelu, []DType{F16, Q6_K, F16}, F16},
		{MatMulQ, Attrs{}, []DType{BF16, Q4_K, InvalidType}, BF16},
		{MatMulQ, Attrs{}, []DType{F32, F32}, InvalidType},
		{MatMulQ, Attrs{}, []DType{Q4_0, Q4_0}, InvalidType},
		{MatMulQ, Attrs{}, []DType{I32, Q4_0}, InvalidType},
		{MatMulQ, Attrs{}, []DType{F32, Q4_0, F16}, InvalidType},
		{MatMulQ, Attrs{}, []DType{F32, Q4_0, Q4_0}, InvalidType},
		{MatMulQ, MatMulQOpts{Act: Add}.Attrs(), []DType{F32, Q4_0}, InvalidType},
		{Gather, Attrs{}, []DType{Q5_K, I32}, F32},
		{Gather, Attrs{}, []DType{Q5_K, Q5_K}, InvalidType},
		{MatMul, Attrs{}, []DType{F32, Q4_0}, InvalidType},
		{Relu, Attrs{}, []DType{Q4_0}, InvalidType},
		{Reshape, Attrs{}, []DType{Q4_0}, InvalidType},
		{Cast, CastTo(Q4_0), []DType{F32}, InvalidType},
		{Cast, CastTo(F32), []DType{Q4_0}, InvalidType},
	} {
		out, err := c.o.Types(&c.a, c.in)
		if c.want == InvalidType && !errors.Is(err, ErrUnsupported) || c.want != InvalidType && (err != nil || len(out) != 1 || out[0] != c.want) {
			t.Errorf("%v of %v: %v, %v, want %v", c.o, c.in, out, err, c.want)
		}
	}
}

func TestMatMulQShapes(t *testing.T) {
	for _, c := range []struct {
		in   []Shape
		want Shape // nil: refused
	}{
		{[]Shape{{2, 32}, {5, 32}}, Shape{2, 5}},
		{[]Shape{{2, 32}, {5, 32}, {5}}, Shape{2, 5}},
		{[]Shape{{3, 2, 32}, {5, 32}, nil}, Shape{3, 2, 5}},
		{[]Shape{{2, 0}, {5, 0}}, Shape{2, 5}},
		{[]Shape{{32}, {5, 32}}, nil},
		{[]Shape{{2, 32}, {32}}, nil},
		{[]Shape{{2, 32}, {1, 5, 32}}, nil},
		{[]Shape{{2, 32}, {32, 5}}, nil},
		{[]Shape{{2, 32}, {5, 32}, {2}}, nil},
		{[]Shape{{2, 32}, nil}, nil},
		{[]Shape{{2, 32}}, nil},
		{[]Shape{{math.MaxInt / 64, 0}, {math.MaxInt / 64, 0}}, nil}, // the result overflows
	} {
		out, err := MatMulQ.Shapes(&Attrs{}, c.in)
		if c.want == nil && !errors.Is(err, ErrShape) || c.want != nil && (err != nil || len(out) != 1 || !out[0].Equal(c.want)) {
			t.Errorf("%v: %v, %v, want %v", c.in, out, err, c.want)
		}
	}
}

// TestMatMulQReference compares the reference with the definition, applied to the numbers that the
// blocks encode, and checks that float32 arithmetic is within the tolerance.
func TestMatMulQReference(t *testing.T) {
	r := testutil.Rand(t)
	for _, d := range QuantTypes() {
		m, k, n := 3, 2*d.Block().Elements(), 4
		w := make([]float32, n*k)
		b := quantised(t, r, d, n*k)
		if err := d.Block().Dequantize(w, b); err != nil {
			t.Fatal(err)
		}
		array, err := d.Array(Shape{n, k}, b)
		if err != nil {
			t.Fatal(err)
		}
		x := NewArray(Shape{m, k})
		for i := range x.Data {
			x.Data[i] = F32.Round(r.NormFloat64())
		}
		bias := &Array{Shape: Shape{n}, Data: []float64{1, -2, 3, -4}}
		a := MatMulQOpts{Act: Relu}.Attrs()
		out, err := MatMulQ.Reference(&a, []*Array{x, array, bias}, []DType{F32, d, F32})
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range out[0].Data {
			want, sum := bias.Data[i%n], float32(bias.Data[i%n])
			for j := range k {
				want += x.Data[i/n*k+j] * float64(w[i%n*k+j])
				sum += float32(x.Data[i/n*k+j]) * w[i%n*k+j]
			}
			if want = max(want, 0); math.Abs(got-want) > 1e-9 {
				t.Errorf("%v: element %d is %v, want %v", d, i, got, want)
			}
			if err := MatMulQ.Check(float64(max(sum, 0)), got, out[0].Mag[i], F32); err != nil {
				t.Errorf("%v: element %d in float32: %v", d, i, err)
			}
			if off := got + 0.2; MatMulQ.Check(off, got, out[0].Mag[i], F32) == nil {
				t.Errorf("%v: element %d: %v passes for %v", d, i, off, got)
			}
		}
	}
}
