package ptx

import "math"

// loop is the innermost open loop or an enclosing one, while its body is built.
type loop struct {
	next, end   val  // labels; next is 0 without a label
	again, left bool // there are branches to next and to end
}

// Label is a position in the code to which branches can go.
type Label struct {
	k   *Kernel
	at  val
	age uint32 // of the kernel: see Module.Reset
}

func (k *Kernel) label() val {
	k.labels++
	return tagged(tagLabel, int(k.labels-1))
}

func (k *Kernel) place(l val) { k.put(opLabel, 0, 0, l, 0, 0) }

func (k *Kernel) branch(l val) { k.put(opBranch, 0, 0, l, 0, 0) }

// branchIf branches to l if the predicate p is true, or, with not, if it is false.
func (k *Kernel) branchIf(p val, not bool, l val) {
	k.guard = guardOf(p, not)
	k.put(opBranch, 0, 0, l, 0, 0)
	k.guard = 0
}

// NewLabel returns a label. It must be placed exactly once.
func (k *Kernel) NewLabel() Label {
	k = k.owner()
	if !k.ready() {
		return Label{k: k}
	}
	l := Label{k, k.label(), k.age}
	k.marks = append(k.marks, mark{at: l.at, pc: authorCounter()})
	return l
}

// mark is the state of a label that the author made.
type mark struct {
	at           val
	placed, used bool
	pc           uintptr // where the author made it
}

// Place places the label at the current position.
func (k *Kernel) Place(l Label) {
	if !k.open() {
		return
	}
	m := k.owns(l)
	switch {
	case m == nil:
	case m.placed:
		k.fail("the label was placed before")
	default:
		m.placed = true
		k.place(l.at)
	}
}

// Branch branches to the label.
func (k *Kernel) Branch(l Label) {
	if !k.open() {
		return
	}
	if m := k.owns(l); m != nil {
		m.used = true
		k.branch(l.at)
	}
}

// BranchIf branches to the label if p is true.
func (k *Kernel) BranchIf(p Pred, l Label) {
	if !k.open() {
		return
	}
	if m := k.owns(l); m != nil {
		m.used = true
		k.goIf(p, l.at)
	}
}

// goIf branches to l if p is true.
func (k *Kernel) goIf(p Pred, l val) {
	if v, ok := p.constant(); ok {
		if v {
			k.branch(l)
		}
		return
	}
	k.branchIf(k.use(handle(p), kPred), false, l)
}

// goUnless branches to l if p is false.
func (k *Kernel) goUnless(p Pred, l val) {
	if v, ok := p.constant(); ok {
		if !v {
			k.branch(l)
		}
		return
	}
	k.branchIf(k.use(handle(p), kPred), true, l)
}

// owns returns the state of a label, or reports an error and returns nil if another kernel made it.
func (k *Kernel) owns(l Label) *mark {
	if l.k == k && l.age == k.age {
		for i := range k.marks {
			if k.marks[i].at == l.at {
				return &k.marks[i]
			}
		}
	}
	k.fail("the label belongs to another kernel")
	return nil
}

// constant returns the value of p, and reports whether it is known while the kernel is built.
func (p Pred) constant() (v, ok bool) { return p.c != 0, p.k == nil }

// open reports whether branches may be added here.
func (k *Kernel) open() bool {
	k = k.owner()
	if k.target == 0 {
		return k.ready()
	}
	if k.guard != 0 {
		k.fail("control flow is not allowed within When: use If")
		return false
	}
	return true
}

// inside builds a nested block of code.
func (k *Kernel) inside(body func()) {
	k.deeper()
	body()
	k.depth--
}

// deeper begins a nested block of code.
func (k *Kernel) deeper() {
	if k.depth++; k.depth > maxDepth {
		k.failure(ErrLimit, "blocks are nested deeper than %d levels", maxDepth)
	}
}

// If runs then in the threads in which p is true.
func (k *Kernel) If(p Pred, then func()) {
	if !k.open() {
		return
	}
	if v, ok := p.constant(); ok {
		if v {
			k.inside(then)
		}
		return
	}
	end := k.label()
	k.branchIf(k.use(handle(p), kPred), true, end)
	k.inside(then)
	k.place(end)
}

// IfElse runs then in the threads in which p is true, and otherwise in the other threads.
func (k *Kernel) IfElse(p Pred, then, otherwise func()) {
	if !k.open() {
		return
	}
	if v, ok := p.constant(); ok {
		if v {
			k.inside(then)
		} else {
			k.inside(otherwise)
		}
		return
	}
	other, end := k.label(), k.label()
	k.branchIf(k.use(handle(p), kPred), true, other)
	k.inside(then)
	k.branch(end)
	k.place(other)
	k.inside(otherwise)
	k.place(end)
}

