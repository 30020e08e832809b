package ir

import "math"

// Interval is what is known of a number: it lies in [Lo, Hi], and it may be
// NaN if NaN is set. If Lo > Hi it is NaN for certain. A Bool is 0 or 1.
type Interval struct {
	Lo, Hi float64
	NaN    bool
}

// Point returns the interval of v alone.
func Point(v float64) Interval {
	if v != v {
		return Interval{math.Inf(1), math.Inf(-1), true}
	}
	return Interval{v, v, false}
}

// Anything returns the interval of which nothing is known.
func Anything() Interval { return Interval{math.Inf(-1), math.Inf(1), true} }

// Contains reports whether the number may be v.
func (x Interval) Contains(v float64) bool {
	if v != v {
		return x.NaN
	}
	return x.Lo <= v && v <= x.Hi
}

// Certain reports whether the number can have one value only.
func (x Interval) Certain() bool { return x.Lo == x.Hi && !x.NaN || x.empty() }

func (x Interval) empty() bool { return x.Lo > x.Hi }

// value is the value of a certain interval.
func (x Interval) value() float64 {
	if x.empty() {
		return math.NaN()
	}
	return x.Lo
}

func (x Interval) zero() bool { return x.Lo <= 0 && x.Hi >= 0 }

func (x Interval) join(y Interval) Interval {
	return Interval{min(x.Lo, y.Lo), max(x.Hi, y.Hi), x.NaN || y.NaN}
}

// nothing is what joining starts with.
func nothing() Interval { return Interval{math.Inf(1), math.Inf(-1), false} }

// Encloser computes expressions over intervals: the result contains the value
// of the expression for all operands in theirs. The sign of a zero is not
// taken to be known. It is not safe for concurrent use.
type Encloser struct {
	list   []*Node
	places [][3]int // of the operands of each entry
	values []Interval
	round  func(n *Node, v Interval) Interval
}

// NewEncloser prepares the evaluation of root. round, if not nil, widens what
// each node makes of its operands by the node's own error.
func NewEncloser(root *Node, round func(n *Node, v Interval) Interval) *Encloser {
	e := NewEvaluator(root)
	return &Encloser{e.list, e.places, make([]Interval, len(e.list)), round}
}

// Enclose returns the range of the expression; args are indexed by Arg, params
// by Param.
func (e *Encloser) Enclose(args []Interval, params []float64) Interval {
	var in [3]Interval
	for i, n := range e.list {
		switch n.Code {
		case Arg:
			e.values[i] = args[n.Index]
		case Param:
			e.values[i] = Point(params[n.Index])
		case Const:
			e.values[i] = Point(n.Value)
		default:
			k := n.Code.Arity()
			for j := range k {
				in[j] = e.values[e.places[i][j]]
			}
			e.values[i] = encloseNode(n, in[:k])
			if e.round != nil {
				e.values[i] = e.round(n, e.values[i])
			}
		}
	}
	return e.values[len(e.values)-1]
}

// leastNormal is the least float32 that is not subnormal.
const leastNormal = 0x1p-126

// domain is where functions begin that are NaN below.
var domain = map[Code]float64{Sqrt: 0, Rsqrt: 0, Log: 0, Log2: 0, Log1p: -1}

