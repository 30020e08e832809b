package emu

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Limits of the text.
const (
	maxText         = 64 << 20
	maxRegisters    = 1 << 22 // that a kernel declares
	maxInstructions = 1 << 20 // of a kernel
	// That all kernels of a text declare, of which a byte each is kept.
	maxModuleRegisters = 1 << 26
	maxSharedBytes     = 227 << 10
	maxParamBytes      = 4096
	maxNesting         = 64
)

// operandKind is what an operand is.
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
)

// operand is an operand as it stands in the text.
type operand struct {
	kind operandKind
	not  bool // !p
	reg  int
	bits uint64
	off  int64
	name string
	list []operand
}

// statement is an instruction as it stands in the text.
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

// variable is an array in shared memory or a parameter.
type variable struct {
	name         string
	typ          string // of an element, as f32
	bytes, align int
	extern       bool
}

// function is a kernel as it stands in the text.
type function struct {
	name       string
	line       int
	params     []variable
	shared     []variable
	threads    [3]int
	exactly    bool
	cluster    int // blocks of a cluster, 0 for no clusters
	registers  []register
	statements []statement
	labels     map[string]int // places in statements
}

// source is a parsed module.
type source struct {
	version, target string
	shared          []variable
	functions       []*function
}

// syntaxError is what the parser panics with, and parse returns.
type syntaxError struct {
	line int
	msg  string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("emu: line %d: %s", e.line, e.msg) }

// scope is a pair of braces.
type scope struct {
	names map[string]int    // registers
	runs  map[string][2]int // %r<n>: first register and n
	id    int
}

type parser struct {
	s      string
	at     int
	line   int
	f      *function
	scopes []scope
	ids    int
	all    int // registers of the kernels so far
}

// parse reads the text of a module.
func parse(text string) (src *source, err error) {
	if len(text) > maxText {
		return nil, &syntaxError{0, "the text is too long"}
	}
	p := &parser{s: text, line: 1}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*syntaxError)
			if !ok {
				panic(r)
			}
			src, err = nil, e
		}
	}()
	return p.module(), nil
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
				p.fail("a comment without end")
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

// rest returns what comes next, for messages.
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

func (p *parser) module() *source {
	src := &source{}
	for {
		if p.peek() == 0 {
			break
		}
		switch w := p.word(); w {
		case ".version":
			src.version = p.word()
		case ".target":
			src.target = p.word()
			for p.accept(',') {
				p.word()
			}
		case ".address_size":
			if n := p.number(64); n != 64 {
				p.fail("addresses of %d bits", n)
			}
		case ".extern":
			if w := p.word(); w != ".shared" {
				p.fail("%s is not supported", w)
			}
			src.shared = append(src.shared, p.array(true))
		case ".shared":
			src.shared = append(src.shared, p.array(false))
		case ".visible", ".weak":
		case ".entry":
			f := p.function()
			for _, g := range src.functions {
				if g.name == f.name {
					p.fail("two kernels are called %s", f.name)
				}
			}
			src.functions = append(src.functions, f)
		default:
			p.fail("expected a directive before %q", w+p.rest())
		}
	}
	return src
}

// scalar returns the bytes of a type, 0 for .pred.
func (p *parser) scalar(t string) int {
	switch t {
	case ".pred":
		return 0
	case ".b8", ".u8", ".s8":
		return 1
	case ".b16", ".u16", ".s16", ".f16", ".bf16":
		return 2
	case ".b32", ".u32", ".s32", ".f32", ".f16x2", ".bf16x2":
		return 4
	case ".b64", ".u64", ".s64", ".f64":
		return 8
	case ".b128":
		return 16
	}
	p.fail("no type is called %q", t)
	return 0
}

// array reads ".align n .type name[n];" after its space.
func (p *parser) array(extern bool) variable {
	v := p.variable(maxSharedBytes)
	v.extern = extern
	if extern && v.bytes != 0 {
		p.fail("an external array with a size")
	}
	p.expect(';')
	return v
}

