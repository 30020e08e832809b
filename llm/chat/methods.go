package chat

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// globals has the predefined functions.
var globals map[string]value

// stringMethods and dictMethods have the methods of strings and dicts.
var (
	stringMethods map[string]func(m *machine, s string, a *arguments) value
	dictMethods   map[string]func(m *machine, d *dict, a *arguments) value
)

func init() {
	globals = map[string]value{}
	for name, f := range map[string]func(m *machine, a *arguments) value{
		"range": rangeOf, "namespace": newNamespace, "dict": dictOf, "raise_exception": raiseException,
		"strftime_now": func(m *machine, a *arguments) value { return strftime(m.now(), m.text(a.take(0, "format", ""))) },
	} {
		globals[name] = function{name, f}
	}
	stringMethods = map[string]func(m *machine, s string, a *arguments) value{
		"strip":      func(m *machine, s string, a *arguments) value { return m.strip(s, a, 3) },
		"lstrip":     func(m *machine, s string, a *arguments) value { return m.strip(s, a, 1) },
		"rstrip":     func(m *machine, s string, a *arguments) value { return m.strip(s, a, 2) },
		"split":      func(m *machine, s string, a *arguments) value { return m.split(s, a, false) },
		"rsplit":     func(m *machine, s string, a *arguments) value { return m.split(s, a, true) },
		"splitlines": (*machine).splitLines,
		"startswith": func(m *machine, s string, a *arguments) value { return m.affix(s, a, strings.HasPrefix) },
		"endswith":   func(m *machine, s string, a *arguments) value { return m.affix(s, a, strings.HasSuffix) },
		"removeprefix": func(m *machine, s string, a *arguments) value {
			return strings.TrimPrefix(s, m.text(a.take(0, "", "")))
		},
		"removesuffix": func(m *machine, s string, a *arguments) value {
			return strings.TrimSuffix(s, m.text(a.take(0, "", "")))
		},
		"format":  (*machine).format,
		"replace": func(m *machine, s string, a *arguments) value { return m.replace(s, a) },
		"join": func(m *machine, s string, a *arguments) value {
			return join(m, a.take(0, "", list(nil)), &arguments{pos: []value{s}})
		},
		"find":  func(m *machine, s string, a *arguments) value { return m.find(s, a, strings.Index) },
		"rfind": func(m *machine, s string, a *arguments) value { return m.find(s, a, strings.LastIndex) },
		"count": func(m *machine, s string, a *arguments) value {
			m.noBounds(a)
			return int64(strings.Count(s, m.text(a.take(0, "sub", ""))))
		},
		"isdigit": func(m *machine, s string, a *arguments) value { return all(s, unicode.IsDigit) },
		"isalpha": func(m *machine, s string, a *arguments) value { return all(s, unicode.IsLetter) },
		"isspace": func(m *machine, s string, a *arguments) value { return all(s, unicode.IsSpace) },
		"isupper": func(m *machine, s string, a *arguments) value { return cased(s, unicode.IsLower) },
		"islower": func(m *machine, s string, a *arguments) value { return cased(s, unicode.IsUpper) },
	}
	stringMethods["title"] = func(m *machine, s string, a *arguments) value { return stringFilter(pythonTitle)(m, s, a) }
	for _, name := range []string{"upper", "lower", "capitalize"} {
		stringMethods[name] = func(m *machine, s string, a *arguments) value { return filters[name](m, s, a) }
	}
	dictMethods = map[string]func(m *machine, d *dict, a *arguments) value{
		"items": func(m *machine, d *dict, a *arguments) value { return items(m, d, a) },
		"keys":  func(m *machine, d *dict, a *arguments) value { return m.iterate(d) },
		"values": func(m *machine, d *dict, a *arguments) value {
			return mapped(m, items(m, d, a), &arguments{names: []string{"attribute"}, named: []value{int64(1)}})
		},
		"get": func(m *machine, d *dict, a *arguments) value {
			if v, ok := m.get(d, a.take(0, "key", nil)); ok {
				return v
			}
			return a.take(1, "default", nil)
		},
	}
}

// method returns the method of a value with the given name.
func (m *machine) method(v value, name string) (value, bool) {
	switch v := v.(type) {
	case string:
		if f := stringMethods[name]; f != nil {
			return function{name, func(m *machine, a *arguments) value {
				m.step(len(v) / 64) // most methods read the whole string
				return f(m, v, a)
			}}, true
		}
	case *dict:
		if f := dictMethods[name]; f != nil {
			return function{name, func(m *machine, a *arguments) value { return f(m, v, a) }}, true
		}
	}
	return nil, false
}

