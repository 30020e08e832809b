package chat

import (
	"slices"
	"strconv"
	"strings"
)

// tuple parses an expression, or several expressions separated by commas, which form a list.
func (p *parser) tuple() expr { return p.tupleOf((*parser).expr) }

func (p *parser) tupleOf(item func(*parser) expr) expr {
	at := p.line()
	x := item(p)
	if !p.is(",") {
		return x
	}
	items := []expr{x}
	for p.accept(",") {
		if t := p.peek(); t.kind == tokEnd || p.is(")") || p.is("=") {
			break
		}
		items = append(items, item(p))
	}
	return listExpr{at, items}
}

// expr parses a conditional expression.
func (p *parser) expr() expr {
	p.enter()
	defer p.leave(1)
	x := p.or()
	for n := 1; p.is("if"); n++ {
		c := conditional{line: p.line(), yes: x}
		p.take()
		p.enter()
		defer p.leave(1)
		c.cond = p.or()
		if p.accept("else") {
			c.no = p.expr()
		}
		x = c
	}
	return x
}

// operands parses left-associative operators of one precedence.
func (p *parser) operands(operand func(*parser) expr, operators ...string) expr {
	x := operand(p)
	n := 0
	for slices.ContainsFunc(operators, p.is) {
		p.enter() // the tree gets deeper although the parser does not recurse
		n++
		at, op := p.line(), p.take().text
		x = binary{at, op, x, operand(p)}
	}
	p.leave(n)
	return x
}

func (p *parser) or() expr  { return p.operands((*parser).and, "or") }
func (p *parser) and() expr { return p.operands((*parser).not, "and") }

func (p *parser) not() expr {
	if !p.is("not") {
		return p.compare()
	}
	p.enter()
	defer p.leave(1)
	at := p.line()
	p.take()
	return unary{at, "not", p.not()}
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">=", "in"}

// compare parses comparisons; a < b < c is a < b and b < c.
func (p *parser) compare() expr {
	x := p.sum()
	var all expr
	n := 0
	for {
		at, op := p.line(), p.peek().text
		switch {
		case p.peek().kind != tokString && slices.Contains(comparisons, op) && p.is(op):
			p.take()
		case p.is("not") && p.tokens[1].text == "in":
			p.take()
			p.take()
			op = "not in"
		default:
			p.leave(n)
			if all == nil {
				return x
			}
			return all
		}
		p.enter()
		n++
		y := p.sum()
		one := expr(binary{at, op, x, y})
		if all != nil {
			one = binary{at, "and", all, one}
		}
		all, x = one, y
	}
}

func (p *parser) sum() expr     { return p.operands((*parser).concat, "+", "-") }
func (p *parser) concat() expr  { return p.operands((*parser).product, "~") }
func (p *parser) product() expr { return p.operands((*parser).power, "*", "/", "//", "%") }
func (p *parser) power() expr   { return p.operands((*parser).filtered, "**") }

// filtered parses an operand with its sign, filters, tests and calls.
func (p *parser) filtered() expr { return p.signed(true) }

func (p *parser) signed(filters bool) expr {
	p.enter()
	defer p.leave(1)
	var x expr
	if at := p.line(); p.is("-") || p.is("+") {
		x = unary{at, p.take().text, p.signed(false)}
	} else {
		x = p.primary()
	}
	n := 0
	for {
		y := p.postfix(x, filters)
		if y == nil {
			p.leave(n)
			return x
		}
		p.enter()
		n++
		x = y
	}
}

// postfix parses a suffix of an operand, or returns nil.
func (p *parser) postfix(x expr, filters bool) expr {
	at := p.line()
	switch {
	case p.accept("."):
		if t := p.peek(); t.kind == tokInt {
			p.take()
			return attribute{at, x, literal{at, parseInt(p, t)}, false}
		}
		return attribute{at, x, literal{at, p.ident()}, true}
	case p.accept("["):
		return p.subscript(at, x)
	case p.accept("("):
		return call{at, x, p.args()}
	case filters && p.accept("|"):
		return p.filter(x)
	case filters && p.is("is"):
		p.take()
		return p.test(at, x)
	}
	return nil
}

