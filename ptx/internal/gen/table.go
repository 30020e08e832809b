package main

import (
	"fmt"
	"strings"
)

// row is one instruction, for one or more types of its first operand. The generator derives from it
// the code of each form, the text, the requirements of the form, and, if method is set, a method of
// each type.
type row struct {
	name string // of the code and of the method
	ptx  string // {t} is replaced by the type, {b} by its bits
	on   string // types of the first operand; "" for instructions without types
	// args are the other operands, "name" for the same type or "name:Type". A
	// result of another type is "->Type", no result "->".
	args   string
	need   string // "version sm", above 6.0 and sm_70
	doc    string // the result of the method; "" without a method
	fold   string // how constants fold, see fold.go
	layout string // how the operands are written, plain if ""
}

const (
	ints   = "U32 S32 U64 S64"
	words  = "U32 S32"
	floats = "F32 F64"
	halves = "F16 F16x2"
	brains = "BF16 BF16x2"
	bits   = "U32 S32 B32 U64 S64"
)

var rows = []row{
	{name: "Add", ptx: "add.{t}", on: ints, args: "y", fold: "Add", doc: "x + y, modulo 2 to the number of bits"},
	{name: "Add", ptx: "add.rn.{t}", on: floats, args: "y", fold: "Add", doc: "x + y, rounded to nearest even. It is never fused with a product"},
	{name: "Add", ptx: "add.rn.{t}", on: halves, args: "y", doc: "x + y, rounded to nearest even. It is never fused with a product"},
	{name: "Add", ptx: "add.rn.{t}", on: brains, args: "y", need: "7.8 90", doc: "x + y, rounded to nearest even. It is never fused with a product"},
	{name: "Sub", ptx: "sub.{t}", on: ints, args: "y", fold: "Sub", doc: "x - y, modulo 2 to the number of bits"},
	{name: "Sub", ptx: "sub.rn.{t}", on: floats, args: "y", fold: "Sub", doc: "x - y, rounded to nearest even"},
	{name: "Sub", ptx: "sub.rn.{t}", on: halves, args: "y", doc: "x - y, rounded to nearest even"},
	{name: "Sub", ptx: "sub.rn.{t}", on: brains, args: "y", need: "7.8 90", doc: "x - y, rounded to nearest even"},
	{name: "Mul", ptx: "mul.lo.{t}", on: ints, args: "y", fold: "Mul", doc: "the low half of x * y"},
	{name: "Mul", ptx: "mul.rn.{t}", on: floats, args: "y", fold: "Mul", doc: "x * y, rounded to nearest even. It is never fused with a sum"},
	{name: "Mul", ptx: "mul.rn.{t}", on: halves, args: "y", doc: "x * y, rounded to nearest even. It is never fused with a sum"},
	{name: "Mul", ptx: "mul.rn.{t}", on: brains, args: "y", need: "7.8 90", doc: "x * y, rounded to nearest even. It is never fused with a sum"},
	{name: "MulHigh", ptx: "mul.hi.{t}", on: ints, args: "y", doc: "the high half of x * y"},
	{name: "MulWide", ptx: "mul.wide.u32", on: "U32", args: "y ->U64", fold: "MulWide", doc: "the whole product x * y"},
	{name: "MulWide", ptx: "mul.wide.s32", on: "S32", args: "y ->S64", doc: "the whole product x * y"},
	{name: "MulAdd", ptx: "mad.lo.{t}", on: ints, args: "y z", fold: "MulAdd", doc: "the low half of x*y + z"},
	{name: "MulAddWide", ptx: "mad.wide.u32", on: "U32", args: "y z:U64 ->U64", doc: "x*y + z with the whole product"},
	{name: "MulAddWide", ptx: "mad.wide.s32", on: "S32", args: "y z:S64 ->S64", doc: "x*y + z with the whole product"},
	{name: "Div", ptx: "div.{t}", on: ints, args: "y", fold: "Div", doc: "x / y towards 0; undefined for y = 0. It is a long sequence of instructions unless y is a constant"},
	{name: "Rem", ptx: "rem.{t}", on: ints, args: "y", fold: "Rem", doc: "the remainder of x / y; undefined for y = 0"},
	{name: "Min", ptx: "min.{t}", on: ints, args: "y", fold: "Min", doc: "the lesser of x and y"},
	{name: "Max", ptx: "max.{t}", on: ints, args: "y", fold: "Max", doc: "the greater of x and y"},
	{name: "Min", ptx: "min.{t}", on: floats, args: "y", doc: "the lesser of x and y, the other one if one is NaN"},
	{name: "Max", ptx: "max.{t}", on: floats, args: "y", doc: "the greater of x and y, the other one if one is NaN"},
	{name: "Min", ptx: "min.{t}", on: halves + " " + brains, args: "y", need: "7.0 80", doc: "the lesser of x and y, the other one if one is NaN"},
	{name: "Max", ptx: "max.{t}", on: halves + " " + brains, args: "y", need: "7.0 80", doc: "the greater of x and y, the other one if one is NaN"},
	{name: "MinNaN", ptx: "min.NaN.{t}", on: "F32 " + halves + " " + brains, args: "y", need: "7.0 80", doc: "the lesser of x and y, NaN if one is NaN"},
	{name: "MaxNaN", ptx: "max.NaN.{t}", on: "F32 " + halves + " " + brains, args: "y", need: "7.0 80", doc: "the greater of x and y, NaN if one is NaN"},
	{name: "Neg", ptx: "neg.{t}", on: "S32 S64", fold: "Neg", doc: "-x"},
	{name: "Neg", ptx: "neg.{t}", on: floats, fold: "Neg", doc: "-x"},
	{name: "Neg", ptx: "neg.{t}", on: halves, doc: "-x"},
	{name: "Neg", ptx: "neg.{t}", on: brains, need: "7.0 80", doc: "-x"},
	{name: "Abs", ptx: "abs.{t}", on: "S32 S64", doc: "the magnitude of x; the least number is itself"},
	{name: "Abs", ptx: "abs.{t}", on: floats, doc: "the magnitude of x"},
	{name: "Abs", ptx: "abs.{t}", on: halves, need: "6.5 70", doc: "the magnitude of x"},
	{name: "Abs", ptx: "abs.{t}", on: brains, need: "7.0 80", doc: "the magnitude of x"},

	{name: "Fma", ptx: "fma.rn.{t}", on: floats + " " + halves, args: "y z", doc: "x*y + z, rounded once to nearest even"},
	{name: "Fma", ptx: "fma.rn.{t}", on: brains, args: "y z", need: "7.0 80", doc: "x*y + z, rounded once to nearest even"},
	{name: "FmaZero", ptx: "fma.rz.{t}", on: floats, args: "y z", doc: "x*y + z, rounded once towards 0"},
	{name: "FmaDown", ptx: "fma.rm.{t}", on: floats, args: "y z", doc: "x*y + z, rounded once towards -Inf"},
	{name: "FmaUp", ptx: "fma.rp.{t}", on: floats, args: "y z", doc: "x*y + z, rounded once towards +Inf"},
	{name: "FmaSaturate", ptx: "fma.rn.sat.f32", on: "F32", args: "y z", doc: "x*y + z, rounded once to nearest even and limited to [0, 1]; 0 for NaN"},
	{name: "Div", ptx: "div.rn.{t}", on: floats, args: "y", doc: "x / y, correctly rounded"},
	{name: "DivFull", ptx: "div.full.f32", on: "F32", args: "y", doc: "x / y within 2 ulp over the full range"},
	{name: "DivApprox", ptx: "div.approx.f32", on: "F32", args: "y", doc: "x / y within 2 ulp for |y| in [2**-126, 2**126]"},
	{name: "Rcp", ptx: "rcp.rn.{t}", on: floats, doc: "1/x, correctly rounded"},
	{name: "RcpApprox", ptx: "rcp.approx.f32", on: "F32", doc: "1/x within 1 ulp"},
	{name: "RcpApproxFlush", ptx: "rcp.approx.ftz.f32", on: "F32", doc: "1/x within 1 ulp, with subnormal x and results replaced by 0"},
	{name: "Sqrt", ptx: "sqrt.rn.{t}", on: floats, doc: "the square root, correctly rounded"},
	{name: "SqrtApprox", ptx: "sqrt.approx.f32", on: "F32", doc: "the square root with a relative error of about 2**-23"},
	{name: "RsqrtApprox", ptx: "rsqrt.approx.{t}", on: floats, doc: "1/sqrt(x) with a relative error of about 2**-22 (F64: the same, subnormal results are 0)"},
	{name: "RsqrtApproxFlush", ptx: "rsqrt.approx.ftz.f32", on: "F32", doc: "1/sqrt(x) with a relative error of about 2**-22, with subnormal x replaced by 0"},
	{name: "Ex2Approx", ptx: "ex2.approx.f32", on: "F32", doc: "2**x within 2 ulp"},
	{name: "Ex2ApproxFlush", ptx: "ex2.approx.ftz.f32", on: "F32", doc: "2**x within 2 ulp, with subnormal x and results replaced by 0"},
	{name: "Ex2Approx", ptx: "ex2.approx.{t}", on: halves, need: "7.0 75", doc: "2**x with a relative error of about 2**-9.9"},
	{name: "Lg2Approx", ptx: "lg2.approx.f32", on: "F32", doc: "the logarithm to base 2, absolute error 2**-22 near 1, else relative 2**-22"},
	{name: "SinApprox", ptx: "sin.approx.f32", on: "F32", doc: "the sine with an absolute error of about 2**-20.5 for |x| <= 2 pi; worse beyond"},
	{name: "CosApprox", ptx: "cos.approx.f32", on: "F32", doc: "the cosine with an absolute error of about 2**-20.5 for |x| <= 2 pi; worse beyond"},
	{name: "TanhApprox", ptx: "tanh.approx.f32", on: "F32", need: "7.0 75", doc: "the hyperbolic tangent with a relative error of about 2**-11"},
	{name: "TanhApprox", ptx: "tanh.approx.{t}", on: halves, need: "7.0 75", doc: "the hyperbolic tangent with an absolute error of about 2**-10.9"},
	{name: "CopySign", ptx: "copysign.{t}", on: floats, args: "y", doc: "the magnitude of y with the sign of x"},

	{name: "And", ptx: "and.{b}", on: bits, args: "y", fold: "And", doc: "the bits that x and y share"},
	{name: "Or", ptx: "or.{b}", on: bits, args: "y", fold: "Or", doc: "the bits of x and y"},
	{name: "Xor", ptx: "xor.{b}", on: bits, args: "y", fold: "Xor", doc: "the bits in which x and y differ"},
	{name: "Not", ptx: "not.{b}", on: bits, fold: "Not", doc: "x with every bit flipped"},
	{name: "Shl", ptx: "shl.{b}", on: bits, args: "n:U32", fold: "Shl", doc: "x shifted left by n; 0 for n beyond the number of bits"},
	{name: "Shr", ptx: "shr.{t}", on: "U32 U64 B32", args: "n:U32", fold: "Shr", doc: "x shifted right by n, zeros come in; 0 for n beyond the number of bits"},
	{name: "Shr", ptx: "shr.{t}", on: "S32 S64", args: "n:U32", fold: "Shr", doc: "x shifted right by n; the sign comes in, for any n"},
	{name: "CountOnes", ptx: "popc.{b}", on: "U32 B32 U64", args: "->U32", doc: "how many bits are set"},
	{name: "LeadingZeros", ptx: "clz.{b}", on: "U32 B32 U64", args: "->U32", doc: "how many zeros are above the highest bit that is set"},
	{name: "ReverseBits", ptx: "brev.{b}", on: "U32 B32 U64", doc: "x with its bits in the opposite order"},
	{name: "HighestBit", ptx: "bfind.{t}", on: "U32 U64", args: "->U32", doc: "the place of the highest bit that is set, 2**32-1 for 0"},
	{name: "Field", ptx: "bfe.{t}", on: "U32 U64 S32 S64", args: "at:U32 n:U32", doc: "the n bits from bit at on, extended by zeros or, in signed types, by the sign"},
	{name: "Permute", ptx: "prmt.b32", on: "U32 B32", args: "y sel:U32", doc: "four of the bytes of x (0 to 3) and y (4 to 7), each named by 4 bits of sel"},
	{name: "FunnelLeft", ptx: "shf.l.wrap.b32", on: "U32 B32", args: "high n:U32", doc: "the high word of high:x shifted left by n modulo 32"},
	{name: "FunnelRight", ptx: "shf.r.wrap.b32", on: "U32 B32", args: "high n:U32", doc: "the low word of high:x shifted right by n modulo 32"},
	{name: "Lop3", ptx: "lop3.b32", on: "U32 B32", args: "y z", layout: "aux"},

	{name: "And", ptx: "and.pred", on: "Pred", args: "y", fold: "And", doc: "whether both hold"},
	{name: "Or", ptx: "or.pred", on: "Pred", args: "y", fold: "Or", doc: "whether one of them holds"},
	{name: "Xor", ptx: "xor.pred", on: "Pred", args: "y", fold: "Xor", doc: "whether exactly one of them holds"},
	{name: "Not", ptx: "not.pred", on: "Pred", fold: "Not", doc: "the contrary"},

	{name: "Eq", ptx: "setp.eq.{t}", on: ints + " F32 F64 F16", args: "y ->Pred", fold: "Eq", doc: "x == y"},
	{name: "Ne", ptx: "setp.ne.{t}", on: ints, args: "y ->Pred", fold: "Ne", doc: "x != y"},
	{name: "Ne", ptx: "setp.neu.{t}", on: "F32 F64 F16", args: "y ->Pred", fold: "Ne", doc: "x != y; true if either is NaN"},
	{name: "Lt", ptx: "setp.lt.{t}", on: ints + " F32 F64 F16", args: "y ->Pred", fold: "Lt", doc: "x < y"},
	{name: "Le", ptx: "setp.le.{t}", on: ints + " F32 F64 F16", args: "y ->Pred", fold: "Le", doc: "x <= y"},
	{name: "Gt", ptx: "setp.gt.{t}", on: ints + " F32 F64 F16", args: "y ->Pred", fold: "Gt", doc: "x > y"},
	{name: "Ge", ptx: "setp.ge.{t}", on: ints + " F32 F64 F16", args: "y ->Pred", fold: "Ge", doc: "x >= y"},
	{name: "Eq", ptx: "setp.eq.bf16", on: "BF16", args: "y ->Pred", need: "7.8 90", doc: "x == y"},
	{name: "Lt", ptx: "setp.lt.bf16", on: "BF16", args: "y ->Pred", need: "7.8 90", doc: "x < y"},
	{name: "Gt", ptx: "setp.gt.bf16", on: "BF16", args: "y ->Pred", need: "7.8 90", doc: "x > y"},
	{name: "IsNaN", ptx: "setp.nan.{t}", on: "F32 F64", args: "y ->Pred", doc: "whether x or y is NaN"},

	// Of every register class.
	{name: "Mov", ptx: "mov.{b}", on: "Pred F16 U32 U64 F32 F64"},
	{name: "Select", ptx: "selp.{b}", on: "F16 U32 U64 F32 F64", args: "y p:Pred"},
	{name: "Special", ptx: "mov.u32", args: "->U32", layout: "name"},
	{name: "Symbol", ptx: "mov.u32", args: "->U32", layout: "name"},

	// Conversions.
	{name: "F32", ptx: "cvt.rn.f32.{t}", on: ints + " F64", args: "->F32", doc: "x as an F32, rounded to nearest even"},
	{name: "F64", ptx: "cvt.rn.f64.{t}", on: ints, args: "->F64", doc: "x as an F64, rounded to nearest even"},
	{name: "F64", ptx: "cvt.f64.f32", on: "F32", args: "->F64", doc: "x as an F64"},
	{name: "F32", ptx: "cvt.f32.f16", on: "F16", args: "->F32", doc: "x as an F32"},
	{name: "F16", ptx: "cvt.rn.f16.f32", on: "F32", args: "->F16", doc: "x as an F16, rounded to nearest even"},
	{name: "BF16", ptx: "cvt.rn.bf16.f32", on: "F32", args: "->BF16", need: "7.0 80", doc: "x as a BF16, rounded to nearest even"},
	{name: "TF32", ptx: "cvt.rna.tf32.f32", on: "F32", args: "->B32", need: "7.0 80", doc: "x rounded to nearest, ties away from 0, to the 10 bits of fraction that TF32 products use"},
	{name: "PackF16", ptx: "cvt.rn.f16x2.f32", on: "F32", args: "low ->F16x2", need: "7.0 80", doc: "low and x, in the low and in the high half, rounded to nearest even"},
	{name: "PackBF16", ptx: "cvt.rn.bf16x2.f32", on: "F32", args: "low ->BF16x2", need: "7.0 80", doc: "low and x, in the low and in the high half, rounded to nearest even"},
	{name: "TruncU32", ptx: "cvt.rzi.u32.{t}", on: floats, args: "->U32", doc: "x without its fraction, limited to the range; 0 for NaN"},
	{name: "TruncS32", ptx: "cvt.rzi.s32.{t}", on: floats, args: "->S32", doc: "x without its fraction, limited to the range; 0 for NaN"},
	{name: "RoundS32", ptx: "cvt.rni.s32.{t}", on: floats, args: "->S32", doc: "the nearest integer, the even one of two, limited to the range; 0 for NaN"},
	{name: "FloorS32", ptx: "cvt.rmi.s32.{t}", on: floats, args: "->S32", doc: "the greatest integer not above x, limited to the range; 0 for NaN"},
	{name: "Trunc", ptx: "cvt.rzi.{t}.{t}", on: floats, doc: "x without its fraction"},
	{name: "Round", ptx: "cvt.rni.{t}.{t}", on: floats, doc: "the nearest integer, the even one of two"},
	{name: "Floor", ptx: "cvt.rmi.{t}.{t}", on: floats, doc: "the greatest integer not above x"},
	{name: "Ceil", ptx: "cvt.rpi.{t}.{t}", on: floats, doc: "the least integer not below x"},
	{name: "U64", ptx: "cvt.u64.u32", on: "U32", args: "->U64", fold: "Same", doc: "x with zeros above"},
	{name: "S64", ptx: "cvt.s64.s32", on: "S32", args: "->S64", doc: "x with its sign above"},
	{name: "U32", ptx: "cvt.u32.u64", on: "U64", args: "->U32", doc: "the low half"},
	{name: "S32", ptx: "cvt.s32.s64", on: "S64", args: "->S32", doc: "the low half"},
	{name: "Bits", ptx: "mov.b32", on: "F32", args: "->B32", fold: "Same", doc: "the bits of x"},
	{name: "Float", ptx: "mov.b32", on: "B32", args: "->F32", fold: "Same", doc: "the number that has these bits"},
	{name: "Bits", ptx: "mov.b64", on: "F64", args: "->U64", fold: "Same", doc: "the bits of x"},
	{name: "Float", ptx: "mov.b64", on: "U64", args: "->F64", fold: "Same", doc: "the number that has these bits"},
	{name: "Bits", ptx: "cvt.u32.u16", on: "F16 BF16", args: "->U32", doc: "the bits of x with zeros above"},
	{name: "HalfBits", ptx: "cvt.u16.u32", on: "U32", args: "->F16", doc: "the number whose bits are the low half of x"},
	{name: "BrainBits", ptx: "cvt.u16.u32", on: "U32", args: "->BF16", doc: "the number whose bits are the low half of x"},
	{name: "Pack", ptx: "mov.b32", on: "F16", args: "high ->F16x2", layout: "pack", doc: "x in the low half and high in the high half"},
	{name: "Pack", ptx: "mov.b32", on: "BF16", args: "high ->BF16x2", layout: "pack", doc: "x in the low half and high in the high half"},
	{name: "Pack", ptx: "mov.b64", on: "U32", args: "high ->U64", layout: "pack", doc: "x in the low half and high in the high half"},
	{name: "Unpack", ptx: "mov.b32", on: "F16x2", args: "high:F16 ->F16", layout: "unpack"},
	{name: "Unpack", ptx: "mov.b32", on: "BF16x2", args: "high:BF16 ->BF16", layout: "unpack"},
	{name: "Unpack", ptx: "mov.b64", on: "U64", args: "high:U32 ->U32", layout: "unpack"},

	{name: "Dot4", ptx: "dp4a.s32.s32", on: "B32", args: "y acc:S32 ->S32", doc: "acc plus the sum of the products of the four signed bytes of x and y"},
	{name: "Dot4Mixed", ptx: "dp4a.u32.s32", on: "B32", args: "y acc:S32 ->S32", doc: "acc plus the sum of the products of the four unsigned bytes of x and the signed ones of y"},
	{name: "Dot4Unsigned", ptx: "dp4a.u32.u32", on: "B32", args: "y acc:U32 ->U32", doc: "acc plus the sum of the products of the four unsigned bytes of x and y"},

	// Lanes of a warp. The mask of members comes last.
	{name: "ShuffleXor", ptx: "shfl.sync.bfly.b32", on: "U32 F32", args: "n:U32 members:U32", layout: "shuffle"},
	{name: "ShuffleUp", ptx: "shfl.sync.up.b32", on: "U32 F32", args: "n:U32 members:U32", layout: "shuffle"},
	{name: "ShuffleDown", ptx: "shfl.sync.down.b32", on: "U32 F32", args: "n:U32 members:U32", layout: "shuffle"},
	{name: "ShuffleIndex", ptx: "shfl.sync.idx.b32", on: "U32 F32", args: "n:U32 members:U32", layout: "shuffle"},
	{name: "Any", ptx: "vote.sync.any.pred", on: "Pred", args: "members:U32", doc: "whether x is true in any of the members. All members must execute it"},
	{name: "All", ptx: "vote.sync.all.pred", on: "Pred", args: "members:U32", doc: "whether x is true in all of the members. All members must execute it"},
	{name: "Uniform", ptx: "vote.sync.uni.pred", on: "Pred", args: "members:U32", doc: "whether x is the same in all of the members. All members must execute it"},
	{name: "Ballot", ptx: "vote.sync.ballot.b32", on: "Pred", args: "members:U32 ->U32", doc: "the mask of the members in which x is true. All members must execute it"},
	{name: "MatchAny", ptx: "match.any.sync.b32", on: "U32 B32", args: "members:U32 ->U32", doc: "the mask of the members that have the same x. All members must execute it"},
	{name: "ReduceAdd", ptx: "redux.sync.add.{t}", on: words, args: "members:U32", need: "7.0 80", doc: "the sum of x over the members. All members must execute it"},
	{name: "ReduceMin", ptx: "redux.sync.min.{t}", on: words, args: "members:U32", need: "7.0 80", doc: "the least x of the members. All members must execute it"},
	{name: "ReduceMax", ptx: "redux.sync.max.{t}", on: words, args: "members:U32", need: "7.0 80", doc: "the greatest x of the members. All members must execute it"},
	{name: "ReduceAnd", ptx: "redux.sync.and.b32", on: "B32", args: "members:U32", need: "7.0 80", doc: "the bits that are set in x of all members. All members must execute it"},
	{name: "ReduceOr", ptx: "redux.sync.or.b32", on: "B32", args: "members:U32", need: "7.0 80", doc: "the bits that are set in x of any member. All members must execute it"},
	{name: "ReduceXor", ptx: "redux.sync.xor.b32", on: "B32", args: "members:U32", need: "7.0 80", doc: "the bits that are set in x of an odd number of members. All members must execute it"},
	{name: "ActiveMask", ptx: "activemask.b32", args: "->U32", need: "6.2 70"},

	// Threads of a block.
	{name: "Barrier", ptx: "bar.sync", on: "U32", args: "->"},
	{name: "BarrierCount", ptx: "bar.sync", on: "U32", args: "n:U32 ->"},
	{name: "BarrierArrive", ptx: "bar.arrive", on: "U32", args: "n:U32 ->"},
	{name: "WarpBarrier", ptx: "bar.warp.sync", on: "U32", args: "->"},
	{name: "FenceBlock", ptx: "fence.acq_rel.cta", args: "->"},
	{name: "FenceDevice", ptx: "fence.acq_rel.gpu", args: "->"},
	{name: "FenceSystem", ptx: "fence.acq_rel.sys", args: "->"},
	{name: "FenceOrder", ptx: "fence.sc.gpu", args: "->"},

	// Memory. The type and the width of a vector follow the text.
	{name: "LoadParam", ptx: "ld.param", layout: "param"},
	{name: "LoadGlobal", ptx: "ld.global", layout: "load"},
	{name: "LoadGlobalReadOnly", ptx: "ld.global.nc", layout: "load"},
	{name: "LoadGlobalStream", ptx: "ld.global.cs", layout: "load"},
	{name: "LoadGlobalL2", ptx: "ld.global.cg", layout: "load"},
	{name: "LoadGlobalOnce", ptx: "ld.global.nc.L1::no_allocate", need: "7.4 70", layout: "load"},
	{name: "LoadGlobalVolatile", ptx: "ld.volatile.global", layout: "load"},
	{name: "LoadGlobalAhead", ptx: "ld.global.L2::128B", need: "7.4 75", layout: "load"},
	{name: "LoadGlobalOrdered", ptx: "ld.acquire.gpu.global", layout: "load"},
	{name: "StoreGlobal", ptx: "st.global", layout: "store"},
	{name: "StoreGlobalReadOnly", layout: "none"},
	{name: "StoreGlobalStream", ptx: "st.global.cs", layout: "store"},
	{name: "StoreGlobalL2", ptx: "st.global.cg", layout: "store"},
	{name: "StoreGlobalOnce", ptx: "st.global.L1::no_allocate", need: "7.4 70", layout: "store"},
	{name: "StoreGlobalVolatile", ptx: "st.volatile.global", layout: "store"},
	{name: "StoreGlobalAhead", layout: "none"},
	{name: "StoreGlobalOrdered", ptx: "st.release.gpu.global", layout: "store"},
	{name: "LoadShared", ptx: "ld.shared", layout: "load"},
	{name: "LoadSharedVolatile", ptx: "ld.volatile.shared", layout: "load"},
	{name: "StoreShared", ptx: "st.shared", layout: "store"},
	{name: "StoreSharedVolatile", ptx: "st.volatile.shared", layout: "store"},
	{name: "LoadCluster", ptx: "ld.shared::cluster", need: "7.8 90", layout: "load"},
	{name: "StoreCluster", ptx: "st.shared::cluster", need: "7.8 90", layout: "store"},
	{name: "Prefetch", ptx: "prefetch.global.L2 [$d+$i]", layout: "form"},
	{name: "ToGlobalParam", ptx: "cvta.param.u64", on: "U64", need: "7.7 70"},
	{name: "SymbolParam", ptx: "mov.b64", args: "->U64", layout: "name"},

	// Copies from global to shared memory that do not wait.
	{name: "CopyAsync", ptx: "cp.async.ca.shared.global", need: "7.0 80", layout: "copy"},
	{name: "CopyAsyncL2", ptx: "cp.async.cg.shared.global", need: "7.0 80", layout: "copy"},
	{name: "CopyCommit", ptx: "cp.async.commit_group", args: "->", need: "7.0 80"},
	{name: "CopyWait", ptx: "cp.async.wait_group", need: "7.0 80", layout: "immediate"},
	{name: "CopyWaitAll", ptx: "cp.async.wait_all", args: "->", need: "7.0 80"},

	// Tensor cores.
	{name: "LoadMatrix1", ptx: "ldmatrix.sync.aligned.m8n8.x1.shared.b16", need: "6.5 75", layout: "matrix"},
	{name: "LoadMatrix2", ptx: "ldmatrix.sync.aligned.m8n8.x2.shared.b16", need: "6.5 75", layout: "matrix"},
	{name: "LoadMatrix4", ptx: "ldmatrix.sync.aligned.m8n8.x4.shared.b16", need: "6.5 75", layout: "matrix"},
	{name: "LoadMatrixTrans1", ptx: "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", need: "6.5 75", layout: "matrix"},
	{name: "LoadMatrixTrans2", ptx: "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", need: "6.5 75", layout: "matrix"},
	{name: "LoadMatrixTrans4", ptx: "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", need: "6.5 75", layout: "matrix"},

	{name: "StoreMatrix1", ptx: "stmatrix.sync.aligned.m8n8.x1.shared.b16 [$r+$i], {$r}", need: "7.8 90", layout: "form"},
	{name: "StoreMatrix2", ptx: "stmatrix.sync.aligned.m8n8.x2.shared.b16 [$r+$i], {$r, $r}", need: "7.8 90", layout: "form"},
	{name: "StoreMatrix4", ptx: "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$r+$i], {$r, $r, $r, $r}", need: "7.8 90", layout: "form"},
	{name: "StoreMatrixTrans1", ptx: "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [$r+$i], {$r}", need: "7.8 90", layout: "form"},
	{name: "StoreMatrixTrans2", ptx: "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [$r+$i], {$r, $r}", need: "7.8 90", layout: "form"},
	{name: "StoreMatrixTrans4", ptx: "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [$r+$i], {$r, $r, $r, $r}", need: "7.8 90", layout: "form"},

	// Barriers in shared memory.
	{name: "MBarrierInit", ptx: "mbarrier.init.shared.b64 [$r+$i], $r", need: "7.0 80", layout: "form"},
	{name: "MBarrierInvalidate", ptx: "mbarrier.inval.shared.b64 [$r+$i]", need: "7.0 80", layout: "form"},
	{name: "MBarrierArrive", ptx: "mbarrier.arrive.shared.b64 _, [$r+$i]", need: "7.1 80", layout: "form"},
	{name: "MBarrierArriveCopy", ptx: "cp.async.mbarrier.arrive.noinc.shared.b64 [$r+$i]", need: "7.0 80", layout: "form"},
	{name: "MBarrierTest", ptx: "mbarrier.test_wait.parity.shared.b64 $=, [$r+$i], $r", args: "->Pred", need: "7.1 80", layout: "form"},
	{name: "MBarrierTry", ptx: "mbarrier.try_wait.parity.shared::cta.b64 $=, [$r+$i], $r", args: "->Pred", need: "7.8 90", layout: "form"},
	{name: "MBarrierExpect", ptx: "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$r+$i], $r", need: "8.0 90", layout: "form"},
	{name: "MBarrierArriveExpect", ptx: "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$r+$i], $r", need: "8.0 90", layout: "form"},
	{name: "MBarrierArriveRemote", ptx: "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$r]", need: "8.0 90", layout: "form"},
	{name: "MBarrierArriveNear", ptx: "mbarrier.arrive.shared::cluster.b64 _, [$r]", need: "8.0 90", layout: "form"},
	{name: "FenceMBarrierInit", ptx: "fence.mbarrier_init.release.cluster", args: "->", need: "8.0 90"},
	{name: "FenceAsync", ptx: "fence.proxy.async", args: "->", need: "8.0 90"},
	{name: "FenceAsyncShared", ptx: "fence.proxy.async.shared::cta", args: "->", need: "8.0 90"},

	// Copies in bulk.
	{name: "BulkLoad", ptx: "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$r+$i], [$d+$i], $r, [$r+$i]", need: "8.0 90", layout: "form"},
	{name: "BulkLoadPolicy", ptx: "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [$r+$i], [$d+$i], $r, [$r+$i], $d", need: "8.0 90", layout: "form"},
	{name: "BulkStore", ptx: "cp.async.bulk.global.shared::cta.bulk_group [$d+$i], [$r+$i], $r", need: "8.0 90", layout: "form"},
	{name: "BulkCommit", ptx: "cp.async.bulk.commit_group", args: "->", need: "8.0 90"},
	{name: "BulkWait", ptx: "cp.async.bulk.wait_group", need: "8.0 90", layout: "immediate"},
	{name: "BulkWaitRead", ptx: "cp.async.bulk.wait_group.read", need: "8.0 90", layout: "immediate"},
	{name: "PrefetchTensorMap", ptx: "prefetch.tensormap [$d]", need: "8.0 90", layout: "form"},
	{name: "PolicyEvictFirst", ptx: "createpolicy.fractional.L2::evict_first.b64 $=, 0f3F800000", args: "->U64", need: "7.4 80", layout: "form"},
	{name: "PolicyEvictLast", ptx: "createpolicy.fractional.L2::evict_last.b64 $=, 0f3F800000", args: "->U64", need: "7.4 80", layout: "form"},

	// Warpgroup instructions. The products are in wgmmas.
	{name: "WgmmaFence", ptx: "wgmma.fence.sync.aligned", args: "->", need: "8.0 90a"},
	{name: "WgmmaCommit", ptx: "wgmma.commit_group.sync.aligned", args: "->", need: "8.0 90a"},
	{name: "WgmmaWait", ptx: "wgmma.wait_group.sync.aligned", need: "8.0 90a", layout: "immediate"},
	{name: "RaiseRegisters", ptx: "setmaxnreg.inc.sync.aligned.u32", need: "8.0 90a", layout: "immediate"},
	{name: "DropRegisters", ptx: "setmaxnreg.dec.sync.aligned.u32", need: "8.0 90a", layout: "immediate"},

	// Clusters, and grids after grids.
	{name: "ClusterArrive", ptx: "barrier.cluster.arrive.release.aligned", args: "->", need: "8.0 90"},
	{name: "ClusterArriveRelaxed", ptx: "barrier.cluster.arrive.relaxed.aligned", args: "->", need: "8.0 90"},
	{name: "ClusterWait", ptx: "barrier.cluster.wait.acquire.aligned", args: "->", need: "8.0 90"},
	{name: "MapShared", ptx: "mapa.shared::cluster.u32", on: "U32", args: "rank:U32", need: "7.8 90"},
	{name: "WaitDependencies", ptx: "griddepcontrol.wait", args: "->", need: "7.8 90"},
	{name: "LaunchDependents", ptx: "griddepcontrol.launch_dependents", args: "->", need: "7.8 90"},
	{name: "Elect", ptx: "elect.sync _|$=, $r", args: "->Pred", need: "8.0 90", layout: "form"},

	// Odds and ends.
	{name: "Insert", ptx: "bfi.b32 $=, $r, $r, $r, $r", args: "->U32", layout: "form"},
	{name: "Clock", ptx: "mov.u64 $=, %clock64", args: "->U64", layout: "form"},
	{name: "GlobalTimer", ptx: "mov.u64 $=, %globaltimer", args: "->U64", layout: "form"},
	{name: "Sleep", ptx: "nanosleep.u32", on: "U32", args: "->", need: "6.3 70"},
	{name: "Trap", ptx: "trap", args: "->"},
	{name: "Raw", layout: "raw"},

	// Control.
	{name: "Label", layout: "label"},
	{name: "Branch", ptx: "bra", layout: "branch"},
	{name: "Return", ptx: "ret", args: "->"},
}

