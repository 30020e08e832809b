package main

import (
	"context"
	"strings"

	"github.com/rayo-go/rayo/device"
)

// rayo prepares cells on the CPU device, through the API that users have.
type rayo struct {
	ctx  context.Context
	devs map[int]*device.Device // by the number of threads
}

func newRayo() *rayo {
	return &rayo{context.Background(), map[int]*device.Device{}}
}

func (r *rayo) close() {
	for _, d := range r.devs {
		d.Close()
	}
}

// device returns the CPU with that many threads, pinned.
func (r *rayo) device(threads int) (*device.Device, error) {
	if d := r.devs[threads]; d != nil {
		return d, nil
	}
	d, err := device.Open(r.ctx, device.Require(device.CPU), device.WithThreads(threads))
	if err == nil {
		r.devs[threads] = d
	}
	return d, err
}

// prepare allocates the arrays of a cell and picks its fastest form.
func (r *rayo) prepare(c cell) (prepared, error) {
	if strings.HasPrefix(c.Op, "roof-") {
		dst, src := alloc(c.N, 0), alloc(c.N, 1)
		fs, stop, err := prepareLimit(c, dst, src)
		if err != nil {
			return prepared{}, err
		}
		p, err := choose(fs, nil)
		p.stop = stop
		return p, err
	}
	dev, err := r.device(c.Threads)
	if err != nil {
		return prepared{}, err
	}
	if c.Op == "matmul" {
		return r.prepareMatMul(c, dev)
	}
	if k := axisCaseOf(c); k != nil {
		return r.prepareAxes(k, c.Threads)
	}
	if k, ok := caseOf(c); ok {
		return r.prepareCase(&k, dev)
	}
	dst, x := alloc(c.N, 0), alloc(c.N, 1)
	one := func(name string, f func() error) (prepared, error) {
		return choose([]form{{name, f}}, ends(dst))
	}
	scalar := func(name string, f func() (float32, error)) (prepared, error) {
		var v [1]float32
		return choose([]form{{name, func() (err error) {
			v[0], err = f()
			return err
		}}}, ends(v[:]))
	}
	switch c.Op {
	case "relu":
		return one("dev.Relu", func() error { return dev.Relu(r.ctx, dst, x) })
	case "tanh":
		return one("dev.Tanh", func() error { return dev.Tanh(r.ctx, dst, x) })
	case "exp":
		return one("dev.Exp", func() error { return dev.Exp(r.ctx, dst, x) })
	case "sigmoid":
		return one("dev.Sigmoid", func() error { return dev.Sigmoid(r.ctx, dst, x) })
	case "gelu":
		return one("dev.Gelu", func() error { return dev.Gelu(r.ctx, dst, x) })
	case "add":
		y := alloc(c.N, 2)
		return one("dev.Add", func() error { return dev.Add(r.ctx, dst, x, y) })
	case "softmax":
		rows, cols := max(1, c.N/rowSize), min(c.N, rowSize)
		return one("dev.Softmax", func() error { return dev.Softmax(r.ctx, dst, x, rows, cols) })
	case "dot":
		y := alloc(c.N, 2)
		return scalar("dev.Dot", func() (float32, error) { return dev.Dot(r.ctx, x, y) })
	case "sum":
		return scalar("dev.Sum", func() (float32, error) { return dev.Sum(r.ctx, x) })
	}
	return r.prepareBatch(c, dev, dst, x)
}

func (r *rayo) prepareMatMul(c cell, dev *device.Device) (prepared, error) {
	a, b, dst := alloc(c.M*c.K, 1), alloc(c.K*c.N, 2), alloc(c.M*c.N, 0)
	return choose([]form{{"dev.MatMul", func() error {
		return dev.MatMul(r.ctx, dst, a, b, nil, c.M, c.K, c.N)
	}}}, ends(dst))
}

// alloc returns n elements: zeros for seed 0, else the input of that seed.
func alloc(n, seed int) []float32 {
	x := device.Alloc(n)
	if seed != 0 {
		fill(x, seed)
	}
	return x
}

// ends returns a function that reads the elements for the check of a reply.
func ends(out []float32) func() []float64 {
	return func() []float64 {
		return []float64{float64(out[0]), float64(out[len(out)/2]), float64(out[len(out)-1])}
	}
}
