package chat

import (
	"math"
	"strings"
	"unicode/utf8"
)

// eval returns the value of an expression.
func (m *machine) eval(x expr, s *scope) value {
	m.line = x.pos()
	m.step(1)
	switch x := x.(type) {
	case literal:
		return x.v
	case name:
		if v, ok := s.lookup(x.name); ok {
			return v
		}
		return undefined{x.name}
	case listExpr:
		m.allocate(len(x.items) * valueSize)
		l := make(list, len(x.items))
		for i, item := range x.items {
			l[i] = m.eval(item, s)
		}
		return l
	case dictExpr:
		return m.dict(x, s)
	case attribute:
		return m.attribute(m.eval(x.of, s), m.eval(x.key, s), x.dot)
	case slice:
		return m.slice(x, s)
	case call:
		fn := m.eval(x.fn, s)
		a := m.args(x.args, s)
		m.line = x.pos()
		return m.call(fn, a)
	case *filter:
		v := m.eval(x.of, s)
		return m.filtered(v, []*filter{x}, s)
	case *test:
		v := m.eval(x.of, s)
		a := m.args(x.args, s)
		m.line = x.pos()
		is := tests[x.name]
		if is == nil {
			m.raise(ErrSyntax, "unknown test %q", x.name)
		}
		return is(m, v, a) != x.not
	case unary:
		return m.unary(x.op, m.eval(x.x, s))
	case binary:
		return m.binary(x, s)
	case conditional:
		if truth(m.eval(x.cond, s)) {
			return m.eval(x.yes, s)
		}
		if x.no == nil {
			return undefined{}
		}
		return m.eval(x.no, s)
	}
	m.fail("no such expression")
	return nil
}

func (m *machine) dict(x dictExpr, s *scope) value {
	m.allocate(len(x.keys) * 4 * valueSize)
	d := newDict()
	for i := range x.keys {
		k := m.eval(x.keys[i], s)
		if !isKey(k) {
			m.fail("%s cannot be a key", m.named(k))
		}
		if text, ok := k.(string); ok {
			m.step(len(text) / 64)
		}
		d.set(key(k), m.eval(x.values[i], s))
	}
	return d
}

// attribute returns x.name or x[key]. A dot prefers the value's own attributes, brackets prefer its
// items.
func (m *machine) attribute(v, k value, dot bool) value {
	if u, ok := v.(undefined); ok {
		m.fail("%s has no %s", m.named(u), m.text(k))
	}
	name, isName := k.(string)
	if dot {
		if f, ok := m.method(v, name); ok {
			return f
		}
	}
	switch v := v.(type) {
	case *dict:
		if item, ok := m.get(v, k); ok {
			return item
		}
	case *namespace:
		if item, ok := m.get(&v.dict, k); ok {
			return item
		}
	case *loop:
		return m.loopAttribute(v, name)
	case list:
		if i, ok := integer(k); ok {
			if i, ok := index(i, len(v)); ok {
				return v[i]
			}
		}
	case string:
		if i, ok := integer(k); ok {
			return m.char(v, i)
		}
	}
	if isName && !dot {
		if f, ok := m.method(v, name); ok {
			return f
		}
	}
	if isName {
		return undefined{name}
	}
	return undefined{}
}

// index resolves an index: negative indices count from the end.
func index(i int64, n int) (int, bool) {
	if i < 0 {
		i += int64(n)
	}
	return int(i), i >= 0 && i < int64(n)
}

// char returns the character of a string at an index.
func (m *machine) char(s string, i int64) value {
	m.step(len(s) / 64)
	if n, ok := index(i, utf8.RuneCountInString(s)); ok {
		for _, r := range s {
			if n == 0 {
				return string(r)
			}
			n--
		}
	}
	return undefined{}
}

// every returns the items from:to:step. The bounds are within the list.
func (m *machine) every(items list, from, to, step int64) (out list) {
	n := int64(len(items))
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		m.allocate(valueSize)
		out = append(out, items[i])
		if step > n || step < -n { // the sum could overflow
			break
		}
	}
	return out
}

// slice returns x[from:to:step].
func (m *machine) slice(x slice, s *scope) value {
	v := m.eval(x.of, s)
	bound := func(x expr, otherwise int64) (int64, bool) {
		if x == nil {
			return otherwise, false
		}
		b := m.eval(x, s)
		if b == nil {
			return otherwise, false
		}
		n, ok := integer(b)
		if !ok {
			m.fail("a slice has %s as a bound, expected an integer", m.named(b))
		}
		return n, true
	}
	step, _ := bound(x.steps, 1)
	if step == 0 {
		m.fail("a slice has the step 0")
	}
	var items list
	str, isString := v.(string)
	if isString {
		items = m.iterate(str)
	} else if l, ok := v.(list); ok {
		items = l
	} else {
		m.fail("%s has no slices", m.named(v))
	}
	n := int64(len(items))
	low, high := int64(0), n
	if step < 0 {
		low, high = -1, n-1
	}
	place := func(x expr, otherwise int64) int64 {
		i, given := bound(x, otherwise)
		if given && i < 0 {
			i += n
		}
		if !given {
			return otherwise
		}
		return max(low, min(high, i))
	}
	from, to := low, high
	if step < 0 {
		from, to = high, low
	}
	from, to = place(x.from, from), place(x.to, to)
	out := m.every(items, from, to, step)
	if !isString {
		return out
	}
	var b strings.Builder
	for _, c := range out {
		b.WriteString(c.(string))
	}
	return m.string(b.String())
}

