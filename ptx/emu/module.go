package emu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rayo-go/rayo/ptx"
)

// Module is PTX made ready to run. It is safe for concurrent use.
type Module struct {
	lines   []string
	listing *ptx.Listing // nil if the text came from elsewhere
	kernels []*Kernel
}

// Load makes the kernels of a module ready to run. What runs is the text that
// the driver would get. Findings have the author's lines if the module recorded
// them: see [ptx.Module.RecordPositions]. The module may be used again afterwards.
func Load(m *ptx.Module) (*Module, error) {
	if m == nil {
		return nil, errors.New("emu: no module")
	}
	l, err := m.Listing()
	if err != nil {
		return nil, err
	}
	return newModule(string(l.Text), l)
}

// Parse makes the kernels of a text ready to run: PTX as package ptx writes it,
// and somewhat more. An error names the line of the text.
func Parse(text string) (*Module, error) { return newModule(text, nil) }

// Build builds one kernel, with positions, and makes it ready to run.
func Build(t ptx.Target, name string, build func(k *ptx.Kernel)) (*Kernel, error) {
	m := ptx.NewModule(t)
	m.RecordPositions()
	m.Kernel(name, build)
	em, err := Load(m)
	if err != nil {
		return nil, err
	}
	return em.Kernel(name)
}

func newModule(text string, l *ptx.Listing) (*Module, error) {
	src, err := parse(text)
	if err != nil {
		return nil, err
	}
	m := &Module{lines: strings.Split(text, "\n"), listing: l}
	for _, f := range src.functions {
		k, err := compile(m, src, f)
		if err != nil {
			return nil, err
		}
		m.kernels = append(m.kernels, k)
	}
	return m, nil
}

// Kernels returns the kernels in the order of the text.
func (m *Module) Kernels() []*Kernel { return append([]*Kernel(nil), m.kernels...) }

// Kernel returns the kernel of that name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	for _, k := range m.kernels {
		if k.name == name {
			return k, nil
		}
	}
	return nil, fmt.Errorf("emu: the module has no kernel %q", name)
}

// at returns the author's position of a line.
func (m *Module) at(line int) ptx.Position {
	if m.listing == nil {
		return ptx.Position{}
	}
	return m.listing.At(line)
}

// text returns a line.
func (m *Module) text(line int) string {
	if line < 1 || line > len(m.lines) {
		return ""
	}
	return strings.TrimSpace(m.lines[line-1])
}

// Kernel is one kernel of a module. It is safe for concurrent use.
type Kernel struct {
	module  *Module
	name    string
	code    []inst
	params  []variable
	offsets []int // of params in the block of parameters
	bytes   int   // of that block
	arrays  []array
	static  int // bytes of shared memory before what a launch asks for
	align   int // of the dynamic shared memory, 0 if there is none
	threads [3]int
	exactly bool
	cluster int
	remote  bool // its copies, or their mbarriers, are in several blocks of a cluster

	proxy bool // has instructions of the async proxy

	planes int // registers, then what is the same for each launch
	preds  int
	given  []given // planes that hold something before the code runs
}

// Name returns the name of the kernel.
func (k *Kernel) Name() string { return k.name }

// Instructions returns how many instructions the kernel has.
func (k *Kernel) Instructions() int { return len(k.code) }

// Param is a parameter of a kernel as it is declared.
type Param struct {
	Name  string
	Type  string // of an element, as f32 or b8
	Bytes int    // of all elements
}

// Params returns the parameters of the kernel.
func (k *Kernel) Params() []Param {
	ps := make([]Param, len(k.params))
	for i, v := range k.params {
		ps[i] = Param{v.name, v.typ, v.bytes}
	}
	return ps
}

// array is an array in shared memory.
type array struct {
	name     string
	at, size int // the dynamic one has whatever the launch asks for
}

// given is a plane that holds a constant or a special register.
type given struct {
	plane   int32
	special special // specialNone for a constant
	bits    uint64
}

// Shared memory begins above 0, so that an offset that was never added to an
// address is no address, and there is a gap behind each array.
const (
	sharedBase = 1024
	sharedGap  = 64
)

// place lays shared memory out. No array is aligned better than it asks for.
func (k *Kernel) place(src *source, f *function) {
	at := sharedBase
	next := func(align, bytes int) int {
		at = (at + align - 1) &^ (align - 1)
		if at%(2*align) == 0 {
			at += align
		}
		place := at
		at += bytes + sharedGap
		return place
	}
	for _, v := range append(append([]variable(nil), src.shared...), f.shared...) {
		if v.extern {
			k.align = max(k.align, v.align)
			continue
		}
		k.arrays = append(k.arrays, array{v.name, next(max(v.align, 4), v.bytes), v.bytes})
	}
	k.static = at
	if k.align > 0 {
		k.static = next(k.align, 0)
	}
	for _, v := range src.shared {
		if v.extern {
			k.arrays = append(k.arrays, array{v.name, k.static, -1})
		}
	}
}

// mistake is what compile panics with.
type mistake struct{ err error }

// compiler makes a kernel of a function.
type compiler struct {
	k      *Kernel
	f      *function
	st     *statement
	planes map[int]int32 // of registers
	preds  map[int]int32
	consts map[uint64]int32
	others map[given]int32
}

func (c *compiler) fail(format string, args ...any) {
	panic(mistake{fmt.Errorf("emu: kernel %s: line %d: %s: %s", c.f.name, c.st.line, c.st.name, fmt.Sprintf(format, args...))})
}

