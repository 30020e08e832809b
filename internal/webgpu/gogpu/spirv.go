//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// Instructions of SPIR-V that are handled individually.
const (
	opExtInst = 12
	opImport  = 11
	opLine    = 8
	opNoLine  = 317

	opCapability        = 17
	opTypeVoid          = 19
	opTypeBool          = 20
	opTypeInt           = 21
	opTypeFloat         = 22
	opTypeVector        = 23
	opTypeMatrix        = 24
	opTypeArray         = 28
	opTypeRuntime       = 29
	opTypeStruct        = 30
	opTypePointer       = 32
	opTypeFunction      = 33
	opConstantTrue      = 41
	opConstant          = 43
	opConstantNull      = 46
	opFunction          = 54
	opParameter         = 55
	opFunctionEnd       = 56
	opCall              = 57
	opVariable          = 59
	opLoad              = 61
	opStore             = 62
	opAccessChain       = 65
	opArrayLength       = 68
	opDecorate          = 71
	opExtractDynamic    = 77
	opInsertDynamic     = 78
	opShuffle           = 79
	opConstruct         = 80
	opExtract           = 81
	opInsert            = 82
	opCopyObject        = 83
	opTranspose         = 84
	opFToU              = 109
	opFToS              = 110
	opBitcast           = 124
	opIAdd              = 128
	opFAdd              = 129
	opFSub              = 131
	opFMul              = 133
	opFRem              = 140
	opFMod              = 141
	opMatrixTimesScalar = 143
	opVectorTimesMatrix = 144
	opMatrixTimesVector = 145
	opMatrixTimesMatrix = 146
	opDot               = 148
	opAny               = 154
	opAll               = 155
	opSelect            = 169
	opULess             = 176

	opOrderedNotEqual   = 182
	opUnorderedNotEqual = 183

	opControlBarrier        = 224
	opMemoryBarrier         = 225
	opAtomicLoad            = 227
	opAtomicStore           = 228
	opAtomicExchange        = 229
	opAtomicCompareExchange = 230
	opAtomicIAdd            = 234
	opAtomicISub            = 235
	opAtomicSMin            = 236
	opAtomicUMin            = 237
	opAtomicSMax            = 238
	opAtomicUMax            = 239
	opAtomicAnd             = 240
	opAtomicOr              = 241
	opAtomicXor             = 242

	opPhi            = 245
	opLoopMerge      = 246
	opSelectionMerge = 247
	opLabel          = 248
	opBranch         = 249
	opBranchIf       = 250
	opSwitch         = 251
	opReturn         = 253
	opReturnValue    = 254
	opUnreachable    = 255
)

// noContraction is the decoration of sums and products that must not be reassociated: otherwise
// Mesa's compiler simplifies (x+y)-x to y, from which functions compute rounding errors.
const noContraction = 42

// Functions of GLSL.std.450 that are told apart.
const (
	glslLength   = 66
	glslDistance = 67
)

// Storage classes.
const (
	classInput     = 1
	classUniform   = 2
	classWorkgroup = 4
	classPrivate   = 6
	classFunction  = 7
	classStorage   = 12
)

// module is SPIR-V that is read and put together again.
type module struct {
	shader *webgpu.Shader
	next   uint32           // the first identifier that is free
	def    map[uint32]instr // what defines types and constants
	typeOf map[uint32]uint32
	root   map[uint32]uint32 // of pointers: the variable
	set    map[uint32][2]int64
	// builtIn has the built-in values that variables are.
	builtIn map[uint32]uint32
	calls   map[uint32][]uint32
	glsl    uint32 // the import of its functions
	head    []uint32
	decls   []uint32 // all before the first function
	place   int      // in it: where decorations end
	exact   []uint32 // decorations to come there
	code    []uint32
	label   uint32 // of the block
	inside  uint32 // the function
	result  uint32 // its type
	nth     int    // of its parameters
}

// instr is an instruction: its opcode and its arguments.
type instr struct {
	op   uint16
	args []uint32
}

var errFormat = errors.New("the compiler wrote invalid SPIR-V")

