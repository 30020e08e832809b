package ptx

import "slices"

// CheckFlow finds branches to labels that are not placed, and loops that no path leaves, in which a
// thread never ends.
var CheckFlow = Pass{"flow", checkFlow}

// CheckDefinitions finds registers that are read before they are written on some path. A register
// that is written under a condition ([Kernel.When]) may be read under the same condition.
var CheckDefinitions = Pass{"definitions", checkDefinitions}

// CheckShared finds kernels that need more shared memory than a block of the target can have.
var CheckShared = Pass{"shared memory", checkShared}

func checkFlow(b *body) {
	g := b.graph()
	for _, i := range g.unknown {
		b.report(i, "the target of the branch is a label that is not placed")
	}
	// From which blocks can a thread end?
	ends := make([]bool, len(g.blocks))
	var stack []int32
	for i := range g.blocks {
		if g.blocks[i].ends {
			ends[i] = true
			stack = append(stack, int32(i))
		}
	}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, p := range g.blocks[top].before {
			if !ends[p] {
				ends[p] = true
				stack = append(stack, p)
			}
		}
	}
	for _, n := range g.order {
		bl := &g.blocks[n]
		traps := false
		for i := bl.begin; i < bl.end; i++ {
			traps = traps || b.k.code[i].op == opTrap
		}
		if !ends[n] && !traps {
			b.report(bl.end-1, "no path leaves the loop")
			return
		}
	}
}

func checkDefinitions(b *body) {
	g, f, k := b.graph(), b.registers(), b.k
	// The first write of nearly all registers comes before their reads on all paths, which is a
	// quick check. The others need a search in the control-flow graph.
	type question struct {
		at  int
		reg val
	}
	var open []question
	var a access
	seen := map[val]bool{}
	for i := range k.code {
		if g.rank[g.of[i]] < 0 {
			continue
		}
		in := &k.code[i]
		a.of(k, in)
		for _, v := range a.reads {
			n := f.number(v)
			switch first := int(f.first[n]); {
			case f.writes[n] == 0:
				if !seen[v] {
					b.report(i, "%s is read but never written", k.appendOperand(nil, v))
					seen[v] = true
				}
			case first < 0:
			case first < i && g.dominates(g.of[first], g.of[i]) && (k.code[first].guard == 0 || k.code[first].guard == in.guard):
			default:
				open = append(open, question{i, v})
			}
		}
	}
	for _, q := range open {
		if !seen[q.reg] && !b.writtenBefore(q.at, q.reg) {
			b.report(q.at, "%s may be read before it is written", k.appendOperand(nil, q.reg))
			seen[q.reg] = true
		}
	}
}

// writtenBefore reports whether v is written on every path to instruction at.
func (b *body) writtenBefore(at int, v val) bool {
	g, k := b.graph(), b.k
	var a access
	in := &k.code[at]
	writes := func(i int) bool {
		w := &k.code[i]
		if w.guard != 0 && w.guard != in.guard {
			return false
		}
		a.of(k, w)
		return slices.Contains(a.writes, v)
	}
	// back searches for a write backwards, from at to the beginning.
	back := func(from, to int) bool { // whether one of to..from-1 writes v
		for i := from - 1; i >= to; i-- {
			if writes(i) {
				return true
			}
		}
		return false
	}
	start := g.of[at]
	if back(at, g.blocks[start].begin) {
		return true
	}
	if start == 0 {
		return false
	}
	seen := map[int32]bool{}
	stack := append([]int32(nil), g.blocks[start].before...)
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[n] || g.rank[n] < 0 {
			continue
		}
		seen[n] = true
		if back(g.blocks[n].end, g.blocks[n].begin) {
			continue
		}
		if n == 0 {
			return false
		}
		stack = append(stack, g.blocks[n].before...)
	}
	return true
}

// sharedOf has the maximum bytes of shared memory of a block. A target that is not listed has the
// value of the last listed target below it.
var sharedOf = []struct {
	target Target
	bytes  int
}{
	{SM70, 96 << 10}, {SM75, 64 << 10}, {SM80, 163 << 10}, {SM86, 99 << 10}, {SM87, 163 << 10}, {SM89, 99 << 10},
	{SM90, 227 << 10}, {SM120, 99 << 10},
}

// MaxShared returns the maximum number of bytes of shared memory of a block.
func (t Target) MaxShared() int {
	n := 0
	for _, s := range sharedOf {
		if s.target <= t {
			n = s.bytes
		}
	}
	return n
}

func checkShared(b *body) {
	t := b.k.m.target
	if n := int(b.k.aligned(b.k.static) + b.k.dynamic); n > t.MaxShared() {
		b.report(-1, "the kernel needs %d bytes of shared memory; a block of %v has %d", n, t, t.MaxShared())
	}
	if b.k.dynamic == 0 && b.k.static > MaxStaticShared {
		b.report(-1, "%d bytes of static shared memory are too many", b.k.static)
	}
}
