package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

type tuneCmd struct {
	Op       string `placeholder:"NAME" help:"Tune only this operation: see rayo ops."`
	Forget   bool   `help:"Remove the stored results of the device and use the defaults again."`
	Portable bool   `help:"Tune the portable kernels on the CPU. The CPU's own kernels need no tuning."`
}

// tuneCase is an operation over operands of typical sizes.
type tuneCase struct {
	o      *op.Operation
	a      op.Attrs
	types  []op.DType
	shapes []op.Shape
}

// tuneCases returns the cases to measure on a kind of device: each operation at several sizes, with a factor of ten between them.
func tuneCases(kind device.Kind) []tuneCase {
	f, i := op.F32, op.I32
	var cs []tuneCase
	add := func(o *op.Operation, a op.Attrs, types []op.DType, shapes ...op.Shape) {
		cs = append(cs, tuneCase{o, a, types, shapes})
	}
	for _, n := range []int{1 << 12, 1 << 16, 1 << 20} {
		for _, o := range op.Catalogue() {
			if o.Class() != op.Reduction {
				continue
			}
			_, arity := o.Arity()
			x := []op.Shape{{n}, {n}}
			rows := []op.Shape{{n / 256, 256}, {n / 256, 256}}
			add(o, o.Defaults(), []op.DType{f, f}[:arity], x[:arity]...)
			add(o, o.Defaults().Rows(), []op.DType{f, f}[:arity], rows[:arity]...)
		}
	}
	for _, cols := range []int{32, 256, 1024, 8192} {
		for _, o := range op.Catalogue() {
			if o.Class() == op.Row {
				add(o, o.Defaults(), []op.DType{f}, op.Shape{1 << 18 / cols, cols})
			}
		}
	}
	for _, n := range []int{64, 256, 512} {
		add(op.MatMul, op.MatMulOpts{}.Attrs(), []op.DType{f, f}, op.Shape{n, n}, op.Shape{n, n})
		add(op.MatMul, op.MatMulOpts{TransB: true}.Attrs(), []op.DType{f, f}, op.Shape{n, n}, op.Shape{n, n})
		add(op.MatVec, op.MatVecOpts{}.Attrs(), []op.DType{f, f}, op.Shape{n, n}, op.Shape{n})
		add(op.MatMulQ, op.MatMulQOpts{}.Attrs(), []op.DType{f, op.Q4_0}, op.Shape{1, n}, op.Shape{n, n})
		add(op.MatMulQ, op.MatMulQOpts{}.Attrs(), []op.DType{f, op.Q4_0}, op.Shape{64, n}, op.Shape{n, n})
		add(op.Attention, op.AttentionOpts{Causal: true}.Attrs(), []op.DType{f, f, f}, op.Shape{4, n, 64}, op.Shape{4, n, 64}, op.Shape{4, n, 64})
	}
	sizes := []int{256}
	if kind == device.CUDA {
		sizes = []int{256, 1024, 4096}
	}
	for _, n := range sizes {
		add(op.MatMul, op.MatMulOpts{}.Attrs(), []op.DType{op.F16, op.F16}, op.Shape{n, n}, op.Shape{n, n})
		add(op.MatMul, op.MatMulOpts{TransB: true}.Attrs(), []op.DType{op.BF16, op.BF16}, op.Shape{n, n}, op.Shape{n, n})
		add(op.MatMul, op.MatMulOpts{TF32: true}.Attrs(), []op.DType{f, f}, op.Shape{n, n}, op.Shape{n, n})
	}
	for _, c := range []int{3, 32, 64} {
		add(op.Conv2D, op.Conv2DOpts{Pad: [2]int{1, 1}}.Attrs(), []op.DType{f, f}, op.Shape{1, c, 56, 56}, op.Shape{c, c, 3, 3})
	}
	add(op.Gather, op.Attrs{}, []op.DType{f, i}, op.Shape{1000, 256}, op.Shape{500})
	return cs
}

func (c *tuneCmd) Run(a *app) error {
	opts := []device.Option{}
	if c.Portable {
		opts = append(opts, device.Require(device.CPU), device.WithPortableKernels())
	}
	dev, err := device.Open(a.ctx, opts...)
	if err != nil {
		return err
	}
	defer dev.Close()
	if c.Op != "" && op.Lookup(c.Op) == nil {
		return fmt.Errorf("unknown operation %s: rayo ops lists the operations", c.Op)
	}
	if c.Forget {
		return c.forget(a, dev)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "operation\tbest\ttime\tothers")
	tuned := 0
	for _, t := range tuneCases(dev.Info().Kind) {
		if c.Op != "" && t.o != op.Lookup(c.Op) {
			continue
		}
		r, err := dev.Tune(a.ctx, t.o, t.a, t.types, t.shapes)
		if errors.Is(err, device.ErrUnsupported) {
			continue
		}
		if err != nil {
			w.Flush() // the measurements were stored
			return err
		}
		tuned++
		var best string
		var others []string
		for _, v := range r.Times {
			s := v.Took.Round(time.Microsecond / 10).String()
			if v.Variant == r.Best {
				best = s
			} else {
				others = append(others, v.Variant+" "+s)
			}
		}
		var shapes []string
		for i, s := range t.shapes {
			shapes = append(shapes, t.types[i].String()+s.String())
		}
		fmt.Fprintf(w, "%v %s\t%s\t%s\t%s\n", t.o, strings.Join(shapes, " "), r.Best, best, strings.Join(others, ", "))
	}
	if tuned == 0 {
		_, err = fmt.Fprintf(a.out, "%v computes all these operations by native kernels without variants. Use --portable to tune the portable kernels.\n", dev)
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "\n%d choices stored for %s\nin %s. %s removes them.\n", tuned, dev.Info().Identity, driver.VariantsFile(), c.undo())
	return err
}

// undo returns the command that removes the measurements that this command stores.
func (c *tuneCmd) undo() string {
	if c.Portable {
		return "rayo tune --portable --forget"
	}
	return "rayo tune --forget"
}

// forget removes the stored measurements of a device.
func (c *tuneCmd) forget(a *app, dev *device.Device) error {
	if c.Op != "" {
		return errors.New("--forget removes the choices of all operations: leave out --op")
	}
	n, err := driver.ForgetVariants(dev.Info().Identity)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%d choices for %s removed from %s.\n", n, dev.Info().Identity, driver.VariantsFile())
	return err
}
