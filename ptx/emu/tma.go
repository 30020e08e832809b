package emu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/ptx"
)

// tensorMapBytes is the size of a parameter that is a tensor map.
const tensorMapBytes = 128

// TensorMap describes a tensor in global memory for copies of tiles, as cuTensorMapEncodeTiled
// does. Other options of that function have their defaults: elements are contiguous, and elements outside of
// the tensor are 0.
type TensorMap struct {
	Base    Ptr
	Type    string // of elements, as in PTX: "f32", "bf16", "u8"
	Dims    []int  // elements, the innermost first
	Strides []int  // bytes from one row, plane ... to the next: one fewer than Dims
	Box     []int  // elements of a tile
	Swizzle ptx.Swizzle
}

func (t *TensorMap) bytes() int {
	switch t.Type {
	case "u8", "s8", "b8":
		return 1
	case "f16", "bf16", "u16", "s16", "b16":
		return 2
	case "f32", "tf32", "u32", "s32", "b32":
		return 4
	case "f64", "u64", "s64", "b64":
		return 8
	}
	return 0
}

// check reports descriptors that the driver would reject.
func (t *TensorMap) check(m *Machine) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: tensor map: %s", ErrLaunch, fmt.Sprintf(format, args...))
	}
	rank, size := len(t.Dims), t.bytes()
	switch {
	case size == 0:
		return fail("no type is called %q", t.Type)
	case rank < 1 || rank > 5 || len(t.Strides) != rank-1 || len(t.Box) != rank:
		return fail("there are %d dimensions, %d strides and %d extents of the box: expected 1 to 5 dimensions, one stride fewer, and as many extents", rank, len(t.Strides), len(t.Box))
	case t.Base%16 != 0:
		return fail("the address is %#x, expected a multiple of 16", uint64(t.Base))
	case t.Swizzle > ptx.Swizzle32:
		return fail("the swizzle is %d, expected 0 to %d", t.Swizzle, ptx.Swizzle32)
	}
	for i, n := range t.Dims {
		if n < 1 || int64(n) > 1<<32-1 || t.Box[i] < 1 || t.Box[i] > 256 {
			return fail("dimension %d has %d elements, expected 1 to 2^32-1, and the box %d, expected 1 to 256", i, n, t.Box[i])
		}
	}
	for i, s := range t.Strides {
		if s < 1 || s%16 != 0 || int64(s) >= 1<<40 {
			return fail("stride %d is %d bytes, expected a positive multiple of 16 below 2^40", i, s)
		}
	}
	inner := t.Box[0] * size
	if limit := [4]int{1 << 20, 128, 64, 32}[t.Swizzle]; inner%16 != 0 || inner > limit {
		return fail("a row of the box has %d bytes, expected a multiple of 16 up to %d", inner, limit)
	}
	last := int64(t.Dims[0]) * int64(size)
	for i, s := range t.Strides {
		if int64(t.Dims[i+1]-1) > (1<<40)/int64(s) {
			return fail("the tensor has more bytes along dimension %d than expected: at most 2^40", i+1)
		}
		last += int64(t.Dims[i+1]-1) * int64(s)
	}
	if last > m.config.Memory || m.find(uint64(t.Base), int(last)) == nil {
		return fail("the tensor has %d bytes at %#x, but this memory is not allocated", last, uint64(t.Base))
	}
	return nil
}

// boxBytes is the size of a tile.
func (t *TensorMap) boxBytes() int {
	n := t.bytes()
	for _, b := range t.Box {
		n *= b
	}
	return n
}

// rows calls f for each row of a tile with the offset of the row in the tile, and the address and
// bytes of its part inside the tensor; n is 0 if no byte is inside.
func (t *TensorMap) rows(coords []int, f func(tile int, addr uint64, skip, n int)) {
	size := t.bytes()
	inner := t.Box[0] * size
	from, to := max(coords[0], 0), min(coords[0]+t.Box[0], t.Dims[0])
	at := make([]int, len(t.Box))
	for tile := 0; ; tile += inner {
		addr, inside := uint64(t.Base)+uint64(from*size), from < to
		for i := 1; i < len(at); i++ {
			c := coords[i] + at[i]
			inside = inside && c >= 0 && c < t.Dims[i]
			addr += uint64(int64(c) * int64(t.Strides[i-1]))
		}
		if inside {
			f(tile, addr, (from-coords[0])*size, (to-from)*size)
		} else {
			f(tile, 0, 0, 0)
		}
		i := 1
		for ; i < len(at); i++ {
			if at[i]++; at[i] < t.Box[i] {
				break
			}
			at[i] = 0
		}
		if i == len(at) {
			return
		}
	}
}

