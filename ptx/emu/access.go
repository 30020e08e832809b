package emu

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// space is a memory space.
type space uint8

const (
	spaceNone space = iota
	spaceGlobal
	spaceShared
	spaceParam
	spaceLocal
	spaceConst
	spaces // number of spaces
)

// memory parses the name of a memory access: its space, its semantics, the vector and the type.
func (c *compiler) memory(x *extra) (hint bool) {
	p := c.parts()
	if len(p) == 0 {
		c.fail(unsupported)
	}
	x.n, x.pred = 1, -1
	for _, s := range p[:len(p)-1] {
		switch s {
		case "global":
			x.space = spaceGlobal
		case "shared", "shared::cta":
			x.space = spaceShared
		case "shared::cluster":
			x.space, x.cluster = spaceShared, true
		case "param", "param::entry", "param::func":
			x.space = spaceParam
		case "local":
			x.space = spaceLocal
		case "const":
			x.space = spaceConst
		case "volatile", "relaxed", "mmio":
			x.strong = true
		case "acquire":
			x.strong, x.acquire = true, true
		case "release":
			x.strong, x.release = true, true
		case "v2":
			x.n = 2
		case "v4":
			x.n = 4
		case "v8":
			x.n = 8
		case "L2::cache_hint":
			hint = true
		case "nc", "ca", "cg", "cs", "cv", "lu", "wb", "wt", "weak", "cta", "gpu", "sys", "cluster":
		default:
			if !strings.HasPrefix(s, "L1::") && !strings.HasPrefix(s, "L2::") {
				c.fail("%s is %s", s, unsupported)
			}
		}
	}
	t := p[len(p)-1]
	if t == "b128" {
		c.fail(unsupported)
	}
	x.bytes = int(c.typeBytes(t))
	x.signed = t[0] == 's'
	return hint
}

// address returns the plane and the offset of an address.
func (c *compiler) address(o *operand, s space) (int32, int64) {
	if o.kind != operandAddress || len(o.list) != 1 {
		c.fail("expected an address")
	}
	base := &o.list[0]
	bytes := uint8(8)
	if s == spaceShared {
		bytes = 4
	}
	if base.kind == operandRegister && s == spaceShared && c.f.registers[base.reg].bytes == 8 {
		bytes = 8 // covers both types of the access
	}
	return c.value(base, bytes), o.off
}

// registers returns the registers of a value or of the values of a vector. A register may be wider
// than the access.
func (c *compiler) registers(o *operand, x *extra, result bool) {
	list := []operand{*o}
	if o.kind == operandVector {
		list = o.list
	}
	if len(list) != x.n {
		c.fail("the vector has %d registers, expected %d", len(list), x.n)
	}
	for i := range list {
		r := &list[i]
		if r.kind == operandSink && result {
			x.regs = append(x.regs, -1)
			continue
		}
		wide := uint8(x.bytes)
		if r.kind == operandRegister {
			if wide = c.f.registers[r.reg].bytes; int(wide) < x.bytes {
				c.fail("a register of %d bits cannot hold %d bytes", 8*wide, x.bytes)
			}
		}
		x.wide = wide
		if result {
			x.regs = append(x.regs, c.dest(r, wide))
		} else {
			x.regs = append(x.regs, c.value(r, wide))
		}
	}
}

func (c *compiler) load(in *inst) {
	x := &extra{reads: true}
	more := 0
	if c.memory(x) {
		more = 1
	}
	if x.n*x.bytes > 32 {
		c.fail("an access of %d bytes is %s", x.n*x.bytes, unsupported)
	}
	args := c.args(2, 2+more)
	in.kind, in.x = kindRun, x
	c.registers(&args[0], x, true)
	if o := &args[1]; x.space == spaceParam && o.kind == operandAddress && o.list[0].kind == operandVariable {
		c.slot(in, x, o, (*warp).take)
		return
	} else if x.space == spaceParam && o.kind == operandAddress && o.list[0].kind == operandName {
		c.loadParam(in, x, o)
		return
	}
	in.a, x.off = c.address(&args[1], x.space)
	in.run = loads[x.space]
}

// loads has the code of a load for each space.
var loads = map[space]runFunc{
	spaceGlobal: (*warp).loadGlobal, spaceConst: (*warp).loadGlobal, spaceShared: (*warp).loadShared,
	spaceLocal: (*warp).loadLocal, spaceParam: (*warp).loadParam,
	spaceNone: generic(map[space]runFunc{spaceGlobal: (*warp).loadGlobal, spaceShared: (*warp).loadShared,
		spaceLocal: (*warp).loadLocal, spaceParam: (*warp).loadParam}),
}

