package simd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/testutil"
)

// anyBlocks returns n blocks of random bytes; no scale is infinite or NaN if
// finite.
func anyBlocks(r *rand.Rand, f block.Format, n int, finite bool) []byte {
	b := make([]byte, n*f.Bytes())
	for i := 0; i < len(b); i += f.Bytes() {
		one := b[i:][:f.Bytes()]
		for again := true; again; again = finite && f.Check(one) != nil {
			for j := range one {
				one[j] = byte(r.Uint32())
			}
		}
	}
	return b
}

// quantFormats returns the formats that have kernels in assembly.
func quantFormats() []block.Format {
	return []block.Format{block.Q4_0, block.Q4_1, block.Q5_0, block.Q5_1, block.Q8_0, block.Q4_K, block.Q5_K, block.Q6_K}
}

// TestDequantizeIsBlocks compares bits with package block: every level, all
// scales, addresses and numbers of blocks, and nothing written beside.
func TestDequantizeIsBlocks(t *testing.T) {
	r := testutil.Rand(t)
	for _, l := range Supported() {
		for _, f := range quantFormats() {
			k := quantKernelsFor(quantKernelsOf(l), f)
			if k.dequantize == nil {
				if l == AVX2 || l == AVX512 {
					t.Errorf("%v has no kernel for %v", l, f)
				}
				continue
			}
			for n := 1; n <= 9; n++ {
				for offset := range 4 {
					src := append(make([]byte, offset), anyBlocks(r, f, n, false)...)[offset:]
					want := make([]float32, n*f.Elements())
					if err := f.Dequantize(want, src); err != nil {
						t.Fatal(err)
					}
					const guard = 36
					all := make([]float32, len(want)+2*guard)
					sameBlocks(t, k.dequantize, all, guard+offset-4, want, src, n)
					if k.stream != nil {
						ahead := -uintptr(unsafe.Pointer(&all[0])) % streamAlign / 4
						sameBlocks(t, k.stream, all, int(ahead)+streamAlign/4, want, src, n)
					}
				}
			}
		}
	}
}

// TestDequantizeStream decodes parts of a large matrix, of several calls, to aligned and to other addresses.
func TestDequantizeStream(t *testing.T) {
	r := testutil.Rand(t)
	for _, f := range quantFormats() {
		n := (2*streamElements + 1 + r.IntN(streamElements)) / f.Elements()
		src := anyBlocks(r, f, n, false)
		want := make([]float32, n*f.Elements())
		if err := f.Dequantize(want, src); err != nil {
			t.Fatal(err)
		}
		all := make([]float32, len(want)+4*streamAlign)
		ahead := -uintptr(unsafe.Pointer(&all[0])) % streamAlign / 4
		run := func(dst *float32, _ *byte, _ int) {
			dequantizePart(f, unsafe.Slice(dst, len(want)), src, math.MaxInt/4)
		}
		for _, at := range []int{0, 1 + r.IntN(streamAlign/4-1)} {
			sameBlocks(t, run, all, int(ahead)+streamAlign/4+at, want, src, n)
		}
	}
}

// sameBlocks has a kernel decode n blocks to a part of all, and compares.
func sameBlocks(t *testing.T, run dequantizeFunc, all []float32, first int, want []float32, src []byte, n int) {
	t.Helper()
	for i := range all {
		all[i] = 42
	}
	got := all[first:][:len(want)]
	for i := range got {
		got[i] = float32(math.NaN())
	}
	run(&got[0], &src[0], n)
	for i, w := range want {
		if math.Float32bits(got[i]) != math.Float32bits(w) && !(w != w && got[i] != got[i]) {
			t.Fatalf("element %d of %d blocks is %v, want %v", i, n, got[i], w)
		}
	}
	for i, v := range all {
		if v != 42 && (i < first || i >= first+len(want)) {
			t.Fatalf("wrote at %d beside %d numbers", i-first, len(want))
		}
	}
}

