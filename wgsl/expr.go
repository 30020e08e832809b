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

// expr prints a value where only expressions of the classes stand without
// parentheses.
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

// class returns how the expression that write prints for v binds.
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

// isNaNTest reports whether a comparison is one of a float with itself.
func (w *printer) isNaNTest(in *ir.Instr) bool {
	return in.Args[0] == in.Args[1] && isFloat(w.p.Code[in.Args[0]].Type)
}

// isUnequal reports whether a comparison is Ne of floats, which is printed as not
// equal: a NaN is unequal to everything, and != is false for it to some compilers.
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
			w.s("0u - ") // a number less a vector is a vector
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

// narrowed prints a number rounded by two conversions.
func (w *printer) narrowed(in *ir.Instr) {
	w.needs |= Half
	w.s(typeName(in.Type, in.Width))
	w.c('(')
	w.s(typeName(ir.F16, in.Width))
	w.c('(')
	w.expr(in.Args[0], operand)
	w.s("))")
}

// narrow returns which of the functions of a code computes an instruction: 0 is that
// of any operand.
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

// beginHalf begins the conversion of a result to half floats, for what is
// computed in float32 only, and reports whether it did.
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

// logical reports whether && and || are printed for an instruction on truth values, which
// vectors do not have. Naga in Go makes branches and variables of them, with
// which SwiftShader's compiler takes minutes.
func (w *printer) logical(in *ir.Instr) bool { return in.Width == 1 && w.t.Consumer != NagaGo }

