package ir

import "math"

// Expansions for back ends that have Exp2Approx and the codes after it.
//
// Exp2Approx is most accurate for operands that are not negative. Exponents are therefore split
// into the integer below them and a fraction: 2**(n+f) for f in [0, 1].

// powerParts splits x·a into n + f: n is an integer in [-126, 127], and f is in [0, 1.0002] unless
// n is at a limit. It returns f and 2**n. a has two parts; if only one is given, the other is 0,
// and without parts a is 1.
//
// FmaUnit computes n as a number between 0 and 1, so that its limits cost nothing; it need not be
// accurate. If x is NaN, so is f.
func powerParts(x *Node, a ...float64) (f, power *Node) {
	const (
		least = -126
		steps = 253
		below = 0.5 + 0x1p-13 // rounding to nearest then certainly gives the integer below
	)
	s := node(FmaUnit, x, c(a[0]/steps), c((-least-below)/steps))
	t := fma(s, c(steps), c(magic+127+least))
	n := sub(t, c(magic+127))
	if len(a) == 1 {
		f = sub(x, n)
	} else {
		f = fma(x, c(a[1]), fma(x, c(a[0]), neg(n)))
	}
	return f, powerOf(t)
}

// powerOf returns 2**n for t = n + 127 + magic, whose low bits are n + 127.
func powerOf(t *Node) *Node { return float(node(Shl, bits(t), ci(23))) }

// expFull returns e**x. At the limits of n, the remaining exponent f makes the result overflow or
// underflow, and the product rounds it.
func (l *lowering) expFull(x *Node) *Node {
	f, power := powerParts(x, log2eParts...)
	return mul(node(Exp2Approx, f), power)
}

// expTimes returns e**x·y.
func (l *lowering) expTimes(x, y *Node) *Node {
	f, power := powerParts(x, log2eParts...)
	return mul(mul(node(Exp2Approx, f), y), power)
}

func (l *lowering) exp2Full(x *Node) *Node {
	f, power := powerParts(x, 1)
	return mul(node(Exp2Approx, f), power)
}

// sigmoidNear: with e = e**-|x| and q = e/(1+e), the result is 1 - q for positive x and e - e·q for
// negative x. The errors of the inverse, and of rounding 1+e, have little effect on these.
func (l *lowering) sigmoidNear(x *Node) *Node {
	size := lower(x, neg(x))
	if l.guards() {
		size = neg(abs(x))
	}
	f, power := powerParts(size, log2eParts...)
	e := mul(node(Exp2Approx, f), power)
	y := choose(lt(x, c(0)), e, c(1))
	return fma(neg(y), mul(e, l.inverse(add(e, c(1)))), y)
}

// guards reports whether the back end lacks instructions for CopySign and for a Min that returns
// NaN, as texts do. Both then take several operations.
func (l *lowering) guards() bool { return l.native(Exp2Approx) && !l.native(CopySign) }

// tanhSmall is the upper limit for tanhPoly. Above it, the result is more than 1/2.
const tanhSmall = 0.6

// tanhNear: a series for small x, and otherwise 1 - 1/(h + 1/2) with h = e**2|x|/2, in which
// nothing cancels. h is half of the power, because the smaller exponent has a smaller rounding
// error.
func (l *lowering) tanhNear(x *Node) *Node {
	a := abs(x)
	h := node(Exp2Approx, fma(a, c(twoLog2eParts[0]), c(-1)))
	large := sub(c(1), node(RecipApprox, add(h, c(0.5))))
	if !l.guards() {
		return choose(lt(a, c(tanhSmall)), tanhSeries(x), l.copySign(large, x))
	}
	// A number without a sign gets one by a single operation on its bits.
	return float(node(Or, bits(choose(lt(a, c(tanhSmall)), tanhSeries(a), large)), node(And, bits(x), ci(math.MinInt32))))
}

func tanhSeries(x *Node) *Node {
	u := mul(x, x)
	return fma(mul(u, horner(u, tanhPoly)), x, x)
}

// Operands within these bounds have shorter expansions.
const (
	unscaled = 87   // e**x is a normal number for |x| up to it
	direct   = 1.01 // for 0 <= x <= direct, rounding x/ln 2 has little effect
	moderate = 20   // for |x| <= moderate, the error of ln 2 in one part has little effect
)

// Narrow is a range of operands for which the expansion of a function is shorter.
type Narrow struct {
	Name    string // of the range
	Operand Interval
	More    float64 // additional error of the function in this range, beyond ApproxUnits
}

// Narrows returns the ranges of operands for which the expansion of c is shorter, for back ends
// with Exp2Approx and the codes after it: see bounded. It omits ranges whose arithmetic fails with compilers
// that treat products as associative, as those of texts do: they replace x - x·a·b by x·(1 - a·b).
func Narrows(c Code) []Narrow {
	switch c {
	case Tanh:
		return []Narrow{{"small", Interval{-tanhSmall, tanhSmall, true}, 0}}
	case Exp:
		return []Narrow{{"unit", Interval{0, direct, true}, 0}, {"moderate", Interval{-moderate, moderate, true}, 1}}
	case Sigmoid:
		return []Narrow{{"positive", Interval{0, math.Inf(1), true}, 0}, {"moderate", Interval{-moderate, moderate, true}, 1}}
	}
	return nil
}

// Within reports whether y contains x.
func (x Interval) Within(y Interval) bool {
	return (x.empty() || y.Lo <= x.Lo && x.Hi <= y.Hi) && (y.NaN || !x.NaN)
}