func (p *parser) subscript(at line, x expr) expr {
	var parts [3]expr
	n := 0
	for ; n < 3; n++ {
		if !p.is(":") && !p.is("]") {
			parts[n] = p.expr()
		}
		if !p.accept(":") {
			break
		}
	}
	if n > 2 {
		p.fail("a slice has at most three parts")
	}
	p.expect("]")
	if n == 0 {
		if parts[0] == nil {
			p.fail("expected an index or a key in brackets")
		}
		return attribute{at, x, parts[0], false}
	}
	return slice{at, x, parts[0], parts[1], parts[2]}
}

// args parses arguments after the opening parenthesis.
func (p *parser) args() (a callArgs) {
	for !p.accept(")") {
		if p.is("*") || p.is("**") {
			p.fail("arguments with * are not supported")
		}
		if p.peek().kind == tokName && p.tokens[1].kind == tokOperator && p.tokens[1].text == "=" {
			a.names = append(a.names, p.take().text)
			p.take()
			a.named = append(a.named, p.expr())
		} else if len(a.names) > 0 {
			p.fail("an argument without a name follows an argument with a name")
		} else {
			a.pos = append(a.pos, p.expr())
		}
		if !p.is(")") {
			p.expect(",")
		}
	}
	return a
}

func (p *parser) filter(x expr) *filter {
	f := &filter{line: p.line(), of: x, name: p.ident()}
	if p.accept("(") {
		f.args = p.args()
	}
	return f
}

func (p *parser) test(at line, x expr) expr {
	t := &test{line: at, of: x, not: p.accept("not")}
	t.name = p.take().text
	if p.accept("(") {
		t.args = p.args()
		return t
	}
	next := p.peek()
	operand := next.kind == tokString || next.kind == tokInt || next.kind == tokFloat || p.is("[") || p.is("{") ||
		next.kind == tokName && !slices.Contains([]string{"else", "or", "and", "is", "if", "in", "not"}, next.text)
	if operand {
		y := p.primary()
		for p.is(".") || p.is("[") {
			y = p.postfix(y, false)
		}
		t.args.pos = []expr{y}
	}
	return t
}

var constants = map[string]value{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

// primary parses an operand.
func (p *parser) primary() expr {
	p.enter()
	defer p.leave(1)
	at, t := p.line(), p.peek()
	switch {
	case t.kind == tokName:
		p.take()
		if c, ok := constants[t.text]; ok {
			return literal{at, c}
		}
		return name{at, t.text}
	case t.kind == tokString:
		var s strings.Builder
		for p.peek().kind == tokString {
			s.WriteString(p.take().text)
		}
		return literal{at, s.String()}
	case t.kind == tokInt:
		p.take()
		return literal{at, parseInt(p, t)}
	case t.kind == tokFloat:
		p.take()
		f, err := strconv.ParseFloat(strings.ReplaceAll(t.text, "_", ""), 64)
		if err != nil {
			p.fail("%q is not a number of 64 bits", t.text)
		}
		return literal{at, f}
	case p.accept("("):
		return p.parenthesized(at)
	case p.accept("["):
		return listExpr{at, p.items("]")}
	case p.accept("{"):
		return p.dict(at)
	}
	p.fail("unexpected %s, expected an expression", describe(t))
	return nil
}

func parseInt(p *parser, t token) int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(t.text, "_", ""), 10, 64)
	if err != nil {
		p.fail("%q is not a number of 64 bits", t.text)
	}
	return n
}

func (p *parser) parenthesized(at line) expr {
	if p.accept(")") {
		return listExpr{line: at}
	}
	x := p.tuple()
	p.expect(")")
	return x
}

// items parses expressions separated by commas, up to close.
func (p *parser) items(close string) (xs []expr) {
	for !p.accept(close) {
		xs = append(xs, p.expr())
		if !p.is(close) {
			p.expect(",")
		}
	}
	return xs
}

func (p *parser) dict(at line) expr {
	d := dictExpr{line: at}
	for !p.accept("}") {
		d.keys = append(d.keys, p.expr())
		p.expect(":")
		d.values = append(d.values, p.expr())
		if !p.is("}") {
			p.expect(",")
		}
	}
	return d
}
