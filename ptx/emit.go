package ptx

import (
	"encoding/binary"
	"strconv"
	"sync"
)

// word is a text of at most 24 bytes, written by three stores, with the layout of
// what follows it.
type word struct {
	w      [3]uint64
	n      uint8
	layout layout
}

// Sizes that tables have: all other names are put together.
const (
	maxText = 24
	maxName = 1 << 10 // registers of a class, and numbers
)

// spare is the room that every instruction has, so that its stores need not look.
const spare = 256

// tables holds what instructions and operands are called.
type tables struct {
	ops [numCodes]word
	// memory has loads and stores, with vector and type.
	memory [opStoreCluster - opLoadParam + 1][3 * numKinds]word
	// names has operands, by tag and number: up to six bytes of text, and how many
	// they are in the highest byte.
	names  [16 * maxName]uint64
	params [numKinds]string   // how parameters are declared
	regs   [numClasses]string // how registers are
}

// name returns the entry of an operand, 0 if it has none.
func (t *tables) name(v val) uint64 {
	if v&payload >= maxName {
		return 0
	}
	return t.names[(v>>18|v&(maxName-1))&(16*maxName-1)]
}

// names builds the tables when they are first needed.
var names = sync.OnceValue(func() *tables {
	t := new(tables)
	for o := range descs {
		d := &descs[o]
		t.ops[o] = newWord(d.text, d.layout)
		if d.layout != layoutLoad && d.layout != layoutStore && d.layout != layoutParam {
			continue
		}
		for kd := range kinds {
			for n, vector := range []string{"", ".v2", ".v4"} {
				t.memory[code(o)-opLoadParam][3*kd+n] = newWord(d.text+vector+kinds[kd].suffix+" ", d.layout)
			}
		}
	}
	for kd := range kinds {
		t.params[kd] = "\n\t.param " + kinds[kd].suffix + " p_"
	}
	for c := range classes {
		t.regs[c] = "\t.reg " + classes[c].typ + " " + classes[c].prefix + "<"
		for n := range maxName {
			t.names[(c+1)*maxName+n] = newName(classes[c].prefix + strconv.Itoa(n))
		}
	}
	for n := range maxName {
		t.names[int(tagSmall)*maxName+n] = newName(strconv.Itoa(n))
	}
	return t
})

// newWord returns the word of a text, which has no length if it is too long.
func newWord(s string, l layout) word {
	var b [maxText]byte
	if copy(b[:], s) < len(s) {
		return word{layout: l}
	}
	return word{[3]uint64{le.Uint64(b[:]), le.Uint64(b[8:]), le.Uint64(b[16:])}, uint8(len(s)), l}
}

