// Package device runs numeric operations on CPUs and GPUs. [Open] returns the best device
// of the machine. Its methods compute one operation on slices. Use package batch to record
// many operations and run them in one submission.
//
//	dev, err := device.Open(ctx)
//	if err != nil { ... }
//	defer dev.Close()
//	err = dev.Relu(ctx, dst, x)
//
// The destination is the first argument after the context, as in the Go function copy. Reductions
// of a whole slice return a number instead: s, err := dev.Sum(ctx, x).
//
// A synchronous call does not access its slices after it has returned, even if it was
// cancelled. An asynchronous call (…Async) owns its slices until its [Pending] is done.
// Cancelling a context ends the waiting, but work that a GPU has begun still finishes.
//
// For elementwise and row operations dst may be the same slice as an operand. Every other
// overlap of dst with an operand is [ErrOverlap].
//
// # Errors
//
// The methods of operations return [ErrShape] if lengths or shapes do not match,
// [ErrOverlap], [ErrUnsupported] if the device does not have the operation, [ErrLimit] and
// [ErrOutOfMemory] if the operands are too large for the device, [ErrClosed] after
// [Device.Close], [ErrDeviceLost] if the device has failed, and the error of ctx. Each error
// is an [*OpError] that wraps one of these, for errors.Is.
package device

//go:generate go run github.com/rayo-go/rayo/internal/gen

import (
	"context"
	"errors"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/fmt"
)

// Device is an open device. It is safe for concurrent use by any number of goroutines. The methods
// of the zero Device return [ErrNoDevice].
type Device struct {
	eng *engine.Engine
	// A pinned device runs all calls itself. Other devices may send a one-shot call to the CPU if
	// measurements have shown that this is faster.
	pinned  bool
	route   *engine.Router // nil if the device is pinned or there is no other device
	refused []Refusal
}

// Refusal says why Open did not use a device.
type Refusal struct {
	Kind Kind
	Err  error
}

// Open returns the best device of the machine: CUDA, otherwise WebGPU, otherwise the CPU.
// RAYO_DEVICE=kind:index, or kind:name with a part of a name, selects another device and pins it,
// and so do [Require] and [WithName].
//
// Open refuses a device that gives wrong results in a short self-test: see [Device.Refused]. Other operations are
// tested before their first use on the device. In pages this includes functions (exp, tanh, gelu and others): if a
// device computes them incorrectly, calls, batches and kernels that use functions return [ErrUnsupported].
//
// # Errors
//   - [ErrNoDevice] if the required device is not available; the error has the reason.
//   - the error of ctx.
func Open(ctx context.Context, opts ...Option) (*Device, error) {
	var c config
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(&c); err != nil {
			return nil, err
		}
	}
	if err := c.environment(); err != nil {
		return nil, err
	}
	if c.log == nil {
		c.log = func(context.Context, string, ...any) {}
	}
	if err := driver.Alive(ctx); err != nil {
		return nil, err
	}
	var refused []Refusal
	for _, k := range driver.Kinds() {
		if c.kind != k && (c.kind != 0 || k == Wasm) {
			continue
		}
		drv, err := open(ctx, k, &c)
		if err == nil {
			err = selfTest(ctx, drv)
		}
		if err != nil {
			refused = append(refused, Refusal{k, err})
			c.log(ctx, "device refused", "kind", k.String(), "reason", err)
			continue
		}
		d := &Device{eng: drv, pinned: c.pinned, refused: refused}
		if !c.pinned && k != CPU {
			d.addRoute(ctx, &c)
		}
		c.log(ctx, "device opened", "device", d.String(), "name", d.Info().Name, "detail", d.Info().Detail)
		return d, nil
	}
	return nil, &noDevice{refused}
}

// open opens one device of kind k.
func open(ctx context.Context, k Kind, c *config) (*engine.Engine, error) {
	f := openers[k]
	if f == nil && k == Wasm {
		return nil, fmt.Errorf("not part of this build: build the program with -tags wazero: %w", ErrUnsupported)
	}
	if f == nil {
		return nil, fmt.Errorf("not part of this build: %w", ErrUnsupported)
	}
	drv, err := f(ctx, c)
	if err != nil {
		return nil, err
	}
	return engine.New(drv), nil
}

// opener opens a device of one kind. Files with build constraints enter the drivers of a build into
// openers.
type opener func(ctx context.Context, c *config) (driver.Device, error)

