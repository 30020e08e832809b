package cpu

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/incomparable"
	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// kernel computes n elements: see simd.MapFunc.
type kernel = func(dst, x, y, z *float32, n int, p *float32)

// A program is an elementwise program, compiled to calls of kernels over blocks of about a thousand
// elements. Intermediate values are in registers: blocks of a lane's memory that stay in the
// first-level cache. Kernels read operands and write results directly in memory.
//
// Every value of the program has an entry in a table of addresses. Calls refer to entries by index:
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
	inputs  int // number of streams that are operands

	// The calls, by how often they run: once for each lane; at the start of each segment (a part of
	// a block in which every Repeated operand is a single number); and for each block.
	once, segment, block []call

	consts                               []*float32
	firstConst, firstCell, firstRegister int
	table                                int // number of entries

	tiles    []repeated  // registers that repeat a short operand
	expanded []broughtIn // those that are copied from a layout when a lane begins the program

	// Operands with a layout, and the registers to which they are copied.
	strided []broughtIn
	runs    int  // number of strided operands that are read directly, in segments
	moves   bool // the program copies one strided operand, directly to the result
	piece   int  // elements in a piece of such a copy if it transposes, otherwise 0
	boxes   *boxes

	boxesPast *boxes // the boxes for non-temporal stores

	size     int   // number of elements in a block
	stride   int   // distance of registers in elements
	spelt    bool  // some stream is spelt
	even     bool  // every stream is Full, so segments are whole blocks
	straight bool  // a single call over whole operands, which needs no lane
	nest     *nest // computes the program, if it is not nil
	n        int   // number of elements in the result

	chain *chain // replaces the calls for segments and blocks; nil if there is none

	passes    bool // some calls support non-temporal stores
	streaming streaming

	cost cost
}

// A call is one kernel over table entries.
type call struct {
	name         string
	fn           kernel
	past         kernel           // the same with non-temporal stores, or nil
	rows         simd.MapRowsFunc // the same for many segments, or nil
	dst, x, y, z int32
	p            int32
	n            int32 // number of elements; 0 means the size of the block
}

// A stream is an operand or a result in memory.
type stream struct {
	_ incomparable.Type

	spread op.BroadcastKind
	size   int  // size of an element in bytes
	period int  // Tiled: number of elements in memory; Repeated: number of repetitions of each
	slot   int  // -1 if the runner provides the memory
	fixed  bool // its entry does not advance with the blocks
	spelt  bool // Repeated, but expanded to a register
	layout *op.Layout
	wide   *op.Layout // of a copied operand: the layout of larger elements, which join times elements each; see widen
	times  int
	run    bool // Strided, but read directly, in runs
	inner  int
}

// broughtIn is a strided stream and the entry of the register for its blocks.
type broughtIn struct{ stream, entry int }

// repeated is a register with copies of a Tiled operand. It is one period longer than a block, so
// that a segment can read it from its phase on.
type repeated struct{ entry, period int }

// place is the position of a stream: base is the address for element org of the result.
type place struct {
	base unsafe.Pointer
	org  int
}

// A lane is the memory in which one goroutine runs programs.
type lane struct {
	table  []unsafe.Pointer
	memory []float32
	begun  *program  // the program whose addresses are in table
	past   bool      // use non-temporal stores
	extra  []float32 // elements that programs compute for operations: see feed
	at     []place
	runs   []run
	steps  []int // distance in bytes between segments, for each stream: see alike
}

const line = memory.Line / 4 // floats of a cache line

// begin prepares the lane for blocks of p whose streams begin at the given positions; most is the
// maximum number of elements in a block. If it is 0, begin computes nothing, because operands may
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
	if len(p.once)+len(p.expanded) == 0 || most == 0 {
		return
	}
	for _, r := range p.tiles {
		l.table[r.entry] = l.register(p, r.entry, 0)
	}
	t := l.pointers()
	most = min(most, p.size)
	for _, e := range p.expanded {
		s := &p.streams[e.stream]
		bring(l.table[e.entry], at[e.stream].base, s.layout, 0, min(most+s.period, p.n), s.size, false)
	}
	for i := range p.once {
		c := &p.once[i]
		n := int(c.n)
		if n == 0 {
			n = most
		}
		c.do(t, n, false)
	}
}

