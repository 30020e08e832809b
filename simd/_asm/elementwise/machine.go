package main

import (
	"math"
	"slices"
)

// Straight-line machine code with virtual registers, and its register allocator. The three
// instruction sets share both; they differ in the selection of instructions and in printing.

// class is a kind of register.
type class uint8

const (
	vector    class = iota
	predicate       // AVX-512 opmasks
	numClasses
)

// value is the result of an instruction, or a constant or parameter.
type value struct {
	class class
	// fixed values are constants and parameters, which are the same in every iteration. They stay
	// in a register (pinned) or are read from memory.
	fixed  bool
	bits   []uint32 // of a constant: one word for all lanes, or a table with a word for each lane
	param  int      // number of the parameter, if bits is nil
	pinned int      // register, or -1
	// Used by the register allocator:
	reg  int // or -1
	slot int // stack slot, or -1
	uses []int
}

// instruction is one machine instruction. Sources are in the order of the formula, not of the
// assembler.
type instruction struct {
	op  string
	dst *value // nil: a store
	src []*value
	// tied is the source whose register the result reuses, -1 for none and anyTied for any of the
	// sources.
	tied int
	// folds lists the sources that may be in memory. commutes says that the first two sources may
	// be swapped to fold one.
	folds    []int
	commutes bool
	imm      int
	mem      string // address of a load or store without the copy's offset
	copy     int    // copy of the body that a load or store belongs to

	folded int    // the source that is read from memory, or -1
	regs   [5]int // registers of the result and the sources, after allocation
}

const anyTied = -2

// block is the body of a loop: interleaved copies of the same code, which hide each other's
// latency.
type block struct {
	code   []*instruction
	fixed  []*value
	frame  int // stack slots in use
	spills int
}

// registers are the number of registers of each class that may be used.
type registers [numClasses]int

// fold decides, for every constant that is not pinned, whether an instruction
// reads it from memory or needs it loaded before.
func (b *block) fold(memory bool) []*instruction {
	var out []*instruction
	for _, in := range b.code {
		c := *in
		c.src = append([]*value(nil), in.src...)
		c.folded = -1
		if memory && c.commutes && loose(c.src[0]) && !loose(c.src[1]) && !foldable(&c, 0) && foldable(&c, 1) {
			c.src[0], c.src[1] = c.src[1], c.src[0]
		}
		loaded := map[*value]*value{}
		for i, s := range c.src {
			if !loose(s) {
				continue
			}
			if memory && c.folded < 0 && foldable(&c, i) && loaded[s] == nil && s.bits != nil {
				c.folded = i
				continue
			}
			v := loaded[s]
			if v == nil {
				v = &value{class: vector}
				loaded[s] = v
				out = append(out, &instruction{op: "const", dst: v, src: []*value{s}, tied: -1, folded: 0})
			}
			c.src[i] = v
		}
		out = append(out, &c)
	}
	return out
}

// loose reports whether v is fixed and not pinned to a register.
func loose(v *value) bool { return v.fixed && v.pinned < 0 }

func foldable(in *instruction, i int) bool {
	for _, f := range in.folds {
		if f == i {
			return true
		}
	}
	return false
}

// allocate assigns registers to the values of code and returns the code with spills, reloads and
// copies. Pinned values have the highest registers.
func (b *block) allocate(code []*instruction, have registers) (out []*instruction) {
	for _, in := range code {
		if in.dst != nil {
			in.dst.reg, in.dst.slot, in.dst.uses = -1, -1, nil
		}
	}
	for i, in := range code {
		for _, s := range in.src {
			if !s.fixed {
				s.uses = append(s.uses, i)
			}
		}
	}
	b.frame, b.spills = 0, 0
	a := &allocator{block: b}
	for c := range a.owner {
		a.owner[c] = make([]*value, have[c])
	}
	for i, in := range code {
		a.at = i
		a.reload(in)
		a.tie(in)
		a.release(in)
		a.result(in)
		a.out = append(a.out, in)
	}
	return a.out
}

// allocator assigns registers in one pass over the code of a block. If no register is free, it
// spills the value with the furthest next use.
type allocator struct {
	*block
	at        int                  // index of the current instruction
	owner     [numClasses][]*value // value in each register, or nil
	freeSlots []int                // free stack slots
	out       []*instruction
}

// next returns the index of the next use of v, from instruction i on.
func (v *value) next(i int) int {
	for _, u := range v.uses {
		if u >= i {
			return u
		}
	}
	return math.MaxInt
}

// dies reports whether no later instruction uses s.
func (a *allocator) dies(s *value) bool { return !s.fixed && s.next(a.at+1) == math.MaxInt }

func (a *allocator) hold(v *value, r int) { v.reg, a.owner[v.class][r] = r, v }

