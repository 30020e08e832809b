package interp

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// Checks has the options of [Kernel.Check]. The zero value is a reasonable default.
type Checks struct {
	Subgroups []int      // sizes of subgroups to try; nil is 1, 4, 32 and 64, or one if the kernel does not ask
	Schedules []Schedule // orders to try; nil is all
	Seed      uint64     // of Shuffled

	// Lockstep is the number of lanes that execute an instruction together, in whole subgroups.
	// Races are found whether or not lanes run in step, so it changes only the consequences of a
	// wrong order, and the time. 0 means a fourth of the workgroup, between 4 and 32.
	Lockstep int

	// Undefined marks bindings whose initial contents are undefined: reading an element that the
	// kernel has not written is a finding. nil marks no bindings.
	Undefined []bool

	// Deterministic requires that every schedule gives the same contents of the buffers, bit for bit, for one
	// size of subgroups. It finds results that depend on the order of atomic operations.
	Deterministic bool

	Max int // findings after which checking ends; 0 is 64
}

// Check runs the kernel under every schedule and every size of subgroups, each time from the
// current contents of the buffers. It returns the first finding of each kind and instruction, in
// the order of the program. The buffers get the results of the first run. An error means that not all
// runs were completed: it is an error of [Kernel.Run], or of ctx.
//
// If Launch.Subgroup is not 0, Check uses only this size. It does not use Launch.Runner: workgroups run
// one after the other.
func (k *Kernel) Check(ctx context.Context, r Launch, c Checks) ([]*Finding, error) {
	if c.Undefined != nil && len(c.Undefined) != len(k.program.Bindings) {
		return nil, fmt.Errorf("kernel %s: %w: %d marks for %d bindings", k.program.Name, ErrLaunch, len(c.Undefined), len(k.program.Bindings))
	}
	if c.Max <= 0 {
		c.Max = 64
	}
	sizes := c.Subgroups
	switch {
	case r.Subgroup != 0:
		sizes = []int{r.Subgroup}
	case sizes == nil && usesSubgroups(k.program):
		sizes = []int{1, 4, 32, 64}
	case sizes == nil:
		sizes = []int{defaultSubgroup}
	}
	schedules := c.Schedules
	if schedules == nil {
		schedules = []Schedule{Ascending, Descending, Shuffled}
	}
	rep := &report{max: c.Max, seen: make(map[sighting]bool)}
	if err := k.aliases(&r, rep); err != nil {
		return nil, err
	}
	var results [][]byte
	for _, size := range sizes {
		var first [][]byte
		for _, s := range schedules {
			t := r
			t.Subgroup = size
			t.Buffers = copies(r.Buffers)
			l, err := k.newLaunch(ctx, &t)
			if err != nil {
				return nil, err
			}
			ch, err := newChecker(k, l, &c, s, rep)
			if err != nil {
				return nil, err
			}
			if err := ch.grid(); err != nil {
				return rep.sorted(), err
			}
			if results == nil {
				results = t.Buffers
			}
			if first == nil {
				first = t.Buffers
			} else if c.Deterministic {
				k.compare(rep, l, s, first, t.Buffers)
			}
			if rep.full() {
				break
			}
		}
	}
	for i := range results {
		copy(r.Buffers[i], results[i])
	}
	return rep.sorted(), nil
}

// aliases looks for bindings that share memory.
func (k *Kernel) aliases(r *Launch, rep *report) error {
	if _, err := k.newLaunch(context.Background(), r); err != nil {
		return err
	}
	bounds := func(b []byte) (lo, hi uintptr) {
		lo = uintptr(unsafe.Pointer(unsafe.SliceData(b)))
		return lo, lo + uintptr(len(b))
	}
	bs := k.program.Bindings
	for i, x := range r.Buffers {
		for j, y := range r.Buffers[:i] {
			a, b := bounds(x)
			c, d := bounds(y)
			if a < d && c < b && (bs[i].Access != ir.ReadOnly || bs[j].Access != ir.ReadOnly) {
				rep.add(&Finding{Kind: Aliased, Kernel: k.program.Name, Name: bs[i].Name, Index: -1, Lanes: [2]int32{-1, -1},
					Note: "which shares memory with " + bs[j].Name})
			}
		}
	}
	return nil
}

