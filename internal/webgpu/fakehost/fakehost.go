// Package fakehost is a host of package webgpu in Go's memory, for tests: kernels
// are functions of Go, and the device can hang, be lost, run out of memory or fail
// in any call. It is stricter than a library: what breaks the rules of
// [webgpu.HostDevice] is kept as a violation.
package fakehost

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/wgsl"
)

// Kernel computes a dispatch. The buffers are those bound, in order.
type Kernel func(grid [3]uint32, buffers [][]byte)

// Host is the host. Its fields are set before it is used.
type Host struct {
	List    []webgpu.Adapter  // a discrete GPU, if it is empty
	Kernels map[string]Kernel // by Shader.Entry; others are a CompileError
	Memory  int64             // bytes that a device has, 0 for no bound
	// Fail, if not nil, is called in every call with its name; the call returns its error.
	Fail func(call string) error
	// Delay is how long the device takes for each submission.
	Delay time.Duration
	// Remote makes devices that are a webgpu.Remote: Fail is asked for "Complete" when a
	// submission ends too.
	Remote bool

	mu      sync.Mutex
	devices []*Device
}

// Adapter is the one that a host without a List has.
func Adapter() webgpu.Adapter {
	return webgpu.Adapter{
		Name: "fake GPU", Driver: "none", API: "none", Type: webgpu.Discrete, Clocks: true, Tick: 2, Mappable: true,
		Target: wgsl.Target{Limits: wgsl.Limits{Invocations: 256, Size: [3]uint32{256, 256, 64}, WorkgroupBytes: 16 << 10, Bindings: 8, Grid: 65535}},
		Limits: webgpu.Limits{Buffer: 1 << 30, Binding: 128 << 20, UniformBytes: 64 << 10, StorageAlign: 256, UniformAlign: 256},
	}
}

// Name implements [webgpu.Host].
func (h *Host) Name() string { return "fake" }

func (h *Host) fail(call string) error {
	if h.Fail == nil {
		return nil
	}
	return h.Fail(call)
}

// Adapters implements [webgpu.Host].
func (h *Host) Adapters(ctx context.Context) ([]webgpu.Adapter, error) {
	if err := h.fail("Adapters"); err != nil {
		return nil, err
	}
	if len(h.List) == 0 {
		return []webgpu.Adapter{Adapter()}, nil
	}
	return append([]webgpu.Adapter(nil), h.List...), nil
}

// Open implements [webgpu.Host].
func (h *Host) Open(ctx context.Context, index int) (webgpu.HostDevice, error) {
	if err := h.fail("Open"); err != nil {
		return nil, err
	}
	l, err := h.Adapters(ctx)
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= len(l) {
		return nil, fmt.Errorf("adapter %d of %d: %w", index, len(l), webgpu.ErrNoAdapter)
	}
	d := &Device{host: h, adapter: l[index], lost: make(chan struct{}), ended: make(chan struct{})}
	d.changed = sync.NewCond(&d.mu)
	go d.run()
	h.mu.Lock()
	h.devices = append(h.devices, d)
	h.mu.Unlock()
	if h.Remote {
		d.adapter.Mappable = false
		return remote{d}, nil
	}
	return d, nil
}

// Devices returns the opened devices.
func (h *Host) Devices() []*Device {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*Device(nil), h.devices...)
}

// Device is an open device.
type Device struct {
	host    *Host
	adapter webgpu.Adapter
	lost    chan struct{}
	ended   chan struct{}

	mu         sync.Mutex
	changed    *sync.Cond
	queue      []submission
	recent     [16]submission // by ticket
	again      int
	submitted  uint64
	done       uint64
	hanging    bool
	failure    error
	closed     bool
	bytes      int64
	buffers    int
	others     int // pipelines and groups
	clock      uint64
	violations []string
	notify     func(ticket uint64, err error) // of a Remote
}

type submission struct {
	write    func() // of a Remote: the work to do instead of commands
	commands []webgpu.HostCommand
	remap    []*buffer
	ticket   uint64
}

// Hang stops the device, or lets it go on.
func (d *Device) Hang(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hanging = on
	d.changed.Broadcast()
}

// Lose makes the device one that is lost.
func (d *Device) Lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil {
		d.failure = fmt.Errorf("%w: the test took it", webgpu.ErrDeviceLost)
		close(d.lost)
		d.changed.Broadcast()
		if d.notify != nil {
			go d.notify(0, d.failure)
		}
	}
}

// Violations returns the violations of the host's rules.
func (d *Device) Violations() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.violations...)
}

// Alive returns how many buffers, their bytes, and how many pipelines and groups
// have not been released.
func (d *Device) Alive() (buffers int, bytes int64, others int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buffers, d.bytes, d.others
}

// Closed reports whether the device has been closed.
func (d *Device) Closed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// violate keeps a violation. d.mu is held.
func (d *Device) violate(format string, args ...any) {
	if len(d.violations) < 100 {
		d.violations = append(d.violations, fmt.Sprintf(format, args...))
	}
}

// call begins a call of that name.
func (d *Device) call(name string) error {
	if d.closed {
		d.violate("%s after Close", name)
		return webgpu.ErrClosed
	}
	if err := d.host.fail(name); err != nil {
		return err
	}
	return d.failure
}

// Adapter implements [webgpu.HostDevice].
func (d *Device) Adapter() *webgpu.Adapter { return &d.adapter }

// Lost implements [webgpu.HostDevice].
func (d *Device) Lost() <-chan struct{} { return d.lost }

// Poll implements [webgpu.HostDevice].
func (d *Device) Poll() (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("Poll"); err != nil {
		return 0, err
	}
	return d.done, nil
}

// Again implements [webgpu.Repeater].
func (d *Device) Again(ticket uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		d.violate("Again after Close")
	}
	d.again++
	s := &d.recent[ticket%uint64(len(d.recent))]
	if s.ticket != ticket {
		return // others have submitted much meanwhile
	}
	for i := range s.commands {
		if gone(&s.commands[i]) {
			d.violate("Again of a submission whose command %d uses what is released", i)
		}
	}
}

// Agains returns how often Again was called.
func (d *Device) Agains() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.again
}

// Close implements [webgpu.HostDevice].
func (d *Device) Close() {
	d.mu.Lock()
	if d.closed {
		d.violate("Close after Close")
	}
	if len(d.queue) > 0 && d.failure == nil {
		d.violate("Close with %d submissions under way", len(d.queue))
	}
	if d.buffers != 0 || d.others != 0 {
		d.violate("Close with %d buffers, %d pipelines and groups", d.buffers, d.others)
	}
	d.closed = true
	d.changed.Broadcast()
	d.mu.Unlock()
	<-d.ended
}