// rewrite validates SPIR-V and corrects it to follow WGSL. It sets workgroup arrays to zero in
// loops, instead of one store for each array, which drivers expand to an instruction for each
// element. For a trusted text, which writes before it reads, it omits this. Sums and products are
// rounded as they are written, and comparisons and remainders follow WGSL. In other texts it checks
// types, bindings and writes, and clamps indices.
func rewrite(s *webgpu.Shader, words []uint32) ([]uint32, error) {
	if len(words) < 5 || words[0] != 0x07230203 {
		return nil, errFormat
	}
	m := &module{
		shader: s, next: words[3], head: slices.Clone(words[:5]),
		def: map[uint32]instr{}, typeOf: map[uint32]uint32{}, root: map[uint32]uint32{}, set: map[uint32][2]int64{}, builtIn: map[uint32]uint32{}, calls: map[uint32][]uint32{},
	}
	var list []instr
	for p := words[5:]; len(p) > 0; {
		n := int(p[0] >> 16)
		if n == 0 || n > len(p) {
			return nil, errFormat
		}
		list = append(list, instr{uint16(p[0]), p[1:n]})
		p = p[n:]
	}
	// Functions may be called before they are defined.
	for _, in := range list {
		if in.op == opFunction && len(in.args) == 4 {
			m.def[in.args[1]] = in
			m.typeOf[in.args[1]] = in.args[3]
		}
	}
	for i, in := range list {
		if err := m.read(in, list[i:]); err != nil {
			return nil, err
		}
	}
	if !s.Trusted {
		if err := m.recursion(); err != nil {
			return nil, err
		}
	}
	m.head[3] = m.next
	return slices.Concat(m.head, m.decls[:m.place], m.exact, m.decls[m.place:], m.code), nil
}

// emit writes an instruction into the function.
func (m *module) emit(op uint16, args ...uint32) {
	m.code = append(m.code, uint32(len(args)+1)<<16|uint32(op))
	m.code = append(m.code, args...)
}

// declare writes a type or a constant, and returns its identifier: result is its index among the
// arguments.
func (m *module) declare(op uint16, result int, args ...uint32) uint32 {
	id := m.id()
	args[result] = id
	m.decls = append(m.decls, uint32(len(args)+1)<<16|uint32(op))
	m.decls = append(m.decls, args...)
	m.note(instr{op, args})
	return id
}

func (m *module) id() uint32 {
	m.next++
	return m.next - 1
}

// note records the identifier that a declaration defines.
func (m *module) note(in instr) {
	switch {
	case in.op >= opTypeVoid && in.op <= opTypeFunction && len(in.args) > 0:
		m.def[in.args[0]] = in
	case in.op >= opConstantTrue && in.op <= opConstantNull, in.op == opVariable:
		if len(in.args) > 1 {
			m.def[in.args[1]], m.typeOf[in.args[1]] = in, in.args[0]
			if in.op == opVariable {
				m.root[in.args[1]] = in.args[1]
			}
		}
	}
}

// find returns the type with this definition.
func (m *module) find(op uint16, args ...uint32) uint32 {
	for id, in := range m.def {
		if in.op == op && len(in.args) == len(args)+1 && slices.Equal(in.args[1:], args) {
			return id
		}
	}
	return m.declare(op, 0, append([]uint32{0}, args...)...)
}

// number returns a constant of 32 bits of that type.
func (m *module) number(kind, value uint32) uint32 {
	return m.declare(opConstant, 1, kind, 0, value)
}

// read takes the next instruction.
func (m *module) read(in instr, rest []instr) error {
	s := m.shader
	if m.inside == 0 && in.op != opFunction {
		m.note(in)
		if m.place == 0 && in.op >= opTypeVoid && in.op <= opTypeFunction {
			m.place = len(m.decls)
		}
		m.decls = append(m.decls, uint32(len(in.args)+1)<<16|uint32(in.op))
		m.decls = append(m.decls, in.args...)
		return m.declaration(in)
	}
	switch in.op {
	case opFunction:
		m.inside, m.result, m.nth = in.args[1], in.args[0], 0
	case opFunctionEnd:
		m.inside = 0
		m.emit(in.op, in.args...)
		m.inside = 0xffffffff // an instruction between functions is not a declaration
		return nil
	case opLabel:
		m.label = in.args[0]
	case opStore:
		if m.zeros(in) {
			return nil
		}
	}
	if !s.Trusted {
		if err := m.check(in); err != nil {
			return err
		}
		if m.harden(in) {
			return nil
		}
	}
	switch in.op {
	case opFMod: // % of WGSL has the sign of the dividend
		in.op = opFRem
	case opOrderedNotEqual: // != of WGSL is true of a NaN
		in.op = opUnorderedNotEqual
	case opFAdd, opFSub, opFMul:
		m.exact = append(m.exact, 3<<16|opDecorate, in.args[1], noContraction)
	}
	m.emit(in.op, in.args...)
	return nil
}

