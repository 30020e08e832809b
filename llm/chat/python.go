package chat

import (
	"encoding/json"
	"strings"
)

// pythonCalls parses a text that consists of calls, such as [weather(city="Bonn", days=3)], with or
// without the brackets. It uses the parser of templates, which have Python's literals.
func pythonCalls(text string) (found []ToolCall) {
	if len(text) > maxSource || !strings.HasSuffix(strings.TrimRight(text, "]"), ")") {
		return nil
	}
	l := &lexer{src: text, line: 1}
	for l.space(); l.pos < len(l.src) && l.err == nil; l.space() {
		l.token(l.src[l.pos:])
	}
	if l.err != nil {
		return nil
	}
	l.add(tokEOF, "")
	var err error
	var x expr
	func() {
		defer catch(&err)
		p := &parser{tokens: l.tokens}
		x = p.tuple()
		if p.peek().kind != tokEOF {
			p.fail("unexpected %s", describe(p.peek()))
		}
	}()
	if err != nil {
		return nil
	}
	calls := []expr{x}
	if l, ok := x.(listExpr); ok {
		calls = l.items
	}
	for _, x := range calls {
		c, ok := pythonCall(x)
		if !ok {
			return nil
		}
		found = append(found, c)
	}
	return found
}

// pythonCall converts a call with named, literal arguments to a tool call.
func pythonCall(x expr) (ToolCall, bool) {
	c, ok := x.(call)
	if !ok || len(c.args.pos) > 0 {
		return ToolCall{}, false
	}
	fn := ""
	for x := c.fn; ; {
		switch f := x.(type) {
		case name:
			fn = f.name + fn
		case attribute:
			key, ok := f.key.(literal)
			if s, isString := key.v.(string); ok && isString && f.dot {
				fn, x = "."+s+fn, f.of
				continue
			}
			return ToolCall{}, false
		default:
			return ToolCall{}, false
		}
		break
	}
	d := dictExpr{line: c.line, values: c.args.named}
	for _, n := range c.args.names {
		d.keys = append(d.keys, literal{c.line, n})
	}
	if !isLiteral(d) {
		return ToolCall{}, false
	}
	var err error
	var text string
	func() {
		defer catch(&err)
		m := &machine{limits: Limits{}.orDefault()}
		text = m.text(toJSON(m, m.eval(d, &scope{}), &arguments{}))
	}()
	return ToolCall{Name: fn, Arguments: json.RawMessage(text)}, err == nil && json.Valid([]byte(text))
}

// isLiteral reports whether an expression is a literal.
func isLiteral(x expr) bool {
	switch x := x.(type) {
	case literal:
		return true
	case listExpr:
		return literals(x.items)
	case dictExpr:
		return literals(x.keys) && literals(x.values)
	case unary:
		return x.op != "not" && isLiteral(x.x)
	}
	return false
}

func literals(xs []expr) bool {
	for _, x := range xs {
		if !isLiteral(x) {
			return false
		}
	}
	return true
}
