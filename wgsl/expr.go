package wgsl

import "github.com/rayo-go/rayo/internal/ir"

// name prints the name of a value that has one.
func (w *printer) name(v ir.Value) {
	if n := w.values[v].name; n != 0 {
		w.s(shortNames[n-1])
		return
	}
	w.c('v')
	w.u(uint32(v))
}

// expr prints a value in a place where only the given classes need no parentheses.
func (w *printer) expr(v ir.Value, without class) {
	x := &w.values[v]
	if x.uses > 0 {
		x.uses--
	}
	if x.how == asName {
		w.name(v)
		return
	}
	if without == anything || w.class(v)&without != 0 {
		w.write(v, without)
		return
	}
	w.c('(')
	w.write(v, anything)
	w.c(')')
}

// class returns the precedence of the expression that write prints for v.
func (w *printer) class(v ir.Value) class {
	in := &w.p.Code[v]
	info := &codeTable[in.Code]
	switch in.Code {
	case ir.Const:
		return literalClass(in)
	case ir.BuiltIn:
		if in.Flag == ir.BuiltInSubgroup && w.t.has(Subgroups) {
			return product
		}
	case ir.And, ir.Or, ir.Xor:
		if in.Type == ir.Bool {
			switch {
			case in.Code == ir.Xor:
				return relation
			case !w.logical(in):
			case in.Code == ir.And:
				return logicAnd
			default:
				return logicOr
			}
		}
	case ir.Eq, ir.Ne:
		if w.isNaNTest(in) {
			if in.Code == ir.Eq {
				return unary
			}
			return primary
		}
		if w.isUnequal(in) {
			return unary
		}
	case ir.Neg:
		if in.Type == ir.U32 {
			return sum
		}
	case ir.Convert, ir.Bitcast:
		if w.p.Code[in.Args[0]].Type == in.Type {
			if w.values[in.Args[0]].how == asName {
				return primary
			}
			return w.class(in.Args[0])
		}
	case ir.Dot4I8, ir.Dot4U8:
		if !w.isZero(in.Args[2]) {
			return sum
		}
	}
	return info.class
}

func isFloat(t ir.Type) bool { return t == ir.F32 || t == ir.F16 }

// isNaNTest reports whether a comparison compares a float with itself.
func (w *printer) isNaNTest(in *ir.Instr) bool {
	return in.Args[0] == in.Args[1] && isFloat(w.p.Code[in.Args[0]].Type)
}

// isUnequal reports whether a comparison is Ne of floats. It is printed as !(a == b): NaN is
// unequal to every value, but some compilers make a != b false for NaN.
func (w *printer) isUnequal(in *ir.Instr) bool {
	return in.Code == ir.Ne && isFloat(w.p.Code[in.Args[0]].Type)
}

func (w *printer) isZero(v ir.Value) bool {
	return w.p.Code[v].Code == ir.Const && w.p.Code[v].Imm == 0 && w.values[v].how != asName
}

// write prints the instruction of v as an expression.
func (w *printer) write(v ir.Value, without class) {
	in := &w.p.Code[v]
	info := &codeTable[in.Code]
	switch info.form {
	case infix:
		w.infix(in, info)
	case prefix:
		switch {
		case in.Code == ir.Neg && in.Type == ir.U32:
			w.s("0u - ") // a number minus a vector is a vector
			w.expr(in.Args[0], summand)
			return
		case in.Code == ir.Not && in.Type == ir.Bool:
			w.c('!')
		default:
			w.s(info.text)
		}
		w.expr(in.Args[0], info.right)
	case call:
		w.s(info.text)
		w.c('(')
		w.args(in)
	case function:
		if w.carriesAs(v)&loses != 0 {
			w.s(info.text)
			w.c('(')
			w.args(in)
			return
		}
		w.function(in, info)
	case composed:
		if in.Code == ir.RoundF16 && w.t.Narrows && w.t.has(Half) {
			w.narrowed(in)
			return
		}
		half := w.beginHalf(in)
		mode := w.narrow(in)
		w.composed[in.Code] |= 1 << (len(widthSuffix)*mode + widthIndex(in.Width))
		w.s(reductionName(in.Code, mode))
		w.s(widthSuffix[widthIndex(in.Width)])
		w.c('(')
		w.argsAs(in, half)
		w.endHalf(half)
	default:
		w.special(v, in, without)
	}
}

// narrowed prints a number rounded to half floats by two conversions.
func (w *printer) narrowed(in *ir.Instr) {
	w.needs |= Half
	w.s(typeName(in.Type, in.Width))
	w.c('(')
	w.s(typeName(ir.F16, in.Width))
	w.c('(')
	w.expr(in.Args[0], operand)
	w.s("))")
}

// narrow returns the index of the function for an instruction, among the functions of its code.
// Index 0 is the function for any operand.
func (w *printer) narrow(in *ir.Instr) int {
	if !w.t.Approximate || in.Type != ir.F32 || w.composing {
		return 0
	}
	for i, r := range ir.Narrows(in.Code) {
		if w.ranges == nil {
			w.ranges = ir.Ranges(w.p)
		}
		if w.ranges[in.Args[0]].Within(r.Operand) {
			return i + 1
		}
	}
	return 0
}

