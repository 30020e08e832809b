package ir

import "math"

// Interval is a range of a number: the number is in [Lo, Hi], or may be NaN if NaN is set. If Lo >
// Hi, the number is certainly NaN. A Bool is 0 or 1.
type Interval struct {
	Lo, Hi float64
	NaN    bool
}

// Point returns the interval that contains only v.
func Point(v float64) Interval {
	if v != v {
		return Interval{math.Inf(1), math.Inf(-1), true}
	}
	return Interval{v, v, false}
}

// Anything returns the interval of all numbers and NaN.
func Anything() Interval { return Interval{math.Inf(-1), math.Inf(1), true} }

// Contains reports whether the number may be v.
func (x Interval) Contains(v float64) bool {
	if v != v {
		return x.NaN
	}
	return x.Lo <= v && v <= x.Hi
}

// Certain reports whether the number can have only one value.
func (x Interval) Certain() bool { return x.Lo == x.Hi && !x.NaN || x.empty() }

func (x Interval) empty() bool { return x.Lo > x.Hi }

// value returns the value of a certain interval.
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

// nothing returns the empty interval, the identity of join.
func nothing() Interval { return Interval{math.Inf(1), math.Inf(-1), false} }

// Encloser computes expressions over intervals. The result contains the value of the expression for
// all operands in their intervals. The sign of a zero counts as unknown. An Encloser is not safe
// for concurrent use.
type Encloser struct {
	list   []*Node
	places [][3]int // indices in list of the operands of each node
	values []Interval
	round  func(n *Node, v Interval) Interval
}

// NewEncloser prepares the evaluation of root. round, if not nil, widens the
// interval of each node by the node's own error.
func NewEncloser(root *Node, round func(n *Node, v Interval) Interval) *Encloser {
	e := NewEvaluator(root)
	return &Encloser{e.list, e.places, make([]Interval, len(e.list)), round}
}

// Enclose returns the interval of the expression. args are the intervals of its operands, and
// params the values of its parameters.
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

// domain has the lower end of the domain of functions that are NaN below it.
var domain = map[Code]float64{Sqrt: 0, Rsqrt: 0, Log: 0, Log2: 0, Log1p: -1}

// enclosure is the application of a code to ranges.
type enclosure struct {
	n         *Node
	in        []Interval
	nan       bool // an operand may be NaN
	certain   bool // all operands are certain
	unbounded bool // an operand may be infinite
}

// encloseNode applies the code of n to intervals. The extremes of a code that is monotonic in each
// operand are at the corners. Other codes, and codes with poles and jumps, have functions of their
// own.
func encloseNode(n *Node, in []Interval) Interval {
	e := enclosure{n: n, in: in, certain: true}
	for _, x := range in {
		e.nan = e.nan || x.NaN
		e.certain = e.certain && x.Certain()
		e.unbounded = e.unbounded || !x.empty() && (math.IsInf(x.Lo, 0) || math.IsInf(x.Hi, 0))
	}
	if special := jumps[n.Code]; special != nil {
		if r, ok := special(&e); ok {
			return r
		}
	}
	if e.certain {
		var v [3]float64
		for i, x := range in {
			v[i] = x.value()
		}
		return Point(evalNode(n, v[0], v[1], v[2]))
	}
	if n.Type != F32 || in[len(in)-1].empty() || in[0].empty() {
		if n.Type == F32 && n.Code != Pow && n.Code != Convert {
			return Point(math.NaN())
		}
		return Anything()
	}
	if special := curves[n.Code]; special != nil {
		if r, ok := special(&e); ok {
			return r
		}
	}
	return e.monotonic()
}

// monotonic returns the interval of the values at the corners, within the domain of the function.
func (e *enclosure) monotonic() Interval {
	in, nan := e.in, e.nan
	if least, ok := domain[e.n.Code]; ok {
		if in[0].Hi < least {
			return Point(math.NaN())
		}
		if in[0].Lo < least {
			nan = true
			in = []Interval{{least, in[0].Hi, false}}
		}
	}
	r := corners(e.n, in)
	if r.NaN {
		return Anything() // infinities of opposite sign, or times zero
	}
	switch e.n.Code {
	case Mul, Div, Fma: // infinity times a zero inside of the interval; for sums the ends show it
		nan = nan || e.unbounded
	}
	r.NaN = nan
	return r
}

