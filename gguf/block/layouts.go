package block

import "sync"

// tableNL has the levels of IQ4_NL and IQ4_XS, which are denser near 0.
var tableNL = []int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// tableFP4 has twice the values of E2M1.
var tableFP4 = []int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

func float(e Encoding, bits int) Float {
	return Float{e, Number{field(bits, 0)}}
}

func signed(bits int) Level {
	return Level{Number: Number{field(bits, 0)}, Signed: true}
}

// factor returns the small factors mul·v + add.
func factor(mul, add float32, v ...Field) Integer { return Integer{Number: v, Mul: mul, Add: add} }

// basics has the names and sizes of the formats. They are constant data apart from [layouts], so that
// programs without blocks do not load those.
var basics = [...]struct {
	name            string
	id              uint32
	elements, bytes int
}{
	Invalid: {"invalid", 0, 0, 0},
	Q4_0:    {"Q4_0", 2, 32, 18},
	Q4_1:    {"Q4_1", 3, 32, 20},
	Q5_0:    {"Q5_0", 6, 32, 22},
	Q5_1:    {"Q5_1", 7, 32, 24},
	Q8_0:    {"Q8_0", 8, 32, 34},
	Q2_K:    {"Q2_K", 10, 256, 84},
	Q3_K:    {"Q3_K", 11, 256, 110},
	Q4_K:    {"Q4_K", 12, 256, 144},
	Q5_K:    {"Q5_K", 13, 256, 176},
	Q6_K:    {"Q6_K", 14, 256, 210},
	IQ1_S:   {"IQ1_S", 19, 256, 50},
	IQ1_M:   {"IQ1_M", 29, 256, 56},
	IQ2_XXS: {"IQ2_XXS", 16, 256, 66},
	IQ2_XS:  {"IQ2_XS", 17, 256, 74},
	IQ2_S:   {"IQ2_S", 22, 256, 82},
	IQ3_XXS: {"IQ3_XXS", 18, 256, 98},
	IQ3_S:   {"IQ3_S", 21, 256, 110},
	IQ4_NL:  {"IQ4_NL", 20, 32, 18},
	IQ4_XS:  {"IQ4_XS", 23, 256, 136},
	TQ1_0:   {"TQ1_0", 34, 256, 54},
	TQ2_0:   {"TQ2_0", 35, 256, 66},
	MXFP4:   {"MXFP4", 39, 32, 17},
	NVFP4:   {"NVFP4", 40, 64, 36},
	Q1_0:    {"Q1_0", 41, 128, 18},
	Q2_0:    {"Q2_0", 42, 64, 18},
	F32:     {"F32", 0, 1, 4},
	F16:     {"F16", 1, 1, 2},
	BF16:    {"BF16", 30, 1, 2},
	F64:     {"F64", 28, 1, 8},
	I8:      {"I8", 24, 1, 1},
	I16:     {"I16", 25, 1, 2},
	I32:     {"I32", 26, 1, 4},
	I64:     {"I64", 27, 1, 8},
}

var (
	layouts     [len(basics)]Layout // the descriptions, once layoutsMade is done
	layoutsMade sync.Once
)

// layout returns the description of a format.
func (f Format) layout() *Layout {
	layoutsMade.Do(makeLayouts)
	if int(f) < len(layouts) {
		return &layouts[f]
	}
	return &layouts[Invalid]
}

func makeLayouts() {
	for _, formats := range []func() map[Format]Layout{plainFormats, superFormats, codeFormats, otherFormats} {
		for f, l := range formats() {
			layouts[f] = l
		}
	}
	for f := range layouts {
		l, b := &layouts[f], &basics[f]
		l.Name, l.ID, l.Elements, l.Bytes = b.name, b.id, b.elements, b.bytes
		if l.Elements == 1 && l.Bytes > 1 {
			l.Words = []Word{{0, l.Bytes, 1, l.Bytes}}
		}
	}
}

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
)

// plainFormats are the formats of 32 elements with scales of 16 bits.
func plainFormats() map[Format]Layout {
	return map[Format]Layout{
		Q4_0: {
			Scale: half16(0),
			Level: Level{Number: Number{field(4, 16, halves...)}, Offset: -8},
			Words: []Word{{0, 2, 1, 2}}},
		Q4_1: {
			Scale: half16(0), Bias: half16(2),
			Level: Level{Number: Number{field(4, 32, halves...)}},
			Words: []Word{{0, 2, 2, 2}}},
		Q5_0: {
			Scale: half16(0),
			Level: Level{Number: Number{field(4, 48, halves...), field(1, 16, Step{32, 1}).up(4)}, Offset: -16},
			Words: []Word{{0, 2, 1, 2}}},
		Q5_1: {
			Scale: half16(0), Bias: half16(2),
			Level: Level{Number: Number{field(4, 64, halves...), field(1, 32, Step{32, 1}).up(4)}},
			Words: []Word{{0, 2, 2, 2}}},
		Q8_0: {
			Scale: half16(0),
			Level: Level{Number: Number{field(8, 16, Step{32, 8})}, Signed: true},
			Words: []Word{{0, 2, 1, 2}}},
	}
}