// TestDotBlocks compares with sums in float64.
func TestDotBlocks(t *testing.T) {
	r := testutil.Rand(t)
	for _, l := range Supported() {
		for _, f := range quantFormats() {
			dot := func(x []float32, src []byte) float32 { return dotBlocksGeneric(f, x, src) }
			if k := quantKernelsFor(quantKernelsOf(l), f); k.dot != nil {
				dot = func(x []float32, src []byte) float32 {
					sums := make([]float32, len(x)/group)
					GroupSums(sums, x)
					return k.dot(&x[0], &sums[0], &src[0], len(x)/f.Elements())
				}
			}
			for n := 1; n <= 12; n++ {
				src := anyBlocks(r, f, n, true)
				w := make([]float32, n*f.Elements())
				if err := f.Dequantize(w, src); err != nil {
					t.Fatal(err)
				}
				m := make([]float32, len(w))
				if err := f.Magnitudes(m, src); err != nil {
					t.Fatal(err)
				}
				x := make([]float32, len(w)+1)[1:]
				want, mag := 0.0, 0.0
				for i := range x {
					x[i] = float32(r.NormFloat64())
					want += float64(x[i]) * float64(w[i])
					mag += math.Abs(float64(x[i]) * float64(m[i]))
				}
				got := float64(dot(x, src))
				// Few terms reach one lane, and lanes are added pairwise.
				if bound := mag * 0x1p-24 * float64(n*f.Elements()/8+8); !(math.Abs(got-want) <= bound) {
					t.Errorf("%v, %v, %d blocks: %v, want %v: off by %g, the bound is %g", l, f, n, got, want, got-want, bound)
				}
				// Each number counts, with its own weight: all but one are 0.
				i := r.IntN(len(x))
				clear(x)
				x[i] = 3
				if got, want := dot(x, src), 3*w[i]; !(math.Abs(float64(got-want)) <= 3*0x1p-22*float64(m[i])) {
					t.Errorf("%v, %v, %d blocks: 3 times element %d is %v, want %v", l, f, n, i, got, want)
				}
				x[i] = float32(math.NaN())
				if got := dot(x, src); got == got {
					t.Errorf("%v, %v: a NaN gives %v", l, f, got)
				}
			}
		}
	}
}

func TestQuantLengths(t *testing.T) {
	f := block.Q4_K
	for _, c := range [][2]int{{256, 143}, {255, 144}, {256, 288}, {0, 144}, {256, 0}} {
		x, b := make([]float32, c[0]), make([]byte, c[1])
		for what, call := range map[string]func(){
			"Dequantize": func() { Dequantize(f, x, b) },
			"DotBlocks":  func() { DotBlocks(f, x, make([]float32, len(x)/group), b) },
			"GroupSums":  func() { GroupSums(x, x[:c[1]/2]) },
			"sums":       func() { DotBlocks(f, make([]float32, 256), x[:len(x)/group/2], make([]byte, 144)) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s of %d numbers and %d bytes did not panic", what, c[0], c[1])
					}
				}()
				call()
			}()
		}
	}
	// More than one call of a kernel.
	r := testutil.Rand(t)
	n := 3*32<<10 + 512
	src := anyBlocks(r, f, n/256, true)
	w, want, y, sums := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n/group)
	Dequantize(f, w, src)
	if err := f.Dequantize(want, src); err != nil {
		t.Fatal(err)
	}
	for i, v := range want {
		if w[i] != v {
			t.Fatalf("element %d of %d is %v, want %v", i, n, w[i], v)
		}
	}
	for _, i := range []int{0, 32<<10 - 1, 32 << 10, n - 1} {
		y[i] = 2
		GroupSums(sums, y)
		if got := DotBlocks(f, y, sums, src); !(math.Abs(float64(got-2*w[i])) <= 0x1p-18*math.Abs(float64(w[i]))) {
			t.Errorf("twice element %d of %d is %v, want %v", i, n, got, 2*w[i])
		}
		y[i] = 0
	}
	Dequantize(f, nil, nil)
	if s := DotBlocks(f, nil, nil, nil); s != 0 {
		t.Errorf("the sum of no elements is %v", s)
	}
	x, b := make([]float32, 512), make([]byte, 288)
	Dequantize(f, x, b)
	if s := DotBlocks(f, x, make([]float32, 16), b); s != 0 {
		t.Errorf("the sum of zeros is %v", s)
	}
}

// BenchmarkBlocks counts the bytes of blocks that are in the second cache.
func BenchmarkBlocks(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, f := range quantFormats() {
		const n = 4096
		src := anyBlocks(r, f, n/f.Elements(), true)
		x, sums := make([]float32, n), make([]float32, n/group)
		for _, c := range []struct {
			name string
			call func()
		}{
			{"dequantize", func() { Dequantize(f, x, src) }},
			{"dot", func() { DotBlocks(f, x, sums, src) }},
		} {
			b.Run(f.String()+"/"+c.name, func(b *testing.B) {
				b.SetBytes(int64(len(src)))
				for b.Loop() {
					c.call()
				}
				b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e9, "Gelem/s")
			})
		}
	}
}
