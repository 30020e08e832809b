package wgsl

import "github.com/rayo-go/rayo/internal/ir"

// class is the precedence of an expression. Each class is one bit, so that a set says which
// expressions need no parentheses in a place. Precedence in WGSL is not a total order: for example,
// shifts and bit operations cannot be mixed with other operators without parentheses.
type class uint16

const (
	primary class = 1 << iota
	unary
	product
	sum
	relation
	bitAnd
	bitOr
	bitXor
	logicAnd
	logicOr
	shift

	anything class = 1<<iota - 1
	// operand is the set for arguments of calls and for indices. It excludes comparisons, because a
	// compiler would read f(a < b, c >> d) as a template list.
	operand   = anything &^ relation
	tight     = primary | unary
	summand   = tight | product
	arithmeti = summand | sum
)

// form says how an instruction is printed.
type form uint8

const (
	special  form = iota // printed by code of its own: see expr.go and print.go
	infix                // a text b
	prefix               // text a
	call                 // text(a, b, c)
	function             // a call of a function of functions.go
	composed             // a call of a function made from the expansion of the code
)

// codeInfo describes a code to the printer.
type codeInfo struct {
	form  form
	args  uint8
	class class
	left  class // the classes that need no parentheses on the left of an infix operator
	right class
	text  string
	fn    fn
	// pure: the value depends only on the operands, so the instruction may be printed at the use of
	// its value.
	pure bool
	// fixed: the instruction has an effect, or must not be moved.
	fixed bool
}

