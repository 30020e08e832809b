package ir

import "math"

// erf: a series for |x| up to 1. For larger x, 1 - erfc, with erfc as a power of 2.
func (l *lowering) erf(x *Node) *Node {
	a := lower(abs(x), c(4))
	u := mul(a, a)
	small := fma(a, horner(u, erfSmallPoly), a)
	e := neg(mul(a, horner(a, erfLargePoly)))
	large := sub(c(1), l.exp2Small(e))
	return l.copySign(choose(lt(a, c(1)), small, large), x)
}

// exp2Small returns 2**x for x in [-126, 0].
func (l *lowering) exp2Small(x *Node) *Node {
	if l.native(Exp2Approx) {
		return node(Exp2Approx, x)
	}
	return l.scaleDown(exp2Scaled(x, nil))
}

// tail returns e**-s · erfc(t)·e**t² · factor for t >= 0 and s = t². s is a sum of two numbers,
// because rounding it would cost up to a hundred units. wide·scale is t, or larger if t is limited.
func (l *lowering) tail(t, s, low, wide *Node, scale, factor float64) *Node {
	// With w = 1/(1 + 3t/8), erfc(t)·e**t²/w is a polynomial of v = t·w. A small t has a small v,
	// so that errors of w have no effect there.
	w := l.inverse(fma(wide, c(erfcxScale*scale), c(1)))
	y := mul(w, c(factor))
	v := mul(t, w)
	y = fma(mul(y, v), horner(v, erfcxPoly), y)
	y = fma(y, neg(low), y)
	if l.native(Exp2Approx) {
		return l.expTimes(neg(s), y)
	}
	e := l.expScaled(neg(s))
	e.p = mul(e.p, y)
	return l.scaleDown(e)
}

// squareRest returns the rounding error of s, which is t²·factor rounded. factor is a power of 2.
func (l *lowering) squareRest(t, s *Node, factor float64) *Node {
	if !l.native(Unfused) {
		return fma(scaledBy(t, factor), t, neg(s))
	}
	// Products of the high and the low half of the digits of t are exact.
	high := float(node(And, bits(t), ci(-1<<12)))
	low := sub(t, high)
	rest := sub(mul(scaledBy(high, factor), high), s)
	rest = add(rest, mul(scaledBy(high, 2*factor), low))
	return add(rest, mul(scaledBy(low, factor), low))
}

// scaledBy returns x·factor.
func scaledBy(x *Node, factor float64) *Node {
	if factor == 1 {
		return x
	}
	return mul(x, c(factor))
}

// erfcxScale is the 3/8 in the fit of erfcxPoly.
const erfcxScale = 0.375

func (l *lowering) erfc(x *Node) *Node {
	t := lower(abs(x), c(10.3))
	s := mul(t, t)
	y := l.tail(t, s, l.squareRest(t, s, 1), t, 1, 1)
	return choose(lt(x, c(0)), sub(c(2), y), y)
}

// normCDF: erfc(-x/sqrt 2)/2. The exponent is -x²/2, which avoids the error of dividing x by sqrt 2
// first.
func (l *lowering) normCDF(x *Node) *Node {
	t := lower(abs(x), c(14.5))
	wide, scale := mul(t, c(1/math.Sqrt2)), 1.0
	if l.guards() {
		// w propagates NaN. If e**-s is 0, w may be too small.
		t = choose(lt(abs(x), c(14.5)), abs(x), c(14.5))
		wide, scale = abs(x), 1/math.Sqrt2
	}
	s := mul(mul(t, c(0.5)), t)
	y := l.tail(mul(t, c(1/math.Sqrt2)), s, l.squareRest(t, s, 0.5), wide, scale, 0.5)
	return choose(lt(c(0), x), sub(c(1), y), y)
}
