package cuda

import (
	"math/bits"
	"slices"
	"sync"
)

// A pool keeps blocks that were freed for the next allocation of about the same size. Its blocks
// can be reused in the order of its stream, so allocations need not wait. A pool without a stream
// keeps nothing.
type pool struct {
	dev    *Device
	stream *Stream // nil for memory of no stream

	mu      sync.Mutex
	retired bool // the stream is closed
	bins    [binCount][]*block
	large   []*block // larger than the bins hold, by size
	owned   *block   // list of blocks that somebody owns
	used    int64
	cached  int64
}

// Sizes are rounded up to four steps for each power of two, at least 256 bytes apart, up to 8 MiB,
// and to multiples of 2 MiB above, the driver's granularity. A block of a bin fits every request
// that rounds to the bin's size, and wastes at most a fourth. Among the large blocks the pool takes
// the smallest that fits and wastes at most an eighth.
const (
	grain     = 256
	largest   = 8 << 20
	largeStep = 2 << 20
	binCount  = 64
)

// rounded returns the size of the block for n bytes, and its bin or -1.
func rounded(n int64) (size int64, bin int) {
	n = max(n, 1)
	if n > largest {
		return (n + largeStep - 1) &^ (largeStep - 1), -1
	}
	step := int64(grain)
	if l := bits.Len64(uint64(n-1)) - 3; l > 8 {
		step = 1 << l
	}
	size = (n + step - 1) &^ (step - 1)
	if size <= 4*grain {
		return size, int(size/grain) - 1
	}
	// The power of two below the size, and in which fourth above it the size is.
	octave := bits.Len64(uint64(size-1)) - 1
	quarter := int((size - 1) >> (octave - 2) & 3)
	return size, 4*(octave-9) + quarter
}

func newPool(d *Device, s *Stream) *pool { return &pool{dev: d, stream: s} }

// get returns memory of n bytes. The caller holds the device, and the stream if
// there is one.
func (p *pool) get(n int64) (Memory, error) {
	size, bin := rounded(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	if lost := p.dev.prim.lost.Load(); lost != nil {
		return Memory{}, lost
	}
	b := p.pop(size, bin)
	if b == nil {
		var err error
		if b, err = p.allocate(size); err != nil {
			return Memory{}, err
		}
	}
	b.asked = n
	b.prev, b.next = nil, p.owned
	if p.owned != nil {
		p.owned.prev = b
	}
	p.owned = b
	p.used += b.size
	return Memory{b, b.gen.Load()}, nil
}

// pop takes a block that is kept, or returns nil.
func (p *pool) pop(size int64, bin int) *block {
	var b *block
	if bin >= 0 {
		n := len(p.bins[bin])
		if n == 0 {
			return nil
		}
		b = p.bins[bin][n-1]
		p.bins[bin][n-1] = nil
		p.bins[bin] = p.bins[bin][:n-1]
	} else {
		i, _ := slices.BinarySearchFunc(p.large, size, bySize)
		if i == len(p.large) || p.large[i].size > size+size/8 {
			return nil
		}
		b = p.large[i]
		p.large = slices.Delete(p.large, i, i+1)
	}
	p.cached -= b.size
	return b
}

func bySize(b *block, size int64) int { return int(min(max(b.size-size, -1), 1)) }

// allocate asks the driver for a block.
func (p *pool) allocate(size int64) (*block, error) {
	f := newFrame()
	defer f.release()
	f.Args[0], f.Args[1] = f.out(0), uintptr(size)
	e := cuMemAlloc
	if p.ordered() {
		// In a stream that records a graph it would become a part of the graph.
		if p.stream.capturing.Load() {
			return nil, errCapturingAlloc
		}
		e, f.Args[2] = cuMemAllocAsync, p.stream.handle
	}
	if err := p.dev.prim.call(f, e); err != nil {
		return nil, err
	}
	return &block{ptr: Ptr(f.Out[0]), size: size, pool: p}, nil
}

// ordered reports whether the driver allocates and frees in the order of the
// stream.
func (p *pool) ordered() bool { return p.stream != nil && !p.retired && p.dev.prim.pool != 0 }

// put takes back what m owns, if it still does. The caller holds the device.
func (p *pool) put(m Memory) {
	if p.giveBack(m) {
		p.dev.forget(p)
	}
}

// forget removes a pool that can hold no more blocks.
func (d *Device) forget(p *pool) {
	d.mu.Lock()
	p.mu.Lock()
	if p.retired && p.owned == nil {
		delete(d.pools, p)
	}
	p.mu.Unlock()
	d.mu.Unlock()
}

// giveBack reports whether the pool is retired and now empty.
func (p *pool) giveBack(m Memory) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := m.b
	if !b.gen.CompareAndSwap(m.gen, m.gen+1) {
		return false
	}
	p.disown(b)
	if p.stream == nil || p.retired {
		f := newFrame()
		p.free(f, b)
		f.release()
		return p.retired && p.owned == nil
	}
	if size, bin := rounded(b.size); bin >= 0 && size == b.size {
		p.bins[bin] = append(p.bins[bin], b)
	} else {
		i, _ := slices.BinarySearchFunc(p.large, b.size, bySize)
		p.large = slices.Insert(p.large, i, b)
	}
	p.cached += b.size
	return false
}

// disown removes a block from the list of blocks in use.
func (p *pool) disown(b *block) {
	if b.prev != nil {
		b.prev.next = b.next
	} else {
		p.owned = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	}
	b.prev, b.next = nil, nil
	p.used -= b.size
}

// free gives a block back to the driver.
func (p *pool) free(f *frame, b *block) {
	f.Args[0] = uintptr(b.ptr)
	if p.ordered() && !p.stream.capturing.Load() {
		f.Args[1] = p.stream.handle
		p.dev.prim.destroy(f, cuMemFreeAsync)
		return
	}
	p.dev.prim.destroy(f, cuMemFree)
}

// trim frees the cached blocks.
func (p *pool) trim(f *frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.empty(f)
}

func (p *pool) empty(f *frame) {
	if p.stream != nil && p.stream.capturing.Load() {
		return // the cached blocks may be part of the graph
	}
	for i := range p.bins {
		for _, b := range p.bins[i] {
			p.free(f, b)
		}
		p.bins[i] = nil
	}
	for _, b := range p.large {
		p.free(f, b)
	}
	p.large = nil
	p.cached = 0
}

// retire frees the cached blocks, because the stream is about to be destroyed. Blocks in use are
// returned to the driver when their owners free them.
func (p *pool) retire(f *frame) {
	p.mu.Lock()
	p.stream.capturing.Store(false)
	p.empty(f)
	p.retired = true
	p.mu.Unlock()
	p.dev.forget(p)
}

// freeAll gives back everything, whoever owns it.
func (p *pool) freeAll() {
	f := newFrame()
	defer f.release()
	p.mu.Lock()
	defer p.mu.Unlock()
	for b := p.owned; b != nil; b = p.owned {
		b.gen.Add(1)
		p.disown(b)
		p.free(f, b)
	}
	p.empty(f)
}
