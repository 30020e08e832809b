package webgpu

import (
	"container/list"
	"context"
	"runtime"
	"unsafe"

	"github.com/rayo-go/rayo/internal/errtree"
	"github.com/rayo-go/rayo/internal/fmt"
)

// Pipeline is a compiled kernel. Equal shaders share one pipeline of the host.
type Pipeline struct {
	d *Device
	k *compiled // nil once it is freed; d.mu guards it
}

// compiled is a pipeline of the host that is compiled or being compiled.
type compiled struct {
	key      shaderKey
	id       uint64
	host     HostPipeline
	bindings []BindingKind
	ready    chan struct{} // closed when host or err is set
	err      error
	refs     int           // Pipelines, groups in use
	idle     *list.Element // in the list of unused pipelines
	groups   map[*binding]bool
}

// shaderKey identifies a shader.
type shaderKey struct {
	text, entry, bindings string
	trusted               bool
}

// Compile compiles a shader, or returns the cached pipeline. The error is a [*CompileError] for a
// mistake in the text, and wraps [ErrLimit] for a workgroup with too many lanes or too much memory.
func (d *Device) Compile(ctx context.Context, s *Shader) (*Pipeline, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.allows(s); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Label, err)
	}
	if err := s.sane(); err != nil {
		return nil, err
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	kinds := unsafe.String((*byte)(unsafe.Pointer(unsafe.SliceData(s.Bindings))), len(s.Bindings))
	key := shaderKey{s.Text, s.Entry, kinds, s.Trusted}
	d.mu.Lock()
	k := d.pipelines.all[key]
	if k == nil {
		own := *s
		own.Bindings = append([]BindingKind(nil), s.Bindings...)
		key.bindings = string([]byte(kinds))
		k = d.pipelines.add(key, own.Bindings)
		go d.compile(k, &own) // compile calls leave
	} else {
		d.leave()
	}
	d.pipelines.hold(k)
	d.mu.Unlock()
	select {
	case <-k.ready:
	case <-ctx.Done():
		d.dropPipeline(k)
		return nil, ctx.Err()
	case <-d.lost:
		d.dropPipeline(k)
		return nil, d.lostErr
	}
	if k.err != nil {
		d.dropPipeline(k)
		return nil, k.err
	}
	return &Pipeline{d, k}, nil
}

// compile makes the pipeline, which may take long.
func (d *Device) compile(k *compiled, s *Shader) {
	defer close(k.ready)
	defer d.leave()
	func() {
		defer recovered(&k.err)
		k.host, k.err = d.host.NewPipeline(s)
	}()
	k.err = d.hosted(k.err)
	if k.err != nil {
		if _, is := errtree.As[*CompileError](k.err); !is {
			k.err = fmt.Errorf("%s: %w", s.Label, k.err)
		}
		d.mu.Lock()
		delete(d.pipelines.all, k.key) // a later call may succeed
		d.mu.Unlock()
		return
	}
	d.stats.compiled.Add(1)
}

func (d *Device) dropPipeline(k *compiled) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pipelines.drop(k)
}

// allows checks limits that compilers do not check.
func (d *Device) allows(s *Shader) error {
	t := &d.adapter.Target
	lanes := uint64(1)
	for i, n := range s.Lanes {
		n = max(n, 1)
		if m := t.Limits.Size[i]; m > 0 && n > m {
			return fmt.Errorf("%d lanes along axis %d of a workgroup, of %d: %w", n, i, m, ErrLimit)
		}
		lanes *= uint64(n)
		if m := uint64(t.Limits.Invocations); m > 0 && lanes > m {
			return fmt.Errorf("%d lanes of a workgroup, of %d: %w", lanes, m, ErrLimit)
		}
	}
	if m := uint64(t.Limits.WorkgroupBytes); m > 0 && s.Shared > m {
		return fmt.Errorf("%d bytes of workgroup memory, of %d: %w", s.Shared, m, ErrLimit)
	}
	storage := 0
	for _, k := range s.Bindings {
		switch k {
		case ReadOnly, ReadWrite:
			storage++
		case Block:
		default:
			return fmt.Errorf("a binding of kind %d: %w", k, ErrInvalid)
		}
	}
	if m := t.Limits.Bindings; m > 0 && storage > m {
		return fmt.Errorf("%d buffers, of %d: %w", storage, m, ErrLimit)
	}
	if n := len(s.Bindings) - storage; n > maxBlocks {
		return fmt.Errorf("%d blocks of parameters, of %d: %w", n, maxBlocks, ErrLimit)
	}
	return nil
}

// maxBlocks is the number of uniform buffers that every adapter allows.
const maxBlocks = 12

// Free ends the use of the pipeline by the caller of Compile.
func (p *Pipeline) Free() {
	if p == nil {
		return
	}
	d := p.d
	d.hostMu.RLock()
	defer d.hostMu.RUnlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.k == nil || d.closed {
		return
	}
	d.pipelines.drop(p.k)
	p.k = nil
}

// pipelines are the pipelines of a device. Device.mu guards them.
type pipelines struct {
	all  map[shaderKey]*compiled
	idle list.List // of *compiled, the last used first
	last uint64
}

// maxIdlePipelines is the largest number of cached pipelines. Some drivers use half a megabyte for
// each.
const maxIdlePipelines = 256

func (p *pipelines) init() { p.all = map[shaderKey]*compiled{} }

func (p *pipelines) add(key shaderKey, bindings []BindingKind) *compiled {
	p.last++
	k := &compiled{key: key, id: p.last, bindings: bindings, ready: make(chan struct{}), groups: map[*binding]bool{}}
	p.all[key] = k
	return k
}

func (p *pipelines) hold(k *compiled) {
	if k.idle != nil {
		p.idle.Remove(k.idle)
		k.idle = nil
	}
	k.refs++
}

func (p *pipelines) drop(k *compiled) {
	if k.refs--; k.refs > 0 || p.all[k.key] != k {
		return
	}
	k.idle = p.idle.PushFront(k)
	for p.idle.Len() > maxIdlePipelines {
		last := p.idle.Back()
		k := last.Value.(*compiled)
		select {
		case <-k.ready:
		default:
			return // it is still being compiled: the next call frees it
		}
		p.idle.Remove(last)
		k.idle = nil
		delete(p.all, k.key)
		for b := range k.groups {
			b.free()
		}
		if k.host != nil {
			k.host.Release()
		}
	}
}

func (p *pipelines) free() {
	for _, k := range p.all {
		if k.host != nil {
			k.host.Release()
		}
	}
	p.init()
	p.idle.Init()
}

// recovered is deferred in calls of a host, which may panic.
func recovered(err *error) {
	if r := recover(); r != nil {
		stack := make([]byte, 4096)
		*err = fmt.Errorf("internal error: %v\n%s", r, stack[:runtime.Stack(stack, false)])
	}
}
