package wgsl

import "github.com/rayo-go/rayo/internal/fmt"

// A module holds the declarations of a text. Of functions it only records the names that they use;
// a compiler must check the rest.
type module struct {
	text  string
	toks  []token
	decls map[string]*decl
	order []*decl
	// enables are the directives that enable features: their names, and the tokens of each
	// directive.
	enables []enable
	asserts []int // the tokens after each const_assert
}

type enable struct {
	names  []string
	lo, hi int // tokens of the directive, including the semicolon
}

// decl is a declaration.
type decl struct {
	kind   declKind
	name   string
	at     int // token of the name
	attrs  []attribute
	lo, hi int // first token after the attributes, and the token after the last one of the declaration
	// list, typ and init are the tokens at which the template list of var<...>, the type and the
	// initialiser begin, or 0 if absent.
	list, typ, init int

	resolving bool // set while the declaration is resolved, to detect cycles
	resolved  *Type
	evaluated bool
	value     int64        // value of a constant
	members   []memberDecl // members of a structure
}

type declKind uint8

const (
	constDecl declKind = iota + 1
	overrideDecl
	varDecl
	structDecl
	aliasDecl
	funcDecl
)

type memberDecl struct {
	attrs []attribute
	name  string
	typ   int // token
}

// attribute is @name or @name(args).
type attribute struct {
	name   string
	lo, hi int // tokens of the arguments, without the parentheses; lo == hi without arguments
	at     int // token of the @
	end    int // token after the attribute
}

// maxDecls limits the number of declarations of a text.
const maxDecls = 10000

// parse reads the declarations of a text.
func parse(text string) (*module, *CompileError) {
	toks, err := tokens(text)
	if err != nil {
		return nil, err
	}
	m := &module{text: text, toks: toks, decls: map[string]*decl{}}
	p := &parser{module: m}
	for p.tok().kind != endToken {
		if err := p.global(); err != nil {
			return nil, err
		}
		if len(m.order) > maxDecls {
			return nil, p.fail(p.i, "the text has more than %d declarations", maxDecls)
		}
	}
	return m, nil
}

// parser is a position in the tokens.
type parser struct {
	*module
	i int
}

func (p *parser) tok() *token { return &p.toks[p.i] }

// next moves to the next token. It does not move beyond the last one.
//
//go:noinline
func (p *parser) next() {
	if p.i+1 < len(p.toks) {
		p.i++
	}
}

// fail returns an error about token i.
func (m *module) fail(i int, format string, args ...any) *CompileError {
	return mistake(m.text, m.toks[i].at, fmt.Sprintf(format, args...))
}

// accept skips the token text, and reports whether it was there.
//
//go:noinline
func (p *parser) accept(text string) bool {
	if !p.tok().is(text) {
		return false
	}
	p.next()
	return true
}

// operator skips an operator of one or more characters, and reports whether it was there.
func (p *parser) operator(text string) bool {
	for j := range len(text) {
		t := &p.toks[min(p.i+j, len(p.toks)-1)]
		if !t.is(text[j:j+1]) || j > 0 && t.at != p.toks[p.i+j-1].end() {
			return false
		}
	}
	p.i += len(text)
	return true
}

func (p *parser) expect(text string) *CompileError {
	if !p.accept(text) {
		return p.fail(p.i, "expected %q, found %s", text, p.found())
	}
	return nil
}

func (p *parser) found() string {
	if p.tok().kind == endToken {
		return "the end of the text"
	}
	return fmt.Sprintf("%q", p.tok().text)
}

func (p *parser) word() (string, *CompileError) {
	t := p.tok()
	if t.kind != wordToken {
		return "", p.fail(p.i, "expected a name, found %s", p.found())
	}
	p.next()
	return t.text, nil
}

// global reads a directive or a declaration.
func (p *parser) global() *CompileError {
	if p.accept(";") {
		return nil
	}
	start := p.i
	attrs, err := p.attributes()
	if err != nil {
		return err
	}
	d := &decl{attrs: attrs, lo: p.i}
	switch w := p.tok().text; w {
	case "enable", "requires":
		return p.enable(start, w == "enable")
	case "const_assert":
		p.asserts = append(p.asserts, p.i+1)
		return p.skipTo(";")
	case "diagnostic":
		return p.skipTo(";")
	default:
		var ok bool
		if d.kind, ok = declKinds[w]; !ok {
			return p.fail(p.i, "expected a declaration, found %s", p.found())
		}
	}
	p.next()
	if d.kind == varDecl && p.tok().is("<") {
		d.list = p.i + 1
		if err := p.skipList(); err != nil {
			return err
		}
	}
	d.at = p.i
	if d.name, err = p.word(); err != nil {
		return err
	}
	if err := p.declared(d); err != nil {
		return err
	}
	d.hi = p.i
	if other := p.decls[d.name]; other != nil {
		return p.fail(d.at, "%s is declared twice", d.name)
	}
	p.decls[d.name] = d
	p.order = append(p.order, d)
	return nil
}

// declKinds has the kind of declaration of each keyword.
var declKinds = map[string]declKind{"const": constDecl, "override": overrideDecl, "var": varDecl, "alias": aliasDecl, "struct": structDecl, "fn": funcDecl}