// zeros replaces a store of zeros to a whole workgroup array.
func (m *module) zeros(in instr) bool {
	if len(in.args) < 2 {
		return false
	}
	v, null := m.def[in.args[0]], m.def[in.args[1]]
	if v.op != opVariable || v.args[2] != classWorkgroup || null.op != opConstantNull {
		return false
	}
	array := m.def[null.args[0]]
	if array.op != opTypeArray {
		return false
	}
	length := m.def[array.args[2]]
	if length.op != opConstant || length.args[2] <= 8 {
		return false
	}
	if m.shader.Trusted {
		return true
	}
	element := array.args[1]
	word, truth := m.find(opTypeInt, 32, 0), m.find(opTypeBool)
	pointer := m.declare(opTypePointer, 0, 0, classWorkgroup, element)
	zero, one, n := m.number(word, 0), m.number(word, 1), m.number(word, length.args[2])
	nothing := m.declare(opConstantNull, 1, element, 0)
	head, test, body, step, done := m.id(), m.id(), m.id(), m.id(), m.id()
	i, next, more, place := m.id(), m.id(), m.id(), m.id()
	m.emit(opBranch, head)
	m.emit(opLabel, head)
	m.emit(opPhi, word, i, zero, m.label, next, step)
	m.emit(opLoopMerge, done, step, 0)
	m.emit(opBranch, test)
	m.emit(opLabel, test)
	m.emit(opULess, truth, more, i, n)
	m.emit(opBranchIf, more, body, done)
	m.emit(opLabel, body)
	m.emit(opAccessChain, pointer, place, in.args[0], i)
	m.emit(opStore, place, nothing)
	m.emit(opBranch, step)
	m.emit(opLabel, step)
	m.emit(opIAdd, word, next, i, one)
	m.emit(opBranch, head)
	m.emit(opLabel, done)
	m.label = done
	return true
}

// GLSL.std.450.
const (
	glslUMin   = 38
	glslFClamp = 43
)

// harden writes the instruction with its operands kept in range, and reports whether it did.
func (m *module) harden(in instr) bool {
	switch in.op {
	case opFToS, opFToU:
		from := m.typeOf[in.args[2]]
		lo, hi := uint32(0xcf000000), uint32(0x4effffff) // -2^31 and the number before 2^31
		if in.op == opFToU {
			lo, hi = 0, 0x4f7fffff // 0 and the number before 2^32
		}
		x := m.id()
		m.emit(opExtInst, from, x, m.glsl, glslFClamp, in.args[2], m.splat(from, lo), m.splat(from, hi))
		m.emit(in.op, in.args[0], in.args[1], x)
	case opAccessChain:
		args := slices.Clone(in.args)
		if class := m.def[m.typeOf[args[2]]].args[1]; class == classStorage || class == classUniform {
			return false // the device checks these
		}
		t := m.def[m.typeOf[args[2]]].args[2]
		for i := 3; i < len(args); i++ {
			args[i] = m.within(args[i], m.elements(t))
			t = m.element(t, args[i])
		}
		m.emit(in.op, args...)
	case opExtractDynamic:
		args := slices.Clone(in.args)
		args[3] = m.within(args[3], m.elements(m.typeOf[args[2]]))
		m.emit(in.op, args...)
	case opInsertDynamic:
		args := slices.Clone(in.args)
		args[4] = m.within(args[4], m.elements(m.typeOf[args[2]]))
		m.emit(in.op, args...)
	default:
		return false
	}
	return true
}

// splat returns a constant of a floating-point type, a vector of it perhaps.
func (m *module) splat(t, bits uint32) uint32 {
	d := m.def[t]
	if d.op != opTypeVector {
		return m.number(t, bits)
	}
	one := m.number(d.args[1], bits)
	args := []uint32{t, 0}
	for range d.args[2] {
		args = append(args, one)
	}
	return m.declare(44, 1, args...)
}

