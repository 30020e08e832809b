package engine

import (
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

// Buffer is device memory that outlives a submission. It is safe for
// concurrent use.
type Buffer struct {
	eng   *Engine
	mem   driver.Memory
	typ   op.DType
	shape op.Shape
	bytes int64
	// refs counts the users of the memory: the owner, until Close, and submissions. The last user
	// frees it.
	refs   atomic.Int64
	closed atomic.Bool
}

// NewBuffer allocates uninitialised device memory for an array.
func (e *Engine) NewBuffer(t op.DType, shape op.Shape) (*Buffer, error) {
	if err := e.Err(); err != nil {
		return nil, err
	}
	n, err := t.Bytes(shape)
	if err != nil {
		return nil, err
	}
	if t.Size() == 0 && !t.Quantized() {
		return nil, fmt.Errorf("buffer of %v: %w", t, driver.ErrUnsupported)
	}
	if len(shape) > e.lim.MaxRank {
		return nil, fmt.Errorf("the shape has %d extents: at most %d are supported: %w", len(shape), e.lim.MaxRank, driver.ErrLimit)
	}
	bytes := int64(n)
	if t.Quantized() {
		bytes = (bytes + 3) &^ 3 // copies move words
	}
	if bytes > e.lim.MaxBuffer {
		return nil, fmt.Errorf("buffer of %d bytes: at most %d are supported: %w", bytes, e.lim.MaxBuffer, driver.ErrLimit)
	}
	if !e.enter() {
		return nil, e.Err()
	}
	defer e.exit()
	mem, err := e.dev.Alloc(bytes)
	if err != nil {
		return nil, e.checkLost(err)
	}
	b := &Buffer{eng: e, mem: mem, typ: t, shape: append(op.Shape{}, shape...), bytes: bytes}
	b.refs.Store(1)
	e.mu.Lock()
	e.buffers[b] = struct{}{}
	e.mu.Unlock()
	e.count.Add(1)
	live := e.live.Add(bytes)
	for peak := e.peak.Load(); live > peak && !e.peak.CompareAndSwap(peak, live); {
		peak = e.peak.Load()
	}
	return b, nil
}

// Engine returns the engine that owns the memory.
func (b *Buffer) Engine() *Engine { return b.eng }

// Type returns the element type.
func (b *Buffer) Type() op.DType { return b.typ }

// Shape returns the extents.
func (b *Buffer) Shape() op.Shape { return b.shape }

// Bytes returns the size in memory.
func (b *Buffer) Bytes() int64 { return b.bytes }

// Close frees the memory once no submission uses it. Calls after the first do nothing.
func (b *Buffer) Close() error {
	if b.closed.CompareAndSwap(false, true) {
		b.release()
	}
	return nil
}

// retain adds a submission to the users. It returns false if the buffer is closed.
func (b *Buffer) retain() bool {
	for {
		n := b.refs.Load()
		if n == 0 || b.closed.Load() {
			return false
		}
		if b.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (b *Buffer) release() {
	if b.refs.Add(-1) != 0 {
		return
	}
	e := b.eng
	e.mu.Lock()
	_, mine := e.buffers[b]
	delete(e.buffers, b)
	e.mu.Unlock()
	if mine {
		e.count.Add(-1)
		e.live.Add(-b.bytes)
		b.mem.Free()
	}
}

// drop frees the memory of a buffer that is still open when its engine closes.
func (b *Buffer) drop() {
	b.closed.Store(true)
	b.eng.count.Add(-1)
	b.eng.live.Add(-b.bytes)
	b.mem.Free()
}