var codeTable = [256]codeInfo{
	ir.Const: {pure: true},
	ir.Add:   {form: infix, args: 2, class: sum, left: arithmeti, right: summand, text: " + ", pure: true},
	ir.Sub:   {form: infix, args: 2, class: sum, left: arithmeti, right: summand, text: " - ", pure: true},
	ir.Mul:   {form: infix, args: 2, class: product, left: summand, right: tight, text: " * ", pure: true},
	ir.Div:   {form: infix, args: 2, class: product, left: summand, right: tight, text: " / ", pure: true},
	ir.IDiv:  {form: infix, args: 2, class: product, left: summand, right: tight, text: " / ", pure: true},
	ir.IMod:  {form: infix, args: 2, class: product, left: summand, right: tight, text: " % ", pure: true},
	ir.Eq:    {form: infix, args: 2, class: relation, left: arithmeti, right: arithmeti, text: " == ", pure: true},
	ir.Ne:    {form: infix, args: 2, class: relation, left: arithmeti, right: arithmeti, text: " != ", pure: true},
	ir.Lt:    {form: infix, args: 2, class: relation, left: arithmeti, right: arithmeti, text: " < ", pure: true},
	ir.Le:    {form: infix, args: 2, class: relation, left: arithmeti, right: arithmeti, text: " <= ", pure: true},
	ir.And:   {form: infix, args: 2, class: bitAnd, left: tight | bitAnd, right: tight, text: " & ", pure: true},
	ir.Or:    {form: infix, args: 2, class: bitOr, left: tight | bitOr, right: tight, text: " | ", pure: true},
	ir.Xor:   {form: infix, args: 2, class: bitXor, left: tight | bitXor, right: tight, text: " ^ ", pure: true},
	ir.Shl:   {form: infix, args: 2, class: shift, left: tight, right: tight, text: " << ", pure: true},
	ir.Shr:   {form: infix, args: 2, class: shift, left: tight, right: tight, text: " >> ", pure: true},
	ir.Neg:   {form: prefix, args: 1, class: unary, right: primary, text: "-", pure: true},
	ir.Not:   {form: prefix, args: 1, class: unary, right: primary, text: "~", pure: true},

	ir.Abs:   {form: call, args: 1, class: primary, text: "abs", pure: true},
	ir.Fma:   {form: function, args: 3, class: primary, text: "fma", fn: fnFma, pure: true},
	ir.Sqrt:  {form: call, args: 1, class: primary, text: "sqrt", pure: true},
	ir.Floor: {form: call, args: 1, class: primary, text: "floor", pure: true},
	ir.Ceil:  {form: call, args: 1, class: primary, text: "ceil", pure: true},
	ir.Trunc: {form: call, args: 1, class: primary, text: "trunc", pure: true},
	ir.Round: {form: call, args: 1, class: primary, text: "round", pure: true},
	ir.Rsqrt: {form: call, args: 1, class: primary, text: "inverseSqrt", pure: true},
	ir.Dot:   {form: call, args: 2, class: primary, text: "dot", pure: true},

	ir.Min:       {form: function, args: 2, class: primary, text: "min", fn: fnMin, pure: true},
	ir.Max:       {form: function, args: 2, class: primary, text: "max", fn: fnMax, pure: true},
	ir.Select:    {args: 3, class: primary, text: "select", pure: true},
	ir.Convert:   {args: 1, class: primary, pure: true},
	ir.Bitcast:   {args: 1, class: primary, text: "bitcast<", pure: true},
	ir.Recip:     {args: 1, class: product, right: tight, pure: true},
	ir.CopySign:  {form: composed, args: 2, class: primary, pure: true},
	ir.RoundF16:  {form: composed, args: 1, class: primary, pure: true},
	ir.RoundBF16: {form: composed, args: 1, class: primary, pure: true},
	ir.Ldexp:     {form: composed, args: 2, class: primary, pure: true},
	ir.Exp:       {form: composed, args: 1, class: primary, pure: true},
	ir.Exp2:      {form: composed, args: 1, class: primary, pure: true},
	ir.Expm1:     {form: composed, args: 1, class: primary, pure: true},
	ir.Log:       {form: composed, args: 1, class: primary, pure: true},
	ir.Log2:      {form: composed, args: 1, class: primary, pure: true},
	ir.Log1p:     {form: composed, args: 1, class: primary, pure: true},
	ir.Tanh:      {form: composed, args: 1, class: primary, pure: true},
	ir.Sigmoid:   {form: composed, args: 1, class: primary, pure: true},
	ir.Erf:       {form: composed, args: 1, class: primary, pure: true},
	ir.Erfc:      {form: composed, args: 1, class: primary, pure: true},
	ir.NormCDF:   {form: composed, args: 1, class: primary, pure: true},
	ir.Sin:       {form: composed, args: 1, class: primary, pure: true},
	ir.Cos:       {form: composed, args: 1, class: primary, pure: true},
	ir.Atan:      {form: composed, args: 1, class: primary, pure: true},
	ir.Pow:       {form: composed, args: 2, class: primary, pure: true},

	ir.Exp2Approx:  {form: call, args: 1, class: primary, text: "exp2", pure: true},
	ir.RecipApprox: {args: 1, class: product, right: tight, pure: true},
	ir.FmaUnit:     {args: 3, class: primary, pure: true},

	ir.BuiltIn: {class: primary, pure: true},
	ir.Param32: {class: primary, pure: true},
	ir.Len:     {class: primary, pure: true},
	ir.Splat:   {args: 1, class: primary, pure: true},
	ir.Compose: {args: 2, class: primary, pure: true},
	ir.Extract: {args: 1, class: primary, pure: true},

	ir.CountOnes:     {form: call, args: 1, class: primary, text: "countOneBits", pure: true},
	ir.LeadingZeros:  {form: function, args: 1, class: primary, text: "countLeadingZeros", fn: fnLeadingZeros, pure: true},
	ir.TrailingZeros: {form: function, args: 1, class: primary, text: "countTrailingZeros", fn: fnTrailingZeros, pure: true},
	ir.ReverseBits:   {form: call, args: 1, class: primary, text: "reverseBits", pure: true},
	ir.MulHigh:       {form: function, args: 2, class: primary, fn: fnMulHigh, pure: true},
	ir.Dot4I8:        {form: function, args: 3, class: primary, text: "dot4I8Packed", fn: fnDot4I8, pure: true},
	ir.Dot4U8:        {form: function, args: 3, class: primary, text: "dot4U8Packed", fn: fnDot4U8, pure: true},
	ir.PackHalf:      {form: function, args: 1, class: primary, text: "pack2x16float", fn: fnPackHalf, pure: true},
	ir.UnpackHalf:    {form: function, args: 1, class: primary, text: "unpack2x16float", fn: fnUnpackHalf, pure: true},
	ir.PackI8:        {form: function, args: 1, class: primary, text: "pack4xI8", fn: fnPackI8, pure: true},
	ir.UnpackI8:      {form: function, args: 1, class: primary, text: "unpack4xI8", fn: fnUnpackI8, pure: true},
	ir.UnpackU8:      {form: function, args: 1, class: primary, text: "unpack4xU8", fn: fnUnpackU8, pure: true},

	ir.Load:       {args: 1, class: primary},
	ir.LoadShared: {args: 1, class: primary},
	ir.LoadVar:    {class: primary},

	ir.SubgroupOp:      {args: 1, class: primary, fixed: true},
	ir.SubgroupScan:    {args: 1, class: primary, fixed: true},
	ir.SubgroupShuffle: {args: 2, class: primary, fixed: true},
	ir.SubgroupXor:     {args: 1, class: primary, fixed: true},
	ir.SubgroupFirst:   {args: 1, class: primary, fixed: true},
	ir.UniformLoad:     {args: 1, class: primary, fixed: true},

	ir.AtomicOp:       {args: 2, class: primary, fixed: true},
	ir.AtomicOpShared: {args: 2, class: primary, fixed: true},
	ir.Store:          {args: 2, fixed: true},
	ir.StoreShared:    {args: 2, fixed: true},
	ir.StoreVar:       {args: 1, fixed: true},
	ir.Barrier:        {fixed: true},
	ir.If:             {args: 1, fixed: true},
	ir.Else:           {fixed: true},
	ir.For:            {args: 3, fixed: true},
	ir.Loop:           {fixed: true},
	ir.End:            {fixed: true},
	ir.Break:          {fixed: true},
	ir.Continue:       {fixed: true},
	ir.Return:         {fixed: true},
}

// traits has the properties of a code that the passes over a program need, in one byte: the number
// of operands, and whether the instruction is pure or fixed.
var traits = func() (t [256]uint8) {
	for c := range t {
		i := &codeTable[c]
		t[c] = i.args
		if i.pure {
			t[c] |= isPure
		}
		if i.fixed {
			t[c] |= isFixed
		}
	}
	for _, c := range []ir.Code{ir.Compose, ir.AtomicOp, ir.AtomicOpShared} {
		t[c] |= varying
	}
	for _, c := range []ir.Code{ir.UniformLoad, ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupXor, ir.SubgroupFirst, ir.SubgroupShuffle} {
		t[c] |= droppable
	}
	for _, c := range []ir.Code{ir.LoadVar, ir.LoadShared} {
		t[c] |= surveyed
	}
	return t
}()

const (
	argCount uint8 = 3
	varying  uint8 = 1 << (iota + 2) // Instr.Operands returns the number of operands
	isPure
	isFixed
	droppable // fixed, but without an effect if the value is unused
	surveyed  // surveyStatement reads it although it is not fixed
)
