package emu

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

func (p *parser) module() {
	for p.peek() != 0 {
		p.definition()
	}
}

// definition reads a directive of the module.
func (p *parser) definition() {
	at := p.at
	switch w := p.word(); w {
	case ".version":
		p.src.version = p.word()
	case ".target":
		p.src.target = p.word()
		for p.accept(',') {
			p.word()
		}
	case ".address_size":
		if n := p.number(64); n != 64 {
			p.fail("the address size is %d bits, expected 64", n)
		}
	case ".file", ".loc":
		p.toLineEnd()
	case ".section":
		p.until('}')
	case ".pragma":
		p.until(';')
	case ".extern", ".visible", ".weak", ".common":
		p.linked(w)
	case ".shared", ".global", ".const":
		p.moduleVariable(spaceOfDirective[w], false)
	case ".entry", ".func":
		p.function(w == ".entry")
	default:
		p.at = at
		p.fail("expected a directive before %q", p.rest())
	}
}

var spaceOfDirective = map[string]space{".shared": spaceShared, ".global": spaceGlobal, ".const": spaceConst}

// linked reads a declaration after a linking directive.
func (p *parser) linked(linking string) {
	switch w := p.word(); {
	case spaceOfDirective[w] != spaceNone:
		p.moduleVariable(spaceOfDirective[w], linking == ".extern")
	case w == ".entry" || w == ".func":
		p.function(w == ".entry")
	default:
		p.fail("%s %s is %s", linking, w, unsupported)
	}
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

// moduleVariable reads a variable of the module. If it cannot read the variable, only kernels that use the
// variable cannot run.
func (p *parser) moduleVariable(s space, extern bool) {
	at, line := p.at, p.line
	err := p.try(func() {
		v := p.variable(limitOf[s])
		v.space, v.extern = s, extern
		if extern && s != spaceShared {
			p.fail("the variable %s is external: variables of other modules are not supported", v.name)
		}
		if extern && v.bytes != 0 {
			p.fail("the external array %s has a size, expected []", v.name)
		}
		if p.accept('=') {
			p.initialise(&v)
		}
		if !extern && v.bytes == 0 {
			p.fail("%s has no size", v.name)
		}
		p.expect(';')
		if _, ok := p.src.names[v.name]; ok {
			p.fail("a variable called %s is declared twice", v.name)
		}
		p.src.names[v.name] = len(p.src.variables)
		p.src.variables = append(p.src.variables, v)
	})
	if err == nil {
		return
	}
	p.at, p.line = at, line
	p.until(';')
	for _, w := range strings.FieldsFunc(p.s[at:p.at], func(r rune) bool { return r > 127 || !isName(byte(r)) }) {
		if _, known := p.src.names[w]; !known {
			p.src.unread[w] = err
		}
	}
}

// limitOf returns the largest number of bytes that a variable may have.
var limitOf = map[space]int{spaceShared: maxSharedBytes, spaceGlobal: maxArrayBytes, spaceConst: maxConstantBytes, spaceLocal: maxLocalBytes, spaceParam: maxParamBytes}

// try calls f and returns its syntax error.
func (p *parser) try(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*syntaxError)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	f()
	return nil
}

// array reads ".align n .type name[n];" after its space, in a function.
func (p *parser) array(s space) variable {
	v := p.variable(limitOf[s])
	if v.space = s; v.bytes == 0 {
		p.fail("%s has no size", v.name)
	}
	p.expect(';')
	return v
}

// variable reads a declaration after its space. The size is 0 if the declaration does not give one.
func (p *parser) variable(limit int) variable {
	v := variable{}
	w := p.word()
	for ; w == ".align" || w == ".attribute"; w = p.word() {
		if w == ".attribute" {
			p.expect('(')
			p.until(')')
			continue
		}
		v.align = p.alignment()
	}
	size := p.scalar(w)
	if size == 0 {
		p.fail("the type %s of a variable is not supported", w)
	}
	v.typ = strings.TrimPrefix(w, ".")
	v.align = max(v.align, size)
	w = p.word()
	for strings.HasPrefix(w, ".") { // of a pointer in a parameter
		if w == ".align" {
			p.alignment()
		}
		w = p.word()
	}
	if w == "" {
		p.fail("expected the name of a variable")
	}
	v.name, v.bytes = w, size
	for first := true; p.accept('['); first = false {
		if first && p.accept(']') {
			v.bytes = 0
			return v
		}
		n := p.number(uint64(limit))
		if n == 0 || n > limit/v.bytes {
			p.fail("%s has %d times %d bytes; at most %d bytes are allowed", v.name, n, v.bytes, limit)
		}
		v.bytes *= n
		p.expect(']')
	}
	if v.bytes > limit {
		p.fail("%s has %d bytes; at most %d are allowed", v.name, v.bytes, limit)
	}
	return v
}

