//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"fmt"
	"slices"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// shape has the properties of a type that instructions depend on: the class b, i or f for truth
// values, integers and floating-point numbers of 32 bits, and the number of components. It is 0 for
// other types.
type shape struct {
	class byte
	count uint32
}

func (m *module) shape(t uint32) shape {
	switch d := m.def[t]; d.op {
	case opTypeBool:
		return shape{'b', 1}
	case opTypeInt:
		if d.args[1] == 32 {
			return shape{'i', 1}
		}
	case opTypeFloat:
		if d.args[1] == 32 {
			return shape{'f', 1}
		}
	case opTypeVector:
		if e := m.shape(d.args[1]); e.count == 1 && d.args[2] >= 2 && d.args[2] <= 4 {
			return shape{e.class, d.args[2]}
		}
	}
	return shape{}
}

// plain lists the instructions whose operands have as many components as their result: the class of
// the result, then the classes of the operands. A capital letter is a scalar, for results of every
// size.
var plain = map[uint16]string{
	126: "ii", 127: "ff", 128: "iii", 129: "fff", 130: "iii", 131: "fff", 132: "iii", 133: "fff",
	134: "iii", 135: "iii", 136: "fff", 137: "iii", 138: "iii", 139: "iii", opFRem: "fff", opFMod: "fff",
	142: "ffF", opFToU: "if", opFToS: "if", 111: "fi", 112: "fi",
	156: "bf", 157: "bf", 164: "bbb", 165: "bbb", 166: "bbb", 167: "bbb", 168: "bb",
	170: "bii", 171: "bii", 172: "bii", 173: "bii", 174: "bii", 175: "bii", 176: "bii", 177: "bii", 178: "bii", 179: "bii",
	180: "bff", 181: "bff", 182: "bff", 183: "bff", 184: "bff", 185: "bff", 186: "bff", 187: "bff", 188: "bff", 189: "bff", 190: "bff", 191: "bff",
	194: "iii", 195: "iii", 196: "iii", 197: "iii", 198: "iii", 199: "iii", 200: "ii",
	201: "iiiII", 202: "iiII", 203: "iiII", 204: "ii", 205: "ii",
}

// functions lists the functions of GLSL.std.450 in the same form.
var functions = map[uint32]string{
	1: "ff", 2: "ff", 3: "ff", 4: "ff", 5: "ii", 6: "ff", 7: "ii", 8: "ff", 9: "ff", 10: "ff", 11: "ff", 12: "ff",
	13: "ff", 14: "ff", 15: "ff", 16: "ff", 17: "ff", 18: "ff", 19: "ff", 20: "ff", 21: "ff", 22: "ff", 23: "ff", 24: "ff", 25: "fff",
	26: "fff", 27: "ff", 28: "ff", 29: "ff", 30: "ff", 31: "ff", 32: "ff",
	37: "fff", 38: "iii", 39: "iii", 40: "fff", 41: "iii", 42: "iii", 43: "ffff", 44: "iiii", 45: "iiii", 46: "ffff", 48: "fff", 49: "ffff", 50: "ffff", 53: "ffi",
	68: "fff", 69: "ff", 70: "ffff", 71: "fff", 72: "fffF", 73: "ii", 74: "ii", 75: "ii", 79: "fff", 80: "fff", 81: "ffff",
}

// others lists functions of GLSL.std.450 whose operands have different sizes: result, then operands.
var others = map[uint32][]shape{
	54: {{'i', 1}, {'f', 4}}, 55: {{'i', 1}, {'f', 4}}, 56: {{'i', 1}, {'f', 2}}, 57: {{'i', 1}, {'f', 2}}, 58: {{'i', 1}, {'f', 2}},
	60: {{'f', 2}, {'i', 1}}, 61: {{'f', 2}, {'i', 1}}, 62: {{'f', 2}, {'i', 1}}, 63: {{'f', 4}, {'i', 1}}, 64: {{'f', 4}, {'i', 1}},
}