func (c *compiler) store(in *inst) {
	if strings.HasPrefix(c.st.name, "st.async") || strings.HasPrefix(c.st.name, "st.bulk") {
		c.fail(unsupported)
	}
	x := &extra{}
	more := 0
	if c.memory(x) {
		more = 1
	}
	args := c.args(2, 2+more)
	in.kind, in.x = kindRun, x
	c.registers(&args[1], x, false)
	if o := &args[0]; x.space == spaceParam && o.kind == operandAddress && o.list[0].kind == operandVariable {
		c.slot(in, x, o, (*warp).put)
		return
	}
	if in.run = stores[x.space]; in.run == nil {
		c.fail(unsupported)
	}
	in.a, x.off = c.address(&args[0], x.space)
}

// stores has the code of a store for each space.
var stores = map[space]runFunc{
	spaceGlobal: (*warp).storeGlobal, spaceShared: (*warp).storeShared, spaceLocal: (*warp).storeLocal,
	spaceNone: generic(map[space]runFunc{spaceGlobal: (*warp).storeGlobal, spaceShared: (*warp).storeShared, spaceLocal: (*warp).storeLocal}),
}

// extend extends a loaded value to the width of the register.
func (x *extra) extend(v uint64) uint64 {
	if x.signed && int(x.wide) > x.bytes {
		s := 64 - 8*x.bytes
		v = uint64(int64(v<<s) >> s)
		if x.wide < 8 {
			v &= 1<<(8*x.wide) - 1
		}
	}
	return v
}

// load returns the number in the first bytes of b.
func load(b []byte, bytes int) uint64 {
	switch bytes {
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 8:
		return binary.LittleEndian.Uint64(b)
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	}
	return uint64(b[0])
}