// place returns the position in shared memory of a byte of a tile at addr.
func (t *TensorMap) place(addr uint32, off int) int {
	return int(swizzled(addr+uint32(off), uint32(t.Swizzle))) - sharedBase
}

// bulkCopy is an incomplete copy of the async proxy.
type bulkCopy struct {
	in     *inst
	pc     int
	w      *warp
	lane   int
	shared uint32 // address
	bytes  int
	global uint64     // address, if the copy has no tensor map
	t      *TensorMap // or nil
	coords []int
	bar    *mbarrier
	known  known
	array  *array
	group  int
}

// bulkGroups has the incomplete copies from shared memory of a warp.
type bulkGroups struct {
	list   []*bulkCopy
	groups [32]int
}

func (g *bulkGroups) reset() { g.list, g.groups = g.list[:0], [32]int{} }

// bulk is cp.async.bulk and cp.reduce.async.bulk.
func (c *compiler) bulk(in *inst) {
	name := c.st.name
	in.kind = kindRun
	switch {
	case name == "cp.async.bulk.commit_group":
		c.args(0, 0)
		in.run = func(w *warp, _ *inst, mask uint32) bool {
			for m := mask; m != 0; m &= m - 1 {
				w.groups.groups[lowest(m)]++
			}
			return true
		}
	case name == "cp.async.bulk.wait_group", name == "cp.async.bulk.wait_group.read":
		n := c.number(&c.args(1, 1)[0], 1<<20)
		in.run = func(w *warp, _ *inst, mask uint32) bool {
			w.groups.wait(w, mask, n)
			return true
		}
	case strings.HasPrefix(name, "cp.async.bulk.prefetch."):
		in.run = func(*warp, *inst, uint32) bool { return true }
	default:
		c.bulkCopy(in)
	}
}

// bulkForm has the properties of a bulk copy that its name gives.
type bulkForm struct {
	rank  int    // of the tensor, or 0
	store bool   // from shared memory
	mode  string // of a reduction
	more  int    // operands that some have
}

func (c *compiler) bulkForm() (f bulkForm) {
	name := c.st.name
	reduce := strings.HasPrefix(name, "cp.reduce.")
	p := strings.Split(strings.TrimPrefix(strings.TrimPrefix(name, "cp.async.bulk."), "cp.reduce.async.bulk."), ".")
	if p[0] == "tensor" && len(p) > 1 {
		f.rank = atoi(strings.TrimSuffix(p[1], "d"))
		if f.rank < 1 || f.rank > 5 {
			c.fail(unsupported)
		}
		p = p[2:]
	}
	if len(p) < 3 {
		c.fail(unsupported)
	}
	switch p[0] + "." + p[1] {
	case "shared::cluster.global", "shared::cta.global":
	case "global.shared::cta":
		f.store = true
	default:
		c.fail(unsupported)
	}
	for _, s := range p[2:] {
		switch s {
		case "tile", "mbarrier::complete_tx::bytes", "bulk_group":
		case "add", "min", "max", "and", "or", "xor", "inc", "dec":
			if !reduce {
				c.fail(unsupported)
			}
			f.mode = s
		case "multicast::cluster", "L2::cache_hint":
			f.more++
		default:
			c.fail(unsupported)
		}
	}
	if f.store == slices.Contains(p, "mbarrier::complete_tx::bytes") || reduce && (!f.store || f.rank == 0 || f.mode == "") {
		c.fail(unsupported)
	}
	return f
}

// bulkCopy is a copy of bytes or of a tile of a tensor.
func (c *compiler) bulkCopy(in *inst) {
	f := c.bulkForm()
	x := &extra{pred: -1, mode: f.mode, n: f.rank}
	want := 2 // addresses
	if !f.store {
		want++
	}
	if f.rank == 0 {
		want++
	}
	args := c.args(want+f.more, want+f.more)
	shared, global := &args[0], &args[1]
	if f.store {
		shared, global = global, shared
	}
	in.x, in.b, in.c = x, -1, -1
	in.a, x.off = c.address(shared, spaceShared)
	if f.rank == 0 {
		in.d, x.off2 = c.address(global, spaceGlobal)
		in.b = c.value(&args[2], 4)
	} else {
		if global.kind != operandAddress || len(global.list) != 2 || global.list[1].kind != operandVector || len(global.list[1].list) != f.rank {
			c.fail("expected a tensor map and %d coordinates", f.rank)
		}
		in.d = c.value(&global.list[0], 8)
		for i := range global.list[1].list {
			x.regs = append(x.regs, c.value(&global.list[1].list[i], 4))
		}
	}
	if f.store {
		in.run = (*warp).bulkStore
		return
	}
	bar, off := c.address(&args[want-1], spaceShared)
	in.c = bar
	x.imm = int(off)
	in.run = (*warp).bulkLoad
}

