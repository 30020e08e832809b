package interp

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// row returns component k of a value, a scalar's one for any k, by lanes of the
// workgroup.
func (c *checker) row(v ir.Value, k int) []uint32 {
	at := c.place(v, k)
	return c.vals[at : at+c.lanes]
}

func (c *checker) exactRow(v ir.Value, k int) []int64 {
	at := c.place(v, k)
	return c.exact[at : at+c.lanes]
}

func (c *checker) place(v ir.Value, k int) int {
	if c.p.Code[v].Width == 1 {
		k = 0
	}
	return c.base[v] + k*c.lanes
}

// step runs one instruction of a subgroup.
func (c *checker) step(w *warp) {
	if w.pc >= len(c.p.Code) {
		w.state = done
		return
	}
	v := ir.Value(w.pc)
	in := &c.p.Code[v]
	w.pc++
	switch in.Code {
	case ir.Barrier, ir.UniformLoad:
		w.pc--
		w.state = waiting
		if w.active != w.all {
			c.find(&Finding{Kind: DivergentBarrier, Value: v, Index: -1, Lanes: c.split(w), Note: "lanes of one subgroup disagree"})
		}
	case ir.If:
		yes := c.truths(w, in.Args[0])
		w.nest = append(w.nest, nested{head: v, close: int(in.Imm), other: w.active.andNot(yes)})
		if w.active = yes; yes.empty() {
			w.leave()
		}
	case ir.Else:
		f := &w.nest[len(w.nest)-1]
		w.active, f.other, f.close = f.other, w.active, int(in.Imm)
		if w.active.empty() {
			w.leave()
		}
	case ir.For:
		w.nest = append(w.nest, nested{head: v, close: int(in.Imm), free: in.Flag == ir.Bounded, limit: in.Args[1], step: in.Args[2]})
		counter, start := c.row(v, 0), c.row(in.Args[0], 0)
		step := c.row(in.Args[2], 0)
		for i := range w.n {
			if w.active.has(i) {
				counter[w.from+i] = start[w.from+i]
				if step[w.from+i] == 0 {
					w.nest[len(w.nest)-1].free = false
				}
			}
		}
		c.turn(w, in, v, false)
	case ir.Loop:
		w.nest = append(w.nest, nested{head: v, close: int(in.Imm), free: in.Flag == ir.Bounded})
	case ir.End:
		c.endBlock(w)
	case ir.Break, ir.Continue:
		for k := len(w.nest) - 1; ; k-- {
			if f := &w.nest[k]; f.head == ir.Value(in.Imm) {
				if in.Code == ir.Break {
					f.left = f.left.or(w.active)
				} else {
					f.next = f.next.or(w.active)
				}
				break
			}
		}
		w.active = lanes{}
		w.leave()
	case ir.Return:
		w.active = lanes{}
		w.leave()
	case ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupShuffle, ir.SubgroupXor, ir.SubgroupFirst:
		c.subgroup(w, v, in)
	default:
		c.lanewise(w, v, in)
	}
}

// split returns a lane that is active and one that is not.
func (c *checker) split(w *warp) [2]int32 {
	out := [2]int32{int32(w.from + w.lowest()), -1}
	for i := range w.n {
		if !w.active.has(i) {
			out[1] = int32(w.from + i)
			break
		}
	}
	return out
}

// truths returns the active lanes in which a condition holds.
func (c *checker) truths(w *warp, v ir.Value) (m lanes) {
	cond := c.row(v, 0)
	for i := range w.n {
		if w.active.has(i) && cond[w.from+i] != 0 {
			m.set(i)
		}
	}
	return m
}

// turn begins a turn of a For for the lanes that are not through with it.
func (c *checker) turn(w *warp, in *ir.Instr, v ir.Value, advance bool) {
	f := &w.nest[len(w.nest)-1]
	counter, limit, step := c.row(v, 0), c.row(f.limit, 0), c.row(f.step, 0)
	exact := c.exactRow(v, 0)
	signed := in.Type == ir.I32
	var on lanes
	for i := range w.n {
		if !w.active.has(i) {
			continue
		}
		j := w.from + i
		ok := true
		if advance {
			if counter[j], ok = sum(counter[j], step[j], signed); !ok {
				c.find(&Finding{Kind: CounterOverflow, Value: v, Index: -1, Lanes: [2]int32{int32(j), -1}})
			}
		}
		exact[j] = integer(counter[j], in.Type)
		if ok && less(counter[j], limit[j], signed) {
			on.set(i)
		}
	}
	f.left = f.left.or(w.active.andNot(on))
	w.active = on
	if on.empty() {
		c.leaveLoop(w)
	}
}

