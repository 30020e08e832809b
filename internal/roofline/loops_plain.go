package roofline

import "sync/atomic"

// plain returns the loops in Go: the limits of what has no assembly. Compiled
// Go multiplies and adds one number at a time.
func plain() loops {
	return loops{
		fma:  []fma{{fmaGo, 8 * 2}},
		read: []func([]float32){readGo},
		copy: []func(dst, src []float32){func(dst, src []float32) { copy(dst, src) }},
	}
}

// sink keeps the compiler from leaving the loops out.
var sink atomic.Bool

func fmaGo(n int) {
	var a, b, c, d, e, f, g, h float32
	x := float32(n) * 1e-20
	for range n {
		a += x * x
		b += x * x
		c += x * x
		d += x * x
		e += x * x
		f += x * x
		g += x * x
		h += x * x
	}
	sink.Store(a+b+c+d+e+f+g+h > 1)
}

func readGo(x []float32) {
	var a, b, c, d float32
	for ; len(x) >= 16; x = x[16:] {
		a += x[0] + x[1] + x[2] + x[3]
		b += x[4] + x[5] + x[6] + x[7]
		c += x[8] + x[9] + x[10] + x[11]
		d += x[12] + x[13] + x[14] + x[15]
	}
	sink.Store(a+b+c+d > 1)
}
