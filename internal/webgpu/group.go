package webgpu

import (
	"container/list"
	"encoding/binary"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Range is a part of a buffer.
type Range struct {
	Buffer     *Buffer
	Off, Bytes int64
}

// Group is buffers bound to a pipeline.
type Group struct {
	d *Device
	b *binding // nil once it is freed; d.mu guards it
}

// binding is a group of the host. Device.mu guards it.
type binding struct {
	groups   *groups
	key      string
	host     HostGroup
	k        *compiled
	mems     []*memory
	mappable []*memory     // the memories among mems that are Input or Output
	refs     int           // number of users: Groups, running submissions
	idle     *list.Element // in the list of unused groups
}

// Bind binds ranges to the bindings of a pipeline, in order. Off is a multiple of Limits.StorageAlign,
// or of UniformAlign. Bytes are rounded up to a multiple of 4, and 0 to 4; every buffer has room for
// that. A buffer that the kernel writes may be bound only once.
//
// Bind is fast for memory that was bound in the same way recently.
func (d *Device) Bind(p *Pipeline, r []Range) (*Group, error) {
	if p == nil {
		return nil, fmt.Errorf("no pipeline: %w", ErrInvalid)
	}
	if p.d != d {
		return nil, fmt.Errorf("the pipeline: %w", ErrForeign)
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	d.mu.Lock()
	defer d.mu.Unlock()
	k := p.k
	if k == nil {
		return nil, fmt.Errorf("the pipeline: %w", ErrClosed)
	}
	if len(r) != len(k.bindings) {
		return nil, fmt.Errorf("%d ranges for %d bindings: %w", len(r), len(k.bindings), ErrInvalid)
	}
	for i := range r {
		if err := d.bindable(k.bindings, r, i); err != nil {
			return nil, fmt.Errorf("binding %d: %w", i, err)
		}
	}
	var room [16 * 24]byte
	key := binary.LittleEndian.AppendUint64(room[:0], k.id)
	for i := range r {
		key = binary.LittleEndian.AppendUint64(key, r[i].Buffer.m.id)
		key = binary.LittleEndian.AppendUint64(key, uint64(r[i].Off))
		key = binary.LittleEndian.AppendUint64(key, uint64(roundUp(r[i].Bytes)))
	}
	b := d.groups.all[string(key)]
	if b == nil {
		ranges := make([]HostRange, len(r))
		for i := range r {
			ranges[i] = HostRange{r[i].Buffer.m.host, r[i].Off, roundUp(r[i].Bytes)}
		}
		host, err := d.host.NewGroup(k.host, ranges)
		if err != nil {
			return nil, d.hosted(err)
		}
		d.stats.grouped.Add(1)
		b = d.groups.add(string(key), host, k, r)
	}
	d.holdGroup(b)
	return &Group{d, b}, nil
}

// bindable checks a range.
func (d *Device) bindable(kinds []BindingKind, ranges []Range, i int) error {
	r := &ranges[i]
	if err := r.Buffer.usable(d); err != nil {
		return err
	}
	usage, limit, align := Storage, d.adapter.Binding, d.adapter.StorageAlign
	if kinds[i] == Block {
		usage, limit, align = Uniform, d.adapter.UniformBytes, d.adapter.UniformAlign
	}
	if (r.Buffer.usage == Uniform) != (usage == Uniform) {
		return fmt.Errorf("the buffer is for another usage: %w", ErrInvalid)
	}
	if r.Off < 0 || r.Bytes < 0 || r.Bytes > r.Buffer.bytes || r.Off > r.Buffer.room()-roundUp(r.Bytes) {
		return fmt.Errorf("%d bytes at %d of a buffer of %d: %w", r.Bytes, r.Off, r.Buffer.bytes, ErrInvalid)
	}
	if r.Off%max(align, 4) != 0 {
		return fmt.Errorf("offset %d is not a multiple of %d: %w", r.Off, align, ErrInvalid)
	}
	if roundUp(r.Bytes) > limit {
		return fmt.Errorf("%d bytes, of %d: %w", r.Bytes, limit, ErrLimit)
	}
	if kinds[i] != ReadWrite {
		return nil
	}
	for j := range ranges {
		if j != i && ranges[j].Buffer == r.Buffer {
			return fmt.Errorf("its buffer, which the kernel writes, is binding %d too: %w", j, ErrInvalid)
		}
	}
	return nil
}

// usable checks that a buffer belongs to d and is not freed. The caller holds Device.mu.
func (b *Buffer) usable(d *Device) error {
	switch {
	case b == nil:
		return fmt.Errorf("no buffer: %w", ErrInvalid)
	case b.d != d:
		return fmt.Errorf("the buffer: %w", ErrForeign)
	case b.m == nil:
		return fmt.Errorf("the buffer: %w", ErrClosed)
	}
	return nil
}

// Free ends the use of the group. Running submissions that use it still complete.
func (g *Group) Free() {
	if g == nil {
		return
	}
	d := g.d
	d.hostMu.RLock()
	defer d.hostMu.RUnlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if g.b == nil || d.closed {
		return
	}
	b := g.b
	g.b = nil
	d.dropGroup(b)
}

// holdGroup counts a use of b, and for the first use also uses of the memory that it refers to.
func (d *Device) holdGroup(b *binding) {
	if b.refs++; b.refs > 1 {
		return
	}
	if b.idle != nil {
		d.groups.idle.Remove(b.idle)
		b.idle = nil
	}
	d.pipelines.hold(b.k)
	for _, m := range b.mems {
		m.refs++
	}
}

// dropGroup ends a use of b.
func (d *Device) dropGroup(b *binding) {
	if b.refs--; b.refs > 0 {
		return
	}
	b.idle = d.groups.idle.PushFront(b)
	for d.groups.idle.Len() > maxIdleGroups {
		d.groups.idle.Back().Value.(*binding).free()
	}
	for _, m := range b.mems {
		d.memory.drop(m)
	}
	d.pipelines.drop(b.k)
}

// groups are the groups of a device. Device.mu guards them.
type groups struct {
	all  map[string]*binding
	idle list.List // of *binding, the last used first
}

// maxIdleGroups is the largest number of cached groups.
const maxIdleGroups = 1024

func (g *groups) init() { g.all = map[string]*binding{} }

func (g *groups) add(key string, host HostGroup, k *compiled, r []Range) *binding {
	b := &binding{groups: g, key: key, host: host, k: k}
	for i := range r {
		m := r[i].Buffer.m
		b.mems = append(b.mems, m)
		if m.usage >= Input {
			b.mappable = append(b.mappable, m)
		}
		if m.used == nil {
			m.used = map[*binding]bool{}
		}
		m.used[b] = true
	}
	k.groups[b] = true
	g.all[key] = b
	return b
}

// free frees an unused group.
func (b *binding) free() {
	if b.idle != nil {
		b.groups.idle.Remove(b.idle)
		b.idle = nil
	}
	delete(b.groups.all, b.key)
	delete(b.k.groups, b)
	for _, m := range b.mems {
		delete(m.used, b)
	}
	b.host.Release()
}

func (g *groups) free() {
	for _, b := range g.all {
		b.host.Release()
	}
	g.init()
	g.idle.Init()
}