// adopt initialises the table for p.
func (l *lane) adopt(p *program) {
	need := (p.firstRegister-p.firstCell)*line + (p.table-p.firstRegister)*p.stride
	if len(l.memory) < need {
		// Round up, because the lane will be used for other programs too.
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

// pointers returns the table in the type of kernel arguments. Elements may be narrower than
// float32; kernels access only elements of their type.
func (l *lane) pointers() []*float32 {
	return unsafe.Slice((**float32)(unsafe.Pointer(unsafe.SliceData(l.table))), len(l.table))
}

// run computes elements lo to hi of the program that the lane has begun.
func (l *lane) run(at []place, lo, hi int) {
	p := l.begun
	if p.nest != nil {
		p.nest.run(at, lo, hi)
		return
	}
	t := l.pointers()
	chain, size := p.chain.next(hi-lo), p.size
	if chain != nil && p.even || chain == nil && p.table == p.firstRegister && len(p.block) == 1 {
		size = hi - lo // no registers limit the block
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

// alike returns the number of successive segments of n elements, from pos on and at most most,
// between which the operands of all calls advance by constant distances. It stores these distances
// in l.steps. It returns 0 if there are no such segments.
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
		case s.spread == op.Tiled && s.period == n && pos%n == 0:
			step = 0
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

// callRuns executes the calls for k alike segments of n elements.
func (l *lane) callRuns(p *program, n, k int) {
	t := l.pointers()
	if len(p.block) == 1 && len(p.segment) == 0 {
		l.callRun(&p.block[0], t, n, k)
		return
	}
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

// callRun is callRuns for a program of one call. It keeps the addresses in variables, because the
// segments may be as short as the time of a call.
func (l *lane) callRun(c *call, t []*float32, n, k int) {
	step := func(entry int) int {
		if entry < 1 || entry > len(l.steps) {
			return 0
		}
		return l.steps[entry-1]
	}
	fn := c.fn
	if l.past && c.past != nil {
		fn = c.past
	}
	dst, x, y, z, par := unsafe.Pointer(t[c.dst]), unsafe.Pointer(t[c.x]), unsafe.Pointer(t[c.y]), unsafe.Pointer(t[c.z]), unsafe.Pointer(t[c.p])
	ds, xs, ys, zs, ps := step(int(c.dst)), step(int(c.x)), step(int(c.y)), step(int(c.z)), step(int(c.p))
	if c.rows != nil && !(l.past && c.past != nil) {
		if c.p != 0 {
			y, ys = par, ps
		}
		c.rows((*float32)(dst), (*float32)(x), (*float32)(y), n, k, ds, xs, ys)
		return
	}
	for ; ; k-- {
		fn((*float32)(dst), (*float32)(x), (*float32)(y), (*float32)(z), n, (*float32)(par))
		if k == 1 {
			return
		}
		dst, x, y, z, par = unsafe.Add(dst, ds), unsafe.Add(x, xs), unsafe.Add(y, ys), unsafe.Add(z, zs), unsafe.Add(par, ps)
	}
}

// calls executes the calls for one segment.
func (l *lane) calls(t []*float32, n int) {
	p := l.begun
	for i := range p.segment {
		p.segment[i].do(t, 1, false)
	}
	for i := range p.block {
		p.block[i].do(t, n, l.past)
	}
}

// do computes n elements with the addresses in t. If past is set and the kernel supports it, it
// uses non-temporal stores.
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
			// A spelt run must begin at the start of a segment or be the whole segment.
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
		bring(l.table[1+b.stream], base, s.layout, pos, n, s.size, false)
	}
	return n
}

// end drops the addresses of the caller's memory.
func (l *lane) end() {
	clear(l.table[1 : 1+len(l.begun.streams)])
}

// lanes has the unused lanes. A sync.Pool keeps them for each processor, so that threads do not
// wait for each other and caches stay warm.
var lanes = sync.Pool{New: func() any { return new(lane) }}

// A source is an array of 32-bit elements that an operation reads, from memory or from a program
// that computes it block by block.
type source struct {
	p    *program // nil if the array is in memory
	at   []place  // of p's streams; the last is the result
	base unsafe.Pointer
}

const (
	turnedRows = 64      // number of columns of a matrix that are transposed at once, to use whole cache lines
	turnedMost = 1 << 16 // number of their elements, which should fit into the second-level cache
)

// rows returns the number of rows of cols elements to compute at once: usually at most madeBlock
// elements, and at least one row.
func (s *source) rows(cols int) int {
	n := madeBlock / max(1, cols)
	if s.p != nil && s.p.moves {
		n = max(n, min(turnedRows, turnedMost/max(1, cols)))
	}
	return max(1, n)
}

// open prepares the lane for computing at most most elements of s at a time.
func (l *lane) open(s *source, most int) {
	if s.p == nil {
		return
	}
	l.reserve(most)
	l.at = append(l.at[:0], s.at...)
	l.begin(s.p, l.at, most)
}

// reserve allocates n elements in l.extra.
func (l *lane) reserve(n int) {
	if len(l.extra) < n {
		m, err := memory.Floats(1 << bits.Len(uint(n)))
		if err != nil {
			panic(err)
		}
		l.extra = m
	}
}

// feed returns elements lo to hi of s. The lane must be open for s.
func (l *lane) feed(s *source, lo, hi int) []float32 {
	if s.p == nil {
		if s.base == nil || lo == hi {
			return nil
		}
		return unsafe.Slice((*float32)(unsafe.Add(s.base, lo*4)), hi-lo)
	}
	if to := unsafe.Pointer(unsafe.SliceData(l.extra)); s.p.moves {
		s.p.streams[0].bring(to, l.at[0].base, lo, hi-lo, false)
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