// copies returns copies of buffers, aligned.
func copies(bs [][]byte) [][]byte {
	out := make([][]byte, len(bs))
	for i, b := range bs {
		if len(b) > 0 {
			mem := make([]uint64, (len(b)+7)/8)
			out[i] = unsafe.Slice((*byte)(unsafe.Pointer(&mem[0])), len(b))
			copy(out[i], b)
		}
	}
	return out
}

// compare reports buffers that differ between two schedules.
func (k *Kernel) compare(rep *report, l *launch, s Schedule, a, b [][]byte) {
	for i := range a {
		if bytes.Equal(a[i], b[i]) {
			continue
		}
		at := 0
		for a[i][at] == b[i][at] {
			at++
		}
		bind := &k.program.Bindings[i]
		size := 4 * int(bind.Width)
		if bind.Type == ir.F16 {
			size /= 2
		}
		rep.add(&Finding{Kind: OrderDependent, Kernel: k.program.Name, Name: bind.Name, Index: int64(at / size),
			Lanes: [2]int32{-1, -1}, Subgroup: l.subgroup, Schedule: s})
	}
}

// report collects findings.
type report struct {
	max  int
	seen map[sighting]bool
	list []*Finding
}

// sighting identifies equal findings.
type sighting struct {
	kind Kind
	at   ir.Value
	name string
}

func (r *report) full() bool { return len(r.list) >= r.max }

func (r *report) add(f *Finding) {
	s := sighting{f.Kind, f.Value, ""}
	if f.Value == 0 {
		s.name = f.Name
	}
	if r.seen[s] || r.full() {
		return
	}
	r.seen[s] = true
	r.list = append(r.list, f)
}

func (r *report) sorted() []*Finding {
	slices.SortStableFunc(r.list, func(a, b *Finding) int { return cmp.Compare(a.Value, b.Value) })
	return r.list
}

// checker runs a grid under one schedule and size of subgroups, some lanes at a
// time, and watches every access.
type checker struct {
	k        *Kernel
	p        *ir.Program
	l        *launch
	rep      *report
	schedule Schedule
	rng      *rand.Rand
	lanes    int

	// The value of an instruction has a row of lanes for each component. exact has the value of an
	// integer without wrapping. One more block than the rows need allows whole-block operations on
	// the last lanes.
	code  []decoded
	vals  []uint32
	exact []int64

	plane     op          // a plane function's blocks and strides
	lane      [128]uint32 // a row of a warp, before the active lanes get it
	laneExact [128]int64

	varBase  []int
	vars     []uint32
	varExact []int64
	written  []bool // variables of lanes, by components

	arrays  []region // of workgroups
	buffers []region // bindings

	group  [3]uint32
	number uint32 // of the group, from 1
	epoch  uint32 // barriers passed
	warps  []warp
	steps  uint32
}

