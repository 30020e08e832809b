package interp

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// lowering compiles a program to ops. Each component of a vector is a register, so extracting and
// combining components costs nothing.
type lowering struct {
	p    *ir.Program
	u    *uniformity
	l    *liveness
	k    *Kernel
	vals [][4]reg
	vars [][4]reg

	planes, ones         int // registers made
	freePlanes, freeOnes []reg
	held                 map[reg]int   // values that a register is part of
	ends                 [][]ir.Value  // values whose registers are freed after each instruction
	given                map[given]reg // constants, parameters and built-ins
	blocks               []openBlock
	step                 []bool // values that grow by 1 from lane to lane
}

// given names a value that exists before the code runs.
type given struct {
	code ir.Code
	flag uint8
	imm  uint32
}

// openBlock is a block that has not ended yet.
type openBlock struct {
	head    ir.Value
	at      int   // the op of its head
	exits   []int // ops that leave it when no lane is active
	one     bool  // all lanes agree on its condition
	frame   int
	counter reg // of a For
	limit   reg
	stride  reg
}

const forever = 1 << 30 // holders of a register that is never freed

func (l *lowering) newReg(uniform bool) reg {
	if uniform {
		if n := len(l.freeOnes); n > 0 {
			r := l.freeOnes[n-1]
			l.freeOnes = l.freeOnes[:n-1]
			return r
		}
		l.ones++
		return ^reg(l.ones - 1)
	}
	if n := len(l.freePlanes); n > 0 {
		r := l.freePlanes[n-1]
		l.freePlanes = l.freePlanes[:n-1]
		return r
	}
	l.planes++
	return reg(l.planes - 1)
}

func (l *lowering) free(r reg) {
	if r.uniform() {
		l.freeOnes = append(l.freeOnes, r)
	} else {
		l.freePlanes = append(l.freePlanes, r)
	}
}

// hold makes v own the registers of its components until its end.
func (l *lowering) hold(v ir.Value) {
	for k := range l.width(v) {
		l.held[l.vals[v][k]]++
	}
	end := max(l.l.end[v], v)
	l.ends[end] = append(l.ends[end], v)
}

func (l *lowering) release(v ir.Value) {
	for k := range l.width(v) {
		r := l.vals[v][k]
		if l.held[r]--; l.held[r] == 0 {
			l.free(r)
		}
	}
}

func (l *lowering) width(v ir.Value) int { return int(l.p.Code[v].Width) }

// comp returns component k of v; a scalar has the same everywhere.
func (l *lowering) comp(v ir.Value, k int) reg {
	if l.width(v) == 1 {
		k = 0
	}
	return l.vals[v][k]
}

// emit adds an op and returns its place.
func (l *lowering) emit(o op) int {
	l.k.ops = append(l.k.ops, o)
	return len(l.k.ops) - 1
}

// put notes that a field of an op is register r. Ops move while the list
// grows, so their fields are noted by number.
func (l *lowering) put(o int, field int, r reg) { l.k.uses = append(l.k.uses, use{o, field, r}) }

// use is a field of an op that holds a register: 0 is d, 1 to 3 the operands,
// 4 to 7 the components of an access.
type use struct {
	op, field int
	r         reg
}

// compute emits f(args) into d.
func (l *lowering) compute(f planeFunc, d reg, imm uint32, args ...reg) {
	o := op{kind: opPlane, fn: f, imm: imm, blocks: l.k.blocks}
	if d.uniform() {
		o.blocks = 1
	}
	for k, a := range args {
		if !a.uniform() {
			o.stride[k] = blockBytes
		}
	}
	i := l.emit(o)
	l.put(i, 0, d)
	for k, a := range args {
		l.put(i, k+1, a)
	}
}

// plane returns r as a plane, which for a uniform register is a copy that the
// caller frees.
func (l *lowering) plane(r reg) (q reg, temporary bool) {
	if !r.uniform() {
		return r, false
	}
	q = l.newReg(false)
	l.compute(planeMove, q, 0, r)
	return q, true
}