// superFormats are the formats of 256 elements with small factors of the scale.
func superFormats() map[Format]Layout {
	// The scales and the minimums of Q4_K and Q5_K, of 6 bits each. The low bits of the last four are
	// in the last four bytes, and their upper bits are in the upper bits of the bytes of the first four.
	scales := Number{
		field(4, 32, Step{4, 8}, Step{2, 64}),
		field(2, 36, Step{4, 8}, Step{2, 2}).up(4),
	}
	minimums := Number{
		field(4, 64, Step{4, 8}, Step{2, 36}),
		field(2, 68, Step{4, 8}, Step{2, 2}).up(4),
	}
	return map[Format]Layout{
		Q2_K: {
			Scale: half16(80), Sub: factor(1, 0, field(4, 0, Step{16, 8})),
			Bias: half16(82), SubBias: factor(-1, 0, field(4, 4, Step{16, 8})),
			Level: Level{Number: Number{field(2, 128, pairs...)}},
			Words: []Word{{80, 2, 2, 2}}},
		Q3_K: {
			Scale: half16(108), Sub: factor(1, -32,
				field(4, 768, Step{8, 8}, Step{2, 4}),
				field(2, 832, Step{4, 8}, Step{4, 2}).up(4)),
			Level: Level{Number: Number{field(2, 256, pairs...), field(1, 0, Step{32, 8}, Step{8, 1}).up(2)}, Offset: -4},
			Words: []Word{{108, 2, 1, 2}}},
		Q4_K: {
			Scale: half16(0), Sub: factor(1, 0, scales...),
			Bias: half16(2), SubBias: factor(-1, 0, minimums...),
			Level: Level{Number: Number{field(4, 128, chunks...)}},
			Words: []Word{{0, 2, 2, 2}}},
		Q5_K: {
			Scale: half16(0), Sub: factor(1, 0, scales...),
			Bias: half16(2), SubBias: factor(-1, 0, minimums...),
			Level: Level{Number: Number{field(4, 384, chunks...), field(1, 128, Step{32, 8}, Step{8, 1}).up(4)}},
			Words: []Word{{0, 2, 2, 2}}},
		Q6_K: {
			Scale: half16(208), Sub: Integer{Number: Number{field(8, 1536, Step{16, 8})}, Mul: 1, Signed: true},
			Level: Level{Number: Number{
				field(4, 0, Step{64, 8}, Step{2, 4}, Step{2, 512}),
				field(2, 1024, pairs...).up(4)}, Offset: -32},
			Words: []Word{{208, 2, 1, 2}}},
	}
}

