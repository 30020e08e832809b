package memory

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
)

// Options bound a Pool. The zero value keeps every freed block and sets no
// limit.
type Options struct {
	// Keep is how many bytes of freed blocks stay with the pool for reuse;
	// the least recently used go back to the system first. 0: all; negative: none.
	Keep int
	// Limit is how many bytes may be in use at once. 0: what the system gives.
	Limit int
}

// A Pool allocates Blocks and keeps freed ones warm for the next of about the
// same size. All methods may be called from any number of goroutines.
//
// Blocks that become unreachable without Free return to the system after a
// garbage collection, and so does all that a forgotten pool kept; Stats.Leaked
// counts the former.
type Pool struct {
	opts    Options
	account *account

	// Under account.mu.
	free   [classes][]*handle // each a stack: the last freed is the warmest
	tick   uint64             // counts frees, to tell which block is coldest
	closed bool
}

// Stats tells what a Pool holds, in bytes.
type Stats struct {
	Live   int // asked for and not yet freed
	Peak   int // largest Live since New or ResetPeak
	Pooled int // freed and kept for reuse
	Mapped int // taken from the system: Live, Pooled, and rounding to classes
	Fresh  int // how often a Get asked the system
	Reused int // how often a Get found a kept block
	Leaked int // blocks that became unreachable without Free
}

// account holds the statistics that cleanups of lost blocks update. It must not refer to
// the pool's free lists; otherwise an unreachable pool would never be freed.
type account struct {
	mu sync.Mutex
	s  Stats
}

// A handle is what Blocks point at; when no Block and no free list does any
// longer, its cleanup gives the memory back.
type handle struct{ *extent }

// An extent is one piece of memory. It never points back at its handle.
type extent struct {
	memory  []byte // all of its class
	mapping []byte // to unmap; nil: Go memory
	asked   int    // bytes of the present use; -1: in a free list
	use     uint32 // counts uses, so that a stale Block is harmless
	freed   uint64 // Pool.tick at the last Free
	cleanup runtime.Cleanup
}

// A Block is memory from a Pool. The zero Block has no memory.
//
// Views of a block (see [As]) are valid until it is freed, and do not keep it
// reachable: whoever uses a view holds the Block, and ends with Free or
// runtime.KeepAlive. A Block may be copied; copies are the same memory.
type Block struct {
	pool *Pool
	h    *handle
	use  uint32
	size int
}

// NewPool returns an empty pool.
func NewPool(o Options) *Pool { return &Pool{opts: o, account: new(account)} }

// Get returns size bytes of undefined contents: what the last user left, or
// zeros.
//
// # Errors
//   - [ErrOutOfMemory] if size is negative, exceeds what the pool's Limit
//     leaves, or is refused by the system even after the kept blocks went back.
func (p *Pool) Get(size int) (Block, error) {
	if size < 0 || size > largest {
		return Block{}, fmt.Errorf("%d bytes: %w", size, ErrOutOfMemory)
	}
	if size == 0 {
		return Block{}, nil
	}
	l := p.account
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.opts.Limit > 0 && size > p.opts.Limit-l.s.Live {
		return Block{}, fmt.Errorf("%d bytes in addition to %d in use exceed the limit of %d: %w", size, l.s.Live, p.opts.Limit, ErrOutOfMemory)
	}
	c, rounded := class(size)
	var h *handle
	if s := p.free[c]; len(s) > 0 {
		h = s[len(s)-1]
		s[len(s)-1] = nil
		p.free[c] = s[:len(s)-1]
		l.s.Pooled -= rounded
		l.s.Reused++
	} else {
		e, err := p.fresh(rounded)
		if err != nil {
			return Block{}, err
		}
		h = &handle{e}
		e.cleanup = runtime.AddCleanup(h, l.lost, e)
		l.s.Mapped += rounded
		l.s.Fresh++
	}
	h.asked = size
	l.s.Live += size
	l.s.Peak = max(l.s.Peak, l.s.Live)
	return Block{p, h, h.use, size}, nil
}

