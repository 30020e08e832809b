package cpu

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rayo-go/rayo/internal/incomparable"
	"github.com/rayo-go/rayo/internal/memory"
)

// streaming decides whether one operation or program writes its results with non-temporal stores. A
// cache line that is written completely need not be read first, and evicts no other line; but it is
// written to memory at once, and the next reader must read it from memory. Which is faster depends
// on the processor as much as on the size: with a close last-level cache, cached stores win up to
// sizes at which they lose by a quarter with a distant cache shared by many cores. Therefore it is
// measured, on the calls themselves.
type streaming [2][streamSizes]trial

// streamSizes is the number of size classes, by powers of two from 64 Ki elements on.
const streamSizes = 16

// trial compares cached and non-temporal stores for calls of about one size.
type trial struct {
	_ incomparable.Type

	calls atomic.Uint32
	ns    [2]atomic.Uint32 // time of an element as float32 bits, for cached and non-temporal stores; 0 if unknown

	// Number of results, and number of results that a large call read soon after. Old counts decay.
	made, read atomic.Uint32
}

const (
	// Number of calls in a trial. The two kinds of stores alternate, with two calls each. Only the
	// second call counts, because the first brings the caches into its steady state.
	trialCalls = 12
	// Number of calls after which both kinds are tried again, with two calls each.
	trialEvery = 1024
	trialGain  = 0.95 // non-temporal stores must take less than this fraction of the time
	trialMade  = 64   // number of results after which the counts are halved
)

// streamFrom is the size in bytes from which on results use non-temporal stores before there is a
// measurement: the caches would evict them before the next read. A core counts only its share of a
// cache that many cores share.
var streamFrom = min(16<<20, memory.LastLevelCache()/2)

// privateCacheBytes is the size of a core's private caches: results that fit never use non-temporal stores.
var privateCacheBytes = memory.CPUCaches().L2

// passing is a call in a trial.
type passing struct {
	t       *trial
	path    int // 1 for non-temporal stores
	counts  bool
	started time.Time
}

// choose returns the kind of stores for a call that computes n elements, moves the given bytes, and
// uses the given number of threads. Results that fit into the private caches of the cores use
// cached stores.
func (s *streaming) choose(n int, bytes float64, threads int) (p passing) {
	if single || bytes <= float64(threads)*float64(privateCacheBytes) {
		return passing{}
	}
	t := &s[min(threads-1, 1)][min(max(bits.Len(uint(n))-17, 0), streamSizes-1)]
	first := 0
	if n > streamFrom/4 {
		first = 1
	}
	k := t.calls.Add(1) - 1
	p.t, p.path = t, t.better(first)
	if k < trialCalls {
		p.path = first ^ int(k/2%2)
		p.counts = k%2 == 1
	} else if r := k % trialEvery; r < 4 {
		p.path ^= int(r / 2)
		p.counts = r%2 == 1
	}
	if p.counts {
		p.started = time.Now()
	}
	return p
}

// ended records the time of the call if it is a measurement.
func (p *passing) ended(n int) {
	if single || !p.counts {
		return
	}
	was := &p.t.ns[p.path]
	ns, old := float32(time.Since(p.started))/float32(n), math.Float32frombits(was.Load())
	if old != 0 && ns > old {
		ns = old + (ns-old)/8 // see cost.observe
	}
	was.Store(math.Float32bits(ns))
}

// better returns the faster path, or first if it is not known. A result that the next call reads
// uses cached stores, because the reader saves more than the writer loses.
func (t *trial) better(first int) int {
	if 4*t.read.Load() > t.made.Load() {
		return 0
	}
	near, past := math.Float32frombits(t.ns[0].Load()), math.Float32frombits(t.ns[1].Load())
	switch {
	case near == 0 || past == 0:
		return first
	case past < trialGain*near:
		return 1
	}
	return 0
}

// recent has the addresses of the last few large results, to find out which of them are read.
type recent struct {
	next   atomic.Uint32
	places [8]struct {
		at    atomic.Uintptr // only compared
		trial atomic.Pointer[trial]
	}
}

// reads records that a large call reads the array at p.
func (r *recent) reads(p unsafe.Pointer) {
	if single || p == nil {
		return
	}
	for i := range r.places {
		if e := &r.places[i]; e.at.Load() == uintptr(p) && e.at.CompareAndSwap(uintptr(p), 0) {
			if t := e.trial.Load(); t != nil {
				t.read.Add(1)
			}
		}
	}
}

// made records that the result of a call of t is at p.
func (r *recent) made(p unsafe.Pointer, t *trial) {
	if single || t == nil {
		return
	}
	if t.made.Add(1) >= trialMade {
		t.made.Store(trialMade / 2)
		t.read.Store(t.read.Load() / 2)
	}
	for i := range r.places {
		if e := &r.places[i]; e.at.Load() == uintptr(p) {
			e.trial.Store(t)
			return
		}
	}
	e := &r.places[r.next.Add(1)%uint32(len(r.places))]
	e.trial.Store(t)
	e.at.Store(uintptr(p))
}
