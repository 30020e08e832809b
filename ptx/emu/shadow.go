package emu

// stamp identifies the thread, time and position of an access. The zero stamp means no access.
type stamp struct {
	who   uint32 // number of the block * 1024 + number of the thread + 1
	epoch uint32 // the clock of the thread's warp
	at    uint32 // the instruction, whether it is strong, and which bytes of the word
}

const (
	stampBytes  = 15
	stampStrong = 16 // atomic or volatile accesses, which do not race with each other
	stampGroup  = 32 // a read by four warps together; epoch is then an index in products
	stampShift  = 6
)

func (s *stamp) pc() int { return int(s.at >> stampShift) }

// cell has the recorded accesses of a word of memory: the last write, and two reads by threads that
// are not ordered with each other. If block barriers are the only synchronisation, two reads
// suffice: the next write is unordered with one of the two if it is unordered with any read. Strong
// writes need not be ordered with each other and would hide the previous write, so the cell keeps
// it for a while.
type cell struct {
	write stamp
	older stamp
	reads [2]stamp
}

// shadow has the cells of a memory, in pages that are allocated at their first use.
type shadow struct {
	pages []*page
}

const pageCells = 1 << 10

type page struct {
	launch uint32 // the launch to which the cells belong
	cells  [pageCells]cell
}

func newShadow(bytes int) shadow {
	return shadow{make([]*page, (bytes/4+pageCells)/pageCells)}
}

// cell returns the cell of word i.
func (s *shadow) cell(i int, launch uint32) *cell {
	p := s.pages[i/pageCells]
	if p == nil {
		p = &page{launch: launch}
		s.pages[i/pageCells] = p
	} else if p.launch != launch {
		p.cells, p.launch = [pageCells]cell{}, launch
	}
	return &p.cells[i%pageCells]
}

// epochs has, for each warp of each block, the epoch up to which its accesses are ordered before.
// The key is the number of the block * 32 + the number of the warp.
type epochs map[uint32]uint32

func (e epochs) join(f epochs) {
	for k, v := range f {
		if v > e[k] {
			e[k] = v
		}
	}
}

// clock is a vector clock: the time of a warp and the times of others that it has synchronised with.
type clock struct {
	now    uint32 // current epoch of the warp
	warps  [32]uint32
	synced uint32          // the epoch in which all lanes last waited for each other
	seen   *[32][32]uint32 // by lane: the times of the other lanes, if only some lanes have waited
	remote epochs          // the times of other blocks
}

func (c *clock) reset(index int) {
	*c = clock{now: 1}
	c.warps[index] = 1
}

// tick begins a new epoch.
func (w *warp) tick() {
	w.clock.now++
	w.clock.warps[w.index] = w.clock.now
}

// known is the information that a releasing warp passes to an acquiring warp.
type known struct {
	warps  [32]uint32
	remote epochs
}

// publish adds the warp's own accesses, and the accesses that are ordered before them.
func (w *warp) publish(k *known) {
	for i, v := range w.clock.warps {
		k.warps[i] = max(k.warps[i], v)
	}
	if len(w.clock.remote) > 0 {
		if k.remote == nil {
			k.remote = epochs{}
		}
		k.remote.join(w.clock.remote)
	}
}

// learn adds the accesses that others have published.
func (w *warp) learn(k *known) {
	for i, v := range k.warps {
		if i != w.index {
			w.clock.warps[i] = max(w.clock.warps[i], v)
		}
	}
	if len(k.remote) > 0 {
		w.learnRemote(k.remote)
	}
}

func (w *warp) learnRemote(e epochs) {
	if w.clock.remote == nil {
		w.clock.remote = epochs{}
	}
	for k, v := range e {
		if k>>5 == w.b.number {
			if i := k & 31; int(i) != w.index {
				w.clock.warps[i] = max(w.clock.warps[i], v)
			}
		} else if v > w.clock.remote[k] {
			w.clock.remote[k] = v
		}
	}
}

// after reports whether the current access of lane is ordered after access a of another thread.
func (w *warp) after(a *stamp, lane int) bool {
	t := a.who - 1
	if a.at&stampGroup != 0 {
		return w.afterProduct(t, a.epoch)
	}
	switch {
	case t>>10 != w.b.number:
		return w.clock.remote != nil && a.epoch <= w.clock.remote[t>>5]
	case int(t>>5&31) != w.index:
		return a.epoch <= w.clock.warps[t>>5&31]
	}
	return a.epoch <= w.clock.synced || w.clock.seen != nil && a.epoch <= w.clock.seen[lane][t&31]
}

// races reports whether the current access me races with the earlier access before.
func (w *warp) races(a, me *stamp, lane int) bool {
	return a.who != 0 && a.who != me.who && a.at&me.at&stampBytes != 0 && a.at&me.at&stampStrong == 0 && !w.after(a, lane)
}

// read records a read of a cell, and returns the write with which it races, or nil.
func (w *warp) read(c *cell, me *stamp, lane int) (race *stamp) {
	if w.races(&c.write, me, lane) {
		s := c.write
		race = &s
	} else if w.races(&c.older, me, lane) {
		s := c.older
		race = &s
	}
	switch r := &c.reads[0]; {
	case r.who == me.who || r.who == 0 || w.after(r, lane):
		*r = *me
	default:
		c.reads[1] = *me
	}
	return race
}

// wrote records a write to a cell and returns the access with which it races, or nil. same means
// that the value did not change.
func (w *warp) wrote(c *cell, me *stamp, lane int, same bool) (race *stamp) {
	if w.races(&c.write, me, lane) {
		// Lanes that store the same value with one instruction do not race.
		a := &c.write
		if !(same && (a.who-1)>>5 == (me.who-1)>>5 && a.epoch == me.epoch && a.at>>stampShift == me.at>>stampShift) {
			s := c.write
			race = &s
		}
	}
	if race == nil && w.races(&c.older, me, lane) {
		s := c.older
		race = &s
	}
	for i := range c.reads {
		if r := &c.reads[i]; race == nil && w.races(r, me, lane) {
			s := *r
			race = &s
		}
	}
	if me.at&stampStrong == 0 {
		c.older = stamp{}
	} else if a := &c.write; a.at&stampStrong == 0 {
		c.older = *a // other strong accesses may race with it
	} else if o := &c.older; o.who == 0 && a.who != me.who ||
		(a.who-1)>>5 != (me.who-1)>>5 && (o.at&stampStrong != 0 || o.who == me.who || w.after(o, lane)) {
		c.older = *a
	}
	c.write = *me
	return race
}

// reportRace adds a finding about two accesses.
func (w *warp) reportRace(pc, lane int, other *stamp, what, name string, off int64) {
	o := *other
	w.find(Race, pc, lane, what, func(f *Finding) {
		k := w.b.run.k
		f.Name, f.Offset = name, off
		t := int(o.who - 1)
		f.OtherBlock, f.OtherThread = w.b.run.blockAt(t>>10), w.b.run.thread(t&1023)
		if at := o.pc(); at < len(k.code) {
			f.OtherLine = k.code[at].line
			f.OtherPos = k.module.at(f.OtherLine)
		}
	})
}
