package device_test

import (
	"errors"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// TestNilAndZero checks that functions return errors for nil devices and zero buffers.
func TestNilAndZero(t *testing.T) {
	ctx, x := t.Context(), make([]float32, 4)
	if _, err := device.Upload(ctx, nil, x); !errors.Is(err, device.ErrNoDevice) {
		t.Errorf("Upload to a nil device gave the error %v", err)
	}
	if _, err := device.UploadBlocks(ctx, nil, nil, op.Q8_0, 0); !errors.Is(err, device.ErrNoDevice) {
		t.Errorf("UploadBlocks to a nil device gave the error %v", err)
	}
	if _, err := device.LockPages(nil, x); !errors.Is(err, device.ErrNoDevice) {
		t.Errorf("LockPages of a nil device gave the error %v", err)
	}
	for _, p := range []*device.LockedPages{nil, {}} {
		if err := p.Unlock(); err != nil {
			t.Errorf("Unlock of %v: %v", p, err)
		}
	}
	for _, k := range []*device.Kernel{nil, {}} {
		if err := k.Run(ctx, kernel.Grid(1), nil); !errors.Is(err, device.ErrForeign) {
			t.Errorf("Run of %v: %v", k, err)
		}
	}
	if o := new(op.Operation); o.GoName() != "" || o.Name() != "" {
		t.Errorf("the zero Operation is called %q", o.GoName())
	}
	for _, b := range []*device.Buffer{nil, {}} {
		if err := device.Read(ctx, x, b); !errors.Is(err, device.ErrForeign) {
			t.Errorf("Read of %v: %v", b, err)
		}
		if err := device.Write(ctx, b, x); !errors.Is(err, device.ErrForeign) {
			t.Errorf("Write to %v: %v", b, err)
		}
		if err := device.ReadBlocks(ctx, nil, b); !errors.Is(err, device.ErrForeign) {
			t.Errorf("ReadBlocks of %v: %v", b, err)
		}
	}
}
