package interp

import (
	"math/bits"
	"unsafe"

	"github.com/rayo-go/rayo/internal/ir"
)

func trailing(w uint64) int { return bits.TrailingZeros64(w) }

// machine is the memory on which one goroutine runs workgroups: a register file, workgroup memory
// and masks. It is reused, so that running does not allocate.
type machine struct {
	k      *Kernel
	regs   []uint32
	base   unsafe.Pointer // of regs
	active mask           // lanes that run the op
	all    mask
	full   bool // active is all
	frames []frame
	shared [][]uint32
	cond   mask // scratch

	views    []view
	group    [3]uint32 // the first of a gang
	subgroup int
	launch   *launch
}

// frame is the state of a nested block.
type frame struct {
	other mask // of an If: lanes of the other side
	left  mask // of a loop: lanes that have left it
	next  mask // of a loop: lanes that wait for the next iteration
	turns uint32
	free  bool // of the budget
}

// view is a bound buffer as elements of 32 or 16 bits.
type view struct {
	words  []uint32
	halves []uint16
	len    uint32 // elements, vectors counted as one
}

func newMachine(k *Kernel) *machine {
	m := &machine{k: k, regs: make([]uint32, k.size)}
	m.base = unsafe.Pointer(&m.regs[0])
	words := (k.lanes + 63) / 64
	masks := make(mask, words*(3+3*k.depth))
	next := func() mask {
		n := masks[:words:words]
		masks = masks[words:]
		return n
	}
	m.active, m.all, m.cond = next(), next(), next()
	for i := range k.lanes {
		m.all[i/64] |= 1 << (i % 64)
	}
	m.frames = make([]frame, k.depth)
	for i := range m.frames {
		m.frames[i] = frame{other: next(), left: next(), next: next()}
	}
	for _, a := range k.program.Shared {
		m.shared = append(m.shared, make([]uint32, int(a.Len)*int(a.Width)))
	}
	return m
}

// plane returns the lanes of a register.
func (m *machine) plane(at uintptr) []uint32 {
	return m.regs[at/4:][:m.k.lanes]
}

// fill sets a uniform register.
func (m *machine) fill(at int, v uint32) {
	r := m.regs[at:][:block]
	for i := range r {
		r[i] = v
	}
}

// prepare sets the values that are the same for all workgroups of a launch.
func (m *machine) prepare(l *launch) {
	m.launch, m.views = l, l.views
	if m.subgroup != l.subgroup {
		m.subgroup = l.subgroup
		m.settle()
	}
	for _, g := range m.k.given {
		switch {
		case g.code == ir.Param32:
			m.fill(g.at, l.params[g.imm])
		case g.code == ir.Len:
			m.fill(g.at, l.views[g.imm].len)
		case g.code == ir.BuiltIn && g.flag >= ir.BuiltInGroupsX && g.flag <= ir.BuiltInGroupsZ:
			m.fill(g.at, l.grid[g.flag-ir.BuiltInGroupsX])
		}
	}
}

// settle sets the values that are the same for all launches with one subgroup size.
func (m *machine) settle() {
	local, subgroup := m.k.program.Local, uint32(m.subgroup)
	for _, g := range m.k.given {
		switch {
		case g.code == ir.Const:
			m.fill(g.at, g.imm)
		case g.code == ir.BuiltIn && g.flag == ir.BuiltInSubgroupSize:
			m.fill(g.at, subgroup)
		case g.code == ir.BuiltIn && (g.flag < ir.BuiltInGroupX || g.flag > ir.BuiltInGroupsZ):
			for i := range m.k.lanes {
				m.regs[g.at+i] = laneBuiltIn(g.flag, uint32(i%m.k.local), local, subgroup)
			}
		}
	}
}

// laneBuiltIn returns a built-in that differs between lanes.
func laneBuiltIn(flag uint8, lane uint32, local [3]uint32, subgroup uint32) uint32 {
	switch flag {
	case ir.BuiltInLocalX:
		return lane % local[0]
	case ir.BuiltInLocalY:
		return lane / local[0] % local[1]
	case ir.BuiltInLocalZ:
		return lane / local[0] / local[1]
	case ir.BuiltInSubgroupLane:
		return lane % subgroup
	case ir.BuiltInSubgroup:
		return lane / subgroup
	}
	return lane
}

// enter sets the initial values of a workgroup, or of a gang of workgroups that begins with this one.
func (m *machine) enter(group [3]uint32) {
	m.group = group
	for _, g := range m.k.given {
		switch {
		case g.code != ir.BuiltIn || g.flag < ir.BuiltInGroupX || g.flag > ir.BuiltInGroupZ:
		case g.r.uniform():
			m.fill(g.at, group[g.flag-ir.BuiltInGroupX])
		default:
			for i := range m.k.lanes {
				m.regs[g.at+i] = group[0] + uint32(i/m.k.local)
			}
		}
	}
	for _, v := range m.k.clear {
		n := block
		if !v.r.uniform() {
			n = block * m.k.blocks
		}
		clear(m.regs[v.at:][:n])
	}
	// Uninitialised reads give the same values each time.
	for _, s := range m.shared {
		clear(s)
	}
	copy(m.active, m.all)
	m.full = true
	if left := m.launch.grid[0] - group[0]; left < uint32(m.k.gang) {
		// The grid ends within the gang.
		for i := int(left) * m.k.local; i < m.k.lanes; i++ {
			m.active[i/64] &^= 1 << (i % 64)
		}
		m.full = false
	}
}

