package simd

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// int8Supported returns the kernels that this machine can run, by level.
func int8Supported() map[string]int8Kernels {
	all := map[string]int8Kernels{}
	maps.Copy(all, moreInt8())
	for _, l := range Supported() {
		all[l.String()] = int8KernelsOf(l)
	}
	for _, k := range all {
		if k.prepare != nil {
			k.prepare()
		}
	}
	return all
}

// blockFormats are those with blocks.
func blockFormats() []block.Format {
	var all []block.Format
	for _, f := range block.Formats() {
		if !f.Scalar() {
			all = append(all, f)
		}
	}
	return all
}

// int8Rows returns rows of numbers: some groups are zeros, tiny, huge or alike.
func int8Rows(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := 0; i < n; i += op.Int8Group {
		scale := []float64{1, 1, 1, 1, 0, 1e-3, 1e3, 0x1p-101, 0x1p-99}[r.IntN(9)]
		alike := r.IntN(8) == 0
		for j := range x[i : i+op.Int8Group] {
			x[i+j] = float32(scale * r.NormFloat64())
			if alike {
				x[i+j] = float32(scale) * float32(1-2*r.IntN(2))
			}
		}
	}
	return x
}

func notNumbers(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.NaN())
	}
	return x
}

// multiplyInt8 computes a product in a few parts.
func multiplyInt8(k *int8Kernels, f block.Format, m, depth, n int, a []float32, w []byte, bias []float32) []float32 {
	p := newInt8Product(k, f, m, depth, n)
	shared, lane := p.Scratch()
	p.Bind(notNumbers(shared))
	half := m / 2 / p.RowUnit() * p.RowUnit()
	p.Round(a, 0, half)
	p.Round(a, half, m)
	c := notNumbers(m * n)
	memory := notNumbers(lane)
	cut := n / 3
	p.Columns(memory, c, w, bias, 0, cut)
	p.Columns(memory, c, w, bias, cut, n)
	return c
}

// wantInt8 computes the products of rounded rows in float64, and the magnitudes of their terms.
func wantInt8(f block.Format, m, depth, n int, a []float32, w []byte, bias []float32) (want, mag []float64) {
	q, d := make([]int8, depth), make([]float32, depth/op.Int8Group)
	v, t := make([]float32, n*depth), make([]float32, n*depth)
	if f.Dequantize(v, w) != nil || f.Magnitudes(t, w) != nil {
		panic("lengths")
	}
	for r := range m {
		op.RoundInt8(q, d, a[r*depth:][:depth])
		for j := range n {
			s, g := 0.0, 0.0
			for i := range depth {
				x := float64(q[i]) * float64(d[i/op.Int8Group])
				s += x * float64(v[j*depth+i])
				g += math.Abs(x * float64(t[j*depth+i]))
			}
			if bias != nil {
				s += float64(bias[j])
				g += math.Abs(float64(bias[j]))
			}
			want, mag = append(want, s), append(mag, g)
		}
	}
	return want, mag
}

// TestInt8Products compares with float64, for all formats, kernels and few and many rows.
func TestInt8Products(t *testing.T) {
	r := testutil.Rand(t)
	for level, k := range int8Supported() {
		for _, f := range blockFormats() {
			for _, m := range []int{1, 2, 3, 4, 5, 7, 8, 9, 11, 16, 18, 19, 33} {
				if level == "generic" && m%3 != 0 || testing.Short() && r.IntN(3) > 0 {
					continue
				}
				e := f.Elements()
				depth, n := e*(1+r.IntN(1300/e)), []int{1, 5, 16, 17, 40, 150}[r.IntN(6)]
				if r.IntN(2) == 0 {
					depth = 256 * (1 + r.IntN(5)) // for kernels that need a multiple of 256
				}
				a, w := int8Rows(r, m*depth), anyBlocks(r, f, n*depth/e, true)
				if f == block.MXFP4 {
					for i := 0; i < len(w); i += f.Bytes() {
						w[i] = byte(100 + r.IntN(50)) // products stay in range
					}
				}
				var bias []float32
				if r.IntN(2) == 0 {
					bias = make([]float32, n)
					for i := range bias {
						bias[i] = float32(r.NormFloat64())
					}
				}
				got := multiplyInt8(&k, f, m, depth, n, a, w, bias)
				want, mag := wantInt8(f, m, depth, n, a, w, bias)
				for i := range want {
					// Each group is a term, which is rounded four times before it is added to one of the sums.
					bound := 0x1p-24*mag[i]*float64(depth/16+12) + 0x1p-149*float64(depth*127*127)
					if !(math.Abs(float64(got[i])-want[i]) <= bound) {
						t.Fatalf("%s, %v, %d×%d×%d: element %d is %v, want %v: off by %g, the bound is %g", level, f, m, depth, n, i, got[i], want[i], float64(got[i])-want[i], bound)
					}
				}
			}
		}
	}
}

