//go:build !wasm

package cpu

import (
	"math"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/memory"
)

// TestStreaming checks that both kinds of stores are tried, that the faster one is used, and that a
// kind that becomes faster later is found.
func TestStreaming(t *testing.T) {
	const n = 1 << 24
	var s streaming
	ns := [2]float32{1, 0.7}
	calls := func(k int) (past int) {
		for range k {
			p := s.choose(n, 1e12, 1)
			past += p.path
			if p.counts {
				// Simulate the duration of the call.
				p.t.ns[p.path].Store(math.Float32bits(ns[p.path]))
			}
		}
		return past
	}
	if past := calls(trialCalls); past != trialCalls/2 {
		t.Errorf("%d of the first %d calls use non-temporal stores", past, trialCalls)
	}
	if past := calls(500); past != 500 {
		t.Errorf("%d of 500 calls use non-temporal stores although they are faster", past)
	}
	ns[0] = 0.5
	calls(trialEvery)
	if past := calls(500); past != 0 {
		t.Errorf("%d of 500 calls use non-temporal stores although they have become slower", past)
	}
	ns[0] = 0.72
	calls(trialEvery)
	if past := calls(300); past > 2 {
		t.Errorf("%d of 300 calls use non-temporal stores for a gain of 3%%", past)
	}
	// Other sizes and other numbers of threads have separate trials.
	if s.choose(n/16, 1e12, 1).t == s.choose(n, 1e12, 1).t || s.choose(n, 1e12, 2).t == s.choose(n, 1e12, 1).t {
		t.Error("different calls share a trial")
	}
}

// Results that fit into private caches never use non-temporal stores, and are not recorded.
func TestStreamingNear(t *testing.T) {
	var s streaming
	near := float64(memory.CPUCaches().L2)
	for range 100 {
		if p := s.choose(1<<20, near, 1); p.t != nil || p.path != 0 || p.counts {
			t.Fatalf("%+v", p)
		}
		if p := s.choose(1<<20, 4*near, 4); p.t != nil {
			t.Fatalf("%+v", p)
		}
	}
	for _, n := range []int{1, math.MaxInt} { // every number has a size class
		if s.choose(n, 1e12, 1).t == nil {
			t.Errorf("no trial for %d elements", n)
		}
	}
}

// TestStreamingRead checks that results that are read use cached stores, also after a period
// without reads.
func TestStreamingRead(t *testing.T) {
	var s streaming
	var r recent
	var x, y float32
	const n = 1 << 24
	run := func(k int, read bool) (past int) {
		for range k {
			p := s.choose(n, 1e12, 1)
			past += p.path
			p.t.ns[0].Store(math.Float32bits(1))
			p.t.ns[1].Store(math.Float32bits(0.5))
			r.made(unsafe.Pointer(&x), p.t)
			if read {
				r.reads(unsafe.Pointer(&x))
			} else {
				r.reads(unsafe.Pointer(&y))
			}
		}
		return past
	}
	run(trialCalls, true)
	if past := run(200, true); past != 0 {
		t.Errorf("%d of 200 results that are read use non-temporal stores", past)
	}
	run(200, false)
	if past := run(200, false); past != 200 {
		t.Errorf("%d of 200 results that nothing reads use non-temporal stores", past)
	}
	run(64, true)
	if past := run(100, true); past != 0 {
		t.Errorf("%d of 100 results that are read again use non-temporal stores", past)
	}
}
