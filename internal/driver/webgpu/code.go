package webgpu

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/errtree"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/wgsl"
)

// kernelCache keeps printed and compiled kernels, shared by all programs. It keeps a limited number
// of kernels that no executable uses.
type kernelCache struct {
	d *device

	mu     sync.Mutex
	closed bool
	byKey  map[codeKey]*code
	idle   list.List // of *code, the most recently used first
}

// codeKey identifies the source of a kernel.
type codeKey struct {
	p       *ir.Program
	lengths uint64 // mask of the bindings whose length is a parameter
	// trusted programs make no access out of bounds and terminate.
	trusted bool
}

// code is a compiled kernel.
type code struct {
	key      codeKey
	pipeline *gpu.Pipeline
	written  []bool // indexed by binding
	params   bool   // the kernel has parameters
	bytes    int64
	blocks   []wgsl.Block // the uniform buffers of the parameters

	ready chan struct{} // closed when compilation has ended, with err set if it failed
	err   error
	users int           // under kernelCache.mu; it includes the user that compiles it
	at    *list.Element // in kernelCache.idle, if there are no users
}

// maxIdle bounds the number of unused kernels.
const maxIdle = 1024

// get returns a compiled kernel and adds the caller to its users. Compilation cannot be cancelled,
// and takes minutes for some texts: a caller whose context ends does not wait for it.
func (c *kernelCache) get(ctx context.Context, key codeKey) (*code, error) {
	c.mu.Lock()
	k := c.byKey[key]
	if k == nil {
		if c.closed {
			c.mu.Unlock()
			return nil, driver.ErrClosed
		}
		if c.byKey == nil {
			c.byKey = make(map[codeKey]*code)
		}
		k = &code{key: key, ready: make(chan struct{}), users: 1}
		c.byKey[key] = k
		// Other callers with live contexts may wait for it.
		go c.make(context.WithoutCancel(ctx), k)
	}
	if k.at != nil {
		c.idle.Remove(k.at)
		k.at = nil
	}
	k.users++
	c.mu.Unlock()
	select {
	case <-k.ready:
	case <-ctx.Done():
		c.put(k)
		return nil, ctx.Err()
	}
	switch {
	case k.err == nil:
		return k, nil
	case key.p.Text != nil:
		return nil, k.err // the caller adds the name of the kernel's owner
	}
	return nil, fmt.Errorf("%s: %w", key.p.Name, k.err)
}

// make compiles k and then ends its own use of k.
func (c *kernelCache) make(ctx context.Context, k *code) {
	err := c.compile(ctx, k)
	c.mu.Lock()
	k.err = err
	close(k.ready)
	if err != nil && c.byKey[k.key] == k {
		delete(c.byKey, k.key) // a later attempt may succeed, for example if the device was out of memory
	}
	closed := c.closed
	c.mu.Unlock()
	if closed {
		k.pipeline.Free() // free could not do it during the compilation
	}
	c.put(k)
}

func (c *kernelCache) compile(ctx context.Context, k *code) error {
	p := k.key.p
	if k.key.lengths != 0 {
		p = withLengths(p, k.key.lengths)
	}
	printed := new(kernel.Kernel)
	printed.Programs = ir.Fixed{P: p}
	text, err := wgsl.Kernel(printed, c.d.textTarget(ctx, p))
	if errors.Is(err, kernel.ErrLimit) {
		return fmt.Errorf("%w: %w", driver.ErrLimit, err)
	}
	if err != nil {
		return err
	}
	for _, a := range text.Bindings {
		k.written = append(k.written, a == wgsl.ReadWrite)
	}
	if text.Params >= 0 {
		k.params, k.bytes, k.blocks = true, int64(text.ParamBytes), text.Blocks
	}
	k.pipeline, err = c.d.gpu.Compile(ctx, shaderOf(p, &text, k.key.trusted))
	if mistake, is := errtree.As[*wgsl.CompileError](err); is {
		if p.Text != nil && errors.Is(err, gpu.ErrLimit) {
			return fmt.Errorf("%w: %w", driver.ErrLimit, mistake)
		}
		if p.Text != nil {
			return mistake // the kernel is the user's
		}
		return fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
	}
	return translateError(err)
}

// shaderOf returns the compiled shader of a program.
func shaderOf(p *ir.Program, text *wgsl.Shader, trusted bool) *gpu.Shader {
	s := &gpu.Shader{Label: p.Name, Text: text.Text, Entry: text.Entry, Lanes: text.Local, Shared: uint64(text.SharedBytes), Trusted: trusted}
	for _, a := range text.Bindings {
		kind := gpu.ReadOnly
		if a == wgsl.ReadWrite {
			kind = gpu.ReadWrite
		}
		s.Bindings = append(s.Bindings, kind)
	}
	for range text.Blocks {
		s.Bindings = append(s.Bindings, gpu.Block)
	}
	return s
}

// put ends a use of k.
func (c *kernelCache) put(k *code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.users--; k.users > 0 || c.byKey[k.key] != k {
		return
	}
	k.at = c.idle.PushFront(k)
	for c.idle.Len() > maxIdle {
		old := c.idle.Remove(c.idle.Back()).(*code)
		old.at = nil
		delete(c.byKey, old.key)
		old.pipeline.Free()
	}
}

// free ends all uses and frees the kernels that are not being compiled.
func (c *kernelCache) free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.byKey {
		select {
		case <-k.ready:
			k.pipeline.Free()
		default: // it is being compiled without a user: make frees it
		}
	}
	c.closed, c.byKey = true, nil
	c.idle.Init()
}

// Compile implements [driver.Compiler].
func (d *device) Compile(ctx context.Context, p *ir.Program) error {
	if err := d.alive(ctx); err != nil {
		return err
	}
	k, err := d.kernels.get(ctx, codeKey{p: p})
	if err != nil {
		return err
	}
	d.kernels.put(k)
	return nil
}