// args prints the operands and the closing parenthesis.
func (w *printer) args(in *ir.Instr) {
	for k := range codeTable[in.Code].args {
		if k > 0 {
			w.s(", ")
		}
		w.expr(in.Args[k], operand)
	}
	w.c(')')
}

// beginHalf begins the conversion to half floats of a result that is computed only in float32, and
// reports whether it did.
func (w *printer) beginHalf(in *ir.Instr) bool {
	if in.Type != ir.F16 {
		return false
	}
	w.s(typeName(ir.F16, in.Width))
	w.c('(')
	return true
}

func (w *printer) endHalf(half bool) {
	if half {
		w.c(')')
	}
}

// argsAs is args, with half floats converted to float32.
func (w *printer) argsAs(in *ir.Instr, half bool) {
	if !half {
		w.args(in)
		return
	}
	for k := range codeTable[in.Code].args {
		if k > 0 {
			w.s(", ")
		}
		w.asFloat(in.Args[k], in.Width)
	}
	w.c(')')
}

// logical reports whether && and || are printed for an instruction on booleans. Vectors do not have
// these operators. Naga in Go translates them to branches and variables, and SwiftShader's compiler
// then takes minutes.
func (w *printer) logical(in *ir.Instr) bool { return in.Width == 1 && w.t.Consumer != NagaGo }

// nanTest prints the test of one operand for NaN.
func (w *printer) nanTest(in *ir.Instr) {
	a := in.Args[0]
	if in.Code == ir.Eq {
		w.c('!')
	}
	w.need(fnIsNaN, in.Width)
	if w.p.Code[a].Type == ir.F16 {
		w.asFloat(a, in.Width)
	} else {
		w.expr(a, operand)
	}
	w.c(')')
}

func (w *printer) infix(in *ir.Instr, info *codeInfo) {
	left, right, text := info.left, info.right, info.text
	switch in.Code {
	case ir.And, ir.Or, ir.Xor:
		switch {
		case in.Type != ir.Bool:
		case in.Code == ir.Xor:
			left, right, text = tight, tight, " != "
		case !w.logical(in):
		case in.Code == ir.And:
			left, right, text = tight|logicAnd, tight, " && "
		default:
			left, right, text = tight|logicOr, tight, " || "
		}
	case ir.Eq, ir.Ne:
		if w.isNaNTest(in) {
			w.nanTest(in)
			return
		}
		if w.isUnequal(in) {
			w.s("!(")
			w.expr(in.Args[0], left)
			w.s(" == ")
			w.expr(in.Args[1], right)
			w.c(')')
			return
		}
	case ir.Shl, ir.Shr:
		w.expr(in.Args[0], left)
		w.s(text)
		w.shiftCount(in.Args[1], in.Width)
		return
	case ir.Add, ir.Sub, ir.Mul, ir.Div, ir.IDiv, ir.IMod:
		if in.Width != 1 {
			// The language accepts a scalar in the place of one of two vectors.
			x, y := in.Args[0], in.Args[1]
			if w.splatted(y) {
				y = w.unsplat(y)
			} else if w.splatted(x) {
				x = w.unsplat(x)
			}
			w.expr(x, left)
			w.s(text)
			w.expr(y, right)
			return
		}
	}
	w.expr(in.Args[0], left)
	w.s(text)
	w.expr(in.Args[1], right)
}

// splatted reports whether v is a vector made of one number, and is printed at its use.
func (w *printer) splatted(v ir.Value) bool {
	return w.p.Code[v].Code == ir.Splat && w.values[v].how != asName
}

// unsplat returns the scalar from which the vector v is splatted.
func (w *printer) unsplat(v ir.Value) ir.Value {
	if x := &w.values[v]; x.uses > 0 {
		x.uses--
	}
	return w.p.Code[v].Args[0]
}

// shiftCount prints the count of a shift. A constant count is reduced to a u32 below 32, because
// compilers reject others.
func (w *printer) shiftCount(v ir.Value, width uint8) {
	in := &w.p.Code[v]
	n := v
	if w.splatted(v) {
		n = in.Args[0]
	}
	if c := &w.p.Code[n]; c.Code == ir.Const && w.values[n].how != asName {
		if width != 1 {
			w.s(typeName(ir.U32, width))
			w.c('(')
		}
		w.u(c.Imm & 31)
		w.c('u')
		if width != 1 {
			w.c(')')
		}
		return
	}
	if in.Type == ir.U32 && in.Width == width {
		w.expr(v, tight)
		return
	}
	w.s(typeName(ir.U32, width))
	w.c('(')
	w.expr(v, operand)
	w.c(')')
}

// number reports whether v is a constant that is not NaN.
func (w *printer) number(v ir.Value) bool { return w.size(v) <= 0x7f800000 }

// size returns the bits of the magnitude of v if v is a constant float, and otherwise 2^32-1.
func (w *printer) size(v ir.Value) uint32 {
	in := &w.p.Code[v]
	if in.Code == ir.Splat {
		in = &w.p.Code[in.Args[0]]
	}
	if in.Code != ir.Const {
		return 1<<32 - 1
	}
	return in.Imm & 0x7fffffff
}
