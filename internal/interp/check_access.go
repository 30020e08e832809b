package interp

import (
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// access does an access of one lane.
func (c *checker) access(lane int, v ir.Value, in *ir.Instr, d *decoded) {
	m := d.region
	index, ok := c.index(m, lane, v, in.Args[0])
	if !ok {
		for k := range d.width {
			if in.Type != ir.Invalid {
				c.vals[d.out+k*c.lanes+lane], c.exact[d.out+k*c.lanes+lane] = 0, 0
			}
		}
		return
	}
	switch in.Code {
	case ir.AtomicOp, ir.AtomicOpShared:
		c.atomic(index, lane, v, in, d)
	case ir.Load, ir.LoadShared:
		for k := range m.width {
			x := c.read(m, index*m.width+k, lane, v)
			at := d.out + k*c.lanes + lane
			c.vals[at], c.exact[at] = x, integer(x, d.signed)
		}
	default:
		for k := range m.width {
			i := index*m.width + k
			c.note(m, i, lane, v, false)
			m.set(i, c.vals[d.arg[1]+k*d.step[1]+lane])
		}
	}
}

// index checks the index of an access.
func (c *checker) index(m *region, lane int, v, arg ir.Value) (int, bool) {
	d := &c.code[arg]
	x, e := c.vals[d.out+lane], c.exact[d.out+lane]
	if x >= m.len {
		if c.known(OutOfBounds, v) {
			return 0, false
		}
		index := integer(x, d.signed)
		if e < 0 && e >= math.MinInt32 { // it wrapped around
			index = e
		}
		c.find(&Finding{Kind: OutOfBounds, Value: v, Name: m.name, Index: index, Lanes: [2]int32{int32(lane), -1},
			Note: fmt.Sprintf("which has %d elements", m.len)})
		return 0, false
	}
	if e != int64(x) && !c.known(IndexOverflow, v) {
		c.find(&Finding{Kind: IndexOverflow, Value: v, Name: m.name, Index: int64(x), Lanes: [2]int32{int32(lane), -1},
			Note: fmt.Sprintf("which would be %d had it not wrapped around", e)})
	}
	return int(x), true
}

func (c *checker) me(lane int, v ir.Value) who {
	return who{group: c.number, epoch: c.epoch, at: v, lane: uint16(lane)}
}

// read reads component i of a region.
func (c *checker) read(m *region, i, lane int, v ir.Value) uint32 {
	if m.watched {
		cell := m.cell(i)
		if m.blank && !cell.filled {
			c.find(&Finding{Kind: Uninitialised, Value: v, Name: m.name, Index: int64(i / m.width), Lanes: [2]int32{int32(lane), -1}})
		}
		if w := cell.read(c.me(lane, v)); w != nil {
			c.race(m, i, lane, v, w, "read", "written")
		}
	}
	return m.get(i)
}

// note records a write.
func (c *checker) note(m *region, i, lane int, v ir.Value, bulk bool) {
	cell := m.cell(i)
	cell.filled = true
	me := c.me(lane, v)
	me.bulk = bulk
	if a := cell.store(me); a != nil {
		c.race(m, i, lane, v, a, "written", "used")
	}
}

func (c *checker) race(m *region, i, lane int, v ir.Value, a *who, did, other string) {
	if c.known(Race, v) {
		return
	}
	f := &Finding{Kind: Race, Value: v, Name: m.name, Index: int64(i / m.width), Lanes: [2]int32{int32(lane), int32(a.lane)}, Other: a.at}
	where := "with no barrier between"
	if a.group != c.number {
		g, x, y := a.group-1, c.l.grid[0], c.l.grid[1]
		where = fmt.Sprintf("by workgroup %d,%d,%d", g%x, g/x%y, g/x/y)
	}
	f.Note = fmt.Sprintf("%s here and %s at %s %s", did, other, spot(c.p, a.at), where)
	c.find(f)
}

func (c *checker) atomic(i, lane int, v ir.Value, in *ir.Instr, d *decoded) {
	m := d.region
	if m.blank && !m.cell(i).filled && in.Flag != ir.AtomicStore {
		c.find(&Finding{Kind: Uninitialised, Value: v, Name: m.name, Index: int64(i), Lanes: [2]int32{int32(lane), -1}})
	}
	arg := func(k int) uint32 {
		if k >= d.n {
			return 0
		}
		return c.vals[d.arg[k]+lane]
	}
	if in.Flag != ir.AtomicLoad {
		// In workgroup memory a store among updates is a mistake even if it is atomic, because an update is
		// lost. In buffers the store may be a signal.
		c.note(m, i, lane, v, !m.shared || in.Flag != ir.AtomicStore)
	}
	old := m.get(i)
	m.set(i, atomicResult(in.Flag, d.signed, old, arg(1), arg(2)))
	if in.Type != ir.Invalid {
		c.vals[d.out+lane], c.exact[d.out+lane] = old, integer(old, d.signed)
	}
}

// uniformLoad gives a subgroup the element that all lanes of the workgroup
// read together. first is a subgroup that defines the index.
func (c *checker) uniformLoad(w, first *warp) {
	v := ir.Value(w.pc)
	in, d := &c.p.Code[v], &c.code[v]
	m := d.region
	model := first.from + first.lowest()
	want := c.vals[d.arg[0]+model]
	for i := range w.n {
		if !w.active.has(i) {
			continue
		}
		lane := w.from + i
		if x := c.vals[d.arg[0]+lane]; x != want {
			c.find(&Finding{Kind: NotUniform, Value: v, Name: m.name, Index: int64(x), Lanes: [2]int32{int32(lane), int32(model)},
				Note: fmt.Sprintf("the other lane reads element %d", want)})
		}
		index, ok := c.index(m, lane, v, in.Args[0])
		for k := range m.width {
			x := uint32(0)
			if ok {
				x = c.read(m, index*m.width+k, lane, v)
			}
			to := d.out + k*c.lanes + lane
			c.vals[to], c.exact[to] = x, integer(x, d.signed)
		}
	}
}