// mismatch is the error for a value of another type than its place.
func (m *module) mismatch(in instr) error {
	return fmt.Errorf("a value is used with another type than its own (SPIR-V instruction %d)", in.op)
}

// rule describes the valid operands of an instruction.
type rule struct {
	words  int                              // smallest number of operands
	result bool                             // its first two operands are the type and the number of its result
	fits   func(m *module, a []uint32) bool // whether the types of the operands fit; nil if any do
	check  func(m *module, in instr) error  // further checks
}

// rules lists the other instructions of functions, with the smallest number of operands.
var rules = map[uint16]rule{
	opLine: {}, opNoLine: {}, opLoopMerge: {}, opSelectionMerge: {}, opBranch: {}, opReturn: {}, opUnreachable: {},
	opControlBarrier: {}, opMemoryBarrier: {},
	opLabel:     {words: 1},
	opFunction:  {words: 4},
	opPhi:       {words: 4, result: true}, // the compiler makes it
	opParameter: {words: 2, result: true, fits: (*module).parameterFits},
	opVariable:  {words: 3, check: (*module).checkVariable},
	opLoad: {words: 3, result: true, fits: func(m *module, a []uint32) bool {
		p := m.def[m.typeOf[a[2]]]
		return p.op == opTypePointer && p.args[2] == a[0]
	}},
	opStore:       {words: 2, check: (*module).checkStore},
	opAccessChain: {words: 4, result: true, check: (*module).checkAccessChain},
	opArrayLength: {words: 4, result: true, fits: func(m *module, a []uint32) bool {
		p := m.def[m.typeOf[a[2]]]
		return p.op == opTypePointer && m.def[p.args[2]].op == opTypeStruct && m.shape(a[0]) == oneInteger
	}},
	opCall:        {words: 3, result: true, check: (*module).checkCall},
	opReturnValue: {words: 1, fits: func(m *module, a []uint32) bool { return m.typeOf[a[0]] == m.result }},
	opBranchIf:    {words: 3, fits: func(m *module, a []uint32) bool { return m.shapeOf(a[0]) == shape{'b', 1} }},
	opSwitch:      {words: 2, fits: func(m *module, a []uint32) bool { return m.shapeOf(a[0]) == oneInteger }},
	opSelect: {words: 5, result: true, fits: func(m *module, a []uint32) bool {
		r := m.shape(a[0])
		return r.count > 0 && m.shapeOf(a[2]) == shape{'b', r.count} && m.typeOf[a[3]] == a[0] && m.typeOf[a[4]] == a[0]
	}},
	opBitcast: {words: 3, result: true, fits: func(m *module, a []uint32) bool {
		r, x := m.shape(a[0]), m.shapeOf(a[2])
		return r.count == x.count && r.count > 0 && r.class != 'b' && x.class != 'b'
	}},
	opCopyObject: {words: 3, result: true, fits: func(m *module, a []uint32) bool { return m.typeOf[a[2]] == a[0] }},
	opAny:        {words: 3, result: true, fits: (*module).logicFits},
	opAll:        {words: 3, result: true, fits: (*module).logicFits},
	opDot: {words: 4, result: true, fits: func(m *module, a []uint32) bool {
		x := m.shapeOf(a[2])
		return m.shape(a[0]) == oneFloat && x.class == 'f' && x.count > 1 && m.shapeOf(a[3]) == x
	}},
	opTranspose:         {words: 3, result: true, check: (*module).matrices},
	opMatrixTimesScalar: {words: 4, result: true, check: (*module).matrices},
	opVectorTimesMatrix: {words: 4, result: true, check: (*module).matrices},
	opMatrixTimesVector: {words: 4, result: true, check: (*module).matrices},
	opMatrixTimesMatrix: {words: 4, result: true, check: (*module).matrices},
	opConstruct:         {words: 3, result: true, check: (*module).construct},
	opExtract: {words: 4, result: true, fits: func(m *module, a []uint32) bool {
		return m.isPart(a[0], m.typeOf[a[2]], a[3:])
	}},
	opInsert: {words: 5, result: true, fits: func(m *module, a []uint32) bool {
		return m.typeOf[a[3]] == a[0] && m.isPart(m.typeOf[a[2]], a[0], a[4:])
	}},
	opExtractDynamic: {words: 4, result: true, fits: func(m *module, a []uint32) bool {
		v := m.shapeOf(a[2])
		return v.count > 1 && m.shape(a[0]) == shape{v.class, 1} && m.shapeOf(a[3]) == oneInteger
	}},
	opInsertDynamic: {words: 5, result: true, fits: func(m *module, a []uint32) bool {
		v := m.shapeOf(a[2])
		return v.count > 1 && m.typeOf[a[2]] == a[0] && m.shapeOf(a[3]) == shape{v.class, 1} && m.shapeOf(a[4]) == oneInteger
	}},
	opShuffle: {words: 5, result: true, fits: (*module).shuffleFits},
	opExtInst: {words: 5, result: true, check: (*module).checkFunction},
	opAtomicLoad: {words: 5, result: true, check: func(m *module, in instr) error {
		return m.atomic(in, in.args[0], in.args[2], nil)
	}},
	opAtomicStore: {words: 4, check: func(m *module, in instr) error {
		return m.atomic(in, 0, in.args[0], in.args[3:])
	}},
	opAtomicCompareExchange: {words: 8, result: true, check: func(m *module, in instr) error {
		return m.atomic(in, in.args[0], in.args[2], in.args[6:8])
	}},
	opAtomicExchange: atomicUpdate, opAtomicIAdd: atomicUpdate, opAtomicISub: atomicUpdate,
	opAtomicSMin: atomicUpdate, opAtomicUMin: atomicUpdate, opAtomicSMax: atomicUpdate, opAtomicUMax: atomicUpdate,
	opAtomicAnd: atomicUpdate, opAtomicOr: atomicUpdate, opAtomicXor: atomicUpdate,
}

