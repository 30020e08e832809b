package wgsl

import "github.com/rayo-go/rayo/internal/ir"

// function prints a call of a built-in function if that is accurate enough, and otherwise of a
// function that is added to the text.
func (w *printer) function(in *ir.Instr, info *codeInfo) {
	switch in.Code {
	case ir.Fma:
		w.fma(in, info)
	case ir.Min, ir.Max:
		if !isFloat(in.Type) || in.Flag == ir.Loose {
			w.builtInCall(in, info)
			break
		}
		w.extreme(in, info)
	case ir.LeadingZeros, ir.TrailingZeros:
		if w.t.Consumer != NagaGo {
			w.builtInCall(in, info)
			break
		}
		w.countZeros(in, info)
	case ir.Dot4I8, ir.Dot4U8:
		w.dot4(in, info)
	case ir.MulHigh:
		w.ownCall(in, info.fn, in.Width)
	case ir.PackHalf:
		switch {
		case w.t.Unfused: // software devices: see fnPackHalfBits
			w.ownCall(in, fnPackHalfBits, 1)
		case w.t.Consumer == Tint:
			w.builtInCall(in, info)
		default:
			w.ownCall(in, info.fn, 1)
		}
	case ir.UnpackHalf:
		if w.t.Unfused {
			w.ownCall(in, info.fn, 1)
			break
		}
		w.builtInCall(in, info)
	default:
		if w.t.has(Dot4) {
			w.needs |= Dot4
			w.builtInCall(in, info)
			break
		}
		w.ownCall(in, info.fn, 1)
	}
}

// builtInCall prints a call of the built-in function for a code.
func (w *printer) builtInCall(in *ir.Instr, info *codeInfo) {
	w.s(info.text)
	w.c('(')
	w.args(in)
}

// ownCall prints a call of a function that is added to the text.
func (w *printer) ownCall(in *ir.Instr, f fn, width uint8) {
	w.need(f, width)
	w.args(in)
}

func (w *printer) fma(in *ir.Instr, info *codeInfo) {
	switch {
	case !w.t.Unfused || in.Type == ir.F16 || in.Flag == ir.Loose:
		w.builtInCall(in, info)
	case w.composing:
		w.ownCall(in, fnFma, in.Width) // products in expansions do not overflow
	default:
		w.ownCall(in, fnFmaAny, in.Width)
	}
}

// ordered has the functions that software computes faster, with fewer instructions for NaN.
var ordered = [numFns]fn{fnMinWith: fnMinOrdered, fnMaxWith: fnMaxOrdered, fnClip: fnClipOrdered}

// extreme prints a minimum or maximum that is NaN if an operand is NaN.
func (w *printer) extreme(in *ir.Instr, info *codeInfo) {
	half := w.beginHalf(in)
	a, b := in.Args[0], in.Args[1]
	if w.number(a) {
		a, b = b, a
	}
	f := info.fn
	if w.number(b) {
		f++ // fnMinWith, fnMaxWith
	}
	clips := f == fnMinWith && w.clips(a)
	if clips {
		f = fnClip
	}
	if o := ordered[f]; o != 0 && w.t.Unfused {
		f = o
	}
	w.need(f, in.Width)
	args := []ir.Value{a, b}
	if clips {
		args = append(w.unclip(a), b)
	}
	for k, v := range args {
		if k > 0 {
			w.s(", ")
		}
		if half {
			w.asFloat(v, in.Width)
		} else {
			w.expr(v, operand)
		}
	}
	w.c(')')
	w.endHalf(half)
}

// countZeros prints a count of zero bits by a function of unsigned integers.
func (w *printer) countZeros(in *ir.Instr, info *codeInfo) {
	signed := in.Type == ir.I32
	if signed {
		w.s(typeName(ir.I32, in.Width))
		w.c('(')
	}
	w.need(info.fn, in.Width)
	if signed {
		w.s(typeName(ir.U32, in.Width))
		w.c('(')
	}
	w.expr(in.Args[0], operand)
	if signed {
		w.s("))")
	}
	w.c(')')
}