// fresh asks the system for memory, and asks again with empty free lists.
func (p *Pool) fresh(size int) (*extent, error) {
	if size < Huge {
		b, err := heap(size)
		return &extent{memory: b}, err
	}
	b, m, err := mapAligned(size)
	if err != nil && p.account.s.Pooled > 0 {
		p.evict(0)
		b, m, err = mapAligned(size)
	}
	return &extent{memory: b, mapping: m}, err
}

// Free gives the block back to its pool. Freeing a block twice, or the zero
// Block, does nothing.
func (b Block) Free() {
	if b.h == nil {
		return
	}
	p, l := b.pool, b.pool.account
	l.mu.Lock()
	defer l.mu.Unlock()
	h := b.h
	if h.use != b.use {
		return
	}
	h.use++
	l.s.Live -= h.asked
	h.asked = -1
	size := len(h.memory)
	c, _ := class(size)
	p.tick++
	h.freed = p.tick
	p.free[c] = append(p.free[c], h)
	l.s.Pooled += size
	switch {
	case p.closed || p.opts.Keep < 0:
		p.evict(0)
	case p.opts.Keep > 0:
		p.evict(p.opts.Keep)
	}
}

// evict returns the coldest kept blocks to the system until at most keep bytes
// are left.
func (p *Pool) evict(keep int) {
	l := p.account
	for l.s.Pooled > keep {
		coldest := -1
		for c, s := range p.free {
			if len(s) > 0 && (coldest < 0 || s[0].freed < p.free[coldest][0].freed) {
				coldest = c
			}
		}
		s := p.free[coldest]
		h := s[0]
		copy(s, s[1:])
		s[len(s)-1] = nil
		p.free[coldest] = s[:len(s)-1]
		h.cleanup.Stop()
		l.s.Pooled -= len(h.memory)
		l.release(h.extent)
	}
}

// release returns e to the system. mu is held.
func (l *account) release(e *extent) {
	l.s.Mapped -= len(e.memory)
	if e.mapping != nil {
		unmap(e.mapping)
	}
	e.memory, e.mapping = nil, nil
}

// lost is the cleanup of a handle that nothing points at.
func (l *account) lost(e *extent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.asked >= 0 {
		l.s.Live -= e.asked
		l.s.Leaked++
	} else {
		l.s.Pooled -= len(e.memory)
	}
	l.release(e)
}

// Trim returns all kept blocks to the system.
func (p *Pool) Trim() {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.evict(0)
}

// Close returns all kept blocks to the system, and from now on every block at
// its Free. It may be called more than once.
func (p *Pool) Close() {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.closed = true
	p.evict(0)
}

// Stats returns the present state.
func (p *Pool) Stats() Stats {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	return p.account.s
}

// ResetPeak sets Stats.Peak to what is live now.
func (p *Pool) ResetPeak() {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.account.s.Peak = p.account.s.Live
}

// Len returns the size in bytes that was asked for.
func (b Block) Len() int { return b.size }

// As returns the block as elements of T, leaving out a remainder at the end.
// A stale or zero Block gives nil.
func As[T Element](b Block) []T {
	if b.h == nil {
		return nil
	}
	b.pool.account.mu.Lock()
	defer b.pool.account.mu.Unlock()
	if b.h.use != b.use {
		return nil
	}
	return view[T](b.h.memory[:b.size])
}

// classes is the number of size classes: four in each doubling, so that
// rounding wastes at most a fifth of a block.
const classes = 4 + 4*(bits.UintSize-8)

// class returns the index of the size class of n > 0 bytes and its size.
func class(n int) (index, size int) {
	if n <= 4*Line {
		q := (n + Line - 1) / Line
		return q - 1, q * Line
	}
	// 2^k is the next power of two and a quarter of 2^(k-1) the step.
	k := bits.Len(uint(n - 1))
	shift := k - 3
	q := (n-1)>>shift + 1
	return 4*(k-8) + q - 5, q << shift
}
