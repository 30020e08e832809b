package cuda

import "sync"

// staging keeps page-locked host memory for transfers of small operands and results. Larger ones go
// through the ring of the stream.
type staging struct {
	d *gpuDevice

	mu   sync.Mutex
	idle [len(slabSizes)][]HostMemory // unused memory, indexed by size class
}

// slabSizes are the sizes of this memory.
var slabSizes = [...]int64{64 << 10, maxCopied, maxStaged}

const (
	// maxCopied is the maximum number of bytes that are copied through it in one submission: larger
	// copies are faster in pieces, which overlap the host's copies with transfers.
	maxCopied = 256 << 10
	// maxStaged is the maximum number of bytes of a staged transfer. Larger transfers are faster if
	// copies by the host and by the device overlap.
	maxStaged = 1 << 20
)

// slab is memory in use.
type slab struct {
	HostMemory
	class int
}

// take returns memory of at least n bytes. n is at most maxStaged.
func (s *staging) take(n int64) (slab, error) {
	class := 0
	for n > slabSizes[class] {
		class++
	}
	s.mu.Lock()
	if k := len(s.idle[class]); k > 0 {
		h := s.idle[class][k-1]
		s.idle[class] = s.idle[class][:k-1]
		s.mu.Unlock()
		return slab{h, class}, nil
	}
	s.mu.Unlock()
	h, err := s.d.hw.AllocHost(slabSizes[class])
	if err != nil {
		return slab{}, s.d.translateError(err)
	}
	return slab{h, class}, nil
}

// maxIdleSlabs is the maximum number of unused slabs of each size.
const maxIdleSlabs = 16

// give returns memory that is no longer in use to the staging.
func (s *staging) give(b slab) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle[b.class]) < maxIdleSlabs {
		s.idle[b.class] = append(s.idle[b.class], b.HostMemory)
		return
	}
	_ = b.Close()
}

// free frees all unused memory.
func (s *staging) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, hs := range s.idle {
		for _, h := range hs {
			_ = h.Close()
		}
		s.idle[i] = nil
	}
}
