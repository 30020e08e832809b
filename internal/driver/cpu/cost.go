package cpu

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rayo-go/rayo/internal/incomparable"
	"github.com/rayo-go/rayo/internal/memory"
)

// single says that the program has one thread on this architecture, and no non-temporal stores. The linker then leaves out the functions
// that decide about them.
const single = runtime.GOARCH == "wasm"

// cost is the time of a kernel or program for one element on one thread: first an estimate from its
// instructions, then a measurement of runs. There is one number for data in the caches of a core,
// one for data in the shared cache, and one for memory.
type cost struct {
	_ incomparable.Type

	seed  float32          // nanoseconds of computation
	bytes float32          // bytes moved
	ns    [3]atomic.Uint32 // bits of a float32; 0 means not measured
}

// bytesPerNS is the number of bytes that a core moves in a nanosecond, from each level.
var bytesPerNS = [3]float32{40, 15, 10}

// level returns the index in ns for n elements.
func (c *cost) level(n int) int {
	b := float64(n) * float64(c.bytes)
	caches := memory.CPUCaches()
	switch {
	case b < float64(caches.L2):
		return 0
	case b < float64(caches.Last)/2:
		return 1
	}
	return 2
}

// of returns the time of n elements in nanoseconds, or 0 if there is one thread.
func (c *cost) of(n int) float64 {
	if single {
		return 0
	}
	l := c.level(n)
	ns := math.Float32frombits(c.ns[l].Load())
	if ns == 0 {
		ns = max(c.seed, c.bytes/bytesPerNS[l])
	}
	return float64(ns) * float64(n)
}

// Runs shorter than this are not timed: reading the clock would cost a
// noticeable share of them.
const timedNS = 4000

// observe records that n elements, of a total of whole, took d on one thread.
func (c *cost) observe(whole, n int, d time.Duration) {
	if single {
		return
	}
	l := c.level(whole)
	got := float32(d) / float32(n)
	old := math.Float32frombits(c.ns[l].Load())
	if old == 0 {
		old = max(c.seed, c.bytes/bytesPerNS[l])
	}
	// A run that lost its processor looks slow, but nothing makes a run look fast: decrease quickly
	// and increase slowly.
	ns := old + (min(got, 2*old)-old)/8
	if got < old {
		ns = old + (got-old)/2
	}
	// Do not write small changes, which would only move the cache line between cores.
	if ns > old*1.02 || ns < old*0.98 {
		c.ns[l].Store(math.Float32bits(ns))
	}
}

// Parts have a minimum duration, because each has an overhead, and there are several for each
// thread, so that threads end at about the same time.
const (
	partNS         = 10_000
	partsPerThread = 6
)

// parts returns the number of parts into which work of ns nanoseconds is split.
func parts(ns float64, threads int) int {
	return int(max(float64(threads), min(ns/partNS, float64(partsPerThread*threads))))
}