// encloseNode applies the code of n to ranges. Codes that are monotonic in
// each operand have their extremes at corners; the others, and those with
// poles and jumps, are treated one by one.
func encloseNode(n *Node, in []Interval) Interval {
	switch n.Code {
	case Select:
		r := nothing()
		if in[0].Contains(1) {
			r = r.join(in[1])
		}
		if in[0].Contains(0) {
			r = r.join(in[2])
		}
		return r
	case Eq, Ne, Lt, Le:
		return compareIntervals(n.Code, in[0], in[1])
	}
	nan, certain, unbounded := false, true, false
	for _, x := range in {
		nan = nan || x.NaN
		certain = certain && x.Certain()
		unbounded = unbounded || !x.empty() && (math.IsInf(x.Lo, 0) || math.IsInf(x.Hi, 0))
	}
	a := in[0]
	switch n.Code {
	case And, Or, Xor, Not:
		if n.Type == Bool {
			return corners(n, in)
		}
	case Recip, Div:
		x, y := Point(1), a
		if n.Code == Div {
			x, y = a, in[1]
		}
		if !x.empty() && !y.empty() && y.zero() {
			if x.Certain() && y.Certain() && x.Lo == 0 {
				return Point(math.NaN())
			}
			return Interval{math.Inf(-1), math.Inf(1), nan || x.zero() || unbounded}
		}
	case Rsqrt:
		if a.zero() {
			return Interval{math.Inf(-1), math.Inf(1), nan || a.Lo < 0}
		}
	case CopySign:
		m := encloseNode(&Node{Code: Abs, Type: F32}, in[:1])
		switch y := in[1]; {
		case m.empty() || !y.NaN && y.Lo > 0:
			return m
		case !y.NaN && y.Hi < 0:
			return Interval{-m.Hi, -m.Lo, m.NaN}
		}
		return Interval{-m.Hi, m.Hi, m.NaN}
	case Pow:
		if a.zero() && !(in[1].Lo > 0) {
			return Anything()
		}
	case Bitcast:
		// Which NaN it is and the sign of 0 are not known, and subnormal numbers may be 0.
		if n.Args[0].Type == F32 && (a.NaN || a.Lo < leastNormal && a.Hi > -leastNormal) {
			return Anything()
		}
	}
	if certain {
		var v [3]float64
		for i, x := range in {
			v[i] = x.value()
		}
		return Point(evalNode(n, v[0], v[1], v[2]))
	}
	if n.Type != F32 || in[len(in)-1].empty() || a.empty() {
		if n.Type == F32 && n.Code != Pow && n.Code != Convert {
			return Point(math.NaN())
		}
		return Anything()
	}
	r := nothing()
	switch n.Code {
	case Convert:
		if n.Args[0].Type != F32 && n.Args[0].Type != Bool {
			return Anything()
		}
		return a
	case Bitcast, Ldexp:
		return Anything()
	case Fma:
		if in[1].empty() {
			return Point(math.NaN())
		}
	case Pow:
		if a.Lo <= 0 {
			return Anything()
		}
	case Abs:
		if a.zero() {
			r = Point(0)
		}
	case Sin, Cos:
		if !(a.Hi-a.Lo < 2*math.Pi) || a.Lo < -1e9 || a.Hi > 1e9 {
			return Interval{-1, 1, nan || unbounded}
		}
		// The turning points are at multiples of pi, for a sine half a turn on.
		shift := 0.0
		if n.Code == Sin {
			shift = math.Pi / 2
		}
		for k := math.Ceil((a.Lo - shift) / math.Pi); k*math.Pi+shift <= a.Hi; k++ {
			r = r.join(Point(1 - 2*math.Abs(math.Mod(k, 2))))
		}
	}
	if least, ok := domain[n.Code]; ok {
		if a.Hi < least {
			return Point(math.NaN())
		}
		if a.Lo < least {
			nan = true
			in = []Interval{{least, a.Hi, false}}
		}
	}
	c := corners(n, in)
	if c.NaN {
		return Anything() // infinities of opposite sign, or times zero
	}
	r = r.join(c)
	switch n.Code {
	case Mul, Div, Fma: // infinity times a zero that is no end; of sums the ends tell
		nan = nan || unbounded
	}
	r.NaN = nan
	return r
}

// corners joins the values of n at the ends of its operands.
func corners(n *Node, in []Interval) Interval {
	r := nothing()
	for c := range 1 << len(in) {
		var v [3]float64
		for i, x := range in {
			v[i] = x.Lo
			if c>>i&1 != 0 {
				v[i] = x.Hi
			}
		}
		r = r.join(Point(evalNode(n, v[0], v[1], v[2])))
	}
	return r
}

// compareIntervals returns what a comparison may answer.
func compareIntervals(c Code, x, y Interval) Interval {
	yes, no := false, false
	if !x.empty() && !y.empty() {
		switch c {
		case Lt:
			yes, no = x.Lo < y.Hi, x.Hi >= y.Lo
		case Le:
			yes, no = x.Lo <= y.Hi, x.Hi > y.Lo
		default:
			yes, no = x.Lo <= y.Hi && y.Lo <= x.Hi, !(x.Lo == x.Hi && y.Lo == y.Hi && x.Lo == y.Lo)
		}
	}
	if x.NaN || y.NaN {
		no = true
	}
	if c == Ne {
		yes, no = no, yes
	}
	return Interval{truth(!no), truth(yes), false}
}
