// Package expression parses elementwise operations from text, for programs whose users
// write them, for example max(x, 0) + slope*min(x, 0).
package expression

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rayo-go/rayo/op"
)

// The limits of an expression. Expressions written by hand stay far below them.
const (
	maxLength = 4096
	maxDepth  = 64
)

// An Error describes a mistake in an expression and its position.
type Error struct {
	Text   string
	Column int // the column in bytes, from 1
	Reason string
}

// Error returns column, reason and text.
func (e *Error) Error() string {
	return fmt.Sprintf("expression %q, column %d: %s", e.Text, e.Column, e.Reason)
}

// Parse returns the operation that computes a text for each element of one to three
// operands, whose names are given. A text has
//
//   - numbers, names of operands, and pi;
//   - + - * / and ^ (power, which binds to the right), and parentheses;
//   - == != < <= > >=, && and ||, which give conditions instead of numbers, for
//     condition ? a : b;
//   - calls: see [Functions].
//
// The error is an *[Error] for a mistake in the text. It wraps [op.ErrUnsupported] if the number of
// operands is not one to three, and if package op refuses the expression.
func Parse(text string, names ...string) (*op.Operation, error) {
	if len(names) < 1 || len(names) > 3 {
		return nil, fmt.Errorf("the expression has %d operands, expected 1 to 3: %w", len(names), op.ErrUnsupported)
	}
	for i, n := range names {
		if !identifier(n) || n == "pi" || functions[n].f != nil || slices.Contains(names[:i], n) {
			return nil, fmt.Errorf("operand %q: expected an identifier that names no function, constant or other operand: %w", n, op.ErrUnsupported)
		}
	}
	if len(text) > maxLength {
		return nil, &Error{text[:20] + " …", maxLength, fmt.Sprintf("the text is longer than %d bytes", maxLength)}
	}
	var failed error
	body := func(operands ...op.Expr) op.Expr {
		p := &parser{text: text, names: names, operands: operands}
		v, err := p.whole()
		if err != nil {
			failed = err
			return op.Const(0)
		}
		return v
	}
	var o *op.Operation
	switch len(names) {
	case 1:
		o = op.Unary("expression", func(x op.Expr) op.Expr { return body(x) })
	case 2:
		o = op.Binary("expression", func(x, y op.Expr) op.Expr { return body(x, y) })
	case 3:
		o = op.Ternary("expression", func(x, y, z op.Expr) op.Expr { return body(x, y, z) })
	}
	if failed != nil {
		return nil, failed
	}
	if err := o.Err(); err != nil {
		return nil, err
	}
	return o, nil
}

// function is a function that an expression can call.
type function struct {
	arity int
	f     func(a []op.Expr) op.Expr
}

func one(f func(op.Expr) op.Expr) function {
	return function{1, func(a []op.Expr) op.Expr { return f(a[0]) }}
}

func two(f func(x, y op.Expr) op.Expr) function {
	return function{2, func(a []op.Expr) op.Expr { return f(a[0], a[1]) }}
}

func three(f func(x, y, z op.Expr) op.Expr) function {
	return function{3, func(a []op.Expr) op.Expr { return f(a[0], a[1], a[2]) }}
}

// functions are the functions of an expression. Functions that JavaScript's Math has too have its names.
var functions = map[string]function{
	"abs": one(op.Expr.Abs), "floor": one(op.Expr.Floor), "ceil": one(op.Expr.Ceil), "round": one(op.Expr.Round),
	"trunc": one(op.Expr.Trunc), "sqrt": one(op.Expr.Sqrt), "exp": one(op.Expr.Exp), "exp2": one(op.Expr.Exp2),
	"expm1": one(op.Expr.Expm1), "log": one(op.Expr.Log), "log2": one(op.Expr.Log2), "log1p": one(op.Expr.Log1p),
	"tanh": one(op.Expr.Tanh), "sigmoid": one(op.Expr.Sigmoid), "erf": one(op.Expr.Erf), "erfc": one(op.Expr.Erfc),
	"sin": one(op.Expr.Sin), "cos": one(op.Expr.Cos), "atan": one(op.Expr.Atan), "square": one(op.Expr.Square),
	"min": two(op.Expr.Min), "max": two(op.Expr.Max), "pow": two(op.Expr.Pow), "fma": three(op.Expr.Fma),
	"clamp": three(func(x, lo, hi op.Expr) op.Expr { return x.Max(lo).Min(hi) }),
}

