package emu

import (
	"slices"
	"strconv"
	"strings"
)

// ignored lists instructions that have no effect in the emulator: hints, and orderings that the emulator
// always guarantees.
var ignored = []string{"prefetch", "prefetchu", "nanosleep", "setmaxnreg", "griddepcontrol", "applypriority", "discard", "fence.mbarrier_init"}

// families has the instructions that are not in the table of operations, by the first part of their names.
var families = map[string]func(c *compiler, in *inst){
	"bra": (*compiler).branch, "brx": (*compiler).jump, "call": (*compiler).call, "ret": (*compiler).ret, "exit": (*compiler).ret,
	"ld": (*compiler).load, "ldu": (*compiler).load, "st": (*compiler).store,
	"atom": (*compiler).atomic, "red": (*compiler).atomic,
	"mov": (*compiler).mov, "selp": (*compiler).selp, "lop3": (*compiler).lop3,
	"bar": (*compiler).bar, "barrier": (*compiler).bar,
	"fence": (*compiler).fence, "membar": (*compiler).fence,
	"shfl": (*compiler).shuffle, "vote": (*compiler).vote, "match": (*compiler).match, "redux": (*compiler).redux,
	"activemask": (*compiler).activemask, "elect": (*compiler).elect,
	"ldmatrix": (*compiler).ldmatrix, "stmatrix": (*compiler).stmatrix, "mma": (*compiler).mma,
	"cp": (*compiler).copy, "mbarrier": (*compiler).mbarrier, "wgmma": (*compiler).wgmma,
	"and": (*compiler).logic, "or": (*compiler).logic, "xor": (*compiler).logic, "not": (*compiler).logic,
	"setp": (*compiler).setp, "mapa": (*compiler).mapa, "trap": (*compiler).trap,
	"add": (*compiler).carry, "addc": (*compiler).carry, "sub": (*compiler).carry, "subc": (*compiler).carry,
	"mad": (*compiler).carry, "madc": (*compiler).carry, "set": (*compiler).set,
	"bfi": (*compiler).insert, "createpolicy": (*compiler).policy,
}

// Supports reports whether the emulator runs an instruction, given by its full name, such as
// "fma.rn.f32", "ld.global.v4.f32".
func Supports(name string) (ok bool) {
	if _, ok := operations()[name]; ok {
		return true
	}
	if _, ok := variant(name); ok {
		return true
	}
	parts := strings.Split(name, ".")
	if isIgnored(name) {
		return true
	}
	if families[parts[0]] == nil {
		return false
	}
	// An error about operands means that the name was parsed, because names are parsed before operands.
	c := &compiler{k: &Kernel{}, src: &source{}, f: &function{}, rt: &routine{}, st: &statement{name: name}}
	defer func() {
		if r := recover(); r != nil {
			m, is := r.(mistake)
			if !is {
				panic(r)
			}
			ok = !strings.Contains(m.err.Error(), unsupported)
		}
	}()
	families[parts[0]](c, &inst{})
	return true
}

const unsupported = "not supported"

func isIgnored(name string) bool {
	return slices.ContainsFunc(ignored, func(s string) bool { return name == s || strings.HasPrefix(name, s+".") })
}

// instruction makes the instruction of c.st ready to run.
func (c *compiler) instruction(in *inst) {
	name, args := c.st.name, c.st.args
	if strings.HasPrefix(name, "mov.") && len(args) == 2 && args[1].kind == operandName && specials[args[1].name].special == clocks {
		c.clock(in)
		return
	}
	vector := slices.ContainsFunc(c.st.args, func(o operand) bool { return o.kind == operandVector })
	if o, ok := operations()[name]; ok && !vector {
		c.operation(in, &o)
		return
	}
	if o, ok := variant(name); ok && !vector {
		c.operation(in, &o)
		return
	}
	if isIgnored(name) {
		in.kind, in.run = kindRun, func(*warp, *inst, uint32) bool { return true }
		if strings.HasPrefix(c.st.name, "nanosleep") {
			in.run = (*warp).sleep
		}
		return
	}
	first, _, _ := strings.Cut(name, ".")
	f := families[first]
	if f == nil {
		c.fail(unsupported)
	}
	f(c, in)
}