// bulkStart starts the copy of a lane, or returns nil after a finding.
func (w *warp) bulkStart(in *inst, pc, lane int) *bulkCopy {
	x, r := in.x, w.b.run
	lanes := uint32(1) << lane
	w.need(in, in.a, lanes, "the address was not computed in this thread")
	w.need(in, in.d, lanes, "the address was not computed in this thread")
	c := &bulkCopy{in: in, pc: pc, w: w, lane: lane, shared: uint32(w.regs[in.a][lane] + uint64(x.off)), group: w.groups.groups[lane]}
	align := 16
	if x.n > 0 {
		c.t = r.maps[int(w.regs[in.d][lane]-paramBase)]
		if c.t == nil || len(c.t.Dims) != x.n {
			w.stop(BadOperand, pc, lane, fmt.Sprintf("expected the address of a tensor map of %d dimensions", x.n))
			return nil
		}
		for _, reg := range x.regs {
			w.need(in, reg, lanes, "a coordinate was not computed in this thread")
			c.coords = append(c.coords, int(int32(w.regs[reg][lane])))
		}
		c.bytes = c.t.boxBytes()
		align = 128
	} else {
		w.need(in, in.b, lanes, "the number of bytes was not computed in this thread")
		c.global = w.regs[in.d][lane] + uint64(x.off2)
		c.bytes = int(w.regs[in.b][lane])
		if c.bytes%16 != 0 {
			w.stop(BadOperand, pc, lane, "the number of bytes is not a multiple of 16")
			return nil
		}
		if a, _ := w.global(pc, lane, c.global, c.bytes, 16); a == nil {
			r.report.fatal = true
			return nil
		}
	}
	room := c.bytes
	if c.t != nil && c.t.Swizzle != 0 { // a swizzle permutes bytes within units of 128, 64 or 32 bytes, so the last unit must be complete
		line := 256 >> c.t.Swizzle
		room = (room + line - 1) / line * line
	}
	off, a := w.shared(pc, lane, uint64(c.shared), room, align)
	if off < 0 {
		r.report.fatal = true
		return nil
	}
	c.array = a
	return c
}

// globals calls f for each contiguous piece of global memory of a copy. It leaves out pieces outside of the
// tensor.
func (c *bulkCopy) globals(f func(tile int, addr uint64, skip, n int)) {
	if c.t != nil {
		c.t.rows(c.coords, f)
		return
	}
	f(0, c.global, 0, c.bytes)
}

// place returns the position in shared memory of a byte of the copy.
func (c *bulkCopy) place(off int) int {
	if c.t != nil {
		return c.t.place(c.shared, off)
	}
	return int(c.shared) - sharedBase + off
}

func (w *warp) bulkLoad(in *inst, mask uint32) bool {
	pc, b := w.pcOf(in), w.b
	check := !b.run.m.config.Unchecked
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		c := w.bulkStart(in, pc, lane)
		if c == nil {
			return false
		}
		w.need(in, in.c, 1<<lane, "the address of the mbarrier was not computed in this thread")
		if c.bar = w.mbarrierOf(pc, lane, w.regs[in.c][lane]+uint64(int64(in.x.imm))); c.bar == nil {
			return false
		}
		off := int(c.shared) - sharedBase
		w.outgoing(pc, lane, off, c.bytes, c.array)
		if check {
			c.globals(func(_ int, addr uint64, _, n int) {
				if n == 0 {
					return
				}
				a, at := w.global(pc, lane, addr, n, 1)
				if a == nil {
					return
				}
				for i := 0; i < n; i += 16 {
					if k := min(16, n-i); !a.whole && !a.defined.has(at+i, k) {
						w.undefined(pc, lane, a.name, at+i)
					}
				}
				w.checkRead(&a.shadow, at, &access{pc: pc, lane: lane, n: n, name: a.name}, false)
			})
			w.checkWrite(&b.shadow, off, &access{pc: pc, lane: lane, n: c.bytes, name: c.array.name, base: c.array.at - sharedBase}, true, false)
		}
		w.publish(&c.known)
		b.launchInto(off, c.bytes)
		b.bulk = append(b.bulk, c)
		cn := &b.run.counts[pc]
		cn.LoadRequests++
		cn.LoadBytes += int64(c.bytes)
		cn.LoadSectors += int64((c.bytes + 31) / 32)
	}
	w.tick()
	return true
}

