package tokenizer

import "strings"

// bpe is a vocabulary of byte pairs.
type bpe struct {
	t     *Tokenizer
	words *words
	// Symbols are numbered: tokens by their ids, then the symbols of merges that are not tokens.
	texts  []string // texts of the symbols that are not tokens
	byteID [256]int32
	pairs  *pairTable
	joins  joins // of a vocabulary of characters
}

// byteText has the text of each byte in the vocabulary: the byte as a character if it is visible in
// Latin-1, otherwise a character from U+0100 on.
var byteText = func() (text [256]string) {
	other := rune(256)
	for b := range text {
		r := rune(b)
		if !('!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r) {
			r = other
			other++
		}
		text[b] = string(r)
	}
	return text
}()

// textByte is the inverse of byteText.
var textByte = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	for b, text := range byteText {
		for _, r := range text {
			m[r] = byte(b)
		}
	}
	return m
}()

// appendVisible appends the text in the vocabulary of bytes.
func appendVisible(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = append(dst, byteText[s[i]]...)
	}
	return dst
}

// appendRaw appends the bytes that a text of the vocabulary encodes. A character that does not
// encode a byte is appended unchanged.
func appendRaw(dst []byte, text string) []byte {
	for i := 0; i < len(text); {
		n := runeLen(text[i:])
		if c := text[i]; c < 0x7F && c > ' ' {
			dst = append(dst, c)
		} else if b, ok := textByte[firstRune(text[i:])]; ok {
			dst = append(dst, b)
		} else {
			dst = append(dst, text[i:i+n]...)
		}
		i += n
	}
	return dst
}

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}
	return 0
}

func newBPE(t *Tokenizer, r *reader) model {
	m := &bpe{t: t}
	name, _ := r.m.Text(prefix + "pre")
	if kind, _ := r.m.Text(keyModel); kind == "gemma4" {
		name = kind
	} else if name == "" {
		name = "default"
	}
	var err error
	if m.words, err = wordsOf(name); err != nil {
		r.err = err
		return nil
	}
	t.readSpecial(r, Special{BOS: None, EOS: None, Unknown: None, Padding: None, Separator: None, Class: None, Mask: None})
	t.readAdded(r, m.words.bos, false)
	merges := array[string](r, "merges", -1, true)
	if r.err != nil {
		return nil
	}
	m.readMerges(r, merges)
	if m.words.chars {
		t.readPieces(appendSpaced)
	} else {
		t.readPieces(appendRaw)
	}
	return m
}

// readMerges numbers the symbols and builds the table of pairs.
func (m *bpe) readMerges(r *reader, merges []string) {
	extra := map[string]int32{}
	number := func(text []byte) int32 {
		if id, ok := m.t.ids[string(text)]; ok {
			return id
		}
		id, ok := extra[string(text)]
		if !ok {
			id = int32(len(m.t.texts) + len(m.texts))
			extra[string(text)] = id
			m.texts = append(m.texts, string(text))
		}
		return id
	}
	if m.words.chars {
		m.byteID = m.t.readBytes(r)
	} else {
		for b, text := range byteText {
			m.byteID[b] = number([]byte(text))
		}
	}
	m.pairs = newPairTable(len(merges))
	var both []byte
	for i, text := range merges {
		left, right := "", ""
		if text != "" {
			var rest string
			rest, right, _ = strings.Cut(text[1:], " ")
			left = text[:1+len(rest)]
		}
		if right == "" || len(text) > 2*maxTokenBytes {
			r.fail("%smerges: element %d is %.40q, expected two texts with a space between", prefix, i, text)
			return
		}
		both = append(append(both[:0], left...), right...)
		m.pairs.add(number([]byte(left)), number([]byte(right)), uint32(i), number(both))
		m.joins.add(string(both))
	}
}

func (m *bpe) pair(_ []byte, left, right *symbol) (uint32, int32) {
	p := m.pairs.find(left.id, right.id)
	return p.prio, p.id
}

func (m *bpe) encode(e *encoder, text string) {
	word := func(word string) { cached(e, word, m.word) }
	if m.words.chars { // words are lines
		split(m.words.compiled, text, func(line string) { m.joins.words(line, word) })
		return
	}
	split(m.words.compiled, text, word)
}

// word appends the ids of a word.
func (m *bpe) word(e *encoder, word string) {
	if id, ok := m.token(e, word); ok {
		e.ids = append(e.ids, id)
		return
	}
	if m.words.chars {
		e.symbols(word, m.t.ids)
	} else {
		e.text, e.syms = append(e.text[:0], word...), e.syms[:0]
		for i := range len(word) {
			e.syms = append(e.syms, symbol{start: int32(i), end: int32(i) + 1, id: m.byteID[word[i]]})
		}
	}
	e.merge(m, nil)
	for i := int32(0); ; i = e.syms[i].next {
		s := &e.syms[i]
		if m.t.has(s.id) {
			e.ids = append(e.ids, s.id)
		} else {
			m.bytes(e, e.text[s.start:s.end])
		}
		if s.next == 0 {
			return
		}
	}
}

// token returns the token of a whole word, which then needs no merging.
func (m *bpe) token(e *encoder, word string) (id int32, ok bool) {
	switch {
	case m.words.chars && word[0] == '\n': // no merge produces newlines
		id, ok = m.t.ids[word]
	case m.words.whole && len(word) <= m.t.longest:
		e.text = appendVisible(e.text[:0], word)
		id, ok = m.t.ids[string(e.text)]
	}
	return id, ok
}

// bytes appends the ids of the bytes of a symbol that is not a token. Bytes without a token are left out.
func (m *bpe) bytes(e *encoder, s []byte) {
	for _, b := range s {
		if id := m.byteID[b]; m.t.has(id) {
			e.ids = append(e.ids, id)
		}
	}
}