func (m *machine) unary(op string, v value) value {
	if op == "not" {
		return !truth(v)
	}
	if n, ok := integer(v); ok {
		if op == "-" {
			return -n
		}
		return n
	}
	if f, ok := v.(float64); ok {
		if op == "-" {
			return -f
		}
		return f
	}
	m.fail("%s has no sign", m.named(v))
	return nil
}

func (m *machine) binary(x binary, s *scope) value {
	a := m.eval(x.x, s)
	switch x.op {
	case "and":
		if !truth(a) {
			return a
		}
		return m.eval(x.y, s)
	case "or":
		if truth(a) {
			return a
		}
		return m.eval(x.y, s)
	}
	b := m.eval(x.y, s)
	m.line = x.pos()
	switch x.op {
	case "==":
		return m.equal(a, b)
	case "!=":
		return !m.equal(a, b)
	case "<":
		return m.less(a, b)
	case ">":
		return m.less(b, a)
	case "<=":
		return !m.less(b, a)
	case ">=":
		return !m.less(a, b)
	case "in":
		return m.contains(b, a)
	case "not in":
		return !m.contains(b, a)
	case "~":
		return m.concat(m.text(a), m.text(b))
	}
	return m.arithmetic(x.op, a, b)
}

func (m *machine) concat(a, b string) value {
	m.allocate(len(a) + len(b) + valueSize)
	return a + b
}

func (m *machine) contains(in, v value) bool {
	switch in := in.(type) {
	case string:
		s, ok := v.(string)
		if !ok {
			m.fail("%s in a string: expected a string", m.named(v))
		}
		m.step(len(in) / 64)
		return strings.Contains(in, s)
	case list:
		for _, item := range in {
			if m.equal(item, v) {
				return true
			}
		}
		return false
	case *dict:
		_, ok := m.get(in, v)
		return ok
	case *namespace:
		_, ok := m.get(&in.dict, v)
		return ok
	case undefined:
		return false
	}
	m.fail("%s has no items", m.named(in))
	return false
}

// arithmetic applies an arithmetic operator. It also concatenates strings and lists.
func (m *machine) arithmetic(op string, a, b value) value {
	if x, ok := integer(a); ok {
		if y, ok := integer(b); ok {
			return m.integers(op, x, y)
		}
	}
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			return m.floats(op, x, y)
		}
	}
	switch op {
	case "+":
		if x, ok := a.(string); ok {
			if y, ok := b.(string); ok {
				return m.concat(x, y)
			}
		}
		if x, ok := a.(list); ok {
			if y, ok := b.(list); ok {
				m.allocate((len(x) + len(y)) * valueSize)
				return append(append(make(list, 0, len(x)+len(y)), x...), y...)
			}
		}
	case "*":
		if n, ok := integer(a); ok {
			a, b = b, n
		}
		if n, ok := integer(b); ok {
			return m.repeat(a, max(n, 0))
		}
	}
	m.fail("%s and %s cannot be operands of %s", m.named(a), m.named(b), op)
	return nil
}

func (m *machine) repeat(v value, n int64) value {
	size, s, l := 0, "", list(nil)
	switch v := v.(type) {
	case string:
		size, s = len(v), v
	case list:
		size, l = len(v)*valueSize, v
	default:
		m.fail("%s cannot be repeated", m.named(v))
	}
	if size > 0 && n > int64(m.limits.Memory/size) {
		m.raise(ErrLimit, "values take more than %d bytes", m.limits.Memory)
	}
	if size == 0 {
		n = 0
	}
	m.allocate(size * int(n))
	if l == nil {
		return strings.Repeat(s, int(n))
	}
	out := make(list, 0, len(l)*int(n))
	for range n {
		out = append(out, l...)
	}
	return out
}

func (m *machine) integers(op string, x, y int64) value {
	overflow := false
	var r int64
	switch op {
	case "+":
		r = x + y
		overflow = (r > x) != (y > 0) && y != 0
	case "-":
		r = x - y
		overflow = (r < x) != (y > 0) && y != 0
	case "*":
		r = x * y
		overflow = x != 0 && (r/x != y || x == -1 && y == math.MinInt64)
	case "//", "%":
		if y == 0 {
			m.fail("the divisor is 0, expected another number")
		}
		if y == -1 {
			return m.integers("*", x, map[string]int64{"//": -1, "%": 0}[op])
		}
		q, rest := x/y, x%y
		if rest != 0 && (rest < 0) != (y < 0) {
			q, rest = q-1, rest+y
		}
		if op == "%" {
			return rest
		}
		return q
	case "/":
		return m.floats(op, float64(x), float64(y))
	case "**":
		f := math.Pow(float64(x), float64(y))
		if y < 0 {
			return f
		}
		r, overflow = int64(f), math.Abs(f) >= 1<<53
	}
	if overflow {
		m.fail("%d %s %d overflows a 64-bit integer", x, op, y)
	}
	return r
}

func (m *machine) floats(op string, x, y float64) value {
	if y == 0 && (op == "/" || op == "//" || op == "%") {
		m.fail("the divisor is 0, expected another number")
	}
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "//":
		return math.Floor(x / y)
	case "%":
		return x - y*math.Floor(x/y)
	}
	return math.Pow(x, y)
}
