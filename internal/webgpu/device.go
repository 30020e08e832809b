package webgpu

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/workers"
)

// Patience is the time after which a device that completes nothing counts as lost, measured from
// when a wait was cancelled, or from when Close began to wait. For software it is six times that.
var Patience = 10 * time.Second

// Device is an open device. It is safe for concurrent use.
type Device struct {
	host    HostDevice
	adapter Adapter
	stats   stats

	repeater Repeater // host, or nil
	remote   Remote   // host, or nil

	// Every call that uses the host holds hostMu for reading. Close holds it for writing when it frees
	// everything.
	hostMu sync.RWMutex
	closed bool

	pending  atomic.Int64 // running submissions
	closing  atomic.Bool
	lost     chan struct{}
	lostOnce sync.Once
	stuck    atomic.Bool // the device does not respond: it gets no more calls
	lostErr  error       // set when lost is closed

	queue queue
	wait  waiting

	// mu guards the cached objects and the use counts.
	mu        sync.Mutex
	memory    memoryPool
	pipelines pipelines
	groups    groups
	stages    [2]stagePool // of Upload and of Readback

	copiers        sync.Once
	copyThreadPool *workers.Pool
}

// Open opens an adapter of a host. The error wraps [ErrNoAdapter] if there is none, and gives the
// reason.
func Open(ctx context.Context, h Host, index int) (*Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	host, err := h.Open(ctx, index)
	if err != nil {
		return nil, err
	}
	d := &Device{host: host, adapter: *host.Adapter(), lost: make(chan struct{}), queue: queue{turn: make(chan struct{}, 1)}}
	d.repeater, _ = host.(Repeater)
	if d.remote, _ = host.(Remote); d.remote != nil {
		d.remote.Notify(d.notified)
	}
	d.memory.init()
	d.pipelines.init()
	d.groups.init()
	return d, nil
}

// Adapter returns the device's name, limits and features.
func (d *Device) Adapter() *Adapter { return &d.adapter }

// Lost returns a channel that is closed when the device has stopped working.
func (d *Device) Lost() <-chan struct{} { return d.lost }

// lose marks the device as lost.
func (d *Device) lose(err error) {
	d.lostOnce.Do(func() {
		if !errors.Is(err, ErrDeviceLost) {
			err = fmt.Errorf("%w: %w", ErrDeviceLost, err)
		}
		d.lostErr = err
		close(d.lost)
	})
}

// failed returns the error with which the device was lost, or nil.
func (d *Device) failed() error {
	select {
	case <-d.lost:
		return d.lostErr
	default:
		return nil
	}
}

// enter begins a call that uses the host, which leave ends. Calls do not nest.
func (d *Device) enter() error {
	d.hostMu.RLock()
	err := d.failed()
	if d.closed || d.closing.Load() {
		err = ErrClosed
	}
	if err != nil {
		d.hostMu.RUnlock()
	}
	return err
}

func (d *Device) leave() { d.hostMu.RUnlock() }

// hosted returns an error of the host, and marks the device as lost if the error says so.
func (d *Device) hosted(err error) error {
	if err != nil && errors.Is(err, ErrDeviceLost) {
		d.lose(err)
		return d.lostErr
	}
	return err
}

// patience is Patience for this device. Software that emulates a GPU has longer kernels.
func (d *Device) patience() time.Duration {
	if d.adapter.Type == Software {
		return 6 * Patience
	}
	return Patience
}

// Stats has the counters of a device.
type Stats struct {
	Submits     uint64 // submissions to the host: one for a submission whose operands fit into a chunk
	Dispatches  uint64
	Compiled    uint64 // pipelines
	Grouped     uint64 // groups that were not cached
	Uploaded    uint64 // bytes
	Downloaded  uint64
	Buffers     int64 // buffers in use, without cached buffers
	BufferBytes int64
	IdleBytes   int64 // cached memory
	StageBytes  int64 // staging memory
}

type stats struct {
	submits, dispatches, compiled, grouped, uploaded, downloaded atomic.Uint64
}

// Stats returns the counts.
func (d *Device) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Stats{
		Submits:     d.stats.submits.Load(),
		Dispatches:  d.stats.dispatches.Load(),
		Compiled:    d.stats.compiled.Load(),
		Grouped:     d.stats.grouped.Load(),
		Uploaded:    d.stats.uploaded.Load(),
		Downloaded:  d.stats.downloaded.Load(),
		Buffers:     d.memory.used,
		BufferBytes: d.memory.usedBytes,
		IdleBytes:   d.memory.idleBytes,
		StageBytes:  d.stages[0].bytes + d.stages[1].bytes,
	}
}

// Close frees everything. It waits for running submissions, but not forever: a device that
// completes nothing for [Patience] is lost and abandoned. Submissions that begin in the meantime
// end with [ErrClosed].
func (d *Device) Close() error {
	if d.closing.Swap(true) {
		return nil
	}
	hung := !d.drain() // do not call the host any more: it might not return
	free := make(chan struct{})
	go func() {
		defer close(free)
		d.hostMu.Lock()
		defer d.hostMu.Unlock()
		d.closed = true
		if !hung {
			d.release()
			d.host.Close()
		}
	}()
	select {
	case <-free:
	case <-time.After(d.patience()):
		d.lose(errors.New("a call of the library does not return"))
	}
	d.copyThreadPool.Close()
	if hung {
		return d.lostErr
	}
	return nil
}

// release frees the device's remaining resources.
func (d *Device) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups.free()
	d.pipelines.free()
	d.memory.free()
	for i := range d.stages {
		d.stages[i].free()
	}
}

// threads returns the workers that copy between Go's memory and staging memory. The first call starts
// them.
func (d *Device) threads() *workers.Pool {
	d.copiers.Do(func() { d.copyThreadPool = workers.New(copyThreads) })
	return d.copyThreadPool
}
