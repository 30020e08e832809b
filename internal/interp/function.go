package interp

import (
	"unsafe"

	"github.com/rayo-go/rayo/internal/ir"
)

//go:generate go run gen.go

// A laneFunc computes one lane of a value from the bits of its operands. It defines a code; a
// planeFunc is the same for many lanes.
type laneFunc func(a, b, c, imm uint32) uint32

// A planeFunc computes op.blocks blocks of lanes. The operands advance by their strides: 0 for a
// uniform value, which has only one block.
type planeFunc func(d, a, b, c unsafe.Pointer, o *op)

type lanewise struct {
	lane  laneFunc
	plane planeFunc
}

// block is the number of lanes that an iteration of a loop over a plane computes. Planes are padded to a multiple of
// it; the results of the lanes beyond the workgroup are not used.
const (
	block      = 8
	blockBytes = 4 * block
)

var roundF16 = lanewise{laneConvertF32F16, planeConvertF32F16}

// conversion returns the function that converts a value from one type to another, and whether the bits are unchanged.
func conversion(from, to ir.Type) (f lanewise, same bool) {
	if from == ir.F16 {
		if to == ir.F32 || to == ir.F16 {
			return f, true
		}
		from = ir.F32
	}
	switch {
	case from == to, from != ir.F32 && to.Integer():
		return f, true
	case from == ir.F32:
		switch to {
		case ir.I32:
			f = lanewise{laneConvertF32I32, planeConvertF32I32}
		case ir.U32:
			f = lanewise{laneConvertF32U32, planeConvertF32U32}
		case ir.Bool:
			f = lanewise{laneConvertF32Bool, planeConvertF32Bool}
		case ir.F16:
			f = roundF16
		}
	case to == ir.Bool:
		f = lanewise{laneConvertU32Bool, planeConvertU32Bool}
	case from == ir.I32:
		f = lanewise{laneConvertI32F32, planeConvertI32F32}
	default:
		f = lanewise{laneConvertU32F32, planeConvertU32F32}
	}
	return f, false
}

// function returns the function that computes the lanes of an instruction, and whether the result must then be rounded
// to half.
func function(p *ir.Program, v ir.Value) (f lanewise, rounds bool) {
	in := &p.Code[v]
	rounds = in.Type == ir.F16
	on := p.Code[in.Args[0]].Type
	if on == ir.F16 {
		on = ir.F32
	}
	switch in.Code {
	case ir.Convert:
		f, _ = conversion(p.Code[in.Args[0]].Type, in.Type)
		return f, rounds && on.Integer()
	case ir.Fma:
		if rounds {
			return lanewise{laneFmaF16, planeFmaF16}, false
		}
	case ir.Select:
		// A selection chooses bits, for every type.
		return elementwise[in.Code][ir.U32], false
	case ir.Neg, ir.Abs, ir.CopySign, ir.Min, ir.Max, ir.Floor, ir.Ceil, ir.Trunc, ir.Round:
		rounds = false
	}
	return elementwise[in.Code][on], rounds
}

// combiner returns how a subgroup reduction or scan combines two lanes.
func combiner(in *ir.Instr) laneFunc {
	c, ok := reduction(in)
	if in.Code == ir.SubgroupScan {
		c, ok = ir.Add, true
	}
	if !ok || in.Code != ir.SubgroupOp && in.Code != ir.SubgroupScan {
		return nil
	}
	if in.Type != ir.F16 {
		return elementwise[c][in.Type].lane
	}
	f := elementwise[c][ir.F32].lane
	return func(a, b, _, _ uint32) uint32 { return laneConvertF32F16(f(a, b, 0, 0), 0, 0, 0) }
}
