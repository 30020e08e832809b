package ir

import (
	"math"
	"math/rand/v2"
	"testing"
)

// nearFunctions are the functions whose expansions use Exp2Near and RecipNear, with
// the errors that they may have then, in units of the last place, and the arguments
// that matter.
var nearFunctions = []struct {
	code   Code
	units  float64
	lo, hi float64
}{
	{Exp, 2, -104, 89},
	{Exp2, 2, -150, 128.5},
	{Sigmoid, 3, -104, 40},
	{Tanh, 2, -12, 12},
	{Erf, 3, -5, 5},
	{Erfc, 9, -5, 10},
	{NormCDF, 9, -14.2, 6}, // of the 10 that gelu may be off
}

// TestNear computes the expansions in float32, with instructions that are off by as
// much as Exp2Near and RecipNear may be, up or down as it happens.
func TestNear(t *testing.T) {
	native := func(c Code) bool { return c == CopySign || c == Round || c == Exp2Near || c == RecipNear }
	for _, f := range nearFunctions {
		n, err := New(f.code, NewArg(0, F32))
		if err != nil {
			t.Fatal(err)
		}
		e := newRounded(Lower(n, native))
		worst, at := 0.0, 0.0
		for range 100_000 {
			x := float64(float32(f.lo + (f.hi-f.lo)*rand.Float64()))
			if rand.IntN(4) == 0 {
				x = float64(float32(math.Ldexp(x, -rand.IntN(30))))
			}
			got, want := e.eval(x), codes[f.code].eval(x, 0, 0)
			if math.IsInf(got, 0) && want > math.MaxFloat32 {
				continue
			}
			_, exp := math.Frexp(want)
			if u := math.Abs(got-want) / math.Ldexp(1, max(exp-24, -149)); !(u <= worst) {
				worst, at = u, x
			}
		}
		t.Logf("%v: worst %.2f units, at %v", f.code, worst, at)
		if !(worst <= f.units) {
			t.Errorf("%v: off by %.2f units at %v", f.code, worst, at)
		}
		for _, x := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0, math.Copysign(0, -1), 1e30, -1e30, 3e38, -3e38} {
			got, want := e.eval(x), float64(float32(codes[f.code].eval(x, 0, 0)))
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
			// Powers of 2 are exact. Rounding is half a unit of what they may be off.
			frac, exp := math.Frexp(v)
			off := (2*rand.Float64() - 1) * math.Ldexp(0.5, exp-24)
			switch {
			case n.Code == Exp2Near && y < 0x1p-126:
				y = 0
			case (n.Code == Exp2Near || n.Code == RecipNear) && frac != 0.5:
				y = float32(v + off)
			}
			v = float64(y)
		}
		e.values[i] = v
	}
	return e.values[len(e.values)-1]
}