func newName(s string) uint64 {
	var b [8]byte
	if copy(b[:6], s) < len(s) {
		panic("ptx: a name of more than 6 bytes")
	}
	b[7] = byte(len(s))
	return le.Uint64(b[:])
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
	t := names()
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
		b = append(b, t.params[p.kind]...)
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
		b = append(b, t.regs[c]...)
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

// appendCode appends instructions. It writes behind the end of b, for which it
// makes room once an instruction.
func (k *Kernel) appendCode(b []byte, t *tables, code []instr) []byte {
	const (
		comma = ',' | ' '<<8
		end   = ';' | '\n'<<8
	)
	i := len(b)
	b = b[:cap(b)]
	for x := range code {
		in := &code[x]
		if len(b)-i < spare {
			b = append(make([]byte, 0, 2*len(b)+spare), b[:i]...)
			b = b[:cap(b)]
		}
		if in.guard != 0 {
			i = len(k.appendGuard(b[:i], in.guard))
		}
		w := &t.ops[in.op]
		l := w.layout
		if l == layoutLoad || l == layoutStore || l == layoutParam {
			w = &t.memory[in.op-opLoadParam][3*(in.aux&0xff)+in.aux>>9]
		}
		if w.n != 0 {
			s := b[i : i+maxText]
			le.PutUint64(s, w.w[0])
			le.PutUint64(s[8:], w.w[1])
			le.PutUint64(s[16:], w.w[2])
			i += int(w.n)
		} else {
			i += copy(b[i:], descs[in.op].text)
			if w != &t.ops[in.op] {
				i += copy(b[i:], vectors[in.aux>>8])
				i += copy(b[i:], kinds[in.aux&0xff].suffix)
				b[i] = ' '
				i++
			}
		}
		switch {
		case l == layoutPlain || l == layoutName:
			first, more := in.d, in.a
			if first == 0 {
				first, more = more, 0
			}
			if first != 0 {
				if r := t.name(first); r != 0 {
					le.PutUint64(b[i:i+8:i+8], r)
					i += int(r >> 56)
				} else {
					i = len(k.appendOperand(b[:i], first))
				}
			}
			if more != 0 {
				if r := t.name(more); r != 0 {
					le.PutUint64(b[i:i+8:i+8], r<<16|comma)
					i += int(r>>56) + 2
				} else {
					i = k.next(b, i, more)
				}
			}
			if in.b != 0 {
				if r := t.name(in.b); r != 0 {
					le.PutUint64(b[i:i+8:i+8], r<<16|comma)
					i += int(r>>56) + 2
				} else {
					i = k.next(b, i, in.b)
				}
				if in.c != 0 {
					if r := t.name(in.c); r != 0 {
						le.PutUint64(b[i:i+8:i+8], r<<16|comma)
						i += int(r>>56) + 2
					} else {
						i = k.next(b, i, in.c)
					}
				}
			}
		case l == layoutLoad && in.aux>>8 == 1 || l == layoutParam:
			if r := t.name(in.d); r != 0 {
				le.PutUint64(b[i:i+8:i+8], r)
				i += int(r >> 56)
			} else {
				i = len(k.appendOperand(b[:i], in.d))
			}
			le.PutUint16(b[i:], comma)
			i = k.address(b, i+2, t, in.a, in.b)
		case l == layoutStore && in.aux>>8 == 1:
			i = k.address(b, i, t, in.a, in.b)
			if r := t.name(in.c); r != 0 {
				le.PutUint64(b[i:i+8:i+8], r<<16|comma)
				i += int(r>>56) + 2
			} else {
				i = k.next(b, i, in.c)
			}
		case l == layoutLoad:
			i = k.begin(b, i, t, in.d, '{')
			for j := range val(in.aux>>8) - 1 {
				if r := t.name(in.d + 1 + j); r != 0 {
					le.PutUint64(b[i:i+8:i+8], r<<16|comma)
					i += int(r>>56) + 2
				} else {
					i = k.next(b, i, in.d+1+j)
				}
			}
			b[i], b[i+1], b[i+2] = '}', ',', ' '
			i = k.address(b, i+3, t, in.a, in.b)
		case l == layoutStore:
			i = k.address(b, i, t, in.a, in.b)
			b[i], b[i+1] = ',', ' '
			list := k.lists[in.c : int(in.c)+int(in.aux>>8)]
			i = k.begin(b, i+2, t, list[0], '{')
			for _, v := range list[1:] {
				if r := t.name(v); r != 0 {
					le.PutUint64(b[i:i+8:i+8], r<<16|comma)
					i += int(r>>56) + 2
				} else {
					i = k.next(b, i, v)
				}
			}
			b[i] = '}'
			i++
		case l == layoutLabel || l == layoutBranch:
			le.PutUint16(b[i:], '$'|'L'<<8)
			i += 2
			if r := t.name(tagged(tagSmall, 0) | in.a&payload); r != 0 {
				le.PutUint64(b[i:i+8:i+8], r)
				i += int(r >> 56)
			} else {
				i = len(strconv.AppendUint(b[:i], uint64(in.a.n()), 10))
			}
			if l == layoutLabel {
				le.PutUint16(b[i:], ':'|'\n'<<8)
				i += 2
				continue
			}
		default:
			s := k.appendOperands(b[:i], in, l)
			if i = len(s); cap(s)-i < 2 {
				s = append(make([]byte, 0, 2*i+spare), s...)
			}
			b = s[:cap(s)]
		}
		le.PutUint16(b[i:], end)
		i += 2
	}
	return b[:i]
}

// begin writes a byte and an operand to b[i:], and returns where it ends.
func (k *Kernel) begin(b []byte, i int, t *tables, v val, c byte) int {
	b[i] = c
	if r := t.name(v); r != 0 {
		le.PutUint64(b[i+1:i+9:i+9], r)
		return i + 1 + int(r>>56)
	}
	return len(k.appendOperand(b[:i+1], v))
}

// next writes a comma and an operand that has no entry in the tables to b[i:],
// and returns where it ends.
func (k *Kernel) next(b []byte, i int, v val) int {
	le.PutUint16(b[i:], ','|' '<<8)
	if v.tag() == tagF32 {
		le.PutUint16(b[i+2:], '0'|'f'<<8)
		bits := uint32(k.consts[v.n()])
		for j := range 4 {
			copy(b[i+4+2*j:], hex[2*(bits>>(24-8*j)&0xff):][:2])
		}
		return i + 12
	}
	return len(k.appendOperand(b[:i+2], v))
}

// hex has all bytes in hexadecimal.
var hex = func() (t [512]byte) {
	for i := range 256 {
		t[2*i], t[2*i+1] = "0123456789ABCDEF"[i>>4], "0123456789ABCDEF"[i&15]
	}
	return t
}()

// address writes "[base+offset]" to b[i:] and returns where it ends.
func (k *Kernel) address(b []byte, i int, t *tables, base, offset val) int {
	b[i] = '['
	i++
	if r := t.name(base); r != 0 {
		le.PutUint64(b[i:i+8:i+8], r)
		i += int(r >> 56)
	} else {
		i = len(k.appendOperand(b[:i], base))
	}
	if off := int32(offset); off != 0 {
		b[i] = '+' // before a minus too
		i++
		if uint32(off) < maxName {
			r := t.names[tagSmall*maxName+val(off)]
			le.PutUint64(b[i:i+8:i+8], r)
			i += int(r >> 56)
		} else {
			i = len(strconv.AppendInt(b[:i], int64(off), 10))
		}
	}
	b[i] = ']'
	return i + 1
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
func (k *Kernel) appendAddress(b []byte, base, offset val) []byte {
	b = k.appendOperand(append(b, '['), base)
	if off := int32(offset); off != 0 {
		b = strconv.AppendInt(append(b, '+'), int64(off), 10)
	}
	return append(b, ']')
}

// appendNext appends a comma and an operand.
func (k *Kernel) appendNext(b []byte, v val) []byte {
	return k.appendOperand(append(b, ", "...), v)
}

// appendVector appends "{a, b}".
func (k *Kernel) appendVector(b []byte, v []val) []byte {
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

// appendOperands appends the operands of the layouts that appendCode leaves to it.
func (k *Kernel) appendOperands(b []byte, in *instr, l layout) []byte {
	switch l {
	case layoutAux:
		b = k.appendOperand(b, in.d)
		b = k.appendNext(b, in.a)
		b = k.appendNext(b, in.b)
		b = k.appendNext(b, in.c)
		b = append(b, ", "...)
		b = strconv.AppendUint(b, uint64(in.aux), 10)
	case layoutShuffle:
		b = k.appendOperand(b, in.d)
		b = k.appendNext(b, in.a)
		b = k.appendNext(b, in.b)
		b = append(b, ", "...)
		b = strconv.AppendUint(b, uint64(in.aux), 10)
		b = k.appendNext(b, in.c)
	case layoutPack:
		b = k.appendOperand(b, in.d)
		b = append(b, ", "...)
		b = k.appendVector(b, []val{in.a, in.b})
	case layoutUnpack:
		b = k.appendVector(b, []val{in.d, in.a})
		b = k.appendNext(b, in.b)
	case layoutImmediate:
		b = strconv.AppendUint(b, uint64(in.aux), 10)
	case layoutAtomic, layoutReduction:
		b = append(b, ' ')
		if l == layoutAtomic {
			b = k.appendOperand(b, in.d)
			b = append(b, ", "...)
		}
		b = k.appendAddress(b, in.a, in.b)
		b = k.appendNext(b, in.c)
	case layoutExchange:
		b = k.appendOperand(b, in.d)
		b = append(b, ", "...)
		b = k.appendAddress(b, in.a, in.b)
		b = k.appendNext(b, k.lists[in.c])
		b = k.appendNext(b, k.lists[in.c+1])
	case layoutCopy:
		b = k.appendAddress(b, in.d, k.lists[in.c])
		b = append(b, ", "...)
		b = k.appendAddress(b, in.a, k.lists[in.c+1])
		b = append(b, ", "...)
		b = strconv.AppendUint(b, uint64(in.aux), 10)
		if in.b != 0 {
			b = k.appendNext(b, in.b)
		}
	case layoutMatrix:
		b = k.appendRun(b, in.d, int(in.aux))
		b = append(b, ", "...)
		b = k.appendAddress(b, in.a, in.b)
	case layoutMma:
		nd, na, nb := int(in.aux&15), int(in.aux>>4&15), int(in.aux>>8&15)
		list := k.lists[in.a:]
		b = k.appendVector(b, list[:nd])
		b = append(b, ", "...)
		b = k.appendVector(b, list[nd:nd+na])
		b = append(b, ", "...)
		b = k.appendVector(b, list[nd+na:nd+na+nb])
		b = append(b, ", "...)
		b = k.appendVector(b, list[:nd])
	case layoutWgmma:
		return k.appendWgmma(b, in)
	case layoutForm:
		// The text was appended with its marks: it is written again.
		text := descs[in.op].text
		return k.appendForm(b[:len(b)-len(text)], text, in)
	case layoutRaw:
		return k.appendForm(append(b, '\t'), k.raws[in.b], in)
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
