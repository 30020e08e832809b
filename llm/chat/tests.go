package chat

import (
	"math"
	"strings"
	"unicode"
)

type testFunc func(m *machine, v value, a *arguments) bool

// tests has the functions for "x is name".
var tests map[string]testFunc

func init() {
	tests = map[string]testFunc{
		"defined":   func(m *machine, v value, _ *arguments) bool { return !isType[undefined](m, v, nil) },
		"undefined": isType[undefined], "string": isType[string], "float": isType[float64], "boolean": isType[bool], "mapping": isType[*dict],
		"integer":  isType[int64],
		"none":     func(m *machine, v value, _ *arguments) bool { return v == nil },
		"true":     func(m *machine, v value, _ *arguments) bool { return v == true },
		"false":    func(m *machine, v value, _ *arguments) bool { return v == false },
		"number":   func(m *machine, v value, _ *arguments) bool { _, ok := number(v); return ok },
		"iterable": func(m *machine, v value, _ *arguments) bool { return sequence(v) || isType[undefined](m, v, nil) },
		"sequence": func(m *machine, v value, _ *arguments) bool { return sequence(v) },
		"callable": func(m *machine, v value, _ *arguments) bool {
			return isType[function](m, v, nil) || isType[*macro](m, v, nil)
		},
		"odd":  func(m *machine, v value, _ *arguments) bool { return m.remainder(v, 2) != 0 },
		"even": func(m *machine, v value, _ *arguments) bool { return m.remainder(v, 2) == 0 },
		"divisibleby": func(m *machine, v value, a *arguments) bool {
			n, _ := integer(a.take(0, "num", int64(0)))
			return m.remainder(v, n) == 0
		},
		"lower":  func(m *machine, v value, _ *arguments) bool { return cased(m.text(v), unicode.IsUpper) },
		"upper":  func(m *machine, v value, _ *arguments) bool { return cased(m.text(v), unicode.IsLower) },
		"in":     func(m *machine, v value, a *arguments) bool { return m.contains(a.take(0, "seq", undefined{}), v) },
		"sameas": func(m *machine, v value, a *arguments) bool { return m.same(v, a.take(0, "other", undefined{})) },
	}
	for names, op := range map[string]string{
		"eq equalto ==": "==", "ne !=": "!=", "lt lessthan <": "<", "gt greaterthan >": ">", "le <=": "<=", "ge >=": ">=",
	} {
		for _, name := range strings.Fields(names) {
			tests[name] = func(m *machine, v value, a *arguments) bool {
				return m.binary(binary{line(m.line), op, literal{line(m.line), v}, literal{line(m.line), a.take(0, "b", undefined{})}}, nil) == true
			}
		}
	}
}

func isType[T any](_ *machine, v value, _ *arguments) bool {
	_, ok := v.(T)
	return ok
}

func sequence(v value) bool {
	switch v.(type) {
	case string, list, *dict:
		return true
	}
	return false
}

func (m *machine) remainder(v value, by int64) int64 {
	n, ok := integer(v)
	if f, isFloat := v.(float64); isFloat && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		n, ok = int64(f), true
	}
	if !ok || by == 0 {
		m.fail("%s cannot be divided by %d: expected an integer and a divisor other than 0", m.named(v), by)
	}
	if by == -1 {
		return 0
	}
	return n % by
}

// cased reports whether a text has letters with a case, and all of them have the same case.
func cased(s string, other func(rune) bool) bool {
	return strings.IndexFunc(s, other) < 0 && strings.ToUpper(s) != strings.ToLower(s)
}

func (m *machine) same(a, b value) bool {
	if _, ok := a.(list); ok {
		return false
	}
	return typeName(a) == typeName(b) && m.equal(a, b)
}
