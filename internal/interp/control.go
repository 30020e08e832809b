package interp

import "github.com/rayo-go/rayo/internal/ir"

// statement emits the ops of an instruction with effects.
func (l *lowering) statement(v ir.Value, in *ir.Instr) {
	p := l.p
	top := &l.blocks[len(l.blocks)-1]
	switch in.Code {
	case ir.StoreVar:
		l.storeVar(v, in)
	case ir.Store, ir.StoreShared:
		l.store(v, in)
	case ir.AtomicOp, ir.AtomicOpShared:
		l.atomic(v, in)
	case ir.UniformLoad:
		l.uniformLoad(v, in)
	case ir.Barrier:
		l.emit(op{kind: opBarrier, value: v})
	case ir.If:
		c := l.vals[in.Args[0]][0]
		o := op{kind: opIf, frame: len(l.blocks) - 1}
		if c.uniform() {
			o.kind = opIfOne
		}
		at := l.emit(o)
		l.put(at, 1, c)
		l.blocks = append(l.blocks, openBlock{head: v, at: at, one: c.uniform(), frame: o.frame})
		l.k.depth = max(l.k.depth, len(l.blocks))
	case ir.Else:
		l.elseBlock(top)
	case ir.For:
		l.forLoop(v, in)
	case ir.Loop:
		frame := len(l.blocks) - 1
		at := l.emit(op{kind: opLoop, frame: frame, value: v, imm: uint32(in.Flag)})
		l.blocks = append(l.blocks, openBlock{head: v, at: at, frame: frame})
		l.k.depth = max(l.k.depth, len(l.blocks))
	case ir.End:
		if p.Code[top.head].Code == ir.If {
			l.endIf(top)
		} else {
			l.endLoop(top)
		}
	case ir.Break, ir.Continue:
		top.exits = append(top.exits, l.jump(in))
	case ir.Return:
		top.exits = append(top.exits, l.emit(op{kind: opReturn}))
	}
}

// uniformLoad emits a load after which all lanes have the same value.
func (l *lowering) uniformLoad(v ir.Value, in *ir.Instr) {
	index, temporary := l.plane(l.vals[in.Args[0]][0])
	i := l.emit(op{kind: opUniformLoad, mem: l.access(in), value: v})
	l.put(i, 1, index)
	for k := range int(in.Width) {
		l.vals[v][k] = l.newReg(true)
		l.put(i, 4+k, l.vals[v][k])
	}
	l.hold(v)
	if temporary {
		l.free(index)
	}
}

// jump emits the op of a Break or Continue, and returns its index.
func (l *lowering) jump(in *ir.Instr) int {
	kind := opBreak
	if in.Code == ir.Continue {
		kind = opContinue
	}
	frame := 0
	for _, b := range l.blocks[1:] {
		if b.head == ir.Value(in.Imm) {
			frame = b.frame
		}
	}
	return l.emit(op{kind: kind, frame: frame})
}

func (l *lowering) storeVar(v ir.Value, in *ir.Instr) {
	for k := range int(l.p.Vars[in.Imm].Width) {
		d, a := l.vars[in.Imm][k], l.comp(in.Args[0], k)
		if d == a {
			continue // computed in place
		}
		if !l.u.partial[v] || d.uniform() {
			l.compute(planeMove, d, 0, a)
			continue
		}
		o := op{kind: opSetMasked, blocks: l.k.blocks}
		if !a.uniform() {
			o.stride[0] = blockBytes
		}
		i := l.emit(o)
		l.put(i, 0, d)
		l.put(i, 1, a)
	}
}

func (l *lowering) store(v ir.Value, in *ir.Instr) {
	m := l.access(in)
	var temporary []reg
	plane := func(r reg) reg {
		q, t := l.plane(r)
		if t {
			temporary = append(temporary, q)
		}
		return q
	}
	index := plane(l.vals[in.Args[0]][0])
	var comps [4]reg
	for k := range m.width {
		comps[k] = plane(l.comp(in.Args[1], k))
	}
	o := op{kind: opStore, mem: m, value: v}
	if l.step[in.Args[0]] {
		o.kind = opStoreRow
	}
	i := l.emit(o)
	l.put(i, 1, index)
	for k := range m.width {
		l.put(i, 4+k, comps[k])
	}
	for _, r := range temporary {
		l.free(r)
	}
}