func store(b []byte, bytes int, v uint64) {
	switch bytes {
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	case 8:
		binary.LittleEndian.PutUint64(b, v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	default:
		b[0] = byte(v)
	}
}

// stampOf returns the stamp of an access of a lane at pc, without its bytes.
func (w *warp) stampOf(lane, pc int, strong bool) stamp {
	s := stamp{who: w.b.number<<10 + uint32(w.index<<5+lane) + 1, epoch: w.clock.now, at: uint32(pc) << stampShift}
	if strong {
		s.at |= stampStrong
	}
	return s
}

// bytesOf returns the mask of the bytes, in the word at off, that an access of n bytes touches, and
// their number.
func bytesOf(off, n int) (mask uint32, k int) {
	s := off & 3
	k = min(4-s, n)
	return (1<<k - 1) << s, k
}

// access describes a memory access of a lane.
type access struct {
	pc     int
	lane   int
	n      int // bytes
	strong bool
	group  uint32 // index of the group in products, plus 1
	name   string
	base   int // offset of the array that contains off, for findings
}

// checkRead records a read of n bytes at off of memory with the given shadow, and reports races.
func (w *warp) checkRead(s *shadow, off int, a *access, shared bool) {
	me := w.stampOf(a.lane, a.pc, a.strong)
	if a.group > 0 {
		me.epoch, me.at = a.group-1, me.at|stampGroup
	}
	for i, n := off, a.n; n > 0; {
		m, k := bytesOf(i, n)
		me.at = me.at&^stampBytes | m
		c := s.cell(i>>2, w.b.run.number)
		if shared {
			c.forget(w.b.number, w.b.run.k.cluster)
		}
		if r := w.read(c, &me, a.lane); r != nil {
			w.reportRace(a.pc, a.lane, r, "a read where another thread writes", a.name, int64(i-a.base))
		}
		i, n = i+k, n-k
	}
}

// checkWrite records a write and reports races. same says that memory already has the written value.
func (w *warp) checkWrite(s *shadow, off int, a *access, shared, same bool) {
	me := w.stampOf(a.lane, a.pc, a.strong)
	for i, n := off, a.n; n > 0; {
		m, k := bytesOf(i, n)
		me.at = me.at&^stampBytes | m
		c := s.cell(i>>2, w.b.run.number)
		if shared {
			c.forget(w.b.number, w.b.run.k.cluster)
		}
		if r := w.wrote(c, &me, a.lane, same); r != nil {
			w.reportRace(a.pc, a.lane, r, "a write where another thread reads or writes", a.name, int64(i-a.base))
		}
		i, n = i+k, n-k
	}
}

// forget discards the access records of other blocks, except blocks of the same cluster, because
// their shared memory was different.
func (c *cell) forget(block uint32, cluster int) {
	if cluster > 1 {
		of := func(s *stamp) uint32 { return (s.who - 1) >> 10 / uint32(cluster) }
		if block /= uint32(cluster); c.write.who != 0 && of(&c.write) != block || c.reads[0].who != 0 && of(&c.reads[0]) != block {
			*c = cell{}
		}
		return
	}
	if c.write.who != 0 && (c.write.who-1)>>10 != block || c.reads[0].who != 0 && (c.reads[0].who-1)>>10 != block {
		*c = cell{}
	}
}

// global returns the allocation and the offset of an access to global memory. It returns nil after
// a finding.
func (w *warp) global(pc, lane int, addr uint64, n, align int) (*allocation, int) {
	r := w.b.run
	a := r.last
	if a == nil || addr < a.base || addr-a.base > uint64(len(a.data)) || uint64(len(a.data))-(addr-a.base) < uint64(n) {
		if a = r.m.find(addr, n); a == nil {
			w.find(OutOfBounds, pc, lane, "global memory", func(f *Finding) {
				f.Name, f.Offset = r.m.near(addr)
				f.Note = fmt.Sprintf("%d bytes at %#x", n, addr)
			})
			return nil, 0
		}
		r.last = a
	}
	if a.constant && !w.mayRead(pc, lane, a) {
		return nil, 0
	}
	if addr&uint64(align-1) != 0 {
		w.find(Misaligned, pc, lane, "", func(f *Finding) {
			f.Name, f.Offset = a.name, int64(addr-a.base)
			f.Note = fmt.Sprintf("the address of an access must be a multiple of %d", align)
		})
		return nil, 0
	}
	return a, int(addr - a.base)
}

// mayRead reports whether the instruction at pc only reads. In constant memory any other access is a finding.
func (w *warp) mayRead(pc, lane int, a *allocation) bool {
	if in := &w.b.run.k.code[pc]; in.x != nil && in.x.reads {
		return true
	}
	w.find(BadOperand, pc, lane, "constant memory cannot be written", func(f *Finding) { f.Name = a.name })
	return false
}

// shared returns the offset of an access to shared memory, and the accessed array. The offset is -1
// after a finding.
func (w *warp) shared(pc, lane int, addr uint64, n, align int) (int, *array) {
	k := w.b.run.k
	addr = uint64(uint32(addr))
	hit := w.b.hit
	if hit != nil && hit.size > 0 && addr >= uint64(hit.at) && addr+uint64(n) <= uint64(hit.at+hit.size) && addr&uint64(align-1) == 0 {
		return int(addr) - sharedBase, hit
	}
	hit = nil
	for i := range k.arrays {
		a := &k.arrays[i]
		size := a.size
		if size < 0 {
			size = w.b.run.dynamic
		}
		if addr >= uint64(a.at) && addr+uint64(n) <= uint64(a.at+size) {
			hit = a
			break
		}
	}
	if hit == nil {
		w.find(OutOfBounds, pc, lane, "shared memory", func(f *Finding) {
			f.Note = fmt.Sprintf("%d bytes at %#x of shared memory", n, addr)
			for i := range k.arrays {
				if a := &k.arrays[i]; addr >= uint64(a.at) {
					f.Name, f.Offset = a.name, int64(addr)-int64(a.at)
				}
			}
		})
		return -1, nil
	}
	if addr&uint64(align-1) != 0 {
		w.find(Misaligned, pc, lane, "", func(f *Finding) {
			f.Name, f.Offset = hit.name, int64(addr)-int64(hit.at)
			f.Note = fmt.Sprintf("the address of an access must be a multiple of %d", align)
		})
		return -1, nil
	}
	w.b.hit = hit
	return int(addr) - sharedBase, hit
}

// undefined reports a read of memory that was never written.
func (w *warp) undefined(pc, lane int, name string, off int) {
	w.find(Uninitialised, pc, lane, "", func(f *Finding) { f.Name, f.Offset = name, int64(off) })
}

// landed reports a use of shared memory that an asynchronous copy has not written yet.
func (w *warp) landed(pc, lane, off, n int, a *array) {
	b := w.b
	if b.flying == 0 {
		return
	}
	for i := off; i < off+n; i++ {
		if b.inflight.has(i, 1) {
			w.find(MissingWait, pc, lane, "an asynchronous copy to this place was not waited for", func(f *Finding) {
				f.Name, f.Offset = a.name, int64(i+sharedBase-a.at)
			})
			return
		}
	}
}
