package simd

import (
	"math"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/op"
)

func asFloats(p *uint16) *float32 { return (*float32)(unsafe.Pointer(p)) }

// TestWiden asks for every number of 16 bits.
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
	for name, f := range map[string]struct {
		to   func(float32) uint16
		from func(uint16) float32
	}{"cast.f32.f16": {op.F16FromFloat32, op.F16ToFloat32}, "cast.f32.bf16": {op.BF16FromFloat32, op.BF16ToFloat32}} {
		var in []float32
		for i := range 1 << 16 {
			lo, hi := f.from(uint16(i)), f.from(uint16(i+1))
			for _, v := range []float32{lo, (lo + hi) / 2, float32((float64(lo) + float64(hi)) / 2)} {
				b := math.Float32bits(v)
				in = append(in, v, math.Float32frombits(b+1), math.Float32frombits(b-1))
			}
			in = append(in, math.Float32frombits(uint32(i)<<16|uint32(i*40503)&0xffff))
		}
		out := make([]uint16, len(in))
		for _, level := range Supported() {
			for _, n := range append(mapLengths(true), len(in)) {
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