// land completes a copy to shared memory.
func (c *bulkCopy) land(b *block) {
	off := int(c.shared) - sharedBase
	clear(b.memory[off : off+c.bytes])
	c.globals(func(tile int, addr uint64, skip, n int) {
		a := b.run.m.find(addr, n)
		if n == 0 || a == nil {
			return
		}
		src := a.data[addr-a.base:]
		for i := range n {
			b.memory[c.place(tile+skip+i)] = src[i]
		}
	})
	b.landInto(off, c.bytes)
	b.dirty.unset(off, c.bytes)
	for i, v := range c.known.warps {
		c.bar.known.warps[i] = max(c.bar.known.warps[i], v)
	}
	if len(c.known.remote) > 0 {
		if c.bar.known.remote == nil {
			c.bar.known.remote = epochs{}
		}
		c.bar.known.remote.join(c.known.remote)
	}
	c.bar.bytes -= int64(c.bytes)
	b.complete(c.bar)
}

func (w *warp) bulkStore(in *inst, mask uint32) bool {
	pc, b := w.pcOf(in), w.b
	check := !b.run.m.config.Unchecked
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		c := w.bulkStart(in, pc, lane)
		if c == nil {
			return false
		}
		off := int(c.shared) - sharedBase
		for i := 0; i < c.bytes; i += 16 {
			w.landed(pc, lane, off+i, 16, c.array)
			w.clean(pc, lane, off+i, 16, c.array)
			if check && !b.defined.has(off+i, 16) {
				w.undefined(pc, lane, c.array.name, off+i+sharedBase-c.array.at)
			}
		}
		if check {
			w.checkRead(&b.shadow, off, &access{pc: pc, lane: lane, n: c.bytes, name: c.array.name, base: c.array.at - sharedBase}, true)
			c.globals(func(_ int, addr uint64, _, n int) {
				if n == 0 {
					return
				}
				if a, at := w.global(pc, lane, addr, n, 1); a != nil {
					w.checkWrite(&a.shadow, at, &access{pc: pc, lane: lane, n: n, name: a.name, strong: in.x.mode != ""}, false, false)
				}
			})
		}
		b.leaving.set(off, c.bytes)
		b.departing += c.bytes
		w.groups.list = append(w.groups.list, c)
		cn := &b.run.counts[pc]
		cn.StoreRequests++
		cn.StoreBytes += int64(c.bytes)
		cn.StoreSectors += int64((c.bytes + 31) / 32)
	}
	return true
}

// wait completes the copies from shared memory of the lanes of mask, except those of the last n
// groups; -1 means all.
func (g *bulkGroups) wait(w *warp, mask uint32, n int) {
	kept := g.list[:0]
	for _, c := range g.list {
		if mask>>c.lane&1 == 0 || n >= 0 && c.group >= g.groups[c.lane]-n {
			kept = append(kept, c)
			continue
		}
		c.leave(w.b)
	}
	g.list = kept
}

// leave completes a copy from shared memory.
func (c *bulkCopy) leave(b *block) {
	var f atomicFunc
	size := 1
	if c.in.x.mode != "" {
		typ := c.t.Type
		if strings.Contains("and or xor", c.in.x.mode) {
			typ = fmt.Sprintf("b%d", 8*c.t.bytes())
		}
		if f = atomicOp(c.in.x.mode, typ); f == nil {
			c.w.stop(BadOperand, c.pc, c.lane, "there is no reduction of elements of type "+typ)
			return
		}
		size = c.t.bytes()
	}
	c.globals(func(tile int, addr uint64, skip, n int) {
		a := b.run.m.find(addr, n)
		if n == 0 || a == nil {
			return
		}
		dst := a.data[addr-a.base:]
		for i := 0; i < n; i += size {
			src := b.memory[c.place(tile+skip+i):]
			if f == nil {
				dst[i] = src[0]
			} else {
				store(dst[i:], size, f(load(dst[i:], size), load(src, size), 0))
			}
		}
		a.defined.set(int(addr-a.base), n)
	})
	off := int(c.shared) - sharedBase
	b.leaving.unset(off, c.bytes)
	b.departing -= c.bytes
}

// outgoing reports a write to shared memory that a copy of the async proxy may
// still read.
func (w *warp) outgoing(pc, lane, off, n int, a *array) {
	b := w.b
	if b.departing == 0 {
		return
	}
	for i := off; i < off+n; i++ {
		if b.leaving.has(i, 1) {
			w.find(MissingWait, pc, lane, "a bulk copy still reads this memory: wait for it first", func(f *Finding) {
				f.Name, f.Offset = a.name, int64(i+sharedBase-a.at)
			})
			return
		}
	}
}

// leaveAll checks that a warp that returns has waited for its copies, as it must, because another
// block may then use the shared memory.
func (g *bulkGroups) leaveAll(w *warp) {
	if len(g.list) == 0 {
		return
	}
	c := g.list[0]
	w.find(MissingWait, c.pc, c.lane, "the thread returned without waiting for its copy from shared memory", nil)
	g.wait(w, ^uint32(0), -1)
}
