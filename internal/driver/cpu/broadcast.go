package cpu

import (
	"math"
	"unsafe"

	"github.com/rayo-go/rayo/simd"
)

// The kernels below expand broadcast operands to registers.

func floats(p *float32, n int) []float32 { return unsafe.Slice(p, n) }

// tile fills dst with n elements plus one period of repetitions of x. The period, in elements, is
// the integer at p.
func tile(dst, x, _, _ *float32, n int, p *float32) {
	period := int(math.Float32bits(*p))
	d := floats(dst, n+period)
	copy(d, floats(x, period))
	for have := period; have < len(d); have *= 2 {
		copy(d[have:], d[:have])
	}
}

// stretch fills dst with repetitions of each element of x. The number of repetitions is the integer at p.
func stretch(dst, x, _, _ *float32, n int, p *float32) {
	run := int(math.Float32bits(*p))
	d, k := words(dst, n), n/run
	if k > 0 {
		simd.Repeat(&d[0], (*uint32)(unsafe.Pointer(x)), run, 1, k)
	}
	if rest := d[k*run:]; len(rest) > 0 {
		repeat(rest, words(x, k+1)[k])
	}
}
