package webgpu

import (
	"errors"
	"math/bits"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Buffer is memory of a device.
type Buffer struct {
	d     *Device
	m     *memory // nil once it is freed; d.mu guards it
	bytes int64
	usage Usage
}

// memory is a buffer of the host, in use or cached for the next allocation of its size. Device.mu
// guards all of it.
type memory struct {
	host    HostBuffer
	id      uint64
	size    int64
	usage   Usage
	refs    int               // number of users: the Buffer, groups in use, running submissions
	idle    *memory           // the next unused memory of its size
	used    map[*binding]bool // groups that refer to it
	mapping hostMapping       // of Input and Output
}

// NewBuffer returns memory for Storage or Uniform with undefined contents. bytes must not be negative.
// The error wraps [ErrLimit] or [ErrOutOfMemory].
//
// Input is Storage for operands from the host, and Output is Storage for results for the host: if
// possible, [Device.Run] avoids the copies. Use them for small arrays, or arrays that kernels
// access once, because each access may cross the bus. Above some megabytes they are plain Storage.
func (d *Device) NewBuffer(bytes int64, u Usage) (*Buffer, error) {
	if u > Output || u == Upload || u == Readback || bytes < 0 {
		return nil, fmt.Errorf("%d bytes for usage %d: %w", bytes, u, ErrInvalid)
	}
	if u != Uniform && (!d.adapter.Mappable || bytes > maxMapped) {
		u = Storage
	}
	if limit := d.adapter.Buffer &^ 3; bytes > limit {
		return nil, fmt.Errorf("a buffer of %d bytes, of %d: %w", bytes, limit, ErrLimit)
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	m, err := d.take(bytes, u)
	if err != nil {
		return nil, err
	}
	return &Buffer{d, m, bytes, u}, nil
}

// take returns memory of at least this number of bytes, with one reference.
func (d *Device) take(bytes int64, u Usage) (*memory, error) {
	size := class(bytes, d.adapter.Buffer)
	d.mu.Lock()
	m := d.memory.reuse(size, u)
	d.mu.Unlock()
	if m != nil {
		return m, nil
	}
	host, err := d.host.NewBuffer(size, u)
	if errors.Is(err, ErrOutOfMemory) {
		// Free the cached memory and try again.
		d.mu.Lock()
		d.memory.shrink(0)
		d.mu.Unlock()
		host, err = d.host.NewBuffer(size, u)
	}
	if err != nil {
		return nil, fmt.Errorf("a buffer of %d bytes: %w", size, d.hosted(err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.memory.add(host, size, u), nil
}

// Bytes returns the requested size.
func (b *Buffer) Bytes() int64 { return b.bytes }

// room is the size that can be bound and copied.
func (b *Buffer) room() int64 { return roundUp(b.bytes) }

// roundUp rounds n bytes up to a multiple of 4, and 0 to 4.
func roundUp(n int64) int64 { return (max(n, 1) + 3) &^ 3 }

// Free frees the memory. Groups and submissions that use it keep it until they are done. The buffer
// must not be used otherwise.
func (b *Buffer) Free() {
	if b == nil {
		return
	}
	d := b.d
	d.hostMu.RLock()
	defer d.hostMu.RUnlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.m == nil || d.closed {
		return
	}
	m := b.m
	b.m = nil
	d.memory.drop(m)
}

// class returns the size of the allocation for a buffer of n bytes. There are few different sizes, so
// that memory can be reused: four in each octave, and sixteen for large buffers.
func class(n, limit int64) int64 {
	n = max(n, 256)
	shift := bits.Len64(uint64(n-1)) - 3
	if n > 16<<20 {
		shift -= 2
	}
	step := int64(1) << shift
	size := (n + step - 1) &^ (step - 1)
	if size > limit {
		return roundUp(n)
	}
	return size
}

// memoryPool caches unused buffers of the host.
type memoryPool struct {
	all             map[*memory]bool
	idle            map[poolKey]*memory
	last            uint64 // id
	used, usedBytes int64
	idleBytes       int64
}

type poolKey struct {
	size  int64
	usage Usage
}

// maxIdleBytes is the largest size of the cached memory.
const maxIdleBytes = 1 << 30

func (p *memoryPool) init() {
	p.all, p.idle = map[*memory]bool{}, map[poolKey]*memory{}
}

// reuse returns cached memory of exactly this size, or nil.
func (p *memoryPool) reuse(size int64, u Usage) *memory {
	m := p.idle[poolKey{size, u}]
	if m == nil {
		return nil
	}
	p.unlink(m)
	p.hold(m)
	return m
}

// unlink removes m, the first of its size, from the unused memory.
func (p *memoryPool) unlink(m *memory) {
	k := poolKey{m.size, m.usage}
	if m.idle == nil {
		delete(p.idle, k)
	} else {
		p.idle[k] = m.idle
	}
	m.idle = nil
	p.idleBytes -= m.size
}

func (p *memoryPool) add(host HostBuffer, size int64, u Usage) *memory {
	p.last++
	m := &memory{host: host, id: p.last, size: size, usage: u, mapping: hostMapping{mapped: u == Input}}
	p.all[m] = true
	p.hold(m)
	return m
}

// hold counts m as in use.
func (p *memoryPool) hold(m *memory) {
	m.refs = 1
	p.used++
	p.usedBytes += m.size
}

// drop ends one use of m.
func (p *memoryPool) drop(m *memory) {
	if m.refs--; m.refs > 0 {
		return
	}
	p.used--
	p.usedBytes -= m.size
	k := poolKey{m.size, m.usage}
	m.idle = p.idle[k]
	p.idle[k] = m
	p.idleBytes += m.size
	if p.idleBytes > maxIdleBytes {
		p.shrink(maxIdleBytes / 2)
	}
}

// shrink frees idle memory, the largest first, until no more than bytes are left.
func (p *memoryPool) shrink(bytes int64) {
	for p.idleBytes > bytes {
		var largest *memory
		for _, m := range p.idle {
			if largest == nil || m.size > largest.size {
				largest = m
			}
		}
		p.unlink(largest)
		p.discard(largest)
	}
}

// discard frees unused memory, and the groups that refer to it.
func (p *memoryPool) discard(m *memory) {
	for b := range m.used {
		b.free()
	}
	delete(p.all, m)
	m.host.Release()
}

func (p *memoryPool) free() {
	for m := range p.all {
		m.host.Release()
	}
	p.init()
	p.used, p.usedBytes, p.idleBytes = 0, 0, 0
}
