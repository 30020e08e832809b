package ptxgen

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/ptx"
)

// convert returns the value of x, of type from, as type to.
func (g *lowering) convert(from, to ir.Type, x ptx.U32) ptx.U32 {
	switch {
	case from == to:
		return x
	case to == ir.F16:
		return ptx.U32(register[ptx.F32](g, g.convert(from, ir.F32, x)).F16())
	case from == ir.F16:
		return g.convert(ir.F32, to, ptx.U32(register[ptx.F16](g, x).F32()))
	}
	switch to {
	case ir.Bool:
		if from == ir.F32 {
			return ptx.U32(register[ptx.F32](g, x).Ne(ptx.F(0)))
		}
		return ptx.U32(x.Ne(ptx.U(0)))
	case ir.F32:
		switch from {
		case ir.Bool:
			return ptx.U32(ptx.Select(ptx.Pred(x), ptx.F(1), ptx.F(0)))
		case ir.I32:
			return ptx.U32(register[ptx.S32](g, x).F32())
		}
		return ptx.U32(register[ptx.U32](g, x).F32())
	}
	switch from { // to an integer
	case ir.Bool:
		return ptx.Select(ptx.Pred(x), ptx.U(1), ptx.U(0))
	case ir.F32:
		if to == ir.I32 {
			return register[ptx.F32](g, x).TruncS32().U32()
		}
		return register[ptx.F32](g, x).TruncU32()
	}
	return x
}

// bitcast returns the bits of x, of type from, as type to.
func bitcast(from, to ir.Type, x ptx.U32) ptx.U32 {
	switch {
	case from == ir.F32 && to != ir.F32:
		return ptx.F32(x).Bits().U32()
	case from != ir.F32 && to == ir.F32:
		return ptx.U32(x.B32().Float())
	}
	return x
}

// dot returns the sum of the products of the components of two vectors.
func (g *lowering) dot(in *ir.Instr) ptx.U32 {
	n := int(g.p.Code[in.Args[0]].Width)
	at := func(k, c int) ptx.F32 { return register[ptx.F32](g, g.wide(in.Type, g.comp(in.Args[k], c))) }
	sum := at(0, 0).Mul(at(1, 0))
	for c := 1; c < n; c++ {
		sum = at(0, c).Fma(at(1, c), sum)
	}
	return g.narrow(in.Type, ptx.U32(sum))
}

// packed lowers instructions that pack numbers into a word, unpack them, or multiply packed
// numbers.
func (g *lowering) packed(in *ir.Instr, out *value) {
	word := func(k, c int) ptx.U32 { return register[ptx.U32](g, g.comp(in.Args[k], c)) }
	switch in.Code {
	case ir.Dot4I8:
		out[0] = word(0, 0).B32().Dot4(g.comp(in.Args[1], 0).B32(), g.comp(in.Args[2], 0).S32()).U32()
	case ir.Dot4U8:
		out[0] = word(0, 0).B32().Dot4Unsigned(g.comp(in.Args[1], 0).B32(), g.comp(in.Args[2], 0))
	case ir.PackHalf:
		low, high := register[ptx.F32](g, g.comp(in.Args[0], 0)), register[ptx.F32](g, g.comp(in.Args[0], 1))
		if g.target >= ptx.SM80 {
			out[0] = high.PackF16(low).B32().U32()
		} else {
			out[0] = low.F16().Pack(high.F16()).B32().U32()
		}
	case ir.UnpackHalf:
		low, high := word(0, 0).B32().F16x2().Halves()
		out[0], out[1] = ptx.U32(low.F32()), ptx.U32(high.F32())
	case ir.PackI8:
		low := word(0, 0).Permute(word(0, 1), ptx.U(0x0040))
		high := word(0, 2).Permute(word(0, 3), ptx.U(0x0040))
		out[0] = low.Permute(high, ptx.U(0x5410))
	case ir.UnpackI8:
		for c := range out {
			out[c] = word(0, 0).S32().Field(ptx.U(uint32(8*c)), ptx.U(8)).U32()
		}
	case ir.UnpackU8:
		for c := range out {
			out[c] = word(0, 0).Field(ptx.U(uint32(8*c)), ptx.U(8))
		}
	}
}
