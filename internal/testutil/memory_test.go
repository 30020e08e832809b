package testutil

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var kept []byte

func TestAllocations(t *testing.T) {
	for want := range 4 {
		n := Allocations(50, func() {
			for range want {
				kept = make([]byte, 100)
			}
		})
		if n != want {
			t.Errorf("%d allocations a run are counted as %d", want, n)
		}
	}
	if Raced {
		return
	}
	p := sync.Pool{New: func() any { return new([100]byte) }}
	if n := Allocations(50, func() { p.Put(p.Get()) }); n != 0 {
		t.Errorf("a pool that is warm allocates %d times", n)
	}
}

// TestAllocationsOnce: allocations of the first runs only are not counted.
func TestAllocationsOnce(t *testing.T) {
	made := 0
	if n := Allocations(10, func() {
		if made < 25 {
			kept = make([]byte, 100)
			made++
		}
	}); n != 0 {
		t.Errorf("%d allocations a run", n)
	}
}

func TestGrowth(t *testing.T) {
	type node [5]uint64
	all := make([]*node, 0, 500*(1+tries*9)*(1+3))
	for _, each := range []int{1 + rand.IntN(3)} {
		n := Growth(500, 0, func() {
			for range each {
				all = append(all, new(node))
			}
		})
		// An object of 40 bytes takes 48.
		if n < 40*each || n > 60*each {
			t.Errorf("%d bytes a run are kept, not %d", n, 48*each)
		}
	}
	runtime.KeepAlive(all)
	if n := Growth(500, 0, func() { kept = make([]byte, 1000) }); n != 0 {
		t.Errorf("%d bytes a run are kept of what is forgotten", n)
	}
	var cache [1 << 12]*node // is full at some time
	i := 0
	if n := Growth(500, 0, func() { cache[i%len(cache)] = new(node); i++ }); n != 0 {
		t.Errorf("%d bytes a run are kept of a cache that is full", n)
	}
}

// TestCollect: what slow cleanups let go, and what the cleanups of that do, is over
// when Collect returns.
func TestCollect(t *testing.T) {
	type held struct{ b []byte }
	const n = 100
	var over atomic.Int32
	end := func([]byte) {
		time.Sleep(2 * time.Millisecond)
		over.Add(1)
	}
	for range n {
		inner := &held{make([]byte, 16<<10)}
		runtime.AddCleanup(inner, end, nil)
		runtime.AddCleanup(&held{make([]byte, 16<<10)}, func(h *held) { end(h.b) }, inner)
	}
	Collect()
	if m := over.Load(); m != 2*n {
		t.Errorf("%d of %d cleanups have run", m, 2*n)
	}
}