// mma is a product of matrices: D[16,8] = A[16,k] B[k,8] + C[16,8].
type mma struct {
	name    string
	shape   string
	d, a, b string // types as PTX names them
	acc     string // type of an accumulator
	nd      int
	frag    string // of A and B
	na, nb  int
	need    string
	doc     string
}

var mmas = []mma{
	{"MmaF16K8", "m16n8k8", "f32", "f16", "f16", "F32", 4, "F16x2", 2, 1, "6.5 75", "f16 with K = 8"},
	{"MmaF16", "m16n8k16", "f32", "f16", "f16", "F32", 4, "F16x2", 4, 2, "7.0 80", "f16 with K = 16"},
	{"MmaF16Half", "m16n8k16", "f16", "f16", "f16", "F16x2", 2, "F16x2", 4, 2, "7.0 80", "f16 with K = 16, summed in f16"},
	{"MmaBF16", "m16n8k16", "f32", "bf16", "bf16", "F32", 4, "BF16x2", 4, 2, "7.0 80", "bf16 with K = 16"},
	{"MmaTF32", "m16n8k8", "f32", "tf32", "tf32", "F32", 4, "B32", 4, 2, "7.0 80", "tf32 (see [F32.TF32]) with K = 8"},
	{"MmaS8", "m16n8k32", "s32", "s8", "s8", "S32", 4, "B32", 4, 2, "7.0 80", "signed bytes, four a register, with K = 32"},
	{"MmaS8K16", "m16n8k16", "s32", "s8", "s8", "S32", 4, "B32", 2, 1, "7.0 80", "signed bytes, four a register, with K = 16"},
	{"MmaU8S8", "m16n8k32", "s32", "u8", "s8", "S32", 4, "B32", 4, 2, "7.0 80", "bytes, unsigned ones of a and signed ones of b, four a register, with K = 32"},
	{"MmaE4M3", "m16n8k32", "f32", "e4m3", "e4m3", "F32", 4, "B32", 4, 2, "8.4 89", "floats of 8 bits, 4 of them exponent, four a register, with K = 32"},
	{"MmaE5M2", "m16n8k32", "f32", "e5m2", "e5m2", "F32", 4, "B32", 4, 2, "8.4 89", "floats of 8 bits, 5 of them exponent, four a register, with K = 32"},
	{"MmaU8", "m16n8k32", "s32", "u8", "u8", "S32", 4, "B32", 4, 2, "7.0 80", "unsigned bytes, four a register, with K = 32"},
}

