package ir

import (
	"math"
	"testing"
)

func must(t *testing.T) func(n *Node, err error) *Node {
	return func(n *Node, err error) *Node {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

func TestNewRefusesWhatDoesNotFit(t *testing.T) {
	x, i, b := NewArg(0, F32), NewArg(1, I32), NewConst(1, Bool)
	for _, c := range []struct {
		code Code
		args []*Node
	}{
		{Add, []*Node{x}},
		{Add, []*Node{x, nil}},
		{Add, []*Node{x, i}},
		{Div, []*Node{i, i}},
		{Exp, []*Node{i}},
		{Select, []*Node{x, x, x}},
		{Select, []*Node{b, x, i}},
		{And, []*Node{x, x}},
		{Arg, nil},
		{Convert, []*Node{x}},
		{Code(250), []*Node{x}},
	} {
		if n, err := New(c.code, c.args...); err == nil {
			t.Errorf("%v of %d operands gave %v, want an error", c.code, len(c.args), n)
		}
	}
}

func TestConstantsFold(t *testing.T) {
	m := must(t)
	n := m(New(Mul, NewConst(0.1, F32), NewConst(3, F32)))
	if n.Code != Const || n.Value != float64(float32(float64(float32(0.1))*3)) {
		t.Errorf("0.1*3 folded to %v %v", n.Code, n.Value)
	}
	if n := NewConvert(NewConst(-2.9, F32), I32); n.Code != Const || n.Value != -2 {
		t.Errorf("i32(-2.9) = %v", n.Value)
	}
	if n := NewConvert(NewConst(1e20, F32), U32); n.Value != math.MaxUint32 {
		t.Errorf("u32(1e20) = %v", n.Value)
	}
}

func TestFlattenMergesEqualValues(t *testing.T) {
	m := must(t)
	x, y := NewArg(0, F32), NewArg(1, F32)
	a := m(New(Sub, x, y))
	b := m(New(Sub, y, x))
	c := m(New(Sub, NewArg(0, F32), NewArg(1, F32)))
	list, at := Flatten(a, b, c)
	if at[0] == at[1] {
		t.Error("x-y and y-x were merged")
	}
	if at[2] != len(list)-1 {
		t.Errorf("the last root stands at %d of %d", at[2], len(list))
	}
	s := m(New(Add, m(New(Add, x, y)), m(New(Add, y, x))))
	if list, _ := Flatten(s); len(list) != 4 {
		t.Errorf("(x+y)+(y+x) has %d values, want 4", len(list))
	}
	if Key(a) != Key(c) || Key(a) == Key(b) {
		t.Error("Key must be equal for equal expressions only")
	}
}

func TestEvalWrapsIntegers(t *testing.T) {
	m := must(t)
	x := NewArg(0, I32)
	if got := NewEvaluator(m(New(Mul, x, x))).Eval([]float64{1 << 20}, nil); got != 0 {
		t.Errorf("(1<<20)**2 = %v in i32, want 0", got)
	}
	if got := NewEvaluator(m(New(Mul, x, x))).Eval([]float64{math.MaxInt32}, nil); got != 1 {
		t.Errorf("(2**31-1)**2 = %v in i32, want 1", got)
	}
	w := NewArg(0, U32)
	if got := NewEvaluator(m(New(Mul, w, w))).Eval([]float64{math.MaxUint32}, nil); got != 1 {
		t.Errorf("(2**32-1)**2 = %v in u32, want 1", got)
	}
	if got := NewEvaluator(m(New(Shl, w, NewConst(31, U32)))).Eval([]float64{math.MaxUint32}, nil); got != 1<<31 {
		t.Errorf("(2**32-1)<<31 = %v in u32, want 2**31", got)
	}
	u := NewArg(0, U32)
	if got := NewEvaluator(m(New(Not, u))).Eval([]float64{0}, nil); got != math.MaxUint32 {
		t.Errorf("^0 = %v in u32", got)
	}
}

func TestRetype(t *testing.T) {
	m := must(t)
	relu := m(New(Max, NewArg(0, F32), NewConst(0, F32)))
	n, err := Retype(relu, I32)
	if err != nil || n.Type != I32 {
		t.Fatalf("relu over i32: %v, %v", n, err)
	}
	if _, err := Retype(m(New(Exp, NewArg(0, F32))), I32); err == nil {
		t.Error("exp over i32 must be refused")
	}
}

func TestFormatIsBounded(t *testing.T) {
	m := must(t)
	n := NewArg(0, F32)
	for range 200 { // 2**200 nodes if written out
		n = m(New(Add, n, n))
	}
	if s := Format(n, nil, nil); len(s) > 10_000 {
		t.Errorf("%d bytes", len(s))
	}
}