// TestInt8Extremes multiplies the greatest integers, of both signs, by blocks of one byte again and again: what
// saturated would be far off.
func TestInt8Extremes(t *testing.T) {
	r := testutil.Rand(t)
	for level, k := range int8Supported() {
		for _, f := range blockFormats() {
			for _, fill := range []byte{0x00, 0xff, 0x0f, 0xf0, 0x80, 0x7f, 0x81, 0x55, 0xaa} {
				if testing.Short() && r.IntN(4) > 0 {
					continue
				}
				for _, m := range []int{1, 4, 17} {
					if level == "generic" && m == 4 {
						continue
					}
					depth, n := 512, 18
					w := make([]byte, n*depth/f.Elements()*f.Bytes())
					for i := range w {
						w[i] = fill
					}
					finiteScales(f, w)
					a := make([]float32, m*depth)
					for i := range a {
						a[i] = float32(1 - 2*(i/depth%2)) // rows of one sign, and of both
						if i/depth%3 == 2 {
							a[i] = float32(1 - 2*r.IntN(2))
						}
					}
					got := multiplyInt8(&k, f, m, depth, n, a, w, nil)
					want, mag := wantInt8(f, m, depth, n, a, w, nil)
					for i := range want {
						if !(math.Abs(float64(got[i])-want[i]) <= 0x1p-24*mag[i]*float64(depth/16+12)) {
							t.Fatalf("%s, %v of bytes %#x, %d rows: element %d is %v, want %v", level, f, fill, m, i, got[i], want[i])
						}
					}
				}
			}
		}
	}
}

// finiteScales writes 1 to the scales of blocks that are binary16, and of MXFP4, and leaves the others.
func finiteScales(f block.Format, w []byte) {
	l := f.Layout()
	for i := 0; i < len(w); i += f.Bytes() {
		for _, s := range []block.Float{l.Scale, l.Bias} {
			switch {
			case s.Encoding == block.Binary16 && len(s.Number) == 1:
				at := i + s.Number[0].At/8
				w[at], w[at+1] = 0, 0x3c
			case s.Encoding == block.Binary16: // the upper nibbles of four words
				for j, v := range []byte{0, 0, 0xc0, 0x30} {
					at := i + s.Number[j].At/8
					w[at] = w[at]&0x0f | v
				}
			case s.Encoding == block.E8M0:
				w[i+s.Number[0].At/8] = 127
			}
		}
	}
}

// TestInt8NotFinite checks that an infinity or NaN makes its own row NaN and no other, and that a row
// of zeros gives zeros or the bias, for all weights.
func TestInt8NotFinite(t *testing.T) {
	r := testutil.Rand(t)
	for level, k := range int8Supported() {
		for _, f := range []block.Format{block.Q4_0, block.Q8_0, block.Q4_K, block.Q6_K, block.Q3_K, block.IQ1_S} {
			for _, m := range []int{3, 6, 13} {
				depth, n := 512, 21
				a, w := int8Rows(r, m*depth), anyBlocks(r, f, n*depth/f.Elements(), true)
				bad := r.IntN(m)
				a[bad*depth+r.IntN(depth)] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[r.IntN(3)]
				zero := (bad + 1) % m
				clear(a[zero*depth:][:depth])
				for i, v := range multiplyInt8(&k, f, m, depth, n, a, w, nil) {
					if row := i / n; (v != v) != (row == bad) || row == zero && v != 0 {
						t.Fatalf("%s, %v, %d rows: element %d of row %d is %v; row %d is not finite, row %d is zeros", level, f, m, i%n, row, v, bad, zero)
					}
				}
			}
		}
	}
	for _, s := range [][3]int{{0, 64, 3}, {2, 0, 3}, {2, 64, 0}} {
		got := multiplyInt8(activeInt8(), block.Q4_0, s[0], s[1], s[2], make([]float32, s[0]*s[1]), make([]byte, s[1]*s[2]/32*18), []float32{1, 2, 3}[:s[2]])
		if len(got) != s[0]*s[2] || s[1] == 0 && (got[0] != 1 || got[5] != 3) {
			t.Errorf("%v: %v", s, got)
		}
	}
}

// TestInt8Infinite checks that products of positive numbers and a block whose scale or bias is infinite are infinite and not NaN,
// in blocks at the end of rows whose length is not a multiple of 128, so that they do not fill a vector.
func TestInt8Infinite(t *testing.T) {
	const depth, n = 320, 9
	a := make([]float32, depth)
	for i := range a {
		a[i] = 1
	}
	for level, k := range int8Supported() {
		for _, f := range []block.Format{block.Q4_0, block.Q4_1, block.Q5_0, block.Q5_1, block.Q8_0} {
			for at := range depth / f.Elements() {
				for _, s := range []block.Float{f.Layout().Scale, f.Layout().Bias} {
					if s.Number == nil {
						continue
					}
					w := make([]byte, n*depth/f.Elements()*f.Bytes())
					for i := range w {
						w[i] = 0xff
						if f == block.Q8_0 {
							w[i] = 0x7f
						}
					}
					finiteScales(f, w)
					row := len(w) / n
					for j := range n {
						inf := w[j*row+at*f.Bytes()+s.Number[0].At/8:]
						inf[0], inf[1] = 0, 0x7c
					}
					for j, v := range multiplyInt8(&k, f, 1, depth, n, a, w, nil) {
						if !math.IsInf(float64(v), 1) {
							t.Fatalf("%s, %v: with an infinite factor in block %d, column %d is %v", level, f, at, j, v)
						}
					}
				}
			}
		}
	}
}

