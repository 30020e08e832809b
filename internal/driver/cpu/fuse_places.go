package cpu

import (
	"slices"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// The last step of building a program gives its values places in the table of a lane, and makes the calls.

// finish assigns a table entry to every value and makes the calls.
func (b *builder) finish() {
	p := b.p
	next := b.placeKept()
	p.table = b.placeShared(next)
	b.chooseSize(p.table)
	b.makeCalls()
	for i := range p.streams {
		if s := &p.streams[i]; s.spread == op.Full || s.spread == op.Strided {
			p.cost.bytes += float32(s.size)
		}
	}
	p.straight = p.even && len(p.once)+len(p.segment) == 0 && len(p.block) == 1
}

// placeKept assigns places to cells and to blocks that are computed once. They keep their places.
// It returns the next free place.
func (b *builder) placeKept() (next int) {
	p := b.p
	p.firstConst = 1 + len(p.streams)
	p.firstCell = p.firstConst + len(p.consts)
	cells := p.firstCell
	for i := range b.insts {
		if in := &b.insts[i]; !in.many && in.n == 0 {
			b.vals[in.dst].at = cells
			cells++
		}
	}
	p.firstRegister = cells
	next = cells
	for _, v := range b.tiles {
		b.vals[v].at = next
		next++
	}
	for i := range p.strided {
		p.strided[i].entry = next
		next++
	}
	for _, e := range b.expands {
		p.expanded = append(p.expanded, broughtIn{stream: e.stream, entry: b.vals[e.value].at})
	}
	for _, r := range b.repeats {
		p.tiles = append(p.tiles, repeated{b.vals[r.value].at, r.period})
	}
	return next
}

// placeShared assigns places from next on to the other values, which share registers. A register is
// free after the last use of its value; the result of an instruction may use the register of its
// own operand. It returns the end of the places.
func (b *builder) placeShared(next int) int {
	last := make([]int, len(b.vals))
	for i := range b.insts {
		for _, a := range b.insts[i].args {
			if a >= 0 {
				last[a] = i
			}
		}
	}
	var free []int
	place := func(x int) {
		if v := &b.vals[x]; v.at == -1 {
			if n := len(free); n > 0 {
				v.at, free = free[n-1], free[:n-1]
			} else {
				v.at = next
				next++
			}
		}
	}
	for i := range b.insts {
		in := &b.insts[i]
		for j, a := range in.args {
			if a >= 0 && last[a] == i && b.vals[a].when == block && b.owned(a) && !slices.Contains(in.args[:j], a) {
				free = append(free, b.vals[a].at)
			}
		}
		place(in.dst)
	}
	return next
}

// chooseSize sets the size of a block, such that the data of a pass fit into the cache, and the
// distance of registers.
func (b *builder) chooseSize(places int) {
	p, streams := b.p, 0
	for i := range p.streams {
		if !p.streams[i].fixed {
			streams++
		}
	}
	cache, limit := memory.CPUCaches().L1, maxBlock
	if simd.Active() == simd.SIMD128 { // a call takes as long as a thousand elements
		cache, limit = memory.CPUCaches().L2/2, 4*maxBlock
	}
	size := cache / 2 / 4 / max(1, streams+places-p.firstRegister)
	size = min(limit, max(minBlock, size)) &^ 63
	p.size = size / b.unit * b.unit
	// Registers a multiple of 4 KiB apart would delay each other's loads (4K aliasing).
	p.stride = (p.size+b.slack+line-1)/line*line + 5*line
}

// makeCalls makes a call of each instruction.
func (b *builder) makeCalls() {
	p := b.p
	for i := range b.insts {
		in := &b.insts[i]
		c := call{name: in.name, fn: in.fn, past: in.past, rows: simd.MapRows(in.name), dst: b.entry(in.dst), x: b.entry(in.args[0]), y: b.entry(in.args[1]),
			z: b.entry(in.args[2]), p: b.entry(in.par), n: int32(in.n)}
		switch in.when {
		case once:
			if !in.many && c.n == 0 {
				c.n = 1
			}
			p.once = append(p.once, c)
		case segment:
			p.segment = append(p.segment, c)
		default:
			p.block = append(p.block, c)
			p.cost.seed += in.ns
		}
	}
}

// owned reports whether x is in a shared register, which is free after its last use.
func (b *builder) owned(x int) bool {
	at := b.vals[x].at
	return at >= b.p.firstRegister+len(b.tiles)+len(b.p.strided)
}

func (b *builder) entry(x int) int32 {
	if x < 0 {
		return 0
	}
	at := b.vals[x].at
	if at <= -2 {
		at = b.p.firstConst + (-2 - at)
	}
	return int32(at)
}