// When predicates each instruction of body by p, without a branch: only the threads in which p is
// true execute it. It suits a few instructions without control flow. A value that is computed
// inside is undefined in the other threads; set a [Var] instead. When cannot be nested.
func (k *Kernel) When(p Pred, body func()) {
	if !k.open() {
		return
	}
	if v, ok := p.constant(); ok {
		if v {
			body()
		}
		return
	}
	k.guard = guardOf(k.use(handle(p), kPred), false)
	body()
	k.guard = 0
}

// For runs body for i = lo, lo+step ... while i < hi. lo, hi and step are evaluated once. The loop
// ends even if i + step would exceed 32 bits.
func (k *Kernel) For(lo, hi, step U32, body func(i U32)) {
	if !k.open() {
		return
	}
	if step.k == nil && step.c == 0 {
		k.fail("the loop has step 0 and would not end")
		return
	}
	runs := false // the loop certainly runs at least once
	if lo.k == nil && hi.k == nil {
		if runs = lo.c < hi.c; !runs {
			return
		}
	}
	head, next, end := k.label(), k.label(), k.label()
	i := k.result(opMovU32, k.use(handle(lo), kU32), 0, 0)
	if !runs {
		k.branchIf(op2(opGeU32, i, handle(hi)).v, false, end)
	}
	// An i below last has a successor. With step 1, this is any i with i + 1 below hi.
	one := step == U(1)
	last := hi
	if !one {
		last = hi.Max(step).Sub(step)
	}
	k.place(head)
	k.begin(next, end)
	body(U32(i))
	k.depth--
	if !k.ready() {
		return
	}
	l := k.endLoop()
	if l.again {
		k.place(next)
	}
	if one {
		k.put(opAddU32, 0, i.v, i.v, k.use(handle(step), kU32), 0)
	}
	again := op2(opLtU32, i, handle(last))
	if !one {
		k.put(opAddU32, 0, i.v, i.v, k.use(handle(step), kU32), 0)
	}
	k.branchIf(again.v, false, head)
	if l.left || !runs {
		k.place(end)
	}
}

// Count runs body n times: it is [Kernel.For] from 0 with step 1. n may be a constant or not.
func (k *Kernel) Count(n U32, body func(i U32)) { k.For(U(0), n, U(1), body) }

// While runs body while the condition is true. cond is called once and builds the condition at the
// head of the loop.
func (k *Kernel) While(cond func() Pred, body func()) {
	if !k.open() {
		return
	}
	head, end := k.label(), k.label()
	k.place(head)
	k.begin(head, end)
	k.goUnless(cond(), end)
	body()
	k.depth--
	if !k.ready() {
		return
	}
	k.branch(head)
	k.endLoop()
	k.place(end)
}

// Loop runs body until Break or Return.
func (k *Kernel) Loop(body func()) {
	if !k.open() {
		return
	}
	head, end := k.label(), k.label()
	k.place(head)
	k.loops = append(k.loops, loop{next: head, end: end})
	k.inside(body)
	if !k.ready() {
		return
	}
	k.branch(head)
	if k.endLoop().left {
		k.place(end)
	}
}

// Repeat runs body, and repeats it while the predicate that body returns is true. The loop runs at
// least once and has one branch. It supports no Continue.
func (k *Kernel) Repeat(body func() (again Pred)) {
	if !k.open() {
		return
	}
	head, end := k.label(), k.label()
	k.place(head)
	k.begin(0, end)
	again := body()
	k.depth--
	if !k.open() {
		return
	}
	k.goIf(again, head)
	if k.endLoop().left {
		k.place(end)
	}
}

// innermost returns the innermost loop, or nil and an error that names the operation what.
func (k *Kernel) innermost(what string) *loop {
	if !k.open() {
		return nil
	}
	if len(k.loops) == 0 {
		k.fail("%s is used outside a loop", what)
		return nil
	}
	return &k.loops[len(k.loops)-1]
}

// leave returns the end of the innermost loop.
func (k *Kernel) leave(what string) (end val, ok bool) {
	l := k.innermost(what)
	if l == nil {
		return 0, false
	}
	l.left = true
	return l.end, true
}

// goOn returns the label at which the innermost loop continues.
func (k *Kernel) goOn(what string) (next val, ok bool) {
	l := k.innermost(what)
	if l == nil {
		return 0, false
	}
	if l.next == 0 {
		k.fail("%s is not allowed in a loop of Repeat", what)
		return 0, false
	}
	l.again = true
	return l.next, true
}

