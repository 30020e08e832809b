package wgsl

import (
	"fmt"
	"go/ast"
	go_parser "go/parser"
	go_token "go/token"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// A device simulates float32 arithmetic: each operation rounds, and a device that flushes replaces
// subnormal operands and results by 0.
type device struct {
	flushes bool
	// near returns the result of exp2 or 1/x on the device, given the exact result.
	near func(v, units float64) float64
}

func (d device) f32(v float32) float32 {
	if d.flushes && math.Abs(float64(v)) < 0x1p-126 {
		return float32(math.Copysign(0, float64(v)))
	}
	return v
}

// A routine is a function of numbers that is added to texts, given by its lines.
type routine struct {
	params []string
	lines  []line
}

// line is an assignment of a function: the name of the variable and the expression. The name is ""
// for the last line, which is the result.
type line struct {
	name string
	expr ast.Expr
}

var (
	heading  = regexp.MustCompile(`^fn (\w+)\((.*)\) -> (?:f32|bool) {$`)
	sentence = regexp.MustCompile(`^  (?:let (\w+) =|return) (.*);$`)
	toGo     = strings.NewReplacer("bitcast<f32>", "bitcast_f32", "bitcast<u32>", "bitcast_u32", "bitcast<i32>", "bitcast_i32", "select(", "select_(")
	suffixes = regexp.MustCompile(`\b(0x[0-9a-f]+|[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)([uif])\b`)
	types    = map[string]string{"u": "u32(", "i": "i32(", "f": "f32("}
)

// routines parses the texts of functions of one number. Apart from the tokens replaced below,
// their expressions are valid Go: they have brackets wherever the precedences differ.
func routines(t *testing.T, fns ...fn) map[string]*routine {
	all := map[string]*routine{}
	for _, f := range fns {
		addRoutine(t, all, functions[f].name, library()[f][0])
	}
	return all
}

// addRoutine parses one function.
func addRoutine(t *testing.T, all map[string]*routine, name, whole string) {
	text := strings.Split(whole, "\n")
	head := heading.FindStringSubmatch(text[0])
	if head == nil || head[1] != name || text[len(text)-1] != "}" {
		t.Fatalf("no function: %q", text)
	}
	r := &routine{}
	for _, p := range strings.Split(head[2], ", ") {
		r.params = append(r.params, strings.TrimSuffix(p, ": f32"))
	}
	for _, l := range text[1 : len(text)-1] {
		m := sentence.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("no line: %q", l)
		}
		typed := suffixes.ReplaceAllStringFunc(toGo.Replace(m[2]), func(s string) string {
			n := suffixes.FindStringSubmatch(s)
			return types[n[2]] + n[1] + ")"
		})
		e, err := go_parser.ParseExpr(typed)
		if err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		r.lines = append(r.lines, line{m[1], e})
	}
	all[name] = r
}

// call evaluates a function.
func (d device) call(all map[string]*routine, name string, args ...any) any {
	r := all[name]
	values := map[string]any{}
	for i, p := range r.params {
		values[p] = args[i]
	}
	for _, l := range r.lines {
		v := d.eval(all, values, l.expr)
		if l.name == "" {
			return v
		}
		values[l.name] = v
	}
	panic(name + " returns nothing")
}

// eval evaluates an expression to a float32, uint32 or bool.
func (d device) eval(all map[string]*routine, values map[string]any, e ast.Expr) any {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return d.eval(all, values, e.X)
	case *ast.Ident:
		return values[e.Name]
	case *ast.BasicLit:
		return e.Value
	case *ast.BinaryExpr:
		return d.binary(e.Op, d.eval(all, values, e.X), d.eval(all, values, e.Y))
	case *ast.UnaryExpr:
		switch x := d.eval(all, values, e.X).(type) {
		case string:
			return "-" + x
		case float32:
			return -x
		}
	case *ast.CallExpr:
		name := e.Fun.(*ast.Ident).Name
		args := make([]any, len(e.Args))
		for i, a := range e.Args {
			args[i] = d.eval(all, values, a)
		}
		if v, is := d.builtIn(name, args); is {
			return v
		}
		return d.call(all, name, args...)
	}
	panic(fmt.Sprintf("no such expression: %T %v", e, e))
}

// binary evaluates an operation on two values.
func (d device) binary(o go_token.Token, x, y any) any {
	switch x := x.(type) {
	case float32:
		x, y := d.f32(x), d.f32(y.(float32))
		switch o {
		case go_token.ADD:
			return d.f32(x + y)
		case go_token.SUB:
			return d.f32(x - y)
		case go_token.MUL:
			return d.f32(x * y)
		case go_token.QUO:
			return d.f32(float32(d.near(1/float64(y), 0.33) * float64(x)))
		case go_token.LSS:
			return x < y
		case go_token.LEQ:
			return x <= y
		case go_token.GEQ:
			return x >= y
		}
	case int32:
		switch y := y.(type) {
		case uint32:
			return x << y // a shift is never mixed with other operators
		case int32:
			switch o {
			case go_token.AND:
				return x & y
			case go_token.OR:
				return x | y
			}
		}
	case uint32:
		y := y.(uint32)
		switch o {
		case go_token.AND:
			return x & y
		case go_token.OR:
			return x | y
		case go_token.LSS:
			return x < y
		case go_token.GTR:
			return x > y
		case go_token.EQL:
			return x == y
		}
	case bool:
		y := y.(bool)
		switch o {
		case go_token.AND:
			return x && y
		case go_token.OR:
			return x || y
		}
	}
	panic(fmt.Sprintf("no such operation: %T %v %T", x, o, y))
}

