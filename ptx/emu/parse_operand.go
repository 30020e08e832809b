package emu

import (
	"math"
	"strconv"
	"strings"
)

// operand reads one operand.
func (p *parser) operand() operand {
	switch c := p.peek(); {
	case c == '{':
		p.at++
		return operand{kind: operandVector, list: p.list('}')}
	case c == '[':
		p.at++
		p.flat("[")
		o := operand{kind: operandAddress, list: []operand{p.operand()}}
		switch o.list[0].kind {
		case operandRegister, operandName, operandInteger, operandVariable:
		default:
			p.fail("an address must begin with a register, a name or an integer")
		}
		if p.peek() == '+' || p.peek() == '-' {
			p.accept('+')
			off := p.literal()
			if off.kind != operandInteger {
				p.fail("the offset of an address must be an integer")
			}
			o.off = int64(off.bits)
		}
		if p.accept(',') {
			o.list = append(o.list, p.operand())
		}
		p.expect(']')
		return o
	case c == '!':
		p.at++
		p.flat("!")
		o := p.operand()
		if o.kind != operandRegister {
			p.fail("expected a predicate register after !")
		}
		o.not = true
		return o
	case c == '-' || c >= '0' && c <= '9':
		return p.literal()
	case isName(c):
		return p.named()
	}
	p.fail("expected an operand before %q", p.rest())
	return operand{}
}

// flat fails if the next token begins a nested operand. Addresses and negations cannot contain nested
// operands, and without this check a text could nest them without limit.
func (p *parser) flat(before string) {
	if c := p.peek(); c == '[' || c == '!' || c == '{' {
		p.fail("%s must not be followed by %q", before, p.rest())
	}
}

func (p *parser) list(end byte) []operand {
	var list []operand
	for !p.accept(end) {
		if len(list) > 0 {
			p.expect(',')
		}
		if len(list) == 512 {
			p.fail("too many operands")
		}
		o := p.operand()
		if o.kind == operandVector || o.kind == operandAddress {
			p.fail("a list must not contain another list")
		}
		list = append(list, o)
	}
	return list
}

// named reads an operand that begins with a name: a register, an array, a label, or a pair of registers.
func (p *parser) named() operand {
	o := p.one()
	if p.at < len(p.s) && p.s[p.at] == '|' {
		p.at++
		return operand{kind: operandPair, list: []operand{o, p.one()}}
	}
	return o
}

// one is named without pairs.
func (p *parser) one() operand {
	name := p.name()
	o := operand{kind: operandName, name: name}
	if name == "_" {
		o = operand{kind: operandSink}
	} else if r, ok := p.register(name); ok {
		o = operand{kind: operandRegister, reg: r}
	} else if v, ok := p.variableOf(name); ok {
		o = operand{kind: operandVariable, reg: v, name: name}
	} else if p.at < len(p.s) && p.s[p.at] == '.' { // %tid.x
		p.at++
		o.name += "." + p.name()
	}
	if o.kind == operandName {
		// A label of an inner scope hides labels of the same name outside. The scope
		// that defines the label is known only at the end, so keep the scope of the use.
		o.bits = uint64(len(p.scopes))
		if len(p.scopes) > 1 {
			for i := len(p.scopes) - 1; i > 0; i-- {
				o.list = append(o.list, operand{name: p.labelName(name, i)})
			}
		}
	}
	return o
}

// literal reads a number.
func (p *parser) literal() operand {
	neg := p.accept('-')
	p.skip()
	from := p.at
	for p.at < len(p.s) && (isName(p.s[p.at]) || p.s[p.at] == '.') {
		p.at++
	}
	s := p.s[from:p.at]
	if len(s) == 10 && (s[:2] == "0f" || s[:2] == "0F") && !neg {
		v, err := strconv.ParseUint(s[2:], 16, 32)
		if err != nil {
			p.fail("%q is not a number", s)
		}
		return operand{kind: operandFloat, bits: v}
	}
	if len(s) == 18 && (s[:2] == "0d" || s[:2] == "0D") && !neg {
		v, err := strconv.ParseUint(s[2:], 16, 64)
		if err != nil {
			p.fail("%q is not a number", s)
		}
		return operand{kind: operandDouble, bits: v}
	}
	if strings.Contains(s, ".") {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			p.fail("%q is not a number", s)
		}
		if neg {
			v = -v
		}
		return operand{kind: operandDouble, bits: math.Float64bits(v)}
	}
	s = strings.TrimSuffix(s, "U")
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil || strings.Contains(s, "_") {
		p.fail("%q is not a number", s)
	}
	if neg {
		v = -v
	}
	return operand{kind: operandInteger, bits: v}
}
