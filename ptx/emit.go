package ptx

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"sync"
)

// word is a text of at most 24 bytes, which three stores write, together with the layout of the
// operands after it.
type word struct {
	w      [3]uint64
	n      uint8
	layout layout
	form   form
}

// form is the syntax of an instruction: plain with or without a result, or according to its layout.
type form uint8

const (
	bare  form = iota
	plain      // with a result and operands
	by
)

// Sizes in tables. Longer texts and names with greater numbers are assembled each time.
const (
	maxText = 24
	maxName = 1 << 10 // registers of a class, and numbers
)

// spare is the room for any instruction, so that its stores need no checks.
const spare = 256 + 8

// tables has the texts of instructions and operands.
type tables struct {
	ops [numCodes]word
	// memory has loads and stores, with vector and type.
	memory [opStoreCluster - opLoadParam + 1][3 * numKinds]word
	// names has the text of operands by number and tag: a comma, a space and up to five bytes, with
	// the length in the highest byte. 0 means no operand, and other an operand without an entry.
	// The tag is the lower part of the index, because kernels use few numbers and many tags.
	names    [16 * maxName]uint64
	specials [numSpecials]word
	params   [numKinds]word   // the declarations of parameters
	regs     [numClasses]word // the declarations of registers
}

// other marks entries that have no text.
const other = 1 << 63

// entry returns the entry of an operand with a number below maxName.
func (t *tables) entry(v val) uint64 { return t.names[place(v)] }

func place(v val) uint32 { return bits.RotateLeft32(uint32(v), 32-tagShift) % (16 * maxName) }

// beyond has the bits that are set only in numbers from maxName on.
const beyond = payload &^ (maxName - 1)

// name returns the entry of an operand, or 0 if there is none.
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

// names builds the tables at the first use.
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

// newWord returns the word of a text. If the text is too long, the word's length is 0.
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

// PTX returns the text of the module, or its first error.
func (m *Module) PTX() (string, error) {
	b, err := m.AppendPTX(nil)
	return string(b), err
}

// AppendPTX appends the text of the module to b. It allocates nothing if b has room. After an error
// in the module it returns b unchanged and the error.
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
			if k.written == k.age { // written repeatedly, so it is worth keeping
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
	b = k.appendParams(b, t)
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
	b = k.appendRegisters(b, t)
	for i := range k.shared {
		b = append(b, k.shared[i].decl...)
	}
	return b
}

// appendParams appends the declarations of the parameters.
func (k *Kernel) appendParams(b []byte, t *tables) []byte {
	for i := range k.params {
		p := &k.params[i]
		if p.decl.n != 0 && p.kind != kNone && cap(b)-len(b) >= 2*maxText {
			// A declaration begins with the comma after the previous declaration. The first one has
			// no such comma.
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
	return b
}

// appendRegisters appends the declarations of the registers.
func (k *Kernel) appendRegisters(b []byte, t *tables) []byte {
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
	return b
}

// appendCode appends instructions. It writes after the end of b, and makes room once for each
// instruction. Frequent instructions have small separate functions, so that their values fit into
// registers.
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
			// A result and up to three operands. This code is inline because a call would take as
			// long; the entry for no operand has no bytes.
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
