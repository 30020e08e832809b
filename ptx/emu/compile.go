package emu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mistake is the panic value of compile.
type mistake struct{ err error }

// catch calls f and returns the mistake of its panic, if there is one.
func catch(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(mistake)
			if !ok {
				panic(r)
			}
			err = e.err
		}
	}()
	f()
	return nil
}

// compiler compiles a function and the functions that it may call to a kernel.
type compiler struct {
	k        *Kernel
	src      *source
	consts   map[uint64]int32
	others   map[given]int32
	params   map[string]int // parameters of the kernel
	shared   map[string]int // the module's arrays in k.arrays
	routines map[*function]*routine

	// The function that is being compiled:
	f      *function
	st     *statement
	rt     *routine
	base   int            // its position in the code
	own    map[string]int // its arrays in k.arrays
	planes map[int]int32  // planes of registers
	preds  map[int]int32  // planes of predicates
	framed map[int]int32  // planes that hold addresses of variables
}

func (c *compiler) fail(format string, args ...any) {
	err := fmt.Errorf("line %d: %s: %s", c.st.line, c.st.name, fmt.Sprintf(format, args...))
	panic(mistake{c.f.wrong(err)})
}

// wrong returns an error about a function. If the function is a kernel, compile reports the error.
func (f *function) wrong(err error) error {
	if e, ok := err.(*syntaxError); ok {
		err = fmt.Errorf("line %d: %s", e.line, e.msg)
	}
	if f.kernel {
		return err
	}
	return fmt.Errorf("function %s: %w", f.name, err)
}

// compile prepares a kernel for running. If this fails, the kernel keeps the error.
func compile(m *Module, f *function) *Kernel {
	k := &Kernel{module: m, name: f.name, params: f.params, threads: f.threads, exactly: f.exactly, cluster: f.cluster}
	if f.err != nil {
		k.err = fmt.Errorf("emu: kernel %s: %w", f.name, f.wrong(f.err))
		return k
	}
	c := &compiler{k: k, src: m.source, consts: map[uint64]int32{}, others: map[given]int32{}, params: map[string]int{},
		shared: map[string]int{}, routines: map[*function]*routine{}}
	for i, p := range f.params {
		k.bytes = (k.bytes + p.align - 1) &^ (p.align - 1)
		k.offsets = append(k.offsets, k.bytes)
		k.bytes += p.bytes
		c.params[p.name] = i
	}
	if err := catch(func() { c.kernel(f) }); err != nil {
		k.err = fmt.Errorf("emu: kernel %s: %w", f.name, err)
		k.code, k.arrays, k.given, k.routines = nil, nil, nil, nil
	}
	return k
}

// kernel compiles the kernel and the functions that it may call.
func (c *compiler) kernel(f *function) {
	k := c.k
	fs := c.reach(f)
	for _, g := range fs {
		rt := layFrame(g, len(k.routines))
		k.routines = append(k.routines, rt)
		c.routines[g] = rt
		k.proxy, k.remote = k.proxy || usesProxy(g), k.remote || copiesAfar(g)
	}
	c.place()
	for _, rt := range k.routines {
		if rt.err = catch(func() { c.routine(rt) }); rt.err != nil {
			k.code = k.code[:rt.entry]
		}
	}
	if err := k.routines[0].broken(map[*routine]bool{}); err != nil {
		panic(mistake{err})
	}
	k.stacks = len(fs) > 1 || k.routines[0].frame > 0
}

