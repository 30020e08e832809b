package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A value is the result of one instruction of a network.
type value int

// An instruction computes a value from other values, which are in registers or on the stack: see
// place.
type instruction struct {
	from  []value
	do    func(dst reg.VecPhysical, from []reg.VecPhysical) // dst is unused if the instruction stores
	dst   value                                             // -1: it stores
	apart bool                                              // dst is none of the registers of from
}

// A list is a straight program over vectors.
type list struct {
	g     *gen
	code  []instruction
	n     value
	wide  bool                 // the vectors have 16 lanes, and there are 32 registers
	upper map[int]reg.Register // masks in registers, by lanes. Only wide vectors need them.
	flip  map[int]value        // lane numbers i^x, by x, for wide vectors
}

// lanes returns the number of lanes of a vector.
func (l *list) lanes() int {
	if l.wide {
		return lanes512
	}
	return lanes
}

func (l *list) reg(i int) reg.VecPhysical {
	spec := reg.S256
	if l.wide {
		spec = reg.S512
	}
	return reg.Vector.Lookup(reg.Index(i), spec).(reg.VecPhysical)
}

// move loads or stores a vector.
func (l *list) move(from, to Op) {
	if l.wide {
		l.g.VMOVDQU32(from, to)
	} else {
		l.g.VMOVDQU(from, to)
	}
}

func (l *list) add(do func(dst reg.VecPhysical, from []reg.VecPhysical), from ...value) value {
	l.code = append(l.code, instruction{from: from, do: do, dst: l.n})
	l.n++
	return l.n - 1
}

func (l *list) load(m Mem) value {
	return l.add(func(dst reg.VecPhysical, _ []reg.VecPhysical) { l.move(m, dst) })
}

func (l *list) store(v value, m Mem) {
	l.code = append(l.code, instruction{from: []value{v}, do: func(_ reg.VecPhysical, from []reg.VecPhysical) { l.move(from[0], m) }, dst: -1})
}

func (l *list) min(a, b value) value {
	return l.add(func(dst reg.VecPhysical, from []reg.VecPhysical) { l.g.VPMINUD(from[1], from[0], dst) }, a, b)
}

func (l *list) max(a, b value) value {
	return l.add(func(dst reg.VecPhysical, from []reg.VecPhysical) { l.g.VPMAXUD(from[1], from[0], dst) }, a, b)
}

// blend returns the lanes of b whose bits are set in lanes, and the other lanes of a.
func (l *list) blend(lanes int, a, b value) value {
	return l.add(func(dst reg.VecPhysical, from []reg.VecPhysical) { l.g.VPBLENDD(U8(lanes), from[1], from[0], dst) }, a, b)
}

// shuffle permutes each four lanes of a.
func (l *list) shuffle(order int, a value) value {
	return l.add(func(dst reg.VecPhysical, from []reg.VecPhysical) { l.g.VPSHUFD(U8(order), from[0], dst) }, a)
}

// quarters takes two groups of four lanes of a and then two of b.
func (l *list) quarters(order int, a, b value) value {
	return l.add(func(dst reg.VecPhysical, from []reg.VecPhysical) {
		l.g.VSHUFI32X4(U8(order), from[len(from)-1], from[0], dst)
	}, a, b)
}

// swap exchanges the halves of a.
func (l *list) swap(a value) value {
	return l.add(func(dst reg.VecPhysical, from []reg.VecPhysical) { l.g.VPERMQ(U8(0x4e), from[0], dst) }, a)
}

// halves returns the low (or the high) halves of a and of b.
func (l *list) halves(high bool, a, b value) value {
	order := 0x20
	if high {
		order = 0x31
	}
	return l.add(func(dst reg.VecPhysical, from []reg.VecPhysical) { l.g.VPERM2I128(U8(order), from[1], from[0], dst) }, a, b)
}

