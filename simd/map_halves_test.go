package simd

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

func asFloats(p *uint16) *float32 { return (*float32)(unsafe.Pointer(p)) }

// TestWiden converts every number of 16 bits.
func TestWiden(t *testing.T) {
	in, out := make([]uint16, 1<<16+5), make([]float32, 1<<16+5)
	for i := range in {
		in[i] = uint16(i)
	}
	for name, f := range map[string]func(uint16) float32{"cast.f16.f32": op.F16ToFloat32, "cast.bf16.f32": op.BF16ToFloat32} {
		for _, level := range Supported() {
			for _, n := range append(mapLengths(true), len(in)) {
				clear(out)
				MapAt(level, name)(&out[0], asFloats(&in[0]), nil, nil, n, nil)
				for i, v := range out {
					want := float32(0)
					if i < n {
						want = f(in[i])
					}
					if v != want && (v == v || want == want) || math.Signbit(float64(v)) != math.Signbit(float64(want)) {
						t.Fatalf("%v %s of %#x is %v, want %v", level, name, in[i], v, want)
					}
				}
			}
		}
	}
}

// TestNarrow asks for float32 numbers of all exponents, and around each number
// of 16 bits: itself, the middle to the next, and their neighbours.
func TestNarrow(t *testing.T) {
	for d, f := range halfFormats {
		name, in := "cast.f32."+d, roundNeighbours(f.from)
		out := make([]uint16, len(in))
		for _, level := range Supported() {
			for _, n := range append(mapLengths(true), len(in)) {
				out := out[:min(n+64, len(in))]
				for i := range out {
					out[i] = 0xbeef
				}
				MapAt(level, name)(asFloats(&out[0]), &in[0], nil, nil, n, nil)
				for i, v := range out {
					want := uint16(0xbeef)
					if i < n {
						want = f.to(in[i])
					}
					if v != want && (i >= n || in[i] == in[i]) || i < n && in[i] != in[i] && f.from(v) == f.from(v) {
						t.Fatalf("%v %s of %v is %#x, want %#x", level, name, in[i], v, want)
					}
				}
			}
		}
	}
}

// roundNeighbours returns the numbers of a format of 16 bits, the middles between them
// and the neighbours of all, and NaN with payloads.
func roundNeighbours(from func(uint16) float32) (in []float32) {
	for i := range 1 << 16 {
		lo, hi := from(uint16(i)), from(uint16(i+1))
		for _, v := range []float32{lo, (lo + hi) / 2, float32((float64(lo) + float64(hi)) / 2)} {
			b := math.Float32bits(v)
			in = append(in, v, math.Float32frombits(b+1), math.Float32frombits(b-1))
		}
		in = append(in, math.Float32frombits(uint32(i)<<16|uint32(i*40503)&0xffff))
	}
	return in
}

// TestRound compares the kernels that round in registers with conversions to 16 bits and
// back, bit by bit: also the payloads of NaN and the signs of zeros.
func TestRound(t *testing.T) {
	for d, f := range halfFormats {
		in := roundNeighbours(f.from)
		out := make([]float32, len(in))
		for _, level := range Supported() {
			kernel := MapAt(level, "code.round_"+d)
			for _, n := range append(mapLengths(true), len(in)) {
				if testing.Short() && n < len(in) && rand.IntN(4) > 0 {
					continue
				}
				for i := range out {
					out[i] = 0.3
				}
				kernel(&out[0], &in[0], nil, nil, n, nil)
				checkRounded(t, level.String()+" round to "+d, f, out, in, n)
				copy(out, in)
				kernel(&out[0], &out[0], nil, nil, n, nil)
				checkRounded(t, level.String()+" round in place to "+d, f, out[:n], in, n)
			}
		}
	}
}

type halfFormat struct {
	to   func(float32) uint16
	from func(uint16) float32
}

var halfFormats = map[string]halfFormat{"f16": {op.F16FromFloat32, op.F16ToFloat32}, "bf16": {op.BF16FromFloat32, op.BF16ToFloat32}}

// checkRounded compares the first n numbers of out with those of in rounded to f, and
// the others with 0.3.
func checkRounded(t *testing.T, what string, f halfFormat, out, in []float32, n int) {
	t.Helper()
	for i, v := range out {
		want := float32(0.3)
		if i < n {
			want = f.from(f.to(in[i]))
		}
		if math.Float32bits(v) != math.Float32bits(want) {
			t.Fatalf("%s, %d elements: number %d, %v (%#x), becomes %#x, want %#x", what, n, i, in[i], math.Float32bits(in[i]), math.Float32bits(v), math.Float32bits(want))
		}
	}
}

// TestRoundedResults compares the kernels that compute and round with those that only
// compute.
func TestRoundedResults(t *testing.T) {
	r := testutil.Rand(t)
	tested := 0
	for _, name := range MapNames() {
		at := strings.LastIndexByte(name, '.')
		if at < 0 || strings.HasPrefix(name, "cast.") {
			continue
		}
		f, ok := halfFormats[name[at+1:]]
		if !ok {
			continue
		}
		tested++
		special := roundNeighbours(f.from)
		p := [2]float32{1.0078125, 0.25}
		for _, level := range Supported() {
			for _, n := range append(mapLengths(true), 4096) {
				var args [3][]float32
				for k := range args {
					args[k] = make([]float32, n+1)
					for i := range args[k] {
						args[k][i] = f.from(f.to(float32(r.NormFloat64())))
						if r.IntN(3) == 0 {
							args[k][i] = special[r.IntN(len(special))]
						}
					}
				}
				x, y, z := &args[0][0], &args[1][0], &args[2][0]
				plain := make([]float32, n+1)
				MapAt(level, name[:at])(&plain[0], x, y, z, n, &p[0])
				for what, kernel := range map[string]MapFunc{" ": MapAt(level, name), " streamed ": StreamAt(level, name)} {
					if kernel == nil {
						continue // a level without such stores
					}
					out, whole := mapGuarded(n, r.IntN(20))
					kernel(unsafe.SliceData(out), x, y, z, n, &p[0])
					checkRounded(t, level.String()+what+name, f, out, plain, n)
					if !whole() {
						t.Fatalf("%v%s%s, %d elements: wrote beyond them", level, what, name, n)
					}
				}
			}
		}
	}
	if tested == 0 {
		t.Fatal("no kernel rounds its results")
	}
}