// strip removes white space, or the given characters, from the beginning (ends is 1), the end (2) or both (3).
func (m *machine) strip(s string, a *arguments, ends int) value {
	cut := unicode.IsSpace
	if c, ok := a.take(0, "chars", nil).(string); ok {
		cut = func(r rune) bool { return strings.ContainsRune(c, r) }
		m.step(len(c))
	}
	if ends&1 != 0 {
		s = strings.TrimLeftFunc(s, cut)
	}
	if ends&2 != 0 {
		s = strings.TrimRightFunc(s, cut)
	}
	return s
}

func (m *machine) strings(parts []string) list {
	m.allocate(len(parts) * valueSize)
	l := make(list, len(parts))
	for i, p := range parts {
		l[i] = p
	}
	return l
}

func (m *machine) split(s string, a *arguments, right bool) value {
	limit, ok := integer(a.take(1, "maxsplit", int64(-1)))
	if !ok || limit < 0 {
		limit = int64(len(s))
	}
	m.allocate(len(s))
	sep, ok := a.take(0, "sep", nil).(string)
	if !ok {
		parts := strings.Fields(s)
		if int64(len(parts)) > limit+1 {
			m.fail("split at white space with a limit is not supported")
		}
		return m.strings(parts)
	}
	if sep == "" {
		m.fail("split: the separator is empty, expected at least one character")
	}
	parts := strings.Split(s, sep)
	if n := len(parts) - 1 - int(limit); n > 0 {
		if right {
			parts = append([]string{strings.Join(parts[:n+1], sep)}, parts[n+1:]...)
		} else {
			parts = append(parts[:limit:limit], strings.Join(parts[limit:], sep))
		}
	}
	return m.strings(parts)
}

// splitLines splits a string at the line boundaries of Python, and keeps them if keepends is true.
func (m *machine) splitLines(s string, a *arguments) value {
	keep := truth(a.take(0, "keepends", false))
	var l list
	for s != "" {
		line, n := len(s), len(s)
		if i := strings.IndexFunc(s, isLineEnd); i >= 0 {
			_, size := utf8.DecodeRuneInString(s[i:])
			if strings.HasPrefix(s[i:], "\r\n") {
				size = 2
			}
			line, n = i, i+size
		}
		if keep {
			line = n
		}
		m.allocate(2 * valueSize)
		l = append(l, s[:line])
		s = s[n:]
	}
	return l
}

func isLineEnd(r rune) bool {
	return '\n' <= r && r <= '\r' || 0x1C <= r && r <= 0x1E || r == 0x85 || r == 0x2028 || r == 0x2029
}

// affix reports whether a string has a prefix or suffix, or any of a list of them.
func (m *machine) affix(s string, a *arguments, has func(s, affix string) bool) value {
	m.noBounds(a)
	switch x := a.take(0, "", nil).(type) {
	case string:
		return has(s, x)
	case list:
		for _, item := range x {
			m.step(1)
			if has(s, m.text(item)) {
				return true
			}
		}
		return false
	default:
		m.fail("the argument of startswith or endswith is %s, expected a string or a list", m.named(x))
	}
	return nil
}

func (m *machine) replace(s string, a *arguments) value {
	old, by := m.text(a.take(0, "old", "")), m.text(a.take(1, "new", ""))
	n, ok := integer(a.take(2, "count", int64(-1)))
	if !ok {
		n = -1
	}
	m.step(len(s) / 64)
	times := strings.Count(s, old)
	if n >= 0 {
		times = int(min(int64(times), n))
	}
	if len(by) > 0 && times > m.limits.Memory/len(by) {
		m.raise(ErrLimit, "values take more than %d bytes", m.limits.Memory)
	}
	m.allocate(len(s) + times*len(by))
	return strings.Replace(s, old, by, times)
}

// format replaces {}, {0} and {name} by arguments.
func (m *machine) format(s string, a *arguments) value {
	var b strings.Builder
	write := func(text string) {
		m.allocate(len(text))
		b.WriteString(text)
	}
	for next := 0; s != ""; {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			write(s)
			break
		}
		write(s[:i])
		s = s[i:]
		if len(s) > 1 && s[1] == s[0] {
			write(s[:1])
			s = s[2:]
			continue
		}
		field, rest, ok := strings.Cut(s[1:], "}")
		if s[0] == '}' || !ok {
			m.fail("format: a brace has no counterpart: write {{ or }} for the character")
		}
		place, err := strconv.Atoi(field)
		switch {
		case field == "":
			place = next
			next++
		case err != nil:
			place = -1
		}
		v := a.take(place, field, missing)
		if v == missing {
			m.fail("format: there is no argument {%s}", field)
		}
		write(m.text(v))
		s = rest
	}
	return b.String()
}