// begin begins the body of a loop.
func (k *Kernel) begin(next, end val) {
	n := len(k.loops)
	if n == cap(k.loops) {
		k.loops = append(make([]loop, 0, 2*n+8), k.loops...)
	}
	// The fields are set one by one, because a composite literal would be built elsewhere and
	// copied.
	k.loops = k.loops[:n+1]
	l := &k.loops[n]
	l.next, l.end, l.again, l.left = next, end, false, false
	k.deeper()
}

// endLoop ends the innermost loop and returns it.
func (k *Kernel) endLoop() loop {
	l := k.loops[len(k.loops)-1]
	k.loops = k.loops[:len(k.loops)-1]
	return l
}

// Break leaves the innermost loop.
func (k *Kernel) Break() {
	if end, ok := k.leave("Break"); ok {
		k.branch(end)
	}
}

// BreakIf leaves the innermost loop if p is true.
func (k *Kernel) BreakIf(p Pred) {
	if end, ok := k.leave("BreakIf"); ok {
		k.goIf(p, end)
	}
}

// Continue continues with the next iteration of the innermost loop.
func (k *Kernel) Continue() {
	if next, ok := k.goOn("Continue"); ok {
		k.branch(next)
	}
}

// ContinueIf continues with the next iteration of the innermost loop if p is true.
func (k *Kernel) ContinueIf(p Pred) {
	if next, ok := k.goOn("ContinueIf"); ok {
		k.goIf(p, next)
	}
}

// Return ends the thread.
func (k *Kernel) Return() {
	if k.open() {
		k.put(opReturn, 0, 0, 0, 0, 0)
	}
}

// ReturnIf ends the thread if p is true.
func (k *Kernel) ReturnIf(p Pred) {
	if !k.open() {
		return
	}
	if v, ok := p.constant(); ok {
		if v {
			k.Return()
		}
		return
	}
	k.guard = guardOf(k.use(handle(p), kPred), false)
	k.put(opReturn, 0, 0, 0, 0, 0)
	k.guard = 0
}

// Sync waits for all threads of the block, and makes the writes of each thread to shared and global
// memory visible to the others. All threads must reach it.
func (k *Kernel) Sync() {
	if k.open() {
		k.put(opBarrierU32, 0, 0, tagged(tagSmall, 0), 0, 0)
	}
}

// SyncSome waits at barrier id, from 1 to 15, until the given number of threads has arrived by
// SyncSome or [Kernel.Arrive]. The threads must be whole warps.
func (k *Kernel) SyncSome(id, threads int) { k.some(opBarrierCountU32, id, threads) }

// Arrive counts for barrier id as [Kernel.SyncSome] does, but does not wait.
func (k *Kernel) Arrive(id, threads int) { k.some(opBarrierArriveU32, id, threads) }

func (k *Kernel) some(o code, id, threads int) {
	if !k.open() {
		return
	}
	if id < 1 || id > 15 || threads < 32 || threads > MaxThreads || threads%32 != 0 {
		k.failure(ErrLimit, "barrier %d for %d threads is invalid: the barrier must be from 1 to 15, and the threads whole warps", id, threads)
		return
	}
	k.put(o, 0, 0, tagged(tagSmall, id), tagged(tagSmall, threads), 0)
}

// SyncWarp waits for the lanes in the mask members, which has one bit for each lane, and makes the
// writes of each of them visible to the others.
func (k *Kernel) SyncWarp(members U32) {
	if k.open() {
		k.put(opWarpBarrierU32, 0, 0, k.use(handle(members), kU32), 0, 0)
	}
}

// FenceBlock orders the accesses before and after it, for the threads of the block.
func (k *Kernel) FenceBlock() { k.owner().put(opFenceBlock, 0, 0, 0, 0, 0) }

// FenceDevice orders the accesses before and after it, for the threads of the device.
func (k *Kernel) FenceDevice() { k.owner().put(opFenceDevice, 0, 0, 0, 0, 0) }

// FenceSystem orders the accesses before and after it, also for the host and other devices.
func (k *Kernel) FenceSystem() { k.owner().put(opFenceSystem, 0, 0, 0, 0, 0) }

// FenceOrder is FenceDevice, but all threads see such fences in the same order.
func (k *Kernel) FenceOrder() { k.owner().put(opFenceOrder, 0, 0, 0, 0, 0) }

// AllLanes is the mask of all lanes of a warp.
var AllLanes = U(math.MaxUint32)

// ActiveMask returns the lanes that happen to execute this instruction together.
func (k *Kernel) ActiveMask() U32 { return U32(k.owner().result(opActiveMask, 0, 0, 0)) }