// leaveLoop ends the innermost loop for the lanes of the subgroup.
func (c *checker) leaveLoop(w *warp) {
	f := &w.nest[len(w.nest)-1]
	w.active, w.pc = f.left, int(c.p.Code[f.head].Imm)+1
	w.nest = w.nest[:len(w.nest)-1]
	if w.active.empty() {
		w.leave()
	}
}

func (c *checker) endBlock(w *warp) {
	f := &w.nest[len(w.nest)-1]
	head := &c.p.Code[f.head]
	if head.Code == ir.If {
		w.active = w.active.or(f.other)
		w.nest = w.nest[:len(w.nest)-1]
		if w.active.empty() {
			w.leave()
		}
		return
	}
	w.active, f.next = w.active.or(f.next), lanes{}
	if !w.active.empty() && !f.free {
		if f.turns++; f.turns > c.l.budget {
			c.find(&Finding{Kind: Budget, Value: f.head, Index: -1, Lanes: [2]int32{int32(w.from + w.lowest()), -1},
				Note: fmt.Sprintf("more than %d turns", c.l.budget)})
			f.left, w.active = f.left.or(w.active), lanes{}
		}
	}
	if w.active.empty() {
		c.leaveLoop(w)
		return
	}
	w.pc = int(f.head) + 1
	if head.Code == ir.For {
		c.turn(w, head, f.head, true)
	}
}

// integer returns the value of an integer's bits; of what is none, the bits.
func integer(v uint32, t ir.Type) int64 {
	if t == ir.I32 {
		return int64(int32(v))
	}
	return int64(v)
}

// lanewise runs an instruction that each lane does for itself.
func (c *checker) lanewise(w *warp, v ir.Value, in *ir.Instr) {
	switch in.Code {
	case ir.Load, ir.LoadShared, ir.Store, ir.StoreShared, ir.AtomicOp, ir.AtomicOpShared:
		for _, i := range w.order {
			if w.active.has(i) {
				c.memory(w.from+i, v, in)
			}
		}
		return
	}
	for i := range w.n {
		if w.active.has(i) {
			c.one(w.from+i, v, in)
		}
	}
}

