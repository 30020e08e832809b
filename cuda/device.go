package cuda

import (
	"sync"

	"github.com/rayo-go/rayo/internal/workers"
)

// A Device is an open device: its primary context, and everything that was made
// from it. It is safe for concurrent use from any goroutine: a call that needs
// the context binds it to the thread that it happens to run on.
//
// Close frees all of it. Open may be called more than once for a device; the
// Devices share one context, and its loss.
type Device struct {
	prim  *primary
	opts  options
	guard guard // counts running calls and living children

	mu       sync.Mutex
	closing  bool
	children map[child]struct{}
	pools    map[*pool]struct{}
	own      *pool // memory of no stream
	done     chan struct{}

	copiers sync.Once // makes threads
	threads *workers.Pool
}

// A child is something made from a device that its Close closes.
type child interface{ Close() error }

type options struct {
	flags   uintptr
	sync    bool
	cubins  string
	noCache bool
}

// An Option changes how [Open] opens a device.
type Option func(*options)

// Scheduling says how a thread waits for the device.
type Scheduling uintptr

// Ways of waiting. Automatic lets the driver choose by the number of processors.
const (
	Automatic Scheduling = 0
	Spin      Scheduling = 1 // poll: fastest to notice, one core busy
	Yield     Scheduling = 2 // poll, and let other threads run
	Block     Scheduling = 4 // sleep until the device interrupts
)

// WithScheduling sets how threads wait in [Stream.Synchronize] and the like. It
// has no effect on a context that is already in use.
func WithScheduling(s Scheduling) Option { return func(o *options) { o.flags = uintptr(s) } }

// WithSynchronousLaunches makes each launch wait for its kernel, so that the
// error of a kernel that fails names it. It is slow.
func WithSynchronousLaunches() Option { return func(o *options) { o.sync = true } }

// WithCubinCache sets the folder in which compiled modules are kept between
// processes, instead of one in the user's cache directory. The empty name turns
// that off.
func WithCubinCache(dir string) Option {
	return func(o *options) { o.cubins, o.noCache = dir, dir == "" }
}

// Open opens the device with an ordinal, counted from 0; [Devices] lists them. The first use of a
// device takes a few hundred milliseconds.
//
// # Errors
//   - [ErrNoDriver] and [ErrDriverTooOld] if the driver cannot be used.
//   - [ErrNoDevice] if it sees no such device.
//   - [ErrOutOfMemory] if the device is full.
//   - [ErrDeviceLost] if the device was lost, and not all its Devices are closed.
func Open(ordinal int, opts ...Option) (*Device, error) { return system.open(ordinal, opts...) }

func (d *driver) open(ordinal int, opts ...Option) (*Device, error) {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	p, err := d.retain(ordinal, o.flags)
	if err != nil {
		return nil, err
	}
	dev := &Device{prim: p, opts: o, children: map[child]struct{}{}, pools: map[*pool]struct{}{}, done: make(chan struct{})}
	dev.own = newPool(dev, nil)
	dev.pools[dev.own] = struct{}{}
	return dev, nil
}

// Info returns the description of the device.
func (d *Device) Info() Info {
	if d == nil || d.prim == nil {
		return Info{}
	}
	return d.prim.info
}

// Err returns the error after which the device was lost, or nil.
func (d *Device) Err() error {
	if d == nil || d.prim == nil {
		return closed("device")
	}
	if lost := d.prim.lost.Load(); lost != nil {
		return lost
	}
	return nil
}

// Attribute returns an attribute of the device.
func (d *Device) Attribute(a Attribute) (int, error) {
	f, err := d.enter()
	if err != nil {
		return 0, err
	}
	defer d.exit(f)
	return d.prim.drv.attribute(f, d.prim.dev, a)
}

// MemInfo returns the free and the total memory of the device in bytes. Memory
// that this process keeps for later allocations is not free.
func (d *Device) MemInfo() (free, total int64, err error) {
	f, err := d.enter()
	if err != nil {
		return 0, 0, err
	}
	defer d.exit(f)
	f.Args[0], f.Args[1] = f.out(0), f.out(1)
	err = d.prim.call(f, cuMemGetInfo)
	return int64(f.Out[0]), int64(f.Out[1]), err
}

// Synchronize waits for everything that was submitted to the device, in all
// streams of its context.
func (d *Device) Synchronize() error {
	f, err := d.enter()
	if err != nil {
		return err
	}
	defer d.exit(f)
	return d.prim.call(f, cuCtxSynchronize)
}

// Close waits for calls that are running, then frees all memory and closes
// streams, events, modules and graphs of this Device. Using any of them
// afterwards is [ErrClosed]. Closing again does nothing.
func (d *Device) Close() error {
	if d == nil || d.prim == nil {
		return nil
	}
	d.mu.Lock()
	d.closing = true
	var all []child
	for c := range d.children {
		all = append(all, c)
	}
	d.mu.Unlock()
	idle := d.guard.close()
	for _, c := range all {
		_ = c.Close()
	}
	if idle {
		d.finish()
	}
	<-d.done
	return nil
}

// finish frees the remaining resources when no call uses the device any more.
func (d *Device) finish() {
	for p := range d.pools {
		p.freeAll()
	}
	clear(d.pools)
	if d.threads != nil {
		d.threads.Close()
	}
	d.prim.release()
	close(d.done)
}

// enter begins a call and returns a frame for it, unless the device is closed.
func (d *Device) enter() (*frame, error) {
	if d == nil || d.prim == nil || !d.guard.enter() {
		return nil, closed("device")
	}
	return newFrame(), nil
}

// exit ends a call.
func (d *Device) exit(f *frame) {
	f.release()
	d.leave()
}

// leave ends what guard.enter began.
func (d *Device) leave() {
	if d.guard.leave() {
		d.finish()
	}
}

// adopt makes c a child of the device, which lives until orphan. The caller has entered the guard;
// the child keeps it entered. If the device has been closed in the meantime, the child is closed at
// once.
func (d *Device) adopt(c child) error {
	d.mu.Lock()
	if d.closing {
		d.mu.Unlock()
		_ = c.Close()
		return closed("device")
	}
	d.children[c] = struct{}{}
	d.mu.Unlock()
	return nil
}

// orphan ends the life of a child.
func (d *Device) orphan(c child) {
	d.mu.Lock()
	delete(d.children, c)
	d.mu.Unlock()
	d.leave()
}