// within returns the index, or the index clamped below n. A constant index has been checked, and n
// is 0 for a runtime-sized array.
func (m *module) within(index, n uint32) uint32 {
	if n == 0 || m.def[index].op == opConstant {
		return index
	}
	word := m.find(opTypeInt, 32, 0)
	if m.typeOf[index] != word {
		u := m.id()
		m.emit(opBitcast, word, u, index)
		index = u
	}
	least := m.id()
	m.emit(opExtInst, word, least, m.glsl, glslUMin, index, m.number(word, n-1))
	m.typeOf[least] = word
	return least
}

// elements returns how many elements a type has, or 0 for one that is as long as its buffer.
func (m *module) elements(t uint32) uint32 {
	switch d := m.def[t]; d.op {
	case opTypeVector, opTypeMatrix:
		return d.args[2]
	case opTypeArray:
		if n := m.def[d.args[2]]; n.op == opConstant {
			return n.args[2]
		}
	case opTypeStruct:
		return uint32(len(d.args) - 1)
	}
	return 0
}

// element returns the type of an element, or 0.
func (m *module) element(t, index uint32) uint32 {
	switch d := m.def[t]; d.op {
	case opTypeVector, opTypeMatrix, opTypeArray, opTypeRuntime:
		return d.args[1]
	case opTypeStruct:
		if c := m.def[index]; c.op == opConstant && c.args[2] < uint32(len(d.args)-1) {
			return d.args[1+c.args[2]]
		}
	}
	return 0
}

// recursion refuses functions that call themselves, which drivers would unroll for ever.
func (m *module) recursion() error {
	state := map[uint32]int{}
	var visit func(f uint32) error
	visit = func(f uint32) error {
		switch state[f] {
		case 1:
			return errors.New("a function that calls itself")
		case 2:
			return nil
		}
		state[f] = 1
		for _, g := range m.calls[f] {
			if err := visit(g); err != nil {
				return err
			}
		}
		state[f] = 2
		return nil
	}
	for f := range m.calls {
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// inputs lists the built-in values of SPIR-V that a kernel may take, and how many words each has.
var inputs = map[uint32]uint32{24: 3, 26: 3, 27: 3, 28: 3, 29: 1, 36: 1, 38: 1, 40: 1, 41: 1}

// input rejects a variable without an input value, for which drivers end the process.
func (m *module) input(in instr) error {
	b, ok := m.builtIn[in.args[1]]
	p := m.def[in.args[0]]
	if n := inputs[b]; !ok || n == 0 || p.op != opTypePointer || m.shape(p.args[2]) != (shape{'i', n}) {
		return errors.New("a parameter of the entry point is not a built-in value of kernels")
	}
	return nil
}

// declaration checks the instructions before the functions.
func (m *module) declaration(in instr) error {
	s := m.shader
	switch in.op {
	case opImport:
		m.glsl = in.args[0]
	case opDecorate:
		if len(in.args) == 3 {
			d := m.set[in.args[0]]
			switch in.args[1] {
			case 11: // BuiltIn
				m.builtIn[in.args[0]] = in.args[2]
			case 34: // DescriptorSet
				d[0] = int64(in.args[2]) + 1
			case 33: // Binding
				d[1] = int64(in.args[2]) + 1
			}
			m.set[in.args[0]] = d
		}
	case opCapability:
		if in.args[0] > 1 && !s.Trusted { // beyond Matrix and Shader
			return fmt.Errorf("it needs something that this device is not asked for (SPIR-V capability %d)", in.args[0])
		}
	case opVariable:
		if len(in.args) < 3 {
			return errFormat
		}
		class := in.args[2]
		switch class {
		case classStorage, classUniform:
		case classWorkgroup, classPrivate:
			return nil
		case classInput:
			return m.input(in)
		default:
			return fmt.Errorf("a variable that no kernel has (SPIR-V storage class %d)", class)
		}
		d := m.set[in.args[1]]
		if d[0] != 1 || d[1] < 1 || d[1] > int64(len(s.Bindings)) {
			return fmt.Errorf("binding %d of group %d is not bound", d[1]-1, d[0]-1)
		}
		if (s.Bindings[d[1]-1] == webgpu.Block) != (class == classUniform) {
			return fmt.Errorf("binding %d is declared as another kind of buffer", d[1]-1)
		}
	}
	return nil
}
