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
	if stored := byteTypes[to]; stored != op.InvalidType {
		return one(r.Cast(r.Cast(r.x(0), stored), to.DType()))
	}
	return one(r.Cast(r.x(0), to.DType()))
}

// byteTypes are the types of rayo that store what is held as i32 here.
var byteTypes = map[Type]op.DType{Uint8: op.U8, Int8: op.I8}

// bitcast reinterprets bits between types of 32 bits, or of 8 bits. It casts those of 8 bits, which differ only
// in the value of the highest bit. Tests hold integers of 8 and 64 bits and bools in other types.
func bitcast(r *recorder) []batch.Value {
	from, to := r.c.In[0].Type, Type(r.int("to", 0))
	if types[from].size == 1 && byteTypes[to] != op.InvalidType {
		r.like = op.Cast
		return r.cast(to)
	}
	for _, t := range []Type{from, to} {
		if op.Bitcast(t.DType()) == nil || t == Int8 || t == Uint8 || t == Int64 {
			return r.refuse("%v to %v, which are not f32, i32 and u32", from, to)
		}
	}
	r.like = op.BitcastU32
	return one(r.Bitcast(r.x(0), to.DType()))
}
