package emu

import (
	"math"
	"math/big"
)

// nan32 is the NaN that all 32-bit arithmetic returns.
const nan32 = 0x7fffffff

func f32(x uint32) float32 { return math.Float32frombits(x) }

func b32(x float32) uint32 {
	if x != x {
		return nan32
	}
	return math.Float32bits(x)
}

func f64(x uint64) float64 { return math.Float64frombits(x) }
func b64(x float64) uint64 { return math.Float64bits(x) }

// oddFma returns x*y + z, rounded to odd: the last bit of an inexact result is 1, so that rounding
// it once more to 50 bits or fewer, in any mode, gives the same result as a single rounding. The
// product must be exact, for example of numbers with at most 26 bits.
func oddFma(x, y, z float64) float64 {
	p := x * y
	s := p + z
	if s-s != 0 {
		return s // infinite or NaN
	}
	t := s - p
	e := (p - (s - t)) + (z - t)
	if e != 0 {
		b := math.Float64bits(s)
		if b&1 == 0 {
			if (e > 0) == (s > 0) {
				b++
			} else {
				b--
			}
		}
		s = math.Float64frombits(b)
	}
	return s
}

func fma32(x, y, z float32) float32 {
	return float32(oddFma(float64(x), float64(y), float64(z)))
}

// direction is a directed rounding mode.
type direction uint8

const (
	towardsZero direction = iota
	down
	up
)

// step corrects r, a number rounded to nearest, to direction m: it returns r or a neighbour of r.
// cmp is the sign of the exact number minus r.
func (m direction) step(r float64, cmp int, next func(r, to float64) float64) float64 {
	switch {
	case cmp == 0 || r-r != 0 && !math.IsInf(r, 0):
		return r
	case m == down && cmp < 0 || m == towardsZero && cmp < 0 && (r > 0):
		return next(r, math.Inf(-1))
	case m == up && cmp > 0 || m == towardsZero && cmp > 0 && (r < 0):
		return next(r, math.Inf(1))
	}
	return r
}

// zeroSum returns r with the sign of m if r is a sum that is exactly zero.
func (m direction) zeroSum(r, product, z float64) float64 {
	if r == 0 && product == -z && product != 0 && m == down {
		return math.Copysign(0, -1)
	}
	if r == 0 && product == 0 && z == 0 && math.Signbit(product) != math.Signbit(z) && m == down {
		return math.Copysign(0, -1)
	}
	return r
}

func (m direction) fma32(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	exact := oddFma(float64(x), float64(y), float64(z))
	r := float32(exact)
	if exact-exact != 0 {
		return r
	}
	cmp := 0
	switch {
	case exact > float64(r):
		cmp = 1
	case exact < float64(r):
		cmp = -1
	}
	next := func(r, to float64) float64 { return float64(math.Nextafter32(float32(r), float32(to))) }
	return float32(m.zeroSum(m.step(float64(r), cmp, next), p, float64(z)))
}

func (m direction) fma64(x, y, z float64) float64 {
	r := math.FMA(x, y, z)
	if x-x != 0 || y-y != 0 || z-z != 0 {
		return r
	}
	const prec = 4400 // enough for the exact sum of any product and any number
	num := func(v float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(v) }
	exact := num(x)
	exact.Mul(exact, num(y)).Add(exact, num(z))
	cmp := 0
	if math.IsInf(r, 0) {
		cmp = -1
		if r < 0 {
			cmp = 1
		}
	} else {
		cmp = exact.Cmp(num(r))
	}
	if r == 0 && cmp == 0 {
		return m.zeroSum(r, x*y, z)
	}
	return m.step(r, cmp, math.Nextafter)
}

