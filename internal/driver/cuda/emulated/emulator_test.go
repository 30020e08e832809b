package emulated

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cuda"
	"github.com/rayo-go/rayo/op"
)

// relu returns a program over host memory of n elements.
func relu(n int) *driver.Program {
	x := driver.Slot{Type: op.F32, Shape: op.Shape{n}, Bytes: 4 * int64(n)}
	y := x
	y.Ext, y.Written = 1, true
	return &driver.Program{Ext: 2, Slots: []driver.Slot{x, y}, Steps: []driver.Step{{
		Post: &driver.Fused{In: []driver.Operand{{Type: op.F32, N: n}}, Body: []driver.Instr{{Op: op.Relu, Args: []int{0}, Type: op.F32}}, Out: []int{1}, Shape: op.Shape{n}},
		Out:  []driver.Operand{{Slot: 1, Type: op.F32, N: n}},
	}}}
}

// perform runs a program with the given number of steps once.
func perform(d driver.Device, steps, n int, wait bool) error {
	ctx := context.Background()
	x, err := d.Prepare(ctx, negations(n, steps))
	if err != nil {
		return err
	}
	defer x.Close()
	in, want := pairOf(n)
	out := make([]byte, len(in))
	fence, err := x.Submit(ctx, &driver.Submission{Ext: []driver.Binding{{Host: in}, {Host: out}}, Wait: wait})
	if err == nil && fence != nil {
		err = fence.Wait(ctx)
	}
	if err == nil && !bytes.Equal(out, want) {
		return errors.New("a wrong result")
	}
	return err
}

// TestFailures lets each call of the hardware fail in turn: the error arrives with
// its meaning, nothing is left over, and the device works afterwards.
func TestFailures(t *testing.T) {
	// Directly from the memory of the host, little and much, by one copy, and through the ring.
	for _, c := range []struct{ steps, n int }{{1, 100}, {1, 100_000}, {3, 10_000}, {3, 100_000}} {
		for _, wait := range []bool{true, false} {
			failed := map[string]bool{}
			for at := 0; ; at++ {
				e := newEmulator(cu.Capability{Major: 8}, false) // without cached memory
				d, err := cuda.New(e)
				if err != nil {
					t.Fatal(err)
				}
				calls, what := 0, ""
				e.fail = func(w string) error {
					if calls++; calls-1 == at {
						what = w
						return fmt.Errorf("%s: %w", w, cu.ErrOutOfMemory)
					}
					return nil
				}
				err = perform(d, c.steps, c.n, wait)
				if what == "" {
					if err != nil {
						t.Errorf("%d elements: %v", c.n, err)
					}
					e.fail = nil
					_ = d.Close()
					break
				}
				failed[what] = true
				if !errors.Is(err, driver.ErrOutOfMemory) {
					t.Errorf("%d elements, %s fails: %v", c.n, what, err)
				}
				e.fail = nil
				if err := perform(d, c.steps, c.n, wait); err != nil {
					t.Errorf("%d elements, after %s had failed: %v", c.n, what, err)
				}
				if err := d.Close(); err != nil {
					t.Errorf("%d elements, %s had failed: Close: %v", c.n, what, err)
				}
			}
			if !failed["launch"] || !failed["wait"] || !failed["record"] {
				t.Errorf("only %v failed", failed)
			}
		}
	}
}

// TestLost has a device that is lost say so.
func TestLost(t *testing.T) {
	e := newEmulator(cu.Capability{Major: 8}, false)
	d, err := cuda.New(e)
	if err != nil {
		t.Fatal(err)
	}
	e.fail = func(string) error { return fmt.Errorf("%w: %w", cu.ErrDeviceLost, cu.ErrIllegalAddress) }
	lost := d.(driver.LossNotifier).Lost()
	select {
	case <-lost:
		t.Error("lost from the start")
	default:
	}
	if err := perform(d, 1, 10, true); !errors.Is(err, driver.ErrDeviceLost) {
		t.Errorf("%v, want ErrDeviceLost", err)
	}
	<-lost
	e.fail = nil
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := perform(d, 1, 10, true); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}