func compile(m *Module, src *source, f *function) (k *Kernel, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(mistake)
			if !ok {
				panic(r)
			}
			k, err = nil, e.err
		}
	}()
	k = &Kernel{module: m, name: f.name, params: f.params, threads: f.threads, exactly: f.exactly, cluster: f.cluster}
	for _, p := range f.params {
		k.bytes = (k.bytes + p.align - 1) &^ (p.align - 1)
		k.offsets = append(k.offsets, k.bytes)
		k.bytes += p.bytes
	}
	k.place(src, f)
	k.proxy, k.remote = usesProxy(f), copiesAfar(f)
	c := &compiler{k: k, f: f, planes: map[int]int32{}, preds: map[int]int32{}, consts: map[uint64]int32{}, others: map[given]int32{}}
	k.code = make([]inst, len(f.statements))
	for i := range f.statements {
		c.st = &f.statements[i]
		in := &k.code[i]
		*in = inst{line: c.st.line, guard: -1, d: -1, a: -1, b: -1, c: -1}
		if c.st.guard >= 0 {
			in.guard, in.not = c.pred(c.st.guard), c.st.not
		}
		c.instruction(in)
	}
	return k, nil
}

// plane returns the plane of a register.
func (c *compiler) plane(reg int) int32 {
	p, ok := c.planes[reg]
	if !ok {
		p = int32(c.k.planes)
		c.k.planes++
		c.planes[reg] = p
	}
	return p
}

func (c *compiler) pred(reg int) int32 {
	p, ok := c.preds[reg]
	if !ok {
		p = int32(c.k.preds)
		c.k.preds++
		c.preds[reg] = p
	}
	return p
}

// constant returns a plane that holds a number in all lanes.
func (c *compiler) constant(bits uint64) int32 { return c.give(given{bits: bits}) }

func (c *compiler) give(g given) int32 {
	p, ok := c.others[g]
	if !ok {
		p = int32(c.k.planes)
		c.k.planes++
		c.others[g] = p
		h := g
		h.plane = p
		c.k.given = append(c.k.given, h)
	}
	return p
}

// dest returns the plane of a register of so many bytes that is written.
func (c *compiler) dest(o *operand, bytes uint8) int32 {
	if o.kind != operandRegister || o.not {
		c.fail("the result must be a register")
	}
	if b := c.f.registers[o.reg].bytes; b != bytes {
		c.fail("the result has %d bits, not %d", 8*b, 8*bytes)
	}
	return c.plane(o.reg)
}

// destPred is dest for predicates.
func (c *compiler) destPred(o *operand) int32 {
	if o.kind != operandRegister || o.not || c.f.registers[o.reg].bytes != 0 {
		c.fail("the result must be a predicate")
	}
	return c.pred(o.reg)
}

// value returns the plane of an operand of so many bytes that is read.
func (c *compiler) value(o *operand, bytes uint8) int32 {
	if o.not {
		c.fail("! before something that is no predicate")
	}
	switch o.kind {
	case operandRegister:
		if b := c.f.registers[o.reg].bytes; b != bytes {
			c.fail("an operand has %d bits, not %d", 8*b, 8*bytes)
		}
		return c.plane(o.reg)
	case operandInteger:
		v := o.bits
		if bytes < 8 {
			if top := int64(v) >> (8*bytes - 1); top != 0 && top != -1 && v>>(8*bytes) != 0 {
				c.fail("the constant %d has more than %d bits", int64(v), 8*bytes)
			}
			v &= 1<<(8*bytes) - 1
		}
		return c.constant(v)
	case operandFloat:
		if bytes != 4 {
			c.fail("a float where there are %d bits", 8*bytes)
		}
		return c.constant(o.bits)
	case operandDouble:
		switch bytes {
		case 8:
			return c.constant(o.bits)
		case 4:
			return c.constant(uint64(b32(float32(f64(o.bits)))))
		}
		c.fail("a double where there are %d bits", 8*bytes)
	case operandName:
		return c.named(o.name, bytes)
	}
	c.fail("an operand that is no value")
	return 0
}

// named returns the plane of a special register, an array or a parameter.
func (c *compiler) named(name string, bytes uint8) int32 {
	if s, ok := specials[name]; ok {
		if s.bytes != bytes {
			c.fail("%s has %d bits", name, 8*s.bytes)
		}
		return c.give(given{special: s.special})
	}
	if strings.HasPrefix(name, "%") {
		c.fail("%s is %s", name, unsupported)
	}
	for _, a := range c.k.arrays {
		if a.name == name {
			return c.constant(uint64(a.at))
		}
	}
	for i, p := range c.k.params {
		if p.name == name && bytes == 8 {
			return c.constant(paramBase + uint64(c.k.offsets[i]))
		}
	}
	c.fail("nothing is called %s", name)
	return 0
}

// predOperand returns a predicate that is read, and whether it is negated.
func (c *compiler) predOperand(o *operand) (int32, bool) {
	if o.kind != operandRegister || c.f.registers[o.reg].bytes != 0 {
		c.fail("an operand must be a predicate")
	}
	return c.pred(o.reg), o.not
}

// label returns the place that a label names.
func (c *compiler) label(o *operand) int {
	if o.kind != operandName {
		c.fail("expected a label")
	}
	for _, inner := range o.list {
		if at, ok := c.f.labels[inner.name]; ok {
			return at
		}
	}
	at, ok := c.f.labels[o.name]
	if !ok {
		c.fail("no label is called %s", o.name)
	}
	return at
}

// args checks the number of operands.
func (c *compiler) args(least, most int) []operand {
	if n := len(c.st.args); n < least || n > most {
		c.fail("%d operands", n)
	}
	return c.st.args
}