// declared reads the rest of a declaration, after its name.
func (p *parser) declared(d *decl) *CompileError {
	switch d.kind {
	case structDecl:
		return p.members(d)
	case funcDecl:
		return p.function()
	case aliasDecl:
		if err := p.expect("="); err != nil {
			return err
		}
		d.typ = p.i
		return p.skipTo(";")
	}
	if p.accept(":") {
		d.typ = p.i
		if err := p.skipType(); err != nil {
			return err
		}
	}
	if p.accept("=") {
		d.init = p.i
	}
	return p.skipTo(";")
}

// enable reads the names of an enable directive, or skips those of a requires directive. start is the position of its keyword.
func (p *parser) enable(start int, keep bool) *CompileError {
	p.next()
	e := enable{lo: start}
	for p.tok().kind == wordToken {
		if keep {
			e.names = append(e.names, p.tok().text)
		}
		p.next()
		if !p.accept(",") {
			break
		}
	}
	e.hi = p.i
	p.enables = append(p.enables, e)
	return p.expect(";")
}

// attributes reads any number of attributes.
func (p *parser) attributes() ([]attribute, *CompileError) {
	var as []attribute
	for p.tok().is("@") {
		a := attribute{at: p.i}
		p.next()
		name, err := p.word()
		if err != nil {
			return nil, err
		}
		a.name = name
		if p.tok().is("(") {
			a.lo = p.i + 1
			if err := p.skipGroup(); err != nil {
				return nil, err
			}
			a.hi = p.i - 1
		}
		a.end = p.i
		as = append(as, a)
	}
	return as, nil
}

// skipGroup skips a pair of brackets and its contents.
func (p *parser) skipGroup() *CompileError {
	start := p.i
	var open []string
	for {
		switch t := p.tok(); {
		case t.kind == endToken:
			return p.fail(start, "%q is not closed", p.toks[start].text)
		case t.is("("):
			open = append(open, ")")
		case t.is("["):
			open = append(open, "]")
		case t.is("{"):
			open = append(open, "}")
		case t.is(")"), t.is("]"), t.is("}"):
			if t.text != open[len(open)-1] {
				return p.fail(p.i, "expected %q, found %q", open[len(open)-1], t.text)
			}
			open = open[:len(open)-1]
		}
		p.next()
		if len(open) == 0 {
			return nil
		}
	}
}

// skipTo skips all tokens to the next token text that is outside of brackets, and this token.
func (p *parser) skipTo(text string) *CompileError {
	for {
		switch t := p.tok(); {
		case t.kind == endToken, t.is(")"), t.is("]"), t.is("}"):
			return p.fail(p.i, "expected %q, found %s", text, p.found())
		case t.is(text):
			p.next()
			return nil
		case t.is("("), t.is("["), t.is("{"):
			if err := p.skipGroup(); err != nil {
				return err
			}
		default:
			p.next()
		}
	}
}

// skipList skips a template list <...>.
func (p *parser) skipList() *CompileError {
	start, depth := p.i, 0
	for {
		switch t := p.tok(); {
		case t.kind == endToken, t.is(";"), t.is("{"), t.is("}"), t.is(")"):
			return p.fail(start, "\"<\" is not closed")
		case t.is("("), t.is("["):
			if err := p.skipGroup(); err != nil {
				return err
			}
			continue
		case t.is("<") && p.toks[p.i+1].is("<") && p.toks[p.i+1].at == t.end():
			p.next() // a shift operator
		case t.is("<"):
			depth++
		case t.is(">"):
			if depth--; depth == 0 {
				p.next()
				return nil
			}
		}
		p.next()
	}
}

// skipType skips a type.
func (p *parser) skipType() *CompileError {
	if _, err := p.word(); err != nil {
		return err
	}
	if p.tok().is("<") {
		return p.skipList()
	}
	return nil
}

// members reads the members of a structure.
func (p *parser) members(d *decl) *CompileError {
	if err := p.expect("{"); err != nil {
		return err
	}
	for !p.accept("}") {
		attrs, err := p.attributes()
		if err != nil {
			return err
		}
		name, err := p.word()
		if err != nil {
			return err
		}
		if err := p.expect(":"); err != nil {
			return err
		}
		d.members = append(d.members, memberDecl{attrs, name, p.i})
		if err := p.skipType(); err != nil {
			return err
		}
		if !p.accept(",") && !p.tok().is("}") {
			return p.fail(p.i, "expected \",\" or \"}\", found %s", p.found())
		}
	}
	p.accept(";")
	return nil
}

// function skips the parameters, the result and the body of a function.
func (p *parser) function() *CompileError {
	if !p.tok().is("(") {
		return p.expect("(")
	}
	if err := p.skipGroup(); err != nil {
		return err
	}
	for !p.tok().is("{") {
		if p.tok().kind == endToken || p.tok().is(";") || p.tok().is("}") {
			return p.expect("{")
		}
		p.next()
	}
	return p.skipGroup()
}

// find returns the attribute of the given name, or nil.
func find(as []attribute, name string) *attribute {
	for i := range as {
		if as[i].name == name {
			return &as[i]
		}
	}
	return nil
}
