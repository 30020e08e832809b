package grammar

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"
)

// automaton tracks all derivations of a grammar at once. A stack of positions is a linked list of
// nodes; equal stacks share one node. A state is the set of possible stacks, each with a position
// on top that expects a character. Equal states have one number, and the successor of a state for a
// character is computed once.
type automaton struct {
	g      *Grammar
	bottom int32 // bottom node of all stacks: nodeDone or nodeOut

	nodes   []node
	nodeIDs map[node]int32
	states  []state
	stateID map[string]int32
	marks   []int32 // for each node: the last closure that contained it
	closure int32
	work    []int32
	out     []int32
	key     []byte
	err     error
}

// node is a position in the elements of the grammar. parent is the node to continue with after the
// end of the alternative.
type node struct{ at, parent int32 }

const (
	nodeDone int32 = iota // the text is complete
	nodeOut               // the text continues in a context that this automaton does not know
	firstNode
)

type state struct {
	nodes []int32 // in order; nodeDone and nodeOut are first
	ascii *[128]int32
	wide  map[rune]int32
}

const (
	dead    int32 = 0  // the state of no stacks
	unknown int32 = -1 // a transition that has not been computed
)

// Limits of an automaton. A grammar with more simultaneous derivations of a text is too ambiguous
// for this package.
const (
	maxStacks   = 1 << 12 // in a state
	maxClosure  = 1 << 16 // positions visited for one character
	resetNodes  = 1 << 18
	resetStates = 1 << 14
)

func newAutomaton(g *Grammar, bottom int32) *automaton {
	a := &automaton{g: g, bottom: bottom}
	a.reset()
	return a
}

// reset removes all nodes and states.
func (a *automaton) reset() {
	a.nodes, a.marks = make([]node, firstNode), make([]int32, firstNode)
	a.nodeIDs, a.stateID = map[node]int32{}, map[string]int32{"": dead}
	a.states = make([]state, 1)
	a.closure = 0
}

func (a *automaton) node(n node) int32 {
	id, ok := a.nodeIDs[n]
	if !ok {
		id = int32(len(a.nodes))
		a.nodes, a.marks = append(a.nodes, n), append(a.marks, 0)
		a.nodeIDs[n] = id
	}
	return id
}

// begin starts a closure, add adds a position to it, and end computes its state.
func (a *automaton) begin() {
	a.closure++
	a.work, a.out = a.work[:0], a.out[:0]
}

func (a *automaton) add(at, parent int32) {
	if a.g.elems[at].kind == elemEnd && parent < firstNode {
		a.seen(parent)
		return
	}
	// At the end of an alternative, continue with its parent.
	for a.g.elems[at].kind == elemEnd {
		at, parent = a.nodes[parent].at, a.nodes[parent].parent
		if a.g.elems[at].kind == elemEnd && parent < firstNode {
			a.seen(parent)
			return
		}
	}
	id := a.node(node{at, parent})
	if a.marks[id] != a.closure {
		a.marks[id] = a.closure
		a.work = append(a.work, id)
	}
}

// seen adds nodeDone or nodeOut.
func (a *automaton) seen(id int32) {
	if a.marks[id] != a.closure {
		a.marks[id] = a.closure
		a.out = append(a.out, id)
	}
}

// end expands the positions of the closure and returns the state.
func (a *automaton) end() int32 {
	looked := 0
	for len(a.work) > 0 {
		id := a.work[len(a.work)-1]
		a.work = a.work[:len(a.work)-1]
		n := a.nodes[id]
		e := a.g.elems[n.at]
		if e.kind == elemSet {
			a.out = append(a.out, id)
			continue
		}
		// A rule at the end of an alternative needs no return position.
		parent := n.parent
		if a.g.elems[n.at+1].kind != elemEnd {
			parent = a.node(node{n.at + 1, n.parent})
		}
		for _, alt := range a.g.rules[e.i].alts {
			a.add(alt, parent)
		}
		if looked++; looked > maxClosure || len(a.out) > maxStacks {
			a.err = fmt.Errorf("grammar: %w: a text has more than %d simultaneous derivations", ErrLimit, maxStacks)
			return dead
		}
	}
	return a.state(a.out)
}

