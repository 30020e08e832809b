package webgpu

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/jscall"
)

// waiting implements waits for the device: goroutines poll the host, at first without a pause,
// because most submissions take less time than a thread takes to wake up. During longer waits one
// goroutine polls and wakes the others. No goroutine blocks in the host: some hosts then block
// submissions too, and a call would never return from a device that hangs.
type waiting struct {
	asking  sync.Mutex // held by the goroutine that polls the host
	reached atomic.Uint64

	mu     sync.Mutex
	leader bool
	list   []*waiter

	failures []failure // of recent submissions of a Remote
}

// failure is the error of a failed submission.
type failure struct {
	serial uint64
	err    error
}

// maxFailures is the largest number of recorded failures: many more than the submissions for which
// goroutines wait at a time.
const maxFailures = 1024

// waiter is a goroutine that waits while another one polls.
type waiter struct {
	serial uint64
	wake   chan struct{}
}

const (
	// spinFor is the time for which a goroutine polls without a pause. It yields the processor
	// occasionally. Yielding each time would cost a third of a short round trip, because a woken
	// thread would take over the goroutine.
	spinFor    = 300 * time.Microsecond
	yieldEvery = 64
	// A pause lasts an eighth of the time that has passed.
	minPause = 20 * time.Microsecond
	maxPause = time.Millisecond
)

// ask polls the host, unless another goroutine is polling.
func (d *Device) ask() {
	w := &d.wait
	if !w.asking.TryLock() {
		return
	}
	defer w.asking.Unlock()
	done, err := d.host.Poll()
	if err != nil {
		d.lose(err)
		return
	}
	w.reached.Store(done)
}

// until waits until a submission is complete, for ctx, or for the device to be
// lost.
func (d *Device) until(ctx context.Context, serial uint64) error {
	w := &d.wait
	if d.remote != nil {
		return d.told(ctx, serial)
	}
	if w.reached.Load() >= serial {
		return nil
	}
	if d.adapter.Type != Software {
		for start, asked := time.Now(), 1; time.Since(start) < spinFor; asked++ {
			d.ask()
			if done, err := d.reached(ctx, serial); done {
				return err
			}
			if asked%yieldEvery == 0 {
				runtime.Gosched()
			}
		}
	}
	for {
		w.mu.Lock()
		if done, err := d.reached(ctx, serial); done {
			w.mu.Unlock()
			return err
		}
		if !w.leader {
			w.leader = true
			w.mu.Unlock()
			return d.lead(ctx, serial)
		}
		me := &waiter{serial, make(chan struct{}, 1)}
		w.list = append(w.list, me)
		w.mu.Unlock()
		select {
		case <-me.wake:
		case <-ctx.Done():
		case <-d.lost:
		}
		w.mu.Lock()
		w.leave(me)
		if done, _ := d.reached(ctx, serial); done && !w.leader {
			w.promote() // this goroutine may have been chosen to poll
		}
		w.mu.Unlock()
	}
}

// reached reports whether a wait is over, and its error.
func (d *Device) reached(ctx context.Context, serial uint64) (bool, error) {
	if d.wait.reached.Load() >= serial {
		return true, nil
	}
	if err := d.failed(); err != nil {
		return true, err
	}
	if err := ctx.Err(); err != nil {
		return true, err
	}
	return false, nil
}

// leave removes a waiter from the list. The caller holds w.mu.
func (w *waiting) leave(me *waiter) {
	if i := slices.Index(w.list, me); i >= 0 {
		w.list = slices.Delete(w.list, i, i+1)
	}
}

// promote makes one of the waiting goroutines poll. The caller holds w.mu.
func (w *waiting) promote() {
	if len(w.list) > 0 {
		w.list[0].rouse()
	}
}

// rouse wakes the waiter, which checks its condition itself.
func (o *waiter) rouse() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// rouse wakes the goroutines whose submissions are complete. The caller holds w.mu.
func (w *waiting) rouse(reached uint64) {
	for _, o := range w.list {
		if o.serial <= reached {
			o.rouse()
		}
	}
}

// notified is called by a Remote: see Notify.
func (d *Device) notified(serial uint64, err error) {
	w := &d.wait
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if len(w.failures) == maxFailures {
			w.failures = slices.Delete(w.failures, 0, 1)
		}
		w.failures = append(w.failures, failure{serial, d.hosted(err)})
	}
	w.reached.Store(max(serial, w.reached.Load()))
	w.rouse(serial)
}

// told is until for a Remote, which reports completed submissions itself.
func (d *Device) told(ctx context.Context, serial uint64) error {
	if err := jscall.MayWait(); err != nil {
		return err
	}
	w := &d.wait
	me := &waiter{serial, make(chan struct{}, 1)}
	w.mu.Lock()
	w.list = append(w.list, me)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.leave(me)
		w.mu.Unlock()
	}()
	for {
		if done, err := d.reached(ctx, serial); done {
			if err == nil {
				err = w.failed(serial)
			}
			return err
		}
		select {
		case <-me.wake:
		case <-ctx.Done():
		case <-d.lost:
		}
	}
}

// failed returns the error of the submission, or nil.
func (w *waiting) failed(serial uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.failures {
		if f.serial == serial {
			return f.err
		}
	}
	return nil
}

// lead polls until the submission is complete, and wakes the goroutines of other completed submissions.
func (d *Device) lead(ctx context.Context, serial uint64) error {
	w := &d.wait
	defer func() {
		w.mu.Lock()
		w.leader = false
		w.promote()
		w.mu.Unlock()
	}()
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		before := w.reached.Load()
		d.ask()
		if after := w.reached.Load(); after != before {
			w.mu.Lock()
			w.rouse(after)
			w.mu.Unlock()
		}
		if done, err := d.reached(ctx, serial); done {
			return err
		}
		timer.Reset(min(max(time.Since(start)/8, minPause), maxPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-d.lost:
		}
	}
}

// watch is until for work whose caller has cancelled its wait: if the device makes no progress for
// long, it is lost.
func (d *Device) watch(serial uint64) error {
	for {
		before := d.wait.reached.Load()
		// Nothing else in pages needs contexts with deadlines.
		ctx, cancel := context.WithCancel(context.Background())
		timer := time.AfterFunc(d.patience(), cancel)
		err := d.until(ctx, serial)
		timer.Stop()
		cancel()
		if err == nil {
			return nil
		}
		if err := d.failed(); err != nil {
			return err
		}
		if d.wait.reached.Load() >= serial {
			return err // the submission has failed
		}
		if d.wait.reached.Load() == before {
			d.giveUp()
		}
	}
}

// giveUp marks a device that does not respond as lost.
func (d *Device) giveUp() {
	d.stuck.Store(true)
	d.lose(fmt.Errorf("the device has completed nothing for %v", d.patience()))
}

// drain waits until no submission is running. It returns false if the device makes no progress.
func (d *Device) drain() bool {
	for {
		before, start := d.wait.reached.Load(), time.Now()
		for time.Since(start) < d.patience() {
			if d.pending.Load() == 0 {
				return !d.stuck.Load()
			}
			time.Sleep(50 * time.Microsecond)
		}
		if d.wait.reached.Load() == before {
			d.giveUp()
		}
	}
}