// atomic is an operation that no other thread comes between.
type atomic struct {
	name, ptx, on string
	result        bool // also without result, as a reduction
	doc           string
	need          map[string]string
}

var atomics = []atomic{
	{"Add", "add", "U32 S32 U64 F32 F64 F16x2 BF16x2", true, "adds v to the element at p", map[string]string{"F16x2": "6.2 70", "BF16x2": "7.8 90"}},
	{"Min", "min", "U32 S32 U64 S64", true, "sets the element at p to the minimum of it and v", nil},
	{"Max", "max", "U32 S32 U64 S64", true, "sets the element at p to the maximum of it and v", nil},
	{"And", "and", "B32 U32 U64", true, "sets the element at p to the bitwise AND of it and v", nil},
	{"Or", "or", "B32 U32 U64", true, "sets the element at p to the bitwise OR of it and v", nil},
	{"Xor", "xor", "B32 U32 U64", true, "sets the element at p to the bitwise XOR of it and v", nil},
	{"Inc", "inc", "U32", true, "increments the element at p, or sets it to 0 if it is v or more", nil},
	{"Exchange", "exch", "B32 U32 S32 F32 U64", false, "stores v at p", nil},
}

// wgmma is a product of matrices by the four warps of a warpgroup: D[64,n] = A[64,k] B[k,n] + D[64,n],
// with A and B in shared memory, or A in registers.
type wgmma struct {
	name  string
	k     int
	d, ab string // types as PTX names them
	acc   string // type of an accumulator
	frag  string // of A in registers
	trans bool   // whether a matrix may be stored by columns
	sign  bool   // whether a matrix may be negated
	doc   string
}

