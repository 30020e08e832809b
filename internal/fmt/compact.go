// Package fmt is the part of the standard library's fmt that the packages in pages use. It is smaller there:
// the standard library's also links the package os, sorts maps, and scans. Elsewhere it calls the standard library.
//
// The formats may have the verbs c d e f g q s T v w x, one operand by index (%[2]d), a precision of numbers
// with a fraction (%.3g), and # before x of integers and texts. Operands are errors and values with a method String, truth
// values, numbers, texts, and lists of the types []byte, []int, []uint32 and []string. In pages other values print as their type.
package fmt

import (
	"errors"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// printer appends operands to b.
type printer struct {
	b       []byte
	wraps   int     // number of %w
	wrapped []error // errors among their operands
	unknown bool    // in an operand that its verb does not print, which calls no methods
	verb    byte
	sharp   bool
	prec    int
}

func compact(format string, args ...any) []byte {
	var p printer
	p.format(format, args)
	return p.b
}

func compactList(args []any) []byte {
	p := printer{verb: 'v', prec: -1}
	for i, a := range args {
		if i > 0 && !isString(a) && !isString(args[i-1]) {
			p.b = append(p.b, ' ')
		}
		p.operand(a)
	}
	return p.b
}

func isString(a any) bool { return a != nil && reflect.TypeOf(a).Kind() == reflect.String }

// wrapError is an error that wraps one, wrapErrors one that wraps several.
type wrapError struct {
	msg string
	err error
}

func (e *wrapError) Error() string { return e.msg }
func (e *wrapError) Unwrap() error { return e.err }

type wrapErrors struct {
	msg  string
	errs []error
}

func (e *wrapErrors) Error() string   { return e.msg }
func (e *wrapErrors) Unwrap() []error { return e.errs }

func compactError(format string, args ...any) error {
	var p printer
	p.format(format, args)
	switch {
	case p.wraps == 0:
		return errors.New(string(p.b))
	case p.wraps > 1:
		return &wrapErrors{string(p.b), p.wrapped}
	case len(p.wrapped) == 0:
		return &wrapError{string(p.b), nil}
	}
	return &wrapError{string(p.b), p.wrapped[0]}
}

func (p *printer) format(f string, args []any) {
	next := 0
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			p.b = append(p.b, f[i])
			continue
		}
		p.sharp, p.prec = false, -1
		for i++; i < len(f); i++ {
			switch {
			case f[i] == '#':
				p.sharp = true
			case f[i] == '.':
				p.prec = 0
			case f[i] == '[':
				for next, i = 0, i+1; i < len(f) && f[i] != ']'; i++ {
					next = next*10 + int(f[i]-'0')
				}
				next--
			case p.prec >= 0 && '0' <= f[i] && f[i] <= '9':
				p.prec = p.prec*10 + int(f[i]-'0')
			default:
				goto verb
			}
		}
	verb:
		switch {
		case i == len(f):
			p.b = append(p.b, "%!(NOVERB)"...)
		case f[i] == '%':
			p.b = append(p.b, '%')
		case next >= len(args):
			p.b = append(p.b, "%!"+f[i:i+1]+"(MISSING)"...)
		default:
			p.verb = f[i]
			p.operand(args[next])
			next++
		}
	}
}

func (p *printer) operand(a any) {
	if p.verb == 'w' {
		p.wraps++
		err, ok := a.(error)
		if !ok {
			p.refuse(a)
			return
		}
		p.wrapped = append(p.wrapped, err)
		p.verb = 'v'
	}
	switch {
	case p.verb == 'T' && a != nil:
		p.b = append(p.b, reflect.TypeOf(a).String()...)
	case a == nil && (p.verb == 'v' || p.verb == 'T'):
		p.b = append(p.b, "<nil>"...)
	case !p.method(a):
		p.value(a)
	}
}

// method appends the text that a method of a returns, and reports whether a has one for the verb.
func (p *printer) method(a any) bool {
	if p.unknown || !isText(p.verb) {
		return false
	}
	name, call := "Error", (func() string)(nil)
	switch x := a.(type) {
	case error:
		call = x.Error
	case interface{ String() string }:
		name, call = "String", x.String
	default:
		return false
	}
	p.text(p.called(a, name, call))
	return true
}

// called returns what the method returns, or describes its panic.
func (p *printer) called(a any, name string, call func() string) (s string) {
	verb := p.verb
	defer func() {
		if r := recover(); r != nil {
			p.verb = 'v'
			if v := reflect.ValueOf(a); v.Kind() == reflect.Pointer && v.IsNil() {
				s = "<nil>"
				return
			}
			s = "%!" + string(verb) + "(PANIC=" + name + " method: " + string(compact("%v", r)) + ")"
		}
	}()
	return call()
}

// text appends a string by the verbs v, s, q and x.
func (p *printer) text(s string) {
	switch p.verb {
	case 'q':
		p.quote(s, '"')
	case 'x':
		const digits = "0123456789abcdef"
		if p.sharp && s != "" {
			p.b = append(p.b, "0x"...)
		}
		for i := range len(s) {
			p.b = append(p.b, digits[s[i]>>4], digits[s[i]&15])
		}
	default:
		p.b = append(p.b, s...)
	}
}

