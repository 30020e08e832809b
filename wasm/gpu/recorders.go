//go:build js

package main

import (
	"fmt"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// recorder records an operation with options. least and most limit the number of operands.
type recorder struct {
	least, most int
	record      func(n *nodeOf) (batch.Value, error)
}

// recorders has all operations except elementwise operations without options.
var recorders map[string]recorder

func init() {
	type b = batch.Batch
	type value = batch.Value
	reduction := func(f func(*b, value, ...op.Along) value) recorder {
		return recorder{1, 1, func(n *nodeOf) (value, error) {
			a, err := n.along()
			return f(n.b, n.in[0], a), err
		}}
	}
	recorders = map[string]recorder{
		"sum": reduction((*b).Sum), "prod": reduction((*b).Prod), "mean": reduction((*b).Mean), "min": reduction((*b).Min), "max": reduction((*b).Max),
		"argmin": reduction((*b).ArgMin), "argmax": reduction((*b).ArgMax), "norm_l1": reduction((*b).NormL1),
		"norm_l2": reduction((*b).NormL2), "norm_linf": reduction((*b).NormLinf), "logsumexp": reduction((*b).LogSumExp),
		"softmax": rows((*b).Softmax), "log_softmax": rows((*b).LogSoftmax),

		"dot": {2, 2, func(n *nodeOf) (value, error) {
			a, err := n.along()
			return n.b.Dot(n.in[0], n.in[1], a), err
		}},
		"scale":      floats(1, "by", 1, func(n *nodeOf, v float32) value { return n.b.Scale(n.in[0], v) }),
		"add_scalar": floats(1, "by", 0, func(n *nodeOf, v float32) value { return n.b.AddScalar(n.in[0], v) }),
		"leaky_relu": floats(1, "slope", 0.01, func(n *nodeOf, v float32) value {
			return n.b.LeakyRelu(n.in[0], op.LeakyReluOpts{Slope: v})
		}),
		"axpy": floats(2, "a", 1, func(n *nodeOf, v float32) value { return n.b.Axpy(n.in[0], n.in[1], v) }),
		"lerp": floats(2, "t", 0.5, func(n *nodeOf, v float32) value { return n.b.Lerp(n.in[0], n.in[1], v) }),
		"clip": {1, 1, func(n *nodeOf) (value, error) {
			lo, err := n.float("lo", 0)
			if err != nil {
				return value{}, err
			}
			hi, err := n.float("hi", 1)
			return n.b.Clip(n.in[0], lo, hi), err
		}},
		"layer_norm": floats(3, "eps", 1e-5, func(n *nodeOf, v float32) value {
			return n.b.LayerNorm(n.in[0], n.in[1], n.in[2], op.NormOpts{Eps: v})
		}),
		"rms_norm": floats(2, "eps", 1e-5, func(n *nodeOf, v float32) value {
			return n.b.RMSNorm(n.in[0], n.in[1], op.NormOpts{Eps: v})
		}),
		"matmul":    {2, 3, product},
		"conv2d":    {2, 3, correlation},
		"reshape":   shaped((*b).Reshape, "shape"),
		"permute":   shaped((*b).Permute, "order"),
		"transpose": {1, 1, func(n *nodeOf) (value, error) { return n.b.Transpose(n.in[0]), nil }},
		"concat": {1, op.MaxInputs, func(n *nodeOf) (value, error) {
			axis, err := n.float("axis", 0)
			return n.b.Concat(int(axis), n.in...), err
		}},
	}
}

// rows returns the recorder of an operation along one axis, by default the last one.
func rows(f func(*batch.Batch, batch.Value, ...op.Along) batch.Value) recorder {
	return recorder{1, 1, func(n *nodeOf) (batch.Value, error) {
		axes, err := n.ints("axes")
		if len(axes) == 0 {
			axes = []int{-1}
		}
		return f(n.b, n.in[0], op.Axes(axes...)), err
	}}
}

// floats returns the recorder of an operation with the given number of operands and a float parameter.
func floats(operands int, name string, otherwise float32, f func(n *nodeOf, v float32) batch.Value) recorder {
	return recorder{operands, operands, func(n *nodeOf) (batch.Value, error) {
		v, err := n.float(name, otherwise)
		if err != nil {
			return batch.Value{}, err
		}
		return f(n, v), nil
	}}
}

// shaped returns the recorder of an operation with a list of integers.
func shaped(f func(*batch.Batch, batch.Value, ...int) batch.Value, name string) recorder {
	return recorder{1, 1, func(n *nodeOf) (batch.Value, error) {
		list, err := n.ints(name)
		if err != nil {
			return batch.Value{}, err
		}
		return f(n.b, n.in[0], list...), nil
	}}
}

// activation returns the operation that the option act names, or nil.
func (n *nodeOf) activation() (*op.Operation, error) {
	v := n.options.Get("act")
	if v.IsUndefined() {
		return nil, nil
	}
	o, err := n.p.operation(v)
	if err != nil {
		return nil, err
	}
	if _, most := o.Arity(); o.Class() != op.Elementwise || most != 1 {
		return nil, fmt.Errorf("option act: %s is not an elementwise operation of one operand: %w", o, device.ErrUnsupported)
	}
	return o, nil
}

// optional returns operand i, or the zero Value if it is absent.
func (n *nodeOf) optional(i int) batch.Value {
	if i < len(n.in) {
		return n.in[i]
	}
	return batch.Value{}
}

func product(n *nodeOf) (batch.Value, error) {
	act, err := n.activation()
	if err != nil {
		return batch.Value{}, err
	}
	opts := op.MatMulOpts{TransA: n.flag("transA"), TransB: n.flag("transB"), Act: act}
	return n.b.MatMul(n.in[0], n.in[1], n.optional(2), opts), nil
}

func correlation(n *nodeOf) (batch.Value, error) {
	act, err := n.activation()
	if err != nil {
		return batch.Value{}, err
	}
	opts := op.Conv2DOpts{Act: act}
	for name, to := range map[string]*[2]int{"stride": &opts.Stride, "pad": &opts.Pad, "dilation": &opts.Dilation} {
		list, err := n.ints(name)
		switch {
		case err != nil:
			return batch.Value{}, err
		case len(list) == 1:
			*to = [2]int{list[0], list[0]}
		case len(list) == 2:
			*to = [2]int{list[0], list[1]}
		case len(list) > 2:
			return batch.Value{}, n.option(name, fmt.Errorf("the list has %d numbers, expected 1 or 2", len(list)))
		}
	}
	if list, err := n.ints("groups"); err != nil {
		return batch.Value{}, err
	} else if len(list) == 1 {
		opts.Groups = list[0]
	}
	return n.b.Conv2D(n.in[0], n.in[1], n.optional(2), opts), nil
}