func flush32(x float32) float32 {
	if x < 0x1p-126 && x > -0x1p-126 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

func flush64(x float64) float64 {
	if x < 0x1p-1022 && x > -0x1p-1022 {
		return math.Copysign(0, x)
	}
	return x
}

// upper flushes a number and clears the lower half of its bits: 64-bit approximations give only the upper half.
func upper(x float64) float64 {
	if x != x {
		return x
	}
	return math.Float64frombits(math.Float64bits(flush64(x)) &^ (1<<32 - 1))
}

// minNum returns the lesser of two numbers, or the other operand if one is NaN.
func minNum[T float32 | float64](x, y T) T {
	switch {
	case x != x:
		return y
	case y != y:
		return x
	}
	return min(x, y)
}

// maxNum returns the greater of two numbers, or the other operand if one is NaN.
func maxNum[T float32 | float64](x, y T) T {
	switch {
	case x != x:
		return y
	case y != y:
		return x
	}
	return max(x, y)
}

// float1 adds an operation on one float32, and its variant that flushes subnormal numbers.
func (t table) float1(name string, f func(x float32) float32) {
	t.add(name+".f32", lanes1(func(x uint32) uint32 { return b32(f(f32(x))) }), 4, 4)
	t.flushed(name, func(x, _, _ float32) float32 { return f(x) }, 4, 4)
}

// float2 adds an operation on two float32, and its variant that flushes subnormal numbers.
func (t table) float2(name string, f func(x, y float32) float32) {
	t.add(name+".f32", lanes2(func(x, y uint32) uint32 { return b32(f(f32(x), f32(y))) }), 4, 4, 4)
	t.flushed(name, func(x, y, _ float32) float32 { return f(x, y) }, 4, 4, 4)
}

// float3 adds an operation on three float32, and its variant that flushes subnormal numbers.
func (t table) float3(name string, f func(x, y, z float32) float32) {
	t.add(name+".f32", lanes3(func(x, y, z uint32) uint32 { return b32(f(f32(x), f32(y), f32(z))) }), 4, 4, 4, 4)
	t.flushed(name, f, 4, 4, 4, 4)
}

// double1 adds an operation on one float64.
func (t table) double1(name string, f func(x float64) float64) {
	t.add(name+".f64", lanes1(func(x uint64) uint64 { return b64(f(f64(x))) }), 8, 8)
}

// double2 adds an operation on two float64.
func (t table) double2(name string, f func(x, y float64) float64) {
	t.add(name+".f64", lanes2(func(x, y uint64) uint64 { return b64(f(f64(x), f64(y))) }), 8, 8, 8)
}

// double3 adds an operation on three float64.
func (t table) double3(name string, f func(x, y, z float64) float64) {
	t.add(name+".f64", lanes3(func(x, y, z uint64) uint64 { return b64(f(f64(x), f64(y), f64(z))) }), 8, 8, 8, 8)
}

// floats adds the operations on float32 and float64.
func (t table) floats() {
	t.floatArithmetic()
	t.floatRoundings()
	t.floatFunctions()
	t.floatSigns()
}

// floatArithmetic adds the operations that round to the nearest number.
func (t table) floatArithmetic() {
	for _, rn := range []string{"", ".rn"} {
		t.float2("add"+rn, func(x, y float32) float32 { return x + y })
		t.float2("sub"+rn, func(x, y float32) float32 { return x - y })
		t.float2("mul"+rn, func(x, y float32) float32 { return x * y })
		t.double2("add"+rn, func(x, y float64) float64 { return x + y })
		t.double2("sub"+rn, func(x, y float64) float64 { return x - y })
		t.double2("mul"+rn, func(x, y float64) float64 { return x * y })
		t.add("add"+rn+".f32", addF32, 4, 4, 4)
		t.add("mul"+rn+".f32", mulF32, 4, 4, 4)
	}
	t.float3("fma.rn", fma32)
	t.add("fma.rn.f32", fmaF32, 4, 4, 4, 4)
	t.double3("fma.rn", math.FMA)
	t["mad.rn.f32"], t["mad.rn.f64"] = t["fma.rn.f32"], t["fma.rn.f64"]
}

// floatRoundings adds the operations that round in another direction.
func (t table) floatRoundings() {
	for name, m := range map[string]direction{"rz": towardsZero, "rm": down, "rp": up} {
		t.float3("fma."+name, m.fma32)
		t.double3("fma."+name, m.fma64)
		t.float2("mul."+name, func(x, y float32) float32 { return m.product32(x, y) })
		t.float2("add."+name, func(x, y float32) float32 { return m.fma32(x, 1, y) })
		t.float2("sub."+name, func(x, y float32) float32 { return m.fma32(x, 1, -y) })
		t.double2("mul."+name, func(x, y float64) float64 { return m.fma64(x, y, math.Copysign(0, x*y)) })
		t.double2("add."+name, func(x, y float64) float64 { return m.fma64(x, 1, y) })
		t.double2("sub."+name, func(x, y float64) float64 { return m.fma64(x, 1, -y) })
	}
}

// floatFunctions adds divisions, roots and elementary functions.
func (t table) floatFunctions() {
	t.float2("div.rn", func(x, y float32) float32 { return x / y })
	t.double2("div.rn", func(x, y float64) float64 { return x / y })
	t.float2("div.full", func(x, y float32) float32 { return x / y })
	t.float2("div.approx", func(x, y float32) float32 {
		if a := math.Abs(float64(y)); a > 0x1p126 && !math.IsInf(a, 0) {
			if math.IsInf(float64(x), 0) {
				return float32(math.NaN())
			}
			return float32(math.Copysign(0, float64(x)*float64(y)))
		}
		return x / y
	})
	t.float1("rcp.rn", func(x float32) float32 { return 1 / x })
	t.float1("rcp.approx", func(x float32) float32 { return 1 / x })
	t.double1("rcp.rn", func(x float64) float64 { return 1 / x })
	t.float1("sqrt.rn", func(x float32) float32 { return float32(math.Sqrt(float64(x))) })
	t.float1("sqrt.approx", func(x float32) float32 { return float32(math.Sqrt(float64(x))) })
	t.double1("sqrt.rn", math.Sqrt)
	t.float1("rsqrt.approx", func(x float32) float32 { return float32(1 / math.Sqrt(float64(x))) })
	t.double1("rsqrt.approx", func(x float64) float64 {
		// The device treats subnormal operands as zeros, for which the result is an infinity.
		r := 1 / math.Sqrt(x)
		if x < 0x1p-1022 && x > -0x1p-1022 {
			return math.Copysign(math.Inf(1), x)
		}
		return r
	})
	t.double1("rcp.approx.ftz", func(x float64) float64 { return upper(1 / flush64(x)) })
	t.double1("rsqrt.approx.ftz", func(x float64) float64 { return upper(1 / math.Sqrt(flush64(x))) })
	t.float1("ex2.approx", func(x float32) float32 { return float32(math.Exp2(float64(x))) })
	t.float1("lg2.approx", func(x float32) float32 { return float32(math.Log2(float64(x))) })
	t.float1("sin.approx", func(x float32) float32 { return float32(math.Sin(float64(x))) })
	t.float1("cos.approx", func(x float32) float32 { return float32(math.Cos(float64(x))) })
	t.float1("tanh.approx", func(x float32) float32 { return float32(math.Tanh(float64(x))) })
}

// floatSigns adds minima, maxima, moves and the operations on the sign bit.
func (t table) floatSigns() {
	t.float2("min", minNum[float32])
	t.float2("max", maxNum[float32])
	t.double2("min", minNum[float64])
	t.double2("max", maxNum[float64])
	t.float2("min.NaN", func(x, y float32) float32 { return min(x, y) })
	t.float2("max.NaN", func(x, y float32) float32 { return max(x, y) })
	// These operations change only the sign bit, but for a NaN the device returns nan32.
	t.float1("neg", func(x float32) float32 { return -x })
	t.float1("abs", func(x float32) float32 { return float32(math.Abs(float64(x))) })
	t.double1("neg", func(x float64) float64 { return -x })
	t.double1("abs", math.Abs)
	t.add("copysign.f32", lanes2(func(x, y uint32) uint32 { return x&(1<<31) | y&^(1<<31) }), 4, 4, 4)
	t.add("copysign.f64", lanes2(func(x, y uint64) uint64 { return x&(1<<63) | y&^(1<<63) }), 8, 8, 8)
	t.add("mov.f32", func(d, a, _, _ *plane) { *d = *a }, 4, 4)
	t.add("mov.f64", func(d, a, _, _ *plane) { *d = *a }, 8, 8)
}

// product32 rounds a product, which is exact in 64 bits.
func (m direction) product32(x, y float32) float32 {
	p := float64(x) * float64(y)
	if p == 0 {
		return float32(p)
	}
	return m.fma32(x, y, float32(math.Copysign(0, p)))
}

// flushed adds the .ftz form of an operation on f32, which replaces subnormal operands and results by zeros.
func (t table) flushed(name string, f func(x, y, z float32) float32, sizes ...uint8) {
	t.add(name+".ftz.f32", lanes3(func(x, y, z uint32) uint32 {
		return b32(flush32(f(flush32(f32(x)), flush32(f32(y)), flush32(f32(z)))))
	}), sizes...)
}

// Programs spend most of their time in the operations below.

func addF32(d, a, b, _ *plane) {
	for i := range d {
		d[i] = uint64(b32(f32(uint32(a[i])) + f32(uint32(b[i]))))
	}
}

func mulF32(d, a, b, _ *plane) {
	for i := range d {
		d[i] = uint64(b32(f32(uint32(a[i])) * f32(uint32(b[i]))))
	}
}

func fmaF32(d, a, b, c *plane) {
	for i := range d {
		p := float64(f32(uint32(a[i]))) * float64(f32(uint32(b[i])))
		z := float64(f32(uint32(c[i])))
		s := p + z
		// Rounding twice differs from rounding once only if the float64 sum lies half way between two floats.
		if m := math.Float64bits(s) & (1<<29 - 1); m == 1<<28 || s < 0x1p-125 && s > -0x1p-125 && s != 0 {
			s = oddFma(float64(f32(uint32(a[i]))), float64(f32(uint32(b[i]))), z)
		}
		d[i] = uint64(b32(float32(s)))
	}
}
