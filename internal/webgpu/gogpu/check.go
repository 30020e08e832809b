//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"fmt"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// shape is what an instruction wants to know of a type: b, i or f for truth values, integers
// and floating-point numbers of 32 bits, how many of them there are, and 0 for any other type.
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

// plain lists the instructions whose operands have as many components as their result: first the
// class of the result, then the classes of the operands. A capital letter is a scalar, whatever the
// size of the result.
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

// functions lists the functions of GLSL.std.450 likewise.
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

// mismatch says that a value has another type than where it is put.
func (m *module) mismatch(in instr) error {
	return fmt.Errorf("a value is used with another type than its own (SPIR-V instruction %d)", in.op)
}

// check validates an instruction of a function. It rejects unknown instructions, because drivers do
// not validate SPIR-V, and some end the process.
func (m *module) check(in instr) error {
	a := in.args
	ofType := func(id uint32) shape { return m.shape(m.typeOf[id]) }
	need := func(ok bool) error {
		if !ok {
			return m.mismatch(in)
		}
		return nil
	}
	least := map[uint16]int{opCall: 3, opLoad: 3, opStore: 2, opAccessChain: 4, opArrayLength: 4, opExtInst: 5, opVariable: 3, opExtract: 4, opInsert: 5,
		opExtractDynamic: 4, opInsertDynamic: 5, opShuffle: 5, opConstruct: 3, opSelect: 5, opBranchIf: 3, opSwitch: 2, opReturnValue: 1, opPhi: 4, opBitcast: 3,
		opParameter: 2, opFunction: 4, opLabel: 1, 148: 4, 143: 4, 144: 4, 145: 4, 146: 4, 84: 3, 83: 3, 154: 3, 155: 3, 227: 5, 228: 4, 230: 8}
	if len(a) < least[in.op] {
		return errFormat
	}
	// Results have types from here on.
	result := func() {
		if len(a) >= 2 {
			m.typeOf[a[1]] = a[0]
		}
	}
	numbers := func(rule string, operands []uint32) error {
		r := m.shape(a[0])
		if r.class != rule[0] || len(operands) != len(rule)-1 {
			return m.mismatch(in)
		}
		for i, o := range operands {
			want := shape{rule[1+i], r.count}
			if want.class < 'a' {
				want = shape{want.class + 'a' - 'A', 1}
			}
			if ofType(o) != want {
				return m.mismatch(in)
			}
		}
		return nil
	}
	if rule, ok := plain[in.op]; ok {
		if len(a) < 2 {
			return errFormat
		}
		result()
		return numbers(rule, a[2:])
	}
	switch in.op {
	case opLabel, opLoopMerge, opSelectionMerge, opBranch, opReturn, opUnreachable, opFunction, 8, 317: // line numbers
		return nil
	case opParameter:
		result()
		f := m.def[m.typeOf[m.inside]]
		m.nth++
		return need(f.op == opTypeFunction && m.nth+1 < len(f.args) && f.args[m.nth+1] == a[0])
	case opVariable:
		m.note(in)
		t := m.def[a[0]]
		return need(t.op == opTypePointer && t.args[1] == a[2] && (len(a) < 4 || m.typeOf[a[3]] == t.args[2]))
	case opLoad:
		result()
		p := m.def[m.typeOf[a[2]]]
		return need(p.op == opTypePointer && p.args[2] == a[0])
	case opStore:
		p := m.def[m.typeOf[a[0]]]
		if p.op != opTypePointer || p.args[2] != m.typeOf[a[1]] {
			return m.mismatch(in)
		}
		return m.writes(a[0])
	case opAccessChain:
		result()
		p := m.def[m.typeOf[a[2]]]
		if p.op != opTypePointer {
			return m.mismatch(in)
		}
		m.root[a[1]] = m.root[a[2]]
		t := p.args[2]
		for _, index := range a[3:] {
			if ofType(index) != (shape{'i', 1}) {
				return m.mismatch(in)
			}
			n := m.elements(t)
			if c := m.def[index]; c.op == opConstant && n > 0 && c.args[2] >= n {
				return fmt.Errorf("index %d into %d elements", c.args[2], n)
			}
			if t = m.element(t, index); t == 0 {
				return m.mismatch(in)
			}
		}
		r := m.def[a[0]]
		return need(r.op == opTypePointer && r.args[1] == p.args[1] && r.args[2] == t)
	case opArrayLength:
		result()
		p := m.def[m.typeOf[a[2]]]
		return need(p.op == opTypePointer && m.def[p.args[2]].op == opTypeStruct && m.shape(a[0]) == shape{'i', 1})
	case opCall:
		result()
		f := m.def[m.typeOf[a[2]]]
		if f.op != opTypeFunction || f.args[1] != a[0] || len(f.args)-2 != len(a)-3 {
			return m.mismatch(in)
		}
		m.calls[m.inside] = append(m.calls[m.inside], a[2])
		for i, arg := range a[3:] {
			if m.typeOf[arg] != f.args[2+i] {
				return m.mismatch(in)
			}
			// Writes through a pointer argument are checked at the call.
			if t := m.def[f.args[2+i]]; t.op == opTypePointer && (t.args[1] == classStorage || t.args[1] == classUniform) {
				if err := m.writes(arg); err != nil {
					return err
				}
			}
		}
		return nil
	case opReturnValue:
		return need(m.typeOf[a[0]] == m.result)
	case opBranchIf:
		return need(ofType(a[0]) == shape{'b', 1})
	case opSwitch:
		return need(ofType(a[0]) == shape{'i', 1})
	case opPhi:
		result()
		return nil // of the compiler's own making
	case opSelect:
		result()
		r := m.shape(a[0])
		return need(r.count > 0 && ofType(a[2]) == shape{'b', r.count} && m.typeOf[a[3]] == a[0] && m.typeOf[a[4]] == a[0])
	case opBitcast:
		result()
		r, x := m.shape(a[0]), ofType(a[2])
		return need(r.count == x.count && r.count > 0 && r.class != 'b' && x.class != 'b')
	case 83: // CopyObject
		result()
		return need(m.typeOf[a[2]] == a[0])
	case 154, 155: // Any, All
		result()
		return need(m.shape(a[0]) == shape{'b', 1} && ofType(a[2]).class == 'b' && ofType(a[2]).count > 1)
	case 148: // Dot
		result()
		x := ofType(a[2])
		return need(m.shape(a[0]) == shape{'f', 1} && x.class == 'f' && x.count > 1 && ofType(a[3]) == x)
	case 84, 143, 144, 145, 146: // of matrices
		result()
		return m.matrices(in)
	case opConstruct:
		result()
		return m.construct(in)
	case opExtract:
		result()
		t := m.typeOf[a[2]]
		for _, i := range a[3:] {
			if t = m.member(t, i); t == 0 {
				return m.mismatch(in)
			}
		}
		return need(t == a[0])
	case opInsert:
		result()
		t := m.typeOf[a[3]]
		if t != a[0] {
			return m.mismatch(in)
		}
		for _, i := range a[4:] {
			if t = m.member(t, i); t == 0 {
				return m.mismatch(in)
			}
		}
		return need(t == m.typeOf[a[2]])
	case opExtractDynamic:
		result()
		v := ofType(a[2])
		return need(v.count > 1 && m.shape(a[0]) == shape{v.class, 1} && ofType(a[3]) == shape{'i', 1})
	case opInsertDynamic:
		result()
		v := ofType(a[2])
		return need(v.count > 1 && m.typeOf[a[2]] == a[0] && ofType(a[3]) == shape{v.class, 1} && ofType(a[4]) == shape{'i', 1})
	case opShuffle:
		result()
		x, y, r := ofType(a[2]), ofType(a[3]), m.shape(a[0])
		if x.class != y.class || r.class != x.class || x.count < 2 || y.count < 2 || int(r.count) != len(a)-4 {
			return m.mismatch(in)
		}
		for _, i := range a[4:] {
			if i >= x.count+y.count {
				return m.mismatch(in)
			}
		}
		return nil
	case opExtInst:
		result()
		if a[2] != m.glsl {
			return errFormat
		}
		if rule, ok := functions[a[3]]; ok {
			return numbers(rule, a[4:])
		}
		if list, ok := others[a[3]]; ok {
			return need(len(a) == 5 && m.shape(a[0]) == list[0] && ofType(a[4]) == list[1])
		}
		switch a[3] {
		case 66: // Length
			return need(len(a) == 5 && m.shape(a[0]) == shape{'f', 1} && ofType(a[4]).class == 'f')
		case 67: // Distance
			return need(len(a) == 6 && m.shape(a[0]) == shape{'f', 1} && ofType(a[4]).class == 'f' && ofType(a[5]) == ofType(a[4]))
		}
	case 224, 225: // barriers
		return nil
	case 227: // AtomicLoad
		result()
		return m.atomic(in, a[0], a[2], nil)
	case 228: // AtomicStore
		return m.atomic(in, 0, a[0], a[3:])
	case 229, 234, 235, 236, 237, 238, 239, 240, 241, 242:
		if len(a) != 6 {
			return errFormat
		}
		result()
		return m.atomic(in, a[0], a[2], a[5:])
	case 230: // AtomicCompareExchange
		result()
		return m.atomic(in, a[0], a[2], a[6:8])
	}
	return fmt.Errorf("it uses something that is not known to be compiled well (SPIR-V instruction %d%s)", in.op, map[bool]string{true: fmt.Sprintf(", function %d", append(a, 0, 0, 0, 0)[3])}[in.op == opExtInst])
}

// writes reports an error if the pointer points to read-only memory.
func (m *module) writes(pointer uint32) error {
	v := m.def[m.root[pointer]]
	if v.op != opVariable {
		return nil // a parameter, for which the call has answered, or memory of the function
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

// atomic judges an operation on a word in memory.
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

// construct judges a composite put together of parts: vectors also of shorter vectors.
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

// matrices judges products with matrices of floating-point numbers, and transposed ones.
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
	if in.op == 84 {
		ok = ok && rc == xr && rr == xc
	} else {
		yc, yr := grid(m.typeOf[a[3]])
		switch in.op {
		case 143: // by a number
			ok = ok && rc == xc && rr == xr && yc == 1 && yr == 1
		case 144: // a row times a matrix
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
