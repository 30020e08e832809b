package op

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
)

func init() {
	irhook.Register = func(d uint8) ir.Type { return register(DType(d)) }
	irhook.Operations = hooks{}
	irhook.Expression = func(o, a, in any) (*ir.Node, error) {
		return o.(*Operation).expression(a.(*Attrs), in.([]DType))
	}
	irhook.SelfTestOf = func(o any) *irhook.SelfTest { return o.(*Operation).def().selfTest }
}

// hooks implements [irhook.Operations].
type hooks struct{}

func (hooks) Widen(t any, v ir.Interval, mag float64, d uint8) ir.Interval {
	return t.(Tolerance).widen(v, mag, DType(d))
}

func (hooks) Range(o, a, in any) (func([]ir.Interval) ir.Interval, error) {
	return o.(*Operation).ranges(a.(*Attrs), in.([]DType))
}

func (hooks) Reducer(o any, d uint8) *ir.Reducer { return o.(*Operation).reducer(DType(d)) }
