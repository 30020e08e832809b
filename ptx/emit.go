package ptx

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"sync"
)

// word is a text of at most 24 bytes, written by three stores, with the layout of
// what follows it.
type word struct {
	w      [3]uint64
	n      uint8
	layout layout
	form   form
}

// form is the syntax of an instruction: plain ones with a result or without, the
// others by their layout.
type form uint8

const (
	bare  form = iota
	plain      // with a result and operands
	by
)

// Sizes that tables have: all other names are put together.
const (
	maxText = 24
	maxName = 1 << 10 // registers of a class, and numbers
)

// spare is the room that every instruction has, so that its stores need not look.
const spare = 256 + 8

// tables holds what instructions and operands are called.
type tables struct {
	ops [numCodes]word
	// memory has loads and stores, with vector and type.
	memory [opStoreCluster - opLoadParam + 1][3 * numKinds]word
	// names has operands, by number and tag, as they are written behind others: a
	// comma, a space and up to five bytes, and in the highest byte how many these
	// are in all. 0 stands for no operand, other for one that has no entry. The tag
	// is the lower part of the index: kernels have few numbers and many tags.
	names    [16 * maxName]uint64
	specials [numSpecials]word
	params   [numKinds]word   // how parameters are declared
	regs     [numClasses]word // how registers are
}

// other is in entries that have no text.
const other = 1 << 63

// entry returns the entry of an operand whose number is below maxName.
func (t *tables) entry(v val) uint64 { return t.names[place(v)] }

func place(v val) uint32 { return bits.RotateLeft32(uint32(v), 32-tagShift) % (16 * maxName) }

// beyond has the bits that numbers have from maxName on.
const beyond = payload &^ (maxName - 1)

// name returns the entry of an operand, 0 if it has none.
func (t *tables) name(v val) uint64 {
	if v&beyond != 0 {
		return 0
	}
	r := t.entry(v)
	if int64(r) < 0 {
		return 0
	}
	return r
}

// names builds the tables when they are first needed.
var names = sync.OnceValue(func() *tables {
	t := new(tables)
	for o := range descs {
		d := &descs[o]
		t.ops[o] = newWord(d.text, d.layout)
		if t.ops[o].form = by + form(d.layout); d.layout == layoutPlain && t.ops[o].n != 0 {
			if t.ops[o].form = bare; d.kinds[0] != kNone && d.kinds[1] != kNone {
				t.ops[o].form = plain
			}
		}
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
		t.params[kd] = newWord(",\n\t.param "+kinds[kd].suffix+" ", 0)
	}
	for c := range classes {
		t.regs[c] = newWord("\t.reg "+classes[c].typ+" "+classes[c].prefix+"<", 0)
		for n := range maxName {
			t.names[place(class(c).reg(uint32(n)))] = newName(classes[c].prefix + strconv.Itoa(n))
		}
	}
	for n := range maxName {
		t.names[place(tagged(tagSmall, n))] = newName(strconv.Itoa(n))
	}
	for n := range specialNames {
		t.specials[n] = newWord(", "+specialNames[n]+";\n", 0)
	}
	for tag := tagSmall + 1; tag < 16; tag++ {
		for n := range maxName {
			t.names[place(tagged(tag, n))] = other
		}
	}
	return t
})

// newWord returns the word of a text, which has no length if it is too long.
func newWord(s string, l layout) word {
	var b [maxText]byte
	if copy(b[:], s) < len(s) {
		return word{layout: l}
	}
	return word{w: [3]uint64{le.Uint64(b[:]), le.Uint64(b[8:]), le.Uint64(b[16:])}, n: uint8(len(s)), layout: l}
}

// put writes the word to the beginning of b, which has room for maxText bytes.
func (w *word) put(b []byte) {
	b = b[:maxText]
	le.PutUint64(b, w.w[0])
	le.PutUint64(b[8:], w.w[1])
	le.PutUint64(b[16:], w.w[2])
}

