package ir

import "testing"

// TestLowerLeavesNoComposite builds every code that Lower may expand, and checks that the expansion
// has no such code. Package simd tests the results of the expansions, in float32.
func TestLowerLeavesNoComposite(t *testing.T) {
	m := must(t)
	replaceable := func(c Code) bool {
		return c.Composite() || c == CopySign || c == Round || c == RoundF16 || c == RoundBF16 || c == Ldexp
	}
	for _, c := range Codes() {
		if !replaceable(c) {
			continue
		}
		args := []*Node{NewArg(0, F32), NewArg(1, F32), NewArg(2, F32)}[:c.Arity()]
		n := m(New(c, args...))
		if expansionOf(c) == nil {
			t.Errorf("%v has no expansion", c)
			continue
		}
		low := Lower(n, nil)
		list, _ := Flatten(low)
		for _, k := range list {
			if replaceable(k.Code) {
				t.Errorf("the expansion of %v contains %v", c, k.Code)
			}
		}
		if low.Type != F32 || len(list) > 200 {
			t.Errorf("%v became %d values of type %v", c, len(list), low.Type)
		}
		if Lower(n, func(k Code) bool { return k == c }) != n {
			t.Errorf("%v was expanded though it is native", c)
		}
		// A back end with the exact instructions keeps those.
		list, _ = Flatten(Lower(n, func(k Code) bool { return !k.Composite() }))
		for _, k := range list {
			if k.Code.Composite() {
				t.Errorf("the expansion of %v contains %v", c, k.Code)
			}
		}
	}
}

// TestLowerKeepsTheRest: nothing else changes, and shared values stay shared.
func TestLowerKeepsTheRest(t *testing.T) {
	m := must(t)
	x := NewArg(0, F32)
	e := m(New(Exp, x))
	n := m(New(Div, e, m(New(Add, e, NewParam(0)))))
	one, _ := Flatten(Lower(e, nil))
	both, _ := Flatten(Lower(n, nil))
	if want := len(one) + 3; len(both) != want { // the parameter, the sum, the quotient
		t.Errorf("%d values, want %d: e**x is computed again", len(both), want)
	}
	plain := m(New(Max, x, NewConst(0, F32)))
	if Lower(plain, nil) != plain {
		t.Error("max(x, 0) was changed")
	}
}
