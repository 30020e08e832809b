package kernel

import "github.com/rayo-go/rayo/internal/ir"

// block is an open block.
type block struct {
	at     ir.Value // its If, Else, For or Loop
	head   ir.Value // for an Else its If, otherwise at
	unsure bool     // lanes may differ in whether they execute the block
	ended  ir.Value // the Break, Continue or Return that ends the block, or 0
}

// Branch is an If statement. Else can add a branch to it.
type Branch struct {
	b      *Builder
	end    ir.Value // End of the If, 0 if the condition was constant
	unless bool     // the condition was constant and false
}

// If runs then in the lanes in which c is true. If c is known while the kernel is built, If chooses
// code, like a Go if.
func (b *Builder) If(c Bool, then func()) Branch {
	if !b.ready() {
		return Branch{}
	}
	if then == nil {
		b.fail("If with a nil function")
		return Branch{}
	}
	if c.b == nil {
		if c.bits != 0 {
			then()
		}
		return Branch{b: b, unless: c.bits == 0}
	}
	b.open(b.push(head(ir.If, 0, 0), b.use(handle(c), kBool), 0, 0, 0))
	then()
	return Branch{b: b, end: b.close()}
}

// Else runs f in the lanes in which the condition was false. It must follow its If directly.
func (x Branch) Else(f func()) {
	b := x.b
	switch {
	case !b.ready():
	case f == nil:
		b.fail("Else with a nil function")
	case x.unless:
		f()
	case x.end == 0: // the condition is known to be true
	case int(x.end) != len(b.code)-1 || b.code[x.end].code() != ir.End:
		b.fail("Else must follow its If directly")
	default:
		from := ir.Value(b.code[x.end].imm)
		b.code[x.end] = instr{head: head(ir.Else, 0, 0)}
		b.open(x.end)
		if b.err == nil {
			last := &b.blocks[len(b.blocks)-1]
			last.head, last.unsure = from, last.unsure || b.unsure(from)
		}
		f()
		b.close()
	}
}

// For runs body for i = from, from+1 ... while i < to.
func (b *Builder) For(from, to U32, body func(i U32)) { b.ForStep(from, to, U(1), body) }

// ForStep runs body for i = from, from+step ... while i < to. The three numbers are evaluated once,
// before the loop. The loop ends if the sum exceeds 32 bits.
func (b *Builder) ForStep(from, to, step U32, body func(i U32)) {
	if !b.ready() {
		return
	}
	if body == nil {
		b.fail("For with a nil function")
		return
	}
	if step.b == nil && step.bits == 0 {
		b.fail("For with a step of 0")
		return
	}
	id := b.beginFor(kU32, handle(from), handle(to), handle(step))
	body(U32{b: b, id: id})
	b.close()
}

// ForI32 is [Builder.ForStep] for signed numbers. The step must be positive.
func (b *Builder) ForI32(from, to, step I32, body func(i I32)) {
	if !b.ready() {
		return
	}
	if body == nil {
		b.fail("ForI32 with a nil function")
		return
	}
	if step.b == nil && int32(step.bits) <= 0 {
		b.fail("ForI32 with a step of %d: it must be positive", int32(step.bits))
		return
	}
	id := b.beginFor(kI32, handle(from), handle(to), handle(step))
	body(I32{b: b, id: id})
	b.close()
}

// beginFor opens a For. The loop is bounded if the step is known to be positive, because a sum that
// overflows ends it.
func (b *Builder) beginFor(k kind, from, to, step handle) ir.Value {
	flag := uint8(0)
	if step.b == nil {
		flag = ir.Bounded
	}
	p, q := b.use(from, k), b.use(to, k)
	id := b.push(head(ir.For, k, flag), p, q, b.use(step, k), 0)
	b.open(id)
	if b.err == nil && !b.blocks[len(b.blocks)-1].unsure {
		b.code[id].state = live
	}
	return id
}

