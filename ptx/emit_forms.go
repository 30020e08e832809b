package ptx

import (
	"math/bits"
)

// room is the maximum number of bytes of a frequent instruction, plus the spare bytes that its
// stores need after it. Positions in it are less than 128.
const room = 128 + 8

const (
	comma = ',' | ' '<<8
	end   = ';' | '\n'<<8
)

// Each of the following methods writes one instruction to the beginning of b and returns its
// length. It returns 0 if the instruction is not a frequent one, for example if a name is not in
// the table.

// To leave out the comma and space of a name, the code rotates the word and does not shift
// it: the Go compiler stores the remaining bytes of a shifted word one by one.

// bare writes an instruction without a result, and with at most one operand.
func (t *tables) bare(b []byte, w *word, in *instr) int {
	if w.n == 0 || in.d|in.b|in.c != 0 || in.a&beyond != 0 {
		return 0
	}
	ra := t.entry(in.a)
	if int64(ra) < 0 {
		return 0
	}
	s := (*[room]byte)(b)
	w.put(s[:])
	j := uint(w.n)
	if ra != 0 {
		le.PutUint64(s[j&127:j&127+8], bits.RotateLeft64(ra, -16))
		j += uint(ra>>56) - 2
	}
	le.PutUint16(s[j&127:j&127+2], end)
	return int(j + 2)
}

// access returns the word of a load or a store.
func (t *tables) access(in *instr) *word {
	return &t.memory[in.op-opLoadParam][3*(in.aux&0xff)+in.aux>>9]
}

// offset returns "+12]" for an offset in bytes, and the length of this text. The length is 0 if the
// offset is not in the table.
func (t *tables) offset(off val) (text uint64, n uint) {
	if off == 0 {
		return ']', 1
	}
	if off >= maxName {
		if off > 999999 {
			return 0, 0
		}
		for text, n = ']', 2; off > 0; off, n = off/10, n+1 {
			text = text<<8 | uint64('0'+off%10)
		}
		return text<<8 | '+', n
	}
	r := t.entry(tagged(tagSmall, int(off)))
	n = uint(r>>56) - 2 // digits
	return '+' | r>>16<<8&(1<<(8*n+8)-1) | ']'<<(8*n+8), n + 2
}

// load writes a load of one element or a vector.
func (t *tables) load(b []byte, in *instr) int {
	w := t.access(in)
	n := val(in.aux >> 8)
	if n == 1 && in.b|(in.d|in.a)&beyond == 0 && w.n != 0 {
		if rd, ra := t.entry(in.d), t.entry(in.a); int64(rd|ra) >= 0 {
			s := (*[room]byte)(b)
			w.put(s[:])
			j := uint(w.n)
			le.PutUint64(s[j&127:j&127+8], bits.RotateLeft64(rd, -16))
			j += uint(rd>>56) - 2
			le.PutUint64(s[j&127:j&127+8], comma|'['<<16|ra>>16<<24)
			j += uint(ra>>56) + 1
			le.PutUint32(s[j&127:j&127+4], ']'|end<<8)
			return int(j + 3)
		}
	}
	tail, long := t.offset(in.b)
	if w.n == 0 || (in.d+n|in.a)&beyond != 0 || long == 0 {
		return 0
	}
	ra, rd, last := t.entry(in.a), t.entry(in.d), t.entry(in.d+n-1)
	if int64(ra|rd|last) < 0 {
		return 0
	}
	s := (*[room]byte)(b)
	w.put(s[:])
	j := uint(w.n)
	if n == 1 {
		le.PutUint64(s[j&127:j&127+8], bits.RotateLeft64(rd, -16))
		j += uint(rd>>56) - 2
	} else {
		s[j&127] = '{'
		le.PutUint64(s[(j+1)&127:(j+1)&127+8], bits.RotateLeft64(rd, -16))
		j += uint(rd>>56) - 1
		for d := in.d + 1; d < in.d+n; d++ {
			r := t.entry(d)
			le.PutUint64(s[j&127:j&127+8], r)
			j += uint(r >> 56)
		}
		s[j&127] = '}'
		j++
	}
	le.PutUint64(s[j&127:j&127+8], comma|'['<<16|ra>>16<<24)
	j += uint(ra>>56) + 1
	le.PutUint64(s[j&127:j&127+8], tail)
	j += long
	le.PutUint16(s[j&127:j&127+2], end)
	return int(j + 2)
}

