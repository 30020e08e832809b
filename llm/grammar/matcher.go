package grammar

import (
	"fmt"
	"slices"
)

// Matcher follows a text that grows token by token. It belongs to one goroutine.
type Matcher struct {
	g     *Grammar
	v     *Vocabulary
	a     *automaton
	at    cursor
	masks map[cursor]Mask
}

// Matcher returns a matcher for an empty text.
func (g *Grammar) Matcher(v *Vocabulary) *Matcher {
	m := &Matcher{g: g, v: v, a: newAutomaton(g, nodeDone), masks: map[cursor]Mask{}}
	m.at.state = m.a.start()
	return m
}

// Clone returns an independent matcher with the same text.
func (m *Matcher) Clone() *Matcher {
	c := &Matcher{g: m.g, v: m.v, a: newAutomaton(m.g, nodeDone), masks: map[cursor]Mask{}}
	c.at = m.at
	c.at.state = c.a.adopt(m.a, m.at.state)
	c.a.err = m.a.err
	return c
}

// Done reports whether the text is complete: an end token may follow. Other tokens may follow too,
// if [Matcher.Allowed] returns any.
func (m *Matcher) Done() bool { return m.at.need == 0 && m.a.ends(m.at.state, nodeDone) }

// Accept adds a token to the text. The error wraps [ErrRejected] if the token is not allowed, or
// [ErrLimit]. An error leaves the text unchanged.
func (m *Matcher) Accept(id int32) error {
	if uint(id) >= uint(len(m.v.tokens)) || len(m.v.tokens[id]) == 0 {
		return fmt.Errorf("grammar: %w: token %d has no text", ErrRejected, id)
	}
	return m.AcceptText(m.v.tokens[id])
}

// AcceptText adds bytes to the text, which may end in the middle of a character. It returns the
// errors of [Matcher.Accept].
func (m *Matcher) AcceptText(text []byte) error {
	m.tidy()
	c := m.at
	for i, b := range text {
		if !m.a.next(&c, b) {
			if m.a.err != nil {
				return m.a.err
			}
			return fmt.Errorf("grammar: %w: byte %d of %.40q", ErrRejected, i, text)
		}
	}
	m.at = c
	return nil
}

// maxMasks is the number of masks that a matcher caches.
const maxMasks = 64

// tidy bounds the memory of the automaton.
func (m *Matcher) tidy() {
	if len(m.a.nodes) < resetNodes && len(m.a.states) < resetStates && len(m.masks) < maxMasks {
		return
	}
	a := newAutomaton(m.g, nodeDone)
	a.err = m.a.err
	m.at.state = a.adopt(m.a, m.at.state)
	m.a, m.masks = a, map[cursor]Mask{}
}

// adopt returns the state that equals state id of another automaton of the same grammar.
func (a *automaton) adopt(from *automaton, id int32) int32 {
	moved := map[int32]int32{nodeDone: nodeDone, nodeOut: nodeOut}
	var nodes, path []int32
	for _, n := range from.states[id].nodes {
		for at := n; ; at = from.nodes[at].parent {
			if _, ok := moved[at]; ok {
				break
			}
			path = append(path, at)
		}
		for ; len(path) > 0; path = path[:len(path)-1] {
			old := path[len(path)-1]
			moved[old] = a.node(node{from.nodes[old].at, moved[from.nodes[old].parent]})
		}
		nodes = append(nodes, moved[n])
	}
	return a.state(nodes)
}

// Allowed returns the tokens that may follow. Do not change the mask; it is valid until the next
// call of Accept. If the mask is empty and [Matcher.Done] is false, no token of the vocabulary can
// continue the text. The error wraps [ErrLimit] if the text has too many derivations.
func (m *Matcher) Allowed() (Mask, error) {
	if mask := m.masks[m.at]; mask != nil {
		return mask, nil
	}
	m.tidy()
	mask := m.v.mask()
	if m.at.need > 0 {
		m.v.walk(m.a, m.at, nil, func(i int, c cursor, _ bool) {
			if c.state != dead {
				mask.add(m.v.order[i])
			}
		})
	} else {
		for _, n := range slices.Clone(m.a.states[m.at.state].nodes) {
			if n >= firstNode {
				if err := m.from(n, mask); err != nil {
					return nil, err
				}
			}
		}
	}
	if m.a.err != nil {
		return nil, m.a.err
	}
	m.masks[m.at] = mask
	return mask, nil
}

// from adds the tokens that may follow one stack to mask.
func (m *Matcher) from(n int32, mask Mask) error {
	p, err := m.g.place(m.v, m.a.frames(n))
	if err != nil {
		return err
	}
	for i, w := range p.allowed {
		mask[i] |= w
	}
	var open []int32
	for _, i := range p.depends {
		if !mask.Has(m.v.order[i]) {
			open = append(open, i)
		}
	}
	if len(open) > 0 {
		m.v.walk(m.a, cursor{state: m.a.state([]int32{n})}, open, func(i int, c cursor, _ bool) {
			if c.state != dead {
				mask.add(m.v.order[i])
			}
		})
	}
	return nil
}

// frames is the number of top positions of a stack that a cached entry depends on. The tokens allowed at
// a position are known without the rest of the stack if a token does not pop more frames. A character of
// a JSON string is in a rule inside a repetition inside the rule of strings, so fewer frames would
// rarely suffice.
type frames [3]int32

// noFrame is below the bottom of a stack.
const noFrame int32 = -1

func (a *automaton) frames(n int32) (f frames) {
	for i := range f {
		f[i] = noFrame
		if n >= firstNode {
			f[i], n = a.nodes[n].at, a.nodes[n].parent
		}
	}
	return f
}

// stack returns the node of the stack with the given frames.
func (a *automaton) stack(f frames) int32 {
	n := nodeOut
	if f[len(f)-1] == noFrame {
		n = nodeDone
	}
	for _, at := range slices.Backward(f[:]) {
		if at != noFrame {
			n = a.node(node{at, n})
		}
	}
	return n
}

// places caches the allowed tokens at the positions of a grammar for one vocabulary.
type places struct {
	a  *automaton
	at map[frames]*place
}

// place has the tokens that are allowed at a position in every context, and those that depend on the context.
type place struct {
	allowed Mask
	depends []int32 // indices in the order of the vocabulary
}

// maxPlaces limits the memory for cached positions; each has a mask.
const maxPlaces = 4096

// place returns the allowed tokens at a position of the grammar.
func (g *Grammar) place(v *Vocabulary, at frames) (*place, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ps := g.places[v]
	if ps == nil || len(ps.at) >= maxPlaces || len(ps.a.states) > resetStates {
		ps = &places{a: newAutomaton(g, nodeOut), at: map[frames]*place{}}
		g.places = map[*Vocabulary]*places{v: ps}
	}
	if p := ps.at[at]; p != nil {
		return p, nil
	}
	p := &place{allowed: v.mask()}
	a := ps.a
	v.walk(a, cursor{state: a.state([]int32{a.stack(at)})}, nil, func(i int, c cursor, out bool) {
		switch {
		case c.state != dead:
			p.allowed.add(v.order[i])
		case out:
			p.depends = append(p.depends, int32(i))
		}
	})
	if a.err != nil {
		return nil, a.err
	}
	ps.at[at] = p
	return p, nil
}
