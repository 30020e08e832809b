package wgsl

import (
	"strconv"
	"strings"
)

// maxDepth limits the nesting depth of types and constants.
const maxDepth = 100

// resolver computes types and the values of constants.
type resolver struct {
	parser
	depth int
}

func (m *module) at(i int) *resolver { return &resolver{parser: parser{module: m, i: i}} }

// typeAt returns the type that begins at token i.
func (m *module) typeAt(i int) (*Type, *CompileError) { return m.at(i).typ() }

// typ reads a type.
func (r *resolver) typ() (*Type, *CompileError) {
	if r.depth++; r.depth > maxDepth {
		return nil, r.fail(r.i, "types are nested too deep")
	}
	defer func() { r.depth-- }()
	at := r.i
	name, err := r.word()
	if err != nil {
		return nil, err
	}
	if d := r.decls[name]; d != nil {
		return r.declared(d, at)
	}
	if !r.tok().is("<") {
		if t := builtInType(name); t != nil {
			return t, nil
		}
		return nil, r.fail(at, "unknown type %s", name)
	}
	r.next()
	elem, err := r.typ()
	if err != nil {
		return nil, err
	}
	if elem.runtime() {
		return nil, r.fail(at, "an element of %s has no size", name)
	}
	number := elem.Kind == Scalar && elem.Name != "bool"
	var t *Type
	switch c, rows := matrixShape(name); {
	case name == "array":
		n, aerr := uint32(0), error(nil)
		if r.accept(",") && !r.tok().is(">") {
			sized := r.i
			if n, err = r.count(true); err != nil {
				return nil, err
			}
			if n == 0 {
				return nil, r.fail(sized, "an array must have at least one element")
			}
		}
		if t, aerr = arrayOf(elem, n); aerr != nil {
			return nil, r.fail(at, "%v", aerr)
		}
	case name == "atomic" && number && elem.Name != "f16":
		t = atomicOf(elem)
	case vectorLen(name) != 0 && elem.Kind == Scalar:
		t = vectorOf(vectorLen(name), elem)
	case c != 0 && number && elem.Name[0] == 'f':
		t = matrixOf(c, rows, elem)
	default:
		return nil, r.fail(at, "%s<%v> cannot be stored in memory", name, elem)
	}
	r.accept(",")
	return t, r.expect(">")
}

// declared returns the type that d declares.
func (r *resolver) declared(d *decl, at int) (*Type, *CompileError) {
	if d.resolved != nil {
		return d.resolved, nil
	}
	if d.resolving {
		return nil, r.fail(d.at, "%s contains itself", d.name)
	}
	if d.kind != aliasDecl && d.kind != structDecl {
		return nil, r.fail(at, "%s is not a type", d.name)
	}
	d.resolving = true
	defer func() { d.resolving = false }()
	s := r.at(d.typ)
	s.depth = r.depth
	if d.kind == aliasDecl {
		t, err := s.typ()
		d.resolved = t
		return t, err
	}
	var ms []member
	for _, m := range d.members {
		x := member{name: m.name}
		for _, a := range m.attrs {
			var to *uint64
			switch a.name {
			case "align":
				to = &x.align
			case "size":
				to = &x.size
			default:
				continue
			}
			s.i = a.lo
			n, err := s.count(false)
			if err != nil {
				return nil, err
			}
			if n == 0 {
				return nil, r.fail(a.at, "@%s must not be 0", a.name)
			}
			*to = uint64(n)
		}
		s.i = m.typ
		var err *CompileError
		if x.typ, err = s.typ(); err != nil {
			return nil, err
		}
		ms = append(ms, x)
	}
	t, err := structure(d.name, ms)
	if err != nil {
		return nil, r.fail(d.at, "%s: %v", d.name, err)
	}
	d.resolved = t
	return t, nil
}

// count evaluates a constant expression for a size, from 0 to 2^32-1. In a template list, a > ends
// the expression.
func (r *resolver) count(list bool) (uint32, *CompileError) {
	at := r.i
	v, err := r.expression(0, list)
	if err != nil {
		return 0, err
	}
	if v < 0 || v >= 1<<32 {
		return 0, r.fail(at, "%d is not a valid size: it must be from 0 to 4294967295", v)
	}
	return uint32(v), nil
}

