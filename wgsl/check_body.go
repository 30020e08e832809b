package wgsl

import (
	"strings"
	"sync"
)

// body reads a block of statements. Its names belong to the innermost scope, which the caller has
// created.
func (c *checker) body() *CompileError {
	if err := c.deeper(); err != nil {
		return err
	}
	defer func() { c.depth-- }()
	if err := c.expect("{"); err != nil {
		return err
	}
	for !c.accept("}") {
		if c.tok().kind == endToken {
			return c.expect("}")
		}
		if err := c.statement(); err != nil {
			return err
		}
	}
	return nil
}

// block reads a block as a new scope, and the attributes before it.
func (c *checker) block() *CompileError {
	attrs, err := c.attributes()
	if err != nil {
		return err
	}
	if err := c.attributesOf(attrs, onBlock); err != nil {
		return err
	}
	return c.scoped(c.body)
}

// scoped calls read in a new scope.
func (c *checker) scoped(read func() *CompileError) *CompileError {
	c.scopes = append(c.scopes, map[string]*local{})
	err := read()
	c.scopes = c.scopes[:len(c.scopes)-1]
	return err
}

// declare reads the name of a parameter or variable of a function.
func (c *checker) declare() (*local, *CompileError) {
	at := c.i
	name, err := c.word()
	if err != nil {
		return nil, err
	}
	scope := c.scopes[len(c.scopes)-1]
	if scope[name] != nil {
		return nil, c.fail(at, "%s is declared twice", name)
	}
	if isKeyword(name) || name == "_" || strings.HasPrefix(name, "__") {
		return nil, c.fail(at, "%s cannot be used as a name", name)
	}
	scope[name] = &local{}
	return scope[name], nil
}

// statements maps the keyword that begins a statement to the function that reads the statement.
var (
	statements     map[string]func(c *checker) *CompileError
	statementsMade sync.Once
)

func makeStatements() {
	statements = map[string]func(c *checker) *CompileError{
		"if": (*checker).branch, "switch": (*checker).choice, "loop": (*checker).block, "while": (*checker).while, "for": (*checker).loop,
		"continuing": (*checker).block, "break": (*checker).leave, "continue": (*checker).semicolon, "discard": (*checker).semicolon,
		"return": (*checker).result, "const_assert": (*checker).closing, "let": (*checker).local, "const": (*checker).local, "var": (*checker).local,
	}
}

// statement reads a statement.
func (c *checker) statement() *CompileError {
	if c.accept(";") {
		return nil
	}
	attrs, err := c.attributes()
	if err != nil {
		return err
	}
	if err := c.attributesOf(attrs, onBlock); err != nil {
		return err
	}
	t := c.tok()
	if t.is("{") {
		return c.scoped(c.body)
	}
	statementsMade.Do(makeStatements) // an initialiser would be a cycle
	if read := statements[t.text]; read != nil && t.kind == wordToken {
		c.next()
		return read(c)
	}
	if err := c.simple(); err != nil {
		return err
	}
	return c.expect(";")
}

func (c *checker) semicolon() *CompileError { return c.expect(";") }

// closing reads an expression and the semicolon after it.
func (c *checker) closing() *CompileError {
	if _, err := c.expression(); err != nil {
		return err
	}
	return c.expect(";")
}

func (c *checker) result() *CompileError {
	if c.accept(";") {
		return nil
	}
	return c.closing()
}

func (c *checker) leave() *CompileError {
	if c.accept("if") {
		return c.closing()
	}
	return c.expect(";")
}

func (c *checker) branch() *CompileError {
	for {
		if _, err := c.expression(); err != nil {
			return err
		}
		if err := c.block(); err != nil {
			return err
		}
		if !c.accept("else") {
			return nil
		}
		if !c.accept("if") {
			return c.block()
		}
	}
}

func (c *checker) while() *CompileError {
	if _, err := c.expression(); err != nil {
		return err
	}
	return c.block()
}

// loop reads a for statement after its keyword.
func (c *checker) loop() *CompileError {
	return c.scoped(func() *CompileError {
		if err := c.expect("("); err != nil {
			return err
		}
		if !c.accept(";") {
			if t := c.tok(); t.is("var") || t.is("let") || t.is("const") {
				c.next()
				if err := c.local(); err != nil {
					return err
				}
			} else if err := c.simple(); err != nil {
				return err
			} else if err := c.expect(";"); err != nil {
				return err
			}
		}
		if !c.accept(";") {
			if err := c.closing(); err != nil {
				return err
			}
		}
		if !c.tok().is(")") {
			if err := c.simple(); err != nil {
				return err
			}
		}
		if err := c.expect(")"); err != nil {
			return err
		}
		return c.block()
	})
}

// choice reads a switch statement after its keyword.
func (c *checker) choice() *CompileError {
	if _, err := c.expression(); err != nil {
		return err
	}
	if err := c.expect("{"); err != nil {
		return err
	}
	for !c.accept("}") {
		word := c.tok()
		if !c.accept("case") && !c.accept("default") {
			return c.fail(c.i, "expected case or default, found %s", c.found())
		}
		for word.text == "case" && !c.tok().is(":") && !c.tok().is("{") && !c.tok().is("@") {
			if !c.accept("default") {
				if _, err := c.expression(); err != nil {
					return err
				}
			}
			if !c.accept(",") {
				break
			}
		}
		c.accept(":")
		if err := c.block(); err != nil {
			return err
		}
	}
	return nil
}

