package emu

import (
	"fmt"
	"sort"
)

// Limits of the local memory of threads, including saved registers.
const (
	maxStack  = 512 << 10 // of a thread
	maxStacks = 256 << 20 // of all threads that run at the same time
)

// stack has the calls of a thread and its local memory.
type stack struct {
	frames  []frame
	data    []byte
	defined bitmap
	saved   []uint64 // saved registers of routines that are called recursively
}

// frame is an active call.
type frame struct {
	rt        *routine
	site      *site // the call instruction
	back      int   // position where the caller continues
	base, top int   // in the data
	saved     int   // index of the first saved register that the return restores, or -1
}

// enterRoot begins the stacks of a block.
func (w *warp) enterRoot() {
	clear(w.active)
	root := w.b.run.k.routines[0]
	for i := range w.stacks {
		s := &w.stacks[i]
		s.frames, s.saved = append(s.frames[:0], frame{rt: root, top: root.frame, saved: -1}), s.saved[:0]
		s.grow(w.b.run, root.frame)
		s.defined.unset(0, root.frame)
		w.addresses(root, i, 0)
	}
}

// grow makes room in local memory up to top.
func (s *stack) grow(r *launch, top int) {
	if top <= len(s.data) {
		return
	}
	n := max(top, min(2*len(s.data), maxStack))
	r.stacks += n - len(s.data)
	s.data = append(s.data, make([]byte, n-len(s.data))...)
	s.defined = append(s.defined, make(bitmap, len(newBitmap(n))-len(s.defined))...)
}

// addresses sets the registers that hold addresses of variables in a frame.
func (w *warp) addresses(rt *routine, lane, base int) {
	for _, a := range rt.addresses {
		w.set(a.plane, lane, localBase+uint64(base+a.place))
	}
}

// send makes a lane continue at pc.
func (w *warp) send(pc, lane, depth int) {
	for i := range w.others {
		if f := &w.others[i]; f.pc == pc && f.depth == depth {
			f.mask |= 1 << lane
			return
		}
	}
	w.others = append(w.others, fragment{pc, 1 << lane, depth})
}

// call executes a call, for lanes that may call different functions.
func (w *warp) call(in *inst, mask uint32) bool {
	s, back := in.x.site, w.pc
	if s.to == nil {
		w.need(in, in.a, mask, "the address of the function was not computed in this thread")
	}
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		rt := s.to
		if rt == nil {
			if rt = w.function(in, lane); rt == nil {
				return false
			}
		}
		if !w.push(in, lane, rt, back) {
			return false
		}
		w.send(rt.entry, lane, w.depth+1)
	}
	return true
}

// function returns the function of an indirect call of a lane, or nil after a finding.
func (w *warp) function(in *inst, lane int) *routine {
	s, addr := in.x.site, w.regs[in.a][lane]
	i := (addr-functionBase)/functionStep - 1
	if addr%functionStep != 0 || i >= uint64(len(s.byIndex)) || s.byIndex[i] == nil {
		w.stop(BadOperand, w.pcOf(in), lane, fmt.Sprintf("there is no function at %#x", addr))
		return nil
	}
	rt, frames := s.byIndex[i], w.stacks[lane].frames
	if rt.err != nil {
		w.stop(BadOperand, w.pcOf(in), lane, fmt.Sprintf("function %s is not available: %v", rt.f.name, rt.err))
		return nil
	}
	if why := s.fits(frames[len(frames)-1].rt, rt); why != "" {
		w.stop(BadOperand, w.pcOf(in), lane, why)
		return nil
	}
	return rt
}

// push begins a call of a lane.
func (w *warp) push(in *inst, lane int, rt *routine, back int) bool {
	st := &w.stacks[lane]
	from := st.frames[len(st.frames)-1]
	f := frame{rt: rt, site: in.x.site, back: back, base: (from.top + rt.align - 1) &^ (rt.align - 1), saved: -1}
	f.top = f.base + rt.frame
	if used := f.top + 8*len(st.saved) + 64*len(st.frames); used > maxStack || w.b.run.stacks > maxStacks {
		w.stop(StackOverflow, w.pcOf(in), lane, fmt.Sprintf("%d nested calls need %d bytes of local memory", len(st.frames), used))
		return false
	}
	st.grow(w.b.run, f.top)
	st.defined.unset(f.base, rt.frame)
	for i, v := range f.site.args {
		p := rt.parameter(i)
		st.copy(f.base+rt.places[p], from.base+from.rt.places[v], rt.f.vars[p].bytes)
	}
	bit := uint32(1) << lane
	if w.active[rt.number]&bit != 0 {
		f.saved = len(st.saved)
		w.save(st, rt, lane)
		w.b.run.stacks += 8 * (len(st.saved) - f.saved)
	}
	w.active[rt.number] |= bit
	for _, p := range rt.planes {
		w.def[p] &^= bit
	}
	for _, p := range rt.preds {
		w.pdef[p] &^= bit
	}
	w.addresses(rt, lane, f.base)
	st.frames = append(st.frames, f)
	return true
}

// leave executes the return from functions, to the positions of the callers.
func (w *warp) leave(in *inst, mask uint32) bool {
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		st := &w.stacks[lane]
		last := len(st.frames) - 1
		f, to := st.frames[last], st.frames[last-1]
		st.frames = st.frames[:last]
		for i, v := range f.site.results {
			st.copy(to.base+to.rt.places[v], f.base+f.rt.places[i], f.rt.f.vars[i].bytes)
		}
		if f.saved >= 0 {
			w.b.run.stacks -= 8 * (len(st.saved) - f.saved)
			w.restore(st.saved[f.saved:], f.rt, lane)
			st.saved = st.saved[:f.saved]
		} else {
			w.active[f.rt.number] &^= 1 << lane
		}
		w.send(f.back, lane, w.depth-1)
	}
	return true
}