// atomicUpdate is the rule of atomic operations with one operand besides the memory.
var atomicUpdate = rule{words: 6, result: true, check: func(m *module, in instr) error {
	if len(in.args) != 6 {
		return errFormat
	}
	return m.atomic(in, in.args[0], in.args[2], in.args[5:])
}}

var oneInteger, oneFloat = shape{'i', 1}, shape{'f', 1}

// shapeOf returns the shape of a value.
func (m *module) shapeOf(id uint32) shape { return m.shape(m.typeOf[id]) }

// check checks an instruction of a function. It rejects unknown instructions, because drivers do not
// verify SPIR-V, and some crash.
func (m *module) check(in instr) error {
	a := in.args
	if operands, ok := plain[in.op]; ok {
		if len(a) < 2 {
			return errFormat
		}
		m.typeOf[a[1]] = a[0]
		return m.numbers(in, operands, a[2:])
	}
	r, ok := rules[in.op]
	if !ok {
		return unknown(in, "")
	}
	if len(a) < r.words {
		return errFormat
	}
	if r.result {
		m.typeOf[a[1]] = a[0]
	}
	if r.fits != nil && !r.fits(m, a) {
		return m.mismatch(in)
	}
	if r.check != nil {
		return r.check(m, in)
	}
	return nil
}

// unknown returns the error for an unknown instruction.
func unknown(in instr, which string) error {
	return fmt.Errorf("it uses something that is not known to be compiled well (SPIR-V instruction %d%s)", in.op, which)
}

// numbers checks an instruction by what plain or functions list.
func (m *module) numbers(in instr, classes string, operands []uint32) error {
	r := m.shape(in.args[0])
	if r.class != classes[0] || len(operands) != len(classes)-1 {
		return m.mismatch(in)
	}
	for i, o := range operands {
		want := shape{classes[1+i], r.count}
		if want.class < 'a' {
			want = shape{want.class + 'a' - 'A', 1}
		}
		if m.shapeOf(o) != want {
			return m.mismatch(in)
		}
	}
	return nil
}