func (p *parser) variable(limit int) variable {
	v := variable{}
	w := p.word()
	if w == ".align" {
		v.align = p.number(1 << 16)
		if v.align&(v.align-1) != 0 || v.align == 0 {
			p.fail("an alignment of %d", v.align)
		}
		w = p.word()
	}
	size := p.scalar(w)
	if size == 0 {
		p.fail("a variable of type %s", w)
	}
	v.typ = strings.TrimPrefix(w, ".")
	v.align = max(v.align, size)
	w = p.word()
	for strings.HasPrefix(w, ".") { // of a pointer in a parameter
		if w == ".align" {
			p.number(1 << 16)
		}
		w = p.word()
	}
	if w == "" {
		p.fail("a variable without a name")
	}
	v.name, v.bytes = w, size
	if p.accept('[') {
		if p.accept(']') {
			v.bytes = 0
			return v
		}
		n := p.number(uint64(limit))
		v.bytes *= n
		p.expect(']')
	}
	if v.bytes > limit || v.bytes == 0 {
		p.fail("%s has %d bytes", v.name, v.bytes)
	}
	return v
}

func (p *parser) function() *function {
	f := &function{name: p.name(), line: p.line, labels: map[string]int{}}
	p.f = f
	if p.accept('(') {
		total := 0
		for !p.accept(')') {
			if len(f.params) > 0 {
				p.expect(',')
			}
			if w := p.word(); w != ".param" {
				p.fail("expected .param, not %q", w)
			}
			v := p.variable(maxParamBytes)
			total += v.bytes
			if total > maxParamBytes {
				p.fail("more than %d bytes of parameters", maxParamBytes)
			}
			f.params = append(f.params, v)
		}
	}
	for p.peek() == '.' {
		switch w := p.word(); w {
		case ".reqntid", ".maxntid":
			f.threads, f.exactly = [3]int{1, 1, 1}, w == ".reqntid"
			for i := 0; ; i++ {
				if i == 3 {
					p.fail("%s with more than three numbers", w)
				}
				f.threads[i] = p.number(1024)
				if !p.accept(',') {
					break
				}
			}
		case ".minnctapersm", ".maxnreg", ".maxclusterrank":
			p.number(1 << 20)
		case ".explicitcluster":
		case ".reqnctapercluster":
			f.cluster = 1
			for i := 0; ; i++ {
				if i == 3 {
					p.fail("%s with more than three numbers", w)
				}
				n := p.number(16)
				if f.cluster *= n; i > 0 && n > 1 {
					p.fail("clusters that do not lie along x are not supported")
				}
				if !p.accept(',') {
					break
				}
			}
		default:
			p.fail("%s is not supported", w)
		}
	}
	p.expect('{')
	p.scopes = nil
	p.push()
	for len(p.scopes) > 0 {
		p.statement()
	}
	atEnd := false
	for _, at := range f.labels {
		atEnd = atEnd || at == len(f.statements)
	}
	if atEnd || len(f.statements) == 0 || !endsHard(f.statements[len(f.statements)-1]) {
		// Falling off the end is a return.
		f.statements = append(f.statements, statement{line: p.line, guard: -1, name: "ret"})
	}
	return f
}

// endsHard reports whether nothing runs after the statement.
func endsHard(s statement) bool {
	return s.guard < 0 && (s.name == "ret" || s.name == "exit" || s.name == "bra" || s.name == "bra.uni")
}

func (p *parser) push() {
	if len(p.scopes) == maxNesting {
		p.fail("braces nested deeper than %d", maxNesting)
	}
	p.ids++
	p.scopes = append(p.scopes, scope{map[string]int{}, map[string][2]int{}, p.ids})
}

