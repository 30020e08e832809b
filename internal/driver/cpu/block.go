package cpu

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
)

// kernel computes n elements: see simd.MapFunc.
type kernel = func(dst, x, y, z *float32, n int, p *float32)

// A program is an elementwise program as calls of kernels over blocks of a
// thousand elements or so. Intermediate values are registers: blocks of a
// lane's memory that stay in the first cache. Operands are read where they
// lie, and results written there.
//
// Every value of the program has a place in a table of addresses, which the
// calls name by number:
//
//	0                  nothing (nil)
//	1 ...              streams: operands, then results
//	firstConst ...     constants and parameters
//	firstCell ...      values that are one number: scalars, and factors of a run
//	firstRegister ...  registers
//
// A program is immutable except for the measurements of its speed.
type program struct {
	streams []stream
	inputs  int // streams that are operands

	// The calls, by how often they run: once in each lane, at the start of a
	// segment (a block within which every Repeated operand is one number),
	// and on each block.
	once, segment, block []call

	consts                               []*float32
	firstConst, firstCell, firstRegister int
	table                                int // entries

	tiles []repeated // registers that repeat a short operand

	// Operands in a layout, and the registers that they are brought into.
	strided []broughtIn
	runs    int  // strided operands that are read where they lie, in segments
	moves   bool // it copies one such operand: its elements go straight to the result
	piece   int  // elements of a piece of such a copy if it transposes; else 0

	size     int  // elements of a block
	stride   int  // elements from register to register
	spelt    bool // a stream is spelt
	even     bool // every stream is Full: blocks need no other ends than size
	straight bool // one call over whole operands: it needs no lane
	n        int  // elements of the result

	chain *chain // computes a block in place of the calls for segments and blocks; nil if there is none

	passes    bool // some calls can store past the caches
	streaming streaming

	cost cost
}

// A call is one kernel over table entries.
type call struct {
	fn           kernel
	past         kernel // the same past the caches, or nil
	dst, x, y, z int32
	p            int32
	n            int32 // elements: 0 means as many as the block has
}

// A stream is an operand or a result in memory.
type stream struct {
	spread op.BroadcastKind
	size   int  // bytes of an element
	period int  // Tiled: elements in memory; Repeated: elements of the result for each
	slot   int  // -1: not in temporary memory, but computed by the runner
	fixed  bool // its entry does not move with the blocks
	spelt  bool // Repeated, but written out into a register
	layout *op.Layout
	run    bool // Strided, and read where it lies: in runs with this distance of elements
	inner  int
}

// broughtIn is a strided stream and the entry of the register for its blocks.
type broughtIn struct{ stream, entry int }

// repeated is a register that holds a Tiled operand several times over, one
// period more than a block: segments read it from their phase on.
type repeated struct{ entry, period int }

// place is where a stream is now: the element org of the result is at base.
type place struct {
	base unsafe.Pointer
	org  int
}

// A lane is the memory in which one goroutine runs programs.
type lane struct {
	table  []unsafe.Pointer
	memory []float32
	begun  *program  // with addresses in table
	past   bool      // results are stored past the caches
	extra  []float32 // what programs make for operations: see feed
	at     []place
	runs   []run
	steps  []int // bytes from one segment to the next, by stream; see alike
}

const line = memory.Line / 4 // floats of a cache line

// begin prepares the lane for blocks of p whose streams begin at the given positions; at most most
// elements are computed between two calls. Without elements nothing is computed: operands may then
// be empty and have no address. It panics if there is no memory.
func (l *lane) begin(p *program, at []place, most int) {
	if l.begun != p {
		l.adopt(p)
	}
	for i := range p.streams {
		if p.streams[i].fixed {
			l.table[1+i] = at[i].base
		}
	}
	if p.runs > 0 {
		l.runs = append(l.runs[:0], make([]run, len(p.streams))...)
	}
	if len(p.once) == 0 || most == 0 {
		return
	}
	for _, r := range p.tiles {
		l.table[r.entry] = l.register(p, r.entry, 0)
	}
	t := l.pointers()
	most = min(most, p.size)
	for i := range p.once {
		c := &p.once[i]
		n := int(c.n)
		if n == 0 {
			n = most
		}
		c.do(t, n, false)
	}
}

