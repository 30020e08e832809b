package wasm

// Op is an instruction: its byte, or for vectors the prefix and its number.
type Op uint32

const (
	vectorPrefix = 0xfd
	v            = vectorPrefix << 16
)

// The instructions on numbers.
const (
	Nop            Op = 0x01
	Drop           Op = 0x1a
	I32Load        Op = 0x28
	F32Load        Op = 0x2a
	I32Load8U      Op = 0x2d
	I32Load16      Op = 0x2f
	I32Store       Op = 0x36
	F32Store       Op = 0x38
	I32Eqz         Op = 0x45
	I32Eq          Op = 0x46
	I32Ne          Op = 0x47
	I32LtS         Op = 0x48
	I32LtU         Op = 0x49
	I32GtS         Op = 0x4a
	I32GtU         Op = 0x4b
	I32LeS         Op = 0x4c
	I32GeS         Op = 0x4e
	I32GeU         Op = 0x4f
	F32Eq          Op = 0x5b
	F32Ne          Op = 0x5c
	I32Ctz         Op = 0x68
	I32Add         Op = 0x6a
	I32Sub         Op = 0x6b
	I32Mul         Op = 0x6c
	I32And         Op = 0x71
	I32Or          Op = 0x72
	I32Shl         Op = 0x74
	I32ShrS        Op = 0x75
	I32ShrU        Op = 0x76
	F32Abs         Op = 0x8b
	F32Add         Op = 0x92
	F32Sub         Op = 0x93
	F32Mul         Op = 0x94
	F32Div         Op = 0x95
	F32Min         Op = 0x96
	F32Max         Op = 0x97
	I32Reinterpret Op = 0xbc
	F32Reinterpret Op = 0xbe
	I64ExtendU     Op = 0xad
	F32ConvertI32S Op = 0xb2
)

// The instructions on vectors.
const (
	V128Load         Op = v
	V128Load8x8S     Op = v | 1
	V128Load8x8U     Op = v | 2
	V128Load16x4S    Op = v | 3
	V128Load16x4U    Op = v | 4
	V128Load8Splat   Op = v | 7
	V128Load32Splat  Op = v | 9
	V128Store        Op = v | 11
	I8x16Shuffle     Op = v | 13
	I8x16Swizzle     Op = v | 14
	I8x16Splat       Op = v | 15
	I16x8Splat       Op = v | 16
	I32x4Splat       Op = v | 17
	F32x4Splat       Op = v | 19
	I64x2Splat       Op = v | 18
	F64x2Splat       Op = v | 20
	I32x4ExtractLane Op = v | 27
	F32x4ExtractLane Op = v | 31
	F32x4ReplaceLane Op = v | 32
	F32x4Eq          Op = v | 65
	F32x4Ne          Op = v | 66
	F32x4Lt          Op = v | 67
	F32x4Gt          Op = v | 68
	F32x4Le          Op = v | 69
	F32x4Ge          Op = v | 70
	I32x4Eq          Op = v | 55
	I32x4Ne          Op = v | 56
	I32x4LtS         Op = v | 57
	I32x4LtU         Op = v | 58
	I32x4LeS         Op = v | 61
	I32x4LeU         Op = v | 62
	V128Not          Op = v | 77
	V128And          Op = v | 78
	V128AndNot       Op = v | 79
	V128Or           Op = v | 80
	V128Xor          Op = v | 81
	V128Bitselect    Op = v | 82
	V128AnyTrue      Op = v | 83
	V128Load16Lane   Op = v | 85
	V128Load32Lane   Op = v | 86
	V128Store16Lane  Op = v | 89
	V128Store64Lane  Op = v | 91
	I16x8NarrowU     Op = v | 134 // narrows signed words
	V128Store32Lane  Op = v | 90
	V128Load32Zero   Op = v | 92
	V128Load64Zero   Op = v | 93
	F32x4Demote      Op = v | 94 // two float64 to the lower lanes; zeros in the upper lanes
	F64x2Promote     Op = v | 95 // the two lower float32
	F32x4Ceil        Op = v | 103
	F32x4Floor       Op = v | 104
	F32x4Trunc       Op = v | 105
	F32x4Nearest     Op = v | 106
	I8x16Shl         Op = v | 107
	I8x16ShrU        Op = v | 109
	I8x16Sub         Op = v | 113
	I16x8ExtendLowS  Op = v | 135
	I16x8ExtendHighS Op = v | 136
	I16x8ExtendLowU  Op = v | 137
	I16x8ExtendHighU Op = v | 138
	I16x8ShrU        Op = v | 141
	I32x4Abs         Op = v | 160
	I32x4Neg         Op = v | 161
	I32x4Bitmask     Op = v | 164
	I32x4ExtendLowS  Op = v | 167
	I32x4ExtendHighS Op = v | 168
	I32x4ExtendLowU  Op = v | 169
	I32x4ExtendHighU Op = v | 170
	I32x4Shl         Op = v | 171
	I32x4ShrS        Op = v | 172
	I32x4ShrU        Op = v | 173
	I32x4Add         Op = v | 174
	I32x4Sub         Op = v | 177
	I32x4Mul         Op = v | 181
	I32x4MinS        Op = v | 182
	I32x4MinU        Op = v | 183
	I32x4MaxS        Op = v | 184
	I32x4MaxU        Op = v | 185
	I32x4Dot         Op = v | 186 // sums of two products, for eight signed words of each operand
	F32x4Abs         Op = v | 224
	F32x4Neg         Op = v | 225
	F32x4Sqrt        Op = v | 227
	F32x4Add         Op = v | 228
	F32x4Sub         Op = v | 229
	F32x4Mul         Op = v | 230
	F32x4Div         Op = v | 231
	F32x4Min         Op = v | 232
	F32x4Max         Op = v | 233
	F32x4PMin        Op = v | 234 // b < a ? b : a
	F32x4PMax        Op = v | 235 // a < b ? b : a
	F64x2Add         Op = v | 240
	F64x2Sub         Op = v | 241
	F64x2Mul         Op = v | 242
	F64x2Ne          Op = v | 72
	F64x2Lt          Op = v | 73
	I64x2Add         Op = v | 206
	I64x2Eq          Op = v | 214
	I32x4TruncSatS   Op = v | 248
	I32x4TruncSatU   Op = v | 249
	F32x4ConvertS    Op = v | 250
	F32x4ConvertU    Op = v | 251
)
