package emu

import "math"

// Half floats (5 bits of exponent, 10 of fraction) and brain floats (the upper
// half of a float) are computed in float64, rounded to odd, and rounded once.

const nan16 = 0x7fff

// fromHalf returns the number of a half float, exactly.
func fromHalf(h uint16) float64 {
	exp, frac := h>>10&31, uint64(h&0x3ff)
	v := 0.0
	switch exp {
	case 0:
		v = float64(frac) * 0x1p-24
	case 31:
		v = math.Inf(1)
		if frac != 0 {
			v = math.NaN()
		}
	default:
		v = math.Float64frombits(uint64(exp+1008)<<52 | frac<<42)
	}
	if h&0x8000 != 0 {
		return -v
	}
	return v
}

func fromBrain(h uint16) float64 { return float64(math.Float32frombits(uint32(h) << 16)) }

// narrow rounds x to nearest even in a format with the given bits of fraction, the least normal
// number 2**low, and overflow at 2**high.
func narrow(x float64, fraction, low, high int) uint16 {
	b := math.Float64bits(x)
	sign := uint16(b >> 63 << 15)
	exp := int(b>>52&0x7ff) - 1023
	inf := uint16(high-low+1) << fraction
	switch {
	case x != x:
		return nan16
	case exp >= high:
		return sign | inf
	case exp < low-fraction-2:
		return sign // less than half of the least number
	}
	m := b&(1<<52-1) | 1<<52
	drop := 52 - fraction
	if exp < low {
		drop += low - exp
	}
	if drop > 63 {
		return sign
	}
	r := m >> drop
	rest, half := m&(1<<drop-1), uint64(1)<<(drop-1)
	if rest > half || rest == half && r&1 != 0 {
		r++
	}
	if exp >= low {
		r += uint64(exp-low) << fraction // the leading 1 counts as one exponent
	}
	return sign | min(uint16(r), inf)
}

func toHalf(x float64) uint16  { return narrow(x, 10, -14, 16) }
func toBrain(x float64) uint16 { return narrow(x, 7, -126, 128) }

func (t table) halves() {
	t.half("f16", fromHalf, toHalf)
	t.half("bf16", fromBrain, toBrain)
}

func (t table) half(typ string, from func(uint16) float64, to func(float64) uint16) {
	one := func(name string, f func(x float64) float64) {
		g := func(x uint16) uint16 { return to(f(from(x))) }
		t.add(name+"."+typ, lanes1(g), 2, 2)
		t.add(name+"."+typ+"x2", lanes1(func(x uint32) uint32 {
			return uint32(g(uint16(x))) | uint32(g(uint16(x>>16)))<<16
		}), 4, 4)
	}
	two := func(name string, f func(x, y float64) float64) {
		g := func(x, y uint16) uint16 { return to(f(from(x), from(y))) }
		t.add(name+"."+typ, lanes2(g), 2, 2, 2)
		t.add(name+"."+typ+"x2", lanes2(func(x, y uint32) uint32 {
			return uint32(g(uint16(x), uint16(y))) | uint32(g(uint16(x>>16), uint16(y>>16)))<<16
		}), 4, 4, 4)
	}
	for _, rn := range []string{"", ".rn"} {
		two("add"+rn, func(x, y float64) float64 { return oddFma(x, 1, y) })
		two("sub"+rn, func(x, y float64) float64 { return oddFma(x, 1, -y) })
		two("mul"+rn, func(x, y float64) float64 { return x * y })
	}
	two("min", minNum[float64])
	two("max", maxNum[float64])
	two("min.NaN", func(x, y float64) float64 { return min(x, y) })
	two("max.NaN", func(x, y float64) float64 { return max(x, y) })
	one("neg", func(x float64) float64 { return -x })
	one("abs", math.Abs)
	for _, ftz := range []string{"", ".ftz"} {
		one("ex2.approx"+ftz, math.Exp2)
	}
	one("tanh.approx", math.Tanh)
	for _, relu := range []bool{false, true} {
		name := "fma.rn."
		f := func(x, y, z uint16) uint16 { return to(oddFma(from(x), from(y), from(z))) }
		if relu {
			name += "relu."
			f = func(x, y, z uint16) uint16 {
				r := oddFma(from(x), from(y), from(z))
				if r < 0 {
					r = 0
				}
				return to(r)
			}
		}
		t.add(name+typ, lanes3(f), 2, 2, 2, 2)
		t.add(name+typ+"x2", lanes3(func(x, y, z uint32) uint32 {
			return uint32(f(uint16(x), uint16(y), uint16(z))) | uint32(f(uint16(x>>16), uint16(y>>16), uint16(z>>16)))<<16
		}), 4, 4, 4, 4)
	}
}
