package memory

import (
	"math/bits"
	"runtime"
	"sync"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Options bound a Pool. The zero value keeps every freed block and sets no
// limit.
type Options struct {
	// Keep is the largest number of bytes of freed blocks that the pool keeps for reuse. It
	// returns the least recently used blocks to the system first. 0 means that it keeps all
	// blocks, and a negative number that it keeps none.
	Keep int
	// Limit is the largest number of bytes in use at once. 0 means no limit.
	Limit int
}

// A Pool allocates Blocks, and keeps freed blocks for later blocks of about the same
// size. All methods are safe for concurrent use.
//
// Blocks that become unreachable without Free return to the system after a garbage
// collection; Stats.Leaked counts them. So do the blocks that an unreachable pool has
// kept.
type Pool struct {
	opts    Options
	account *account

	// account.mu protects these fields.
	free   [classes][]*handle // stacks: the block that was freed last is reused first
	tick   uint64             // the number of frees, which orders blocks by the time of their last use
	closed bool
}

// Stats has the numbers of a Pool. Live, Peak, Pooled and Mapped are in bytes.
type Stats struct {
	Live   int // allocated and not yet freed
	Peak   int // largest Live since NewPool or ResetPeak
	Pooled int // freed and kept for reuse
	Mapped int // taken from the system: Live, Pooled, and rounding to classes
	Fresh  int // calls of Get that took memory from the system
	Reused int // calls of Get that took a kept block
	Leaked int // blocks that became unreachable without Free
}

// account holds the statistics that cleanups of lost blocks update. It must not refer to
// the pool's free lists; otherwise an unreachable pool would never be freed.
type account struct {
	mu sync.Mutex
	s  Stats
}

// Blocks and free lists point to a handle. When nothing points to it any more, its
// cleanup returns the memory to the system.
type handle struct{ *extent }

// An extent is one piece of memory. It must not point to its handle, which would then
// never be cleaned up.
type extent struct {
	memory  []byte // memory of the size of its class
	mapping []byte // the mapping to unmap; nil for Go memory
	asked   int    // the requested bytes of the current block; -1 in a free list
	use     uint32 // the number of uses, by which a stale Block is recognised
	freed   uint64 // Pool.tick at the last Free
	cleanup runtime.Cleanup
}

// A Block is memory from a Pool. The zero Block has no memory.
//
// Views of a block (see [As]) are valid until it is freed, and do not keep it
// reachable: keep the Block while you use a view, and end with Free or
// runtime.KeepAlive. Copies of a Block have the same memory.
type Block struct {
	pool *Pool
	h    *handle
	use  uint32
	size int
}

// NewPool returns an empty pool.
func NewPool(o Options) *Pool { return &Pool{opts: o, account: new(account)} }

// Get returns a block of size bytes with undefined contents.
//
// # Errors
//   - [ErrOutOfMemory] if size is negative or exceeds the rest of the pool's Limit, or
//     if the system refuses it even after the pool has returned all kept blocks.
func (p *Pool) Get(size int) (Block, error) {
	if size < 0 || size > largest {
		return Block{}, fmt.Errorf("a block of %d bytes: the size must be from 0 to %d: %w", size, int64(largest), ErrOutOfMemory)
	}
	if size == 0 {
		return Block{}, nil
	}
	l := p.account
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.opts.Limit > 0 && size > p.opts.Limit-l.s.Live {
		return Block{}, fmt.Errorf("a block of %d bytes, in addition to %d bytes in use, exceeds the limit of %d bytes: %w", size, l.s.Live, p.opts.Limit, ErrOutOfMemory)
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

// fresh asks the system for memory. If it refuses, fresh returns all kept blocks to the system
// and asks again.
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

// evict returns the least recently used kept blocks to the system until at most keep
// bytes are left.
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

// release returns e to the system. The caller must hold mu.
func (l *account) release(e *extent) {
	l.s.Mapped -= len(e.memory)
	if e.mapping != nil {
		unmap(e.mapping)
	}
	e.memory, e.mapping = nil, nil
}

// lost is the cleanup of an unreachable handle.
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

// Close returns all kept blocks to the system. After it, Free returns blocks to the system
// at once. Close may be called more than once.
func (p *Pool) Close() {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.closed = true
	p.evict(0)
}

// Stats returns the current numbers.
func (p *Pool) Stats() Stats {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	return p.account.s
}

// ResetPeak sets Stats.Peak to Stats.Live.
func (p *Pool) ResetPeak() {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.account.s.Peak = p.account.s.Live
}

// Len returns the requested size in bytes.
func (b Block) Len() int { return b.size }

// As returns the block as a slice of T. It leaves out a remainder at the end that is shorter
// than an element. For a stale or zero Block it returns nil.
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

// classes is the number of size classes. There are four classes between powers of two, so
// that rounding wastes at most a fifth of a block.
const classes = 4 + 4*(bits.UintSize-8)

// class returns the index of the size class of n > 0 bytes and its size.
func class(n int) (index, size int) {
	if n <= 4*Line {
		q := (n + Line - 1) / Line
		return q - 1, q * Line
	}
	// 2^k is the next power of two, and the step between classes is a quarter of 2^(k-1).
	k := bits.Len(uint(n - 1))
	shift := k - 3
	q := (n-1)>>shift + 1
	return 4*(k-8) + q - 5, q << shift
}