// updated recomputes full after the mask changed.
func (m *machine) updated() {
	for i, w := range m.active {
		if w != m.all[i] {
			m.full = false
			return
		}
	}
	m.full = true
}

// run runs the code for the workgroup that was entered.
func (m *machine) run() *Finding {
	ops, base := m.k.ops, m.base
	for pc := 0; pc < len(ops); {
		o := &ops[pc]
		pc++
		switch o.kind {
		case opPlane:
			o.fn(unsafe.Add(base, o.d), unsafe.Add(base, o.arg[0]), unsafe.Add(base, o.arg[1]), unsafe.Add(base, o.arg[2]), o)
		case opSetMasked:
			m.setMasked(o)
		case opLoad:
			if i, ok := m.load(o); !ok {
				return m.beyond(o, i)
			}
		case opLoadOne:
			if i, ok := m.loadOne(o); !ok {
				return m.beyond(o, i)
			}
		case opLoadRow:
			if m.full && m.loadRow(o) {
				continue
			}
			if i, ok := m.load(o); !ok {
				return m.beyond(o, i)
			}
		case opStore:
			if i, ok := m.store(o); !ok {
				return m.beyond(o, i)
			}
		case opStoreRow:
			if m.full && m.storeRow(o) {
				continue
			}
			if i, ok := m.store(o); !ok {
				return m.beyond(o, i)
			}
		case opAtomic:
			if i, ok := m.atomic(o); !ok {
				return m.beyond(o, i)
			}
		case opUniformLoad:
			if !m.full {
				return m.fault(DivergentBarrier, o, -1)
			}
			index := m.plane(o.arg[0])
			for i, x := range index {
				if x != index[0] {
					return m.fault(NotUniform, o, i)
				}
			}
			if i, ok := m.loadOne(o); !ok {
				return m.beyond(o, i)
			}
		case opBarrier:
			if !m.full {
				return m.fault(DivergentBarrier, o, -1)
			}
		case opReduce, opScan, opShuffle, opShuffleXor, opFirst:
			if !m.full {
				return m.fault(DivergentSubgroup, o, -1)
			}
			m.exchange(o)
		case opIf:
			f := &m.frames[o.frame]
			m.cond.where(unsafe.Add(base, o.arg[0]), m.k.blocks)
			var any uint64
			for i, w := range m.active {
				c := m.cond[i] & w
				m.cond[i] = c
				any |= c
				f.other[i] = w &^ c
			}
			if any == 0 {
				clear(f.other)
				pc = o.jump
				break
			}
			copy(m.active, m.cond)
			m.full = m.full && f.other.empty()
		case opElse:
			f := &m.frames[o.frame]
			if f.other.empty() {
				pc = o.jump
				break
			}
			for i, w := range m.active {
				m.active[i], f.other[i] = f.other[i], w
			}
			m.updated()
		case opEndIf:
			m.active.take(m.frames[o.frame].other)
			m.updated()
			if m.active.empty() {
				pc = o.outer
			}
		case opIfOne:
			if m.regs[o.arg[0]/4] == 0 {
				pc = o.jump
			}
		case opJump:
			pc = o.jump
		case opEndOne:
			if m.active.empty() {
				pc = o.outer
			}
		case opFor, opForOne, opLoop:
			f := &m.frames[o.frame]
			clear(f.left)
			clear(f.next)
			f.turns, f.free = 0, o.imm == ir.Bounded
			if o.kind == opLoop {
				break
			}
			if f.free {
				f.free = m.advances(o)
			}
			if o.kind == opForOne {
				if !m.below(o) {
					pc = o.jump
				}
				break
			}
			m.test(o, false)
			if m.active.empty() {
				m.active.take(f.left)
				pc = o.jump
			}
			m.updated()
		case opEndFor, opEndForOne, opEndLoop:
			f := &m.frames[o.frame]
			m.active.take(f.next)
			m.updated()
			on := !m.active.empty()
			if on {
				if f.turns++; f.turns > m.launch.budget && !f.free {
					return m.fault(Budget, o, -1)
				}
				if m.launch.stopped(f.turns) {
					return m.launch.interrupted()
				}
				switch o.kind {
				case opEndFor:
					m.test(o, true)
					on = !m.active.empty()
				case opEndForOne:
					on = m.advance(o)
				}
			}
			if on {
				pc = o.jump
				break
			}
			m.active.take(f.left)
			m.updated()
			if m.active.empty() {
				pc = o.outer
			}
		case opBreak, opContinue, opReturn:
			switch o.kind {
			case opBreak:
				m.frames[o.frame].left.or(m.active)
			case opContinue:
				m.frames[o.frame].next.or(m.active)
			}
			clear(m.active)
			m.full = false
			pc = o.outer
		}
	}
	return nil
}

