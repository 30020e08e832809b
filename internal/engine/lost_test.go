package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// lossDevice is a device that can be lost and counts its open objects.
type lossDevice struct {
	driver.Device
	says   chan struct{} // closed to report the loss asynchronously
	fails  atomic.Bool   // makes the next submission report the loss
	execs  atomic.Int64
	closed atomic.Bool
}

func (d *lossDevice) Lost() <-chan struct{} { return d.says }

func (d *lossDevice) Close() error {
	d.closed.Store(true)
	return d.Device.Close()
}

func (d *lossDevice) Prepare(ctx context.Context, p *driver.Program) (driver.Executable, error) {
	x, err := d.Device.Prepare(ctx, p)
	d.execs.Add(1)
	return &lossProgram{x, d}, err
}

type lossProgram struct {
	driver.Executable
	d *lossDevice
}

func (x *lossProgram) Submit(ctx context.Context, s *driver.Submission) (driver.Fence, error) {
	if x.d.fails.Load() {
		return nil, fmt.Errorf("pretended: %w", driver.ErrDeviceLost)
	}
	return x.Executable.Submit(ctx, s)
}

func (x *lossProgram) Close() {
	x.d.execs.Add(-1)
	x.Executable.Close()
}

// TestLost checks that after a loss, reported in any way, all calls return ErrDeviceLost and no
// object remains.
func TestLost(t *testing.T) {
	ctx := context.Background()
	for _, how := range []string{"the device says it", "a call finds it", "an async call finds it"} {
		c, err := cpu.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		d := &lossDevice{Device: graphOnly{c}, says: make(chan struct{})}
		e := New(d)
		x := []float32{1, -2}
		call := func() error { return e.Elementwise(ctx, op.Relu, &op.Attrs{}, x, x, nil, nil) }
		if err := call(); err != nil {
			t.Fatal(err)
		}
		if _, err := e.NewBuffer(op.F32, op.Shape{10}); err != nil {
			t.Fatal(err)
		}
		switch how {
		case "the device says it":
			close(d.says)
		case "a call finds it":
			d.fails.Store(true)
			if err := call(); !errors.Is(err, driver.ErrDeviceLost) {
				t.Errorf("%s: %v", how, err)
			}
		default:
			d.fails.Store(true)
			h := HostOf(Bytes(x), op.F32, op.Shape{2})
			if err := e.Start(ctx, op.Relu, &op.Attrs{}, []Host{h}, []Host{h}).Wait(ctx); !errors.Is(err, driver.ErrDeviceLost) {
				t.Errorf("%s: %v", how, err)
			}
		}
		<-e.Lost()
		if err := e.Close(); err != nil {
			t.Errorf("%s: Close: %v", how, err)
		}
		if !d.closed.Load() || d.execs.Load() != 0 || e.executables() != 0 {
			t.Errorf("%s: %d programs are left, closed %v", how, d.execs.Load(), d.closed.Load())
		}
		_, alloc := e.NewBuffer(op.F32, op.Shape{10})
		_, compile := e.Compile(ctx, sum(5))
		for what, err := range map[string]error{"call": call(), "buffer": alloc, "compile": compile, "err": e.Err()} {
			if !errors.Is(err, driver.ErrDeviceLost) {
				t.Errorf("%s: %s: %v", how, what, err)
			}
		}
	}
	// A closed device does not report a loss, and no goroutine waits for one.
	gone := testutil.Goroutines(t)
	c, err := cpu.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	e := New(&lossDevice{Device: c, says: make(chan struct{})})
	if err := e.Close(); err != nil || !errors.Is(e.Err(), driver.ErrClosed) {
		t.Errorf("%v, %v", err, e.Err())
	}
	gone()
}

// TestSyncCallsKeepTheirSlices checks that a cancelled call does not return while a device without
// driver.Immediate still uses its slices.
func TestSyncCallsKeepTheirSlices(t *testing.T) {
	c, err := cpu.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	d := &slow{Device: graphOnly{c}}
	e := New(d)
	defer e.Close()
	ctx, cancel := context.WithCancel(context.Background())
	d.begun = cancel
	x := []float32{1, -2}
	_ = e.Elementwise(ctx, op.Relu, &op.Attrs{}, x, x, nil, nil)
	if d.running.Load() {
		t.Error("the call returned while the device still used its memory")
	}
}

// slow is a device whose submissions take some time, even if their context ends.
type slow struct {
	driver.Device
	begun   context.CancelFunc
	running atomic.Bool
}

type slowly struct {
	driver.Executable
	d *slow
}

func (d *slow) Prepare(ctx context.Context, p *driver.Program) (driver.Executable, error) {
	x, err := d.Device.Prepare(ctx, p)
	return &slowly{x, d}, err
}

func (x *slowly) Submit(_ context.Context, s *driver.Submission) (driver.Fence, error) {
	f := slowFence{make(chan struct{})}
	x.d.running.Store(true)
	sub := *s
	sub.Wait = true
	go func() {
		x.d.begun()
		time.Sleep(20 * time.Millisecond)
		_, err := x.Executable.Submit(context.Background(), &sub)
		x.d.running.Store(false)
		if s.Complete != nil && !s.Wait {
			s.Complete(err)
		}
		close(f.done)
	}()
	return f, nil
}

type slowFence struct{ done chan struct{} }

func (f slowFence) Done() <-chan struct{} { return f.done }

func (f slowFence) Wait(ctx context.Context) error {
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
