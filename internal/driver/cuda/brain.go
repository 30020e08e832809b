package cuda

import (
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/ptxgen"
	"github.com/rayo-go/rayo/op"
)

// Kernels of the library do not read bfloat16 and types of one byte. Operands of these types are
// converted before the kernel, and results after it.

// StorageType implements [driver.Arrays].
func (e *preparer) StorageType(o driver.Operand) op.DType {
	switch o.Type {
	case op.BF16:
		return op.F32
	case op.U8:
		return op.U32
	case op.I8:
		return op.I32
	}
	return o.Type
}

// Widen implements [driver.Arrays].
func (e *preparer) Widen(dst, src arrayRef, o driver.Operand) error {
	if o.Type == op.F16 {
		return e.widenHalf(dst, src, o.N)
	}
	return e.convert(dst, src, o, false)
}

// widenHalf adds the conversion of n elements of f16 for consumers that need float32; kernels read
// f16 directly.
func (e *preparer) widenHalf(dst, src arrayRef, n int) error {
	if n == 0 {
		return nil
	}
	cast := op.CastTo(op.F32)
	expr, err := irhook.Expression(op.Cast, &cast, []op.DType{op.F16})
	if err != nil {
		return err
	}
	r := e.request()
	r.Post = &portable.Epilogue{In: []portable.Operand{{Type: op.F16, Broadcast: op.Full, N: n}}, Exprs: []*ir.Node{expr}}
	r.Out = []portable.Array{{Type: op.F32, Shape: op.Shape{n}}}
	r.From, r.To = []arrayRef{src}, []arrayRef{dst}
	return e.plan(r, ptxgen.Options{})
}

// Narrow implements [driver.Arrays].
func (e *preparer) Narrow(dst, src arrayRef, o driver.Operand) error {
	return e.convert(dst, src, o, true)
}

// convert adds the conversion of the elements of an operand.
func (e *preparer) convert(dst, src arrayRef, o driver.Operand, narrow bool) error {
	n := o.N
	if n == 0 {
		return nil
	}
	k, err := e.compile(programKey{convert: o.Type, narrow: narrow})
	if err != nil {
		return err
	}
	groups := (n + ptxgen.ConvertLanes - 1) / ptxgen.ConvertLanes
	e.steps = append(e.steps, &launch{e: e.executable, code: k, grid: [3]uint32{uint32(groups), 1, 1}, slot: -1, fault: -1,
		arrays: []arrayRef{src, dst}, lengths: []uint32{uint32(n), uint32(n)}})
	return nil
}