func (c *compiler) operation(in *inst, o *operation) {
	n := 0
	for n < 4 && o.bytes[n] != 0 {
		n++
	}
	args := c.args(n, n)
	value := c.value
	switch {
	case o.test != nil:
		in.kind, in.test = kindTest, o.test
		in.d = c.destPred(&args[0])
	case strings.HasPrefix(c.st.name, "cvt."):
		value = c.converted
		in.kind = kindOp
		in.d, in.op = c.convertedTo(&args[0], o)
	default:
		in.kind, in.op = kindOp, o.op
		in.d = c.dest(&args[0], o.bytes[0])
	}
	in.a = value(&args[1], o.bytes[1])
	in.b, in.c = in.a, in.a
	if n > 2 {
		in.b = value(&args[2], o.bytes[2])
	}
	if n > 3 {
		in.c = value(&args[3], o.bytes[3])
	}
}

// converted is like value, but for an operand of a conversion: if an integer operand is in a register wider
// than its type, the conversion uses the lower bits.
func (c *compiler) converted(o *operand, bytes uint8) int32 {
	p := c.parts()
	if src := p[len(p)-1]; o.kind == operandRegister && !o.not && integerBytes[src] > 0 {
		if have := c.f.registers[o.reg].bytes; have >= integerBytes[src] {
			bytes = have
		}
	}
	return c.value(o, bytes)
}

// convertedTo returns the plane of the result of a conversion, and the operation. If the register is wider
// than the type of the result, the operation extends the result to the register.
func (c *compiler) convertedTo(o *operand, op *operation) (int32, opFunc) {
	p := c.parts()
	typ := p[max(len(p)-2, 0)]
	n := integerBytes[typ]
	if o.kind != operandRegister || o.not || n == 0 || c.f.registers[o.reg].bytes < n || c.f.registers[o.reg].bytes == op.bytes[0] {
		return c.dest(o, op.bytes[0]), op.op
	}
	x := extra{bytes: int(n), wide: c.f.registers[o.reg].bytes, signed: typ[0] == 's'}
	return c.dest(o, x.wide), func(d, a, b, c *plane) {
		op.op(d, a, b, c)
		for i, v := range d {
			d[i] = x.extend(v & (1<<(8*n-1)<<1 - 1))
		}
	}
}

