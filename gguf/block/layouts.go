package block

// Parts of layouts that several formats share.
var (
	// halves holds 32 levels in 16 bytes: the low half of byte j is element j,
	// the high half element j+16.
	halves = []Step{{16, 8}, {2, 4}}
	// pairs holds each 128 levels of two bits in 32 bytes: bits 2s and 2s+1 of byte j
	// are element 32s+j.
	pairs = []Step{{32, 8}, {4, 2}, {2, 256}}
	// chunks holds each 64 levels of four bits in 32 bytes.
	chunks = []Step{{32, 8}, {2, 4}, {4, 256}}

	// The scales and the minimums of Q4_K and Q5_K, of 6 bits each. The low bits of the last four are
	// in the last four bytes, and their upper bits are in the upper bits of the bytes of the first four.
	scales6 = Number{
		field(4, 32, Step{4, 8}, Step{2, 64}),
		field(2, 36, Step{4, 8}, Step{2, 2}).up(4),
	}
	minimums6 = Number{
		field(4, 64, Step{4, 8}, Step{2, 36}),
		field(2, 68, Step{4, 8}, Step{2, 2}).up(4),
	}
)

// tableNL has the levels of IQ4_NL and IQ4_XS, which are denser near 0.
var tableNL = []int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// tableFP4 has twice the values of E2M1.
var tableFP4 = []int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// scalar returns the layout of a type with blocks of one number.
func scalar(name string, id uint32, bytes int, l Layout) Layout {
	l.Name, l.ID, l.Elements, l.Bytes = name, id, 1, bytes
	if bytes > 1 {
		l.Words = []Word{{0, bytes, 1, bytes}}
	}
	return l
}

func float(e Encoding, bits int) Layout {
	return Layout{Scale: Float{e, Number{field(bits, 0)}}}
}

func signed(bits int) Layout {
	return Layout{Level: Level{Number: Number{field(bits, 0)}, Signed: true}}
}

// factor returns the small factors mul·v + add.
func factor(mul, add float32, v ...Field) Integer { return Integer{Number: v, Mul: mul, Add: add} }