// routine compiles one function.
func (c *compiler) routine(rt *routine) {
	f := rt.f
	c.f, c.rt, c.base, c.own = f, rt, len(c.k.code), rt.arrays
	c.planes, c.preds, c.framed = map[int]int32{}, map[int]int32{}, map[int]int32{}
	rt.entry = c.base
	if f.err != nil {
		panic(mistake{f.wrong(f.err)})
	}
	if !f.body {
		panic(mistake{fmt.Errorf("function %s is not in the module", f.name)})
	}
	c.k.code = append(c.k.code, make([]inst, len(f.statements))...)
	for i := range f.statements {
		c.st = &f.statements[i]
		in := &c.k.code[c.base+i]
		*in = inst{line: c.st.line, guard: -1, d: -1, a: -1, b: -1, c: -1}
		if c.st.guard >= 0 {
			in.guard, in.not = c.pred(c.st.guard), c.st.not
		}
		c.instruction(in)
	}
	for _, p := range c.planes {
		rt.planes = append(rt.planes, p)
	}
	for _, p := range c.preds {
		rt.preds = append(rt.preds, p)
	}
	for v, p := range c.framed {
		rt.planes = append(rt.planes, p)
		rt.addresses = append(rt.addresses, frameAddress{p, rt.places[v]})
	}
}

// routineCost is the memory of a function in addition to its instructions, measured in instructions.
const routineCost = 16

// reach returns a function and all functions that it may call, and records the variables of the
// module that they use.
func (c *compiler) reach(f *function) []*function {
	fs, used := []*function{f}, map[int]bool{}
	seen, all := map[*function]bool{f: true}, false
	add := func(g *function) {
		if !seen[g] && !g.kernel {
			seen[g] = true
			fs = append(fs, g)
		}
	}
	visit := func(name string) {
		if g := c.src.called[name]; g != nil {
			add(g)
		}
		if v, ok := c.src.names[name]; ok {
			used[v] = true
		}
	}
	for i := 0; i < len(fs); i++ {
		size := &c.k.module.size
		if *size += routineCost + len(fs[i].statements); *size > maxModuleInstructions {
			panic(mistake{fmt.Errorf("the kernels of the module have more than %d instructions", maxModuleInstructions)})
		}
		for j := range fs[i].statements {
			st := &fs[i].statements[j]
			for a := range st.args {
				visitNames(&st.args[a], visit)
			}
			if !all && st.callsIndirectly() {
				// The callee's address is in memory, where another kernel may have written it.
				all = true
				for _, g := range c.src.functions {
					add(g)
				}
			}
		}
	}
	for v := range used {
		c.k.used = append(c.k.used, v)
	}
	slices.Sort(c.k.used)
	return fs
}

// visitNames calls f for the names in an operand.
func visitNames(o *operand, f func(name string)) {
	switch o.kind {
	case operandName:
		f(o.name)
	case operandAddress, operandVector, operandPair, operandGroup:
		for i := range o.list {
			visitNames(&o.list[i], f)
		}
	}
}