// setMasked copies to the lanes that are active.
func (m *machine) setMasked(o *op) {
	if m.full {
		planeMove(unsafe.Add(m.base, o.d), unsafe.Add(m.base, o.arg[0]), nil, nil, o)
		return
	}
	d := m.plane(o.d)
	if o.stride[0] == 0 {
		v := m.regs[o.arg[0]/4]
		for i, w := range m.active {
			for ; w != 0; w &= w - 1 {
				d[i*64+trailing(w)] = v
			}
		}
		return
	}
	a := m.plane(o.arg[0])
	for i, w := range m.active {
		for ; w != 0; w &= w - 1 {
			j := i*64 + trailing(w)
			d[j] = a[j]
		}
	}
}

// less compares as the type of a For does.
func less(a, b uint32, signed bool) bool {
	if signed {
		return int32(a) < int32(b)
	}
	return a < b
}

// sum returns a + b, and whether it stayed in the type.
func sum(a, b uint32, signed bool) (uint32, bool) {
	if signed {
		s := int64(int32(a)) + int64(int32(b))
		return uint32(s), s == int64(int32(s))
	}
	s := a + b
	return s, s >= a
}

// below reports whether the counter of a uniform For is in range.
func (m *machine) below(o *op) bool {
	return less(m.regs[o.d/4], m.regs[o.arg[0]/4], o.mem.signed)
}

// advance adds the step to the counter of a uniform For.
func (m *machine) advance(o *op) bool {
	c, ok := sum(m.regs[o.d/4], m.regs[o.arg[1]/4], o.mem.signed)
	if !ok {
		return false
	}
	m.fill(int(o.d/4), c)
	return m.below(o)
}

// advances reports whether no step of a For is 0, because a For with step 0 would not end.
func (m *machine) advances(o *op) bool {
	if o.stride[1] == 0 {
		return m.regs[o.arg[1]/4] != 0
	}
	step := m.plane(o.arg[1])
	for i, w := range m.active {
		for ; w != 0; w &= w - 1 {
			if step[i*64+trailing(w)] == 0 {
				return false
			}
		}
	}
	return true
}

// test moves the active lanes whose For has ended to left. If requested, it first adds the step to their counters.
func (m *machine) test(o *op, advance bool) {
	left := m.frames[o.frame].left
	counter := m.plane(o.d)
	limit, step := m.operand(o, 0), m.operand(o, 1)
	for i, w := range m.active {
		for t := w; t != 0; t &= t - 1 {
			bit := trailing(t)
			j := i*64 + bit
			ok := true
			if advance {
				counter[j], ok = sum(counter[j], step[j&o.laneMask(1)], o.mem.signed)
			}
			if !ok || !less(counter[j], limit[j&o.laneMask(0)], o.mem.signed) {
				w &^= 1 << bit
				left[i] |= 1 << bit
			}
		}
		m.active[i] = w
	}
	m.updated()
}

// operand returns the lanes of an operand, or the block of one that is uniform:
// laneMask takes a lane's number to its place.
func (m *machine) operand(o *op, k int) []uint32 {
	if o.stride[k] == 0 {
		return m.regs[o.arg[k]/4:][:1]
	}
	return m.plane(o.arg[k])
}

func (o *op) laneMask(k int) int {
	if o.stride[k] == 0 {
		return 0
	}
	return -1
}

// beyond reports an index out of bounds at a lane.
func (m *machine) beyond(o *op, lane int) *Finding {
	f := m.fault(OutOfBounds, o, lane)
	// The signedness of the index is unknown: a value of 2^31 or more is taken as negative.
	f.Index = int64(int32(m.regs[int(o.arg[0]/4)+max(lane, 0)]))
	return f
}

// fault describes a mistake that ends the launch.
func (m *machine) fault(k Kind, o *op, lane int) *Finding {
	p := m.k.program
	f := &Finding{Kind: k, Kernel: p.Name, Value: o.value, Index: -1, Lanes: [2]int32{-1, -1}, Group: m.group, Subgroup: m.subgroup}
	if lane >= 0 {
		f.Lanes[0] = int32(lane % m.k.local)
		f.Group[0] += uint32(lane / m.k.local)
	}
	if o.mem != nil && o.kind != opFor && o.kind != opEndFor && o.kind != opForOne && o.kind != opEndForOne {
		f.Name = place(p, o.mem.shared, o.mem.slot)
	}
	f.locate(p)
	return f
}

func place(p *ir.Program, shared bool, slot int) string {
	if shared {
		return p.Shared[slot].Name
	}
	return p.Bindings[slot].Name
}
