package chat

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A value of a template is one of nil (none), undefined, bool, int64, float64, string, list,
// *dict, *namespace, *macro and function. Lists and dicts do not change once a template sees
// them, so there are no cycles.
type value = any

// undefined is the value of a name or an attribute that does not exist.
type undefined struct{ name string }

type list []value

// dict keeps its keys in order. Keys are comparable values.
type dict struct {
	keys   []value
	values map[value]value
}

func newDict() *dict { return &dict{values: map[value]value{}} }

func (d *dict) set(k, v value) {
	if _, ok := d.values[k]; !ok {
		d.keys = append(d.keys, k)
	}
	d.values[k] = v
}

func (d *dict) get(k value) (value, bool) {
	if !isKey(k) {
		return nil, false
	}
	v, ok := d.values[key(k)]
	return v, ok
}

// get is dict.get. It counts the steps of hashing the key.
func (m *machine) get(d *dict, k value) (value, bool) {
	if s, ok := k.(string); ok {
		m.step(len(s) / 64)
	}
	return d.get(k)
}

// key returns the key of a value: 1, 1.0 and true are the same key.
func key(k value) value {
	switch k := k.(type) {
	case bool:
		if k {
			return int64(1)
		}
		return int64(0)
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int64(k)
		}
	}
	return k
}

func isKey(k value) bool {
	switch k.(type) {
	case nil, bool, int64, float64, string:
		return true
	}
	return false
}

// namespace has attributes that {% set ns.x = y %} can change.
type namespace struct{ dict }

// function is a value that a template can call.
type function struct {
	name string
	call func(m *machine, a *arguments) value
}

// arguments are the arguments of a call.
type arguments struct {
	pos   []value
	names []string // names of the last arguments
	named []value
}

// take returns the argument at index i or with the given name. Without such an argument it returns
// otherwise. A negative index matches only by name.
func (a *arguments) take(i int, name string, otherwise value) value {
	if i >= 0 && i < len(a.pos) {
		return a.pos[i]
	}
	for j, n := range a.names {
		if n == name {
			return a.named[j]
		}
	}
	return otherwise
}

// typeName returns the name of a value's type in error messages.
func typeName(v value) string {
	switch v.(type) {
	case nil:
		return "none"
	case undefined:
		return "undefined"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case string:
		return "a string"
	case list:
		return "a list"
	case *dict:
		return "a mapping"
	case *namespace:
		return "a namespace"
	}
	return "a function"
}

// truth converts a value to a condition.
func truth(v value) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case list:
		return len(v) > 0
	case *dict:
		return len(v.keys) > 0
	}
	return true
}

// number returns a number or boolean as a float.
func number(v value) (float64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// integer returns an integer or boolean.
func integer(v value) (int64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	}
	return 0, false
}

// equal compares as == does.
func (m *machine) equal(a, b value) bool {
	m.step(1)
	ai, aInt := integer(a)
	bi, bInt := integer(b)
	if aInt && bInt {
		return ai == bi
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case undefined:
		_, ok := b.(undefined)
		return ok
	case string:
		b, ok := b.(string)
		if !ok || len(a) != len(b) {
			return false
		}
		m.step(len(a) / 64)
		return a == b
	case list:
		b, ok := b.(list)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !m.equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case *dict:
		return m.equalDicts(a, b)
	case *namespace:
		b, ok := b.(*namespace)
		return ok && a == b
	case *macro:
		b, ok := b.(*macro)
		return ok && a == b
	}
	return false
}

func (m *machine) equalDicts(a *dict, v value) bool {
	b, ok := v.(*dict)
	if !ok || len(a.keys) != len(b.keys) {
		return false
	}
	for _, k := range a.keys {
		other, ok := b.get(k)
		if !ok || !m.equal(a.values[k], other) {
			return false
		}
	}
	return true
}