// TestInt8Levels compares bits with package block, of any bytes.
func TestInt8Levels(t *testing.T) {
	r := testutil.Rand(t)
	for level, k := range int8Supported() {
		for f, apart := range k.levels {
			f := block.Format(f)
			if apart == nil {
				continue
			}
			for n := 1; n < 200; n += 1 + r.IntN(40) {
				src := anyBlocks(r, f, n, false)
				size, groups := n*f.Elements(), n*f.Elements()/block.LevelGroup
				got, want := make([]int8, size+1), make([]int8, size)
				got[size] = 42
				var factors [4][]float32
				for i := range factors {
					factors[i] = make([]float32, groups+1-i/2)
					factors[i][len(factors[i])-1] = 42
				}
				apart(&got[0], &factors[0][0], &factors[1][0], &src[0], n)
				if err := f.Levels(want, factors[2], factors[3], src); err != nil {
					t.Fatal(err)
				}
				for i, v := range want {
					if got[i] != v {
						t.Fatalf("%s, %v: level %d is %d, want %d", level, f, i, got[i], v)
					}
				}
				for i := range factors[2] {
					if same := func(a, b float32) bool { return a == b || a != a && b != b }; !same(factors[0][i], factors[2][i]) || f.Biased() && !same(factors[1][i], factors[3][i]) {
						t.Fatalf("%s, %v: factors %d are %v and %v, want %v and %v", level, f, i, factors[0][i], factors[1][i], factors[2][i], factors[3][i])
					}
				}
				if got[size] != 42 || factors[0][groups] != 42 || factors[1][groups] != 42 {
					t.Fatalf("%s, %v: wrote behind %d blocks", level, f, n)
				}
			}
		}
	}
}

// TestInt8Round compares bits with package op: numbers that are not finite, subnormal, alike, halfway.
func TestInt8Round(t *testing.T) {
	r := testutil.Rand(t)
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, 1e-45, 0x1p-100, 0x1p-101, 127, 63.5, 0.5, 1.5}
	for level, k := range int8Supported() {
		if k.round == nil {
			continue
		}
		for n := 1; n < 40; n++ {
			x := int8Rows(r, n*op.Int8Group)
			for range n / 2 {
				x[r.IntN(len(x))] = special[r.IntN(len(special))]
			}
			if n%3 == 0 {
				for i := range x {
					x[i] = float32(r.IntN(255)-127) / 2
				}
			}
			got, want := make([]int8, len(x)), make([]int8, len(x))
			d, e := make([]float32, n), make([]float32, n)
			quads, sums := make([]int32, len(x)/4), make([]int32, len(x)/4)
			k.round(&got[0], &d[0], &quads[0], -7, &x[0], n)
			op.RoundInt8(want, e, x)
			quadSums(sums, want, -7)
			for i, v := range want {
				if got[i] != v || quads[i/4] != sums[i/4] {
					t.Fatalf("%s: %v becomes %d, want %d; of four the sum is %d, want %d", level, x[i], got[i], v, quads[i/4], sums[i/4])
				}
			}
			for i, v := range e {
				if d[i] != v && !(d[i] != d[i] && v != v) {
					t.Fatalf("%s: scale %v, want %v", level, d[i], v)
				}
			}
		}
	}
}

// TestInt8Allocates: products by kernels allocate nothing; the decoder that is derived from
// descriptions does.
func TestInt8Allocates(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for level, k := range int8Supported() {
		if k.levels == nil {
			continue
		}
		for _, m := range []int{1, 7, 20} {
			for _, f := range []block.Format{block.Q4_0, block.Q4_K, block.Q6_K} {
				a, w := int8Rows(r, m*512), anyBlocks(r, f, 19*512/f.Elements(), true)
				p := newInt8Product(&k, f, m, 512, 19)
				shared, lane := p.Scratch()
				memory, own, c := make([]float32, shared), make([]float32, lane), make([]float32, m*19)
				if n := testing.AllocsPerRun(3, func() {
					p.Bind(memory)
					p.Round(a, 0, m)
					p.Columns(own, c, w, nil, 0, 19)
				}); n != 0 {
					t.Errorf("%s, %v, %d rows: %v allocations", level, f, m, n)
				}
			}
		}
	}
}