// parameterFits checks that the next parameter of the function has the type that the function
// declares.
func (m *module) parameterFits(a []uint32) bool {
	f := m.def[m.typeOf[m.inside]]
	m.nth++
	return f.op == opTypeFunction && m.nth+1 < len(f.args) && f.args[m.nth+1] == a[0]
}

func (m *module) logicFits(a []uint32) bool {
	x := m.shapeOf(a[2])
	return m.shape(a[0]) == shape{'b', 1} && x.class == 'b' && x.count > 1
}

func (m *module) shuffleFits(a []uint32) bool {
	x, y, r := m.shapeOf(a[2]), m.shapeOf(a[3]), m.shape(a[0])
	if x.class != y.class || r.class != x.class || x.count < 2 || y.count < 2 || int(r.count) != len(a)-4 {
		return false
	}
	return !slices.ContainsFunc(a[4:], func(i uint32) bool { return i >= x.count+y.count })
}

func (m *module) checkVariable(in instr) error {
	a := in.args
	m.note(in)
	t := m.def[a[0]]
	if t.op != opTypePointer || t.args[1] != a[2] || len(a) > 3 && m.typeOf[a[3]] != t.args[2] {
		return m.mismatch(in)
	}
	return nil
}

func (m *module) checkStore(in instr) error {
	p := m.def[m.typeOf[in.args[0]]]
	if p.op != opTypePointer || p.args[2] != m.typeOf[in.args[1]] {
		return m.mismatch(in)
	}
	return m.writes(in.args[0])
}

func (m *module) checkAccessChain(in instr) error {
	a := in.args
	p := m.def[m.typeOf[a[2]]]
	if p.op != opTypePointer {
		return m.mismatch(in)
	}
	m.root[a[1]] = m.root[a[2]]
	t := p.args[2]
	for _, index := range a[3:] {
		if m.shapeOf(index) != oneInteger {
			return m.mismatch(in)
		}
		n := m.elements(t)
		if c := m.def[index]; c.op == opConstant && n > 0 && c.args[2] >= n {
			return fmt.Errorf("index %d of what has %d elements", c.args[2], n)
		}
		if t = m.element(t, index); t == 0 {
			return m.mismatch(in)
		}
	}
	if r := m.def[a[0]]; r.op != opTypePointer || r.args[1] != p.args[1] || r.args[2] != t {
		return m.mismatch(in)
	}
	return nil
}

