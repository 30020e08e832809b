package webgpu

import (
	"container/list"
	"slices"
	"sync"

	"github.com/rayo-go/rayo/internal/incomparable"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
)

// layouts has the layouts of one executable. Nearly always there is only one, because a plan is
// bound to the same kinds of memory each time.
type layouts struct {
	e   *executable
	mu  sync.Mutex
	all []*layout
}

// layout says where the arrays of a submission are. It depends on the external slots that are bound
// to host memory.
type layout struct {
	e    *executable
	host []bool // for each external slot: whether it is bound to host memory
	at   []spot // for each of these slots: its position on the device
	// sizes are the bytes of the buffers of a set: temporary buffers, then buffers for operands
	// from the host, then for results for the host.
	sizes []int64
	// mappable has the usages of the buffers of an exclusive set: see setMode. It is nil if an
	// exclusive set would be like a shared one.
	mappable []gpu.Usage
	// direct is the set of the indices of copy steps that are transfers between host and device
	// memory instead.
	direct map[int]bool
	up     []transfer
	down   []transfer

	mu   sync.Mutex // held while a set is created
	sets [2]*set    // indexed by setMode, under sets.mu; nil if there is none
}

// setMode is the mode in which submissions use a set.
type setMode int

const (
	// shared by any number of submissions, which run one after the other in the queue.
	shared setMode = iota
	// exclusive to one submission at a time: the host and the device may share the memory of
	// operands and results then.
	exclusive
)

// Memory that the host and the device share replaces copies where it saves the most: for small
// arrays, and for arrays that kernels read or write only once.
const (
	maxMapped     = 64 << 10
	maxMappedOnce = 8 << 20
)

// spot is a position in a buffer of a set.
type spot struct {
	buffer int // -1: none
	off    int64
}

// transfer is a transfer of host memory to the device, or back.
type transfer struct {
	ext   int    // the external slot with the host memory, unless host is set
	host  []byte // the host memory, or nil
	bytes int64
	// The position on the device: in a set, in its block of parameters, or with mem in another
	// external slot.
	spot
	params bool
	mem    int // -1: none
	memOff int64
}

// of returns the layout for bindings of these kinds.
func (ls *layouts) of(host []bool) *layout {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		if slices.Equal(l.host, host) {
			return l
		}
	}
	l := newLayout(ls.e, slices.Clone(host))
	ls.all = append(ls.all, l)
	return l
}

// free frees the memory of all layouts. They must not be in use.
func (ls *layouts) free() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		l.e.d.sets.drop(l)
	}
	ls.all = nil
}

func newLayout(e *executable, host []bool) *layout {
	l := &layout{e: e, host: host, at: make([]spot, len(host)), sizes: slices.Clone(e.temps), direct: make(map[int]bool)}
	l.directly()
	for x := range l.at {
		l.at[x].buffer = -1
	}
	reserved := make(map[int]bool)
	for i := range l.direct {
		c := e.steps[i].(*copyStep)
		reserved[c.src.at], reserved[c.dst.at] = true, true
	}
	l.place(reserved)
	l.chooseMappable()
	for _, s := range e.steps {
		if s, ok := s.(*dispatch); ok && s.dynamic >= 0 {
			at := spot{0, s.uniform}
			l.up = append(l.up, transfer{ext: s.dynamic, bytes: e.Need[s.dynamic], spot: at, params: true, mem: -1})
			if len(s.lengths) > 0 {
				at.off += s.lengthsAt
				l.up = append(l.up, transfer{host: s.lengths, bytes: int64(len(s.lengths)), spot: at, params: true, mem: -1})
			}
		}
	}
	return l
}

// place gives each array of the host that is not reserved its place in a buffer, and makes its transfer.
func (l *layout) place(reserved map[int]bool) {
	e := l.e
	open := make(map[int]int) // the last buffer of operands (-1), and of results, by their number
	for x, is := range l.host {
		if !is || e.uses[x] == 0 || reserved[x] {
			continue
		}
		kind := -1
		if e.Written[x] {
			kind = e.buffers[x]
		}
		need := max(words(e.Need[x]), minBytes)
		usage := gpu.Input
		if e.Written[x] {
			usage = gpu.Output
		}
		b, ok := open[kind]
		if ok {
			l.sizes[b] = up(l.sizes[b], e.d.limits.StorageAlign)
		}
		if !ok || l.sizes[b]+need > e.d.limits.Buffer {
			b = len(l.sizes)
			l.sizes = append(l.sizes, 0)
			for len(l.mappable) < b {
				l.mappable = append(l.mappable, gpu.Storage)
			}
			l.mappable = append(l.mappable, usage)
			open[kind] = b
		}
		l.at[x] = spot{b, l.sizes[b]}
		l.sizes[b] += need
		t := transfer{ext: x, bytes: e.Need[x], spot: l.at[x], mem: -1}
		switch {
		case t.bytes == 0:
		case e.Written[x]:
			l.down = append(l.down, t)
		default:
			l.up = append(l.up, t)
		}
	}
}