func (p *parser) alignment() int {
	n := p.number(1 << 16)
	if n&(n-1) != 0 || n == 0 {
		p.fail("the alignment is %d, expected a power of two", n)
	}
	return n
}

// initialise reads the initial contents of a variable: a value, or nested lists of values.
func (p *parser) initialise(v *variable) {
	size := p.scalar("." + v.typ)
	open := v.bytes == 0
	if v.space == spaceShared || size > 8 {
		p.fail("%s cannot have initial contents", v.name)
	}
	at, depth := 0, 0
	for {
		switch {
		case p.accept('{'):
			if depth++; depth > maxNesting {
				p.fail("braces nested deeper than %d", maxNesting)
			}
			continue
		case p.accept('}'):
			depth--
		default:
			if !open && at+size > v.bytes || open && at+size > limitOf[v.space] {
				p.fail("there are more initial values than elements of %s", v.name)
			}
			p.initial(v, at, size)
			at += size
		}
		for depth > 0 && p.accept('}') {
			depth--
		}
		if depth <= 0 {
			break
		}
		if !p.accept(',') && p.peek() != '}' {
			p.fail("expected a comma before %q", p.rest())
		}
	}
	if depth < 0 {
		p.fail("there are more closing braces than opening braces")
	}
	if open {
		v.bytes = at
	}
}

// initial reads an initial value of the given size in bytes.
func (p *parser) initial(v *variable, at, size int) {
	s := symbol{line: p.line, at: at, bytes: size}
	if c := p.peek(); c == '-' || c >= '0' && c <= '9' {
		o := p.literal()
		if p.peek() == '(' { // a mask that selects bytes of an address
			if o.kind != operandInteger || o.bits == 0 {
				p.fail("the mask of an address must be an integer other than 0")
			}
			s.shift = bits.TrailingZeros64(o.bits) &^ 7
			p.address(v, s)
			return
		}
		p.keep(v, at, size, o)
		return
	}
	p.address(v, s)
}

