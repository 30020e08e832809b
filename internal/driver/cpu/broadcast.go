package cpu

import (
	"math"
	"unsafe"
)

// The kernels below bring operands that are broadcast over the result into
// registers.

func floats(p *float32, n int) []float32 { return unsafe.Slice(p, n) }

// tile repeats the elements of x, as many as the bits at p say, over dst: n
// elements and one period more.
func tile(dst, x, _, _ *float32, n int, p *float32) {
	period := int(math.Float32bits(*p))
	d := floats(dst, n+period)
	copy(d, floats(x, period))
	for have := period; have < len(d); have *= 2 {
		copy(d[have:], d[:have])
	}
}

// stretch writes each element of x as often as the bits at p say.
func stretch(dst, x, _, _ *float32, n int, p *float32) {
	run := int(math.Float32bits(*p))
	d, k := words(dst, n), 0
	s := words(x, (n+run-1)/run)
	for ; len(d) > 0; k++ {
		m := min(run, len(d))
		repeat(d[:m], s[k])
		d = d[m:]
	}
}
