package ptx

import (
	"encoding/binary"
	"strconv"
	"sync"
)

// word is a text of at most 24 bytes, written by three stores; register a name
// of at most 8, written by one.
type (
	word struct {
		w [3]uint64
		n int
	}
	register struct {
		w uint64
		n int
	}
)

// Names that tables have: all others are put together.
const (
	maxText = 24
	maxReg  = 1000
)

// spare is the room that every instruction has, so that its stores need not look.
const spare = 256

// tables holds what instructions and registers are called.
type tables struct {
	ops  [numCodes]word
	reg  [numClasses][maxReg]register // "%f7"
	next [numClasses][maxReg]register // ", %f7"
}

// names builds the tables when they are first needed.
var names = sync.OnceValue(func() *tables {
	t := new(tables)
	for i := range descs {
		if s := descs[i].text; len(s) <= maxText {
			t.ops[i] = newWord(s)
		}
	}
	for c := range classes {
		for n := range maxReg {
			s := classes[c].prefix + strconv.Itoa(n)
			t.reg[c][n] = newRegister(s)
			t.next[c][n] = newRegister(", " + s)
		}
	}
	return t
})

func newWord(s string) word {
	var b [maxText]byte
	copy(b[:], s)
	return word{[3]uint64{le.Uint64(b[:]), le.Uint64(b[8:]), le.Uint64(b[16:])}, len(s)}
}

func newRegister(s string) register {
	var b [8]byte
	if copy(b[:], s) < len(s) {
		panic("ptx: a name of more than 8 bytes")
	}
	return register{le.Uint64(b[:]), len(s)}
}

var le = binary.LittleEndian

// PTX returns the text of the module, or its first mistake.
func (m *Module) PTX() (string, error) {
	b, err := m.AppendPTX(nil)
	return string(b), err
}

// AppendPTX appends the text of the module to b. It allocates nothing if b has
// room. After a mistake it returns b and the mistake.
func (m *Module) AppendPTX(b []byte) ([]byte, error) {
	if m.err != nil {
		return b, m.err
	}
	version, dynamic, size := m.target.version(), uint32(0), 256
	for _, k := range m.kernels[:m.n] {
		version = max(version, k.version)
		if k.pointer != 0 {
			dynamic = max(dynamic, k.extern)
		}
		size += 1024 + 48*(len(k.code)+len(k.prologue))
	}
	if cap(b)-len(b) < size {
		b = append(make([]byte, 0, len(b)+size), b...)
	}
	b = append(b, ".version "...)
	b = appendVersion(b, version)
	b = append(b, "\n.target "...)
	b = append(b, m.target.String()...)
	b = append(b, "\n.address_size 64\n"...)
	if dynamic != 0 {
		b = append(b, "\n.extern .shared .align "...)
		b = strconv.AppendUint(b, uint64(dynamic), 10)
		b = append(b, " .b8 d_shared[];\n"...)
	}
	t := names()
	for _, k := range m.kernels[:m.n] {
		b = k.appendHead(b)
		b = k.appendCode(b, t, k.prologue)
		b = k.appendCode(b, t, k.code)
		b = append(b, "}\n"...)
	}
	return b, nil
}