func (l *lowering) atomic(v ir.Value, in *ir.Instr) {
	m := l.access(in)
	m.result = in.Type != ir.Invalid && l.l.uses[v] > 0
	args, n := in.Operands()
	var rs [3]reg
	var temporary []reg
	for k, a := range args[:n] {
		q, t := l.plane(l.vals[a][0])
		if rs[k] = q; t {
			temporary = append(temporary, q)
		}
	}
	i := l.emit(op{kind: opAtomic, mem: m, value: v})
	for k := range n {
		l.put(i, k+1, rs[k])
	}
	if in.Type != ir.Invalid {
		l.vals[v][0] = l.newReg(false)
		l.put(i, 0, l.vals[v][0])
		l.hold(v)
	}
	for _, r := range temporary {
		l.free(r)
	}
}

// land sets op at as the target of the exits of the innermost block, which leave the block when no lane is active.
func (l *lowering) land(at int) {
	b := &l.blocks[len(l.blocks)-1]
	for _, x := range b.exits {
		l.k.ops[x].outer = at
	}
	b.exits = nil
}

func (l *lowering) elseBlock(top *openBlock) {
	o := op{kind: opElse, frame: top.frame}
	if top.one {
		o.kind = opJump
	}
	at := l.emit(o)
	l.land(at)
	l.k.ops[top.at].jump = at + 1
	top.at = at
}

func (l *lowering) endIf(top *openBlock) {
	o := op{kind: opEndIf, frame: top.frame}
	if top.one {
		o.kind = opEndOne
	}
	at := l.emit(o)
	l.land(at)
	l.k.ops[top.at].jump = at
	l.pop(at)
}

// pop leaves the innermost block, which ends at op at.
func (l *lowering) pop(at int) {
	l.blocks = l.blocks[:len(l.blocks)-1]
	top := &l.blocks[len(l.blocks)-1]
	top.exits = append(top.exits, at)
}

func (l *lowering) forLoop(v ir.Value, in *ir.Instr) {
	start, limit, step := l.vals[in.Args[0]][0], l.vals[in.Args[1]][0], l.vals[in.Args[2]][0]
	uniform := one(start, limit, step)
	b := openBlock{head: v, frame: len(l.blocks) - 1, one: uniform, counter: l.newReg(uniform), limit: limit, stride: step}
	l.vals[v][0] = b.counter
	l.compute(planeMove, b.counter, 0, start)
	l.hold(v)
	o := op{kind: opFor, frame: b.frame, value: v, imm: uint32(in.Flag), mem: &access{signed: in.Type == ir.I32}}
	if uniform {
		o.kind = opForOne
	}
	b.at = l.emitFor(o, &b)
	l.blocks = append(l.blocks, b)
	l.k.depth = max(l.k.depth, len(l.blocks))
}

// emitFor adds the op at one end of a For.
func (l *lowering) emitFor(o op, b *openBlock) int {
	for k, r := range []reg{b.limit, b.stride} {
		if !r.uniform() {
			o.stride[k] = blockBytes
		}
	}
	at := l.emit(o)
	l.put(at, 0, b.counter)
	l.put(at, 1, b.limit)
	l.put(at, 2, b.stride)
	return at
}

func (l *lowering) endLoop(top *openBlock) {
	in := &l.p.Code[top.head]
	o := op{kind: opEndLoop, frame: top.frame, value: top.head, imm: uint32(in.Flag), jump: top.at + 1}
	at := 0
	if in.Code == ir.For {
		o.kind, o.mem = opEndFor, l.k.ops[top.at].mem
		if top.one {
			o.kind = opEndForOne
		}
		at = l.emitFor(o, top)
	} else {
		at = l.emit(o)
	}
	l.land(at)
	l.k.ops[top.at].jump = at + 1
	// A loop that no lane enters, or that all lanes have left, exits too.
	l.blocks[len(l.blocks)-2].exits = append(l.blocks[len(l.blocks)-2].exits, top.at)
	l.pop(at)
}