// quote appends s between two quotes, as package strconv does. It escapes bytes that are not UTF-8, and of the
// characters that do not print those beyond ASCII that [hidden] knows, because strconv's tables of them take 3 kB compressed.
func (p *printer) quote(s string, quote byte) {
	const digits, names = "0123456789abcdef", "abtnvfr" // names has the letters of \a, which is 7, to \r
	p.b = append(p.b, quote)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		hex := 0
		switch {
		case r == utf8.RuneError && size == 1:
			r, hex = rune(s[i]), 2
			p.b = append(p.b, '\\', 'x')
		case r == rune(quote) || r == '\\':
			p.b = append(p.b, '\\', byte(r))
		case r >= '\a' && r <= '\r':
			p.b = append(p.b, '\\', names[r-'\a'])
		case r < ' ' || r == 0x7f:
			hex = 2
			p.b = append(p.b, '\\', 'x')
		case hidden(r):
			hex = 4
			p.b = append(p.b, '\\', 'u')
		default:
			p.b = append(p.b, s[i:i+size]...)
		}
		for ; hex > 0; hex-- {
			p.b = append(p.b, digits[r>>(4*hex-4)&15])
		}
		i += size
	}
	p.b = append(p.b, quote)
}

// hidden reports whether r is one of the characters up to U+FFFF that change how a text looks without being visible: controls,
// spaces, marks of direction, joiners, and those for private use.
func hidden(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0xa0, r == 0xad, r == 0x61c, r == 0x1680, r == 0x180e, r >= 0x2000 && r <= 0x200f,
		r >= 0x2028 && r <= 0x202f, r >= 0x205f && r <= 0x206f, r == 0x3000, r >= 0xe000 && r <= 0xf8ff, r == 0xfeff, r >= 0xfff9 && r <= 0xfffb:
		return true
	}
	return false
}

// value appends a value of a type without a method, or a list of the types that the package comment names.
func (p *printer) value(a any) {
	switch a := a.(type) {
	case []byte:
		if isText(p.verb) && p.verb != 'v' {
			p.text(string(a))
			return
		}
		p.list(len(a), func(i int) any { return a[i] })
	case []int:
		p.list(len(a), func(i int) any { return a[i] })
	case []uint32:
		p.list(len(a), func(i int) any { return a[i] })
	case []string:
		p.list(len(a), func(i int) any { return a[i] })
	default:
		if !p.single(reflect.ValueOf(a)) {
			p.refuse(a)
		}
	}
}

func (p *printer) list(n int, at func(i int) any) {
	p.b = append(p.b, '[')
	for i := range n {
		if i > 0 {
			p.b = append(p.b, ' ')
		}
		p.value(at(i))
	}
	p.b = append(p.b, ']')
}

// single appends a truth value, a number or a text. It follows no pointers and looks into nothing, because the functions of
// package reflect for these take 11 kB compressed.
func (p *printer) single(v reflect.Value) (ok bool) {
	switch v.Kind() {
	case reflect.Bool:
		if ok = p.verb == 'v'; ok {
			p.b = strconv.AppendBool(p.b, v.Bool())
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i := v.Int()
		ok = p.integer(uint64(max(i, -i)), i < 0)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		ok = p.integer(v.Uint(), false)
	case reflect.Float32:
		ok = p.float(v.Float(), 32)
	case reflect.Float64:
		ok = p.float(v.Float(), 64)
	case reflect.String:
		if ok = isText(p.verb); ok {
			p.text(v.String())
		}
	}
	return ok
}

func isText(verb byte) bool { return verb == 'v' || verb == 's' || verb == 'q' || verb == 'x' }

// integer appends the magnitude m with its sign by the verbs d, v, x, c and q.
func (p *printer) integer(m uint64, negative bool) bool {
	base, prefix := 10, ""
	switch p.verb {
	case 'd', 'v':
	case 'x':
		base = 16
		if p.sharp {
			prefix = "0x"
		}
	case 'c', 'q':
		r := rune(m)
		if negative || m > utf8.MaxRune {
			r = utf8.RuneError
		}
		if p.verb == 'q' {
			p.quote(string(r), '\'')
		} else {
			p.b = utf8.AppendRune(p.b, r)
		}
		return true
	default:
		return false
	}
	if negative {
		p.b = append(p.b, '-')
	}
	p.b = strconv.AppendUint(append(p.b, prefix...), m, base)
	return true
}

func (p *printer) float(f float64, bits int) bool {
	verb, prec := p.verb, p.prec
	switch verb {
	case 'v':
		verb = 'g'
	case 'g', 'x':
	case 'e', 'f':
		if prec < 0 {
			prec = 6
		}
	default:
		return false
	}
	p.b = strconv.AppendFloat(p.b, f, verb, prec, bits)
	return true
}

// refuse appends what stands for a value that the verb does not print: %!d(bool=true).
func (p *printer) refuse(a any) {
	verb, outer := p.verb, p.unknown
	p.unknown = true
	p.b = append(p.b, '%', '!', verb, '(')
	switch {
	case a == nil:
		p.b = append(p.b, "<nil>"...)
	case verb == 'v':
		p.b = append(p.b, reflect.TypeOf(a).String()...)
	default:
		p.b = append(append(p.b, reflect.TypeOf(a).String()...), '=')
		p.verb = 'v'
		p.value(a)
	}
	p.verb, p.unknown = verb, outer
	p.b = append(p.b, ')')
}