// jumps has functions for codes with poles or jumps, and for codes with operands or results that
// are not numbers. They return false if the general rule applies.
var jumps = [numCodes]func(e *enclosure) (Interval, bool){
	Select: func(e *enclosure) (Interval, bool) {
		r := nothing()
		if e.in[0].Contains(1) {
			r = r.join(e.in[1])
		}
		if e.in[0].Contains(0) {
			r = r.join(e.in[2])
		}
		return r, true
	},
	Eq: (*enclosure).compare, Ne: (*enclosure).compare, Lt: (*enclosure).compare, Le: (*enclosure).compare,
	And: (*enclosure).logic, Or: (*enclosure).logic, Xor: (*enclosure).logic, Not: (*enclosure).logic,
	Recip: func(e *enclosure) (Interval, bool) { return e.divide(Point(1), e.in[0]) },
	Div:   func(e *enclosure) (Interval, bool) { return e.divide(e.in[0], e.in[1]) },
	Rsqrt: func(e *enclosure) (Interval, bool) {
		return Interval{math.Inf(-1), math.Inf(1), e.nan || e.in[0].Lo < 0}, e.in[0].zero()
	},
	CopySign: func(e *enclosure) (Interval, bool) { return copySigns(absolute(e.in[0]), e.in[1]), true },
	Pow:      func(e *enclosure) (Interval, bool) { return Anything(), e.in[0].zero() && !(e.in[1].Lo > 0) },
	Bitcast: func(e *enclosure) (Interval, bool) {
		// The sign of 0 and the bits of NaN are unknown, and subnormal numbers may be 0.
		a := e.in[0]
		return Anything(), e.n.Args[0].Type == F32 && (a.NaN || a.Lo < leastNormal && a.Hi > -leastNormal)
	},
}

// curves has functions for codes that are not monotonic, for operands that are not points.
var curves = [numCodes]func(e *enclosure) (Interval, bool){
	Convert: func(e *enclosure) (Interval, bool) {
		if from := e.n.Args[0].Type; from != F32 && from != Bool {
			return Anything(), true
		}
		return e.in[0], true
	},
	Bitcast: func(*enclosure) (Interval, bool) { return Anything(), true },
	Ldexp:   func(*enclosure) (Interval, bool) { return Anything(), true },
	Fma:     func(e *enclosure) (Interval, bool) { return Point(math.NaN()), e.in[1].empty() },
	Pow:     func(e *enclosure) (Interval, bool) { return Anything(), e.in[0].Lo <= 0 },
	Abs:     func(e *enclosure) (Interval, bool) { return absolute(e.in[0]), true },
	Sin:     func(e *enclosure) (Interval, bool) { return e.wave(math.Pi / 2) },
	Cos:     func(e *enclosure) (Interval, bool) { return e.wave(0) },
}

func (e *enclosure) compare() (Interval, bool) {
	return compareIntervals(e.n.Code, e.in[0], e.in[1]), true
}

// logic encloses operations of Bools. An operand without known bounds is 0 or 1.
func (e *enclosure) logic() (Interval, bool) {
	if e.n.Type != Bool {
		return Interval{}, false
	}
	var in [2]Interval
	for i, x := range e.in {
		in[i] = Interval{max(x.Lo, 0), min(x.Hi, 1), false}
	}
	return corners(e.n, in[:len(e.in)]), true
}

// divide encloses quotients whose divisor may be zero.
func (e *enclosure) divide(x, y Interval) (Interval, bool) {
	if x.empty() || y.empty() || !y.zero() {
		return Interval{}, false
	}
	if x.Certain() && y.Certain() && x.Lo == 0 {
		return Point(math.NaN()), true
	}
	return Interval{math.Inf(-1), math.Inf(1), e.nan || x.zero() || e.unbounded}, true
}

// absolute returns the range of absolute values.
func absolute(x Interval) Interval {
	if x.empty() {
		return Point(math.NaN())
	}
	r := corners(&Node{Code: Abs, Type: F32}, []Interval{x})
	if x.zero() {
		r = r.join(Point(0))
	}
	r.NaN = x.NaN
	return r
}

// copySigns returns the range of numbers whose absolute values are m, with the signs of y.
func copySigns(m, y Interval) Interval {
	switch {
	case m.empty() || !y.NaN && y.Lo > 0:
		return m
	case !y.NaN && y.Hi < 0:
		return Interval{-m.Hi, -m.Lo, m.NaN}
	}
	return Interval{-m.Hi, m.Hi, m.NaN}
}

// wave encloses sines and cosines. The extremes of a sine are at odd multiples of pi/2, and those
// of a cosine at multiples of pi.
func (e *enclosure) wave(shift float64) (Interval, bool) {
	a := e.in[0]
	if !(a.Hi-a.Lo < 2*math.Pi) || a.Lo < -1e9 || a.Hi > 1e9 {
		return Interval{-1, 1, e.nan || e.unbounded}, true
	}
	r := nothing()
	for k := math.Ceil((a.Lo - shift) / math.Pi); k*math.Pi+shift <= a.Hi; k++ {
		r = r.join(Point(1 - 2*math.Abs(math.Mod(k, 2))))
	}
	ends := e.monotonic()
	return Interval{min(r.Lo, ends.Lo), max(r.Hi, ends.Hi), ends.NaN}, true
}

// corners returns the interval of the values of n at the ends of its operands.
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

// compareIntervals returns the possible results of a comparison.
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
