package ir

// instrInfo describes an instruction code that is not a code of expressions.
type instrInfo struct {
	name  string
	arity int8 // operands, or varying: see Instr.Operands
	pure  bool // the value depends only on the operands, Imm and Flag of one lane
}

const varying = -1

var instrs = [numInstrCodes - BuiltIn]instrInfo{
	0:                         {"builtin", 0, true},
	Param32 - BuiltIn:         {"param", 0, true},
	Len - BuiltIn:             {"len", 0, true},
	Load - BuiltIn:            {"load", 1, false},
	Store - BuiltIn:           {"store", 2, false},
	LoadShared - BuiltIn:      {"load_shared", 1, false},
	StoreShared - BuiltIn:     {"store_shared", 2, false},
	LoadVar - BuiltIn:         {"load_var", 0, false},
	StoreVar - BuiltIn:        {"store_var", 1, false},
	AtomicOp - BuiltIn:        {"atomic", varying, false},
	AtomicOpShared - BuiltIn:  {"atomic_shared", varying, false},
	UniformLoad - BuiltIn:     {"uniform_load", 1, false},
	Splat - BuiltIn:           {"splat", 1, true},
	Compose - BuiltIn:         {"compose", varying, true},
	Extract - BuiltIn:         {"extract", 1, true},
	Dot - BuiltIn:             {"dot", 2, true},
	IDiv - BuiltIn:            {"idiv", 2, true},
	IMod - BuiltIn:            {"imod", 2, true},
	CountOnes - BuiltIn:       {"count_ones", 1, true},
	LeadingZeros - BuiltIn:    {"leading_zeros", 1, true},
	TrailingZeros - BuiltIn:   {"trailing_zeros", 1, true},
	ReverseBits - BuiltIn:     {"reverse_bits", 1, true},
	MulHigh - BuiltIn:         {"mul_high", 2, true},
	Dot4I8 - BuiltIn:          {"dot4_i8", 3, true},
	Dot4U8 - BuiltIn:          {"dot4_u8", 3, true},
	PackHalf - BuiltIn:        {"pack_half", 1, true},
	UnpackHalf - BuiltIn:      {"unpack_half", 1, true},
	PackI8 - BuiltIn:          {"pack_i8", 1, true},
	UnpackI8 - BuiltIn:        {"unpack_i8", 1, true},
	UnpackU8 - BuiltIn:        {"unpack_u8", 1, true},
	SubgroupOp - BuiltIn:      {"subgroup", 1, false},
	SubgroupScan - BuiltIn:    {"subgroup_scan", 1, false},
	SubgroupShuffle - BuiltIn: {"subgroup_shuffle", 2, false},
	SubgroupXor - BuiltIn:     {"subgroup_xor", 1, false},
	SubgroupFirst - BuiltIn:   {"subgroup_first", 1, false},
	Barrier - BuiltIn:         {"barrier", 0, false},
	If - BuiltIn:              {"if", 1, false},
	Else - BuiltIn:            {"else", 0, false},
	For - BuiltIn:             {"for", 3, false},
	Loop - BuiltIn:            {"loop", 0, false},
	End - BuiltIn:             {"end", 0, false},
	Break - BuiltIn:           {"break", 0, false},
	Continue - BuiltIn:        {"continue", 0, false},
	Return - BuiltIn:          {"return", 0, false},
}

// BuiltInNames are the names of the values of Flag of a BuiltIn.
var BuiltInNames = [...]string{
	BuiltInLocalX: "local.x", BuiltInLocalY: "local.y", BuiltInLocalZ: "local.z",
	BuiltInGroupX: "group.x", BuiltInGroupY: "group.y", BuiltInGroupZ: "group.z",
	BuiltInGroupsX: "groups.x", BuiltInGroupsY: "groups.y", BuiltInGroupsZ: "groups.z",
	BuiltInLane: "lane", BuiltInSubgroupSize: "subgroup.size", BuiltInSubgroupLane: "subgroup.lane",
	BuiltInSubgroup: "subgroup",
}

var atomicNames = [...]string{"load", "store", "add", "sub", "min", "max", "and", "or", "xor", "exchange", "compare_exchange"}

var reduceNames = [...]string{"add", "min", "max", "and", "or"}

// Operands returns the operands of an instruction, in order, and how many they
// are. The code must be one of a program.
func (in *Instr) Operands() (args [4]Value, n int) {
	copy(args[:], in.Args[:])
	switch {
	case in.Code < numCodes:
		return args, codes[in.Code].arity
	case in.Code < BuiltIn || in.Code >= numInstrCodes:
		return args, 0
	}
	if n := instrs[in.Code-BuiltIn].arity; n != varying {
		return args, int(n)
	}
	switch {
	case in.Code == Compose:
		args[3] = Value(in.Imm)
		return args, min(int(in.Width), 4)
	case in.Flag == AtomicLoad:
		return args, 1
	case in.Flag == AtomicCompareExchange:
		return args, 3
	}
	return args, 2
}

// Pure reports whether an instruction of code c has a value that follows from
// its operands, wherever in a lane it stands.
func (c Code) Pure() bool {
	if c < numCodes {
		return c != None
	}
	return c >= BuiltIn && c < numInstrCodes && instrs[c-BuiltIn].pure
}
