package tokenizer

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// spm is a vocabulary of SentencePiece.
type spm struct {
	t      *Tokenizer
	prios  []uint32 // the highest score has the lowest priority value
	byteID [256]int32
	prefix bool // encoding adds a space before the text
	joins  joins
}

// space represents a space in a vocabulary: U+2581.
const space = "▁"

func newSPM(t *Tokenizer, r *reader) model {
	m := &spm{t: t, prefix: r.flag("add_space_prefix", true)}
	t.readSpecial(r, Special{BOS: 1, EOS: 2, Unknown: 0, Padding: None, Separator: None, Class: None, Mask: None})
	t.readAdded(r, true, false)
	t.dropOne = m.prefix
	scores := array[float32](r, "scores", len(t.texts), true)
	if r.err != nil {
		return nil
	}
	m.prios = make([]uint32, len(scores))
	for i, s := range scores {
		if s != s {
			r.fail("%sscores: element %d is not a number", prefix, i)
			return nil
		}
		m.prios[i] = min(descending(s), noMerge-1)
		m.joins.add(t.texts[i])
	}
	m.byteID = t.readBytes(r)
	t.readPieces(appendSpaced)
	return m
}

// appendSpaced appends the bytes of a text of the vocabulary: a single byte, or the text with
// U+2581 replaced by spaces.
func appendSpaced(dst []byte, text string) []byte {
	if b, ok := byteOf(text); ok {
		return append(dst, b)
	}
	return append(dst, strings.ReplaceAll(text, space, " ")...)
}

// descending maps floats to integers in reverse order.
func descending(f float32) uint32 {
	b := math.Float32bits(f + 0) // maps -0 to 0
	if b>>31 == 0 {
		return 1<<31 - 1 - b
	}
	return b
}

// byteOf returns the byte that a text such as <0x0A> encodes.
func byteOf(text string) (byte, bool) {
	if len(text) != 6 || text[:3] != "<0x" || text[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(text[3:5], 16, 8)
	return byte(b), err == nil
}

// readBytes returns the token of each byte. Without a byte token, it is the token with this text,
// or the unknown token.
func (v *vocabulary) readBytes(r *reader) (ids [256]int32) {
	for i, k := range v.kinds {
		if _, ok := byteOf(v.texts[i]); k == Byte && !ok {
			r.fail("token %d is a byte, its text is %q, expected <0x00> to <0xFF>", i, v.texts[i])
		}
	}
	for b := range ids {
		id, ok := v.ids[fmt.Sprintf("<0x%02X>", b)]
		if !ok {
			id, ok = v.ids[string([]byte{byte(b)})]
		}
		if !ok {
			id = v.special.Unknown
		}
		ids[b] = id
	}
	return ids
}

func (m *spm) pair(word []byte, left, right *symbol) (uint32, int32) {
	if int(right.end-left.start) > m.t.longest {
		return noMerge, None
	}
	id, ok := m.t.ids[string(word[left.start:right.end])]
	if !ok {
		return noMerge, None
	}
	return m.prios[id], id
}

// encode encodes the words of the text separately.
func (m *spm) encode(e *encoder, text string) {
	if m.prefix {
		n := m.joins.wordEnd(text)
		cached(e, " "+text[:n], m.word)
		text = text[n:]
	}
	m.joins.words(text, func(word string) { cached(e, word, m.word) })
}

// symbols sets the symbols of a word: its characters, with U+2581 for spaces.
func (e *encoder) symbols(word string, ids map[string]int32) {
	e.text, e.syms = e.text[:0], e.syms[:0]
	for i := 0; i < len(word); {
		n := runeLen(word[i:])
		from := len(e.text)
		if word[i] == ' ' {
			e.text = append(e.text, space...)
		} else {
			e.text = append(e.text, word[i:i+n]...)
		}
		id, ok := ids[string(e.text[from:])]
		if !ok {
			id = None
		}
		e.syms = append(e.syms, symbol{start: int32(from), end: int32(len(e.text)), id: id})
		i += n
	}
}

// word appends the ids of a word.
func (m *spm) word(e *encoder, word string) {
	e.symbols(word, m.t.ids)
	e.merge(m, e.text)
	for i := int32(0); ; i = e.syms[i].next {
		s := &e.syms[i]
		if s.id != None {
			e.ids = append(e.ids, s.id)
		} else {
			for _, b := range e.text[s.start:s.end] {
				if id := m.byteID[b]; id != None {
					e.ids = append(e.ids, id)
				}
			}
		}
		if s.next == 0 {
			return
		}
	}
}