// While runs body while cond is true. cond is evaluated on the device before each iteration. The
// device ends a loop with more iterations than the budget.
func (b *Builder) While(cond func() Bool, body func()) {
	if !b.ready() {
		return
	}
	if cond == nil || body == nil {
		b.fail("While with a nil function")
		return
	}
	b.open(b.push(head(ir.Loop, 0, 0), 0, 0, 0, 0))
	b.If(cond().Not(), b.Break)
	body()
	b.close()
}

// Loop runs body until [Builder.Break] or [Builder.Return]. The device ends a loop with more
// iterations than the budget.
func (b *Builder) Loop(body func()) {
	if !b.ready() {
		return
	}
	if body == nil {
		b.fail("Loop with a nil function")
		return
	}
	b.open(b.push(head(ir.Loop, 0, 0), 0, 0, 0, 0))
	body()
	b.close()
}

// Break leaves the innermost loop on the device; the statements after it in its block are
// unreachable.
func (b *Builder) Break() { b.leaveLoop(ir.Break, "Break") }

// Continue continues with the next iteration of the innermost loop on the device.
func (b *Builder) Continue() { b.leaveLoop(ir.Continue, "Continue") }

func (b *Builder) leaveLoop(c ir.Code, name string) {
	if !b.ready() {
		return
	}
	for i := len(b.blocks) - 1; i > 0; i-- {
		at := b.blocks[i].at
		if l := b.code[at].code(); l == ir.For || l == ir.Loop {
			b.terminate(b.push(head(c, 0, 0), 0, 0, 0, uint32(at)))
			return
		}
	}
	b.fail("%s outside of a loop of the device: in a Go loop, use Go's break and continue", name)
}

// Return ends the lane.
func (b *Builder) Return() {
	if b.ready() {
		b.terminate(b.push(head(ir.Return, 0, 0), 0, 0, 0, 0))
	}
}

func (b *Builder) terminate(id ir.Value) {
	if b.err != nil {
		return
	}
	last := &b.blocks[len(b.blocks)-1]
	if last.ended == 0 {
		last.ended = id
	}
	// From here on, the analysis would have to track which lanes have left the block.
	b.verifier = b.verifier || last.unsure
}

// open begins the block of instruction id.
func (b *Builder) open(id ir.Value) {
	if b.err != nil {
		return
	}
	if len(b.blocks) > maxDepth {
		b.failure(ErrLimit, "blocks are nested deeper than %d levels", maxDepth)
		return
	}
	b.blocks = append(b.blocks, block{at: id, head: id, unsure: b.unsure(id) || b.blocks[len(b.blocks)-1].unsure})
}

// close closes the innermost block and returns its End.
func (b *Builder) close() ir.Value {
	if !b.ready() {
		return 0
	}
	if len(b.blocks) < 2 {
		b.fail("a block ended that was not open: do not recover from panics in the function that builds the kernel")
		return 0
	}
	bl := b.blocks[len(b.blocks)-1]
	b.cut(bl.ended)
	end := b.push(head(ir.End, 0, 0), 0, 0, 0, 0)
	if end == 0 {
		return 0
	}
	b.blocks = b.blocks[:len(b.blocks)-1]
	b.code[bl.at].imm = uint32(end)
	b.code[end].imm = uint32(bl.head)
	for i := bl.at; i < end; i++ {
		b.code[i].state = 0
	}
	return end
}

// unsure reports whether lanes may differ in whether they execute the block of instruction id.
func (b *Builder) unsure(id ir.Value) bool {
	in := &b.code[id]
	switch in.code() {
	case ir.If, ir.For:
		return (b.code[in.args[0]].state|b.code[in.args[1]].state|b.code[in.args[2]].state)&unsure != 0
	}
	return false
}

// together records an instruction that all lanes must reach. If only uniform values decide whether
// they do, no proof is needed; otherwise the complete program is analysed: see Kernel.together.
func (b *Builder) together() {
	if b.err == nil {
		b.verifier = b.verifier || b.blocks[len(b.blocks)-1].unsure
	}
}

// cut removes the unreachable statements after a jump.
func (b *Builder) cut(after ir.Value) {
	if after == 0 {
		return
	}
	b.code = b.code[:after+1]
	if b.pos != nil {
		b.pos = b.pos[:after+1]
	}
}