// integerBytes has the sizes of integer types.
var integerBytes = map[string]uint8{"u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8}

// parts splits the name after its first part. It keeps the beginning in of.
func (c *compiler) parts() []string { return strings.Split(c.st.name, ".")[1:] }

func (c *compiler) branch(in *inst) {
	args := c.args(1, 1)
	in.kind, in.target = kindBranch, c.label(&args[0])
}

func (c *compiler) trap(in *inst) {
	c.args(0, 0)
	in.kind, in.run = kindRun, func(w *warp, in *inst, mask uint32) bool {
		w.stop(BadOperand, w.pcOf(in), lowest(mask), "the kernel trapped")
		return false
	}
}

// mov compiles moves that are not in the table of operations: moves of predicates and of vectors.
func (c *compiler) mov(in *inst) {
	p := c.parts()
	if len(p) != 1 {
		c.fail(unsupported)
	}
	args := c.args(2, 2)
	d, s := &args[0], &args[1]
	switch {
	case p[0] == "pred":
		in.kind, in.d = kindRun, c.destPred(d)
		var not bool
		in.a, not = c.predOrConst(s)
		in.run = func(w *warp, in *inst, mask uint32) bool {
			v, def := w.predValue(in.a, not)
			w.setPred(in.d, mask, v, def)
			return true
		}
	case s.kind == operandVector:
		c.pack(in, d, s, c.typeBytes(p[0]))
	case d.kind == operandVector:
		c.unpack(in, d, s, c.typeBytes(p[0]))
	default:
		c.fail(unsupported)
	}
}

// pack compiles a mov of several registers to one register of n bytes.
func (c *compiler) pack(in *inst, d, s *operand, n uint8) {
	k := uint8(len(s.list))
	if k != 2 && k != 4 || n < k {
		c.fail("a vector of %d registers does not match a register of %d bits", k, 8*n)
	}
	in.kind, in.d = kindRun, c.dest(d, n)
	var from []int32
	for i := range s.list {
		from = append(from, c.value(&s.list[i], n/k))
	}
	in.run = func(w *warp, in *inst, mask uint32) bool {
		w.tmp = w.regs[from[0]]
		def := w.def[from[0]]
		for j, r := range from[1:] {
			def &= w.def[r]
			for i, v := range w.regs[r] {
				w.tmp[i] |= v << (8 * int(n/k) * (j + 1))
			}
		}
		w.regs[in.d].blend(&w.tmp, mask)
		w.def[in.d] = w.def[in.d]&^mask | def&mask
		return true
	}
}

// unpack compiles a mov of a register of n bytes to several registers.
func (c *compiler) unpack(in *inst, d, s *operand, n uint8) {
	k := uint8(len(d.list))
	if k != 2 && k != 4 || n < k {
		c.fail("a vector of %d registers does not match a register of %d bits", k, 8*n)
	}
	in.kind, in.a = kindRun, c.value(s, n)
	var regs []int32
	for i := range d.list {
		regs = append(regs, c.destOrSink(&d.list[i], n/k))
	}
	width := 8 * int(n/k)
	in.run = func(w *warp, in *inst, m uint32) bool {
		v, def := w.regs[in.a], w.def[in.a]
		for j, r := range regs {
			if r < 0 {
				continue
			}
			for i := range w.tmp {
				w.tmp[i] = v[i] >> (width * j) & (1<<width - 1)
			}
			w.regs[r].blend(&w.tmp, m)
			w.def[r] = w.def[r]&^m | def&m
		}
		return true
	}
}

func (c *compiler) typeBytes(t string) uint8 {
	switch t {
	case "b8", "u8", "s8":
		return 1
	case "b16", "u16", "s16", "f16", "bf16":
		return 2
	case "b32", "u32", "s32", "f32", "f16x2", "bf16x2":
		return 4
	case "b64", "u64", "s64", "f64":
		return 8
	}
	c.fail("type %s is %s", t, unsupported)
	return 0
}

// destOrSink is dest, or -1 for _.
func (c *compiler) destOrSink(o *operand, bytes uint8) int32 {
	if o.kind == operandSink {
		return -1
	}
	return c.dest(o, bytes)
}

// predOrConst returns a predicate that is read, or -1 for false and -2 for true.
func (c *compiler) predOrConst(o *operand) (p int32, not bool) {
	if o.kind == operandInteger {
		return -1 - int32(min(o.bits, 1)), false
	}
	return c.predOperand(o)
}

// predValue returns the lanes in which a predicate holds, and is defined.
func (w *warp) predValue(p int32, not bool) (v, def uint32) {
	switch {
	case p == -1:
		return 0, ^uint32(0)
	case p < 0:
		return ^uint32(0), ^uint32(0)
	case not:
		return ^w.preds[p], w.pdef[p]
	}
	return w.preds[p], w.pdef[p]
}

func (w *warp) setPred(p int32, mask, v, def uint32) {
	w.preds[p] = w.preds[p]&^mask | v&mask
	w.pdef[p] = w.pdef[p]&^mask | def&mask
}

// logic is and, or, xor and not of predicates.
func (c *compiler) logic(in *inst) {
	name := c.st.name
	op, ok := map[string]func(x, y uint32) uint32{
		"and.pred": func(x, y uint32) uint32 { return x & y },
		"or.pred":  func(x, y uint32) uint32 { return x | y },
		"xor.pred": func(x, y uint32) uint32 { return x ^ y },
		"not.pred": func(x, _ uint32) uint32 { return ^x },
	}[name]
	if !ok {
		c.fail(unsupported)
	}
	n := 3
	if name == "not.pred" {
		n = 2
	}
	args := c.args(n, n)
	in.kind, in.d = kindRun, c.destPred(&args[0])
	var notA, notB bool
	in.a, notA = c.predOrConst(&args[1])
	in.b, notB = in.a, notA
	if n == 3 {
		in.b, notB = c.predOrConst(&args[2])
	}
	in.run = func(w *warp, in *inst, mask uint32) bool {
		x, dx := w.predValue(in.a, notA)
		y, dy := w.predValue(in.b, notB)
		def := dx & dy
		// If one operand decides the result, the other may be undefined.
		switch name {
		case "and.pred":
			def |= dx&^x | dy&^y
		case "or.pred":
			def |= dx&x | dy&y
		}
		w.setPred(in.d, mask, op(x, y), def)
		return true
	}
}

// setp covers the forms of setp with a condition: setp.lt.and.u32 p, a, b, q.
func (c *compiler) setp(in *inst) {
	p := c.parts()
	i := slices.IndexFunc(p, func(s string) bool { return s == "and" || s == "or" || s == "xor" })
	if i < 0 {
		c.fail(unsupported)
	}
	how := p[i]
	o, ok := operations()["setp."+strings.Join(slices.Delete(slices.Clone(p), i, i+1), ".")]
	if !ok {
		c.fail(unsupported)
	}
	args := c.args(4, 4)
	in.kind, in.d, in.test = kindRun, c.destPred(&args[0]), o.test
	in.a, in.b = c.value(&args[1], o.bytes[1]), c.value(&args[2], o.bytes[2])
	var not bool
	in.c, not = c.predOrConst(&args[3])
	in.run = func(w *warp, in *inst, mask uint32) bool {
		x := in.test(&w.regs[in.a], &w.regs[in.b])
		y, def := w.predValue(in.c, not)
		def &= w.def[in.a] & w.def[in.b]
		switch how {
		case "and":
			x &= y
		case "or":
			x |= y
		default:
			x ^= y
		}
		w.setPred(in.d, mask, x, def)
		return true
	}
}

// set compiles a comparison with a numeric result: all ones, or 1 as a floating-point number. The two
// halves of pairs are compared separately.
func (c *compiler) set(in *inst) {
	p := c.parts()
	if len(p) < 3 {
		c.fail(unsupported)
	}
	dst, src := p[len(p)-2], p[len(p)-1]
	one, pairs := src, strings.HasSuffix(src, "x2")
	if pairs {
		one = strings.TrimSuffix(src, "x2")
	}
	name := "setp." + strings.Join(append(slices.Clone(p[:len(p)-2]), one), ".")
	o, ok := operations()[name]
	if !ok {
		o, ok = variant(name)
	}
	n := c.typeBytes(dst)
	if !ok || pairs && n != 4 {
		c.fail(unsupported)
	}
	width, yes := 8*n, uint64(1)<<(8*n-1)<<1-1
	if pairs {
		width, yes = 16, 0xffff
	}
	if f, ok := formatOf[strings.TrimSuffix(dst, "x2")]; ok {
		yes = f.to(1)
	}
	args := c.args(3, 3)
	in.kind, in.d, in.test = kindOp, c.dest(&args[0], n), o.test
	bytes := o.bytes[1]
	if pairs {
		bytes = 4
	}
	in.a, in.b = c.value(&args[1], bytes), c.value(&args[2], bytes)
	in.c = in.a
	in.op = func(d, a, b, _ *plane) {
		low, high := o.test(a, b), uint32(0)
		if pairs {
			var x, y plane
			for i := range x {
				x[i], y[i] = a[i]>>16, b[i]>>16
			}
			high = o.test(&x, &y)
		}
		for i := range d {
			d[i] = yes*uint64(low>>i&1) | yes*uint64(high>>i&1)<<width
		}
	}
}

func (c *compiler) selp(in *inst) {
	p := c.parts()
	if len(p) != 1 {
		c.fail(unsupported)
	}
	n := c.typeBytes(p[0])
	args := c.args(4, 4)
	in.kind, in.d = kindRun, c.dest(&args[0], n)
	in.a, in.b = c.value(&args[1], n), c.value(&args[2], n)
	pred, not := c.predOperand(&args[3])
	in.run = func(w *warp, in *inst, mask uint32) bool {
		v, def := w.predValue(pred, not)
		a, b, d := &w.regs[in.a], &w.regs[in.b], &w.regs[in.d]
		for i := range w.tmp {
			if v>>i&1 != 0 {
				w.tmp[i] = a[i]
			} else {
				w.tmp[i] = b[i]
			}
		}
		d.blend(&w.tmp, mask)
		// The operand that is not selected may be undefined.
		def &= v&w.def[in.a] | ^v&w.def[in.b]
		w.def[in.d] = w.def[in.d]&^mask | def&mask
		return true
	}
}

func (c *compiler) lop3(in *inst) {
	if c.st.name != "lop3.b32" {
		c.fail(unsupported)
	}
	args := c.args(5, 5)
	if args[4].kind != operandInteger || args[4].bits > 255 {
		c.fail("the truth table must be a constant")
	}
	lut := uint32(args[4].bits)
	in.kind, in.d = kindOp, c.dest(&args[0], 4)
	in.a, in.b, in.c = c.value(&args[1], 4), c.value(&args[2], 4), c.value(&args[3], 4)
	in.op = lanes3(func(x, y, z uint32) (r uint32) {
		for i := range 8 {
			if lut>>i&1 == 0 {
				continue
			}
			m := ^uint32(0)
			for j, v := range [3]uint32{z, y, x} {
				if i>>j&1 != 0 {
					m &= v
				} else {
					m &= ^v
				}
			}
			r |= m
		}
		return r
	})
}

// number returns a constant operand.
func (c *compiler) number(o *operand, most uint64) int {
	if o.kind != operandInteger || o.bits > most {
		c.fail("expected a constant up to %d", most)
	}
	return int(o.bits)
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// insert compiles bfi: it copies the low bits of a to a position in b.
func (c *compiler) insert(in *inst) {
	p := c.parts()
	if len(p) != 1 || p[0] != "b32" && p[0] != "b64" {
		c.fail(unsupported)
	}
	n := c.typeBytes(p[0])
	args := c.args(5, 5)
	in.kind, in.d = kindRun, c.dest(&args[0], n)
	in.a, in.b, in.c = c.value(&args[1], n), c.value(&args[2], n), c.value(&args[3], 4)
	length := c.value(&args[4], 4)
	width := 8 * uint64(n)
	in.run = func(w *warp, in *inst, mask uint32) bool {
		for m := mask; m != 0; m &= m - 1 {
			i := lowest(m)
			at, k := w.regs[in.c][i]&0xff, w.regs[length][i]&0xff
			bits := uint64(0)
			if at < width {
				bits = (1<<min(k, width-at) - 1) << at
			}
			w.tmp[i] = w.regs[in.b][i]&^bits | w.regs[in.a][i]<<at&bits
		}
		w.regs[in.d].blend(&w.tmp, mask)
		def := w.def[in.a] & w.def[in.b] & w.def[in.c] & w.def[length]
		w.def[in.d] = w.def[in.d]&^mask | def&mask
		return true
	}
}

// policy compiles createpolicy. Its result is 0, because the emulator has no caches.
func (c *compiler) policy(in *inst) {
	if !strings.HasPrefix(c.st.name, "createpolicy.fractional.") {
		c.fail(unsupported)
	}
	args := c.args(1, 2)
	in.kind, in.d = kindOp, c.dest(&args[0], 8)
	in.a = c.constant(0)
	in.b, in.c = in.a, in.a
	in.op = func(d, a, _, _ *plane) { *d = *a }
}
