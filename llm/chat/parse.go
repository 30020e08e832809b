package chat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits of a template's source.
const (
	maxSource = 1 << 20
	maxNested = 500 // nesting of expressions and statements
)

// parser converts tokens to statements. Methods report errors by a panic with an *Error, which parse recovers.
type parser struct {
	tokens []token
	depth  int
	loops  int
}

// parse parses a template.
func parse(src string) (body []stmt, err error) {
	if len(src) > maxSource {
		return nil, fmt.Errorf("chat: %w: the template has %d bytes, expected at most %d", ErrLimit, len(src), maxSource)
	}
	tokens, err := tokenize(src)
	if err != nil {
		return nil, err
	}
	defer catch(&err)
	p := &parser{tokens: tokens}
	body = p.body()
	if t := p.peek(); t.kind != tokEOF {
		p.fail("unexpected {%% %s %%}", p.tokens[1].text)
	}
	return body, nil
}

// catch recovers an error.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	default:
		panic(r)
	}
}

func (p *parser) fail(format string, args ...any) {
	panic(&Error{Line: p.peek().line, Err: fmt.Errorf("%w: "+format, append([]any{ErrSyntax}, args...)...)})
}

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) take() token {
	t := p.tokens[0]
	if t.kind != tokEOF {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *parser) line() line { return line(p.peek().line) }

// is reports whether the next token is an operator or a name.
func (p *parser) is(text string) bool {
	t := p.peek()
	return (t.kind == tokOperator || t.kind == tokName) && t.text == text
}

func (p *parser) accept(text string) bool {
	if p.is(text) {
		p.take()
		return true
	}
	return false
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.fail("unexpected %s, expected %q", describe(p.peek()), text)
	}
}

func describe(t token) string {
	switch t.kind {
	case tokEOF:
		return "end of the template"
	case tokData:
		return "text"
	}
	return strconv.Quote(t.text)
}

func (p *parser) ident() string {
	t := p.peek()
	if t.kind != tokName {
		p.fail("unexpected %s, expected a name", describe(t))
	}
	return p.take().text
}

func (p *parser) end(close string) {
	if t := p.peek(); t.kind != tokEnd || t.text != close {
		p.fail("unexpected %s, expected %q", describe(t), close)
	}
	p.take()
}

// enter begins a level of nesting, and leave ends it.
func (p *parser) enter() {
	if p.depth++; p.depth > maxNested {
		panic(&Error{Line: p.peek().line, Err: fmt.Errorf("%w: nested more than %d levels deep", ErrLimit, maxNested)})
	}
}

func (p *parser) leave(n int) { p.depth -= n }

// body parses statements up to a tag that ends a body.
func (p *parser) body() (body []stmt) {
	p.enter()
	defer p.leave(1)
	for {
		switch t := p.peek(); {
		case t.kind == tokData:
			p.take()
			body = append(body, data{line(t.line), t.text})
		case t.kind == tokBegin && t.text == "{{":
			p.take()
			body = append(body, output{line(t.line), p.tuple()})
			p.end("}}")
		case t.kind == tokBegin && statements[p.tokens[1].text] != nil && p.tokens[1].kind == tokName:
			p.take()
			if s := statements[p.take().text](p, line(t.line)); s != nil {
				body = append(body, s)
			}
		case t.kind == tokBegin && forbidden[p.tokens[1].text]:
			p.fail("{%% %s %%} is not available: a template sees no files and no other templates", p.tokens[1].text)
		default:
			return body
		}
	}
}

// forbidden are the statements of Jinja that need a loader.
var forbidden = map[string]bool{"include": true, "import": true, "from": true, "extends": true, "block": true}

// statements has the functions that parse a statement after its name.
var statements map[string]func(p *parser, at line) stmt

func init() {
	statements = map[string]func(p *parser, at line) stmt{
		"if": (*parser).ifStmt, "for": (*parser).forStmt, "set": (*parser).setStmt, "macro": (*parser).macroStmt,
		"call": (*parser).callStmt, "filter": (*parser).filterStmt, "with": (*parser).withStmt, "generation": (*parser).generation,
		"break": (*parser).breakStmt, "continue": (*parser).continueStmt,
	}
}

// closed parses a body up to {% with one of the names, and returns this name.
func (p *parser) closed(at line, names ...string) ([]stmt, string) {
	p.end("%}")
	body := p.body()
	if t := p.peek(); t.kind == tokBegin && slices.Contains(names, p.tokens[1].text) {
		p.take()
		return body, p.take().text
	}
	if p.peek().kind == tokBegin {
		p.fail("unexpected {%% %s %%}, expected {%% %s %%} for the tag in line %d", p.tokens[1].text, strings.Join(names, " or "), at)
	}
	p.fail("unexpected %s, expected {%% %s %%} for the tag in line %d", describe(p.peek()), strings.Join(names, " or "), at)
	return nil, ""
}

