package ir

import "math"

// Lower returns root with every code that a back end does not have replaced by arithmetic that it
// has. native reports which of the following codes the back end computes as accurately as the
// expansion: the composite codes ([Code.Composite]), and CopySign, Round, RoundF16, RoundBF16 and
// Ldexp. Every back end has all other codes. A nil native means none. Codes after lastCode, of
// which a back end has all or none, replace longer arithmetic in expansions. Expansions are shorter
// if an operand is known to be small.
//
// The expansions are free of branches, follow IEEE 754 for NaN, infinities, signed zeros and
// subnormal numbers, and require that Fma is fused. The tests of package simd measure their errors,
// in units in the last place of the result:
//
//	exp 1, exp2 1, expm1 1.5, log 1.5, log2 2, log1p 1.5, tanh 2, sigmoid 2.5,
//	erf 2.5, erfc 8, normcdf 8, sin and cos 2, atan 2, pow 1.5, recip 0.5, rsqrt 1.5
//
// With Unfused, where [RoundsProduct] lets products be rounded, exp2 is within 1.1 units and expm1 within 1.7.
//
// With Exp2Approx and the codes after it, errors are up to one unit larger, and for operands that
// are known to be moderate up to two. On a GPU, measured at every float32: exp 2, exp2 1.7, sigmoid
// 2.9; and at every moderate one up to 16: exp 2.6, sigmoid 3.7.
//
// Sin and Cos are correct for |x| <= [TrigLimit] only. Back ends must compute them in another way
// for larger numbers.
func Lower(root *Node, native func(Code) bool) *Node {
	if native == nil {
		native = func(Code) bool { return false }
	}
	l := &lowering{native: native}
	if native(Exp2Approx) {
		l.ranges = newRanges(Anything(), root)
	}
	return mapFrom(root, l.expand)
}

// TrigLimit is the largest |x| for which the expansions of Sin and Cos are
// accurate: up to it the nearest multiple of pi is exact in float32.
const TrigLimit = 1 << 16

// TwoOverPi is 2/pi in words of 32 bits, after a word for larger units. Back ends use it to reduce
// larger angles.
var TwoOverPi = [8]uint32{0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab}

// expansions computes each code from others. The operands are already lowered, and so must be the
// result: the functions use only codes that are not in this table nor in functions, or methods of
// lowering that check whether a code is native.
var expansions = [...]func(l *lowering, a [3]*Node) *Node{
	CopySign:  func(l *lowering, a [3]*Node) *Node { return l.copySign(a[0], a[1]) },
	Round:     func(l *lowering, a [3]*Node) *Node { return l.round(a[0]) },
	RoundF16:  func(_ *lowering, a [3]*Node) *Node { return roundF16(a[0]) },
	RoundBF16: func(_ *lowering, a [3]*Node) *Node { return roundBF16(a[0]) },
	Ldexp:     func(l *lowering, a [3]*Node) *Node { return l.ldexp(a[0], a[1]) },
}

// expansionOf returns the expansion of a code, or nil if it has none.
func expansionOf(c Code) func(l *lowering, a [3]*Node) *Node {
	if int(c) < len(expansions) {
		return expansions[c]
	}
	if f := functions.Load(); f != nil {
		return f.expansions[c]
	}
	return nil
}

type lowering struct {
	native func(Code) bool
	ranges ranges // nil unless the back end has Exp2Approx, which uses them
}

// expand returns n or its expansion; was is n before its operands were expanded.
func (l *lowering) expand(was, n *Node) *Node {
	if f := functions.Load(); f != nil && l.ranges != nil {
		if m := f.bounded(l, was, n); m != nil {
			return m
		}
	}
	f := expansionOf(n.Code)
	if f == nil || l.native(n.Code) {
		return n
	}
	return f(l, n.Args)
}

// The following functions are short forms for expressions. All their operands come from this
// package, so an invalid operand is a bug in it.