// state returns the number of the state with the given nodes.
func (a *automaton) state(nodes []int32) int32 {
	slices.Sort(nodes)
	a.key = a.key[:0]
	for _, n := range nodes {
		a.key = binary.LittleEndian.AppendUint32(a.key, uint32(n))
	}
	id, ok := a.stateID[string(a.key)]
	if !ok {
		id = int32(len(a.states))
		a.states = append(a.states, state{nodes: slices.Clone(nodes)})
		a.stateID[string(a.key)] = id
	}
	return id
}

// start returns the state in which an alternative of the root is expected.
func (a *automaton) start() int32 {
	a.begin()
	for _, alt := range a.g.rules[rootRule].alts {
		a.add(alt, a.bottom)
	}
	return a.end()
}

// step returns the state after a character.
func (a *automaton) step(id int32, r rune) int32 {
	s := &a.states[id]
	if r < 128 {
		if s.ascii == nil {
			s.ascii = new([128]int32)
			for i := range s.ascii {
				s.ascii[i] = unknown
			}
		}
		if next := s.ascii[r]; next != unknown {
			return next
		}
	} else if next, ok := s.wide[r]; ok {
		return next
	}
	a.begin()
	for _, n := range s.nodes {
		if n < firstNode {
			continue
		}
		top := a.nodes[n]
		if a.g.sets[a.g.elems[top.at].i].has(r) {
			a.add(top.at+1, top.parent)
		}
	}
	next := a.end()
	s = &a.states[id] // end may have reallocated the states
	if r < 128 {
		s.ascii[r] = next
	} else {
		if s.wide == nil {
			s.wide = map[rune]int32{}
		}
		s.wide[r] = next
	}
	return next
}

// ends reports whether a node is among the stacks of a state.
func (a *automaton) ends(id, node int32) bool {
	for _, n := range a.states[id].nodes {
		if n >= firstNode {
			break
		}
		if n == node {
			return true
		}
	}
	return false
}

// cursor is the position after a text: a state, and the bytes of an incomplete character.
type cursor struct {
	state int32
	value rune // bits of the character so far
	need  int8 // missing bytes
	size  int8 // bytes of the character
}

// lead returns the length of the character that begins with the byte, or 0, and the bits of the
// character in the byte.
func lead(b byte) (size int8, value rune) {
	switch {
	case b < 0xC2 || b > 0xF4:
		return 0, 0
	case b < 0xE0:
		return 2, rune(b & 0x1F)
	case b < 0xF0:
		return 3, rune(b & 0x0F)
	}
	return 4, rune(b & 0x07)
}

// next advances the cursor by a byte. It returns false if no text continues with this byte; then
// the state is dead.
func (a *automaton) next(c *cursor, b byte) bool {
	switch {
	case c.need == 0 && b < utf8.RuneSelf:
		c.state = a.step(c.state, rune(b))
	case c.need == 0:
		c.size, c.value = lead(b)
		c.need = c.size - 1
		if c.size == 0 || !a.partial(*c) {
			*c = cursor{}
		}
	case b&0xC0 != 0x80:
		*c = cursor{}
	default:
		c.value, c.need = c.value<<6|rune(b&0x3F), c.need-1
		if c.need == 0 {
			r := c.value
			if utf8.RuneLen(r) != int(c.size) {
				*c = cursor{}
				return false
			}
			c.state = a.step(c.state, r)
		} else if !a.partial(*c) {
			*c = cursor{}
		}
	}
	return c.state != dead
}

// smallest has the smallest character of each length.
var smallest = [5]rune{2: 0x80, 3: 0x800, 4: 0x10000}

// partial reports whether the state accepts a character that begins with the bytes of the cursor.
func (a *automaton) partial(c cursor) bool {
	lo, hi := c.span()
	if lo > hi {
		return false
	}
	for _, n := range a.states[c.state].nodes {
		if n < firstNode {
			continue
		}
		set := a.g.sets[a.g.elems[a.nodes[n].at].i]
		if lo < 0xD800 && set.meets(lo, min(hi, 0xD7FF)) || hi > 0xDFFF && set.meets(max(lo, 0xE000), hi) {
			return true
		}
	}
	return false
}

// span returns the range of characters that begin with the bytes so far; it is empty if lo > hi.
func (c cursor) span() (lo, hi rune) {
	shift := 6 * c.need
	lo, hi = c.value<<shift, c.value<<shift|(1<<shift-1)
	return max(lo, smallest[c.size]), min(hi, utf8.MaxRune)
}