func (p *parser) ifStmt(at line) stmt {
	s := ifStmt{line: at}
	for {
		s.conds = append(s.conds, p.tuple())
		body, end := p.closed(at, "elif", "else", "endif")
		s.bodies = append(s.bodies, body)
		if end == "else" {
			body, end = p.closed(at, "endif")
			s.bodies = append(s.bodies, body)
		}
		if end == "endif" {
			p.end("%}")
			return s
		}
	}
}

func (p *parser) forStmt(at line) stmt {
	s := forStmt{line: at}
	for {
		paren := p.accept("(")
		s.targets = append(s.targets, p.ident())
		if p.accept(")") != paren && paren {
			for p.accept(",") {
				s.targets = append(s.targets, p.ident())
			}
			p.expect(")")
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect("in")
	s.over = p.tupleOf((*parser).or)
	if p.accept("if") {
		s.only = p.expr()
	}
	if p.is("recursive") {
		p.fail("recursive loops are not supported")
	}
	p.loops++
	body, end := p.closed(at, "else", "endfor")
	p.loops--
	s.body = body
	if end == "else" {
		s.orElse, _ = p.closed(at, "endfor")
	}
	p.end("%}")
	return s
}

func (p *parser) setStmt(at line) stmt {
	s := &setStmt{line: at}
	for {
		x := expr(name{p.line(), p.ident()})
		if p.accept(".") {
			x = attribute{line: at, of: x, key: literal{p.line(), p.ident()}, dot: true}
		}
		s.targets = append(s.targets, x)
		if !p.accept(",") {
			break
		}
	}
	if p.accept("=") {
		s.x = p.tuple()
		p.end("%}")
		return s
	}
	s.filters = p.filters()
	s.body, _ = p.closed(at, "endset")
	p.end("%}")
	return s
}

// filters parses filters without their operand.
func (p *parser) filters() (fs []*filter) {
	for p.accept("|") {
		fs = append(fs, p.filter(nil))
	}
	return fs
}

func (p *parser) macroStmt(at line) stmt {
	s := &macroStmt{line: at, name: p.ident()}
	p.expect("(")
	p.params(s)
	p.macroBody(s, "endmacro")
	return s
}

func (p *parser) params(s *macroStmt) {
	for !p.accept(")") {
		s.params = append(s.params, p.ident())
		if p.accept("=") {
			s.defaults = append(s.defaults, p.expr())
		} else if len(s.defaults) > 0 {
			p.fail("parameter %s needs a default, as the one before has one", s.params[len(s.params)-1])
		}
		if !p.is(")") {
			p.expect(",")
		}
	}
}

func (p *parser) macroBody(s *macroStmt, end string) {
	loops := p.loops
	p.loops = 0
	s.body, _ = p.closed(s.line, end)
	p.loops = loops
	p.end("%}")
}

func (p *parser) callStmt(at line) stmt {
	s := callStmt{line: at, body: &macroStmt{line: at, name: "caller"}}
	if p.accept("(") {
		p.params(s.body)
	}
	c, ok := p.expr().(call)
	if !ok {
		p.fail("expected a call of a macro")
	}
	s.call = &c
	p.macroBody(s.body, "endcall")
	return s
}

func (p *parser) filterStmt(at line) stmt {
	s := filterStmt{line: at, filters: []*filter{p.filter(nil)}}
	s.filters = append(s.filters, p.filters()...)
	s.body, _ = p.closed(at, "endfilter")
	p.end("%}")
	return s
}

func (p *parser) withStmt(at line) stmt {
	s := withStmt{line: at}
	for p.peek().kind == tokName {
		set := &setStmt{line: at, targets: []expr{name{p.line(), p.ident()}}}
		p.expect("=")
		set.x = p.expr()
		s.sets = append(s.sets, set)
		if !p.accept(",") {
			break
		}
	}
	s.body, _ = p.closed(at, "endwith")
	p.end("%}")
	return s
}

// generation parses the block that marks the model's own text; the block outputs its body.
func (p *parser) generation(at line) stmt {
	body, _ := p.closed(at, "endgeneration")
	p.end("%}")
	return ifStmt{line: at, bodies: [][]stmt{body}}
}

func (p *parser) breakStmt(at line) stmt    { return p.jump(at, true) }
func (p *parser) continueStmt(at line) stmt { return p.jump(at, false) }

func (p *parser) jump(at line, brk bool) stmt {
	if p.loops == 0 {
		p.fail("break and continue belong in a loop")
	}
	p.end("%}")
	return jump{at, brk}
}
