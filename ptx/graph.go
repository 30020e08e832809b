package ptx

import "slices"

// graph is the control-flow graph of a kernel. Its nodes are basic blocks.
type graph struct {
	k       *Kernel
	blocks  []block
	of      []int32 // basic block of each instruction
	order   []int32 // reachable blocks in reverse postorder: each before its successors, except for loops
	rank    []int32 // index of each block in order, -1 if it cannot be reached
	idom    []int32 // the last block on all paths to a block, -1 for the first block
	ipdom   []int32 // the first block on all paths from a block, -1 if that is the end
	unknown []int   // branches to labels that are not placed
}

// block is a basic block: the instructions from begin to end. An instruction that may end the
// thread or branch is the last of its block.
type block struct {
	begin, end int
	next       [2]int32 // -1 if absent
	ends       bool     // the thread may end here
	before     []int32
}

func newGraph(k *Kernel) *graph {
	g := &graph{k: k, of: make([]int32, len(k.code))}
	at := make([]int32, k.labels) // block of each label
	for i := range at {
		at[i] = -1
	}
	begin := 0
	cut := func(end int) {
		if end > begin {
			g.blocks = append(g.blocks, block{begin: begin, end: end, next: [2]int32{-1, -1}})
			begin = end
		}
	}
	for i := range k.code {
		switch in := &k.code[i]; in.op {
		case opLabel:
			cut(i)
			at[in.a.n()] = int32(len(g.blocks))
		case opBranch, opReturn:
			cut(i + 1)
		}
	}
	cut(len(k.code))
	for b := range g.blocks {
		bl := &g.blocks[b]
		for i := bl.begin; i < bl.end; i++ {
			g.of[i] = int32(b)
		}
		last := &k.code[bl.end-1]
		through := last.guard != 0 || last.op != opBranch && last.op != opReturn
		switch {
		case last.op == opReturn:
			bl.ends = true
		case last.op == opBranch && at[last.a.n()] < 0:
			g.unknown = append(g.unknown, bl.end-1)
			bl.ends = true
		case last.op == opBranch:
			bl.next[1] = at[last.a.n()]
		}
		if through {
			if b+1 < len(g.blocks) {
				bl.next[0] = int32(b + 1)
			} else {
				bl.ends = true
			}
		}
	}
	for b := range g.blocks {
		for _, n := range g.blocks[b].next {
			if n >= 0 {
				g.blocks[n].before = append(g.blocks[n].before, int32(b))
			}
		}
	}
	g.number()
	g.idom = dominators(g.order, g.rank, func(b int32) []int32 { return g.blocks[b].before })
	g.postDominators()
	return g
}

// number computes order, by a depth-first search.
func (g *graph) number() {
	n := len(g.blocks)
	g.rank = make([]int32, n)
	for i := range g.rank {
		g.rank[i] = -1
	}
	if n == 0 {
		return
	}
	g.order = postorder(n, []int32{0}, func(b int32, i int) (int32, bool) {
		if i == 2 {
			return 0, false
		}
		return g.blocks[b].next[i], true
	})
	for i, j := 0, len(g.order)-1; i < j; i, j = i+1, j-1 {
		g.order[i], g.order[j] = g.order[j], g.order[i]
	}
	for i, b := range g.order {
		g.rank[b] = int32(i)
	}
}

// postorder returns the blocks that are reachable from the roots, in postorder. next returns the
// i-th neighbour of a block, and a negative number after the last.
func postorder(n int, roots []int32, next func(b int32, i int) (int32, bool)) []int32 {
	type visit struct {
		b int32
		i int
	}
	seen := make([]bool, n)
	var order []int32
	var stack []visit
	for _, r := range roots {
		if seen[r] {
			continue
		}
		seen[r] = true
		stack = append(stack, visit{r, 0})
		for len(stack) > 0 {
			v := &stack[len(stack)-1]
			m, ok := next(v.b, v.i)
			if !ok {
				order = append(order, v.b)
				stack = stack[:len(stack)-1]
				continue
			}
			v.i++
			if m >= 0 && !seen[m] {
				seen[m] = true
				stack = append(stack, visit{m, 0})
			}
		}
	}
	return order
}

