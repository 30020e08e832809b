package emu

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of the text.
const (
	maxText         = 64 << 20
	maxRegisters    = 1 << 22 // of a kernel
	maxInstructions = 1 << 20 // of a kernel
	// The limit of the registers of all kernels of a text. Each declaration takes a byte.
	maxModuleRegisters = 1 << 26
	maxSharedBytes     = 227 << 10
	maxParamBytes      = 4096
	maxNesting         = 64
	maxArrayBytes      = 1 << 30 // of an array in global or constant memory
	maxConstantBytes   = 64 << 10
	maxLocalBytes      = 512 << 10 // of a function, parameters of its calls included
	maxFrameVariables  = 1 << 16   // of a function, parameters of its calls included
	// The limit of the instructions of all kernels of a text, each with the functions that it may call.
	maxModuleInstructions = 1 << 22
)

type operandKind uint8

const (
	operandNone     operandKind = iota
	operandRegister             // reg
	operandInteger              // bits
	operandFloat                // bits of an f32
	operandDouble               // bits of an f64
	operandName                 // name: an array, a parameter, a label or a special register
	operandAddress              // [list[0] + off], or [list[0], list[1]]
	operandVector               // {list...}
	operandPair                 // list[0]|list[1]
	operandSink                 // _
	operandVariable             // reg: a variable of the function
	operandGroup                // (list...)
)

// operand is a parsed operand.
type operand struct {
	kind operandKind
	not  bool // !p
	reg  int
	bits uint64
	off  int64
	name string
	list []operand
}

// statement is a parsed instruction.
type statement struct {
	line  int
	guard int // register, or -1
	not   bool
	name  string
	args  []operand
}

// register is a declared register.
type register struct {
	bytes uint8 // 0 for a predicate
}

// variable is an array or a parameter.
type variable struct {
	name         string
	typ          string // of an element, as f32
	bytes, align int
	space        space
	extern       bool
	data         []byte   // the initial contents, without trailing zeros
	symbols      []symbol // the addresses in the initial contents
}

// symbol is an address in the initial contents of a variable.
type symbol struct {
	line      int
	at, bytes int    // position in the variable
	shift     int    // the address is shifted right by this number of bits, if only some of its bytes are stored
	name      string // of a variable or a function
	offset    int64
}

// function is a parsed kernel or function.
type function struct {
	name       string
	line       int
	kernel     bool
	err        error // why it cannot be read
	index      int   // the index of a function in the module
	body       bool
	params     []variable
	results    []variable
	vars       []variable // of each thread: local arrays, and parameters of a function and of its calls
	shared     []variable
	threads    [3]int
	exactly    bool
	cluster    int // blocks of a cluster, 0 for no clusters
	registers  []register
	statements []statement
	labels     map[string]int // places in statements
	targets    map[string][]operand
}

// source is a parsed module.
type source struct {
	version, target string
	variables       []variable     // in global, constant and shared memory
	names           map[string]int // of variables
	kernels         []*function
	functions       []*function
	called          map[string]*function
	unread          map[string]error // other declared names, with the reason why the declaration could not be read
}

// syntaxError is the value with which the parser panics; parse returns it.
type syntaxError struct {
	line int
	msg  string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("emu: line %d: %s", e.line, e.msg) }

// scope is a pair of braces.
type scope struct {
	names map[string]int    // registers
	runs  map[string][2]int // %r<n>: first register and n
	vars  map[string]int    // variables of the function
	id    int
}

type parser struct {
	s      string
	at     int
	line   int
	src    *source
	f      *function
	arrays map[string]bool // in shared memory, of the function
	scopes []scope
	ids    int
	all    int // registers of the kernels so far
}

// parse reads the text of a module.
func parse(text string) (src *source, err error) {
	if len(text) > maxText {
		return nil, &syntaxError{0, "the text is too long"}
	}
	p := &parser{s: text, line: 1, src: &source{names: map[string]int{}, called: map[string]*function{}, unread: map[string]error{}}}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*syntaxError)
			if !ok {
				panic(r)
			}
			src, err = nil, e
		}
	}()
	p.module()
	return p.src, nil
}

func (p *parser) fail(format string, args ...any) {
	panic(&syntaxError{p.line, fmt.Sprintf(format, args...)})
}

