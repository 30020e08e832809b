package cuda

import (
	"context"
	"fmt"
	"sync"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
)

// neighbour is hardware that can copy from the memory of other hardware.
type neighbour interface {
	// CopyFrom copies after the earlier work of both streams, and makes both streams wait for it.
	// The event marks its end.
	CopyFrom(dst cu.Ptr, from Hardware, src cu.Ptr, n int64) (Event, error)
}

// pairs is locked while a copy takes its places in the queues of two devices. All pairs then have
// the same order in both queues, so there is no deadlock.
var pairs sync.Mutex

// CopyFrom implements [driver.Peer].
func (d *gpuDevice) CopyFrom(ctx context.Context, dst driver.Memory, from driver.Device, src driver.Memory, n int64) (err error) {
	defer driver.Recovered(&err)
	hw, ok := d.hw.(neighbour)
	o, same := from.(*gpuDevice)
	x, ours := dst.(*array)
	y, theirs := src.(*array)
	if !ok || !same || !ours || !theirs || o == d {
		return fmt.Errorf("the device %v cannot copy from this kind of device: %w", d.info, driver.ErrUnsupported)
	}
	if n == 0 {
		return nil
	}
	pairs.Lock()
	first, second := o.order.Take(), d.order.Take()
	pairs.Unlock()
	err = first.Await(ctx)
	if e := second.Await(ctx); err == nil && e != nil {
		first.End()
		return e
	} else if err != nil {
		if e == nil {
			second.End()
		}
		return err
	}
	done, err := hw.CopyFrom(x.ptr, o.hw, y.ptr, n)
	second.End()
	first.End()
	if err != nil {
		return translateError(err)
	}
	err = done.Synchronize()
	if e := done.Close(); err == nil {
		err = e
	}
	return translateError(err)
}

// CopyFrom implements neighbour.
func (g *gpu) CopyFrom(dst cu.Ptr, from Hardware, src cu.Ptr, n int64) (Event, error) {
	o, ok := from.(*gpu)
	if !ok {
		return nil, fmt.Errorf("cannot copy from hardware of another kind: %w", cu.ErrUnsupported)
	}
	// Without peer access, the driver copies through the host.
	_ = g.dev.EnablePeer(o.dev)
	ready, err := o.dev.NewEvent(false)
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	done, err := g.dev.NewEvent(false)
	if err != nil {
		return nil, err
	}
	for _, f := range []func() error{
		func() error { return o.stream.Record(ready) },
		func() error { return g.stream.After(ready) },
		func() error { return g.stream.CopyPeer(g.dev, dst, o.dev, src, n) },
		func() error { return g.stream.Record(done) },
		func() error { return o.stream.After(done) },
	} {
		if err := f(); err != nil {
			_ = done.Close()
			return nil, err
		}
	}
	return done, nil
}
