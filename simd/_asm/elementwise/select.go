package main

import (
	"math"
	"slices"
	"sort"

	"github.com/rayo-go/rayo/internal/ir"
)

// selector turns an expression into instructions of one instruction set.
type selector struct {
	isa    isa
	code   []*instruction
	consts map[string]*value
	params map[int]*value
	copy   int
	done   map[*ir.Node]*value
	// saturates means that conversions from floats to integers saturate and return 0 for NaN.
	// Conversions in the expansions of codes do not need it, because their operands are small.
	saturates bool
}

// isa abstracts an instruction set.
type isa interface {
	// native reports whether a code needs no expansion.
	native(ir.Code) bool
	// emit selects instructions for n. It gets the operands from s.
	emit(s *selector, n *ir.Node) *value
	// load and store move operands and results.
	load(s *selector, n *ir.Node) *value
	store(s *selector, v *value, t ir.Type)
}

// selectBody returns copies of the code for root, interleaved.
func selectBody(v isa, root *ir.Node, copies int) *block {
	saturates := hasConvert(root)
	list, _ := ir.Flatten(ir.Lower(root, v.native))
	root = list[len(list)-1]
	s := &selector{isa: v, consts: map[string]*value{}, params: map[int]*value{}, saturates: saturates}
	var bodies [][]*instruction
	for c := range copies {
		s.copy, s.code, s.done = c, nil, map[*ir.Node]*value{}
		v.store(s, s.value(root), root.Type)
		bodies = append(bodies, s.code)
	}
	b := &block{}
	for i := range bodies[0] {
		for _, code := range bodies {
			b.code = append(b.code, code[i])
		}
	}
	// Parameters come first, then operands that no instruction can read from memory, then the most
	// used ones.
	uses, must := map[*value]int{}, map[*value]bool{}
	for _, in := range b.code {
		for i, v := range in.src {
			if v.fixed {
				uses[v]++
				if !foldable(in, i) && !(in.commutes && i < 2) {
					must[v] = true
				}
			}
		}
	}
	var order []*value
	seen := map[*value]bool{}
	for _, in := range b.code {
		for _, v := range in.src {
			if v.fixed && !seen[v] {
				seen[v] = true
				order = append(order, v)
			}
		}
	}
	rank := func(v *value) int {
		switch {
		case v.bits == nil:
			return 1 << 30
		case must[v]:
			return 1<<20 + uses[v]
		}
		return uses[v]
	}
	sort.SliceStable(order, func(i, j int) bool { return rank(order[i]) > rank(order[j]) })
	b.fixed = order
	return b
}

// hasConvert reports whether the expression converts numbers.
func hasConvert(root *ir.Node) bool {
	list, _ := ir.Flatten(root)
	return slices.ContainsFunc(list, func(n *ir.Node) bool { return n.Code == ir.Convert })
}

// value returns the value of n. It selects the code of n on the first call.
func (s *selector) value(n *ir.Node) *value {
	if v, ok := s.done[n]; ok {
		return v
	}
	var v *value
	switch n.Code {
	case ir.Arg:
		v = s.isa.load(s, n)
	case ir.Const:
		v = s.constant(constBits(n))
	case ir.Param:
		v = s.params[n.Index]
		if v == nil {
			v = &value{class: vector, fixed: true, param: n.Index, pinned: -1}
			s.params[n.Index] = v
		}
	case ir.Bitcast:
		v = s.value(n.Args[0])
	default:
		v = s.isa.emit(s, n)
	}
	s.done[n] = v
	return v
}

func constBits(n *ir.Node) uint32 {
	if n.Type == ir.F32 {
		return math.Float32bits(float32(n.Value))
	}
	return uint32(int64(n.Value))
}

// constant returns a constant: one word for all lanes, or a table with a word for each lane.
func (s *selector) constant(bits ...uint32) *value {
	key := make([]byte, 0, 4*len(bits))
	for _, w := range bits {
		key = append(key, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	v := s.consts[string(key)]
	if v == nil {
		v = &value{class: vector, fixed: true, bits: bits, pinned: -1}
		s.consts[string(key)] = v
	}
	return v
}

func (s *selector) float(v float64) *value { return s.constant(math.Float32bits(float32(v))) }

// add appends an instruction and returns its result.
func (s *selector) add(in instruction) *value {
	if in.dst == nil {
		in.dst = &value{class: vector}
	}
	in.copy = s.copy
	s.code = append(s.code, &in)
	return in.dst
}

// plain appends an instruction without tied operands.
func (s *selector) plain(op string, folds []int, src ...*value) *value {
	return s.add(instruction{op: op, src: src, tied: -1, folds: folds})
}

// commuting appends an instruction whose first two operands commute.
func (s *selector) commuting(op string, folds []int, src ...*value) *value {
	return s.add(instruction{op: op, src: src, tied: -1, folds: folds, commutes: true})
}

// fixedNode reports whether n is a constant that is not NaN.
func fixedNode(n *ir.Node) bool { return n.Code == ir.Const && n.Value == n.Value }

// negated returns the operand of n and true if n is a negation.
func negated(n *ir.Node) (*ir.Node, bool) {
	if n.Code == ir.Neg && n.Type == ir.F32 {
		return n.Args[0], true
	}
	return n, false
}