func node(code Code, args ...*Node) *Node {
	n, err := New(code, args...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return n
}

//go:noinline
func c(v float64) *Node { return NewConst(v, F32) }

//go:noinline
func ci(v int64) *Node { return NewConst(float64(v), I32) }

//go:noinline
func add(a, b *Node) *Node { return node(Add, a, b) }

//go:noinline
func sub(a, b *Node) *Node { return node(Sub, a, b) }

//go:noinline
func mul(a, b *Node) *Node { return node(Mul, a, b) }

//go:noinline
func div(a, b *Node) *Node { return node(Div, a, b) }

//go:noinline
func neg(a *Node) *Node { return node(Neg, a) }

//go:noinline
func abs(a *Node) *Node { return node(Abs, a) }

//go:noinline
func fma(a, b, c *Node) *Node { return node(Fma, a, b, c) }

//go:noinline
func lower(a, b *Node) *Node { return node(Min, a, b) }

//go:noinline
func upper(a, b *Node) *Node { return node(Max, a, b) }

//go:noinline
func lt(a, b *Node) *Node { return node(Lt, a, b) }

//go:noinline
func eq(a, b *Node) *Node { return node(Eq, a, b) }

//go:noinline
func choose(cond, a, b *Node) *Node { return node(Select, cond, a, b) }

//go:noinline
func bits(a *Node) *Node { return NewBitcast(a, I32) }

//go:noinline
func float(a *Node) *Node { return NewBitcast(a, F32) }

// horner returns p[0] + p[1]·x + p[2]·x² …
func horner(x *Node, p []float64) *Node {
	y := c(p[len(p)-1])
	for i := len(p) - 2; i >= 0; i-- {
		y = fma(y, x, c(p[i]))
	}
	return y
}

// copySign returns the magnitude of a with the sign of b.
func (l *lowering) copySign(a, b *Node) *Node {
	if l.native(CopySign) {
		return node(CopySign, a, b)
	}
	return float(node(Or, node(And, bits(a), ci(math.MaxInt32)), node(And, bits(b), ci(math.MinInt32))))
}

// round returns the nearest integral number, to even.
func (l *lowering) round(a *Node) *Node {
	if l.native(Round) {
		return node(Round, a)
	}
	// Below 2^23, adding 2^23 rounds the fraction away. Larger numbers have no fraction. A
	// comparison with NaN is false.
	const big = 1 << 23
	m := abs(a)
	return choose(lt(m, c(big)), l.copySign(sub(add(m, c(big)), c(big)), a), a)
}

// ldexp returns a·2**b for any a.
func (l *lowering) ldexp(a, b *Node) *Node {
	if l.native(Ldexp) {
		return node(Ldexp, a, b)
	}
	// One factor does not have enough range, so there are three. A factor of 2^-102 leaves more
	// than 24 bits of scale to the next factor, so that only one of them rounds a result that is
	// not 0.
	for range 2 {
		n := choose(lt(b, c(-126)), c(-102), choose(lt(c(127), b), c(127), c(0)))
		a, b = mul(a, pow2(n)), sub(b, n)
	}
	return mul(a, pow2(b))
}

// pow2 returns 2**n for an integral n in [-126, 127].
func pow2(n *Node) *Node {
	return float(node(Shl, add(NewConvert(n, I32), ci(127)), ci(23)))
}

// magic rounds to an integer when it is added: the low bits of x+magic are the integer nearest to
// x, in two's complement.
const magic = 3 << 22

// scaled represents p·2**n: p in [1/2, 2] is the mantissa of an exponential, and n an integer,
// which is also in the low bits of t = n + magic.
type scaled struct{ p, n, t *Node }

// scale returns s.p·2**s.n for n in [-152, 129], rounded once. The result is NaN if s.p is.
func (l *lowering) scale(s scaled) *Node {
	if l.native(Ldexp) {
		return node(Ldexp, s.p, s.n)
	}
	// The range of 2^n is too large for one factor: the first factor is 2^(n±64), the second 2^∓64.
	down := lt(s.n, c(0))
	bias := choose(down, ci((127+64)<<23), ci((127-64)<<23))
	first := float(add(node(Shl, bits(s.t), ci(23)), bias))
	return mul(mul(s.p, first), choose(down, c(0x1p-64), c(0x1p64)))
}

// scaleDown is scale for n in [-190, 0].
func (l *lowering) scaleDown(s scaled) *Node {
	if l.native(Ldexp) {
		return node(Ldexp, s.p, s.n)
	}
	first := float(add(node(Shl, bits(s.t), ci(23)), ci((127+64)<<23)))
	return mul(mul(s.p, first), c(0x1p-64))
}

// reduce splits e**x into 2**n and r = x - n·ln 2, |r| <= ln(2)/2.
func reduce(x *Node) (r *Node, s scaled) {
	s.t = fma(x, c(math.Log2E), c(magic))
	s.n = sub(s.t, c(magic))
	r = fma(s.n, c(-ln2Parts[0]), x)
	return fma(s.n, c(-ln2Parts[1]), r), s
}

// expScaled returns e**x for x in [-128, 128] as p and n.
func (l *lowering) expScaled(x *Node) scaled {
	r, s := reduce(x)
	if l.native(Unfused) {
		s.p = add(expm1Reduced(r), c(1)) // as short, and rounded products cost less accuracy
	} else {
		s.p = horner(r, expPoly())
	}
	return s
}

// expm1Reduced returns e**r-1 for |r| <= ln(2)/2.
func expm1Reduced(r *Node) *Node { return fma(mul(r, r), horner(r, expm1Poly), r) }

// Constants are constants of the expansions, for back ends that implement parts of an expansion
// themselves.
type Constants struct {
	Magic      float64   // rounds to an integer when added: see reduce
	Ln2, Log2e []float64 // ln 2 and its inverse as sums
	Exp        []float64 // the polynomial of e**r for |r| <= ln(2)/2, the constant term first
}

// ExpansionConstants returns the constants.
func ExpansionConstants() Constants { return Constants{magic, ln2Parts, log2eParts, expPoly()} }

func expPoly() []float64 { return append([]float64{1, 1}, expm1Poly...) }

// e**x is 0 below expLow, and infinite above expHigh.
const (
	expLow  = -104
	expHigh = 89
)

func clamp(x *Node, lo, hi float64) *Node { return lower(upper(x, c(lo)), c(hi)) }

func (l *lowering) exp(x *Node) *Node {
	if l.native(Exp2Approx) {
		return l.expFull(x)
	}
	return l.scale(l.expScaled(clamp(x, expLow, expHigh)))
}

// inverse returns 1/x for x in [2^-100, 2^126], with an error of up to one unit.
func (l *lowering) inverse(x *Node) *Node {
	if l.native(RecipApprox) {
		return node(RecipApprox, x)
	}
	return div(c(1), x)
}

// expNegative returns e**x for x <= 0.
func (l *lowering) expNegative(x *Node) *Node {
	return l.scaleDown(l.expScaled(upper(x, c(expLow))))
}

// exp2Scaled returns 2**(x + low) as p and n, for x in [-152, 129] and a small low. A nil low is 0.
func exp2Scaled(x, low *Node) scaled {
	var s scaled
	s.t = add(x, c(magic))
	s.n = sub(s.t, c(magic))
	r := sub(x, s.n)
	if low != nil {
		r = add(r, low)
	}
	s.p = horner(r, append([]float64{1}, exp2Poly...))
	return s
}

func (l *lowering) exp2(x *Node) *Node {
	if l.native(Exp2Approx) {
		return l.exp2Full(x)
	}
	return l.scale(exp2Scaled(clamp(x, -151, 128), nil))
}

// expm1Core returns (e**x-1)/2 for x in [-26, 89]. It computes half of the result, so that 2**n
// does not overflow before 1 is subtracted.
func expm1Core(x *Node) *Node {
	r, s := reduce(x)
	p := expm1Reduced(r)
	half := float(add(node(Shl, bits(s.t), ci(23)), ci(126<<23))) // 2^(n-1)
	return fma(half, p, sub(half, c(0.5)))
}

func (l *lowering) expm1(x *Node) *Node {
	y := expm1Core(clamp(x, -26, expHigh))
	return l.copySign(add(y, y), x) // keeps -0
}

// tanh: the result is h/(h+1) with h = (e**2|x| - 1)/2, in which nothing cancels. The rounding
// errors of the sum and the quotient are compensated.
func (l *lowering) tanh(x *Node) *Node {
	if l.native(Exp2Approx) {
		return l.tanhNear(x)
	}
	h := expm1Core(lower(mul(abs(x), c(2)), c(20)))
	d := add(h, c(1))
	low := sub(h, sub(d, c(1)))
	if l.native(Unfused) {
		q := div(h, d)
		y := sub(q, mul(mul(q, low), sub(c(1), q))) // 1-q is 1/(h+1)
		return l.copySign(lower(y, c(1)), x)
	}
	inverse := l.inverse(d)
	q := mul(h, inverse)
	rest := fma(neg(q), low, fma(neg(q), d, h))
	return l.copySign(fma(rest, inverse, q), x)
}

// sigmoid: with e = e**-|x|, the result is 1/(1+e) for positive x and e/(1+e) for negative x.
// Neither overflows or cancels.
func (l *lowering) sigmoid(x *Node) *Node {
	if l.native(Exp2Approx) {
		return l.sigmoidNear(x)
	}
	e := l.expNegative(neg(abs(x)))
	return div(choose(lt(x, c(0)), e, c(1)), add(e, c(1)))
}

// logOf returns the logarithm of a positive normal number with mantissa 1+f in [sqrt(1/2), sqrt(2)]
// and exponent e: e·ln 2 + log(1+f).
func logOf(e, f *Node) *Node {
	y := fma(mul(mul(f, f), f), horner(f, logPoly), mul(e, c(ln2Parts[1])))
	y = fma(mul(f, f), c(-0.5), y)
	return fma(e, c(ln2Parts[0]), add(y, f))
}

// sqrtHalf has the bits of sqrt(1/2).
const sqrtHalf = 0x3f3504f3

// mantissa splits a positive normal x into 2**e and m in [sqrt(1/2), sqrt(2)).
// exponent holds e in its bits from 23 on.
func mantissa(x *Node) (m, e, exponent *Node) {
	k := node(Shr, sub(bits(x), ci(sqrtHalf)), ci(23))
	exponent = node(Shl, k, ci(23))
	return float(sub(bits(x), exponent)), NewConvert(k, F32), exponent
}

// normalize returns x·2**23 and 23 if x is subnormal, and otherwise x and 0.
func normalize(x *Node) (y, shift *Node) {
	tiny := lt(x, c(0x1p-126))
	return choose(tiny, mul(x, c(0x1p23)), x), choose(tiny, c(23), c(0))
}

// logDomain replaces y by the right value if x is not a positive finite number.
func logDomain(x, y *Node) *Node {
	inf, nan := c(math.Inf(1)), c(math.NaN())
	return choose(lt(c(0), x), choose(lt(x, inf), y, inf), choose(eq(x, c(0)), c(math.Inf(-1)), nan))
}

func (l *lowering) log(x *Node) *Node {
	y, shift := normalize(x)
	m, e, _ := mantissa(y)
	return logDomain(x, logOf(sub(e, shift), sub(m, c(1))))
}

func (l *lowering) log2(x *Node) *Node {
	y, shift := normalize(x)
	m, e, _ := mantissa(y)
	f := sub(m, c(1))
	// log(1+f) as f + low, times 1/ln 2 in two parts.
	ff := mul(f, f)
	low := fma(mul(ff, f), horner(f, logPoly), mul(ff, c(-0.5)))
	t := fma(low, c(log2eParts[0]), mul(f, c(log2eParts[1])))
	t = fma(f, c(log2eParts[0]), t)
	return logDomain(x, add(t, sub(e, shift)))
}

// log1p: the logarithm of u = 1+x, plus the rounding error of this sum, scaled to the mantissa.
func (l *lowering) log1p(x *Node) *Node {
	u := add(x, c(1))
	lost := sub(x, sub(u, c(1)))
	m, e, exponent := mantissa(u)
	scale := float(sub(ci(128<<23), exponent)) // 2^(1-e); 0 for the largest e
	y := logDomain(u, logOf(e, fma(mul(lost, c(0.5)), scale, sub(m, c(1)))))
	return choose(eq(x, c(0)), x, y) // keeps -0
}

// sin: n·pi is subtracted in three steps. The first is exact, and the last comes at the end. The
// sign of the result is (-1)**n.
func (l *lowering) sin(x *Node) *Node {
	t := fma(x, c(1/math.Pi), c(magic))
	n := sub(t, c(magic))
	y := sinTimes(fma(n, c(-piParts[1]), fma(n, c(-piParts[0]), x)), mul(n, c(-piParts[2])), t)
	return choose(eq(x, c(0)), x, y) // keeps -0
}

// cos: like sin of x + pi/2; odd multiples of pi/2 are subtracted.
func (l *lowering) cos(x *Node) *Node {
	t := add(fma(x, c(1/math.Pi), c(-0.5)), c(magic))
	n := fma(sub(t, c(magic)), c(2), c(1))
	return neg(sinTimes(fma(n, c(-halfPiParts[1]), fma(n, c(-halfPiParts[0]), x)), mul(n, c(-halfPiParts[2])), t))
}

// sinTimes returns sin(r + low) for |r| <= pi/2 and a tiny low, negated if the
// last bit of t is set.
func sinTimes(r, low, t *Node) *Node {
	u := mul(r, r)
	y := add(r, fma(mul(u, r), horner(u, sinPoly), low))
	y = clamp(y, -1, 1) // rounding errors may exceed these limits
	return float(node(Xor, bits(y), node(Shl, bits(t), ci(31))))
}