// dominators returns the immediate dominator of each block in order. The first block has none.
// (Cooper, Harvey and Kennedy: A Simple, Fast Dominance Algorithm.)
func dominators(order, rank []int32, before func(b int32) []int32) []int32 {
	idom := make([]int32, len(rank))
	for i := range idom {
		idom[i] = -1
	}
	if len(order) == 0 {
		return idom
	}
	idom[order[0]] = order[0]
	for changed := true; changed; {
		changed = false
		for _, b := range order[1:] {
			d := int32(-1)
			for _, p := range before(b) {
				if rank[p] < 0 || idom[p] < 0 {
					continue
				}
				if d < 0 {
					d = p
					continue
				}
				for d != p {
					for rank[p] > rank[d] {
						p = idom[p]
					}
					for rank[d] > rank[p] {
						d = idom[d]
					}
				}
			}
			if d != idom[b] {
				idom[b], changed = d, true
			}
		}
	}
	idom[order[0]] = -1
	return idom
}

// postDominators computes ipdom on the reversed graph. Its root is an additional block, which
// follows all blocks that may end the thread, and the last block of each loop that never ends.
func (g *graph) postDominators() {
	n := len(g.blocks)
	end := int32(n)
	order, toExit := g.fromEnds()
	rank := make([]int32, n+1)
	for i, b := range order {
		rank[b] = int32(i)
	}
	var after [3]int32
	pdom := dominators(order, rank, func(b int32) []int32 {
		list := after[:0]
		for _, m := range g.blocks[b].next {
			if m >= 0 {
				list = append(list, m)
			}
		}
		if toExit[b] {
			list = append(list, end)
		}
		return list
	})
	g.ipdom = pdom[:n]
	for b := range g.ipdom {
		if g.ipdom[b] == end {
			g.ipdom[b] = -1
		}
	}
}

// fromEnds returns the blocks in reverse postorder of the reversed graph, and which of them precede
// its root.
func (g *graph) fromEnds() (order []int32, toExit []bool) {
	n := len(g.blocks)
	end := int32(n)
	var ends []int32
	toExit = make([]bool, n)
	for b := range g.blocks {
		if g.blocks[b].ends {
			ends, toExit[b] = append(ends, int32(b)), true
		}
	}
	back := func(b int32, i int) (int32, bool) {
		from := ends
		if b != end {
			from = g.blocks[b].before
		}
		if i >= len(from) {
			return 0, false
		}
		return from[i], true
	}
	order = postorder(n+1, []int32{end}, back)
	for done := make([]bool, n+1); ; {
		for _, b := range order {
			done[b] = true
		}
		last := int32(-1)
		for b := range done[:n] {
			if !done[b] {
				last = int32(b)
			}
		}
		if last < 0 {
			break
		}
		ends, toExit[last] = append(ends, last), true
		order = postorder(n+1, []int32{end}, back)
	}
	slices.Reverse(order)
	return order, toExit
}

// dominates reports whether all paths to block b go through block a.
func (g *graph) dominates(a, b int32) bool {
	for b >= 0 && g.rank[b] >= g.rank[a] {
		if a == b {
			return true
		}
		b = g.idom[b]
	}
	return false
}

// region calls visit for the blocks whose execution depends on the branch at the end of block b:
// those on paths from b to the block where all its paths meet.
func (g *graph) region(b int32, visit func(b int32)) {
	seen := map[int32]bool{}
	stop := g.ipdom[b]
	var stack []int32
	push := func(m int32) {
		if m >= 0 && m != stop && !seen[m] {
			seen[m] = true
			stack = append(stack, m)
			visit(m)
		}
	}
	for _, m := range g.blocks[b].next {
		push(m)
	}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, m := range g.blocks[top].next {
			push(m)
		}
	}
}