// appendHead appends all that comes before the instructions.
func (k *Kernel) appendHead(b []byte) []byte {
	b = append(b, "\n.visible .entry "...)
	b = append(b, k.name...)
	b = append(b, '(')
	for i := range k.params {
		p := &k.params[i]
		if i > 0 {
			b = append(b, ',')
		}
		if p.kind == kNone {
			b = append(b, "\n\t.param .align 64 .b8 p_"...)
			b = append(b, p.name...)
			b = append(b, "[128]"...)
			continue
		}
		b = append(b, "\n\t.param "...)
		b = append(b, kinds[p.kind].suffix...)
		b = append(b, " p_"...)
		b = append(b, p.name...)
	}
	b = append(b, "\n)\n"...)
	if k.threads[0] != 0 {
		if k.exactly {
			b = append(b, ".reqntid "...)
		} else {
			b = append(b, ".maxntid "...)
		}
		b = appendTriple(b, k.threads)
	}
	if k.minimum != 0 {
		b = append(b, ".minnctapersm "...)
		b = strconv.AppendUint(b, uint64(k.minimum), 10)
		b = append(b, '\n')
	}
	if k.cluster[0] != 0 {
		b = append(b, ".reqnctapercluster "...)
		b = appendTriple(b, k.cluster)
	}
	b = append(b, "{\n"...)
	for c, n := range k.regs {
		if n == 0 {
			continue
		}
		b = append(b, "\t.reg "...)
		b = append(b, classes[c].typ...)
		b = append(b, ' ')
		b = append(b, classes[c].prefix...)
		b = append(b, '<')
		b = strconv.AppendUint(b, uint64(n), 10)
		b = append(b, ">;\n"...)
	}
	for i := range k.shared {
		b = append(b, "\t.shared .align "...)
		b = strconv.AppendUint(b, uint64(k.shared[i].align), 10)
		b = append(b, " .b8 s_"...)
		b = append(b, k.shared[i].name...)
		b = append(b, '[')
		b = strconv.AppendUint(b, uint64(k.shared[i].bytes), 10)
		b = append(b, "];\n"...)
	}
	return b
}

func (k *Kernel) appendCode(b []byte, t *tables, code []instr) []byte {
	for i := range code {
		in := &code[i]
		if cap(b)-len(b) < spare {
			b = append(make([]byte, 0, 2*cap(b)+spare), b...)
		}
		if in.guard != 0 {
			b = k.appendGuard(b, in.guard)
		}
		d := &descs[in.op]
		if w := &t.ops[in.op]; w.n != 0 {
			n := len(b)
			s := b[n : n+maxText]
			le.PutUint64(s, w.w[0])
			le.PutUint64(s[8:], w.w[1])
			le.PutUint64(s[16:], w.w[2])
			b = b[:n+w.n]
		} else {
			b = append(b, d.text...)
		}
		if d.layout == layoutPlain {
			if in.d != 0 {
				b = k.appendFirst(b, t, in.d)
				if in.a != 0 {
					b = k.appendNext(b, t, in.a)
				}
			} else if in.a != 0 {
				b = k.appendFirst(b, t, in.a)
			}
			if in.b != 0 {
				b = k.appendNext(b, t, in.b)
				if in.c != 0 {
					b = k.appendNext(b, t, in.c)
				}
			}
		} else {
			b = k.appendOperands(b, t, in, d.layout)
			if d.layout == layoutLabel {
				b = append(b, ":\n"...)
				continue
			}
		}
		b = append(b, ';', '\n')
	}
	return b
}

// appendTriple appends "x, y, z" and ends the line.
func appendTriple(b []byte, v [3]uint32) []byte {
	for i, n := range v {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendUint(b, uint64(n), 10)
	}
	return append(b, '\n')
}

// appendGuard appends what comes before a conditional instruction.
func (k *Kernel) appendGuard(b []byte, g guard) []byte {
	b = append(b, "\t@"...)
	if g&1 != 0 {
		b = append(b, '!')
	}
	b = append(b, "%p"...)
	return strconv.AppendUint(b, uint64(g&^guarded>>1), 10)
}

// appendFirst appends an operand; there is room for a name.
func (k *Kernel) appendFirst(b []byte, t *tables, v val) []byte {
	if c, n := v>>tagShift-1, v&payload; c < val(numClasses) && n < maxReg {
		r := &t.reg[c][n]
		i := len(b)
		le.PutUint64(b[i:i+8], r.w)
		return b[:i+r.n]
	}
	return k.appendOperand(b, v)
}