// layouts describes the formats.
var layouts = [...]Layout{
	Invalid: {Name: "invalid"},

	Q4_0: {Name: "Q4_0", ID: 2, Elements: 32, Bytes: 18,
		Scale: half16(0),
		Level: Level{Number: Number{field(4, 16, halves...)}, Offset: -8},
		Words: []Word{{0, 2, 1, 2}}},
	Q4_1: {Name: "Q4_1", ID: 3, Elements: 32, Bytes: 20,
		Scale: half16(0), Bias: half16(2),
		Level: Level{Number: Number{field(4, 32, halves...)}},
		Words: []Word{{0, 2, 2, 2}}},
	Q5_0: {Name: "Q5_0", ID: 6, Elements: 32, Bytes: 22,
		Scale: half16(0),
		Level: Level{Number: Number{field(4, 48, halves...), field(1, 16, Step{32, 1}).up(4)}, Offset: -16},
		Words: []Word{{0, 2, 1, 2}}},
	Q5_1: {Name: "Q5_1", ID: 7, Elements: 32, Bytes: 24,
		Scale: half16(0), Bias: half16(2),
		Level: Level{Number: Number{field(4, 64, halves...), field(1, 32, Step{32, 1}).up(4)}},
		Words: []Word{{0, 2, 2, 2}}},
	Q8_0: {Name: "Q8_0", ID: 8, Elements: 32, Bytes: 34,
		Scale: half16(0),
		Level: Level{Number: Number{field(8, 16, Step{32, 8})}, Signed: true},
		Words: []Word{{0, 2, 1, 2}}},

	Q2_K: {Name: "Q2_K", ID: 10, Elements: 256, Bytes: 84,
		Scale: half16(80), Sub: factor(1, 0, field(4, 0, Step{16, 8})),
		Bias: half16(82), SubBias: factor(-1, 0, field(4, 4, Step{16, 8})),
		Level: Level{Number: Number{field(2, 128, pairs...)}},
		Words: []Word{{80, 2, 2, 2}}},
	Q3_K: {Name: "Q3_K", ID: 11, Elements: 256, Bytes: 110,
		Scale: half16(108), Sub: factor(1, -32,
			field(4, 768, Step{8, 8}, Step{2, 4}),
			field(2, 832, Step{4, 8}, Step{4, 2}).up(4)),
		Level: Level{Number: Number{field(2, 256, pairs...), field(1, 0, Step{32, 8}, Step{8, 1}).up(2)}, Offset: -4},
		Words: []Word{{108, 2, 1, 2}}},
	Q4_K: {Name: "Q4_K", ID: 12, Elements: 256, Bytes: 144,
		Scale: half16(0), Sub: factor(1, 0, scales6...),
		Bias: half16(2), SubBias: factor(-1, 0, minimums6...),
		Level: Level{Number: Number{field(4, 128, chunks...)}},
		Words: []Word{{0, 2, 2, 2}}},
	Q5_K: {Name: "Q5_K", ID: 13, Elements: 256, Bytes: 176,
		Scale: half16(0), Sub: factor(1, 0, scales6...),
		Bias: half16(2), SubBias: factor(-1, 0, minimums6...),
		Level: Level{Number: Number{field(4, 384, chunks...), field(1, 128, Step{32, 8}, Step{8, 1}).up(4)}},
		Words: []Word{{0, 2, 2, 2}}},
	Q6_K: {Name: "Q6_K", ID: 14, Elements: 256, Bytes: 210,
		Scale: half16(208), Sub: Integer{Number: Number{field(8, 1536, Step{16, 8})}, Mul: 1, Signed: true},
		Level: Level{Number: Number{
			field(4, 0, Step{64, 8}, Step{2, 4}, Step{2, 512}),
			field(2, 1024, pairs...).up(4)}, Offset: -32},
		Words: []Word{{208, 2, 1, 2}}},

	IQ1_S: {Name: "IQ1_S", ID: 19, Elements: 256, Bytes: 50, Weighted: true,
		Scale: half16(0), Sub: factor(2, 1, field(3, 284, Step{8, 16})),
		Level: Level{
			Number: Number{field(8, 16, Step{32, 8}), field(3, 272, Step{4, 3}, Step{8, 16}).up(8)},
			Grid:   gridIQ1, Shift: Number{field(1, 287, Step{8, 16})}},
		Words: []Word{{0, 2, 1, 2}, {34, 2, 8, 2}}},
	IQ1_M: {Name: "IQ1_M", ID: 29, Elements: 256, Bytes: 56, Weighted: true,
		Scale: Float{Binary16, Number{field(4, 396), field(4, 412).up(4), field(4, 428).up(8), field(4, 444).up(12)}},
		Sub:   factor(2, 1, field(3, 384, Step{4, 3}, Step{4, 16})),
		Level: Level{
			Number: Number{field(8, 0, Step{32, 8}), field(3, 256, Step{32, 4}).up(8)},
			Grid:   gridIQ1, Shift: Number{field(1, 259, Step{32, 4})}},
		Words: []Word{{48, 2, 4, 2}}},
	IQ2_XXS: {Name: "IQ2_XXS", ID: 16, Elements: 256, Bytes: 66, Weighted: true,
		Scale: half16(0), Sub: factor(0.25, 0.125, field(4, 76, Step{8, 64})),
		Level: Level{
			Number: Number{field(8, 16, Step{4, 8}, Step{8, 64})},
			Grid:   gridIQ2XXS, Signs: Number{field(7, 48, Step{4, 7}, Step{8, 64})}},
		Words: []Word{{0, 2, 33, 2}}},
	IQ2_XS: {Name: "IQ2_XS", ID: 17, Elements: 256, Bytes: 74, Weighted: true,
		Scale: half16(0), Sub: factor(0.25, 0.125, field(4, 528, Step{16, 4})),
		Level: Level{
			Number: Number{field(9, 16, Step{32, 16})},
			Grid:   gridIQ2XS, Signs: Number{field(7, 25, Step{32, 16})}},
		Words: []Word{{0, 2, 33, 2}}},
	IQ2_S: {Name: "IQ2_S", ID: 22, Elements: 256, Bytes: 82,
		Scale: half16(0), Sub: factor(0.25, 0.125, field(4, 592, Step{16, 4})),
		Level: Level{
			Number: Number{field(8, 16, Step{32, 8}), field(2, 528, Step{32, 2}).up(8)},
			Grid:   gridIQ2S, Signs: Number{field(1, 272, Step{256, 1})}},
		Words: []Word{{0, 2, 1, 2}}},
	IQ3_XXS: {Name: "IQ3_XXS", ID: 18, Elements: 256, Bytes: 98,
		Scale: half16(0), Sub: factor(0.5, 0.25, field(4, 556, Step{8, 32})),
		Level: Level{
			Number: Number{field(8, 16, Step{64, 8})},
			Grid:   gridIQ3XXS, Signs: Number{field(7, 528, Step{4, 7}, Step{8, 32})}},
		Words: []Word{{0, 2, 1, 2}, {66, 4, 8, 4}}},
	IQ3_S: {Name: "IQ3_S", ID: 21, Elements: 256, Bytes: 110,
		Scale: half16(0), Sub: factor(2, 1, field(4, 848, Step{8, 4})),
		Level: Level{
			Number: Number{field(8, 16, Step{64, 8}), field(1, 528, Step{64, 1}).up(8)},
			Grid:   gridIQ3S, Signs: Number{field(1, 592, Step{256, 1})}},
		Words: []Word{{0, 2, 1, 2}}},
	IQ4_NL: {Name: "IQ4_NL", ID: 20, Elements: 32, Bytes: 18,
		Scale: half16(0),
		Level: Level{Number: Number{field(4, 16, halves...)}, Table: tableNL},
		Words: []Word{{0, 2, 1, 2}}},
	IQ4_XS: {Name: "IQ4_XS", ID: 23, Elements: 256, Bytes: 136,
		Scale: half16(0), Sub: factor(1, -32, field(4, 32, Step{8, 4}), field(2, 16, Step{8, 2}).up(4)),
		Level: Level{Number: Number{field(4, 64, Step{16, 8}, Step{2, 4}, Step{8, 128})}, Table: tableNL},
		Words: []Word{{0, 2, 2, 2}}},

	TQ1_0: {Name: "TQ1_0", ID: 34, Elements: 256, Bytes: 54,
		Scale: half16(52),
		Level: Level{Number: Number{
			{Bits: 2, At: 0, Steps: []Step{{32, 8}, {5, 1}}, Ternary: true},
			{Bits: 2, At: 256, Steps: []Step{{16, 8}, {5, 1}}, First: 160, Ternary: true},
			{Bits: 2, At: 384, Steps: []Step{{4, 8}, {4, 1}}, First: 240, Ternary: true}}, Offset: -1},
		Words: []Word{{52, 2, 1, 2}}},
	TQ2_0: {Name: "TQ2_0", ID: 35, Elements: 256, Bytes: 66,
		Scale: half16(64),
		Level: Level{Number: Number{field(2, 0, pairs...)}, Offset: -1},
		Words: []Word{{64, 2, 1, 2}}},

	MXFP4: {Name: "MXFP4", ID: 39, Elements: 32, Bytes: 17,
		Scale: Float{E8M0, Number{field(8, 0)}},
		Level: Level{Number: Number{field(4, 8, halves...)}, Table: tableFP4}},
	NVFP4: {Name: "NVFP4", ID: 40, Elements: 64, Bytes: 36,
		Scale: Float{UE4M3, Number{field(8, 0, Step{4, 8})}},
		Level: Level{Number: Number{field(4, 32, Step{8, 8}, Step{2, 4}, Step{4, 64})}, Table: tableFP4}},
	Q1_0: {Name: "Q1_0", ID: 41, Elements: 128, Bytes: 18,
		Scale: half16(0),
		Level: Level{Number: Number{field(1, 16, Step{128, 1})}, Table: []int8{-1, 1}},
		Words: []Word{{0, 2, 1, 2}}},
	Q2_0: {Name: "Q2_0", ID: 42, Elements: 64, Bytes: 18,
		Scale: half16(0),
		Level: Level{Number: Number{field(2, 16, Step{64, 2})}, Offset: -1},
		Words: []Word{{0, 2, 1, 2}}},

	F32:  scalar("F32", 0, 4, float(Binary32, 32)),
	F16:  scalar("F16", 1, 2, float(Binary16, 16)),
	BF16: scalar("BF16", 30, 2, float(BFloat16, 16)),
	F64:  scalar("F64", 28, 8, float(Binary64, 64)),
	I8:   scalar("I8", 24, 1, signed(8)),
	I16:  scalar("I16", 25, 2, signed(16)),
	I32:  scalar("I32", 26, 4, signed(32)),
	I64:  scalar("I64", 27, 8, signed(64)),
}