func newName(s string) uint64 {
	s = ", " + s
	var b [8]byte
	if copy(b[:7], s) < len(s) {
		return other
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
	version, dynamic, size := m.least, uint32(0), 256
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
	if version != m.headVersion {
		m.head = append(m.head[:0], ".version "...)
		m.head = appendVersion(m.head, version)
		m.head = append(m.head, "\n.target "...)
		m.head = append(m.head, m.target.String()...)
		m.head = append(m.head, "\n.address_size 64\n"...)
		m.headVersion = version
	}
	b = append(b, m.head...)
	if dynamic != 0 {
		b = append(b, "\n.extern .shared .align "...)
		b = strconv.AppendUint(b, uint64(dynamic), 10)
		b = append(b, " .b8 d_shared[];\n"...)
	}
	t := names()
	for _, k := range m.kernels[:m.n] {
		if k.headAge == k.age {
			b = append(b, k.head...)
		} else {
			begin := len(b)
			b = k.appendCode(k.appendHead(b, t), t, k.prologue)
			if k.written == k.age { // more than once: it is kept
				k.head, k.headAge = append(k.head[:0], b[begin:]...), k.age
			}
			k.written = k.age
		}
		b = k.appendCode(b, t, k.code)
		b = append(b, "}\n"...)
	}
	return b, nil
}

// appendHead appends all that comes before the instructions.
func (k *Kernel) appendHead(b []byte, t *tables) []byte {
	b = append(b, "\n.visible .entry "...)
	b = append(b, k.name...)
	b = append(b, '(')
	for i := range k.params {
		p := &k.params[i]
		if p.decl.n != 0 && p.kind != kNone && cap(b)-len(b) >= 2*maxText {
			// The declaration begins with the comma that ends the one before, which
			// the first does without.
			n, c := len(b), b[len(b)-1]
			if i == 0 {
				n--
			}
			w := &t.params[p.kind]
			s := b[n : n+2*maxText]
			w.put(s)
			p.decl.put(s[w.n:])
			if i == 0 {
				s[0] = c
			}
			b = b[:n+int(w.n)+int(p.decl.n)]
			continue
		}
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
	b = append(b, '\n', ')', '\n')
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
	b = append(b, '{', '\n')
	for c, n := range k.regs {
		if n == 0 {
			continue
		}
		if cap(b)-len(b) < 2*maxText {
			b = append(b, make([]byte, 2*maxText)...)[:len(b)]
		}
		w := &t.regs[c]
		w.put(b[len(b) : len(b)+maxText])
		b = b[:len(b)+int(w.n)]
		if n < maxName {
			r := t.entry(tagged(tagSmall, int(n)))
			s := b[len(b) : len(b)+16]
			le.PutUint64(s, bits.RotateLeft64(r, -16))
			j := (r>>56 - 2) & 7
			le.PutUint32(s[j:j+4], '>'|end<<8)
			b = b[:len(b)+int(j)+3]
			continue
		}
		b = strconv.AppendUint(b, uint64(n), 10)
		b = append(b, '>', ';', '\n')
	}
	for i := range k.shared {
		b = append(b, k.shared[i].decl...)
	}
	return b
}

// appendCode appends instructions. It writes behind the end of b, for which it
// makes room once an instruction. What it calls for the frequent ones are
// functions of their own, and small, so that they find room in registers.
func (k *Kernel) appendCode(b []byte, t *tables, code []instr) []byte {
	i := len(b)
	b = b[:cap(b)]
	for x := range code {
		in := &code[x]
		if len(b)-i < spare+16 { // 16 for the condition
			b = append(make([]byte, 0, 2*len(b)+2*spare), b[:i]...)
			b = b[:cap(b)]
		}
		if in.guard != 0 {
			i = k.guardText(b, i, t, in.guard)
		}
		n := 0
		w := &t.ops[in.op]
		switch w.form {
		case bare:
			n = t.bare(b[i:], w, in)
		case plain:
			// A result and up to three operands, here as a call would take as long: the
			// entry of no operand has no bytes.
			if (in.d|in.a|in.b|in.c)&beyond != 0 {
				break
			}
			rd, ra, rb, rc := t.entry(in.d), t.entry(in.a), t.entry(in.b), t.entry(in.c)
			if int64(rd|ra|rb|rc) < 0 {
				n = k.constantText((*[room]byte)(b[i:]), w, in, rd, ra, rb, rc)
				break
			}
			s := (*[room]byte)(b[i:])
			w.put(s[:])
			j := uint(w.n)
			le.PutUint64(s[j&127:j&127+8], bits.RotateLeft64(rd, -16))
			j += uint(rd>>56) - 2
			le.PutUint64(s[j&127:j&127+8], ra)
			j += uint(ra >> 56)
			le.PutUint64(s[j&127:j&127+8], rb)
			j += uint(rb >> 56)
			le.PutUint64(s[j&127:j&127+8], rc)
			j += uint(rc >> 56)
			le.PutUint16(s[j&127:j&127+2], end)
			i += int(j + 2)
			continue
		case by + form(layoutLoad):
			n = t.load(b[i:], in)
		case by + form(layoutParam):
			n = k.loadParam(b[i:], t, in)
		case by + form(layoutStore):
			n = t.store(b[i:], k.lists, in)
		case by + form(layoutName):
			n = k.named(b[i:], t, w, in)
		case by + form(layoutShuffle):
			n = t.shuffle(b[i:], in)
		case by + form(layoutBranch):
			n = t.branch(b[i:], in)
		case by + form(layoutLabel):
			n = t.label(b[i:], in)
		case by + form(layoutMma):
			n = t.mma(b[i:], k.lists, in)
		case by + form(layoutCopy):
			n = t.copies(b[i:], k.lists, in)
		case by + form(layoutMatrix):
			n = t.matrix(b[i:], in)
		}
		if n == 0 && w.layout == layoutPlain {
			n = k.mixed(b[i:], t, w, in)
		}
		if i += n; n == 0 {
			s := k.appendOne(b[:i], t, in)
			i, b = len(s), s[:cap(s)]
		}
	}
	return b[:i]
}

// room is the bytes that the frequent instructions are written into at most, and
// which they find behind them: their places there are numbers below 128.
const room = 128 + 8

const (
	comma = ',' | ' '<<8
	end   = ';' | '\n'<<8
)

// The methods that follow write one instruction to the beginning of b and return
// its bytes, or 0 if it is not one of the frequent ones: if a name is not in the
// table, say.

// A name is rotated, not shifted, where its comma and space are left out: of a
// shifted one the compiler stores the remaining bytes one by one.

// bare writes an instruction that has no result, and one operand or none.
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

// offset returns "+12]" for an offset in bytes, and how many bytes that is, 0 if it
// is not in the table.
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

// load writes a load, of a vector perhaps.
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

// store writes a store, of a vector perhaps.
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
		j++ // the comma and the space of the first are written over these
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

// named writes the move of a special number or an address in shared memory.
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

// mma writes a product of matrices of one warp.
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
		// The comma and the space ahead of the first operand make room for the
		// bracket and the space before it, with which the text ends.
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

// constantText writes a plain instruction with one constant of an F32 among its
// operands, of which it is given the entries.
func (k *Kernel) constantText(s *[room]byte, w *word, in *instr, rd, ra, rb, rc uint64) int {
	// What is written ahead of the constant, and behind it.
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

// hex has all bytes in hexadecimal.
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

// guardText writes what comes before a conditional instruction to b[i:] and
// returns where it ends.
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