// one computes a value, or sets a variable, of one lane.
func (c *checker) one(lane int, v ir.Value, in *ir.Instr) {
	width := int(in.Width)
	set := func(k int, x uint32, e int64) {
		at := c.base[v] + k*c.lanes + lane
		c.vals[at], c.exact[at] = x, e
	}
	copyOf := func(k int, a ir.Value, j int) {
		at := c.place(a, j) + lane
		set(k, c.vals[at], c.exact[at])
	}
	scalar := func(x uint32) { set(0, x, integer(x, in.Type)) }
	arg := func(n, k int) uint32 { return c.vals[c.place(in.Args[n], k)+lane] }
	switch in.Code {
	case ir.Const:
		x := in.Imm
		switch in.Type {
		case ir.Bool:
			x = truth(x != 0)
		case ir.F16:
			x = laneConvertF32F16(x, 0, 0, 0)
		}
		for k := range width {
			set(k, x, integer(x, in.Type))
		}
	case ir.BuiltIn:
		switch f := in.Flag; {
		case f >= ir.BuiltInGroupsX && f <= ir.BuiltInGroupsZ:
			scalar(c.l.grid[f-ir.BuiltInGroupsX])
		case f >= ir.BuiltInGroupX && f <= ir.BuiltInGroupZ:
			scalar(c.group[f-ir.BuiltInGroupX])
		case f == ir.BuiltInSubgroupSize:
			scalar(uint32(c.l.subgroup))
		default:
			scalar(laneBuiltIn(f, uint32(lane), c.p.Local, uint32(c.l.subgroup)))
		}
	case ir.Param32:
		scalar(c.l.params[in.Imm])
	case ir.Len:
		scalar(c.l.views[in.Imm].len)
	case ir.Splat:
		for k := range width {
			copyOf(k, in.Args[0], 0)
		}
	case ir.Compose:
		args, n := operands(in)
		for k := range n {
			copyOf(k, args[k], 0)
		}
	case ir.Extract:
		copyOf(0, in.Args[0], int(in.Flag))
	case ir.LoadVar:
		for k := range width {
			at := c.varBase[in.Imm] + k*c.lanes + lane
			if !c.written[at] {
				c.find(&Finding{Kind: Uninitialised, Value: v, Name: c.p.Vars[in.Imm].Name, Index: -1, Lanes: [2]int32{int32(lane), -1}})
			}
			set(k, c.vars[at], c.varExact[at])
		}
	case ir.StoreVar:
		for k := range int(c.p.Vars[in.Imm].Width) {
			at, from := c.varBase[in.Imm]+k*c.lanes+lane, c.place(in.Args[0], k)+lane
			c.vars[at], c.varExact[at], c.written[at] = c.vals[from], c.exact[from], true
		}
	case ir.Dot:
		s := uint32(0)
		for k := range int(c.p.Code[in.Args[0]].Width) {
			x := c.rounded(in.Type, laneMulF32(arg(0, k), arg(1, k), 0, 0))
			if k > 0 {
				x = c.rounded(in.Type, laneAddF32(s, x, 0, 0))
			}
			s = x
		}
		scalar(s)
	case ir.PackHalf:
		scalar(lanePackHalf(arg(0, 0), arg(0, 1), 0, 0))
	case ir.UnpackHalf:
		for k := range 2 {
			set(k, laneUnpackHalf(arg(0, 0), 0, 0, uint32(16*k)), 0)
		}
	case ir.PackI8:
		s := uint32(0)
		for k := range 4 {
			s = lanePackByte(s, arg(0, k), 0, uint32(8*k))
		}
		scalar(s)
	case ir.UnpackI8, ir.UnpackU8:
		f := laneUnpackI8
		if in.Code == ir.UnpackU8 {
			f = laneUnpackU8
		}
		for k := range 4 {
			x := f(arg(0, 0), 0, 0, uint32(8*k))
			set(k, x, integer(x, in.Type))
		}
	default:
		if renames(c.p, in) {
			from := c.p.Code[in.Args[0]].Type
			for k := range width {
				copyOf(k, in.Args[0], k)
				if !from.Integer() || !in.Type.Integer() {
					x := arg(0, k)
					set(k, x, integer(x, in.Type))
				}
			}
			return
		}
		c.elementary(lane, v, in)
	}
}

func (c *checker) rounded(t ir.Type, x uint32) uint32 {
	if t == ir.F16 {
		return laneConvertF32F16(x, 0, 0, 0)
	}
	return x
}

// elementary computes what has a function of lanes, and beside it what an
// integer would be if it had not wrapped.
func (c *checker) elementary(lane int, v ir.Value, in *ir.Instr) {
	_, n := operands(in)
	for k := range int(in.Width) {
		var x [3]uint32
		var e [3]int64
		for j := range n {
			at := c.place(in.Args[j], k) + lane
			x[j], e[j] = c.vals[at], c.exact[at]
		}
		y := c.fn[v].lane(x[0], x[1], x[2], 0)
		if c.round[v] {
			y = laneConvertF32F16(y, 0, 0, 0)
		}
		at := c.base[v] + k*c.lanes + lane
		c.vals[at], c.exact[at] = y, integer(y, in.Type)
		if !in.Type.Integer() {
			continue
		}
		switch in.Code {
		case ir.Add:
			c.exact[at] = saturate(e[0] + e[1])
		case ir.Sub:
			c.exact[at] = saturate(e[0] - e[1])
		case ir.Neg:
			c.exact[at] = -e[0]
		case ir.Mul:
			c.exact[at] = times(e[0], e[1])
		case ir.Shl:
			c.exact[at] = times(e[0], 1<<(x[1]&31))
		case ir.Min, ir.Max:
			if c.exact[at] = e[1]; y == x[0] {
				c.exact[at] = e[0]
			}
		case ir.Select:
			if c.exact[at] = e[2]; x[0] != 0 {
				c.exact[at] = e[1]
			}
		}
	}
}

// far is where exact integers stop: so much is lost already.
const far = 1 << 61

func saturate(e int64) int64 { return min(max(e, -far), far) }

func times(a, b int64) int64 {
	if f := float64(a) * float64(b); math.Abs(f) >= far {
		return int64(math.Copysign(far, f))
	}
	return a * b
}

