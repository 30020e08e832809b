package main

import (
	"fmt"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
)

// prepareBatch prepares the cells that only rayo has: the gain of fusion and the
// overhead of batches.
func (r *rayo) prepareBatch(c cell, dev *device.Device, dst, x []float32) (prepared, error) {
	b := batch.New(dev)
	switch c.Op {
	case "fused":
		y := alloc(c.N, 2)
		return choose([]form{{"b.Execute", func() error {
			b.Reset()
			v := b.Add(b.Scale(b.Relu(b.Upload(x)), 0.5), b.Upload(y))
			batch.ReadInto(b, v, dst)
			return b.Execute(r.ctx)
		}}}, ends(dst))
	case "unfused":
		y, t := alloc(c.N, 2), alloc(c.N, 0)
		three := func(mid []float32) func() error {
			return func() error {
				if err := dev.Relu(r.ctx, mid, x); err != nil {
					return err
				}
				if err := dev.Scale(r.ctx, mid, mid, 0.5); err != nil {
					return err
				}
				return dev.Add(r.ctx, dst, mid, y)
			}
		}
		return choose([]form{{"calls in place", three(dst)}, {"calls through another array", three(t)}}, ends(dst))
	case "record":
		// A chain of a thousand operations, so that the time to start it hardly counts.
		var v batch.Value
		n := 0
		return choose([]form{{"b.Relu", func() error {
			if n--; n < 0 {
				b.Reset()
				v, n = b.Upload(x), 1000
			}
			v = b.Relu(v)
			return b.Err()
		}}}, nil)
	case "replay":
		// Row operations on results of row operations cannot be fused.
		in := b.Upload(x)
		v := in
		for range 10 {
			v = b.LogSoftmax(b.Softmax(v))
		}
		plan, err := b.Compile(r.ctx, v)
		if err != nil {
			return prepared{}, err
		}
		return choose([]form{{"plan.Run", func() error {
			return plan.Run(r.ctx, batch.BindInput(in, x), batch.BindOutput(v, dst))
		}}}, nil)
	case "compile":
		// Every graph differs from all graphs before it, so that it is in no cache.
		seen := uint64(0)
		return choose([]form{{"b.Compile", func() error {
			b.Reset()
			seen++
			v := b.Upload(x)
			for i := range c.N {
				if seen>>(i%64)&1 == 0 {
					v = b.Relu(v)
				} else {
					v = b.Softmax(v)
				}
			}
			_, err := b.Compile(r.ctx, v)
			return err
		}}}, nil)
	}
	return prepared{}, fmt.Errorf("unknown operation %s", c.Op)
}
