package chat

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

type filterFunc func(m *machine, v value, a *arguments) value

// filters has the functions for x|name.
var filters map[string]filterFunc

func init() {
	filters = map[string]filterFunc{
		"trim":  func(m *machine, v value, a *arguments) value { return m.strip(m.text(v), a, 3) },
		"upper": stringFilter(strings.ToUpper), "lower": stringFilter(strings.ToLower),
		"title": stringFilter(title), "capitalize": stringFilter(capitalize),
		"string": stringFilter(func(s string) string { return s }), "safe": stringFilter(func(s string) string { return s }),
		"escape": stringFilter(escapeHTML), "e": stringFilter(escapeHTML),
		"length": length, "count": length, "default": otherwise, "d": otherwise,
		"join": join, "replace": func(m *machine, v value, a *arguments) value { return m.replace(m.text(v), a) },
		"first": first, "last": last, "list": func(m *machine, v value, a *arguments) value { return m.iterate(v) },
		"reverse": reverse, "sort": sorted, "unique": unique, "sum": sum, "min": extreme(1), "max": extreme(-1),
		"map": mapped, "select": selected(false, true), "reject": selected(false, false),
		"selectattr": selected(true, true), "rejectattr": selected(true, false), "attr": attr,
		"items": items, "dictsort": dictSort, "tojson": toJSON, "from_json": fromJSON, "fromjson": fromJSON, "indent": indent, "abs": abs, "int": toInt, "float": toFloat, "round": round,
	}
}

func stringFilter(f func(string) string) filterFunc {
	return func(m *machine, v value, a *arguments) value {
		s := m.text(v)
		m.allocate(2 * len(s))
		return f(s)
	}
}

// title converts words as Jinja's filter does: white space, hyphens and opening brackets separate them.
func title(s string) string {
	return titleWords(s, func(r rune) bool { return !unicode.IsSpace(r) && !strings.ContainsRune("-({[<", r) })
}

// pythonTitle converts words as Python's method does: they consist of letters with upper and lower case.
func pythonTitle(s string) string {
	return titleWords(s, func(r rune) bool { return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) })
}