var openers = map[Kind]opener{CPU: openCPU}

// addRoute lets d send small one-shot calls to the CPU.
func (d *Device) addRoute(ctx context.Context, c *config) {
	cpu, err := open(ctx, CPU, c)
	if err != nil {
		c.log(ctx, "no CPU beside the device", "device", d.String(), "reason", err)
		return
	}
	d.route = engine.NewRouter(d.eng, cpu)
}

// List returns the devices that can be opened, the best first. It omits software that emulates a
// GPU: see [WithName].
func List(ctx context.Context) ([]Info, error) {
	if err := driver.Alive(ctx); err != nil {
		return nil, err
	}
	var infos []Info
	for _, k := range driver.Kinds() {
		for i := 0; ; i++ {
			d, err := Open(ctx, Require(k), WithIndex(i), func(c *config) error { c.listing = true; return nil })
			if err != nil {
				if ctx.Err() != nil {
					return infos, ctx.Err()
				}
				break
			}
			infos = append(infos, d.Info())
			d.Close()
		}
	}
	return infos, nil
}

// Available returns nil if a device of kind k can be opened, and otherwise ErrNoDevice with the
// reason.
func Available(ctx context.Context, k Kind) error {
	d, err := Open(ctx, Require(k))
	if err != nil {
		return err
	}
	return d.Close()
}

// String returns the device in the form that RAYO_DEVICE accepts: cpu:0, cuda:1.
func (d *Device) String() string { return d.engine().Name() }

// Info describes the device.
func (d *Device) Info() Info { return Info(d.engine().Info()) }

// Limits returns the limits of the device.
func (d *Device) Limits() Limits {
	l := d.engine().Limits()
	return Limits{MaxBuffer: l.MaxBuffer, MaxBinding: l.MaxBinding, MaxBindings: l.MaxBindings, MaxRank: l.MaxRank}
}

// Pinned reports whether the device runs all calls itself.
func (d *Device) Pinned() bool { return d.pinned }

// Refused returns the better devices that Open tried before this one, with the reason why it did
// not use each of them.
func (d *Device) Refused() []Refusal { return append([]Refusal(nil), d.refused...) }

// Stats are counters since the device was opened.
type Stats struct {
	Submissions int64 // submissions: one-shot calls, batches, plans
	Submits     int64 // command buffers of these submissions, if the device counts them; otherwise 0
	Steps       int64 // kernels that ran in these submissions
	Compiled    int64 // compiled plans
	CacheHits   int64 // batches that found their plan in the cache
	Buffers     int64 // open buffers
	BufferBytes int64 // bytes in open buffers
	PeakBytes   int64 // maximum of BufferBytes
	// Elsewhere has the counters of the CPU to which a device that is not pinned sends one-shot
	// calls, or nil if there is none.
	Elsewhere *Stats
}

// statsOf returns the counters of one engine.
func statsOf(e *engine.Engine) Stats {
	s := e.Stats()
	return Stats{s.Submissions, s.Submits, s.Steps, s.Compiled, s.CacheHits, s.Buffers, s.BufferBytes, s.PeakBytes, nil}
}

// Stats returns the counters, for example to publish them with expvar.Func.
func (d *Device) Stats() Stats {
	s := statsOf(d.engine())
	if d.route != nil {
		e := statsOf(d.route.Other())
		s.Elsewhere = &e
	}
	return s
}

// Lost returns a channel that is closed when the device stops working, for example because it was
// unplugged or its driver was reset. Running and later calls return [ErrDeviceLost], and all memory
// of the device is freed as by Close. A new Open may find the device again, or another one.
func (d *Device) Lost() <-chan struct{} { return d.engine().Lost() }

// Close waits for running work, then frees the device and all its buffers. Later calls of any
// method return ErrClosed; later calls of Close return the result of the first. Close of a nil
// Device does nothing, so that it may be deferred before the error of Open is checked.
func (d *Device) Close() error {
	if d == nil || d.eng == nil {
		return nil
	}
	if err := d.eng.MayWait(); err != nil {
		return err
	}
	err := d.engine().Close()
	if d.route != nil {
		err = errors.Join(err, d.route.Close())
	}
	return err
}

// engine returns the engine that runs the calls. For the zero Device, its calls return ErrNoDevice.
func (d *Device) engine() *engine.Engine {
	if d.eng == nil {
		return none
	}
	return d.eng
}

// none is the engine of the zero Device. Every call on it fails.
var none = engine.None()
