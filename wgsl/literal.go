package wgsl

import (
	"math"
	"strconv"

	"github.com/rayo-go/rayo/internal/ir"
)

// appendUint appends n in decimal.
func appendUint(b []byte, n uint32) []byte { return strconv.AppendUint(b, uint64(n), 10) }

// literalClass returns the precedence of the literal of a constant.
func literalClass(in *ir.Instr) class {
	switch in.Type {
	case ir.I32:
		if v := int32(in.Imm); v < 0 && v != math.MinInt32 {
			return unary
		}
	case ir.F32, ir.F16:
		if in.Imm>>31 != 0 && !byBits(in.Imm) {
			return unary
		}
	}
	return primary
}

// byBits reports whether a float is printed as its bits. Infinities and NaN have no literals; some
// compilers lose -0 and subnormal numbers; and others reject the shortest decimal that rounds to
// the greatest number.
func byBits(bits uint32) bool {
	e := bits >> 23 & 0xff
	return e == 0xff || e == 0 && bits != 0 || bits<<1 == math.Float32bits(math.MaxFloat32)<<1
}

// literal prints a constant with the suffix of its type and with enough digits to be exact.
func (w *printer) literal(in *ir.Instr) {
	switch in.Type {
	case ir.Bool:
		if in.Imm != 0 {
			w.s("true")
		} else {
			w.s("false")
		}
	case ir.U32:
		if in.Imm >= 1<<16 && in.Imm != math.MaxUint32 {
			w.hex(in.Imm)
		} else {
			w.u(in.Imm)
		}
		w.c('u')
	case ir.I32:
		v := int32(in.Imm)
		switch {
		case v == math.MinInt32:
			w.s("i32(-2147483648)") // 2147483648i, the operand of a negation, is not a valid literal
		case v < 0:
			w.c('-')
			w.u(uint32(-v))
			w.c('i')
		default:
			w.u(uint32(v))
			w.c('i')
		}
	default:
		w.float(in)
	}
}

// float prints a constant number with a point.
func (w *printer) float(in *ir.Instr) {
	half := in.Type == ir.F16
	if byBits(in.Imm) {
		if half {
			w.s("f16(")
		}
		w.need(fnFromBits, 1)
		w.hex(in.Imm)
		w.s("u)")
		if half {
			w.c(')')
		}
		return
	}
	v := math.Float32frombits(in.Imm)
	if n := int32(v); float32(n) == v && n > -1<<20 && n < 1<<20 {
		if n < 0 {
			w.c('-')
			n = -n
		}
		w.u(uint32(n))
		w.s(".0")
	} else {
		var digits [24]byte
		w.s(string(strconv.AppendFloat(digits[:0], float64(v), 'g', -1, 32)))
	}
	if half {
		w.c('h')
	} else {
		w.c('f')
	}
}

func (w *printer) hex(n uint32) {
	var digits [8]byte
	w.s("0x")
	w.s(string(strconv.AppendUint(digits[:0], uint64(n), 16)))
}