func (m *module) checkCall(in instr) error {
	a := in.args
	f := m.def[m.typeOf[a[2]]]
	if f.op != opTypeFunction || f.args[1] != a[0] || len(f.args)-2 != len(a)-3 {
		return m.mismatch(in)
	}
	m.calls[m.inside] = append(m.calls[m.inside], a[2])
	for i, arg := range a[3:] {
		if m.typeOf[arg] != f.args[2+i] {
			return m.mismatch(in)
		}
		// The call that passes a pointer checks the writes through it.
		if t := m.def[f.args[2+i]]; t.op == opTypePointer && (t.args[1] == classStorage || t.args[1] == classUniform) {
			if err := m.writes(arg); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFunction checks a call of a function of GLSL.std.450.
func (m *module) checkFunction(in instr) error {
	a := in.args
	if a[2] != m.glsl {
		return errFormat
	}
	if classes, ok := functions[a[3]]; ok {
		return m.numbers(in, classes, a[4:])
	}
	ok := false
	switch list, other := others[a[3]]; {
	case other:
		ok = len(a) == 5 && m.shape(a[0]) == list[0] && m.shapeOf(a[4]) == list[1]
	case a[3] == glslLength:
		ok = len(a) == 5 && m.shape(a[0]) == oneFloat && m.shapeOf(a[4]).class == 'f'
	case a[3] == glslDistance:
		ok = len(a) == 6 && m.shape(a[0]) == oneFloat && m.shapeOf(a[4]).class == 'f' && m.shapeOf(a[5]) == m.shapeOf(a[4])
	default:
		return unknown(in, fmt.Sprintf(", function %d", a[3]))
	}
	if !ok {
		return m.mismatch(in)
	}
	return nil
}

// writes reports an error if the pointer points to read-only memory.
func (m *module) writes(pointer uint32) error {
	v := m.def[m.root[pointer]]
	if v.op != opVariable {
		return nil // a parameter, which the call has checked, or memory of the function
	}
	switch v.args[2] {
	case classInput:
	case classUniform, classStorage:
		if i := m.set[v.args[1]][1] - 1; m.shader.Bindings[i] == webgpu.ReadWrite {
			return nil
		}
	default:
		return nil
	}
	return fmt.Errorf("it writes to read-only memory")
}

// atomic checks an operation on a word in memory.
func (m *module) atomic(in instr, result, pointer uint32, values []uint32) error {
	p := m.def[m.typeOf[pointer]]
	if p.op != opTypePointer || p.args[1] != classStorage && p.args[1] != classWorkgroup || m.shape(p.args[2]) != (shape{'i', 1}) || result != 0 && result != p.args[2] {
		return m.mismatch(in)
	}
	for _, v := range values {
		if m.typeOf[v] != p.args[2] {
			return m.mismatch(in)
		}
	}
	if len(values) == 0 {
		return nil
	}
	return m.writes(pointer)
}

// member returns the type of a part of a composite, or 0.
func (m *module) member(t, i uint32) uint32 {
	if i >= m.elements(t) {
		return 0
	}
	if d := m.def[t]; d.op == opTypeStruct {
		return d.args[1+i]
	}
	return m.element(t, 0)
}

// isPart reports whether a part of t, or of a part of it and so on, has the given type.
func (m *module) isPart(part, t uint32, at []uint32) bool {
	for _, i := range at {
		if t = m.member(t, i); t == 0 {
			return false
		}
	}
	return t == part
}

// construct checks a composite that is made of parts. A vector may be made of shorter vectors.
func (m *module) construct(in instr) error {
	t, parts := in.args[0], in.args[2:]
	if r := m.shape(t); r.count > 1 {
		total := uint32(0)
		for _, p := range parts {
			x := m.shape(m.typeOf[p])
			if x.class != r.class {
				return m.mismatch(in)
			}
			total += x.count
		}
		if total != r.count {
			return m.mismatch(in)
		}
		return nil
	}
	if uint32(len(parts)) != m.elements(t) {
		return m.mismatch(in)
	}
	for i, p := range parts {
		if m.typeOf[p] != m.member(t, uint32(i)) {
			return m.mismatch(in)
		}
	}
	return nil
}

// matrices checks products with matrices of floating-point numbers, and transpositions.
func (m *module) matrices(in instr) error {
	// grid returns columns and rows, of a vector one column.
	grid := func(t uint32) (columns, rows uint32) {
		if d := m.def[t]; d.op == opTypeMatrix {
			if c := m.shape(d.args[1]); c.class == 'f' {
				return d.args[2], c.count
			}
		}
		if v := m.shape(t); v.class == 'f' {
			return 1, v.count
		}
		return 0, 0
	}
	a := in.args
	rc, rr := grid(a[0])
	xc, xr := grid(m.typeOf[a[2]])
	ok := rc > 0 && xc > 0
	if in.op == opTranspose {
		ok = ok && rc == xr && rr == xc
	} else {
		yc, yr := grid(m.typeOf[a[3]])
		switch in.op {
		case opMatrixTimesScalar:
			ok = ok && rc == xc && rr == xr && yc == 1 && yr == 1
		case opVectorTimesMatrix:
			ok = ok && xc == 1 && xr == yr && rc == 1 && rr == yc
		default:
			ok = ok && xc == yr && rc == yc && rr == xr
		}
	}
	if !ok {
		return m.mismatch(in)
	}
	return nil
}
