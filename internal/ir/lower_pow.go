package ir

import "math"

// pow: x**y = 2**(y·log2|x|). The logarithm and the product are sums of two numbers, because the
// result multiplies an error of the exponent by up to 128. The results that C99 requires for zeros,
// infinities, NaN and negative x come afterwards.
func (l *lowering) pow(x, y *Node) *Node {
	a := abs(x)
	inf, nan := c(math.Inf(1)), c(math.NaN())
	high, low := log2Pair(a)

	// The logarithms of 0 and infinity.
	edge := node(Or, eq(a, c(0)), eq(a, inf))
	high = choose(edge, choose(eq(a, c(0)), c(math.Inf(-1)), inf), high)
	low = choose(edge, c(0), low)

	z := mul(y, high)
	rest := fma(y, low, fma(y, high, neg(z)))
	rest = choose(lt(abs(z), c(256)), rest, c(0)) // otherwise it may be inf - inf
	r := l.scale(exp2Scaled(clamp(z, -151, 129), rest))

	// For a negative x, odd powers are negative, and the result is NaN if y is not integral.
	whole := eq(node(Floor, y), y)
	half := mul(y, c(0.5))
	odd := node(And, whole, node(Ne, node(Floor, half), half))
	negative := lt(bits(x), ci(0))
	r = choose(node(And, negative, odd), neg(r), r)
	fraction := node(And, lt(x, c(0)), node(And, lt(a, inf), node(Not, whole)))
	unknown := node(Or, node(Ne, x, x), node(Ne, y, y))
	r = choose(node(Or, fraction, unknown), nan, r)

	// The result is 1 for y = 0, for x = 1, and for -1 to an infinite power, even if the other
	// operand is NaN.
	one := node(Or, eq(y, c(0)), eq(x, c(1)))
	one = node(Or, one, node(And, eq(a, c(1)), eq(abs(y), inf)))
	return choose(one, c(1), r)
}

// log2Pair returns log2(a) for a positive finite a as a sum of two numbers,
// with an error of about 2^-33 of it.
func log2Pair(a *Node) (high, low *Node) {
	b, shift := normalize(a)
	m, e, _ := mantissa(b)
	e = sub(e, shift)

	// log2(m) = 2/ln 2 · atanh(s) for s = (m-1)/(m+1), also as a sum.
	num, den := sub(m, c(1)), add(m, c(1))
	denLow := sub(m, sub(den, c(1)))
	s := div(num, den)
	sLow := div(fma(neg(s), denLow, fma(neg(s), den, num)), den)
	u := mul(s, s)
	sLow = fma(mul(u, s), horner(u, atanhPoly), fma(sLow, u, sLow)) // atanh' is about 1+u

	p := mul(s, c(twoLog2eParts[0]))
	pLow := fma(s, c(twoLog2eParts[0]), neg(p))
	pLow = fma(sLow, c(twoLog2eParts[0]), fma(s, c(twoLog2eParts[1]), pLow))

	sum := add(e, p) // |e| >= 1 > |p| or e = 0
	pLow = add(add(sub(e, sum), p), pLow)
	high = add(sum, pLow)
	return high, add(sub(sum, high), pLow)
}