// keep stores a number in the initial contents of v.
func (p *parser) keep(v *variable, at, size int, o operand) {
	bits := o.bits
	if o.kind == operandDouble {
		if f, ok := formatOf[v.typ]; ok {
			bits = f.to(f64(bits))
		}
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	if need := at + size; len(v.data) < need {
		v.data = append(v.data, make([]byte, need-len(v.data))...)
	}
	copy(v.data[at:at+size], b[:])
}

// address reads the name of the symbol whose address a variable contains.
func (p *parser) address(v *variable, s symbol) {
	closing := 0
	for p.accept('(') {
		if closing++; closing > maxNesting {
			p.fail("parentheses nested deeper than %d", maxNesting)
		}
	}
	if s.name = p.name(); s.name == "generic" && p.accept('(') {
		s.name = p.name()
		p.expect(')')
	}
	for c := p.peek(); c == '+' || c == '-'; c = p.peek() {
		p.accept('+')
		o := p.literal()
		if o.kind != operandInteger {
			p.fail("the offset of an address must be an integer")
		}
		s.offset += int64(o.bits)
	}
	for range closing {
		p.expect(')')
	}
	v.symbols = append(v.symbols, s)
}

// function reads a kernel or a function. If it cannot, it keeps the error and skips the body, so that the
// other functions are still read.
func (p *parser) function(kernel bool) {
	at, line := p.at, p.line
	f := &function{line: p.line, kernel: kernel, labels: map[string]int{}}
	p.f, p.arrays = f, map[string]bool{}
	f.err = p.try(func() { p.head(f); p.body(f) })
	if f.name == "" {
		panic(f.err)
	}
	if f.err != nil {
		p.at, p.line = at, line
		p.passFunction()
		*f = function{name: f.name, line: f.line, kernel: kernel, params: f.params, results: f.results, err: f.err, body: true}
	}
	p.f, p.scopes = nil, nil
	p.declare(f)
}

// passFunction skips the rest of a function that could not be read.
func (p *parser) passFunction() {
	for c := p.peek(); c != '{' && c != 0; c = p.peek() {
		if p.at++; c == ';' {
			return
		}
	}
	p.until('}')
}

// declare adds a function to the module.
func (p *parser) declare(f *function) {
	had := p.src.called[f.name]
	switch {
	case had == nil:
	case f.kernel || had.kernel || f.body && had.body:
		p.fail("a kernel or function called %s is defined twice", f.name)
	case !f.body:
		return
	default: // it was declared before
		f.index = had.index
		*had = *f
		return
	}
	p.src.called[f.name] = f
	if f.kernel {
		p.src.kernels = append(p.src.kernels, f)
	} else {
		f.index = len(p.src.functions)
		p.src.functions = append(p.src.functions, f)
	}
}

// head reads the part of a function before its body.
func (p *parser) head(f *function) {
	p.push()
	if !f.kernel && p.accept('(') {
		f.results = p.params(f)
	}
	f.name = p.name()
	if p.accept('(') {
		f.params = p.params(f)
	}
	for p.peek() == '.' {
		p.property(f)
	}
}

// params reads declarations of parameters. The parameters of a function are variables of its threads.
func (p *parser) params(f *function) (list []variable) {
	total := 0
	for !p.accept(')') {
		if len(list) > 0 {
			p.expect(',')
		}
		if w := p.word(); w != ".param" {
			p.fail("expected .param before %q", w)
		}
		v := p.variable(maxParamBytes)
		if v.space = spaceParam; v.bytes == 0 {
			p.fail("%s has no size", v.name)
		}
		if total += v.bytes; total > maxParamBytes {
			p.fail("more than %d bytes of parameters", maxParamBytes)
		}
		if list = append(list, v); !f.kernel {
			p.frame(v)
		}
	}
	return list
}

// property reads a directive between parameters and body.
func (p *parser) property(f *function) {
	switch w := p.word(); w {
	case ".reqntid", ".maxntid":
		f.exactly = w == ".reqntid"
		f.threads = p.three(w, 1024)
	case ".minnctapersm", ".maxnreg", ".maxclusterrank":
		p.number(1 << 20)
	case ".explicitcluster", ".noreturn":
	case ".pragma":
		p.until(';')
	case ".reqnctapercluster":
		n := p.three(w, 16)
		if n[1] > 1 || n[2] > 1 {
			p.fail("clusters that do not lie along x are %s", unsupported)
		}
		f.cluster = n[0]
	default:
		p.fail("%s is %s", w, unsupported)
	}
}

// three reads up to three numbers. Missing numbers are 1.
func (p *parser) three(what string, most uint64) [3]int {
	n := [3]int{1, 1, 1}
	for i := 0; ; i++ {
		if i == 3 {
			p.fail("%s has more than three numbers", what)
		}
		n[i] = p.number(most)
		if !p.accept(',') {
			return n
		}
	}
}

// body reads the statements of a function, or the end of a declaration without a body.
func (p *parser) body(f *function) {
	if !f.kernel && p.accept(';') {
		return
	}
	f.body = true
	p.expect('{')
	for len(p.scopes) > 0 {
		p.statement()
	}
	atEnd := false
	for _, at := range f.labels {
		atEnd = atEnd || at == len(f.statements)
	}
	if atEnd || len(f.statements) == 0 || !endsHard(f.statements[len(f.statements)-1]) {
		// The end of a body is a return.
		f.statements = append(f.statements, statement{line: p.line, guard: -1, name: "ret"})
	}
}

// endsHard reports whether control never passes the statement.
func endsHard(s statement) bool {
	return s.guard < 0 && (s.name == "ret" || s.name == "exit" || s.name == "bra" || s.name == "bra.uni")
}
