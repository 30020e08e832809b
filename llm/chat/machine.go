package chat

import (
	"errors"
	"fmt"
	"strings"
)

// machine runs a template. Methods report errors by a panic with an *Error, which run recovers.
type machine struct {
	limits Limits
	steps  int
	memory int
	depth  int
	line   int
	in     *Input
	global *scope
	out    *strings.Builder
}

// scope holds variables. Each loop and each macro call has its own scope. Most scopes have few
// variables, and creating a map for them would dominate the time.
type scope struct {
	few    [4]variable
	n      int // number of elements of few in use
	more   map[string]value
	parent *scope
}

type variable struct {
	name string
	v    value
}

func (s *scope) set(name string, v value) {
	for i := range s.few[:s.n] {
		if s.few[i].name == name {
			s.few[i].v = v
			return
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = variable{name, v}
		s.n++
		return
	}
	if s.more == nil {
		s.more = map[string]value{}
	}
	s.more[name] = v
}

func (s *scope) lookup(name string) (value, bool) {
	for ; s != nil; s = s.parent {
		for i := range s.few[:s.n] {
			if s.few[i].name == name {
				return s.few[i].v, true
			}
		}
		if v, ok := s.more[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (s *scope) inner() *scope { return &scope{parent: s} }

// macro is a function that the template defines.
type macro struct {
	def   *macroStmt
	scope *scope
}

func (m *machine) fail(format string, args ...any) { m.raise(ErrRun, format, args...) }

func (m *machine) raise(kind error, format string, args ...any) {
	panic(&Error{Line: m.line, Err: fmt.Errorf("%w: "+format, append([]any{kind}, args...)...)})
}

// step counts steps of work.
func (m *machine) step(n int) {
	if m.steps += n; m.steps > m.limits.Steps || n < 0 {
		m.raise(ErrLimit, "the template takes more than %d steps", m.limits.Steps)
	}
}

// allocate counts the memory of a value before the value is created. The count never decreases, so
// it also bounds the work.
func (m *machine) allocate(n int) {
	if m.memory += n; m.memory > m.limits.Memory || n < 0 || m.memory < 0 {
		m.raise(ErrLimit, "values take more than %d bytes", m.limits.Memory)
	}
}

// deeper counts the nesting of calls and values.
func (m *machine) deeper(n int) {
	if m.depth += n; m.depth > maxDepth {
		m.raise(ErrLimit, "calls or values are nested more than %d deep", maxDepth)
	}
}

// string counts the memory of a string.
func (m *machine) string(s string) string {
	m.allocate(len(s) + 16)
	return s
}

const (
	maxDepth  = 200
	valueSize = 16 // bytes of a value in a list
)

// run runs a template.
func (m *machine) run(body []stmt) (err error) {
	defer catch(&err)
	m.body(body, m.global)
	return nil
}

// flow says how a body ended.
type flow uint8

const (
	onward flow = iota
	breaks
	continues
)

func (m *machine) body(body []stmt, s *scope) flow {
	for _, st := range body {
		if f := m.stmt(st, s); f != onward {
			return f
		}
	}
	return onward
}

func (m *machine) stmt(st stmt, s *scope) flow {
	m.line = st.pos()
	m.step(1)
	switch st := st.(type) {
	case data:
		m.print(st.text)
	case output:
		m.print(m.text(m.eval(st.x, s)))
	case ifStmt:
		return m.ifStmt(st, s)
	case forStmt:
		return m.forStmt(&st, s)
	case *setStmt:
		m.set(st, s)
	case *macroStmt:
		s.set(st.name, &macro{st, s})
	case callStmt:
		fn := m.eval(st.call.fn, s)
		a := m.args(st.call.args, s)
		a.names, a.named = append(a.names, "caller"), append(a.named, &macro{st.body, s})
		m.print(m.text(m.call(fn, a)))
	case filterStmt:
		m.print(m.text(m.filtered(m.capture(st.body, s), st.filters, s)))
	case withStmt:
		inner := s.inner()
		for _, set := range st.sets {
			inner.set(set.targets[0].(name).name, m.eval(set.x, s))
		}
		return m.body(st.body, inner)
	case jump:
		if st.brk {
			return breaks
		}
		return continues
	}
	return onward
}

func (m *machine) print(s string) {
	if m.out.Len()+len(s) > m.limits.Output {
		m.raise(ErrLimit, "the template writes more than %d bytes of output", m.limits.Output)
	}
	m.out.WriteString(s)
}

// capture returns the output of a body.
func (m *machine) capture(body []stmt, s *scope) value {
	out := m.out
	m.out = new(strings.Builder)
	m.body(body, s.inner())
	text := m.out.String()
	m.out = out
	return m.string(text)
}

func (m *machine) filtered(v value, fs []*filter, s *scope) value {
	for _, f := range fs {
		m.line = f.pos()
		apply := filters[f.name]
		if apply == nil { // like Jinja, report an unknown filter only when it is executed
			m.raise(ErrSyntax, "there is no filter %q", f.name)
		}
		v = apply(m, v, m.args(f.args, s))
	}
	return v
}

func (m *machine) ifStmt(st ifStmt, s *scope) flow {
	for i, c := range st.conds {
		if truth(m.eval(c, s)) {
			return m.body(st.bodies[i], s)
		}
	}
	if len(st.bodies) > len(st.conds) {
		return m.body(st.bodies[len(st.conds)], s)
	}
	return onward
}

// loop is the value of the variable loop.
type loop struct {
	items   list
	i       int
	changed value
}

func (m *machine) forStmt(st *forStmt, s *scope) flow {
	items := m.iterate(m.eval(st.over, s))
	l := &loop{items: items, changed: undefined{}}
	if st.only != nil {
		l.items = nil
		for _, item := range items {
			inner := s.inner()
			m.assign(inner, st.targets, item)
			if truth(m.eval(st.only, inner)) {
				l.items = append(l.items, item)
			}
		}
	}
	for l.i = range l.items {
		m.step(1)
		inner := s.inner()
		inner.set("loop", l)
		m.assign(inner, st.targets, l.items[l.i])
		if m.body(st.body, inner) == breaks {
			break
		}
	}
	if len(l.items) == 0 {
		return m.body(st.orElse, s)
	}
	return onward
}

// assign assigns an item to a name, or the elements of an item to several names.
func (m *machine) assign(s *scope, names []string, item value) {
	if len(names) == 1 {
		s.set(names[0], item)
		return
	}
	parts := m.iterate(item)
	if len(parts) != len(names) {
		m.fail("%d values cannot be assigned to %d names", len(parts), len(names))
	}
	for i, n := range names {
		s.set(n, parts[i])
	}
}

// iterate returns the items of a value. The items of a mapping are its keys.
func (m *machine) iterate(v value) list {
	switch v := v.(type) {
	case list:
		return v
	case *dict:
		m.allocate(len(v.keys) * valueSize)
		return list(v.keys)
	case undefined:
		return nil
	case string:
		m.allocate(len(v) * valueSize)
		var l list
		for _, r := range v {
			l = append(l, string(r))
		}
		return l
	}
	m.fail("%s has no items", m.named(v))
	return nil
}

// named returns the description of a value in errors.
func (m *machine) named(v value) string {
	if u, ok := v.(undefined); ok && u.name != "" {
		return fmt.Sprintf("%q, which is undefined,", u.name)
	}
	return typeName(v)
}

func (m *machine) set(st *setStmt, s *scope) {
	var v value
	if st.x != nil {
		v = m.eval(st.x, s)
	} else {
		v = m.filtered(m.capture(st.body, s), st.filters, s)
	}
	values := list{v}
	if len(st.targets) > 1 {
		if values = m.iterate(v); len(values) != len(st.targets) {
			m.fail("%d values cannot be assigned to %d names", len(values), len(st.targets))
		}
	}
	for i, target := range st.targets {
		switch t := target.(type) {
		case name:
			m.allocate(valueSize)
			s.set(t.name, values[i])
		case attribute:
			ns, ok := m.eval(t.of, s).(*namespace)
			if !ok {
				m.fail("the value whose attribute is set is not a namespace: make one with namespace()")
			}
			m.allocate(2 * valueSize)
			ns.set(t.key.(literal).v, values[i])
		}
	}
}

// args evaluates arguments.
func (m *machine) args(c callArgs, s *scope) *arguments {
	a := &arguments{names: c.names[:len(c.names):len(c.names)]}
	for _, x := range c.pos {
		a.pos = append(a.pos, m.eval(x, s))
	}
	for _, x := range c.named {
		a.named = append(a.named, m.eval(x, s))
	}
	return a
}

// call calls a function or a macro.
func (m *machine) call(fn value, a *arguments) value {
	m.deeper(1)
	defer m.deeper(-1)
	switch fn := fn.(type) {
	case function:
		return fn.call(m, a)
	case *macro:
		return m.callMacro(fn, a)
	}
	m.fail("%s cannot be called", m.named(fn))
	return nil
}

func (m *machine) callMacro(fn *macro, a *arguments) value {
	d := fn.def
	if len(a.pos) > len(d.params) {
		m.fail("macro %s is called with %d arguments, expected at most %d", d.name, len(a.pos), len(d.params))
	}
	s := fn.scope.inner()
	line := m.line
	for i, p := range d.params {
		v := a.take(i, p, missing)
		if v == missing {
			v = undefined{p}
			if j := i - (len(d.params) - len(d.defaults)); j >= 0 {
				v = m.eval(d.defaults[j], s)
			}
		}
		s.set(p, v)
	}
	if c := a.take(-1, "caller", nil); c != nil {
		s.set("caller", c)
	}
	text := m.capture(d.body, s)
	m.line = line
	return text
}

// missing represents an argument that was not given.
var missing value = &struct{ int }{}

// newMachine returns a machine with the variables of the input.
func newMachine(in *Input, limits Limits) (*machine, error) {
	m := &machine{limits: limits.orDefault(), in: in, out: new(strings.Builder)}
	m.global = &scope{parent: &scope{more: globals}}
	err := m.variables(in)
	return m, err
}

// variables sets the variables that templates of models expect.
func (m *machine) variables(in *Input) (err error) {
	defer catch(&err)
	c := &converter{}
	vars := map[string]value{
		"messages": c.messages(in.Messages), "bos_token": in.BOS, "eos_token": in.EOS, "add_generation_prompt": in.AddGenerationPrompt,
	}
	if len(in.Tools) > 0 {
		vars["tools"] = c.tools(in.Tools)
	}
	for k, v := range in.Vars {
		vars[k] = c.value(v, 0)
	}
	m.global.parent = &scope{more: vars, parent: m.global.parent}
	if c.err != nil {
		return fmt.Errorf("chat: %w", errors.Join(ErrInput, c.err))
	}
	return nil
}