// appendNext appends a comma and an operand.
func (k *Kernel) appendNext(b []byte, t *tables, v val) []byte {
	if c, n := v>>tagShift-1, v&payload; c < val(numClasses) && n < maxReg {
		r := &t.next[c][n]
		i := len(b)
		le.PutUint64(b[i:i+8], r.w)
		return b[:i+r.n]
	}
	return k.appendOperand(append(b, ", "...), v)
}

// appendOperand appends any operand.
func (k *Kernel) appendOperand(b []byte, v val) []byte {
	n := v.n()
	if c, ok := v.class(); ok {
		b = append(b, classes[c].prefix...)
		return strconv.AppendUint(b, uint64(n), 10)
	}
	switch v.tag() {
	case tagSmall:
		return strconv.AppendUint(b, uint64(n), 10)
	case tagSigned:
		return strconv.AppendInt(b, int64(k.consts[n]), 10)
	case tagBig:
		b = strconv.AppendUint(b, k.consts[n], 10)
		return append(b, 'U')
	case tagF32:
		return appendHex(append(b, "0f"...), k.consts[n], 8)
	case tagF64:
		return appendHex(append(b, "0d"...), k.consts[n], 16)
	case tagParam:
		b = append(b, "p_"...)
		return append(b, k.params[n].name...)
	case tagShared:
		if n == dynamicSymbol {
			return append(b, "d_shared"...)
		}
		b = append(b, "s_"...)
		return append(b, k.shared[n].name...)
	case tagSpecial:
		return append(b, specialNames[n]...)
	case tagLabel:
		b = append(b, "$L"...)
		return strconv.AppendUint(b, uint64(n), 10)
	}
	return b
}

func appendHex(b []byte, bits uint64, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		b = append(b, "0123456789ABCDEF"[bits>>(4*i)&15])
	}
	return b
}

// appendAddress appends "[base+offset]".
func (k *Kernel) appendAddress(b []byte, t *tables, base, offset val) []byte {
	b = append(b, '[')
	b = k.appendFirst(b[:len(b):cap(b)], t, base)
	if off := int32(offset); off != 0 {
		if off > 0 {
			b = append(b, '+')
		}
		b = strconv.AppendInt(b, int64(off), 10)
	}
	return append(b, ']')
}

// appendVector appends "{a, b}".
func (k *Kernel) appendVector(b []byte, t *tables, v []val) []byte {
	b = append(b, '{')
	for i, x := range v {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = k.appendOperand(b, x)
	}
	return append(b, '}')
}

// vectors holds what a load or store adds to its text for so many elements.
var vectors = [5]string{1: "", 2: ".v2", 4: ".v4"}

