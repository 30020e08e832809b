package onnxtest

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var castOperators = map[string]mapping{
	"Cast":     like(op.Cast, func(r *recorder) []batch.Value { return r.cast(Type(r.int("to", 0))) }),
	"CastLike": like(op.Cast, func(r *recorder) []batch.Value { return r.cast(r.c.In[1].Type) }),
}

func (r *recorder) cast(to Type) []batch.Value {
	if to.DType() == op.InvalidType {
		return r.refuse("to %v", to)
	}
	if to == Uint8 || to == Int8 {
		return r.refuse("to %v, which wraps at 8 bits", to)
	}
	return one(r.Cast(r.x(0), to.DType()))
}
