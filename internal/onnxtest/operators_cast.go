package onnxtest

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var castOperators = map[string]mapping{
	"Cast":     like(op.Cast, func(r *recorder) []batch.Value { return r.cast(Type(r.int("to", 0))) }),
	"BitCast":  bitcast,
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

// bitcast moves bits between types of 32 bits. Whole numbers of 8 and 64 bits and truth values are held
// in others than their own.
func bitcast(r *recorder) []batch.Value {
	from, to := r.c.In[0].Type, Type(r.int("to", 0))
	for _, t := range []Type{from, to} {
		if op.Bitcast(t.DType()) == nil || t == Int8 || t == Uint8 || t == Int64 {
			return r.refuse("%v to %v, which are not f32, i32 and u32", from, to)
		}
	}
	r.like = op.BitcastU32
	return one(r.Bitcast(r.x(0), to.DType()))
}