// appendOperands appends the operands of all layouts but the plain one.
func (k *Kernel) appendOperands(b []byte, t *tables, in *instr, l layout) []byte {
	kd, n := kind(in.aux&0xff), int(in.aux>>8)
	switch l {
	case layoutName:
		b = k.appendFirst(b, t, in.d)
		b = k.appendNext(b, t, in.a)
	case layoutAux:
		b = k.appendFirst(b, t, in.d)
		b = k.appendNext(b, t, in.a)
		b = k.appendNext(b, t, in.b)
		b = k.appendNext(b, t, in.c)
		b = append(b, ", "...)
		b = strconv.AppendUint(b, uint64(in.aux), 10)
	case layoutShuffle:
		b = k.appendFirst(b, t, in.d)
		b = k.appendNext(b, t, in.a)
		b = k.appendNext(b, t, in.b)
		b = append(b, ", "...)
		b = strconv.AppendUint(b, uint64(in.aux), 10)
		b = k.appendNext(b, t, in.c)
	case layoutPack:
		b = k.appendFirst(b, t, in.d)
		b = append(b, ", "...)
		b = k.appendVector(b, t, []val{in.a, in.b})
	case layoutUnpack:
		b = k.appendVector(b, t, []val{in.d, in.a})
		b = k.appendNext(b, t, in.b)
	case layoutImmediate:
		b = strconv.AppendUint(b, uint64(in.aux), 10)
	case layoutParam:
		b = append(b, kinds[kd].suffix...)
		b = append(b, ' ')
		b = k.appendFirst(b, t, in.d)
		b = append(b, ", "...)
		b = k.appendAddress(b, t, in.a, 0)
	case layoutLoad:
		b = append(b, vectors[n]...)
		b = append(b, kinds[kd].suffix...)
		b = append(b, ' ')
		if n == 1 {
			b = k.appendFirst(b, t, in.d)
		} else {
			b = k.appendRun(b, in.d, n)
		}
		b = append(b, ", "...)
		b = k.appendAddress(b, t, in.a, in.b)
	case layoutStore:
		b = append(b, vectors[n]...)
		b = append(b, kinds[kd].suffix...)
		b = append(b, ' ')
		b = k.appendAddress(b, t, in.a, in.b)
		if n == 1 {
			b = k.appendNext(b, t, in.c)
		} else {
			b = append(b, ", "...)
			b = k.appendVector(b, t, k.lists[in.c:int(in.c)+n])
		}
	case layoutAtomic, layoutReduction:
		b = append(b, ' ')
		if l == layoutAtomic {
			b = k.appendFirst(b, t, in.d)
			b = append(b, ", "...)
		}
		b = k.appendAddress(b, t, in.a, in.b)
		b = k.appendNext(b, t, in.c)
	case layoutExchange:
		b = k.appendFirst(b, t, in.d)
		b = append(b, ", "...)
		b = k.appendAddress(b, t, in.a, in.b)
		b = k.appendNext(b, t, k.lists[in.c])
		b = k.appendNext(b, t, k.lists[in.c+1])
	case layoutCopy:
		b = k.appendAddress(b, t, in.d, k.lists[in.c])
		b = append(b, ", "...)
		b = k.appendAddress(b, t, in.a, k.lists[in.c+1])
		b = append(b, ", "...)
		b = strconv.AppendUint(b, uint64(in.aux), 10)
		if in.b != 0 {
			b = k.appendNext(b, t, in.b)
		}
	case layoutMatrix:
		b = k.appendRun(b, in.d, int(in.aux))
		b = append(b, ", "...)
		b = k.appendAddress(b, t, in.a, in.b)
	case layoutMma:
		nd, na, nb := int(in.aux&15), int(in.aux>>4&15), int(in.aux>>8&15)
		list := k.lists[in.a:]
		b = k.appendVector(b, t, list[:nd])
		b = append(b, ", "...)
		b = k.appendVector(b, t, list[nd:nd+na])
		b = append(b, ", "...)
		b = k.appendVector(b, t, list[nd+na:nd+na+nb])
		b = append(b, ", "...)
		b = k.appendVector(b, t, list[:nd])
	case layoutWgmma:
		return k.appendWgmma(b, in)
	case layoutForm:
		// The text was appended with its marks: it is written again.
		text := descs[in.op].text
		return k.appendForm(b[:len(b)-len(text)], text, in)
	case layoutRaw:
		return k.appendForm(append(b, '\t'), k.raws[in.b], in)
	case layoutBranch, layoutLabel:
		b = k.appendOperand(b, in.a)
	}
	return b
}

// appendRun appends "{%r1, %r2}": n registers from v on.
func (k *Kernel) appendRun(b []byte, v val, n int) []byte {
	b = append(b, '{')
	for i := range val(n) {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = k.appendOperand(b, v+i)
	}
	return append(b, '}')
}

// appendForm appends text with the operands of in for the marks in it.
func (k *Kernel) appendForm(b []byte, text string, in *instr) []byte {
	next := int(in.a)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c != '$' || i+1 == len(text):
			b = append(b, c)
		case text[i+1] == '=':
			b = k.appendOperand(b, in.d)
			i++
		default:
			b = k.appendOperand(b, k.lists[next])
			next++
			i++
		}
	}
	return b
}
