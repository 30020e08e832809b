package ir

import (
	"math"
	"math/rand/v2"
	"testing"
)

// nearFunctions are the functions whose expansions use Exp2Approx and RecipApprox, with
// the arguments that matter.
var nearFunctions = []struct {
	code   Code
	lo, hi float64
	known  bool // that the argument is between these
}{
	{Exp, -104, 89, false},
	{Exp2, -150, 128.5, false},
	{Sigmoid, -104, 40, false},
	{Tanh, -12, 12, false},
	{Erf, -5, 5, false},
	{Erfc, -5, 10, false},
	{NormCDF, -14.2, 6, false},

	{Exp, 0, 1, true},
	{Exp, 0, 85, true},
	{Exp, -20, 20, true},
	{Sigmoid, 0, 90, true},
	{Sigmoid, -4, 4, true},
	{Sigmoid, -20, 20, true},
	{Tanh, -0.5, 0.5, true},
	{Sqrt, 0x1p-80, 0x1p80, true},
}

// TestRanges checks which instructions expansions omit if the operands have bounds.
func TestRanges(t *testing.T) {
	native := func(c Code) bool { return c == CopySign || c == Round || c > lastCode }
	x := NewArg(0, F32)
	exp := node(Exp, x)
	for _, v := range []struct {
		root  *Node
		code  Code
		there bool
	}{
		{abs(exp), Abs, false},
		{abs(sub(exp, c(1))), Abs, true},
		{abs(node(Tanh, x)), Abs, true},
		{abs(fma(node(Sigmoid, x), c(2), c(1))), Abs, false},
		{node(Sqrt, add(exp, c(1))), SqrtInRange, false}, // infinite
		{node(Sqrt, fma(node(Tanh, x), c(0.5), c(1))), SqrtInRange, true},
		{node(Sqrt, fma(node(Tanh, x), c(1), c(1))), SqrtInRange, false}, // 0
		{node(Exp, node(Sigmoid, x)), FmaUnit, true},                     // of the sigmoid
		{node(Exp, clamp(x, 0, 80)), FmaUnit, false},
		{node(Exp, clamp(x, 0, 88)), FmaUnit, true},
		{node(Exp, clamp(x, -1, 1)), FmaUnit, false},
		{node(Exp, clamp(x, -21, 1)), FmaUnit, true},
		{node(Sigmoid, clamp(x, -4, 4)), FmaUnit, false},
		{node(Sigmoid, clamp(x, -21, 4)), FmaUnit, true},
		{node(Sigmoid, upper(x, c(0))), FmaUnit, false},
	} {
		found := false
		list, _ := Flatten(Lower(v.root, native))
		for _, n := range list {
			found = found || n.Code == v.code
		}
		if found != v.there {
			t.Errorf("%s: %v is there: %v", Format(v.root, nil, nil), v.code, found)
		}
	}
}

// TestSound checks when Max and Min are sound: when no operand can be NaN, unless it is computed from a
// NaN, a large number or an unknown value.
func TestSound(t *testing.T) {
	x, y, p := NewArg(0, F32), NewArg(1, F32), NewParam(0)
	exp := node(Exp, x)
	for _, v := range []struct {
		root *Node
		want bool
	}{
		{upper(x, y), true},
		{upper(mul(x, y), neg(x)), true},
		{lower(mul(mul(x, y), mul(x, y)), y), true},                    // 2^120
		{lower(mul(mul(mul(x, y), mul(x, y)), mul(x, y)), y), true},    // infinite, but no NaN
		{lower(sub(mul(mul(mul(x, y), mul(x, y)), x), exp), y), false}, // infinite less infinite
		{upper(exp, y), true},
		{upper(mul(exp, y), x), false}, // infinite times 0
		{upper(div(x, y), x), false},   // 0/0
		{upper(node(Sqrt, x), y), false},
		{upper(node(Log, abs(x)), y), true},
		{upper(x, p), false},
		{upper(node(Sigmoid, exp), clamp(x, -4, 4)), true},
		// Infinite less than infinite is not certain to be true.
		{upper(choose(lt(node(Exp, add(abs(x), c(1))), node(Exp, add(abs(x), c(1000)))), x, node(Log, sub(neg(abs(x)), c(1)))), x), false},
	} {
		list, _ := Flatten(v.root)
		sound := Sound(list, 1<<30)
		if got := sound[list[len(list)-1]]; got != v.want {
			t.Errorf("%s: %v", Format(v.root, nil, nil), got)
		}
	}
}