// memory does an access of one lane.
func (c *checker) memory(lane int, v ir.Value, in *ir.Instr) {
	shared := in.Code == ir.LoadShared || in.Code == ir.StoreShared || in.Code == ir.AtomicOpShared
	m := c.region(shared, in.Imm)
	at := c.place(in.Args[0], 0) + lane
	index, ok := c.index(m, lane, v, in.Args[0], at)
	load := in.Code == ir.Load || in.Code == ir.LoadShared
	if !ok {
		for k := range int(in.Width) {
			if in.Type != ir.Invalid {
				c.vals[c.base[v]+k*c.lanes+lane], c.exact[c.base[v]+k*c.lanes+lane] = 0, 0
			}
		}
		return
	}
	if in.Code == ir.AtomicOp || in.Code == ir.AtomicOpShared {
		c.atomic(m, index, lane, v, in)
		return
	}
	for k := range m.width {
		i := index*m.width + k
		if load {
			x := c.read(m, i, lane, v)
			c.vals[c.base[v]+k*c.lanes+lane], c.exact[c.base[v]+k*c.lanes+lane] = x, integer(x, in.Type)
			continue
		}
		c.note(m, i, lane, v, false)
		m.set(i, c.vals[c.place(in.Args[1], k)+lane])
	}
}

// region is a buffer or array.
type region struct {
	name   string
	width  int
	len    uint32
	view   view
	cells  *shadow
	shared bool
}

func (c *checker) region(shared bool, n uint32) region {
	if shared {
		a := &c.p.Shared[n]
		return region{a.Name, int(a.Width), a.Len, view{words: c.shared[n]}, &c.arrays[n], true}
	}
	b := &c.p.Bindings[n]
	return region{b.Name, int(b.Width), c.l.views[n].len, c.l.views[n], &c.buffers[n], false}
}

func (m *region) get(i int) uint32 {
	if m.view.halves != nil {
		return laneUnpackHalf(uint32(m.view.halves[i]), 0, 0, 0)
	}
	return m.view.words[i]
}

func (m *region) set(i int, x uint32) {
	if m.view.halves != nil {
		m.view.halves[i] = uint16(lanePackHalf(x, 0, 0, 0))
		return
	}
	m.view.words[i] = x
}

// index checks the index of an access, which stands at a place of the values.
func (c *checker) index(m region, lane int, v, arg ir.Value, at int) (int, bool) {
	x := c.vals[at]
	t := c.p.Code[arg].Type
	if x >= m.len {
		c.find(&Finding{Kind: OutOfBounds, Value: v, Name: m.name, Index: integer(x, t), Lanes: [2]int32{int32(lane), -1},
			Note: fmt.Sprintf("which has %d elements", m.len)})
		return 0, false
	}
	if e := c.exact[at]; e != int64(x) {
		c.find(&Finding{Kind: IndexOverflow, Value: v, Name: m.name, Index: int64(x), Lanes: [2]int32{int32(lane), -1},
			Note: fmt.Sprintf("which would be %d had it not wrapped around", e)})
	}
	return int(x), true
}

func (c *checker) me(lane int, v ir.Value) who {
	return who{group: c.number, epoch: c.epoch, at: v, lane: uint16(lane)}
}

// read reads component i of a region.
func (c *checker) read(m region, i, lane int, v ir.Value) uint32 {
	if m.cells.watched {
		cell := m.cells.cell(i)
		if m.cells.blank && !cell.filled {
			c.find(&Finding{Kind: Uninitialised, Value: v, Name: m.name, Index: int64(i / m.width), Lanes: [2]int32{int32(lane), -1}})
		}
		if w := cell.read(c.me(lane, v)); w != nil {
			c.race(m, i, lane, v, w, "read", "written")
		}
	}
	return m.get(i)
}

// note records a write.
func (c *checker) note(m region, i, lane int, v ir.Value, bulk bool) {
	cell := m.cells.cell(i)
	cell.filled = true
	me := c.me(lane, v)
	me.bulk = bulk
	if a := cell.store(me); a != nil {
		c.race(m, i, lane, v, a, "written", "used")
	}
}