// The binary operators on integers, by precedence.
var operators = []struct {
	text string
	rank int
	f    func(x, y int64) (int64, bool)
}{
	{"<<", 5, func(x, y int64) (int64, bool) { return x << (y & 63), y >= 0 && y < 32 && x < 1<<31 && x > -1<<31 }},
	{">>", 5, func(x, y int64) (int64, bool) { return x >> (y & 63), y >= 0 && y < 64 }},
	{"|", 1, func(x, y int64) (int64, bool) { return x | y, true }},
	{"^", 2, func(x, y int64) (int64, bool) { return x ^ y, true }},
	{"&", 3, func(x, y int64) (int64, bool) { return x & y, true }},
	{"+", 6, func(x, y int64) (int64, bool) { return x + y, true }},
	{"-", 6, func(x, y int64) (int64, bool) { return x - y, true }},
	{"*", 7, func(x, y int64) (int64, bool) { return x * y, true }},
	{"/", 7, func(x, y int64) (int64, bool) {
		if y == 0 {
			return 0, false
		}
		return x / y, true
	}},
	{"%", 7, func(x, y int64) (int64, bool) {
		if y == 0 {
			return 0, false
		}
		return x % y, true
	}},
}

// maxConstant limits the magnitudes of constants, so that products of two of them fit.
const maxConstant = 1 << 32

// expression evaluates a constant expression of integers.
func (r *resolver) expression(rank int, list bool) (int64, *CompileError) {
	if r.depth++; r.depth > maxDepth {
		return 0, r.fail(r.i, "constants are nested too deep")
	}
	defer func() { r.depth-- }()
	x, err := r.operand(list)
	if err != nil {
		return 0, err
	}
next:
	for {
		at := r.i
		for _, o := range operators {
			if !r.operator(o.text, list) {
				continue
			}
			if o.rank <= rank {
				r.i = at
				return x, nil
			}
			y, err := r.expression(o.rank, list)
			if err != nil {
				return 0, err
			}
			v, ok := o.f(x, y)
			if !ok || v > maxConstant || v < -maxConstant {
				return 0, r.fail(at, "%d %s %d is undefined or too large", x, o.text, y)
			}
			x = v
			continue next
		}
		return x, nil
	}
}

// operator skips an operator. In a template list it does not skip >>, which ends two lists.
func (r *resolver) operator(text string, list bool) bool {
	return !(list && text == ">>") && r.parser.operator(text)
}

// operand evaluates a number, a name, a conversion or an expression in parentheses.
func (r *resolver) operand(list bool) (int64, *CompileError) {
	t, at := r.tok(), r.i
	r.next()
	switch {
	case t.is("("):
		x, err := r.expression(0, false)
		if err != nil {
			return 0, err
		}
		return x, r.expect(")")
	case t.is("-"), t.is("~"):
		if r.depth++; r.depth > maxDepth {
			return 0, r.fail(at, "constants are nested too deep")
		}
		x, err := r.operand(list)
		r.depth--
		if t.is("-") {
			return -x, err
		}
		return ^x, err
	case t.kind == numberToken:
		v, err := strconv.ParseInt(strings.TrimRight(t.text, "iu"), 0, 64)
		if err != nil || v > maxConstant || len(t.text) > 1 && t.text[0] == '0' && t.text[1]|0x20 != 'x' && t.text[1] != 'i' && t.text[1] != 'u' {
			return 0, r.fail(at, "%s is not a valid size: expected a positive integer", t.text)
		}
		return v, nil
	case t.kind != wordToken:
		r.i = at
		return 0, r.fail(at, "expected a constant, found %s", r.found())
	}
	if d := r.decls[t.text]; d != nil {
		return r.constant(d, at)
	}
	switch t.text {
	case "u32", "i32", "min", "max":
		if err := r.expect("("); err != nil {
			return 0, err
		}
		x, err := r.expression(0, false)
		if err != nil {
			return 0, err
		}
		if t.text[0] == 'm' {
			if err := r.expect(","); err != nil {
				return 0, err
			}
			y, err := r.expression(0, false)
			if err != nil {
				return 0, err
			}
			if (t.text == "min") == (y < x) {
				x = y
			}
		}
		r.accept(",")
		return x, r.expect(")")
	}
	return 0, r.fail(at, "rayo cannot compute a size from %s: write a number or a const expression of numbers", t.text)
}

// constant returns the value of a declared constant.
func (r *resolver) constant(d *decl, at int) (int64, *CompileError) {
	switch {
	case d.kind != constDecl && d.kind != overrideDecl:
		return 0, r.fail(at, "%s is not a constant", d.name)
	case d.evaluated:
		return d.value, nil
	case d.init == 0:
		return 0, r.fail(d.at, "%s has no value: give it one in Source.Constants", d.name)
	case d.resolving:
		return 0, r.fail(d.at, "%s is defined in terms of itself", d.name)
	}
	d.resolving = true
	defer func() { d.resolving = false }()
	s := r.at(d.init)
	s.depth = r.depth
	x, err := s.expression(0, false)
	if err != nil {
		return 0, err
	}
	if !s.tok().is(";") {
		return 0, r.fail(s.i, "rayo cannot compute a size from %s: write a number or a const expression of numbers", d.name)
	}
	d.value, d.evaluated = x, true
	return x, nil
}
