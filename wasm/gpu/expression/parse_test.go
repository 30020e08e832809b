package expression

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/op"
)

// at returns the value of a text at one place.
func at(t *testing.T, text string, operands ...float64) float64 {
	t.Helper()
	names := []string{"x", "y", "z"}[:len(operands)]
	o, err := Parse(text, names...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var in []*op.Array
	for _, v := range operands {
		a := op.NewArray(op.Shape{1})
		a.Data[0] = v
		in = append(in, a)
	}
	types := []op.DType{op.F32, op.F32, op.F32}[:len(operands)]
	a := o.Defaults()
	out, err := o.Reference(&a, in, types)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out[0].Data[0]
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want float64
	}{
		{"x", 3}, {" 2 ", 2}, {"1+2*x", 7}, {"(1+2)*x", 9}, {"x-1-1", 1}, {"12/x/2", 2}, {"-x^2", -9}, {"2^x^2", 512},
		{"2^-1", 0.5}, {"--x", 3}, {"1e2", 100}, {"1.5e-1", 0.15}, {".5", 0.5}, {"x**2", 9}, {"2*-x", -6},
		{"x > 2 ? 1 : 0", 1}, {"x > 2 && y > 2 ? 1 : 0", 0}, {"x > 2 || y > 2 ? 1 : 0", 1}, {"(x == 3) ? y : x", -2},
		{"x < 0 ? 1 : x < 5 ? 2 : 3", 2}, {"max(x, y)", 3}, {"min(x, y)", -2}, {"abs(y)", 2}, {"clamp(x, 0, 1)", 1},
		{"fma(x, y, 1)", -5}, {"sqrt(x+1)", 2}, {"pow(x, 2)", 9}, {"floor(x/2)", 1}, {"exp(0)", 1}, {"pi", math.Pi}, {"x*x - y", 11},
	} {
		if got := at(t, c.text, 3, -2); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s at 3, -2 is %v, expected %v", c.text, got, c.want)
		}
	}
	for name, arity := range Functions() {
		at(t, name+"("+strings.Repeat("x, ", arity-1)+"x)", 0.5)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"": "column 1: the text ends here", "x +": "column 4: the text ends here", "(x": `")" is missing`, "x)": `column 2: ')' is not expected`,
		"w": "no operand or function is called w: the operands are x, y", "max(x)": "max has 1 arguments, expected 2", "x > 1": "a condition where a number",
		"x ? 1 : 2": "a number where a condition", "x > 1 ? 2": `":" is missing`, "1.2.3": "is not a number", "x $ y": `'$' is not expected`,
		"x && y ? 1 : 2": "a number where a condition", "sin": `"(" is missing`, "2 x": "'x' is not expected", "(x>1)+1": "a condition where a number", "x > 1 > 0 ? 1 : 2": "a condition where a number",
		strings.Repeat("(", 100) + "x": "nested deeper than", strings.Repeat("2^", 100) + "x": "nested deeper than", strings.Repeat("x+", 3000) + "x": "longer than",
	} {
		_, err := Parse(text, "x", "y")
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s gave the error %v, expected %q in it", text, err, want)
		}
	}
	for _, names := range [][]string{{}, {"a", "b", "c", "d"}, {"1"}, {""}, {"x", "x"}, {"pi"}, {"sin"}, {"a b"}} {
		if _, err := Parse("1", names...); !errors.Is(err, op.ErrUnsupported) {
			t.Errorf("operands %q: %v", names, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"x", "max(x, 0) + 0.1*min(x, 0)", "x > 0 && x < 1 ? x^2 : -x", "1e", "((", "a?b:c", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if o, err := Parse(text, "x", "y"); (o == nil) == (err == nil) {
			t.Errorf("%q: %v, %v", text, o, err)
		}
	})
}