// adopt lays the table of p out.
func (l *lane) adopt(p *program) {
	need := (p.firstRegister-p.firstCell)*line + (p.table-p.firstRegister)*p.stride
	if len(l.memory) < need {
		// Lanes serve every program, so leave room for the next.
		m, err := memory.Floats(1 << bits.Len(uint(need)))
		if err != nil {
			panic(err)
		}
		l.memory = m
	}
	if len(l.table) < p.table {
		l.table = make([]unsafe.Pointer, 1<<bits.Len(uint(p.table)))
	}
	clear(l.table[:p.firstConst])
	for i, c := range p.consts {
		l.table[p.firstConst+i] = unsafe.Pointer(c)
	}
	for i := p.firstCell; i < p.firstRegister; i++ {
		l.table[i] = unsafe.Pointer(&l.memory[(i-p.firstCell)*line])
	}
	for i := p.firstRegister; i < p.table; i++ {
		l.table[i] = l.register(p, i, 0)
	}
	l.begun = p
}

// register returns the address of element i of a register.
func (l *lane) register(p *program, entry, i int) unsafe.Pointer {
	return unsafe.Pointer(&l.memory[(p.firstRegister-p.firstCell)*line+(entry-p.firstRegister)*p.stride+i])
}

// pointers returns the table as kernels take it. Elements may be narrower than
// a float32; no kernel reads beyond what its type says.
func (l *lane) pointers() []*float32 {
	return unsafe.Slice((**float32)(unsafe.Pointer(unsafe.SliceData(l.table))), len(l.table))
}

// run computes elements lo to hi of the program that the lane has begun.
func (l *lane) run(at []place, lo, hi int) {
	p := l.begun
	t := l.pointers()
	chain, size := p.chain.next(hi-lo), p.size
	if chain != nil && p.even {
		size = hi - lo // no registers
	}
	for pos := lo; pos < hi; {
		n := min(size, hi-pos)
		if p.even {
			for i := range p.streams {
				l.table[1+i] = unsafe.Add(at[i].base, (pos-at[i].org)*p.streams[i].size)
			}
		} else {
			n = l.seek(p, at, pos, n)
			if k := l.alike(p, pos, n, (hi-pos)/n); k > 1 && chain == nil {
				l.callRuns(p, n, k)
				pos += k * n
				continue
			}
		}
		if chain != nil {
			chain(t, n)
			pos += n
			continue
		}
		l.calls(t, n)
		pos += n
	}
}

// alike returns how many segments of n elements follow each other from pos on, at most most, in which
// the calls have their operands at the same distances from one segment to the next, and notes these
// distances; 0 if there are others.
func (l *lane) alike(p *program, pos, n, most int) int {
	if p.spelt || len(p.strided) > 0 || most < 2 {
		return 0
	}
	most = min(most, max(1, callElements/n))
	l.steps = l.steps[:0]
	for i := range p.streams {
		step := n
		switch s := &p.streams[i]; {
		case s.fixed:
			step = 0
		case s.run:
			r := &l.runs[i]
			if r.end-r.first != n {
				return 0
			}
			most, step = min(most, r.more+1), r.step
		case s.spread == op.Tiled:
			most = min(most, (s.period-pos%s.period)/n)
		case s.spread == op.Repeated:
			if step = 1; s.period != n || pos%n != 0 {
				return 0
			}
		}
		l.steps = append(l.steps, step*p.streams[i].size)
	}
	for _, r := range p.tiles {
		if n%r.period != 0 {
			return 0
		}
	}
	return most
}

// callRuns does the calls of k segments of n elements that are alike.
func (l *lane) callRuns(p *program, n, k int) {
	t := l.pointers()
	for ; ; k-- {
		l.calls(t, n)
		if k == 1 {
			return
		}
		for i, step := range l.steps {
			l.table[1+i] = unsafe.Add(l.table[1+i], step)
		}
	}
}

// calls does the calls of one segment.
func (l *lane) calls(t []*float32, n int) {
	p := l.begun
	for i := range p.segment {
		p.segment[i].do(t, 1, false)
	}
	for i := range p.block {
		p.block[i].do(t, n, l.past)
	}
}

// do computes n elements, whose addresses are in t, and stores them past the caches on request if it can.
func (c *call) do(t []*float32, n int, past bool) {
	fn := c.fn
	if past && c.past != nil {
		fn = c.past
	}
	fn(t[c.dst], t[c.x], t[c.y], t[c.z], n, t[c.p])
}