// skip passes blanks and comments.
func (p *parser) skip() {
	for p.at < len(p.s) {
		switch c := p.s[p.at]; {
		case c == '\n':
			p.line++
			p.at++
		case c == ' ' || c == '\t' || c == '\r':
			p.at++
		case strings.HasPrefix(p.s[p.at:], "//"):
			if i := strings.IndexByte(p.s[p.at:], '\n'); i >= 0 {
				p.at += i
			} else {
				p.at = len(p.s)
			}
		case strings.HasPrefix(p.s[p.at:], "/*"):
			i := strings.Index(p.s[p.at+2:], "*/")
			if i < 0 {
				p.fail("a comment begins with /* and does not end with */")
			}
			p.line += strings.Count(p.s[p.at:p.at+2+i], "\n")
			p.at += i + 4
		default:
			return
		}
	}
}

func (p *parser) peek() byte {
	p.skip()
	if p.at == len(p.s) {
		return 0
	}
	return p.s[p.at]
}

func (p *parser) accept(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(c byte) {
	if !p.accept(c) {
		p.fail("expected %q before %q", c, p.rest())
	}
}

// rest returns the beginning of the text that is not read yet, for error messages.
func (p *parser) rest() string {
	s := p.s[p.at:]
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	return s[:min(len(s), 30)]
}

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c == '%'
}

// word reads a name, a directive or an instruction; "" if there is none.
func (p *parser) word() string {
	p.skip()
	from := p.at
	for p.at < len(p.s) {
		c := p.s[p.at]
		if !isName(c) && c != '.' && !(c == ':' && strings.HasPrefix(p.s[p.at:], "::")) {
			break
		}
		if c == ':' {
			p.at++
		}
		p.at++
	}
	return p.s[from:p.at]
}

// name reads a name without dots.
func (p *parser) name() string {
	p.skip()
	from := p.at
	for p.at < len(p.s) && isName(p.s[p.at]) {
		p.at++
	}
	if from == p.at {
		p.fail("expected a name before %q", p.rest())
	}
	return p.s[from:p.at]
}

func (p *parser) number(limit uint64) int {
	o := p.literal()
	if o.kind != operandInteger || o.bits > limit {
		p.fail("expected a number up to %d", limit)
	}
	return int(o.bits)
}

func (p *parser) push() {
	if len(p.scopes) == maxNesting {
		p.fail("braces nested deeper than %d", maxNesting)
	}
	p.ids++
	p.scopes = append(p.scopes, scope{map[string]int{}, map[string][2]int{}, map[string]int{}, p.ids})
}

func (p *parser) statement() {
	switch c := p.peek(); c {
	case 0:
		p.fail("the text ends within a kernel: expected }")
	case '{':
		p.at++
		p.push()
		return
	case '}':
		p.at++
		p.scopes = p.scopes[:len(p.scopes)-1]
		return
	case ';':
		p.at++
		return
	case '.':
		p.directive()
		return
	}
	s := statement{guard: -1}
	if p.accept('@') {
		s.not = p.accept('!')
		o := p.operand()
		if o.kind != operandRegister || p.f.registers[o.reg].bytes != 0 {
			p.fail("expected a predicate register after @")
		}
		s.guard = o.reg
	}
	p.skip()
	s.line = p.line
	s.name = p.word()
	if s.name == "" {
		p.fail("expected an instruction before %q", p.rest())
	}
	if s.guard < 0 && p.at < len(p.s) && p.peek() == ':' {
		p.at++
		p.label(s.name)
		return
	}
	p.operands(&s)
	if len(p.f.statements) == maxInstructions {
		p.fail("more than %d instructions", maxInstructions)
	}
	p.f.statements = append(p.f.statements, s)
}

// label defines a label before the next instruction.
func (p *parser) label(s string) {
	name := p.labelName(s, len(p.scopes)-1)
	if _, ok := p.f.labels[name]; ok {
		p.fail("label %s is defined twice", s)
	}
	p.f.labels[name] = len(p.f.statements)
	if p.peek() == '.' {
		p.labelled(name)
	}
}

// operands reads the operands of an instruction, up to its semicolon.
func (p *parser) operands(s *statement) {
	for !p.accept(';') {
		if len(s.args) > 0 {
			p.expect(',')
		}
		if strings.HasPrefix(s.name, "call") && p.accept('(') {
			s.args = append(s.args, operand{kind: operandGroup, list: p.list(')')})
			continue
		}
		s.args = append(s.args, p.operand())
		if len(s.args) > 16 {
			p.fail("too many operands")
		}
	}
}

// labelName returns a name that is unique in the function.
func (p *parser) labelName(s string, depth int) string {
	if depth == 0 {
		return s
	}
	return s + "@" + strconv.Itoa(p.scopes[depth].id)
}