func newChecker(k *Kernel, l *launch, c *Checks, s Schedule, rep *report) (*checker, error) {
	p := k.program
	if uint64(l.grid[0])*uint64(l.grid[1])*uint64(l.grid[2]) >= math.MaxUint32 {
		return nil, fmt.Errorf("kernel %s: %w: grid %v", p.Name, ErrLimit, l.grid[:])
	}
	ch := &checker{k: k, p: p, l: l, rep: rep, schedule: s, rng: rand.New(rand.NewPCG(c.Seed, uint64(l.subgroup))), lanes: k.local,
		varBase: make([]int, len(p.Vars))}
	for _, a := range p.Shared {
		n := int(a.Len) * int(a.Width)
		ch.arrays = append(ch.arrays, region{name: a.Name, width: int(a.Width), len: a.Len, words: make([]uint32, n), shadow: newShadow(n, true, true), shared: true})
	}
	for i, b := range p.Bindings {
		v := &l.views[i]
		undefined := c.Undefined != nil && c.Undefined[i]
		ch.buffers = append(ch.buffers, region{name: b.Name, width: int(b.Width), len: v.len, words: v.words, halves: v.halves,
			shadow: newShadow(int(v.len)*int(b.Width), undefined, b.Access != ir.ReadOnly)})
	}
	vals, vars := ch.decode()
	// Values that share a register in the interpreter because their lifetimes do not overlap have
	// separate registers here.
	if vals > maxChecked || vars > maxChecked {
		return nil, fmt.Errorf("kernel %s: %w: %d values of lanes to check", p.Name, ErrLimit, vals+vars)
	}
	ch.vals, ch.exact = make([]uint32, vals+block), make([]int64, vals+block)
	for i := range ch.plane.stride {
		ch.plane.stride[i] = blockBytes
	}
	ch.vars, ch.varExact, ch.written = make([]uint32, vars), make([]int64, vars), make([]bool, vars)
	ch.fill(false)
	// A power of two times the subgroup size, up to the number of lanes of a mask.
	step := max(l.subgroup, 1)
	for want := lockstep(c.Lockstep, ch.lanes); step*2 <= want; step *= 2 {
	}
	for from := 0; from < ch.lanes; from += step {
		ch.warps = append(ch.warps, newWarp(from, min(step, ch.lanes-from), s))
	}
	if s == Descending {
		slices.Reverse(ch.warps)
	}
	return ch, nil
}

// lockstep returns how many of the lanes of a workgroup shall run in step.
func lockstep(want, lanes int) int {
	if want > 0 {
		return min(want, 128)
	}
	return min(max(lanes/4, 4), 32)
}

// usesSubgroups reports whether a program depends on the size of subgroups.
func usesSubgroups(p *ir.Program) bool {
	for i := range p.Code {
		switch in := &p.Code[i]; in.Code {
		case ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupShuffle, ir.SubgroupXor, ir.SubgroupFirst:
			return true
		case ir.BuiltIn:
			if in.Flag >= ir.BuiltInSubgroupSize {
				return true
			}
		}
	}
	return false
}

// maxChecked bounds the values of all lanes of a workgroup, 12 bytes each.
const maxChecked = 1 << 25

// grid runs all workgroups.
func (c *checker) grid() error {
	x, y := uint64(c.l.grid[0]), uint64(c.l.grid[1])
	groups := x * y * uint64(c.l.grid[2])
	order := func(i uint64) uint64 { return i }
	switch {
	case c.schedule == Descending:
		order = func(i uint64) uint64 { return groups - 1 - i }
	case c.schedule == Shuffled && groups <= 1<<20:
		p := c.rng.Perm(int(groups))
		order = func(i uint64) uint64 { return uint64(p[i]) }
	}
	for i := range groups {
		g := order(i)
		c.group = [3]uint32{uint32(g % x), uint32(g / x % y), uint32(g / x / y)}
		c.number = uint32(g) + 1
		if err := c.workgroup(); err != nil {
			return err
		}
		if c.rep.full() {
			return nil
		}
	}
	return nil
}

// workgroup runs one workgroup to its end.
func (c *checker) workgroup() error {
	c.epoch = 0
	clear(c.written)
	for i := range c.arrays {
		clear(c.arrays[i].words)
		c.arrays[i].reset()
	}
	c.fill(true)
	for i := range c.warps {
		c.warps[i].reset()
	}
	for {
		if err := c.l.ctx.Err(); err != nil {
			return err
		}
		if err := c.untilWaiting(); err != nil {
			return err
		}
		if !c.meet() {
			return nil
		}
	}
}

