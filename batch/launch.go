package batch

import (
	"fmt"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/devicehook"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Arg is a value that a kernel gets for one of its buffers, in the order in
// which the kernel declares them: see [In], [Out] and [InOut].
type Arg struct {
	v     Value
	use   argUse
	typ   op.DType
	shape []int
}

type argUse uint8

const (
	argNone argUse = iota
	argIn
	argOut
	argInOut
)

// In is a value that the kernel reads.
func In(v Value) Arg { return Arg{use: argIn, v: v} }

// Out is an array that the kernel fills; it is one of the results of Launch. It
// begins as zeros.
func Out(t op.DType, shape ...int) Arg { return Arg{use: argOut, typ: t, shape: shape} }

// InOut is an array that the kernel updates: it begins as v, which itself does
// not change, and is one of the results of Launch.
func InOut(v Value) Arg { return Arg{use: argInOut, v: v} }

// Launch records a kernel over a grid of workgroups. params is the parameter struct of the kernel
// or a pointer to it, or nil for a kernel without parameters; Launch reads it at once. The results
// are the arrays of Out and InOut, in order. After an error in the batch, Launch returns zero
// values.
//
// See [device.Kernel.Run] for the errors that Execute and Compile return.
func (b *Batch) Launch(k *device.Kernel, grid kernel.Size, params any, args ...Arg) []Value {
	results := 0
	for i := range args {
		if args[i].use != argIn {
			results++
		}
	}
	out := make([]Value, results)
	if b.unusable() {
		return out
	}
	if err := b.launch(out, k, grid, params, args); err != nil {
		name := "kernel"
		if made(k) {
			name += " " + k.Name()
		}
		e := &device.OpError{Op: name, Device: b.dev.String(), Err: err}
		for i := range args {
			s := op.Shape(args[i].shape)
			if args[i].use != argOut {
				s = args[i].v.Shape()
			}
			e.Shapes = append(e.Shapes, s)
		}
		b.fail(e)
		clear(out)
	}
	return out
}

// made reports whether k comes from [device.Device.Kernel].
func made(k *device.Kernel) bool { return k != nil && k.Device() != nil }

func (b *Batch) launch(out []Value, k *device.Kernel, grid kernel.Size, params any, args []Arg) error {
	if !made(k) {
		return fmt.Errorf("the kernel was not made by Device.Kernel: pass the kernel that it returns: %w", device.ErrForeign)
	}
	if k.Device() != b.dev {
		return b.eng.Foreign("kernel", devicehook.Engine(k.Device()))
	}
	launched, block, err := devicehook.Launch(k, grid, params)
	if err != nil {
		return err
	}
	p := launched.Program
	if len(args) != len(p.Bindings) {
		return fmt.Errorf("%d values for a kernel with %d buffers: pass one for each buffer: %w", len(args), len(p.Bindings), device.ErrShape)
	}
	var in []graph.ID
	for i := range args {
		id, array, err := b.argument(&args[i], p, i)
		if err != nil {
			return fmt.Errorf("buffer %s: %w", p.Bindings[i].Name, err)
		}
		in = append(in, id)
		if p.Bindings[i].Access != ir.ReadOnly {
			launched.Results = append(launched.Results, array)
		}
	}
	if len(p.Uniforms) > 0 {
		b.refs = append(b.refs, engine.Ref{Host: block})
		v := b.add(&graph.Node{Kind: graph.Input, Type: op.U32, Shape: op.Shape{len(block) / 4}, Ref: int32(len(b.refs) - 1)})
		in = append(in, v.id)
	}
	for _, id := range in {
		b.used[id] = true
	}
	b.g.Launches = append(b.g.Launches, launched)
	for i, n := range launched.Nodes(graph.ID(len(b.g.Nodes)), int32(len(b.g.Launches)-1), in) {
		out[i] = b.add(&n)
	}
	return b.err
}

// argument returns the contents of a buffer before the kernel runs, and the form of the array.
func (b *Batch) argument(a *Arg, p *ir.Program, i int) (graph.ID, graph.Array, error) {
	bind := &p.Bindings[i]
	switch {
	case a.use == argNone:
		return 0, graph.Array{}, fmt.Errorf("the zero Arg: use In, Out or InOut: %w", device.ErrShape)
	case a.use == argIn && bind.Access != ir.ReadOnly:
		return 0, graph.Array{}, fmt.Errorf("the kernel writes it: use Out or InOut: %w", device.ErrUnsupported)
	case a.use != argIn && bind.Access == ir.ReadOnly:
		return 0, graph.Array{}, fmt.Errorf("the kernel only reads it: use In: %w", device.ErrUnsupported)
	}
	array := graph.Array{Type: a.typ}
	if a.use == argOut {
		s, err := b.checked(a.shape)
		if err != nil {
			return 0, array, err
		}
		array.Shape = s
	} else {
		if !b.own(a.v) {
			return 0, array, b.foreign(a.v)
		}
		array.Type, array.Shape = a.v.Type(), a.v.Shape()
	}
	n, err := array.Shape.Size()
	if err != nil {
		return 0, array, err
	}
	if err := devicehook.Fits(p, i, array.Type, n); err != nil {
		return 0, array, err
	}
	if a.use == argOut {
		zero := b.add(&graph.Node{Kind: graph.Constant, Type: a.typ, Shape: op.Shape{}, Ref: int32(len(b.g.Data))})
		b.g.Data = append(b.g.Data, make([]byte, a.typ.Size()))
		return zero.id, array, nil
	}
	return a.v.id, array, nil
}
