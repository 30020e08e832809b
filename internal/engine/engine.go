// Package engine is the layer between the public packages and a driver. It compiles graphs to
// programs, caches them, allocates memory, keeps statistics, and makes sure that nothing is used
// after its device is closed. All work, from one call to a batch of thousands, reaches a device
// through it.
package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/incomparable"
	"github.com/rayo-go/rayo/internal/jscall"
	"github.com/rayo-go/rayo/op"
)

// Engine owns one open driver.Device. It is safe for concurrent use.
type Engine struct {
	dev  driver.Device
	imm  driver.Immediate // nil if the device has no fast path for single steps
	info driver.Info
	name string
	lim  driver.Limits

	// state counts running calls; closedBit is set once Close has begun.
	state   atomic.Int64
	drained chan struct{}
	closed  chan struct{} // closed when Close has finished
	err     error         // result of Close
	loss    loss

	plans planCache

	selfTests [op.MaxID][sizes]selfTestResult // results for operations, by number and size
	// blockSelfTests has the results for products with blocks, by the index of the block type in op.QuantTypes.
	blockSelfTests [64]selfTestResult
	selfTestMu     sync.Mutex
	functions      functionTest

	mu      sync.Mutex
	buffers map[*Buffer]struct{}
	execs   map[*executable]struct{}

	peaksMu sync.Mutex
	peaks   *Peaks // nil until measured

	counters
}

const closedBit = 1 << 62

// New returns an engine that owns dev.
func New(dev driver.Device) *Engine {
	e := &Engine{dev: dev, info: dev.Info(), lim: dev.Limits(), drained: make(chan struct{}, 1), closed: make(chan struct{}),
		buffers: make(map[*Buffer]struct{}), execs: make(map[*executable]struct{})}
	e.name = e.info.String()
	e.imm, _ = dev.(driver.Immediate)
	e.plans.init(maxPlans)
	e.loss.channel = make(chan struct{})
	if m, ok := dev.(driver.LossNotifier); ok {
		go e.watch(m.Lost())
	}
	return e
}

// None returns an engine without a device, for the zero Device: its calls return ErrNoDevice.
func None() *Engine {
	e := &Engine{name: "no device", closed: make(chan struct{})}
	e.state.Store(closedBit)
	e.loss.channel = make(chan struct{})
	close(e.loss.channel)
	close(e.closed)
	return e
}

// Info describes the device.
func (e *Engine) Info() driver.Info { return e.info }

// Limits returns the limits of the device.
func (e *Engine) Limits() driver.Limits { return e.lim }

// Name returns kind:index.
func (e *Engine) Name() string { return e.name }

// MayWait returns an error if the caller must not wait for the device. This is the case for
// asynchronous devices in web pages, because the wait would block the event loop.
func (e *Engine) MayWait() error {
	if e.imm != nil {
		return nil
	}
	return jscall.MayWait()
}

// alive returns an error if ctx has ended, or if the caller must not wait.
func (e *Engine) alive(ctx context.Context) error {
	if err := driver.Alive(ctx); err != nil {
		return err
	}
	return e.MayWait()
}

// enter registers a running call. If it returns true, the caller must call exit. It returns false
// if the engine is closed.
func (e *Engine) enter() bool {
	if e.state.Add(1)&closedBit != 0 {
		e.exit()
		return false
	}
	return true
}

func (e *Engine) exit() {
	if e.state.Add(-1) == closedBit {
		// Close waits and this was the last running call: notify Close. Calls that begin after
		// Close also get here, so drained may already contain a notification.
		select {
		case e.drained <- struct{}{}:
		default:
		}
	}
}

// Err returns ErrNoDevice without a device, ErrDeviceLost after the device was lost, ErrClosed after Close, or
// nil.
func (e *Engine) Err() error {
	switch {
	case e.dev == nil:
		return fmt.Errorf("device.Open did not return it: %w", driver.ErrNoDevice)
	case e.loss.flag.Load():
		return driver.ErrDeviceLost
	case e.state.Load()&closedBit != 0:
		return driver.ErrClosed
	}
	return nil
}

// Foreign returns the error for an object of engine of that is used with e.
func (e *Engine) Foreign(what string, of *Engine) error {
	if of.name == e.name {
		return fmt.Errorf("%s of another Device of %s, which was opened twice: use it with the Device that made it: %w", what, e.name, driver.ErrForeign)
	}
	return fmt.Errorf("%s of %s used on %s: %w", what, of.name, e.name, driver.ErrForeign)
}

// Close waits for running calls, then frees all memory and the device. It may be called more than
// once and from several goroutines; each call returns when the device is closed.
func (e *Engine) Close() error {
	for {
		s := e.state.Load()
		if s&closedBit != 0 {
			<-e.closed
			return e.err
		}
		if e.state.CompareAndSwap(s, s|closedBit) {
			break
		}
	}
	for e.state.Load() != closedBit {
		<-e.drained
	}
	e.plans.clear()
	e.mu.Lock()
	left := e.buffers
	e.buffers = nil
	var execs []*executable
	for k := range e.execs {
		execs = append(execs, k)
	}
	e.mu.Unlock()
	for _, k := range execs {
		k.end()
	}
	for b := range left {
		b.drop()
	}
	e.err = e.dev.Close()
	close(e.closed)
	return e.err
}

// guard converts a panic, which is a bug of this module, to an error, so that it does not end the
// user's process.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("BUG: %v", p)
	}
}

// counters has the counts for Stats.
type counters struct {
	_ incomparable.Type

	steps       atomic.Int64
	submissions atomic.Int64
	compiles    atomic.Int64
	hits        atomic.Int64
	live        atomic.Int64
	peak        atomic.Int64
	count       atomic.Int64
}

// Stats are counts since the device was opened.
type Stats struct {
	Submissions int64 // round trips: one-shot calls, batches, plans
	Submits     int64 // command buffers, if the device counts them, otherwise 0
	Steps       int64 // kernels that ran
	Compiled    int64 // plans that were compiled
	CacheHits   int64 // batches that found their plan in the cache
	Buffers     int64 // open buffers
	BufferBytes int64 // bytes in open buffers
	PeakBytes   int64 // maximum of BufferBytes
}

// Stats returns the counts.
func (e *Engine) Stats() Stats {
	submits := int64(0)
	if c, ok := e.dev.(driver.SubmitCounter); ok {
		submits = c.Submits()
	}
	return Stats{
		Submissions: e.submissions.Load(),
		Submits:     submits,
		Steps:       e.steps.Load(),
		Compiled:    e.compiles.Load(),
		CacheHits:   e.hits.Load(),
		Buffers:     e.count.Load(),
		BufferBytes: e.live.Load(),
		PeakBytes:   e.peak.Load(),
	}
}