// unpack interleaves the low or the high elements of the halves of a and b.
func (l *list) unpack(double, high bool, a, b value) value {
	return l.add(func(dst reg.VecPhysical, from []reg.VecPhysical) {
		switch {
		case double && high:
			l.g.VPUNPCKHQDQ(from[1], from[0], dst)
		case double:
			l.g.VPUNPCKLQDQ(from[1], from[0], dst)
		case high:
			l.g.VPUNPCKHDQ(from[1], from[0], dst)
		default:
			l.g.VPUNPCKLDQ(from[1], from[0], dst)
		}
	}, a, b)
}

// prune removes the instructions whose values are not used.
func (l *list) prune() {
	used := make([]bool, l.n)
	for i := len(l.code) - 1; i >= 0; i-- {
		c := l.code[i]
		if c.dst >= 0 && !used[c.dst] {
			l.code = slices.Delete(l.code, i, i+1)
			continue
		}
		for _, v := range c.from {
			used[v] = true
		}
	}
}

// emit writes the instructions. If there are not enough registers, it spills the value with the
// furthest next use.
func (l *list) emit() {
	l.prune()
	uses := make([][]int, l.n) // uses of each value, in order
	for i, in := range l.code {
		for _, v := range in.from {
			uses[v] = append(uses[v], i)
		}
	}
	in := make([]value, 2*l.lanes()) // value of each register, -1 for none
	for r := range in {
		in[r] = -1
	}
	slots := map[value]Mem{}
	var free []Mem
	find := func(v value) int { return slices.Index(in, v) }
	// room returns a register for a value. It does not take the registers of values in held.
	room := func(v value, held []int) int {
		if r := find(-1); r >= 0 {
			in[r] = v
			return r
		}
		far := -1
		for r, w := range in {
			if !slices.Contains(held, r) && (far < 0 || uses[w][0] > uses[in[far]][0]) {
				far = r
			}
		}
		if w := in[far]; slots[w] == (Mem{}) {
			if len(free) == 0 {
				free = append(free, l.g.AllocLocal(4*l.lanes()))
			}
			slots[w], free = free[len(free)-1], free[:len(free)-1]
			l.move(l.reg(far), slots[w])
		}
		in[far] = v
		return far
	}
	for _, c := range l.code {
		var held []int
		var dst reg.VecPhysical
		for _, v := range c.from {
			r := find(v)
			if r < 0 {
				r = room(v, held)
				l.move(slots[v], l.reg(r))
			}
			held = append(held, r)
		}
		if c.apart {
			dst = l.reg(room(c.dst, held))
		}
		for i, v := range c.from {
			if uses[v] = uses[v][1:]; len(uses[v]) == 0 {
				in[held[i]] = -1
				if m, ok := slots[v]; ok {
					free = append(free, m)
					delete(slots, v)
				}
			}
		}
		if c.dst >= 0 && !c.apart {
			dst = l.reg(room(c.dst, nil))
		}
		var from []reg.VecPhysical
		for _, r := range held {
			from = append(from, l.reg(r))
		}
		c.do(dst, from)
	}
}

// network writes the kernel that sorts 8*n keys in n vectors. It first sorts each column (the same
// lane of all vectors), and then merges adjacent columns three times. The sorted order runs along
// the columns.
func (g *gen) network(n int) {
	name := fmt.Sprintf("sort%dAVX2", lanes*n)
	g.function(name, "func(keys *uint32)", fmt.Sprintf("%s sorts %d keys.", name, lanes*n))
	keys := g.Load(g.Param("keys"), reg.RAX)
	l := &list{g: g}
	var v []value
	for i := range n {
		v = append(v, l.load(Mem{Base: keys, Disp: 4 * lanes * i}))
	}
	l.columns(v)
	for width := 1; width < lanes; width *= 2 {
		l.join(v, width)
	}
	for i, w := range l.turn(v) {
		l.store(w, Mem{Base: keys, Disp: 4 * lanes * i})
	}
	l.emit()
	g.ret()
}

const greatest value = -1 // a vector of the greatest keys

// order moves the smaller lanes of two vectors to the first and the greater lanes to the second.
func (l *list) order(v []value, i, j int) {
	if v[j] == greatest {
		return
	}
	least := l.min(v[i], v[j])
	v[i], v[j] = least, l.rest(v[i], v[j], least)
}