// copy copies bytes of the stack.
func (s *stack) copy(to, from, n int) {
	copy(s.data[to:to+n], s.data[from:from+n])
	for i := range n {
		if s.defined.has(from+i, 1) {
			s.defined.set(to+i, 1)
		} else {
			s.defined.unset(to+i, 1)
		}
	}
}

// save saves the registers of a routine that is called recursively, and whether each is defined.
func (w *warp) save(st *stack, rt *routine, lane int) {
	for _, p := range rt.planes {
		st.saved = append(st.saved, w.regs[p][lane], uint64(w.def[p]>>lane&1))
	}
	for _, p := range rt.preds {
		st.saved = append(st.saved, uint64(w.preds[p]>>lane&1), uint64(w.pdef[p]>>lane&1))
	}
}

// restore restores the registers that save has saved.
func (w *warp) restore(saved []uint64, rt *routine, lane int) {
	bit := uint32(1) << lane
	for i, p := range rt.planes {
		w.regs[p][lane] = saved[2*i]
		w.def[p] = w.def[p]&^bit | uint32(saved[2*i+1])<<lane
	}
	saved = saved[2*len(rt.planes):]
	for i, p := range rt.preds {
		w.setPred(p, bit, uint32(saved[2*i])<<lane, uint32(saved[2*i+1])<<lane)
	}
}

// at returns the offset of n bytes at an address of local memory, and reports whether a variable
// contains them.
func (s *stack) at(addr uint64, n int) (int, bool) {
	off := addr - localBase
	i := sort.Search(len(s.frames), func(i int) bool { return uint64(s.frames[i].base) > off }) - 1
	if i < 0 || off > maxStack {
		return 0, false
	}
	f, at := &s.frames[i], int(off)-s.frames[i].base
	v := sort.SearchInts(f.rt.places, at+1) - 1
	return int(off), v >= 0 && at+n <= f.rt.places[v]+f.rt.f.vars[v].bytes
}

// local returns the offset of an access to local memory, or -1 after a finding.
func (w *warp) local(pc, lane int, addr uint64, n int) int {
	if w.stacks != nil {
		if off, ok := w.stacks[lane].at(addr, n); ok {
			if addr&uint64(n-1) == 0 {
				return off
			}
			w.find(Misaligned, pc, lane, "local memory", func(f *Finding) {
				f.Note = fmt.Sprintf("an access of %d bytes at %#x of local memory", n, addr-localBase)
			})
			return -1
		}
	}
	w.find(OutOfBounds, pc, lane, "local memory", func(f *Finding) { f.Note = fmt.Sprintf("%d bytes at %#x of local memory", n, addr-localBase) })
	return -1
}

// take loads registers of a lane from its stack. Stack memory that was never written makes a
// register undefined, as if the value had stayed in a register.
func (w *warp) take(x *extra, lane, off int) {
	st := &w.stacks[lane]
	for i, d := range x.regs {
		if d < 0 {
			continue
		}
		at := off + i*x.bytes
		w.regs[d][lane] = x.extend(load(st.data[at:], x.bytes))
		w.def[d] &^= 1 << lane
		if st.defined.has(at, x.bytes) {
			w.def[d] |= 1 << lane
		}
	}
}

// put stores registers of a lane to its stack.
func (w *warp) put(x *extra, lane, off int) {
	st := &w.stacks[lane]
	for i, s := range x.regs {
		at := off + i*x.bytes
		store(st.data[at:], x.bytes, w.regs[s][lane])
		if w.def[s]>>lane&1 != 0 {
			st.defined.set(at, x.bytes)
		} else {
			st.defined.unset(at, x.bytes)
		}
	}
}

func (w *warp) loadLocal(in *inst, mask uint32) bool {
	x, pc := in.x, w.pcOf(in)
	w.need(in, in.a, mask, "the address was not computed in this thread")
	base := w.regs[in.a] // a result may overwrite this register
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		if off := w.local(pc, lane, base[lane]+uint64(x.off), x.n*x.bytes); off >= 0 {
			w.take(x, lane, off)
		} else {
			w.zero(x, lane)
		}
	}
	return true
}

func (w *warp) storeLocal(in *inst, mask uint32) bool {
	x, pc := in.x, w.pcOf(in)
	w.need(in, in.a, mask, "the address was not computed in this thread")
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		if off := w.local(pc, lane, w.regs[in.a][lane]+uint64(x.off), x.n*x.bytes); off >= 0 {
			w.put(x, lane, off)
		}
	}
	return true
}

// zero makes the registers of a load that failed 0.
func (w *warp) zero(x *extra, lane int) {
	for _, d := range x.regs {
		if d >= 0 {
			w.set(d, lane, 0)
		}
	}
}

// slot is an access of a parameter of a function or of a call at a known position in the frame.
func (c *compiler) slot(in *inst, x *extra, o *operand, move func(w *warp, x *extra, lane, off int)) {
	v := o.list[0].reg
	if most := int64(c.f.vars[v].bytes) - int64(x.n*x.bytes); c.f.vars[v].space != spaceParam || o.off < 0 || o.off > most {
		c.fail("an access of %d bytes at offset %d does not fit in %s, which has %d bytes", x.n*x.bytes, o.off, o.list[0].name, c.f.vars[v].bytes)
	}
	place := c.rt.places[v] + int(o.off)
	in.run = func(w *warp, in *inst, mask uint32) bool {
		for m := mask; m != 0; m &= m - 1 {
			lane := lowest(m)
			frames := w.stacks[lane].frames
			move(w, in.x, lane, frames[len(frames)-1].base+place)
		}
		return true
	}
}