// known returns the register of a value that exists before the code runs.
func (l *lowering) known(g given, uniform bool) reg {
	r, ok := l.given[g]
	if !ok {
		// Not one that was free: it holds its value from the beginning.
		if uniform {
			l.ones++
			r = ^reg(l.ones - 1)
		} else {
			l.planes++
			r = reg(l.planes - 1)
		}
		l.given[g] = r
		l.held[r] = forever
		l.k.given = append(l.k.given, source{given: g, r: r})
	}
	return r
}

func (l *lowering) constant(bits uint32) reg { return l.known(given{code: ir.Const, imm: bits}, true) }

// one reports whether every operand is uniform.
func one(rs ...reg) bool {
	for _, r := range rs {
		if !r.uniform() {
			return false
		}
	}
	return true
}

func (l *lowering) run() error {
	p := l.p
	for i := range p.Vars {
		for k := range int(p.Vars[i].Width) {
			var r reg
			if l.u.vars[i] {
				l.ones++
				r = ^reg(l.ones - 1)
			} else {
				l.planes++
				r = reg(l.planes - 1)
			}
			l.held[r] = forever
			l.vars[i][k] = r
			if !l.u.home[i].ok {
				l.k.clear = append(l.k.clear, source{r: r})
			}
		}
	}
	l.blocks = []openBlock{{}}
	for i := 1; i < len(p.Code); i++ {
		v := ir.Value(i)
		if effect(p.Code[i].Code) || l.l.uses[i] > 0 && l.l.fused[i] == 0 {
			l.instruction(v)
		}
		for _, e := range l.ends[i] {
			l.release(e)
		}
		if size := (l.planes*l.k.blocks + l.ones) * blockBytes; size > l.k.limits.Register {
			return fmt.Errorf("kernel %s: %w: values and variables take more than %d bytes", p.Name, ErrLimit, l.k.limits.Register)
		}
	}
	for _, x := range l.blocks[0].exits {
		l.k.ops[x].outer = len(l.k.ops)
	}
	return nil
}

func (l *lowering) instruction(v ir.Value) {
	in := &l.p.Code[v]
	if effect(in.Code) {
		l.statement(v, in)
		return
	}
	l.value(v, in)
	l.hold(v)
}

// packed makes the components of a value that packs numbers in words, or unpacks them.
func (l *lowering) packed(in *ir.Instr, out *[4]reg) {
	args, _ := in.Operands()
	switch in.Code {
	case ir.PackHalf:
		a := l.vals[args[0]]
		out[0] = l.newReg(one(a[0], a[1]))
		l.compute(planePackHalf, out[0], 0, a[0], a[1])
	case ir.UnpackHalf:
		a := l.vals[args[0]][0]
		for k := range 2 {
			out[k] = l.newReg(a.uniform())
			l.compute(planeUnpackHalf, out[k], uint32(16*k), a)
		}
	case ir.PackI8:
		a := l.vals[args[0]]
		sum := l.constant(0)
		out[0] = l.newReg(one(a[:]...))
		for k := range 4 {
			l.compute(planePackByte, out[0], uint32(8*k), sum, a[k])
			sum = out[0]
		}
	case ir.UnpackI8, ir.UnpackU8:
		a := l.vals[args[0]][0]
		f := planeUnpackI8
		if in.Code == ir.UnpackU8 {
			f = planeUnpackU8
		}
		for k := range 4 {
			out[k] = l.newReg(a.uniform())
			l.compute(f, out[k], uint32(8*k), a)
		}
	}
}

// constantBits returns the word that a register holds for a constant.
func constantBits(in *ir.Instr) uint32 {
	switch in.Type {
	case ir.Bool:
		return truth(in.Imm != 0)
	case ir.F16:
		return laneConvertF32F16(in.Imm, 0, 0, 0)
	}
	return in.Imm
}