// store writes a store of one element or a vector.
func (t *tables) store(b []byte, lists []val, in *instr) int {
	w := t.access(in)
	n := in.aux >> 8
	if n == 1 && in.b|(in.a|in.c)&beyond == 0 && w.n != 0 {
		if ra, rc := t.entry(in.a), t.entry(in.c); int64(ra|rc) >= 0 {
			s := (*[room]byte)(b)
			w.put(s[:])
			j := uint(w.n)
			le.PutUint64(s[j&127:j&127+8], '['|bits.RotateLeft64(ra, -16)<<8)
			j += uint(ra>>56) - 1
			s[j&127] = ']'
			le.PutUint64(s[(j+1)&127:(j+1)&127+8], rc)
			j += uint(rc>>56) + 1
			le.PutUint16(s[j&127:j&127+2], end)
			return int(j + 2)
		}
	}
	tail, long := t.offset(in.b)
	if w.n == 0 || in.a&beyond != 0 || long == 0 {
		return 0
	}
	ra := t.entry(in.a)
	if int64(ra) < 0 {
		return 0
	}
	s := (*[room]byte)(b)
	w.put(s[:])
	j := uint(w.n)
	le.PutUint64(s[j&127:j&127+8], '['|bits.RotateLeft64(ra, -16)<<8)
	j += uint(ra>>56) - 1
	le.PutUint64(s[j&127:j&127+8], tail)
	j += long
	if n == 1 {
		rc := t.entry(in.c)
		if in.c&beyond != 0 || int64(rc) < 0 {
			return 0
		}
		le.PutUint64(s[j&127:j&127+8], rc)
		j += uint(rc >> 56)
	} else {
		le.PutUint32(s[j&127:j&127+4], comma|'{'<<16)
		j++ // the comma and the space of the first element overwrite these bytes
		for i, v := range lists[in.c:][:n] {
			r := t.entry(v)
			if v&beyond != 0 || int64(r) < 0 {
				return 0
			}
			if i == 0 {
				r = r&^0xffff | ' ' | '{'<<8
			}
			le.PutUint64(s[j&127:j&127+8], r)
			j += uint(r >> 56)
		}
		s[j&127] = '}'
		j++
	}
	le.PutUint16(s[j&127:j&127+2], end)
	return int(j + 2)
}

// copies writes an asynchronous copy.
func (t *tables) copies(b []byte, lists []val, in *instr) int {
	text := descs[in.op].text
	to, long1 := t.offset(lists[in.c])
	from, long2 := t.offset(lists[in.c+1])
	rd, ra, rb, size := t.entry(in.d), t.entry(in.a), t.entry(in.b), t.entry(tagged(tagSmall, int(in.aux)))
	if (in.d|in.a|in.b)&beyond != 0 || int64(rd|ra|rb) < 0 || long1 == 0 || long2 == 0 || len(text) > 64 {
		return 0
	}
	s := (*[spare]byte)(b)
	copy(s[:64], text)
	j := uint(len(text))
	le.PutUint64(s[j&255:j&255+8], '['|bits.RotateLeft64(rd, -16)<<8)
	j += uint(rd>>56) - 1
	le.PutUint64(s[j&255:j&255+8], to)
	j += long1
	le.PutUint64(s[j&255:j&255+8], comma|'['<<16|bits.RotateLeft64(ra, -16)<<24)
	j += uint(ra>>56) + 1
	le.PutUint64(s[j&255:j&255+8], from)
	j += long2
	le.PutUint64(s[j&255:j&255+8], size)
	j += uint(size >> 56)
	le.PutUint64(s[j&255:j&255+8], rb)
	j += uint(rb >> 56)
	le.PutUint16(s[j&255:j&255+2], end)
	return int(j + 2)
}

// named writes a move of a special register or of an address in shared memory.
func (k *Kernel) named(b []byte, t *tables, w *word, in *instr) int {
	if in.d&beyond != 0 || w.n == 0 {
		return 0
	}
	var tail *word
	switch tag, n := in.a.tag(), in.a.n(); {
	case tag == tagSpecial:
		tail = &t.specials[n]
	case tag == tagShared && n != dynamicSymbol && k.shared[n].tail.n != 0:
		tail = &k.shared[n].tail
	default:
		return 0
	}
	rd := t.entry(in.d)
	if int64(rd) < 0 {
		return 0
	}
	s := (*[room]byte)(b)
	w.put(s[:])
	j := uint(w.n)
	le.PutUint64(s[j&127:j&127+8], bits.RotateLeft64(rd, -16))
	j += uint(rd>>56) - 2
	tail.put(s[j&63:])
	return int(j) + int(tail.n)
}