// TestRounding checks that a widened range contains the original range.
func TestRounding(t *testing.T) {
	for _, v := range []float64{math.Inf(1), math.Inf(-1), 0, 1, -1, math.MaxFloat32, -math.MaxFloat32, 0x1p-140, -0x1p-140} {
		if r := rounding(Point(v)); !r.Contains(v) {
			t.Errorf("%v is not in %+v", v, r)
		}
	}
}

// TestNear computes the expansions in float32, with instructions that are off by two
// thirds of what Exp2Approx and RecipApprox may be, up or down as it happens. They are off
// by all of it at few arguments: a test on a GPU goes through every one.
func TestNear(t *testing.T) {
	t.Run("instructions", func(t *testing.T) {
		testNear(t, func(c Code) bool { return c == CopySign || c == Round || c > lastCode })
	})
	t.Run("texts", func(t *testing.T) {
		testNear(t, func(c Code) bool { return c == Round || c > lastCode && c != SqrtInRange })
	})
}

func testNear(t *testing.T, native func(Code) bool) {
	for _, f := range nearFunctions {
		x := NewArg(0, F32)
		if f.known {
			x = clamp(x, f.lo, f.hi)
		}
		node, err := New(f.code, x)
		if err != nil {
			t.Fatal(err)
		}
		e := newRounded(Lower(node, native))
		worst, at := 0.0, 0.0
		n := 100_000
		if testing.Short() {
			n = 10_000
		}
		for range n {
			x := float64(float32(f.lo + (f.hi-f.lo)*rand.Float64()))
			if rand.IntN(4) == 0 && f.lo <= 0 {
				x = float64(float32(math.Ldexp(x, -rand.IntN(30))))
			}
			got, want := e.eval(x), evalOf(f.code)(x, 0, 0)
			if math.IsInf(got, 0) && want > math.MaxFloat32 {
				continue
			}
			_, exp := math.Frexp(want)
			if u := math.Abs(got-want) / math.Ldexp(1, max(exp-24, -149)); !(u <= worst) {
				worst, at = u, x
			}
		}
		t.Logf("%v: worst %.2f units, at %v", f.code, worst, at)
		units := max(ApproxUnits(f.code), 0.5)
		for _, r := range Narrows(f.code) {
			if f.known && (Interval{f.lo, f.hi, true}).Within(r.Operand) {
				units += r.More
				break
			}
		}
		if !(worst <= units) {
			t.Errorf("%v: off by %.2f units at %v", f.code, worst, at)
		}
		if f.known {
			continue
		}
		for _, x := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0, math.Copysign(0, -1), 1e30, -1e30, 3e38, -3e38} {
			got, want := e.eval(x), float64(float32(evalOf(f.code)(x, 0, 0)))
			if got != want && (got == got || want == want) {
				t.Errorf("%v(%v) = %v, not %v", f.code, x, got, want)
			}
		}
	}
}

// rounded evaluates an expression in float32.
type rounded struct {
	list   []*Node
	places [][3]int
	values []float64
}

func newRounded(n *Node) *rounded {
	e := NewEvaluator(n)
	return &rounded{e.list, e.places, e.values}
}

func (e *rounded) eval(x float64) float64 {
	for i, n := range e.list {
		p := &e.places[i]
		var v float64
		switch n.Code {
		case Arg:
			v = x
		case Const:
			v = n.Value
		default:
			v = evalNode(n, e.values[p[0]], e.values[p[1]], e.values[p[2]])
		}
		if n.Type == F32 {
			y := float32(v)
			// Powers of 2 are exact. The rounding error is half a unit of the tolerance.
			frac, exp := math.Frexp(v)
			near := n.Code == Exp2Approx || n.Code == RecipApprox
			units := 0.33
			if n.Code == Exp2Approx {
				if units = 0.6; e.values[p[0]] < 0 {
					units = 1.1
				}
			}
			switch {
			case near && math.Abs(v) < 0x1p-126:
				y = float32(math.Copysign(0, v))
			case near && frac != 0.5 && v-v == 0:
				y = float32(v + (2*rand.Float64()-1)*math.Ldexp(units, exp-24))
			}
			v = float64(y)
		}
		e.values[i] = v
	}
	return e.values[len(e.values)-1]
}