// codeFormats are the formats with codebooks and tables of levels.
func codeFormats() map[Format]Layout {
	return map[Format]Layout{
		IQ1_S: {Weighted: true,
			Scale: half16(0), Sub: factor(2, 1, field(3, 284, Step{8, 16})),
			Level: Level{
				Number: Number{field(8, 16, Step{32, 8}), field(3, 272, Step{4, 3}, Step{8, 16}).up(8)},
				Grid:   gridIQ1, Shift: Number{field(1, 287, Step{8, 16})}},
			Words: []Word{{0, 2, 1, 2}, {34, 2, 8, 2}}},
		IQ1_M: {Weighted: true,
			Scale: Float{Binary16, Number{field(4, 396), field(4, 412).up(4), field(4, 428).up(8), field(4, 444).up(12)}},
			Sub:   factor(2, 1, field(3, 384, Step{4, 3}, Step{4, 16})),
			Level: Level{
				Number: Number{field(8, 0, Step{32, 8}), field(3, 256, Step{32, 4}).up(8)},
				Grid:   gridIQ1, Shift: Number{field(1, 259, Step{32, 4})}},
			Words: []Word{{48, 2, 4, 2}}},
		IQ2_XXS: {Weighted: true,
			Scale: half16(0), Sub: factor(0.25, 0.125, field(4, 76, Step{8, 64})),
			Level: Level{
				Number: Number{field(8, 16, Step{4, 8}, Step{8, 64})},
				Grid:   gridIQ2XXS, Signs: Number{field(7, 48, Step{4, 7}, Step{8, 64})}},
			Words: []Word{{0, 2, 33, 2}}},
		IQ2_XS: {Weighted: true,
			Scale: half16(0), Sub: factor(0.25, 0.125, field(4, 528, Step{16, 4})),
			Level: Level{
				Number: Number{field(9, 16, Step{32, 16})},
				Grid:   gridIQ2XS, Signs: Number{field(7, 25, Step{32, 16})}},
			Words: []Word{{0, 2, 33, 2}}},
		IQ2_S: {
			Scale: half16(0), Sub: factor(0.25, 0.125, field(4, 592, Step{16, 4})),
			Level: Level{
				Number: Number{field(8, 16, Step{32, 8}), field(2, 528, Step{32, 2}).up(8)},
				Grid:   gridIQ2S, Signs: Number{field(1, 272, Step{256, 1})}},
			Words: []Word{{0, 2, 1, 2}}},
		IQ3_XXS: {
			Scale: half16(0), Sub: factor(0.5, 0.25, field(4, 556, Step{8, 32})),
			Level: Level{
				Number: Number{field(8, 16, Step{64, 8})},
				Grid:   gridIQ3XXS, Signs: Number{field(7, 528, Step{4, 7}, Step{8, 32})}},
			Words: []Word{{0, 2, 1, 2}, {66, 4, 8, 4}}},
		IQ3_S: {
			Scale: half16(0), Sub: factor(2, 1, field(4, 848, Step{8, 4})),
			Level: Level{
				Number: Number{field(8, 16, Step{64, 8}), field(1, 528, Step{64, 1}).up(8)},
				Grid:   gridIQ3S, Signs: Number{field(1, 592, Step{256, 1})}},
			Words: []Word{{0, 2, 1, 2}}},
		IQ4_NL: {
			Scale: half16(0),
			Level: Level{Number: Number{field(4, 16, halves...)}, Table: tableNL},
			Words: []Word{{0, 2, 1, 2}}},
		IQ4_XS: {
			Scale: half16(0), Sub: factor(1, -32, field(4, 32, Step{8, 4}), field(2, 16, Step{8, 2}).up(4)),
			Level: Level{Number: Number{field(4, 64, Step{16, 8}, Step{2, 4}, Step{8, 128})}, Table: tableNL},
			Words: []Word{{0, 2, 2, 2}}},
	}
}

// otherFormats are formats with few levels, with scales of 8 bits, and single numbers.
func otherFormats() map[Format]Layout {
	return map[Format]Layout{
		TQ1_0: {
			Scale: half16(52),
			Level: Level{Number: Number{
				{Bits: 2, At: 0, Steps: []Step{{32, 8}, {5, 1}}, Ternary: true},
				{Bits: 2, At: 256, Steps: []Step{{16, 8}, {5, 1}}, First: 160, Ternary: true},
				{Bits: 2, At: 384, Steps: []Step{{4, 8}, {4, 1}}, First: 240, Ternary: true}}, Offset: -1},
			Words: []Word{{52, 2, 1, 2}}},
		TQ2_0: {
			Scale: half16(64),
			Level: Level{Number: Number{field(2, 0, pairs...)}, Offset: -1},
			Words: []Word{{64, 2, 1, 2}}},

		MXFP4: {
			Scale: Float{E8M0, Number{field(8, 0)}},
			Level: Level{Number: Number{field(4, 8, halves...)}, Table: tableFP4}},
		NVFP4: {
			Scale: Float{UE4M3, Number{field(8, 0, Step{4, 8})}},
			Level: Level{Number: Number{field(4, 32, Step{8, 8}, Step{2, 4}, Step{4, 64})}, Table: tableFP4}},
		Q1_0: {
			Scale: half16(0),
			Level: Level{Number: Number{field(1, 16, Step{128, 1})}, Table: []int8{-1, 1}},
			Words: []Word{{0, 2, 1, 2}}},
		Q2_0: {
			Scale: half16(0),
			Level: Level{Number: Number{field(2, 16, Step{64, 2})}, Offset: -1},
			Words: []Word{{0, 2, 1, 2}}},

		F32:  {Scale: float(Binary32, 32)},
		F16:  {Scale: float(Binary16, 16)},
		BF16: {Scale: float(BFloat16, 16)},
		F64:  {Scale: float(Binary64, 64)},
		I8:   {Level: signed(8)},
		I16:  {Level: signed(16)},
		I32:  {Level: signed(32)},
		I64:  {Level: signed(64)},
	}
}