// find returns the index of a substring, in characters, or -1.
func (m *machine) find(s string, a *arguments, index func(s, sub string) int) value {
	m.noBounds(a)
	n := index(s, m.text(a.take(0, "sub", "")))
	if n < 0 {
		return int64(-1)
	}
	return int64(utf8.RuneCountInString(s[:n]))
}

// noBounds rejects the arguments with which Python's methods search only a part of a string.
func (m *machine) noBounds(a *arguments) {
	if len(a.pos) > 1 {
		m.fail("a search between positions of a string is not supported: take a slice of the string")
	}
}

func all(s string, is func(rune) bool) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0
}

func parseFloat(s string) (float64, error) { return strconv.ParseFloat(strings.TrimSpace(s), 64) }

// rangeOf returns the integers from the first argument, or 0, to before the second in steps of the third.
func rangeOf(m *machine, a *arguments) value {
	bounds := [3]int64{0, 0, 1}
	for i, x := range a.pos {
		n, ok := integer(x)
		if !ok || i > 2 {
			m.fail("range has other arguments than expected: one to three integers")
		}
		bounds[i] = n
	}
	if len(a.pos) == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	if bounds[2] == 0 || len(a.pos) == 0 {
		m.fail("the step of range is 0, expected another integer")
	}
	var l list
	for i := bounds[0]; bounds[2] > 0 && i < bounds[1] || bounds[2] < 0 && i > bounds[1]; {
		m.step(1)
		m.allocate(2 * valueSize)
		l = append(l, i)
		next := i + bounds[2]
		if (next > i) != (bounds[2] > 0) {
			break
		}
		i = next
	}
	return l
}

func newNamespace(m *machine, a *arguments) value {
	ns := &namespace{*newDict()}
	m.allocate(len(a.names) * 4 * valueSize)
	for i, n := range a.names {
		ns.set(n, a.named[i])
	}
	return ns
}

func dictOf(m *machine, a *arguments) value {
	d := newDict()
	if from, ok := a.take(0, "", nil).(*dict); ok {
		for _, k := range from.keys {
			m.allocate(4 * valueSize)
			d.set(k, from.values[k])
		}
	}
	m.allocate(len(a.names) * 4 * valueSize)
	for i, n := range a.names {
		d.set(n, a.named[i])
	}
	return d
}

func raiseException(m *machine, a *arguments) value {
	m.raise(ErrRaised, "%s", m.text(a.take(0, "message", "")))
	return nil
}

func (m *machine) now() time.Time {
	if m.in.Now.IsZero() {
		return time.Now()
	}
	return m.in.Now
}

// timeFormats maps conversions of strftime to layouts of package time.
var timeFormats = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon",
	'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002", 'Z': "MST", 'z': "-0700", 'F': "2006-01-02", 'T': "15:04:05",
	'D': "01/02/06", 'R': "15:04", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		if i+1 < len(format) && format[i] == '-' { // without leading zeros
			i++
			b.WriteString(strings.TrimLeft(t.Format(timeFormats[format[i]]), "0 "))
		} else if f, ok := timeFormats[format[i]]; ok {
			b.WriteString(t.Format(f))
		} else {
			b.WriteByte(format[i])
		}
	}
	return b.String()
}

// loopAttribute returns an attribute of the variable loop.
func (m *machine) loopAttribute(l *loop, name string) value {
	n, i := int64(len(l.items)), int64(l.i)
	at := func(i int64) value {
		if i < 0 || i >= n {
			return undefined{name}
		}
		return l.items[i]
	}
	switch name {
	case "index":
		return i + 1
	case "index0":
		return i
	case "revindex":
		return n - i
	case "revindex0":
		return n - i - 1
	case "first":
		return i == 0
	case "last":
		return i == n-1
	case "length":
		return n
	case "depth": // recursive loops are not supported
		return int64(1)
	case "depth0":
		return int64(0)
	case "previtem":
		return at(i - 1)
	case "nextitem":
		return at(i + 1)
	case "cycle":
		return function{name, func(m *machine, a *arguments) value {
			if len(a.pos) == 0 {
				m.fail("cycle has no arguments, expected at least one")
			}
			return a.pos[l.i%len(a.pos)]
		}}
	case "changed":
		return function{name, func(m *machine, a *arguments) value {
			now := list(a.pos)
			changed := !m.equal(l.changed, now)
			l.changed = now
			return changed
		}}
	}
	return undefined{name}
}
