package engine

import (
	"sort"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// arenaAlign is the alignment of temporaries. It suffices for the vector loads and binding offsets
// of every device.
const arenaAlign = 256

func alignTo(n, a int64) int64 { return (n + a - 1) / a * a }

// placeTemporaries gives every temporary slot of p an offset in one arena. Slots whose lifetimes do
// not overlap share memory, and a step may overwrite an operand at its last use if that is safe. If
// the device needs separate buffers for reads and writes, the arena is divided into several. It
// returns the bytes that the temporaries would take without sharing.
func placeTemporaries(p *driver.Program, lim driver.Limits) (unshared int64) {
	align := int64(arenaAlign)
	for lim.OffsetAlign > 0 && align%lim.OffsetAlign != 0 {
		align += arenaAlign
	}
	alignUp := func(n int64) int64 { return alignTo(n, align) }
	last := lastSteps(p)
	placed := make([]bool, len(p.Slots))
	temporary := func(s int) bool { return p.Slots[s].Ext < 0 && p.Slots[s].Data == nil }
	part, parts := make([]int, len(p.Slots)), 1 // part of the arena of each slot
	if lim.SeparateBindings {
		part, parts = separateParts(p, temporary)
	}
	free, size := make([][]span, parts), make([]int64, parts)
	for i := range p.Steps {
		step := &p.Steps[i]
		taken := make(map[int]bool) // operands whose memory an output reuses
		for _, o := range step.Out {
			if !temporary(o.Slot) || placed[o.Slot] {
				continue
			}
			out := &p.Slots[o.Slot]
			need := alignUp(out.Bytes)
			unshared += need
			placed[o.Slot] = true
			if in := overwritable(step, o, func(s int) bool {
				return !lim.SeparateBindings && temporary(s) && last[s] == i && !taken[s] && alignUp(p.Slots[s].Bytes) == need
			}); in >= 0 {
				taken[in] = true
				out.Off = p.Slots[in].Off
				continue
			}
			k := part[o.Slot]
			out.Off, free[k] = take(free[k], need, &size[k])
		}
		dead := make(map[int]bool)
		release := func(s int) {
			if temporary(s) && last[s] == i && !taken[s] && !dead[s] {
				dead[s] = true
				free[part[s]] = give(free[part[s]], span{p.Slots[s].Off, alignUp(p.Slots[s].Bytes)})
			}
		}
		eachOperand(step, func(o *driver.Operand) { release(o.Slot) })
		for _, o := range step.Out {
			release(o.Slot)
		}
	}
	joinParts(p, size, func(s int) (int, bool) { return part[s], placed[s] })
	return unshared
}

// lastSteps returns the last step that uses each slot, -1 if none does.
func lastSteps(p *driver.Program) []int {
	last := make([]int, len(p.Slots))
	for i := range last {
		last[i] = -1
	}
	for i := range p.Steps {
		eachOperand(&p.Steps[i], func(o *driver.Operand) { last[o.Slot] = i })
		for _, o := range p.Steps[i].Out {
			last[o.Slot] = i
		}
	}
	return last
}

// joinParts lays the parts of the arena one after the other, and adds the start of its part to the
// offset of each slot that is placed in one.
func joinParts(p *driver.Program, size []int64, partOf func(slot int) (int, bool)) {
	start := make([]int64, len(size))
	for k, n := range size {
		start[k] = p.Arena
		if k > 0 && n > 0 && p.Arena > 0 {
			p.Cuts = append(p.Cuts, p.Arena)
		}
		p.Arena += n
	}
	for s := range p.Slots {
		if k, placed := partOf(s); placed {
			p.Slots[s].Off += start[k]
		}
	}
}

// separateParts numbers the temporary slots so that no step reads one slot and writes another with
// the same number, and no step writes two: a device that binds a buffer for writing can bind it
// only once.
func separateParts(p *driver.Program, temporary func(int) bool) (part []int, parts int) {
	not := make(map[int][]int) // for each slot: slots that must be in another part
	for i := range p.Steps {
		step := &p.Steps[i]
		for k, o := range step.Out {
			exclude := func(x *driver.Operand) {
				if a, b := o.Slot, x.Slot; a != b && temporary(a) && temporary(b) {
					not[a], not[b] = append(not[a], b), append(not[b], a)
				}
			}
			eachOperand(step, exclude)
			for j := range step.Out[:k] {
				exclude(&step.Out[j])
			}
		}
	}
	part, parts = make([]int, len(p.Slots)), 1
	for s := range part {
		part[s] = -1
	}
	for s := range part {
		taken := make(map[int]bool)
		for _, o := range not[s] {
			taken[part[o]] = true
		}
		for part[s] = 0; taken[part[s]]; {
			part[s]++
		}
		parts = max(parts, part[s]+1)
	}
	return part, parts
}

// overwritable returns a slot that step reads and may overwrite with out, or -1. Elementwise steps
// with one output read an element before they write it, and row operations read a row before they
// write it. Other steps may write an element before they have read it, and so may a step whose result
// has a layout.
func overwritable(step *driver.Step, out driver.Operand, dies func(slot int) bool) int {
	row := step.Op != nil && step.Op.Class() == op.Row && step.Pre == nil && step.Post == nil
	if step.Kernel != nil || step.Op != nil && !row || len(step.Out) != 1 || out.Layout != nil {
		return -1
	}
	found := -1
	eachOperand(step, func(o *driver.Operand) {
		if found < 0 && o.Broadcast == op.Full && o.N == out.N && o.Type.Size() == out.Type.Size() && dies(o.Slot) {
			found = o.Slot
		}
	})
	if found < 0 {
		return -1
	}
	uses := 0
	eachOperand(step, func(o *driver.Operand) {
		if o.Slot == found {
			uses++
		}
	})
	if row && (uses > 1 || step.In[0].Slot != found) || !row && broadcasts(step, found) {
		return -1
	}
	return found
}

// broadcasts reports whether step also reads slot in another layout.
func broadcasts(step *driver.Step, slot int) bool {
	other := false
	eachOperand(step, func(o *driver.Operand) { other = other || o.Slot == slot && o.Broadcast != op.Full })
	return other
}

// eachOperand calls f for every operand that a step reads from memory.
func eachOperand(s *driver.Step, f func(*driver.Operand)) {
	all := func(os []driver.Operand) {
		for i := range os {
			if os[i].Slot >= 0 {
				f(&os[i])
			}
		}
	}
	if s.Op != nil || s.Kernel != nil {
		all(s.In)
	}
	for _, p := range s.Pre {
		if p != nil {
			all(p.In)
		}
	}
	if s.Post != nil {
		all(s.Post.In)
	}
}

type span struct{ off, size int64 }

// take allocates size bytes: in the smallest free span that fits, or at the end.
func take(free []span, size int64, end *int64) (int64, []span) {
	best := -1
	for i, s := range free {
		if s.size >= size && (best < 0 || s.size < free[best].size) {
			best = i
		}
	}
	if best < 0 {
		// A free span at the end of the arena can grow.
		if n := len(free); n > 0 && free[n-1].off+free[n-1].size == *end {
			off := free[n-1].off
			*end = off + size
			return off, free[:n-1]
		}
		off := *end
		*end += size
		return off, free
	}
	off := free[best].off
	if free[best].size == size {
		return off, append(free[:best], free[best+1:]...)
	}
	free[best].off += size
	free[best].size -= size
	return off, free
}

// give returns a span, merged with its neighbours; free stays sorted.
func give(free []span, s span) []span {
	if s.size == 0 {
		return free
	}
	i := sort.Search(len(free), func(i int) bool { return free[i].off > s.off })
	free = append(free, span{})
	copy(free[i+1:], free[i:])
	free[i] = s
	if i+1 < len(free) && free[i].off+free[i].size == free[i+1].off {
		free[i].size += free[i+1].size
		free = append(free[:i+1], free[i+2:]...)
	}
	if i > 0 && free[i-1].off+free[i-1].size == free[i].off {
		free[i-1].size += free[i].size
		free = append(free[:i], free[i+1:]...)
	}
	return free
}
