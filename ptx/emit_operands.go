package ptx

import (
	"math/bits"
	"strconv"
)

// hex has the hexadecimal text of all bytes.
var hex = func() (t [256]uint16) {
	const digits = "0123456789ABCDEF"
	for i := range t {
		t[i] = uint16(digits[i>>4]) | uint16(digits[i&15])<<8
	}
	return t
}()

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

// guardText writes the guard of a conditional instruction to b[i:] and returns the index after it.
func (k *Kernel) guardText(b []byte, i int, t *tables, g guard) int {
	le.PutUint32(b[i:], '\t'|'@'<<8|'!'<<16)
	i += 2 + int(g&1)
	v := classP.reg(uint32(g&^guarded) >> 1)
	if r := t.name(v); r != 0 {
		le.PutUint64(b[i:i+8:i+8], bits.RotateLeft64(r, -16))
		return i + int(r>>56) - 2
	}
	return len(k.appendOperand(b[:i], v))
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

// appendOne appends any instruction.
func (k *Kernel) appendOne(b []byte, t *tables, in *instr) []byte {
	d := &descs[in.op]
	b = append(b, d.text...)
	switch d.layout {
	case layoutPlain, layoutName:
		first := true
		for _, v := range [...]val{in.d, in.a, in.b, in.c} {
			if v == 0 {
				continue
			}
			if !first {
				b = append(b, ", "...)
			}
			b = k.appendOperand(b, v)
			first = false
		}
	case layoutLoad, layoutParam, layoutStore:
		b = append(b, vectors[in.aux>>8]...)
		b = append(b, kinds[in.aux&0xff].suffix...)
		b = append(b, ' ')
		n := int(in.aux >> 8)
		switch {
		case d.layout == layoutStore:
			b = append(k.appendAddress(b, in.a, in.b), ", "...)
			if n == 1 {
				b = k.appendOperand(b, in.c)
			} else {
				b = k.appendVector(b, k.lists[in.c:][:n])
			}
		case n == 1:
			b = append(k.appendOperand(b, in.d), ", "...)
			b = k.appendAddress(b, in.a, in.b)
		default:
			b = append(k.appendRun(b, in.d, n), ", "...)
			b = k.appendAddress(b, in.a, in.b)
		}
	case layoutLabel, layoutBranch:
		b = append(b, "$L"...)
		b = strconv.AppendUint(b, uint64(in.a.n()), 10)
		if d.layout == layoutLabel {
			return append(b, ":\n"...)
		}
	default:
		b = k.appendOperands(b, in, d.layout)
	}
	return append(b, ";\n"...)
}

// vectors has the suffix of a load or store for each number of elements.
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
		if in.c == 0 { // all lanes
			b = append(b, ", -1"...)
		} else {
			b = k.appendNext(b, in.c)
		}
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
		// The text was appended with its placeholders, so it is written again.
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

// appendForm appends text, with the operands of in instead of the placeholders.
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