// shuffle writes an exchange among all lanes of a warp.
func (t *tables) shuffle(b []byte, in *instr) int {
	w := &t.ops[in.op]
	if in.c != 0 || (in.d|in.a|in.b)&beyond != 0 || w.n == 0 {
		return 0
	}
	rd, ra, rb, clamp := t.entry(in.d), t.entry(in.a), t.entry(in.b), t.entry(tagged(tagSmall, int(in.aux)))
	if int64(rd|ra|rb|clamp) < 0 {
		return 0
	}
	s := (*[room]byte)(b)
	w.put(s[:])
	j := uint(w.n)
	le.PutUint64(s[j&127:j&127+8], bits.RotateLeft64(rd, -16))
	j += uint(rd>>56) - 2
	le.PutUint64(s[j&127:j&127+8], ra)
	j += uint(ra >> 56)
	le.PutUint64(s[j&127:j&127+8], rb)
	j += uint(rb >> 56)
	le.PutUint64(s[j&127:j&127+8], clamp)
	j += uint(clamp >> 56)
	le.PutUint64(s[j&127:j&127+8], comma|'-'<<16|'1'<<24|end<<32)
	return int(j + 6)
}

// branch writes a branch.
func (t *tables) branch(b []byte, in *instr) int {
	if in.a&beyond != 0 {
		return 0
	}
	w := &t.ops[in.op]
	r := t.entry(tagged(tagSmall, 0) | in.a&payload)
	s := (*[room]byte)(b)
	le.PutUint64(s[:], w.w[0])
	j := uint(w.n)
	le.PutUint64(s[j&127:j&127+8], '$'|'L'<<8|r>>16<<16)
	j += uint(r >> 56)
	le.PutUint16(s[j&127:j&127+2], end)
	return int(j + 2)
}

// label writes a label.
func (t *tables) label(b []byte, in *instr) int {
	if in.a&beyond != 0 {
		return 0
	}
	r := t.entry(tagged(tagSmall, 0) | in.a&payload)
	s := (*[room]byte)(b)
	le.PutUint64(s[:], '$'|'L'<<8|r>>16<<16)
	j := uint(r >> 56)
	le.PutUint16(s[j&127:j&127+2], ':'|'\n'<<8)
	return int(j + 2)
}

// mma writes a product of matrices by one warp.
func (t *tables) mma(b []byte, lists []val, in *instr) int {
	nd, na, nb := uint(in.aux&15), uint(in.aux>>4&15), uint(in.aux>>8&15)
	all := lists[in.a:][:nd+na+nb]
	used, entries := val(0), uint64(0)
	for _, v := range all {
		used |= v
		entries |= t.entry(v)
	}
	text := descs[in.op].text
	if used&beyond != 0 || int64(entries) < 0 || nd > 4 || na > 4 || nb > 4 || len(text) > 64 {
		return 0
	}
	s := (*[spare]byte)(b)
	copy(s[:64], text)
	j := uint(len(text)) - 1
	for i := range 4 {
		part := all[:nd]
		switch i {
		case 1:
			part = all[nd : nd+na]
		case 2:
			part = all[nd+na:]
		}
		// The comma and the space before the first operand make room for the bracket and the space
		// at the end of the preceding text.
		for l, v := range part {
			r := t.entry(v)
			if l == 0 {
				r = r&^0xffff | '{'<<8 | ' '
			}
			le.PutUint64(s[j&255:j&255+8], r)
			j += uint(r >> 56)
		}
		le.PutUint16(s[j&255:j&255+2], '}'|','<<8)
		j += 2
	}
	le.PutUint16(s[(j-1)&255:(j-1)&255+2], end)
	return int(j + 1)
}

// matrix writes a load of matrices.
func (t *tables) matrix(b []byte, in *instr) int {
	n := val(in.aux)
	tail, long := t.offset(in.b)
	text := descs[in.op].text
	ra, last := t.entry(in.a), t.entry(in.d+n-1)
	if (in.d+n|in.a)&beyond != 0 || int64(ra|last) < 0 || long == 0 || len(text) > 64 || n > 4 {
		return 0
	}
	s := (*[spare]byte)(b)
	copy(s[:64], text)
	j := uint(len(text)) - 1
	for d := in.d; d < in.d+n; d++ {
		r := t.entry(d)
		if d == in.d {
			r = r&^0xffff | '{'<<8 | ' '
		}
		le.PutUint64(s[j&255:j&255+8], r)
		j += uint(r >> 56)
	}
	le.PutUint64(s[j&255:j&255+8], '}'|','<<8|' '<<16|'['<<24)
	j += 4
	le.PutUint64(s[j&255:j&255+8], ra>>16)
	j += uint(ra>>56) - 2
	le.PutUint64(s[j&255:j&255+8], tail)
	j += long
	le.PutUint16(s[j&255:j&255+2], end)
	return int(j + 2)
}