// seek sets the entries of the streams for a segment that starts at pos and
// returns its length, at most n.
func (l *lane) seek(p *program, at []place, pos, n int) int {
	for i := range p.streams {
		s := &p.streams[i]
		switch {
		case s.fixed:
		case s.spread == op.Full:
			l.table[1+i] = unsafe.Add(at[i].base, (pos-at[i].org)*s.size)
		case s.spread == op.Tiled:
			phase := pos % s.period
			n = min(n, s.period-phase)
			l.table[1+i] = unsafe.Add(at[i].base, phase*s.size)
		case s.spread == op.Repeated:
			k := pos / s.period
			// A run that is written out may begin only at the start of a
			// segment or be all of it.
			if phase := pos - k*s.period; !s.spelt || phase > 0 {
				n = min(n, s.period-phase)
			}
			l.table[1+i] = unsafe.Add(at[i].base, k*s.size)
		case s.run:
			r := &l.runs[i]
			if pos >= r.end || pos < r.first {
				r.seek(s.layout, pos)
			}
			n = min(n, r.end-pos)
			l.table[1+i] = unsafe.Add(at[i].base, (r.off+(pos-r.first)*s.inner)*s.size)
		}
	}
	for _, r := range p.tiles {
		l.table[r.entry] = l.register(p, r.entry, pos%r.period)
	}
	for _, b := range p.strided {
		if m, _ := neighbours(p.streams[b.stream].layout, pos); m >= minRun {
			n = min(n, m)
		}
	}
	for _, b := range p.strided {
		s, base := &p.streams[b.stream], at[b.stream].base
		if m, first := neighbours(s.layout, pos); m >= n {
			l.table[1+b.stream] = unsafe.Add(base, first*s.size)
			continue
		}
		l.table[1+b.stream] = l.register(p, b.entry, 0)
		bring(l.table[1+b.stream], base, s.layout, pos, n, s.size)
	}
	return n
}

// end forgets the addresses of the caller's memory.
func (l *lane) end() {
	clear(l.table[1 : 1+len(l.begun.streams)])
}

// lanes lends lanes to the parts of tasks. They are kept by processor, so that threads do not wait
// for each other and caches stay warm.
var lanes = sync.Pool{New: func() any { return new(lane) }}

// A source is an array of 32-bit elements that an operation reads: in memory,
// or made by a program block by block.
type source struct {
	p    *program // nil: in memory
	at   []place  // of p's streams; the last is the result
	base unsafe.Pointer
}

const (
	turnedRows = 64      // columns of a matrix that are turned into rows at once, for whole cache lines
	turnedMost = 1 << 16 // their elements, which should stay in the second cache
)

// rows returns how many rows of cols elements, at most madeBlock, are to be made at once.
func (s *source) rows(cols int) int {
	n := madeBlock / max(1, cols)
	if s.p != nil && s.p.moves {
		n = max(n, min(turnedRows, turnedMost/max(1, cols)))
	}
	return max(1, n)
}

// open prepares the lane for at most so many elements at a time of s.
func (l *lane) open(s *source, most int) {
	if s.p == nil {
		return
	}
	l.reserve(most)
	l.at = append(l.at[:0], s.at...)
	l.begin(s.p, l.at, most)
}

// reserve makes room for n elements in l.extra.
func (l *lane) reserve(n int) {
	if len(l.extra) < n {
		m, err := memory.Floats(1 << bits.Len(uint(n)))
		if err != nil {
			panic(err)
		}
		l.extra = m
	}
}

// feed returns elements lo to hi of s, for which the lane is open.
func (l *lane) feed(s *source, lo, hi int) []float32 {
	if s.p == nil {
		if s.base == nil || lo == hi {
			return nil
		}
		return unsafe.Slice((*float32)(unsafe.Add(s.base, lo*4)), hi-lo)
	}
	if to := unsafe.Pointer(unsafe.SliceData(l.extra)); s.p.moves {
		bring(to, l.at[0].base, s.p.streams[0].layout, lo, hi-lo, s.p.streams[0].size)
	} else {
		l.at[s.p.inputs] = place{to, lo}
		l.run(l.at, lo, hi)
	}
	return l.extra[:hi-lo]
}

// shut ends the use of s.
func (l *lane) shut(s *source) {
	if s.p != nil {
		l.end()
		clear(l.at)
	}
}
