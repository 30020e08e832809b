//go:build js

package main

import (
	"fmt"
	"syscall/js"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wasm/bridge"
)

// run computes a graph. The arguments are a list of nodes [operation, numbers of operands, options],
// and the numbers of the nodes whose values are results. It returns [array, shape] for each result.
func (p *program) run(args []js.Value) (any, error) {
	b := batch.New(p.dev)
	values := make([]batch.Value, args[0].Length())
	for i := range values {
		node := args[0].Index(i)
		n := nodeOf{p: p, b: b, kind: node.Index(0), data: node.Index(1), options: node.Index(2)}
		var err error
		if values[i], err = n.record(values[:i]); err != nil {
			return nil, err
		}
		if err := b.Err(); err != nil {
			return nil, err
		}
	}
	outs := make([]batch.Value, args[1].Length())
	for i := range outs {
		k, err := bridge.Int(args[1].Index(i))
		if err != nil || k < 0 || k >= len(values) {
			return nil, fmt.Errorf("result %d does not belong to this batch: %w", i, device.ErrForeign)
		}
		outs[i] = values[k]
	}
	if err := b.Execute(p.ctx, outs...); err != nil {
		return nil, err
	}
	results := make([]any, len(outs))
	for i, v := range outs {
		array, err := read(p, b, v)
		if err != nil {
			return nil, err
		}
		shape := []any{}
		for _, extent := range v.Shape() {
			shape = append(shape, extent)
		}
		results[i] = []any{array, shape}
	}
	return results, nil
}

// read returns a result as a typed array of its element type. Truth values are 0 and 1.
func read(p *program, b *batch.Batch, v batch.Value) (js.Value, error) {
	switch v.Type() {
	case op.I32:
		x, err := batch.Read[int32](p.ctx, b, v)
		if err != nil {
			return js.Undefined(), err
		}
		return bridge.TypedArray(x)
	case op.U32, op.Bool:
		x, err := batch.Read[uint32](p.ctx, b, v)
		if err != nil {
			return js.Undefined(), err
		}
		return bridge.TypedArray(x)
	}
	x, err := batch.Read[float32](p.ctx, b, v)
	if err != nil {
		return js.Undefined(), err
	}
	return bridge.TypedArray(x)
}

// nodeOf is a node that JavaScript has recorded.
type nodeOf struct {
	p             *program
	b             *batch.Batch
	kind          js.Value
	data, options js.Value
	in            []batch.Value
}

// record records the node. Its operands are among the values of the nodes before it.
func (n *nodeOf) record(before []batch.Value) (batch.Value, error) {
	if n.kind.Type() == js.TypeString && n.kind.String() == "upload" {
		return n.upload()
	}
	for i := range n.data.Length() {
		k, err := bridge.Int(n.data.Index(i))
		if err != nil || k < 0 || k >= len(before) {
			return batch.Value{}, fmt.Errorf("operand %d does not belong to this batch: %w", i, device.ErrForeign)
		}
		n.in = append(n.in, before[k])
	}
	if n.kind.Type() == js.TypeString {
		if f, ok := recorders[n.kind.String()]; ok {
			if len(n.in) < f.least || len(n.in) > f.most {
				return batch.Value{}, fmt.Errorf("%s has %d operands, expected %d to %d: %w", n.kind.String(), len(n.in), f.least, f.most, device.ErrShape)
			}
			return f.record(n)
		}
	}
	o, err := n.p.operation(n.kind)
	if err != nil {
		return batch.Value{}, err
	}
	return n.b.Map(o, n.in...), nil
}

func (n *nodeOf) upload() (batch.Value, error) {
	shape, err := n.ints("shape")
	if err != nil {
		return batch.Value{}, err
	}
	switch n.data.Get("constructor").Get("name").String() {
	case "Int32Array":
		x, err := bridge.Slice[int32](n.data)
		return batch.Upload(n.b, x, shape...), err
	case "Uint32Array":
		x, err := bridge.Slice[uint32](n.data)
		return batch.Upload(n.b, x, shape...), err
	}
	x, err := bridge.Slice[float32](n.data)
	if err != nil {
		return batch.Value{}, err
	}
	return n.b.Upload(x, shape...), nil
}

// ints returns an option that is an integer or a list of integers, or nil if the option is absent.
func (n *nodeOf) ints(name string) ([]int, error) {
	v := n.options.Get(name)
	if v.IsUndefined() {
		return nil, nil
	}
	if v.Type() == js.TypeNumber {
		i, err := bridge.Int(v)
		if err != nil {
			return nil, n.option(name, err)
		}
		return []int{i}, nil
	}
	if !v.InstanceOf(js.Global().Get("Array")) {
		return nil, n.option(name, fmt.Errorf("the value is of type %v, expected an integer or an Array of integers", v.Type()))
	}
	list := make([]int, v.Length())
	for i := range list {
		var err error
		if list[i], err = bridge.Int(v.Index(i)); err != nil {
			return nil, n.option(name, err)
		}
	}
	return list, nil
}

func (n *nodeOf) option(name string, err error) error {
	return fmt.Errorf("%v, option %s: %w: %w", n.kind, name, err, device.ErrShape)
}

// float returns an option that is a number. It returns otherwise if the option is absent.
func (n *nodeOf) float(name string, otherwise float32) (float32, error) {
	switch v := n.options.Get(name); v.Type() {
	case js.TypeUndefined:
		return otherwise, nil
	case js.TypeNumber:
		return float32(v.Float()), nil
	default:
		return 0, n.option(name, fmt.Errorf("the value is of type %v, expected a number", v.Type()))
	}
}

// flag returns an option that is true or false.
func (n *nodeOf) flag(name string) bool { return n.options.Get(name).Truthy() }

// along returns the axes of a reduction, or all axes if none are given.
func (n *nodeOf) along() (op.Along, error) {
	axes, err := n.ints("axes")
	a := op.Axes(axes...)
	if n.flag("keepDims") {
		a = a.KeepDims()
	}
	return a, err
}
