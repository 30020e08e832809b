package op

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
)

func init() {
	irhook.Register = func(d uint8) ir.Type { return register(DType(d)) }
	irhook.Widen = func(t any, v ir.Interval, mag float64, d uint8) ir.Interval {
		return t.(Tolerance).widen(v, mag, DType(d))
	}
}