// place lays out shared memory: the arrays of the module that are used, then the arrays of the
// functions. No array is aligned better than its declaration requires, except the dynamic memory of
// a kernel without other arrays: the driver aligns it to 1024 bytes, and compilers such as Triton
// rely on this.
func (c *compiler) place() {
	k, at := c.k, sharedBase
	next := func(align, bytes int) int {
		at = (at + align - 1) &^ (align - 1)
		if at%(2*align) == 0 {
			at += align
		}
		place := at
		at += bytes + sharedGap
		return place
	}
	add := func(names map[string]int, v *variable) {
		names[v.name] = len(k.arrays)
		k.arrays = append(k.arrays, array{v.name, next(max(v.align, 4), v.bytes), v.bytes})
	}
	var dynamic []string
	memory := k.used[:0]
	for _, i := range k.used {
		switch v := &c.src.variables[i]; {
		case v.space != spaceShared:
			memory = append(memory, i)
		case v.extern:
			k.align = max(k.align, v.align)
			dynamic = append(dynamic, v.name)
		default:
			add(c.shared, v)
		}
	}
	k.used = memory
	for _, rt := range k.routines {
		rt.arrays = map[string]int{}
		for i := range rt.f.shared {
			add(rt.arrays, &rt.f.shared[i])
		}
	}
	k.static = at
	if k.align > 0 && len(k.arrays) > 0 {
		k.static = next(k.align, 0)
	}
	for _, name := range dynamic {
		c.shared[name] = len(k.arrays)
		k.arrays = append(k.arrays, array{name, k.static, -1})
	}
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

// dest returns the plane of a register of the given size that the instruction writes.
func (c *compiler) dest(o *operand, bytes uint8) int32 {
	if o.kind != operandRegister || o.not {
		c.fail("the result must be a register")
	}
	if b := c.f.registers[o.reg].bytes; b != bytes {
		c.fail("the register of the result has %d bits, expected %d", 8*b, 8*bytes)
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

// value returns the plane of an operand of the given size that the instruction reads.
func (c *compiler) value(o *operand, bytes uint8) int32 {
	if o.not {
		c.fail("! must precede a predicate")
	}
	switch o.kind {
	case operandRegister:
		if b := c.f.registers[o.reg].bytes; b != bytes {
			c.fail("an operand has %d bits, expected %d", 8*b, 8*bytes)
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
			c.fail("an operand is a constant of type float, expected %d bits", 8*bytes)
		}
		return c.constant(o.bits)
	case operandDouble:
		switch bytes {
		case 8:
			return c.constant(o.bits)
		case 4:
			return c.constant(uint64(b32(float32(f64(o.bits)))))
		}
		c.fail("an operand is a constant of type double, expected %d bits", 8*bytes)
	case operandName:
		return c.named(o.name, bytes)
	case operandVariable:
		if bytes != 8 {
			c.fail("the address of %s has 64 bits, expected %d", o.name, 8*bytes)
		}
		return c.frameAddress(o.reg)
	}
	c.fail("an operand is not a register, a constant or a name")
	return 0
}

// named returns the plane of a special register, an array or a parameter.
func (c *compiler) named(name string, bytes uint8) int32 {
	if s, ok := specials[name]; ok {
		if s.bytes != bytes {
			c.fail("%s has %d bits, expected %d", name, 8*s.bytes, 8*bytes)
		}
		if s.special == clocks {
			c.fail("only mov can read %s", name)
		}
		return c.give(given{special: s.special})
	}
	if strings.HasPrefix(name, "%") {
		c.fail("%s is %s", name, unsupported)
	}
	for _, names := range []map[string]int{c.own, c.shared} {
		if i, ok := names[name]; ok {
			return c.constant(uint64(c.k.arrays[i].at))
		}
	}
	if i, ok := c.params[name]; ok && bytes == 8 {
		return c.constant(paramBase + uint64(c.k.offsets[i]))
	}
	if i, ok := c.src.names[name]; ok && bytes == 8 {
		return c.give(given{variable: i + 1})
	}
	if f := c.src.called[name]; f != nil && !f.kernel && bytes == 8 {
		return c.constant(f.address())
	}
	if err := c.src.unread[name]; err != nil {
		c.fail("%s cannot be used: %v", name, err)
	}
	c.fail("no array, parameter, variable or function called %s can be an operand here", name)
	return 0
}

// predOperand returns a predicate that is read, and whether it is negated.
func (c *compiler) predOperand(o *operand) (int32, bool) {
	if o.kind != operandRegister || c.f.registers[o.reg].bytes != 0 {
		c.fail("an operand must be a predicate")
	}
	return c.pred(o.reg), o.not
}

// label returns the position of a label.
func (c *compiler) label(o *operand) int {
	if o.kind != operandName {
		c.fail("expected a label")
	}
	for _, inner := range o.list {
		if at, ok := c.f.labels[inner.name]; ok {
			return c.base + at
		}
	}
	at, ok := c.f.labels[o.name]
	if !ok {
		c.fail("no label is called %s", o.name)
	}
	return c.base + at
}

// wrongCount reports a wrong number of operands.
func (c *compiler) wrongCount(n, least, most int) {
	expected := strconv.Itoa(least)
	if most > least {
		expected += fmt.Sprintf(" to %d", most)
	}
	c.fail("%d operands, expected %s", n, expected)
}

// args checks the number of operands.
func (c *compiler) args(least, most int) []operand {
	if n := len(c.st.args); n < least || n > most {
		c.wrongCount(n, least, most)
	}
	return c.st.args
}
