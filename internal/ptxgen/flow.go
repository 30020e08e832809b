package ptxgen

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/ptx"
)

// loop is an open loop: the targets of Continue and Break.
type loop struct {
	head      ir.Value
	next, end ptx.Label
}

// branch lowers an If and its blocks, and returns the index of its End.
func (g *lowering) branch(at int, in *ir.Instr) int {
	cond := ptx.Pred(g.comp(in.Args[0], 0))
	middle := int(in.Imm)
	if g.p.Code[middle].Code != ir.Else {
		g.k.If(cond, func() { g.block(at+1, middle) })
		return middle
	}
	end := int(g.p.Code[middle].Imm)
	g.k.IfElse(cond, func() { g.block(at+1, middle) }, func() { g.block(middle+1, end) })
	return end
}

// open begins a loop.
func (g *lowering) open(head ir.Value) *loop {
	g.loops = append(g.loops, loop{head, g.k.NewLabel(), g.k.NewLabel()})
	return &g.loops[len(g.loops)-1]
}

func (g *lowering) close() { g.loops = g.loops[:len(g.loops)-1] }

// leave branches to the end or to the next iteration of a loop.
func (g *lowering) leave(in *ir.Instr) {
	for i := len(g.loops) - 1; i >= 0; i-- {
		l := &g.loops[i]
		if l.head != ir.Value(in.Imm) {
			continue
		}
		if in.Code == ir.Break {
			g.k.Branch(l.end)
		} else {
			g.k.Branch(l.next)
		}
		return
	}
}

// budget returns a function that writes the code that ends a loop at the iteration limit, for loops
// that are not known to terminate. The code belongs at the beginning of an iteration.
func (g *lowering) budget(v ir.Value, in *ir.Instr) func(end ptx.Label) {
	if in.Flag == ir.Bounded {
		return func(ptx.Label) {}
	}
	turns := ptx.NewVar(g.k, ptx.U(0))
	return func(end ptx.Label) {
		over := turns.Get().Ge(ptx.U(g.p.Budget))
		if g.Checked {
			g.k.When(over, func() { g.note(v, ptx.U(g.p.Budget), ptx.U(g.p.Budget)) })
		}
		g.k.BranchIf(over, end)
		ptx.AddTo(turns, ptx.U(1))
	}
}

// endless lowers a Loop and returns the index of its End.
func (g *lowering) endless(v ir.Value, in *ir.Instr) int {
	k, end := g.k, int(in.Imm)
	check := g.budget(v, in)
	l := *g.open(v)
	k.Place(l.next)
	check(l.end)
	g.block(int(v)+1, end)
	k.Branch(l.next)
	g.close()
	k.Place(l.end)
	return end
}

// counted lowers a For and returns the index of its End.
func (g *lowering) counted(v ir.Value, in *ir.Instr) int {
	k, end := g.k, int(in.Imm)
	lo, hi, step := g.comp(in.Args[0], 0), g.comp(in.Args[1], 0), g.comp(in.Args[2], 0)
	less := ptx.U32.Lt
	if in.Type == ir.I32 {
		less = func(x, y ptx.U32) ptx.Pred { return x.S32().Lt(y.S32()) }
	}
	again := g.successor(in.Type, hi, step)
	check := g.budget(v, in)
	l := *g.open(v)
	i := ptx.NewVar(k, lo)
	if x, ok := lo.Constant(); !ok || !below(in.Type, x, hi) {
		k.BranchIf(less(i.Get(), hi).Not(), l.end)
	}
	head := k.NewLabel()
	k.Place(head)
	check(l.end)
	g.values[v][0] = i.Get()
	g.block(int(v)+1, end)
	g.close()
	k.Place(l.next)
	again(i, head)
	k.Place(l.end)
	return end
}

// below reports whether lo is known to be less than hi.
func below(t ir.Type, lo uint32, hi ptx.U32) bool {
	x, ok := hi.Constant()
	if t == ir.I32 {
		return ok && int32(lo) < int32(x)
	}
	return ok && lo < x
}

// successor returns a function that writes the code that advances the counter of a loop and
// branches to its head if there is another iteration.
func (g *lowering) successor(t ir.Type, hi, step ptx.U32) func(i ptx.Var[ptx.U32], head ptx.Label) {
	k := g.k
	s, known := step.Constant()
	switch {
	case t == ir.U32 && !(known && s == 0):
		// A counter below last has a successor below hi. If the step is 0, the counter does not
		// change, as required.
		last := hi.Max(step).Sub(step)
		return func(i ptx.Var[ptx.U32], head ptx.Label) {
			more := i.Get().Lt(last)
			ptx.AddTo(i, step)
			k.BranchIf(more, head)
		}
	case t == ir.I32 && known && int32(s) > 0:
		// The same for signed counters: hi - step does not overflow.
		least := ptx.S(-1 << 31).Add(step.S32())
		last := hi.S32().Max(least).Sub(step.S32())
		return func(i ptx.Var[ptx.U32], head ptx.Label) {
			more := i.Get().S32().Lt(last)
			ptx.AddTo(i, step)
			k.BranchIf(more, head)
		}
	}
	return func(i ptx.Var[ptx.U32], head ptx.Label) {
		// The step may be negative. The sum overflowed if it is below the counter although the step
		// is not negative, or vice versa.
		x := i.Get()
		y := x.Add(step)
		i.Set(y)
		whole := ptx.Is(true)
		less := y.Lt(hi)
		if t == ir.I32 {
			whole = y.S32().Lt(x.S32()).Xor(step.S32().Lt(ptx.S(0))).Not()
			less = y.S32().Lt(hi.S32())
		}
		k.BranchIf(less.And(whole), head)
	}
}