// take returns a register of a class. If none is free, it spills a value that is not in busy.
func (a *allocator) take(c class, busy []*value) int {
	victim, far := -1, -1
	for r, v := range a.owner[c] {
		if v == nil {
			return r
		}
		if slices.Contains(busy, v) {
			continue
		}
		if n := v.next(a.at); n > far {
			victim, far = r, n
		}
	}
	if victim < 0 {
		panic("BUG: an instruction needs more registers than there are")
	}
	v := a.owner[c][victim]
	if v.slot < 0 {
		a.spill(v)
	}
	a.spills++
	v.reg = -1
	a.owner[c][victim] = nil
	return victim
}

// spill stores a value to the stack.
func (a *allocator) spill(v *value) {
	if k := len(a.freeSlots); k > 0 {
		v.slot, a.freeSlots = a.freeSlots[k-1], a.freeSlots[:k-1]
	} else {
		v.slot = a.frame
		a.frame++
	}
	in := &instruction{op: "spill", src: []*value{v}, imm: v.slot, folded: -1}
	in.regs[1] = v.reg
	a.out = append(a.out, in)
}

// reload loads spilled sources of in to registers.
func (a *allocator) reload(in *instruction) {
	for j, s := range in.src {
		if s.fixed || j == in.folded || s.reg >= 0 {
			continue
		}
		r := a.take(s.class, in.src)
		a.hold(s, r)
		re := &instruction{op: "reload", dst: s, imm: s.slot, folded: -1}
		re.regs[0] = r
		a.out = append(a.out, re)
		a.spills++
	}
	for j, s := range in.src {
		in.regs[j+1] = s.reg
		if s.fixed {
			in.regs[j+1] = s.pinned
		}
	}
}

// tie chooses the source whose register the result reuses: for anyTied the last source that dies.
// It copies the source if it is still needed.
func (a *allocator) tie(in *instruction) {
	if in.tied == anyTied {
		in.tied = -1
		for j, s := range in.src {
			if j != in.folded && a.dies(s) {
				in.tied = j
			}
		}
		if in.tied < 0 {
			for j := range in.src {
				if j != in.folded {
					in.tied = j
				}
			}
		}
	}
	if in.tied < 0 || a.dies(in.src[in.tied]) {
		return
	}
	s := in.src[in.tied]
	r := a.take(in.dst.class, in.src)
	mv := &instruction{op: "move", dst: in.dst, src: []*value{s}, folded: -1}
	mv.regs[0], mv.regs[1] = r, in.regs[in.tied+1]
	a.out = append(a.out, mv)
	in.regs[in.tied+1] = r
	a.hold(in.dst, r)
}

// release frees the registers and the slots of sources that die.
func (a *allocator) release(in *instruction) {
	for _, s := range in.src {
		if a.dies(s) && s.reg >= 0 && a.owner[s.class][s.reg] == s {
			a.owner[s.class][s.reg] = nil
			if s.slot >= 0 {
				a.freeSlots = append(a.freeSlots, s.slot)
			}
			s.reg = -1
		}
	}
}

// result gives the result a register.
func (a *allocator) result(in *instruction) {
	if in.dst == nil {
		return
	}
	if in.dst.reg < 0 {
		r := -1
		if in.tied >= 0 {
			r = in.regs[in.tied+1]
		} else {
			r = a.take(in.dst.class, append([]*value{in.dst}, in.src...))
		}
		a.hold(in.dst, r)
	}
	in.regs[0] = in.dst.reg
	if len(in.dst.uses) == 0 {
		a.owner[in.dst.class][in.dst.reg] = nil
	}
}

// fit pins as many constants as registers allow and allocates the other registers. ok reports
// whether it spilled nothing.
func (b *block) fit(have registers, memory bool) (code []*instruction, ok bool) {
	for pins := min(len(b.fixed), have[vector]-2); pins >= 0; pins-- {
		left := have
		left[vector] -= pins
		for i, v := range b.fixed {
			v.pinned = -1
			if i < pins {
				v.pinned = left[vector] + i
			}
		}
		if pins < b.params() {
			break // parameters must be pinned
		}
		if !enoughRegisters(b.fold(memory), left) {
			continue
		}
		code = b.allocate(b.fold(memory), left)
		if b.spills == 0 || pins == b.params() {
			return code, b.spills == 0
		}
	}
	return code, code != nil && b.spills == 0
}

// enoughRegisters reports whether there are enough registers for the operands of each instruction.
func enoughRegisters(code []*instruction, have registers) bool {
	for _, in := range code {
		n := [numClasses]int{}
		for _, s := range in.src {
			if !s.fixed {
				n[s.class]++
			}
		}
		if in.dst != nil {
			n[in.dst.class]++
		}
		for c := range n {
			if n[c] > have[c] {
				return false
			}
		}
	}
	return true
}

// params returns the number of parameters, which are the first fixed values.
func (b *block) params() (n int) {
	for _, v := range b.fixed {
		if v.bits == nil {
			n++
		}
	}
	return n
}
