package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// narrow converts x to storage type d and returns the value in d's register type. Floats
// saturate, as in conversions to 32 bits; integers keep their low 8 bits.
func (x Expr) narrow(d DType) Expr {
	r := register(d)
	switch {
	case x.n.Type == ir.F32:
		lo, hi := 0.0, float64(math.MaxUint8)
		if d == I8 {
			lo, hi = math.MinInt8, math.MaxInt8
		}
		whole := x.to(ir.I32)
		return whole.binary(ir.Max, whole.like(lo)).binary(ir.Min, whole.like(hi)).to(r)
	case x.n.Type == ir.Bool:
		return x.to(r)
	case d == I8:
		whole := x.to(r)
		return whole.binary(ir.Shl, whole.like(24)).binary(ir.Shr, whole.like(24))
	}
	whole := x.to(r)
	return whole.binary(ir.And, whole.like(math.MaxUint8))
}
