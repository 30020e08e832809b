package simd

import (
	"runtime"
	"sync"

	"github.com/rayo-go/rayo/internal/memory"
)

// scratch is a buffer that products reuse. Its data starts on a cache line.
type scratch struct {
	data []float32
}

// A few scratches of the usual size for each thread are never freed: the garbage
// collector empties a sync.Pool, and touching the fresh pages of a new buffer takes
// longer than many products. Larger scratches are garbage-collected.
var (
	scratchMu    sync.Mutex
	scratchFree  []*scratch
	scratchLarge sync.Pool
)

// scratchUsual is the size in floats of the memory that is kept: blocks of B in half of the
// second-level cache, and a tile of A. Allocations of a huge page or more use huge pages.
var scratchUsual = max(memory.Huge, memory.CPUCaches().L2)/4 + 1<<14

// takeScratch returns a scratch of at least n floats.
func takeScratch(n int) *scratch {
	if n > scratchUsual {
		if s, ok := scratchLarge.Get().(*scratch); ok && len(s.data) >= n {
			return s
		}
		return newScratch(n)
	}
	scratchMu.Lock()
	if last := len(scratchFree) - 1; last >= 0 {
		s := scratchFree[last]
		scratchFree = scratchFree[:last]
		scratchMu.Unlock()
		return s
	}
	scratchMu.Unlock()
	return newScratch(scratchUsual)
}

func newScratch(n int) *scratch {
	d, err := memory.Floats(n)
	if err != nil {
		panic(err)
	}
	return &scratch{d}
}

// free returns the scratch to its pool.
func (s *scratch) free() {
	if len(s.data) > scratchUsual {
		scratchLarge.Put(s)
		return
	}
	scratchMu.Lock()
	if len(scratchFree) < 2*runtime.GOMAXPROCS(0) {
		scratchFree = append(scratchFree, s)
	}
	scratchMu.Unlock()
}
