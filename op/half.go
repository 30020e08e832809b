package op

import (
	"encoding/binary"
	"math"

	"github.com/x448/float16"

	"github.com/rayo-go/rayo/internal/ir"
)

// F16FromFloat32 returns the bits of the binary16 nearest to v, with ties to even.
// From 65520 on it returns +Inf. NaN stays NaN.
func F16FromFloat32(v float32) uint16 { return float16.Fromfloat32(v).Bits() }

// F16ToFloat32 returns the value of binary16 bits.
func F16ToFloat32(bits uint16) float32 { return float16.Frombits(bits).Float32() }

// BF16FromFloat32 returns the bits of the bfloat16 nearest to v, with ties to even.
// NaN stays NaN.
func BF16FromFloat32(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		return uint16(b>>16) | 0x40 // a quiet NaN: without this bit the upper half may be an infinity
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// BF16ToFloat32 returns the value of bfloat16 bits.
func BF16ToFloat32(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// Round returns v as an element of type d holds it: rounded to float32 and
// then to d for a floating type, truncated and saturated for an integer, 0 or
// 1 for Bool.
func (d DType) Round(v float64) float64 {
	switch d {
	case F32:
		return float64(float32(v))
	case F16:
		return float64(F16ToFloat32(F16FromFloat32(float32(v))))
	case BF16:
		return float64(BF16ToFloat32(BF16FromFloat32(float32(v))))
	case I32:
		return saturate(v, math.MinInt32, math.MaxInt32)
	case U32:
		return saturate(v, 0, math.MaxUint32)
	case U8:
		return saturate(v, 0, math.MaxUint8)
	case I8:
		return saturate(v, math.MinInt8, math.MaxInt8)
	case Bool:
		if v != 0 {
			return 1
		}
	}
	return 0
}

func saturate(v, lo, hi float64) float64 {
	if v != v {
		return 0
	}
	return math.Trunc(max(lo, min(hi, v)))
}

// Float64 returns element i of an array of type d in memory. It panics if
// the memory is too short, as an index does.
func (d DType) Float64(memory []byte, i int) float64 {
	if d.Quantized() {
		return d.element(memory, i)
	}
	return d.scalar(memory, i)
}

// scalar is Float64 of a type that is not quantised. Pages that only use it do not load the block formats.
func (d DType) scalar(memory []byte, i int) float64 {
	if d.Size() == 2 {
		bits := binary.NativeEndian.Uint16(memory[2*i:])
		if d == F16 {
			return float64(F16ToFloat32(bits))
		}
		return float64(BF16ToFloat32(bits))
	}
	switch d {
	case U8:
		return float64(memory[i])
	case I8:
		return float64(int8(memory[i]))
	}
	bits := binary.NativeEndian.Uint32(memory[4*i:])
	switch d {
	case F32:
		return float64(math.Float32frombits(bits))
	case I32:
		return float64(int32(bits))
	}
	return float64(bits)
}

// PutFloat64 stores v, as [DType.Round] gives it, as element i of an array of type d in memory. It
// panics if the memory is too short, as an index does. For quantised types it stores nothing,
// because their elements cannot be stored one by one.
func (d DType) PutFloat64(memory []byte, i int, v float64) {
	if d.Quantized() {
		return
	}
	switch d {
	case U8, I8:
		memory[i] = byte(int32(d.Round(v)))
	case F16:
		binary.NativeEndian.PutUint16(memory[2*i:], F16FromFloat32(float32(v)))
	case BF16:
		binary.NativeEndian.PutUint16(memory[2*i:], BF16FromFloat32(float32(v)))
	case F32:
		binary.NativeEndian.PutUint32(memory[4*i:], math.Float32bits(float32(v)))
	case I32:
		binary.NativeEndian.PutUint32(memory[4*i:], uint32(int32(d.Round(v))))
	default:
		binary.NativeEndian.PutUint32(memory[4*i:], uint32(d.Round(v)))
	}
}

// Rounds reports whether an elementwise operation over operands of the types in may compute
// numbers that a result of type out cannot hold exactly, so that they are rounded. Only
// types of 16 bits matter: the sum of two numbers of f16 may need rounding, while their
// maximum never does.
func (o *Operation) Rounds(a *Attrs, in []DType, out DType) (bool, error) {
	if out.Size() != 2 {
		return false, nil
	}
	wide := make([]DType, len(in))
	for i, t := range in {
		if wide[i] = t; t.Size() == 2 {
			wide[i] = F32 // all floating types are computed in float32
		}
	}
	e, err := o.expression(a, wide)
	if err != nil {
		return false, err
	}
	list, at := ir.Flatten(e)
	held := make(map[*ir.Node]bool, len(list))
	number := func(v float64) bool { return v != v || out.Round(v) == v }
	for _, n := range list {
		switch {
		case n.Type != ir.F32:
			held[n] = n.Type == ir.Bool
		case n.Code == ir.Arg:
			held[n] = in[n.Index] == out
		case n.Code == ir.Const:
			held[n] = number(n.Value)
		case n.Code == ir.Param:
			held[n] = number(float64(a.Float(n.Index)))
		case n.Code == ir.CopySign:
			held[n] = held[n.Args[0]]
		case exactCode(n.Code) || n.Code == ir.Convert:
			held[n] = true
			for _, x := range n.Operands() {
				held[n] = held[n] && held[x]
			}
		}
	}
	return !held[list[at[0]]], nil
}