func (p *parser) directive() {
	switch w := p.word(); w {
	case ".reg":
		p.registers(p.word())
	case ".shared":
		v := p.array(spaceShared)
		if p.arrays[v.name] {
			p.fail("an array called %s is declared twice", v.name)
		}
		p.arrays[v.name] = true
		p.f.shared = append(p.f.shared, v)
	case ".local":
		p.frame(p.array(spaceLocal))
	case ".param":
		p.frame(p.array(spaceParam))
	case ".loc", ".file":
		p.toLineEnd()
	case ".pragma":
		for p.peek() == '"' || p.peek() == ',' {
			if !p.accept(',') {
				p.quoted()
			}
		}
		p.expect(';')
	default:
		p.fail("%s is %s", w, unsupported)
	}
}

// labelled reads a directive that follows a label and uses it.
func (p *parser) labelled(label string) {
	at, line := p.at, p.line
	switch w := p.word(); w {
	case ".branchtargets":
		var list []operand
		for len(list) == 0 || p.accept(',') {
			list = append(list, p.operand())
			if len(list) > maxInstructions {
				p.fail("too many labels")
			}
		}
		p.expect(';')
		if p.f.targets == nil {
			p.f.targets = map[string][]operand{}
		}
		p.f.targets[label] = list
	case ".callprototype", ".calltargets":
		// The arguments of a call are checked against the declaration of its callee.
		p.until(';')
	default:
		p.at, p.line = at, line
	}
}

// frame declares a variable of each thread.
func (p *parser) frame(v variable) {
	if len(p.f.vars) == maxFrameVariables {
		p.fail("a function declares more than %d variables", maxFrameVariables)
	}
	sc := &p.scopes[len(p.scopes)-1]
	if _, ok := sc.vars[v.name]; ok {
		p.fail("a variable called %s is declared twice", v.name)
	}
	sc.vars[v.name] = len(p.f.vars)
	p.f.vars = append(p.f.vars, v)
}

// toLineEnd passes the rest of the line.
func (p *parser) toLineEnd() {
	if i := strings.IndexByte(p.s[p.at:], '\n'); i >= 0 {
		p.at += i
	} else {
		p.at = len(p.s)
	}
}

// quoted passes a string.
func (p *parser) quoted() {
	p.expect('"')
	for ; p.at < len(p.s); p.at++ {
		switch p.s[p.at] {
		case '\\':
			p.at++
		case '"':
			p.at++
			return
		case '\n':
			p.fail("a string does not end in its line: expected \"")
		}
	}
	p.fail("a string does not end: expected \"")
}

// until skips everything up to and including a character, ignoring the character in braces, strings
// and comments.
func (p *parser) until(end byte) {
	for depth := 0; ; {
		switch c := p.peek(); {
		case c == 0:
			p.fail("the text ends where %q is expected", end)
		case c == '"':
			p.quoted()
			continue
		case c == '{':
			depth++
		case c == end && depth <= 1 && (depth == 0 || end == '}'):
			p.at++
			return
		case c == '}':
			depth--
		}
		p.at++
	}
}

func (p *parser) registers(t string) {
	if t == ".v2" || t == ".v4" {
		p.fail("registers of vectors are not supported")
	}
	r := register{uint8(p.scalar(t))}
	sc := &p.scopes[len(p.scopes)-1]
	for {
		name, first, n := p.name(), len(p.f.registers), 1
		if p.accept('<') {
			n = p.number(maxRegisters)
			p.expect('>')
			sc.runs[name] = [2]int{first, n}
		} else {
			sc.names[name] = first
		}
		if first+n > maxRegisters {
			p.fail("more than %d registers", maxRegisters)
		}
		if p.all += n; p.all > maxModuleRegisters {
			p.fail("more than %d registers in all kernels", maxModuleRegisters)
		}
		for range n {
			p.f.registers = append(p.f.registers, r)
		}
		if !p.accept(',') {
			break
		}
	}
	p.expect(';')
}

// register returns the number of a declared register.
func (p *parser) register(name string) (int, bool) {
	digits := len(name)
	for digits > 0 && name[digits-1] >= '0' && name[digits-1] <= '9' {
		digits--
	}
	n, err := strconv.Atoi(name[digits:])
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if r, ok := p.scopes[i].names[name]; ok {
			return r, true
		}
		if run, ok := p.scopes[i].runs[name[:digits]]; ok && err == nil && n < run[1] {
			return run[0] + n, true
		}
	}
	return 0, false
}

// variableOf returns the number of a variable of the function.
func (p *parser) variableOf(name string) (int, bool) {
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if v, ok := p.scopes[i].vars[name]; ok {
			return v, true
		}
	}
	return 0, false
}
