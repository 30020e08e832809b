package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"text/tabwriter"
	"time"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
)

type demoCmd struct {
	Out string `short:"o" default:"." placeholder:"DIR" help:"Directory for the picture; the working directory by default."`
}

// result is one line of the demonstration.
type result struct {
	name string
	took time.Duration
	rate string
	comparison
}

func (c *demoCmd) Run(a *app) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil { // before the measurements, which take seconds
		return fmt.Errorf("%w (-o DIR writes elsewhere)", err)
	}
	dev, err := device.Open(a.ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	info := dev.Info()
	fmt.Fprintf(a.out, "%v: %s (%s)\n\n", dev, info.Name, info.Detail)

	before, err := decode(photoJPEG)
	if err != nil {
		return err
	}
	after, photo, err := demoPhoto(a, dev, before)
	if err != nil {
		return err
	}
	product, err := demoMatMul(a, dev)
	if err != nil {
		return err
	}
	chain, err := demoChain(a, dev)
	if err != nil {
		return err
	}
	results := []result{photo, product, chain}
	w := tabwriter.NewWriter(a.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "operation\tdevice\ttime\trate\tmax error\tof allowed\t")
	good := 0
	for _, r := range results {
		mark := "ok"
		if r.ok() {
			good++
		} else {
			mark = "WRONG"
		}
		fmt.Fprintf(w, "%s\t%v\t%s\t%s\t%.2g\t%.2g%%\t%s\n", r.name, dev, timeText(r.took), r.rate, r.err, 100*r.share, mark)
	}
	w.Flush()
	path, err := writeBeside(c.Out, "rayo-demo.png", before, after)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, `
Times are medians. Errors are against float64, "allowed" is the tolerance of the
operations as rayo ops NAME states it; of the product %d rows are compared.

picture: %s
`, sampledRows, path)
	if good < len(results) {
		return errors.New("a result differs from its reference by more than its tolerance")
	}
	return nil
}

// demoPhoto runs the pipeline over the photograph in one batch.
func demoPhoto(a *app, dev *device.Device, p picture) (picture, result, error) {
	after, padded := picture{p.h, p.w, device.Alloc(len(p.rgb))}, p.extend(margin)
	b := batch.New(dev)
	before := dev.Stats()
	runs := 0
	took, err := median(a, func() error {
		b.Reset()
		batch.ReadInto(b, neon[batch.Value](b, p, padded), after.rgb)
		runs++
		return b.Execute(a.ctx)
	})
	if err != nil {
		return after, result{}, err
	}
	kernels := int(dev.Stats().Steps-before.Steps) / runs
	var e exact
	want := neon[value](&e, p, padded)
	if e.err != nil {
		return after, result{}, e.err
	}
	return after, result{
		name: fmt.Sprintf("photograph %d×%d, one batch of %d kernels", p.w, p.h, kernels),
		took: took, rate: flopsText(e.flops, took), comparison: compare(after.rgb, want),
	}, nil
}

// sampledRows is the number of rows of the product that are compared with the
// reference. The reference takes far longer than the product.
const sampledRows = 24

// demoMatMul multiplies two matrices of random numbers.
func demoMatMul(a *app, dev *device.Device) (result, error) {
	const n = 1024
	x, y, z := device.Alloc(n*n), device.Alloc(n*n), device.Alloc(n*n)
	for i := range x {
		x[i], y[i] = 2*rand.Float32()-1, 2*rand.Float32()-1
	}
	took, err := median(a, func() error { return dev.MatMul(a.ctx, z, x, y, nil, n, n, n) })
	if err != nil {
		return result{}, err
	}
	var rows, got []float32
	for i := range sampledRows {
		r := rand.IntN(n)
		switch i {
		case 0:
			r = 0
		case 1:
			r = n - 1
		}
		rows, got = append(rows, x[r*n:][:n]...), append(got, z[r*n:][:n]...)
	}
	var e exact
	want := e.MatMul(e.Upload(rows, sampledRows, n), e.Upload(y, n, n), value{})
	if e.err != nil {
		return result{}, e.err
	}
	return result{name: fmt.Sprintf("matmul %d×%d×%d", n, n, n), took: took,
		rate: flopsText(e.flops*n/sampledRows, took), comparison: compare(got, want)}, nil
}

// demoChain copies an array to the device, runs two operations on it, and copies it back.
func demoChain(a *app, dev *device.Device) (result, error) {
	const n = 1 << 20
	x, y := device.Alloc(n), device.Alloc(n)
	for i := range x {
		x[i] = float32(rand.NormFloat64())
	}
	b := batch.New(dev)
	took, err := median(a, func() error {
		b.Reset()
		batch.ReadInto(b, reluScale[batch.Value](b, x), y)
		return b.Execute(a.ctx)
	})
	if err != nil {
		return result{}, err
	}
	var e exact
	want := reluScale[value](&e, x)
	if e.err != nil {
		return result{}, e.err
	}
	return result{name: "upload → relu → scale → read, 1 Mi numbers", took: took,
		rate: bandwidthText(8*n, took), comparison: compare(y, want)}, nil
}

func reluScale[V any](r recorder[V], x []float32) V { return r.Scale(r.Relu(r.Upload(x)), 2) }