// value makes the components of a value without effects.
func (l *lowering) value(v ir.Value, in *ir.Instr) {
	out := &l.vals[v]
	args, _ := in.Operands()
	width := int(in.Width)
	switch in.Code {
	case ir.Const:
		for k := range width {
			out[k] = l.constant(constantBits(in))
		}
	case ir.BuiltIn:
		out[0] = l.known(given{in.Code, in.Flag, 0}, l.u.value[v])
		switch in.Flag {
		case ir.BuiltInLane:
			l.step[v] = l.k.gang == 1
		case ir.BuiltInLocalX:
			l.step[v] = l.k.gang == 1 && l.p.Local[1] == 1 && l.p.Local[2] == 1
		case ir.BuiltInGroupX:
			l.step[v] = l.k.gang > 1 && l.k.local == 1
		}
	case ir.Param32, ir.Len:
		out[0] = l.known(given{in.Code, 0, in.Imm}, true)
	case ir.Splat:
		for k := range width {
			out[k] = l.vals[args[0]][0]
		}
	case ir.Compose:
		for k := range width {
			out[k] = l.vals[args[k]][0]
		}
	case ir.Extract:
		out[0] = l.vals[args[0]][in.Flag]
	case ir.LoadVar:
		x := in.Imm
		if !within(l.l.stores[x], v, l.l.end[v]) {
			// The variable is not overwritten while the value is needed.
			*out = l.vars[x]
			return
		}
		for k := range width {
			r := l.vars[x][k]
			out[k] = l.newReg(r.uniform())
			l.compute(planeMove, out[k], 0, r)
		}
	case ir.Load, ir.LoadShared:
		l.load(v, in)
	case ir.Dot:
		l.dot(v, in)
	case ir.PackHalf, ir.UnpackHalf, ir.PackI8, ir.UnpackI8, ir.UnpackU8:
		l.packed(in, out)
	case ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupShuffle, ir.SubgroupXor, ir.SubgroupFirst:
		l.subgroup(v, in)
	default:
		if renames(l.p, in) {
			for k := range width {
				out[k] = l.comp(args[0], k)
			}
			l.step[v] = l.step[args[0]]
			return
		}
		l.elementwise(v, in)
	}
}

func (l *lowering) elementwise(v ir.Value, in *ir.Instr) {
	args, n := in.Operands()
	f, rounds := function(l.p, v)
	if m := l.l.product[v]; m != 0 {
		other := args[0]
		if other == m {
			other = args[1]
		}
		args, n = [4]ir.Value{l.p.Code[m].Args[0], l.p.Code[m].Args[1], other}, 3
		if f.plane = planeMulAddU32; in.Type == ir.F32 {
			f.plane = planeMulAddF32
		}
	}
	target, into := l.target(v, in, args[:n])
	for k := range int(in.Width) {
		var rs [3]reg
		for j, a := range args[:n] {
			rs[j] = l.comp(a, k)
		}
		d := target[k]
		if !into {
			d = l.newReg(one(rs[:n]...))
		}
		l.compute(f.plane, d, 0, rs[:n]...)
		if rounds {
			l.compute(planeConvertF32F16, d, 0, d)
		}
		l.vals[v][k] = d
	}
	switch {
	case l.l.product[v] != 0:
	case in.Code == ir.Add:
		l.step[v] = l.step[args[0]] && l.comp(args[1], 0).uniform() || l.step[args[1]] && l.comp(args[0], 0).uniform()
	case in.Code == ir.Sub:
		l.step[v] = l.step[args[0]] && l.comp(args[1], 0).uniform()
	}
	l.step[v] = l.step[v] && in.Width == 1 && in.Type.Integer()
}