func (c *checker) race(m region, i, lane int, v ir.Value, a *who, did, other string) {
	f := &Finding{Kind: Race, Value: v, Name: m.name, Index: int64(i / m.width), Lanes: [2]int32{int32(lane), int32(a.lane)}, Other: a.at}
	at := fmt.Sprintf("%%%d", a.at)
	if file, line := ir.Position(c.p.Pos, a.at); file != "" {
		at = fmt.Sprintf("%s:%d", file, line)
	}
	where := "with no barrier between"
	if a.group != c.number {
		g, x, y := a.group-1, c.l.grid[0], c.l.grid[1]
		where = fmt.Sprintf("by workgroup %d,%d,%d", g%x, g/x%y, g/x/y)
	}
	f.Note = fmt.Sprintf("%s here and %s at %s %s", did, other, at, where)
	c.find(f)
}

func (c *checker) atomic(m region, i, lane int, v ir.Value, in *ir.Instr) {
	cell := m.cells.cell(i)
	if m.cells.blank && !cell.filled && in.Flag != ir.AtomicStore {
		c.find(&Finding{Kind: Uninitialised, Value: v, Name: m.name, Index: int64(i), Lanes: [2]int32{int32(lane), -1}})
	}
	args, n := operands(in)
	arg := func(k int) uint32 {
		if k >= n {
			return 0
		}
		return c.vals[c.place(args[k], 0)+lane]
	}
	if in.Flag != ir.AtomicLoad {
		// In workgroup memory a plain store among updates is a mistake, atomic or
		// not: somebody's update is lost. In buffers it may be a signal.
		c.note(m, i, lane, v, !m.shared || in.Flag != ir.AtomicStore)
	}
	old := m.get(i)
	m.set(i, atomicResult(in.Flag, in.Type == ir.I32, old, arg(1), arg(2)))
	if in.Type != ir.Invalid {
		at := c.base[v] + lane
		c.vals[at], c.exact[at] = old, integer(old, in.Type)
	}
}

// uniformLoad gives a subgroup the element that all lanes of the workgroup
// read together. first is a subgroup that defines the index.
func (c *checker) uniformLoad(w, first *warp) {
	v := ir.Value(w.pc)
	in := &c.p.Code[v]
	m := c.region(true, in.Imm)
	at := c.place(in.Args[0], 0)
	want := c.vals[at+first.from+first.lowest()]
	for i := range w.n {
		if !w.active.has(i) {
			continue
		}
		lane := w.from + i
		if x := c.vals[at+lane]; x != want {
			c.find(&Finding{Kind: NotUniform, Value: v, Name: m.name, Index: int64(x), Lanes: [2]int32{int32(lane), int32(first.from + first.lowest())},
				Note: fmt.Sprintf("the other lane reads element %d", want)})
		}
		index, ok := c.index(m, lane, v, in.Args[0], at+lane)
		for k := range m.width {
			x := uint32(0)
			if ok {
				x = c.read(m, index*m.width+k, lane, v)
			}
			to := c.base[v] + k*c.lanes + lane
			c.vals[to], c.exact[to] = x, integer(x, in.Type)
		}
	}
}

// subgroup runs an operation that the lanes of a subgroup do together.
func (c *checker) subgroup(w *warp, v ir.Value, in *ir.Instr) {
	w.trace = append(w.trace, v)
	if w.active != w.all {
		c.find(&Finding{Kind: DivergentSubgroup, Value: v, Index: -1, Lanes: c.split(w), Note: "lanes of one subgroup disagree"})
	}
	var from []uint32
	if in.Code == ir.SubgroupShuffle {
		from = c.row(in.Args[1], 0)[w.from : w.from+w.n]
	}
	// A subgroup of one lane is what devices without subgroups have: there a
	// shuffle is the identity.
	for i := 0; i < w.n && c.l.subgroup > 1; i++ {
		j := i
		switch in.Code {
		case ir.SubgroupShuffle:
			j = int(min(from[i], 1<<20))
		case ir.SubgroupXor:
			j = i ^ int(min(in.Imm, 1<<20))
		}
		if j >= w.n && w.active.has(i) {
			c.find(&Finding{Kind: ShuffleRange, Value: v, Index: int64(j), Lanes: [2]int32{int32(w.from + i), -1},
				Note: fmt.Sprintf("of a subgroup with %d lanes", w.n)})
		}
	}
	for k := range int(in.Width) {
		d, a := c.row(v, k)[w.from:w.from+w.n], c.row(in.Args[0], k)[w.from:w.from+w.n]
		exchange(subgroupOps[in.Code], combiner(in), in.Imm, d, a, from)
		e := c.exactRow(v, k)[w.from:]
		for i, x := range d {
			e[i] = integer(x, in.Type)
		}
	}
}
