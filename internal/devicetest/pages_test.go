package devicetest

import (
	"errors"
	"testing"

	"github.com/rayo-go/rayo/device"
)

// pages checks copies from and to slices if the pages of some of their elements are locked.
func pages(t *testing.T, open Open) {
	dev := start(t, open)
	const n = 300_007 // too many elements to be staged in one piece
	x, y := make([]float32, n), make([]float32, n)
	lock := func(s []float32) *device.LockedPages {
		p, err := device.LockPages(dev, s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	carry := func(when string, off int) {
		t.Helper()
		for i := range x {
			x[i], y[i] = float32(i-off), -1
		}
		b, err := device.Upload(t.Context(), dev, x[off:], n-off)
		if err == nil {
			err = device.Read(t.Context(), y[:n-off], b)
		}
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		b.Close()
		for i, v := range y {
			if want := float32(i); i < n-off && v != want || i >= n-off && v != -1 {
				t.Fatalf("%s, from element %d on: element %d is %v, want %v", when, off, i, v, want)
			}
		}
	}
	carry("no pages", 0)
	locked := []*device.LockedPages{lock(x[1:100_000]), lock(x[150_000:250_000]), lock(y[70_001:]), lock(x[:10]), lock(nil)}
	for _, off := range []int{0, 3, 120_001} {
		carry("some pages", off)
	}
	again, err := device.LockPages(dev, x[90_000:160_000])
	if want := device.ErrOverlap; dev.Info().Kind == device.CUDA != errors.Is(err, want) {
		t.Errorf("LockPages of pages that are locked: %v; want %v by CUDA only", err, want)
	}
	for _, p := range append(locked, again, locked[0]) {
		if err := p.Unlock(); err != nil {
			t.Error(err)
		}
	}
	carry("unlocked pages", 5)
	lock(x) // closing the device unlocks it
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if _, err := device.LockPages(dev, y); !errors.Is(err, device.ErrClosed) {
		t.Errorf("LockPages of a closed device: %v", err)
	}
}