func (w *printer) infix(in *ir.Instr, info *codeInfo) {
	left, right, text := info.left, info.right, info.text
	switch in.Code {
	case ir.And, ir.Or, ir.Xor:
		if in.Type != ir.Bool {
			break
		}
		switch {
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
			// The language takes a number for one of two vectors.
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

// splatted reports whether v is a vector of one number that would be written
// out.
func (w *printer) splatted(v ir.Value) bool {
	return w.p.Code[v].Code == ir.Splat && w.values[v].how != asName
}

// unsplat returns the number that a splatted v is made of.
func (w *printer) unsplat(v ir.Value) ir.Value {
	if x := &w.values[v]; x.uses > 0 {
		x.uses--
	}
	return w.p.Code[v].Args[0]
}

// shiftCount prints the count of a shift: a u32 below 32 where it is constant,
// because compilers reject others.
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

// size returns the bits of the size of v if it is a constant float, else 2^32-1.
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

// function prints what is a call of a function that the text brings with it, or
// of a built-in one where that will do.
func (w *printer) function(in *ir.Instr, info *codeInfo) {
	builtIn := w.t.has(Dot4)
	switch in.Code {
	case ir.Fma:
		builtIn = !w.t.Unfused || in.Type == ir.F16 || in.Flag == ir.Loose
		if !builtIn {
			f := fn(fnFmaAny)
			if w.composing {
				f = fnFma // what the expansions multiply does not overflow
			}
			w.need(f, in.Width)
			w.args(in)
			return
		}
	case ir.Min, ir.Max:
		if !isFloat(in.Type) || in.Flag == ir.Loose {
			builtIn = true
			break
		}
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
		return
	case ir.LeadingZeros, ir.TrailingZeros:
		if builtIn = w.t.Consumer != NagaGo; builtIn {
			break
		}
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
		return
	case ir.MulHigh:
		builtIn = false
	case ir.Dot4I8, ir.Dot4U8:
		if builtIn {
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
		return
	case ir.PackHalf:
		if w.t.Unfused { // software
			w.need(fnPackHalfBits, 1)
			w.args(in)
			return
		}
		builtIn = w.t.Consumer == Tint
	case ir.UnpackHalf:
		builtIn = !w.t.Unfused // that of software
	default:
		if builtIn {
			w.needs |= Dot4
		}
	}
	if builtIn {
		w.s(info.text)
		w.c('(')
	} else if in.Code == ir.MulHigh {
		w.need(info.fn, in.Width)
	} else {
		w.need(info.fn, 1)
	}
	w.args(in)
}

// clips reports whether v is the greater of a number and something, which is printed
// where it is used.
func (w *printer) clips(v ir.Value) bool {
	in := &w.p.Code[v]
	return in.Code == ir.Max && w.values[v].how != asName && w.number(in.Args[0]) != w.number(in.Args[1])
}

// unclip returns the operands of a v that clips, the number behind the other.
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

// special prints the codes that are like no other.
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
	case ir.Splat:
		w.s(typeName(in.Type, in.Width))
		w.c('(')
		w.expr(in.Args[0], operand)
		w.c(')')
	case ir.Compose:
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
	case ir.Extract:
		w.expr(in.Args[0], primary)
		if w.p.Code[in.Args[0]].Width != 1 { // the component of a number is itself
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

// The places of the parameters of the entry point in printer.builtIns.
const (
	useLocal = iota
	useGroup
	useGroups
	useLane
	useSubgroupSize
	useSubgroupLane
	numBuiltIns
)

var builtInWords = [numBuiltIns][3]string{
	useLocal:        {wordLocal, "local_invocation_id", "vec3u"},
	useGroup:        {wordGroup, "workgroup_id", "vec3u"},
	useGroups:       {wordGroups, "num_workgroups", "vec3u"},
	useLane:         {wordLane, "local_invocation_index", "u32"},
	useSubgroupSize: {wordSubgroupSize, "subgroup_size", "u32"},
	useSubgroupLane: {wordSubgroupLane, "subgroup_invocation_id", "u32"},
}

// subgroupSize returns the number of lanes of a subgroup if it is known.
func (w *printer) subgroupSize() (n uint32, known bool) {
	if !w.t.has(Subgroups) {
		return 1, true
	}
	n = w.t.SubgroupSize[0]
	return n, n != 0 && n == w.t.SubgroupSize[1]
}

// literalBuiltIn reports whether the built-in is printed as a number.
func (w *printer) literalBuiltIn(flag uint8) bool {
	switch flag {
	case ir.BuiltInSubgroupSize:
		_, known := w.subgroupSize()
		return known
	case ir.BuiltInSubgroupLane:
		return !w.t.has(Subgroups)
	}
	return false
}

func (w *printer) use(b int) {
	w.builtIns |= 1 << b
	w.s(builtInWords[b][0])
	if b >= useSubgroupSize {
		w.needs |= Subgroups
	}
}

func (w *printer) builtIn(flag uint8) {
	switch {
	case flag <= ir.BuiltInGroupsZ:
		w.use(useLocal + int(flag)/3)
		w.c('.')
		w.c("xyz"[flag%3])
	case flag == ir.BuiltInLane:
		w.use(useLane)
	case flag == ir.BuiltInSubgroupSize:
		if n, known := w.subgroupSize(); known {
			w.u(n)
			w.c('u')
			break
		}
		w.use(useSubgroupSize)
	case flag == ir.BuiltInSubgroupLane:
		if !w.t.has(Subgroups) {
			w.s("0u")
			break
		}
		w.use(useSubgroupLane)
	default: // BuiltInSubgroup
		w.use(useLane)
		if w.t.has(Subgroups) {
			w.s(" / ")
			w.builtIn(ir.BuiltInSubgroupSize)
		}
	}
}

var reduceNames = [...]string{
	ir.ReduceAdd: "subgroupAdd", ir.ReduceMin: "subgroupMin", ir.ReduceMax: "subgroupMax", ir.ReduceAnd: "subgroupAnd", ir.ReduceOr: "subgroupOr",
}

// subgroup prints an operation between the lanes of a subgroup, or what it is
// among one lane.
func (w *printer) subgroup(in *ir.Instr) {
	a := in.Args[0]
	if !w.t.has(Subgroups) {
		if in.Code == ir.SubgroupScan {
			w.s(typeName(in.Type, in.Width))
			w.s("()")
			return
		}
		w.expr(a, anything)
		return
	}
	w.needs |= Subgroups
	// Truth values are passed between lanes as numbers, and so are vectors of
	// them.
	asNumber := in.Type == ir.Bool && (in.Code != ir.SubgroupOp || in.Width > 1)
	var name string
	switch in.Code {
	case ir.SubgroupOp:
		name = reduceNames[in.Flag]
		if in.Type == ir.Bool && !asNumber {
			name = "subgroupAll"
			if in.Flag == ir.ReduceOr {
				name = "subgroupAny"
			}
		}
	case ir.SubgroupScan:
		name = "subgroupExclusiveAdd"
	case ir.SubgroupShuffle:
		name = "subgroupShuffle"
	case ir.SubgroupXor:
		name = "subgroupShuffleXor"
	case ir.SubgroupFirst:
		name = "subgroupBroadcastFirst"
	}
	if asNumber {
		w.s(typeName(ir.Bool, in.Width))
		w.c('(')
	}
	w.s(name)
	w.c('(')
	if asNumber {
		w.s(typeName(ir.U32, in.Width))
		w.c('(')
	}
	w.expr(a, operand)
	if asNumber {
		w.c(')')
	}
	switch in.Code {
	case ir.SubgroupShuffle:
		w.s(", ")
		w.expr(in.Args[1], operand)
	case ir.SubgroupXor:
		w.s(", ")
		w.u(in.Imm)
		w.c('u')
	}
	w.c(')')
	if asNumber {
		w.c(')')
	}
}