// less compares numbers and strings, and lists of them.
func (m *machine) less(a, b value) bool {
	m.step(1)
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			return x < y
		}
	}
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			m.step(min(len(a), len(b)) / 64)
			return a < b
		}
	case list:
		if b, ok := b.(list); ok {
			for i := range min(len(a), len(b)) {
				if !m.equal(a[i], b[i]) {
					return m.less(a[i], b[i])
				}
			}
			return len(a) < len(b)
		}
	}
	m.fail("%s and %s cannot be compared by order", typeName(a), typeName(b))
	return false
}

// text returns a value in its printed form.
func (m *machine) text(v value) string {
	switch v := v.(type) {
	case string:
		return v
	case undefined:
		return ""
	}
	w := &writer{m: m, style: python}
	w.value(v)
	return w.String()
}

// style has the notation of nested values.
type style struct {
	none, yes, no string
	quote         func(string) string
	json          bool
}

var (
	python    = &style{none: "None", yes: "True", no: "False", quote: quotePython}
	jsonish   = &style{none: "null", yes: "true", no: "false", quote: quoteJSON, json: true}
	asciiJSON = &style{none: "null", yes: "true", no: "false", quote: quoteASCII, json: true}
)

// writer writes values in the notation of Python or JSON.
type writer struct {
	strings.Builder
	m      *machine
	style  *style
	indent string
	depth  int
}

func (w *writer) write(s string) {
	w.m.allocate(len(s))
	w.WriteString(s)
}

func (w *writer) value(v value) {
	w.m.step(1)
	switch v := v.(type) {
	case nil:
		w.write(w.style.none)
	case bool:
		if v {
			w.write(w.style.yes)
		} else {
			w.write(w.style.no)
		}
	case int64:
		w.write(strconv.FormatInt(v, 10))
	case float64:
		w.write(formatFloat(v))
	case string:
		w.write(w.style.quote(v))
	case list:
		w.items("[", "]", len(v), func(i int) { w.value(v[i]) })
	case *dict:
		w.items("{", "}", len(v.keys), func(i int) {
			if _, ok := v.keys[i].(string); w.style.json && !ok {
				w.write(quoteJSON(w.m.text(v.keys[i])))
			} else {
				w.value(v.keys[i])
			}
			w.write(": ")
			w.value(v.values[v.keys[i]])
		})
	default:
		if w.style.json {
			w.m.fail("%s cannot be written as JSON", typeName(v))
		}
		if _, ok := v.(undefined); ok {
			w.write("Undefined")
			return
		}
		w.write("<" + strings.TrimPrefix(strings.TrimPrefix(typeName(v), "a "), "an ") + ">")
	}
}

func (w *writer) items(begin, end string, n int, item func(i int)) {
	w.write(begin)
	w.depth++
	w.m.deeper(1)
	for i := range n {
		switch {
		case w.indent != "":
			if i > 0 {
				w.write(",")
			}
			w.write("\n" + strings.Repeat(w.indent, w.depth))
		case i > 0:
			w.write(", ")
		}
		item(i)
	}
	w.depth--
	w.m.deeper(-1)
	if w.indent != "" && n > 0 {
		w.write("\n" + strings.Repeat(w.indent, w.depth))
	}
	w.write(end)
}

func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quotePython writes a string as Python's repr does.
func quotePython(s string) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	return quote(s, q, `\x%02x`, map[rune]string{'\n': `\n`, '\r': `\r`, '\t': `\t`})
}

// quoteJSON writes a string as JSON without escaping non-ASCII characters.
func quoteJSON(s string) string {
	return quote(s, '"', `\u%04x`, map[rune]string{'\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`})
}

// quoteASCII writes a string as JSON with only ASCII characters.
func quoteASCII(s string) string {
	var b strings.Builder
	for _, r := range quoteJSON(s) {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func quote(s string, q byte, control string, escapes map[rune]string) string {
	b := []byte{q}
	for _, r := range s {
		e, ok := escapes[r]
		switch {
		case ok:
			b = append(b, e...)
		case r == rune(q) || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' || r == 0x7F && q == '\'':
			b = fmt.Appendf(b, control, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, q))
}