// titleWords converts the first character of each word to upper case and the others to lower case.
func titleWords(s string, ofWord func(rune) bool) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		first := !inWord
		inWord = ofWord(r)
		if first {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + strings.ToLower(s[n:])
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

func escapeHTML(s string) string { return htmlEscaper.Replace(s) }

func length(m *machine, v value, _ *arguments) value {
	switch v := v.(type) {
	case string:
		m.step(len(v) / 64)
		return int64(utf8.RuneCountInString(v))
	case *dict:
		return int64(len(v.keys))
	case list:
		return int64(len(v))
	case undefined:
		return int64(0)
	}
	m.fail("%s has no length", m.named(v))
	return nil
}

func otherwise(m *machine, v value, a *arguments) value {
	d := a.take(0, "default_value", "")
	if _, ok := v.(undefined); ok || truth(a.take(1, "boolean", false)) && !truth(v) {
		return d
	}
	return v
}

func join(m *machine, v value, a *arguments) value {
	sep, by := m.text(a.take(0, "d", "")), a.take(1, "attribute", nil)
	var b strings.Builder
	for i, item := range m.iterate(v) {
		if by != nil {
			item = m.path(item, by)
		}
		text := m.text(item)
		m.allocate(len(text) + len(sep))
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(text)
	}
	return b.String()
}

func first(m *machine, v value, _ *arguments) value {
	return m.attribute(m.iterate(v), int64(0), false)
}
func last(m *machine, v value, _ *arguments) value {
	return m.attribute(m.iterate(v), int64(-1), false)
}

func reverse(m *machine, v value, _ *arguments) value {
	l := slices.Clone(m.iterate(v))
	m.allocate(len(l) * valueSize)
	slices.Reverse(l)
	if _, ok := v.(string); ok {
		return join(m, l, &arguments{})
	}
	return l
}

// path returns the attribute of an item at a path such as function.name.
func (m *machine) path(item, path value) value {
	s, ok := path.(string)
	if !ok {
		return m.attribute(item, path, false)
	}
	for _, part := range strings.Split(s, ".") {
		item = m.attribute(item, part, false)
	}
	return item
}

func sorted(m *machine, v value, a *arguments) value {
	l := slices.Clone(m.iterate(v))
	m.allocate(len(l) * valueSize)
	by, fold := a.take(2, "attribute", nil), !truth(a.take(1, "case_sensitive", false))
	keyOf := func(x value) value {
		if by != nil {
			x = m.path(x, by)
		}
		if s, ok := x.(string); ok && fold {
			m.allocate(len(s))
			x = strings.ToLower(s)
		}
		return x
	}
	sign := 1
	if truth(a.take(0, "reverse", false)) {
		sign = -1
	}
	slices.SortStableFunc(l, func(x, y value) int { return sign * m.order(keyOf(x), keyOf(y)) })
	return l
}

func (m *machine) order(x, y value) int {
	switch {
	case m.less(x, y):
		return -1
	case m.less(y, x):
		return 1
	}
	return 0
}

// unique drops items, or items with an attribute, that are equal to earlier ones. Strings that differ only in case
// count as equal, unless case_sensitive is true.
func unique(m *machine, v value, a *arguments) value {
	var out, others list
	exact, by := truth(a.take(0, "case_sensitive", false)), a.take(1, "attribute", nil)
	seen := newDict()
	for _, item := range m.iterate(v) {
		k := item
		if by != nil {
			k = m.path(item, by)
		}
		if s, ok := k.(string); ok {
			m.step(len(s) / 64)
			if !exact {
				m.allocate(len(s))
				k = strings.ToLower(s)
			}
		}
		m.step(1)
		m.allocate(4 * valueSize)
		if isKey(k) {
			k = key(k)
			if _, ok := seen.get(k); ok {
				continue
			}
			seen.set(k, true)
		} else if m.contains(others, k) {
			continue
		} else {
			others = append(others, k)
		}
		out = append(out, item)
	}
	return out
}

func sum(m *machine, v value, a *arguments) value {
	by := a.take(0, "attribute", nil)
	total := a.take(1, "start", int64(0))
	for _, item := range m.iterate(v) {
		if by != nil {
			item = m.path(item, by)
		}
		total = m.arithmetic("+", total, item)
	}
	return total
}

func extreme(sign int) filterFunc {
	return func(m *machine, v value, _ *arguments) value {
		var best value = undefined{}
		for i, item := range m.iterate(v) {
			if i == 0 || sign*m.order(item, best) < 0 {
				best = item
			}
		}
		return best
	}
}

// mapped applies a filter to each item, or returns an attribute of each item.
func mapped(m *machine, v value, a *arguments) value {
	by := a.take(-1, "attribute", nil)
	otherwise := a.take(-1, "default", nil)
	var f filterFunc
	rest := &arguments{}
	if by == nil {
		name, _ := a.take(0, "", nil).(string)
		if f = filters[name]; f == nil {
			m.fail("map: unknown filter %q", name)
		}
		rest = &arguments{pos: a.pos[1:], names: a.names, named: a.named}
	}
	if !truth(v) {
		return list(nil)
	}
	m.deeper(1)
	defer m.deeper(-1)
	var out list
	for _, item := range m.iterate(v) {
		m.allocate(valueSize)
		if f != nil {
			item = f(m, item, rest)
		} else if item = m.path(item, by); otherwise != nil {
			if _, ok := item.(undefined); ok {
				item = otherwise
			}
		}
		out = append(out, item)
	}
	return out
}

// selected keeps the items for which a test, of an attribute or of the item, is true.
func selected(attribute, keep bool) filterFunc {
	return func(m *machine, v value, a *arguments) value {
		if !truth(v) {
			return list(nil) // even if the test is missing
		}
		pos := a.pos
		var by value
		if attribute {
			if len(pos) == 0 {
				m.fail("expected the name of an attribute")
			}
			by, pos = pos[0], pos[1:]
		}
		is := func(m *machine, v value, _ *arguments) bool { return truth(v) }
		rest := &arguments{}
		if len(pos) > 0 {
			name, _ := pos[0].(string)
			if is = tests[name]; is == nil {
				m.fail("unknown test %q", name)
			}
			rest.pos = pos[1:]
		}
		var out list
		for _, item := range m.iterate(v) {
			m.step(1)
			x := item
			if attribute {
				x = m.path(item, by)
			}
			if is(m, x, rest) == keep {
				m.allocate(valueSize)
				out = append(out, item)
			}
		}
		return out
	}
}

func attr(m *machine, v value, a *arguments) value {
	return m.attribute(v, a.take(0, "name", ""), true)
}

// items returns the pairs of a mapping.
func items(m *machine, v value, _ *arguments) value {
	if _, ok := v.(undefined); ok {
		return list(nil)
	}
	d, ok := v.(*dict)
	if !ok {
		m.fail("%s has no pairs, expected a mapping", m.named(v))
	}
	m.allocate(len(d.keys) * 4 * valueSize)
	out := make(list, len(d.keys))
	for i, k := range d.keys {
		out[i] = list{k, d.values[k]}
	}
	return out
}

func dictSort(m *machine, v value, a *arguments) value {
	by := int64(0)
	if m.text(a.take(1, "by", "key")) == "value" {
		by = 1
	}
	return sorted(m, items(m, v, a), &arguments{names: []string{"attribute", "reverse"}, named: []value{by, a.take(2, "reverse", false)}})
}

func toJSON(m *machine, v value, a *arguments) value {
	w := &writer{m: m, style: jsonish}
	if n, ok := integer(a.take(0, "indent", nil)); ok {
		w.indent = strings.Repeat(" ", int(max(0, min(n, 16))))
	}
	if truth(a.take(-1, "ensure_ascii", false)) {
		w.style = asciiJSON
	}
	if truth(a.take(-1, "sort_keys", false)) {
		if d, ok := v.(*dict); ok {
			sortedDict := newDict()
			for _, pair := range dictSort(m, d, &arguments{}).(list) {
				sortedDict.set(pair.(list)[0], pair.(list)[1])
			}
			v = sortedDict
		}
	}
	w.value(v)
	return w.String()
}

func fromJSON(m *machine, v value, _ *arguments) value {
	s := m.text(v)
	m.allocate(len(s) * valueSize)
	c := &converter{}
	out := c.json([]byte(s))
	if c.err != nil {
		m.fail("%v", c.err)
	}
	return out
}

func indent(m *machine, v value, a *arguments) value {
	width := strings.Repeat(" ", 4)
	switch w := a.take(0, "width", int64(4)).(type) {
	case int64:
		width = strings.Repeat(" ", int(max(0, min(w, 256))))
	case string:
		width = w
	}
	lines := strings.Split(m.text(v), "\n")
	for i := range lines {
		if (i > 0 || truth(a.take(1, "first", false))) && (lines[i] != "" || truth(a.take(2, "blank", false))) {
			m.allocate(len(width) + len(lines[i]))
			lines[i] = width + lines[i]
		}
	}
	return m.string(strings.Join(lines, "\n"))
}

func abs(m *machine, v value, _ *arguments) value {
	f, ok := number(v)
	if !ok {
		m.fail("%s is not a number", m.named(v))
	}
	if f < 0 {
		return m.unary("-", v)
	}
	return v
}

func toInt(m *machine, v value, a *arguments) value {
	f, ok := toFloat(m, v, &arguments{pos: []value{nil}}).(float64)
	if n, isInt := integer(v); isInt {
		return n
	}
	if !ok || math.IsNaN(f) || math.Abs(f) >= 1<<63 {
		return a.take(0, "default", int64(0))
	}
	return int64(f)
}

func toFloat(m *machine, v value, a *arguments) value {
	if s, ok := v.(string); ok {
		if f, err := parseFloat(s); err == nil {
			return f
		}
		return a.take(0, "default", 0.0)
	}
	if f, ok := number(v); ok {
		return f
	}
	return a.take(0, "default", 0.0)
}

func round(m *machine, v value, a *arguments) value {
	f, ok := number(v)
	digits, isInt := integer(a.take(0, "precision", int64(0)))
	if !ok || !isInt {
		m.fail("%s is not a number", m.named(v))
	}
	scale := math.Pow(10, float64(digits))
	switch m.text(a.take(1, "method", "common")) {
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	}
	return math.RoundToEven(f*scale) / scale
}