// builtIn evaluates a function of WGSL, if name is one.
func (d device) builtIn(name string, args []any) (v any, is bool) {
	number := func(i int) float64 { return float64(d.f32(args[i].(float32))) }
	switch name {
	case "fma":
		return d.f32(float32(math.FMA(number(0), number(1), number(2)))), true
	case "exp2":
		x, units := number(0), 1.1
		if x >= 0 {
			units = 0.6
		}
		return d.f32(float32(d.near(math.Exp2(x), units))), true
	case "saturate":
		if x := number(0); x > 0 {
			return float32(min(x, 1)), true
		}
		return float32(0), true
	case "min", "max":
		x, y := number(0), number(1)
		if (x < y) == (name == "min") || y != y {
			return float32(x), true
		}
		return float32(y), true
	case "i32":
		if v, is := args[0].(int32); is {
			return v, true
		}
		v, err := strconv.ParseInt(args[0].(string), 0, 32)
		if err != nil {
			panic(err)
		}
		return int32(v), true
	case "bitcast_i32":
		return int32(math.Float32bits(args[0].(float32))), true
	case "f32":
		if v, is := args[0].(float32); is {
			return v, true
		}
		v, err := strconv.ParseFloat(args[0].(string), 32)
		if err != nil {
			panic(err)
		}
		return float32(v), true
	case "u32":
		if v, is := args[0].(uint32); is {
			return v, true
		}
		v, err := strconv.ParseUint(args[0].(string), 0, 32)
		if err != nil {
			panic(err)
		}
		return uint32(v), true
	case "bitcast_f32":
		if v, is := args[0].(int32); is {
			return math.Float32frombits(uint32(v)), true
		}
		return math.Float32frombits(args[0].(uint32)), true
	case "bitcast_u32":
		return math.Float32bits(args[0].(float32)), true
	case "abs":
		return d.f32(float32(math.Abs(float64(args[0].(float32))))), true
	case "select_":
		if args[2].(bool) {
			return args[1], true
		}
		return args[0], true
	}
	return nil, false
}

// TestFmaOfAllExponents computes x·y + z for factors of all exponents with the text for devices whose fma rounds twice.
// The error must be at most a unit in the last place, plus 2^-122 on a device that flushes, which may lose a dozen
// subnormal intermediate results, or plus four times the smallest subnormal number on other devices.
func TestFmaOfAllExponents(t *testing.T) {
	all := routines(t, fnFma, fnFmaAny)
	rng := testutil.Rand(t)
	// of returns a number with the given exponent, sometimes with few digits.
	of := func(exponent int) float32 {
		v := 1 + float64(rng.Uint32()>>9)*0x1p-23
		switch rng.IntN(8) {
		case 0:
			v = 1
		case 1:
			v = 2 - 0x1p-23
		}
		if rng.IntN(2) == 0 {
			v = -v
		}
		return float32(math.Ldexp(v, exponent))
	}
	sparse := 0
	if testing.Short() {
		sparse = 5 + rng.IntN(8)
	}
	for name, c := range map[string]struct {
		device
		step int // step between exponents
		lost float64
	}{"flushing": {device{flushes: true}, 1 + sparse, 0x1p-122}, "gradual": {device{}, 1 + rng.IntN(3) + sparse, 0x1p-147}} {
		t.Run(name, func(t *testing.T) {
			bad := 0
			for ex := -149; ex <= 127; ex += c.step {
				for ey := -149; ey <= 127; ey++ {
					x, y := of(ex), of(ey)
					var z float32
					switch rng.IntN(4) {
					case 0: // the sum is the rounding error of the product
						z = -(x * y)
					case 1: // the addition cancels most of the product
						z = float32(-float64(x) * float64(y) * (1 + rng.Float64()*0x1p-10))
					case 2:
						z = of(max(-149, min(127, ex+ey+rng.IntN(60)-30)))
					}
					if v := float64(z); math.IsInf(v, 0) {
						z = 0
					}
					in := [3]float32{c.f32(x), c.f32(y), c.f32(z)}
					want := new(big.Float).SetPrec(1200).Mul(exact(in[0]), exact(in[1]))
					want.Add(want, exact(in[2]))
					size, _ := new(big.Float).Abs(want).Float64()
					got := c.call(all, "fma_any", x, y, z).(float32)
					if size >= 0x1.fffffep127 {
						if size >= 0x1p128 && !math.IsInf(float64(got), want.Sign()) {
							t.Errorf("%x·%x + %x is %x, not infinite", x, y, z, got)
						}
						continue
					}
					unit := math.Ldexp(1, max(math.Ilogb(max(size, 0x1p-149)), -126)-23)
					off, _ := new(big.Float).Sub(exact(got), want).Float64()
					if !(math.Abs(off) <= unit+c.lost) {
						if bad++; bad < 20 {
							t.Errorf("%x·%x + %x is %x, off by %v units and %x", x, y, z, got, off/unit, off)
						}
					}
				}
			}
			if bad > 0 {
				t.Errorf("%d wrong", bad)
			}
		})
	}
}

// exact returns the exact value of v, and a large number for NaN and infinities.
func exact(v float32) *big.Float {
	if w := float64(v); math.IsNaN(w) || math.IsInf(w, 0) {
		return new(big.Float).SetMantExp(big.NewFloat(1), 1000)
	}
	return new(big.Float).SetPrec(1200).SetFloat64(float64(v))
}