var wgmmas = []wgmma{
	{"WgmmaF16", 16, "f32", "f16", "F32", "F16x2", true, true, "f16"},
	{"WgmmaF16Half", 16, "f16", "f16", "F16x2", "F16x2", true, true, "f16, summed in f16, two to a register"},
	{"WgmmaBF16", 16, "f32", "bf16", "F32", "BF16x2", true, true, "bf16"},
	{"WgmmaTF32", 8, "f32", "tf32", "F32", "B32", false, true, "tf32 (see [F32.TF32])"},
	{"WgmmaE4M3", 32, "f32", "e4m3", "F32", "B32", false, true, "floats of 8 bits, 4 of them exponent"},
	{"WgmmaE5M2", 32, "f32", "e5m2", "F32", "B32", false, true, "floats of 8 bits, 5 of them exponent"},
	{"WgmmaS8", 32, "s32", "s8", "S32", "B32", false, false, "signed bytes"},
	{"WgmmaU8", 32, "s32", "u8", "S32", "B32", false, false, "unsigned bytes"},
}

// tensorRows returns the copies of tiles of 1 to 5 dimensions.
func tensorRows() (all []row) {
	for n := 1; n <= 5; n++ {
		at := "$r" + strings.Repeat(", $r", n-1)
		add := func(name, text string) {
			all = append(all, row{name: fmt.Sprintf("%s%d", name, n), ptx: fmt.Sprintf(text, n, at), need: "8.0 90", layout: "form"})
		}
		const load = "cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
		const operands = " [$r+$i], [$d, {%s}], [$r+$i]"
		add("TensorLoad", load+operands)
		add("TensorLoadMulticast", load+".multicast::cluster"+operands+", $h")
		add("TensorLoadPolicy", load+".L2::cache_hint"+operands+", $d")
		add("TensorLoadMulticastPolicy", load+".multicast::cluster.L2::cache_hint"+operands+", $h, $d")
		add("TensorPrefetch", "cp.async.bulk.prefetch.tensor.%dd.L2.global.tile [$d, {%s}]")
		add("TensorStore", "cp.async.bulk.tensor.%dd.global.shared::cta.tile.bulk_group [$d, {%s}], [$r+$i]")
		add("TensorAdd", "cp.reduce.async.bulk.tensor.%dd.global.shared::cta.add.tile.bulk_group [$d, {%s}], [$r+$i]")
	}
	return all
}