// loadParam writes the load of a parameter.
func (k *Kernel) loadParam(b []byte, t *tables, in *instr) int {
	w := t.access(in)
	p := &k.params[in.a.n()]
	if w.n == 0 || in.d&beyond != 0 || p.tail.n == 0 {
		return 0
	}
	rd := t.entry(in.d)
	if int64(rd) < 0 {
		return 0
	}
	s := (*[room]byte)(b)
	w.put(s[:])
	j := uint(w.n)
	le.PutUint64(s[j&127:j&127+8], bits.RotateLeft64(rd, -16))
	j += uint(rd>>56) - 2
	p.tail.put(s[j&63:])
	return int(j) + int(p.tail.n)
}

// constantText writes a plain instruction, with one F32 constant among its operands. The
// arguments rd, ra, rb and rc are the table entries of the operands.
func (k *Kernel) constantText(s *[room]byte, w *word, in *instr, rd, ra, rb, rc uint64) int {
	// The text before the constant, and the text after it.
	var ahead, ahead2, behind, behind2 uint64
	v := in.c
	switch {
	case int64(ra) < 0:
		v, behind, behind2 = in.a, rb, rc
	case int64(rb) < 0:
		v, ahead, behind = in.b, ra, rc
	default:
		ahead, ahead2 = ra, rb
	}
	if v.tag() != tagF32 || int64(rd|ahead|ahead2|behind|behind2) < 0 {
		return 0
	}
	w.put(s[:])
	j := uint(w.n)
	le.PutUint64(s[j&127:j&127+8], bits.RotateLeft64(rd, -16))
	j += uint(rd>>56) - 2
	le.PutUint64(s[j&127:j&127+8], ahead)
	j += uint(ahead >> 56)
	le.PutUint64(s[j&127:j&127+8], ahead2)
	j += uint(ahead2 >> 56)
	c := k.consts[v.n()]
	le.PutUint32(s[j&127:j&127+4], comma|'0'<<16|'f'<<24)
	le.PutUint64(s[(j+4)&127:(j+4)&127+8], uint64(hex[c>>24&0xff])|uint64(hex[c>>16&0xff])<<16|uint64(hex[c>>8&0xff])<<32|uint64(hex[c&0xff])<<48)
	j += 12
	le.PutUint64(s[j&127:j&127+8], behind)
	j += uint(behind >> 56)
	le.PutUint64(s[j&127:j&127+8], behind2)
	j += uint(behind2 >> 56)
	le.PutUint16(s[j&127:j&127+2], end)
	return int(j + 2)
}

// mixed writes a plain instruction with any operands.
func (k *Kernel) mixed(b []byte, t *tables, w *word, in *instr) int {
	if w.n == 0 || in.d == 0 || (in.d|in.a|in.b|in.c)&beyond != 0 {
		return 0
	}
	s := (*[spare]byte)(b)
	w.put(s[:])
	j := uint(w.n)
	rd := t.entry(in.d)
	if int64(rd) < 0 {
		return 0
	}
	le.PutUint64(s[j&127:j&127+8], bits.RotateLeft64(rd, -16))
	j += uint(rd>>56) - 2
	for _, v := range [...]val{in.a, in.b, in.c} {
		r := t.entry(v)
		if int64(r) >= 0 {
			le.PutUint64(s[j&127:j&127+8], r)
			j += uint(r >> 56)
			continue
		}
		if v.tag() != tagF32 {
			return 0
		}
		c := k.consts[v.n()]
		le.PutUint32(s[j&127:j&127+4], comma|'0'<<16|'f'<<24)
		le.PutUint64(s[(j+4)&127:(j+4)&127+8], uint64(hex[c>>24&0xff])|uint64(hex[c>>16&0xff])<<16|uint64(hex[c>>8&0xff])<<32|uint64(hex[c&0xff])<<48)
		j += 12
	}
	le.PutUint16(s[j&127:j&127+2], end)
	return int(j + 2)
}