// untilWaiting runs subgroups until each has ended or waits for the others.
func (c *checker) untilWaiting() error {
	if c.schedule != Shuffled {
		for i := range c.warps {
			w := &c.warps[i]
			for w.state == running {
				c.step(w)
				if err := c.poll(); err != nil {
					return err
				}
			}
		}
		return nil
	}
	able := make([]*warp, 0, len(c.warps))
	for i := range c.warps {
		w := &c.warps[i]
		c.rng.Shuffle(len(w.order), func(i, j int) { w.order[i], w.order[j] = w.order[j], w.order[i] })
		if w.state == running {
			able = append(able, w)
		}
	}
	for len(able) > 0 {
		i := c.rng.IntN(len(able))
		w := able[i]
		for range 1 + c.rng.IntN(32) {
			if w.state != running {
				able[i] = able[len(able)-1]
				able = able[:len(able)-1]
				break
			}
			c.step(w)
			if err := c.poll(); err != nil {
				return err
			}
		}
	}
	return nil
}

// poll lets the caller cancel.
func (c *checker) poll() error {
	if c.steps++; c.steps%4096 == 0 {
		c.l.stopped(1024) // lets other goroutines run on systems without preemption
		return c.l.ctx.Err()
	}
	return nil
}

// meet lets the waiting subgroups continue together. It returns false when all subgroups have ended.
func (c *checker) meet() bool {
	c.sameOperations()
	var first, other *warp
	ended := false
	for i := range c.warps {
		w := &c.warps[i]
		switch {
		case w.state == done:
			ended = true
		case first == nil:
			first = w
		case w.pc != first.pc:
			other = w
		}
	}
	if first == nil {
		return false
	}
	at := ir.Value(first.pc)
	switch {
	case ended:
		c.find(&Finding{Kind: DivergentBarrier, Value: at, Index: -1, Lanes: [2]int32{int32(first.from), -1}, Note: "some lanes have returned"})
	case other != nil:
		c.find(&Finding{Kind: DivergentBarrier, Value: at, Index: -1, Lanes: [2]int32{int32(first.from), int32(other.from)},
			Note: "the other lane waits at " + spot(c.p, ir.Value(other.pc))})
	}
	for i := range c.warps {
		if w := &c.warps[i]; w.state == waiting && c.p.Code[w.pc].Code == ir.UniformLoad {
			c.uniformLoad(w, first)
		}
	}
	barrier := false
	for i := range c.warps {
		w := &c.warps[i]
		if w.state != waiting {
			continue
		}
		barrier = barrier || c.p.Code[w.pc].Code == ir.Barrier
		w.state = running
		w.pc++
	}
	if barrier {
		c.epoch++
	}
	return true
}

// sameOperations reports subgroup operations that not every subgroup has executed since the subgroups last waited for
// each other.
func (c *checker) sameOperations() {
	a := c.warps[0].trace
	for i := range c.warps {
		b := c.warps[i].trace
		for j := range max(len(a), len(b)) {
			var x, y ir.Value
			if j < len(a) {
				x = a[j]
			}
			if j < len(b) {
				y = b[j]
			}
			if x != y {
				c.find(&Finding{Kind: DivergentSubgroup, Value: max(x, y), Index: -1,
					Lanes: [2]int32{int32(c.warps[0].from), int32(c.warps[i].from)}, Note: "only one of the lanes comes to it"})
				break
			}
		}
	}
	for i := range c.warps {
		c.warps[i].trace = c.warps[i].trace[:0]
	}
}

// known reports whether the checker already has an equal finding.
func (c *checker) known(k Kind, v ir.Value) bool { return c.rep.seen[sighting{k, v, ""}] }

// find completes a finding and adds it.
func (c *checker) find(f *Finding) {
	if c.known(f.Kind, f.Value) {
		return
	}
	f.Kernel, f.Group, f.Subgroup, f.Schedule = c.p.Name, c.group, c.l.subgroup, c.schedule
	f.locate(c.p)
	c.rep.add(f)
}