// local reads a declaration of a name in a function, after its keyword. The name is not visible in
// its own value.
func (c *checker) local() *CompileError {
	kind := c.toks[c.i-1].text
	if kind == "var" && c.tok().is("<") {
		if err := c.skipList(); err != nil {
			return err
		}
	}
	name, value := c.i, place{}
	if _, err := c.word(); err != nil {
		return err
	}
	if c.accept(":") {
		if err := c.name(false); err != nil {
			return err
		}
	}
	if c.accept("=") {
		var err *CompileError
		if value, err = c.expression(); err != nil {
			return err
		}
	} else if kind != "var" {
		return c.fail(name, "%s %s has no value", kind, c.toks[name].text)
	}
	end := c.i
	c.i = name
	own, err := c.declare()
	if err != nil {
		return err
	}
	c.i = end
	if value.pointer {
		own.pointer = value.typ
	}
	return c.expect(";")
}

// assignments are the operators that may precede the = of an assignment.
var assignments = []string{"<<", ">>", "+", "-", "*", "/", "%", "&", "|", "^", ""}

// simple reads an assignment, an increment or a call, without a semicolon.
func (c *checker) simple() *CompileError {
	if c.tok().is("_") && c.toks[c.i+1].is("=") {
		c.i += 2
		_, err := c.expression()
		return err
	}
	to, err := c.operand()
	if err != nil {
		return err
	}
	at := c.i
	if c.operator("++") || c.operator("--") || c.toks[at-1].is(")") && (c.tok().is(";") || c.tok().is(")")) {
		return nil
	}
	for _, o := range assignments {
		if c.operator(o + "=") {
			c.load(to, at)
			_, err := c.expression()
			return err
		}
	}
	return c.fail(at, "expected an assignment or a call, found %s", c.found())
}

// pairing are the binary operators. Longer operators come before their prefixes.
var pairing = []string{"&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^"}

// expression reads an expression. It ignores precedence, which does not matter for names. The value
// of the expression counts as loaded. If the expression is a single pointer, it is returned.
func (c *checker) expression() (place, *CompileError) {
	at := c.i
	x, err := c.path()
	c.load(x, at)
	if !x.pointer {
		x = place{}
	}
	return x, err
}

// path reads an expression. If the expression is a single operand, its value does not count as
// loaded yet.
func (c *checker) path() (place, *CompileError) {
	if err := c.deeper(); err != nil {
		return place{}, err
	}
	defer func() { c.depth-- }()
	first := c.i
	x, err := c.operand()
next:
	for err == nil && !c.closes[c.i] {
		for _, o := range pairing {
			if !c.operator(o) {
				continue
			}
			c.load(x, first)
			first = c.i
			x, err = c.operand()
			c.load(x, first)
			x = place{}
			continue next
		}
		break
	}
	return x, err
}

// operand reads an operand with its prefix operators, indices and members.
func (c *checker) operand() (x place, err *CompileError) {
	if err := c.deeper(); err != nil {
		return x, err
	}
	defer func() { c.depth-- }()
	from := c.i
	for c.tok().kind == punctToken && strings.Contains("-!~&*", c.tok().text) {
		c.next()
	}
	before := c.i
	switch t := c.tok(); {
	case t.is("("):
		c.next()
		if x, err = c.path(); err == nil {
			err = c.expect(")")
		}
	case t.kind == numberToken:
		c.next()
	case t.kind == wordToken:
		x = c.placeOf(t.text)
		err = c.name(true)
	default:
		err = c.fail(c.i, "expected an expression, found %s", c.found())
	}
	if err == nil {
		x, err = c.parts(x)
	}
	for i := before - 1; i >= from; i-- {
		x = x.under(c.toks[i].text)
	}
	return x, err
}

// parts reads the indices and members after an operand.
func (c *checker) parts(x place) (place, *CompileError) {
	for {
		switch {
		case c.accept("["):
			if _, err := c.expression(); err != nil {
				return x, err
			}
			if err := c.expect("]"); err != nil {
				return x, err
			}
			x = x.element()
		case c.accept("."):
			name, err := c.word()
			if err != nil {
				return x, err
			}
			x = x.member(name)
		default:
			return x, nil
		}
	}
}

// name reads a name with its template list and, if calls are allowed here, its arguments.
func (c *checker) name(calls bool) *CompileError {
	if err := c.deeper(); err != nil {
		return err
	}
	defer func() { c.depth-- }()
	at := c.i
	name, err := c.word()
	if err != nil {
		return err
	}
	if err := c.resolve(name, at); err != nil {
		return err
	}
	if end, ok := c.lists[c.i]; ok {
		old := c.lenient
		c.lenient = c.lenient || strings.HasPrefix(name, "texture_")
		c.i++
		for c.i < end {
			if _, err := c.expression(); err != nil {
				return err
			}
			if c.i < end && !c.accept(",") {
				return c.expect(",")
			}
		}
		c.i, c.lenient = end+1, old
	}
	if !calls || !c.accept("(") {
		return nil
	}
	for !c.accept(")") {
		if _, err := c.expression(); err != nil {
			return err
		}
		if !c.accept(",") && !c.tok().is(")") {
			return c.expect(")")
		}
	}
	return nil
}

// resolve finds the declaration of the name at token at: in the function, in the module or in the language.
func (c *checker) resolve(name string, at int) *CompileError {
	for _, s := range c.scopes {
		if s[name] != nil {
			return nil
		}
	}
	if d := c.decls[name]; d != nil {
		c.uses[c.inside] = append(c.uses[c.inside], use{d, at})
		return nil
	}
	if isPredeclared(name) || c.lenient {
		return nil
	}
	return c.fail(at, "no definition in scope for %s", name)
}