// ApproxUnits returns the largest error of the expansion of a function over all operands, in
// units in the last place, for back ends that have Exp2Approx and the codes behind it. It
// returns 0 for functions whose expansion does not use these codes.
func ApproxUnits(c Code) float64 {
	switch c {
	case Exp, Exp2, Tanh:
		return 2
	case Sigmoid, Erf:
		return 3
	case Erfc, NormCDF: // gelu may have an error of 10
		return 9
	}
	return 0
}

// LowerNarrow returns the expansion of a function of one operand, Arg 0, like [Lower], for an
// operand that is in the given range.
func LowerNarrow(c Code, operand Interval, native func(Code) bool) *Node {
	x := NewArg(0, F32)
	l := &lowering{native: native, ranges: ranges{x: operand}}
	return mapFrom(node(c, x), l.expand)
}

// bounded returns a shorter expansion of n that is valid for the range of its operand, or
// nil if there is none. was is n in the original expression.
func (l *lowering) bounded(was, n *Node) *Node {
	if n.Type != F32 || n.Code.Arity() != 1 {
		return nil
	}
	r := l.ranges[was.Args[0]]
	most, x := max(-r.Lo, r.Hi), n.Args[0] // all of these propagate NaN
	if !(r.Lo <= r.Hi) {
		return nil
	}
	switch n.Code {
	case Abs:
		if r.Lo > 0 || was.Args[0].Code == Exp || was.Args[0].Code == Exp2 { // the operand is never -0
			return x
		}
	case Sqrt:
		if r.Lo >= 0x1p-96 && r.Hi <= 0x1p126 && l.native(SqrtInRange) {
			return node(SqrtInRange, x)
		}
	case Tanh:
		if most <= tanhSmall {
			return tanhSeries(x)
		}
	case Exp:
		switch {
		case r.Lo >= 0 && most <= direct: // Exp2Approx is not accurate enough for negative operands
			return node(Exp2Approx, fma(x, c(log2eParts[1]), mul(x, c(log2eParts[0]))))
		case most <= moderate:
			return expModerate(x)
		case r.Lo >= 0 && most <= unscaled:
			return expUnscaled(x)
		}
	case Sigmoid:
		switch {
		case r.Lo >= 0: // the error of e**-x counts at most half, and less if x is large
			return l.inverse(add(node(Exp2Approx, mul(x, c(-log2eParts[0]))), c(1)))
		case most <= moderate:
			return l.inverse(add(expModerate(neg(x)), c(1)))
		}
	}
	return nil
}

// expUnscaled returns e**x for |x| <= unscaled.
func expUnscaled(x *Node) *Node {
	t := mul(x, c(log2eParts[0]))
	// The rounding error of t is small: e**r is 1 + r.
	r := fma(t, c(-ln2Parts[1]), fma(t, c(-ln2Parts[0]), x))
	p := node(Exp2Approx, t)
	return fma(p, r, p)
}

// expModerate returns e**x for |x| <= moderate as 2**t·e**r. t is x/ln 2 rounded to twelve binary
// places, so that r is small enough for e**r = 1 + r. Compilers that treat products as associative
// do not simplify t·ln 2 to x, because t is rounded.
func expModerate(x *Node) *Node {
	const places = 3 << (22 - 12) // adding it rounds to twelve binary places
	t := sub(fma(x, c(math.Log2E), c(places)), c(places))
	p := node(Exp2Approx, t)
	return fma(p, fma(t, c(-math.Ln2), x), p)
}

// ranges holds the intervals of the values of expressions in float32 arithmetic.
type ranges map[*Node]Interval

// newRanges returns the intervals if the float32 operands are in arg.
func newRanges(arg Interval, roots ...*Node) ranges {
	r := make(ranges)
	var walk func(n *Node) Interval
	walk = func(n *Node) Interval {
		if v, ok := r[n]; ok {
			return v
		}
		var v Interval
		switch {
		case n.Code == Const:
			v = Point(n.Value)
		case n.Code == Arg && n.Type == F32:
			v = arg
		case n.Code == Arg || n.Code == Param:
			v = Anything()
		default:
			var in [3]Interval
			for i, a := range n.Operands() {
				in[i] = walk(a)
			}
			if v = encloseNode(n, in[:n.Code.Arity()]); n.Type == F32 {
				v = rounding(v)
			}
		}
		r[n] = v
		return v
	}
	for _, n := range roots {
		walk(n)
	}
	return r
}

// Sound returns those Min and Max of float32 numbers, among flattened expressions, whose operands
// are never NaN if no float32 operand of the expressions is NaN or has a magnitude above size.
func Sound(list []*Node, size float64) map[*Node]bool {
	r := newRanges(Interval{-size, size, false}, list...)
	sound := make(map[*Node]bool)
	for _, n := range list {
		if (n.Code == Min || n.Code == Max) && n.Type == F32 && !r[n.Args[0]].NaN && !r[n.Args[1]].NaN {
			sound[n] = true
		}
	}
	return sound
}

// rounding widens an interval by the largest error of functions. An interval without negative
// numbers stays without them.
func rounding(v Interval) Interval {
	if v.empty() {
		return v
	}
	return Interval{-above(-v.Lo), above(v.Hi), v.NaN}
}

// above returns an upper bound of the rounded values of numbers up to v.
func above(v float64) float64 {
	const off, tiny = 0x1p-19, 0x1p-100 // subnormal numbers have a larger error
	switch {
	case v == math.Inf(-1):
		return -math.MaxFloat32
	case v >= math.MaxFloat32/2:
		return math.Inf(1)
	case v >= tiny:
		return v + off*v
	case v > 0:
		return tiny
	case v > -tiny:
		return 0
	}
	return v - off*v
}