func (p *parser) statement() {
	switch c := p.peek(); c {
	case 0:
		p.fail("the text ends within a kernel")
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
			p.fail("a guard that is no predicate")
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
		name := p.labelName(s.name, len(p.scopes)-1)
		if _, ok := p.f.labels[name]; ok {
			p.fail("label %s is placed twice", s.name)
		}
		p.f.labels[name] = len(p.f.statements)
		return
	}
	for !p.accept(';') {
		if len(s.args) > 0 {
			p.expect(',')
		}
		s.args = append(s.args, p.operand())
		if len(s.args) > 16 {
			p.fail("too many operands")
		}
	}
	if len(p.f.statements) == maxInstructions {
		p.fail("more than %d instructions", maxInstructions)
	}
	p.f.statements = append(p.f.statements, s)
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
		v := p.array(false)
		for _, o := range p.f.shared {
			if o.name == v.name {
				p.fail("two arrays are called %s", v.name)
			}
		}
		p.f.shared = append(p.f.shared, v)
	case ".loc", ".pragma":
		for p.at < len(p.s) && p.s[p.at] != '\n' && p.s[p.at] != ';' {
			p.at++
		}
	default:
		p.fail("%s is not supported", w)
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

// operand reads one operand.
func (p *parser) operand() operand {
	switch c := p.peek(); {
	case c == '{':
		p.at++
		return operand{kind: operandVector, list: p.list('}')}
	case c == '[':
		p.at++
		p.flat("an address")
		o := operand{kind: operandAddress, list: []operand{p.operand()}}
		switch o.list[0].kind {
		case operandRegister, operandName, operandInteger:
		default:
			p.fail("an address that is none")
		}
		if p.peek() == '+' || p.peek() == '-' {
			p.accept('+')
			off := p.literal()
			if off.kind != operandInteger {
				p.fail("an offset that is no integer")
			}
			o.off = int64(off.bits)
		}
		if p.accept(',') {
			o.list = append(o.list, p.operand())
		}
		p.expect(']')
		return o
	case c == '!':
		p.at++
		p.flat("! before")
		o := p.operand()
		if o.kind != operandRegister {
			p.fail("! before something that is no predicate")
		}
		o.not = true
		return o
	case c == '-' || c >= '0' && c <= '9':
		return p.literal()
	case isName(c):
		return p.named()
	}
	p.fail("expected an operand before %q", p.rest())
	return operand{}
}

// flat fails where what comes next holds operands: none of these is in an address, or
// negated, and a text could nest them without end.
func (p *parser) flat(where string) {
	if c := p.peek(); c == '[' || c == '!' || c == '{' {
		p.fail("%s of %q", where, p.rest())
	}
}

func (p *parser) list(end byte) []operand {
	var list []operand
	for !p.accept(end) {
		if len(list) > 0 {
			p.expect(',')
		}
		if len(list) == 512 {
			p.fail("too many operands")
		}
		o := p.operand()
		if o.kind == operandVector || o.kind == operandAddress {
			p.fail("a list in a list")
		}
		list = append(list, o)
	}
	return list
}

// named reads what begins with a name: a register, an array, a label, or a pair of registers.
func (p *parser) named() operand {
	o := p.one()
	if p.at < len(p.s) && p.s[p.at] == '|' {
		p.at++
		return operand{kind: operandPair, list: []operand{o, p.one()}}
	}
	return o
}

// one is named but for pairs.
func (p *parser) one() operand {
	name := p.name()
	o := operand{kind: operandName, name: name}
	if name == "_" {
		o = operand{kind: operandSink}
	} else if r, ok := p.register(name); ok {
		o = operand{kind: operandRegister, reg: r}
	} else if p.at < len(p.s) && p.s[p.at] == '.' { // %tid.x
		p.at++
		o.name += "." + p.name()
	}
	if o.kind == operandName {
		// A label of an inner scope hides those outside; which of them is placed
		// is known at the end only, so that the name says where it was used.
		o.bits = uint64(len(p.scopes))
		if len(p.scopes) > 1 {
			for i := len(p.scopes) - 1; i > 0; i-- {
				o.list = append(o.list, operand{name: p.labelName(name, i)})
			}
		}
	}
	return o
}

// literal reads a number.
func (p *parser) literal() operand {
	neg := p.accept('-')
	p.skip()
	from := p.at
	for p.at < len(p.s) && (isName(p.s[p.at]) || p.s[p.at] == '.') {
		p.at++
	}
	s := p.s[from:p.at]
	if len(s) == 10 && (s[:2] == "0f" || s[:2] == "0F") && !neg {
		v, err := strconv.ParseUint(s[2:], 16, 32)
		if err != nil {
			p.fail("the number %q", s)
		}
		return operand{kind: operandFloat, bits: v}
	}
	if len(s) == 18 && (s[:2] == "0d" || s[:2] == "0D") && !neg {
		v, err := strconv.ParseUint(s[2:], 16, 64)
		if err != nil {
			p.fail("the number %q", s)
		}
		return operand{kind: operandDouble, bits: v}
	}
	if strings.Contains(s, ".") {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			p.fail("the number %q", s)
		}
		if neg {
			v = -v
		}
		return operand{kind: operandDouble, bits: math.Float64bits(v)}
	}
	s = strings.TrimSuffix(s, "U")
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil || strings.Contains(s, "_") {
		p.fail("the number %q", s)
	}
	if neg {
		v = -v
	}
	return operand{kind: operandInteger, bits: v}
}