// Functions returns the names of the functions that a text may call, with the numbers of
// their arguments.
func Functions() map[string]int {
	m := make(map[string]int, len(functions))
	for name, f := range functions {
		m[name] = f.arity
	}
	return m
}

func identifier(s string) bool {
	for i := range len(s) {
		if !letter(s[i]) && (i == 0 || !digit(s[i])) {
			return false
		}
	}
	return s != ""
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// value is the value of a part of an expression: a number or a condition.
type value struct {
	num  op.Expr
	cond op.Cond
	is   bool // a condition
}

// parser is a recursive descent parser. Mistakes are panics of *Error, which whole recovers.
type parser struct {
	text     string
	at       int
	depth    int
	names    []string
	operands []op.Expr
}

func (p *parser) fail(at int, format string, args ...any) {
	panic(&Error{p.text, at + 1, fmt.Sprintf(format, args...)})
}

// whole parses the whole text.
func (p *parser) whole() (x op.Expr, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	x = p.number(p.choice)
	if p.space(); p.at < len(p.text) {
		p.fail(p.at, "%q is not expected here", p.text[p.at])
	}
	return x, nil
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take returns the first of the signs that comes next in the text, and advances past it. It returns "" if
// none does.
func (p *parser) take(signs ...string) string {
	p.space()
	for _, s := range signs {
		if strings.HasPrefix(p.text[p.at:], s) {
			p.at += len(s)
			return s
		}
	}
	return ""
}

func (p *parser) expect(sign string) {
	if p.take(sign) != "" {
		return
	}
	if p.at == len(p.text) {
		p.fail(p.at, "%q is missing", sign)
	}
	p.fail(p.at, "%q is not expected here: expected %q", p.text[p.at], sign)
}

// number reads an operand with f and requires a number.
func (p *parser) number(f func() value) op.Expr {
	p.space()
	at := p.at
	v := f()
	if v.is {
		p.fail(at, "a condition where a number is expected: write condition ? 1 : 0")
	}
	return v.num
}

func (p *parser) condition(at int, v value) op.Cond {
	if !v.is {
		p.fail(at, "a number where a condition is expected")
	}
	return v.cond
}

func (p *parser) choice() value {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.at, "the expression is nested deeper than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	p.space()
	at := p.at
	v := p.either()
	if p.take("?") == "" {
		return v
	}
	c := p.condition(at, v)
	a := p.number(p.choice)
	p.expect(":")
	return value{num: op.Select(c, a, p.number(p.choice))}
}

func (p *parser) either() value { return p.logic("||", op.Cond.Or, p.both) }
func (p *parser) both() value   { return p.logic("&&", op.Cond.And, p.comparison) }

// logic reads conditions joined by the operator sign.
func (p *parser) logic(sign string, join func(a, b op.Cond) op.Cond, next func() value) value {
	p.space()
	at := p.at
	v := next()
	for p.take(sign) != "" {
		c := p.condition(at, v)
		p.space()
		right := p.at
		v = value{cond: join(c, p.condition(right, next())), is: true}
	}
	return v
}

var comparisons = map[string]func(x, y op.Expr) op.Cond{
	"==": op.Expr.Eq, "!=": op.Expr.Ne, "<=": op.Expr.Le, ">=": op.Expr.Ge, "<": op.Expr.Lt, ">": op.Expr.Gt,
}

func (p *parser) comparison() value {
	p.space()
	at := p.at
	v := p.sum()
	sign := p.take("==", "!=", "<=", ">=", "<", ">")
	if sign == "" {
		return v
	}
	if v.is {
		p.fail(at, "a condition where a number is expected")
	}
	return value{cond: comparisons[sign](v.num, p.number(p.sum)), is: true}
}

var arithmetic = map[string]func(x, y op.Expr) op.Expr{
	"+": op.Expr.Add, "-": op.Expr.Sub, "*": op.Expr.Mul, "/": op.Expr.Div,
}

func (p *parser) sum() value     { return p.chain(p.product, "+", "-") }
func (p *parser) product() value { return p.chain(p.sign, "*", "/") }

// chain reads operands joined by left-associative operators of one precedence.
func (p *parser) chain(next func() value, signs ...string) value {
	p.space()
	at := p.at
	v := next()
	for {
		sign := p.take(signs...)
		if sign == "" {
			return v
		}
		if v.is {
			p.fail(at, "a condition where a number is expected")
		}
		v = value{num: arithmetic[sign](v.num, p.number(next))}
	}
}

// sign reads signs before a power: -x^2 is -(x^2).
func (p *parser) sign() value {
	negative, signed := false, false
	for s := p.take("-", "+"); s != ""; s = p.take("-", "+") {
		negative, signed = negative != (s == "-"), true
	}
	if !signed {
		return p.power()
	}
	x := p.number(p.power)
	if negative {
		x = x.Neg()
	}
	return value{num: x}
}

func (p *parser) power() value {
	p.space()
	at := p.at
	v := p.primary()
	if p.take("^", "**") == "" {
		return v
	}
	if v.is {
		p.fail(at, "a condition where a number is expected")
	}
	if p.depth++; p.depth > maxDepth {
		p.fail(p.at, "the expression is nested deeper than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	return value{num: v.num.Pow(p.number(p.sign))}
}

func (p *parser) primary() value {
	p.space()
	at := p.at
	switch {
	case at == len(p.text):
		p.fail(at, "the text ends here: expected a number, a name or a parenthesis")
	case p.take("(") != "":
		v := p.choice()
		p.expect(")")
		return v
	case letter(p.text[at]):
		return p.name()
	case digit(p.text[at]) || p.text[at] == '.':
		return p.literal()
	}
	p.fail(at, "%q is not expected here", p.text[at])
	panic("not reached")
}

func (p *parser) literal() value {
	at := p.at
	for p.at < len(p.text) {
		c := p.text[p.at]
		exponent := p.at > at && (p.text[p.at-1]|0x20) == 'e'
		if !digit(c) && c != '.' && c|0x20 != 'e' && !(exponent && (c == '-' || c == '+')) {
			break
		}
		p.at++
	}
	v, err := strconv.ParseFloat(p.text[at:p.at], 64)
	if err != nil {
		p.fail(at, "%q is not a number", p.text[at:p.at])
	}
	return value{num: op.Const(v)}
}

func (p *parser) name() value {
	at := p.at
	for p.at < len(p.text) && (letter(p.text[p.at]) || digit(p.text[p.at])) {
		p.at++
	}
	name := p.text[at:p.at]
	if i := slices.Index(p.names, name); i >= 0 {
		return value{num: p.operands[i]}
	}
	if name == "pi" {
		return value{num: op.Const(3.14159265358979323846)}
	}
	f := functions[name]
	if f.f == nil {
		p.fail(at, "no operand or function is called %s: the operands are %s", name, strings.Join(p.names, ", "))
	}
	p.expect("(")
	var args []op.Expr
	for p.take(")") == "" {
		if len(args) > 0 {
			p.expect(",")
		}
		args = append(args, p.number(p.choice))
	}
	if len(args) != f.arity {
		p.fail(at, "%s has %d arguments, expected %d", name, len(args), f.arity)
	}
	return value{num: f.f(args)}
}