// dot4 prints a sum of products of bytes, and the addition of the third operand unless it is 0.
func (w *printer) dot4(in *ir.Instr, info *codeInfo) {
	if w.t.has(Dot4) {
		w.needs |= Dot4
		w.s(info.text)
		w.c('(')
	} else {
		w.need(info.fn, 1)
	}
	w.expr(in.Args[0], operand)
	w.s(", ")
	w.expr(in.Args[1], operand)
	w.c(')')
	if !w.isZero(in.Args[2]) {
		w.s(" + ")
		w.expr(in.Args[2], summand)
	}
}

// clips reports whether v is a maximum of a number and another value that is printed at its use. A
// minimum of v then clips the other value to two bounds.
func (w *printer) clips(v ir.Value) bool {
	in := &w.p.Code[v]
	return in.Code == ir.Max && w.values[v].how != asName && w.number(in.Args[0]) != w.number(in.Args[1])
}

// unclip returns the operands of v, for which clips is true. The number is the second of them.
func (w *printer) unclip(v ir.Value) []ir.Value {
	if x := &w.values[v]; x.uses > 0 {
		x.uses--
	}
	a, b := w.p.Code[v].Args[0], w.p.Code[v].Args[1]
	if w.number(a) {
		a, b = b, a
	}
	return []ir.Value{a, b}
}

// asFloat prints half floats as float32, one for each component.
func (w *printer) asFloat(v ir.Value, width uint8) {
	w.s(typeName(ir.F32, width))
	w.c('(')
	w.expr(v, operand)
	w.c(')')
}

// vector prints a vector of one value or of several values.
func (w *printer) vector(in *ir.Instr) {
	w.s(typeName(in.Type, in.Width))
	w.c('(')
	args, n := in.Operands()
	for k, a := range args[:n] {
		if k > 0 {
			w.s(", ")
		}
		w.expr(a, operand)
	}
	w.c(')')
}

// special prints codes that need code of their own.
func (w *printer) special(v ir.Value, in *ir.Instr, without class) {
	switch in.Code {
	case ir.Const:
		w.literal(in)
	case ir.BuiltIn:
		w.builtIn(in.Flag)
	case ir.Param32:
		w.s(wordParams + ".")
		w.s(w.uniform[in.Imm])
	case ir.Len:
		w.s("arrayLength(&")
		w.s(w.buffers[in.Imm])
		w.c(')')
	case ir.Load:
		w.element(w.buffers[in.Imm], in.Args[0])
	case ir.LoadShared:
		w.element(w.arrays[in.Imm], in.Args[0])
	case ir.LoadVar:
		w.s(w.vars[in.Imm])
	case ir.Select:
		w.s("select(")
		w.expr(in.Args[2], operand)
		w.s(", ")
		w.expr(in.Args[1], operand)
		w.s(", ")
		w.expr(in.Args[0], operand)
		w.c(')')
	case ir.Convert:
		w.convert(in, without)
	case ir.Bitcast:
		if w.p.Code[in.Args[0]].Type == in.Type {
			w.expr(in.Args[0], without)
			return
		}
		w.s("bitcast<")
		w.s(typeName(in.Type, in.Width))
		w.s(">(")
		w.expr(in.Args[0], operand)
		w.c(')')
	case ir.FmaUnit:
		w.s("saturate(fma(")
		w.args(in)
		w.c(')')
	case ir.Recip, ir.RecipApprox:
		w.s("1.0")
		if in.Type == ir.F16 {
			w.s("h / ")
		} else {
			w.s("f / ")
		}
		w.expr(in.Args[0], tight)
	case ir.Splat, ir.Compose:
		w.vector(in)
	case ir.Extract:
		w.expr(in.Args[0], primary)
		if w.p.Code[in.Args[0]].Width != 1 { // a scalar has no component to select
			w.c('.')
			w.c("xyzw"[in.Flag&3])
		}
	}
}

func (w *printer) convert(in *ir.Instr, without class) {
	a := &w.p.Code[in.Args[0]]
	switch {
	case a.Type == in.Type:
		w.expr(in.Args[0], without)
		return
	case isFloat(a.Type) && in.Type.Integer() && in.Flag != inRange:
		f := fnToI32
		if in.Type == ir.U32 {
			f = fnToU32
		}
		w.need(f, in.Width)
		if a.Type == ir.F16 {
			w.asFloat(in.Args[0], in.Width)
		} else {
			w.expr(in.Args[0], operand)
		}
	default:
		w.s(typeName(in.Type, in.Width))
		w.c('(')
		w.expr(in.Args[0], operand)
	}
	w.c(')')
}