// target returns the registers of the variable that v is stored to, if it can
// be computed in place: the store is its only use, every lane that later reads the variable executes the store, and no
// instruction in between reads the variable.
func (l *lowering) target(v ir.Value, in *ir.Instr, args []ir.Value) (regs [4]reg, ok bool) {
	store := l.l.end[v]
	if l.l.uses[v] != 1 || store <= v || l.p.Code[store].Code != ir.StoreVar || l.p.Code[store].Args[0] != v {
		return regs, false
	}
	x := l.p.Code[store].Imm
	if l.u.partial[store] || in.Width != l.p.Vars[x].Width ||
		within(l.l.loads[x], v, store) || within(l.l.stores[x], v, store) {
		return regs, false
	}
	// Both are in one block, so that they run equally often.
	for j := v + 1; j < store; j++ {
		switch l.p.Code[j].Code {
		case ir.If, ir.Else, ir.For, ir.Loop, ir.End, ir.Break, ir.Continue, ir.Return:
			return regs, false
		}
	}
	regs = l.vars[x]
	for _, load := range l.l.loads[x] {
		if load < v && l.l.end[load] > v {
			return regs, false
		}
	}
	for k := range int(in.Width) {
		uniform := true
		for _, a := range args {
			r := l.comp(a, k)
			uniform = uniform && r.uniform()
			// The operands of a later component must not be overwritten by an earlier component.
			for j := range k {
				if r == regs[j] {
					return regs, false
				}
			}
		}
		if uniform != regs[k].uniform() {
			return regs, false
		}
	}
	return regs, true
}

// dot sums the products from the first component to the last.
func (l *lowering) dot(v ir.Value, in *ir.Instr) {
	a, b := l.vals[in.Args[0]], l.vals[in.Args[1]]
	n := l.width(in.Args[0])
	d := l.newReg(one(a[:n]...) && one(b[:n]...))
	half := in.Type == ir.F16
	if half || n == 1 {
		t := l.newReg(d.uniform())
		for k := range n {
			to := t
			if k == 0 {
				to = d
			}
			l.compute(planeMulF32, to, 0, a[k], b[k])
			if half {
				l.compute(planeConvertF32F16, to, 0, to)
			}
			if k > 0 {
				l.compute(planeAddF32, d, 0, d, t)
				if half {
					l.compute(planeConvertF32F16, d, 0, d)
				}
			}
		}
		l.free(t)
	} else {
		l.compute(planeMulF32, d, 0, a[0], b[0])
		for k := 1; k < n; k++ {
			l.compute(planeMulAddF32, d, 0, a[k], b[k], d)
		}
	}
	l.vals[v][0] = d
}

func (l *lowering) access(in *ir.Instr) *access {
	if in.Code == ir.LoadShared || in.Code == ir.StoreShared || in.Code == ir.AtomicOpShared || in.Code == ir.UniformLoad {
		a := &l.p.Shared[in.Imm]
		return &access{shared: true, slot: int(in.Imm), width: int(a.Width), signed: a.Type == ir.I32, op: in.Flag}
	}
	b := &l.p.Bindings[in.Imm]
	return &access{slot: int(in.Imm), width: int(b.Width), half: b.Type == ir.F16, signed: b.Type == ir.I32, op: in.Flag}
}

func (l *lowering) load(v ir.Value, in *ir.Instr) {
	index := l.vals[in.Args[0]][0]
	o := op{kind: opLoad, mem: l.access(in), value: v}
	switch {
	case index.uniform():
		o.kind = opLoadOne
	case l.step[in.Args[0]]:
		o.kind = opLoadRow
	}
	i := l.emit(o)
	l.put(i, 1, index)
	for k := range int(in.Width) {
		r := l.newReg(index.uniform())
		l.vals[v][k] = r
		l.put(i, 4+k, r)
	}
}

var subgroupOps = map[ir.Code]opKind{ir.SubgroupOp: opReduce, ir.SubgroupScan: opScan, ir.SubgroupShuffle: opShuffle,
	ir.SubgroupXor: opShuffleXor, ir.SubgroupFirst: opFirst}

func (l *lowering) subgroup(v ir.Value, in *ir.Instr) {
	from, copied := reg(0), false
	if in.Code == ir.SubgroupShuffle {
		from, copied = l.plane(l.vals[in.Args[1]][0])
	}
	for k := range int(in.Width) {
		a, temporary := l.plane(l.comp(in.Args[0], k))
		d := l.newReg(false)
		i := l.emit(op{kind: subgroupOps[in.Code], imm: in.Imm, value: v, fold: combiner(in)})
		l.put(i, 0, d)
		l.put(i, 1, a)
		if in.Code == ir.SubgroupShuffle {
			l.put(i, 2, from)
		}
		if temporary {
			l.free(a)
		}
		l.vals[v][k] = d
	}
	if copied {
		l.free(from)
	}
}