// rest returns the maximum of a and b. least is the minimum.
func (l *list) rest(a, b, least value) value {
	if l.wide {
		return l.exclusive(a, b, least)
	}
	return l.max(a, b)
}

// mixed returns the maximum of a and b in the given lanes and the minimum in the others, and the reverse.
func (l *list) mixed(lanes int, a, b value) (first, second value) {
	if l.wide {
		first = l.most(lanes, a, b)
		return first, l.exclusive(a, b, first)
	}
	least, most := l.min(a, b), l.max(a, b)
	return l.blend(lanes, least, most), l.blend(lanes, most, least)
}

// columns sorts the columns by Batcher's odd-even merges.
func (l *list) columns(v []value) {
	if len(v) < 2 {
		return
	}
	h := len(v) / 2
	l.columns(v[:h])
	l.columns(v[h:])
	l.oddEven(v, 0, 1)
}

// oddEven merges the two sorted halves of the elements at, at+step, at+2*step and so on.
func (l *list) oddEven(v []value, at, step int) {
	if 2*step == len(v) {
		l.order(v, at, at+step)
		return
	}
	l.oddEven(v, at, 2*step)
	l.oddEven(v, at+step, 2*step)
	for i := at + step; i+step < len(v); i += 2 * step {
		l.order(v, i, i+step)
	}
}

// join merges each two adjacent sequences of width columns with a bitonic merge.
func (l *list) join(v []value, width int) {
	// Compare element i of a pair of sequences with element i from the end: both the vectors and
	// the lanes of a group of 2*width are reversed.
	for i, j := 0, len(v)-1; i < j; i, j = i+1, j-1 {
		other := l.across(v[j], 2*width-1)
		first, second := l.mixed(l.upperLanes(width), v[i], other)
		v[i], v[j] = first, l.across(second, 2*width-1)
	}
	for d := width / 2; d > 0; d /= 2 {
		for i := range v {
			other := l.across(v[i], d)
			v[i], _ = l.mixed(l.upperLanes(d), v[i], other)
		}
	}
	run := len(v) // the greatest keys of a run are not greater than the least of the next
	for ; run%2 == 0; run /= 2 {
		for i := range v {
			if i%run < run/2 {
				l.order(v, i, i+run/2)
			}
		}
	}
	for i := 0; run == 3 && i < len(v); i += run {
		l.order(v, i, i+1)
		l.order(v, i+1, i+2)
		l.order(v, i, i+1)
	}
}

// upperLanes returns the mask of the lanes whose index has bit d set.
func (l *list) upperLanes(d int) int {
	m := 0
	for i := range l.lanes() {
		if i&d != 0 {
			m |= 1 << i
		}
	}
	return m
}

// across exchanges each lane i with lane i^x.
func (l *list) across(a value, x int) value {
	switch {
	case l.wide && x > 4 && x != 8:
		return l.flipped(a, x)
	case l.wide && x&12 != 0:
		order := 0
		for i := range 4 {
			order |= (i ^ x>>2) << (2 * i)
		}
		a = l.quarters(order, a, a)
	case x&4 != 0:
		a = l.swap(a)
	}
	if x &= 3; x != 0 {
		order := 0
		for i := range 4 {
			order |= (i ^ x) << (2 * i)
		}
		a = l.shuffle(order, a)
	}
	return a
}

// turn transposes the vectors, so that the columns follow each other.
func (l *list) turn(v []value) []value {
	n := len(v) / 4
	quarters := make([]value, lanes/2*n) // columns i and i+4 of each four vectors
	for k := range n {
		r := v[4*k:]
		for high := range 2 {
			a, b := l.unpack(false, high > 0, r[0], r[1]), l.unpack(false, high > 0, r[2], r[3])
			quarters[(2*high)*n+k] = l.unpack(true, false, a, b)
			quarters[(2*high+1)*n+k] = l.unpack(true, true, a, b)
		}
	}
	var out []value
	for _, high := range []bool{false, true} {
		for i := 0; i < len(quarters); i += 2 {
			out = append(out, l.halves(high, quarters[i], quarters[i+1]))
		}
	}
	return out
}
