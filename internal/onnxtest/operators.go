package onnxtest

import (
	"maps"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// operators holds, for each operator of ONNX, the equivalent code of a user. The tables that
// it is made of stand with their subjects.
var operators = merge(elementwiseOperators, castOperators, reductionOperators, rowOperators, normOperators, layoutOperators, gatherOperators, iotaOperators, poolOperators, convOperators, recurrentOperators, resizeOperators, fourierOperators, attentionOperators,
	productOperators, quantisedOperators, lossOperators, searchOperators)

func merge(tables ...map[string]mapping) map[string]mapping {
	all := map[string]mapping{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// elementwise maps an operator to one operation with default parameters, whose
// tolerance holds.
func elementwise(o *op.Operation) mapping {
	return like(o, func(r *recorder) []batch.Value { return one(r.Map(o, r.all()...)) })
}

// like makes the tolerance of an operation apply to the results.
func like(o *op.Operation, do mapping) mapping {
	return func(r *recorder) []batch.Value {
		r.like = o
		return do(r)
	}
}

// one returns one result.
func one(v batch.Value) []batch.Value { return []batch.Value{v} }

// fold maps an operator of any number of operands to a method of two.
func fold(f func(*batch.Batch, batch.Value, batch.Value) batch.Value) mapping {
	return func(r *recorder) []batch.Value {
		y := r.x(0)
		for _, x := range r.all()[1:] {
			y = f(r.Batch, y, x)
		}
		return one(y)
	}
}

// function maps an operator with attributes to an operation of the user's own.
func function(f func(r *recorder, x op.Expr) op.Expr) mapping {
	return func(r *recorder) []batch.Value {
		return one(r.Map(op.Unary(r.c.Node.Operator, func(x op.Expr) op.Expr { return f(r, x) }), r.x(0)))
	}
}

// constant returns an attribute as a constant of an expression.
func (r *recorder) constant(name string, otherwise float32) op.Expr {
	return op.Const(float64(r.float(name, otherwise)))
}