// chooseMappable decides which buffers the host maps: small ones, if there are some and all steps run on the device.
func (l *layout) chooseMappable() {
	e := l.e
	most := int64(maxMapped)
	if e.single {
		most = maxMappedOnce
	}
	worth := false
	for b, usage := range l.mappable {
		switch {
		case usage == gpu.Storage:
		case l.sizes[b] > most:
			l.mappable[b] = gpu.Storage
		default:
			worth = true
		}
	}
	if !worth || !e.d.gpu.Adapter().Mappable || len(e.hosted) > 0 {
		l.mappable = nil
	}
}

// directly finds the copies that need no buffer of a set: copies from the host to device memory
// before all other steps, and from device memory to the host after them.
func (l *layout) directly() {
	e := l.e
	first := 0
	for ; first < len(e.steps); first++ {
		c, ok := e.steps[first].(*copyStep)
		if !ok || c.src.kind != external || c.dst.kind != external || !l.host[c.src.at] || l.host[c.dst.at] ||
			e.Written[c.src.at] || e.uses[c.src.at] != 1 || c.dst.bytes%4 != 0 {
			break
		}
		l.direct[first] = true
		l.up = append(l.up, transfer{ext: c.src.at, bytes: c.dst.bytes, mem: c.dst.at, memOff: c.dst.off})
	}
	for last := len(e.steps) - 1; last >= first; last-- {
		c, ok := e.steps[last].(*copyStep)
		if !ok || c.src.kind != external || c.dst.kind != external || l.host[c.src.at] || !l.host[c.dst.at] || e.uses[c.dst.at] != 1 {
			break
		}
		l.direct[last] = true
		l.down = append(l.down, transfer{ext: c.dst.at, bytes: c.dst.bytes, mem: c.src.at, memOff: c.src.off})
	}
}

// sets keeps the temporary memory of executables. A layout has a set that all submissions share,
// because the queue runs them one after the other, and may have another set for a submission whose
// caller waits.
type sets struct {
	_ incomparable.Type

	d *device

	mu    sync.Mutex
	used  list.List // of *set, the most recently used first
	bytes int64
}

// maxKept bounds the memory of unused sets, in bytes.
const maxKept = 256 << 20

// set is the memory of a layout.
type set struct {
	l       *layout
	mode    setMode
	buffers []*gpu.Buffer
	uniform *gpu.Buffer
	bytes   int64

	// Under sets.mu.
	users      int
	gone       bool // the last user must free it
	at         *list.Element
	recordings []*recording // the most recently used last
}

// take returns a set of a layout for a submission. If the caller waits for the submission, it
// returns the exclusive set, unless another submission uses it.
func (ss *sets) take(l *layout, waits bool) (*set, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ss.mu.Lock()
	w := shared
	if waits && l.mappable != nil && (l.sets[exclusive] == nil || l.sets[exclusive].users == 0) {
		w = exclusive
	}
	if s := l.sets[w]; s != nil {
		s.users++
		ss.used.MoveToFront(s.at)
		ss.mu.Unlock()
		return s, nil
	}
	ss.mu.Unlock()
	s := &set{l: l, mode: w, users: 1}
	buffer := func(bytes int64, u gpu.Usage) (*gpu.Buffer, error) {
		if bytes == 0 {
			return nil, nil
		}
		s.bytes += bytes
		return ss.d.gpu.NewBuffer(words(bytes), u)
	}
	var err error
	for i, n := range l.sizes {
		usage := gpu.Storage
		if w == exclusive && i < len(l.mappable) {
			usage = l.mappable[i]
		}
		var b *gpu.Buffer
		if b, err = buffer(n, usage); err != nil {
			break
		}
		s.buffers = append(s.buffers, b)
	}
	if err == nil {
		s.uniform, err = buffer(l.e.uniforms, gpu.Uniform)
	}
	if err != nil {
		s.free()
		return nil, translateError(err)
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	l.sets[w] = s
	s.at = ss.used.PushFront(s)
	ss.bytes += s.bytes
	return s, nil
}

// give ends the use of a set.
func (ss *sets) give(s *set) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s.users--; s.gone {
		if s.users == 0 {
			s.free()
		}
		return
	}
	for e := ss.used.Back(); e != nil && ss.bytes > maxKept; {
		old := e.Value.(*set)
		e = e.Prev()
		if old.users == 0 {
			ss.remove(old)
			old.free()
		}
	}
}

// remove removes a set from the list.
func (ss *sets) remove(s *set) {
	ss.used.Remove(s.at)
	ss.bytes -= s.bytes
	s.l.sets[s.mode] = nil
}

// drop frees the sets of a layout.
func (ss *sets) drop(l *layout) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range l.sets {
		if s == nil {
			continue
		}
		ss.remove(s)
		if s.gone = true; s.users == 0 {
			s.free()
		}
	}
}

// free drops all sets.
func (ss *sets) free() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for e := ss.used.Front(); e != nil; e = e.Next() {
		s := e.Value.(*set)
		s.l.sets[s.mode] = nil
		if s.gone = true; s.users == 0 {
			s.free()
		}
	}
	ss.used.Init()
	ss.bytes = 0
}

// free frees the memory. The queue keeps memory alive that it still uses.
func (s *set) free() {
	for _, r := range s.recordings {
		r.drop()
	}
	s.recordings = nil
	for _, b := range append(s.buffers, s.uniform) {
		if b != nil {
			b.Free()
		}
	}
	s.buffers, s.uniform = nil, nil
}
