package tokenizer

import "unicode/utf8"

// pieces has the concatenated bytes of all tokens.
type pieces struct {
	bytes []byte
	ends  []int // end of the bytes of token i
}

func (p *pieces) add(b []byte) {
	p.bytes = append(p.bytes, b...)
	p.ends = append(p.ends, len(p.bytes))
}

func (p *pieces) of(id int32) []byte {
	from := 0
	if id > 0 {
		from = p.ends[id-1]
	}
	return p.bytes[from:p.ends[id]:p.ends[id]]
}

// readPieces builds the pieces of all tokens. normal decodes the text of a normal token; other
// tokens have the bytes of their text.
func (v *vocabulary) readPieces(normal func(dst []byte, text string) []byte) {
	var b []byte
	v.pieces.ends = make([]int, 0, len(v.texts))
	for i, text := range v.texts {
		switch v.kinds[i] {
		case Control, Unknown, UserDefined:
			b = append(b[:0], text...)
		default:
			b = normal(b[:0], text)
		}
		v.pieces.add(b)
	}
}

// DecodeOptions change the decoding of ids. The zero value is right for a complete text without
// control tokens.
type DecodeOptions struct {
	// Special writes the texts of control tokens, which are left out otherwise.
	Special bool
	// Continue means that the ids continue another text: Decode keeps the space that some
	// vocabularies add before the first word.
	Continue bool
}

// Piece returns the bytes of a token, which need not be whole characters. It is nil for an invalid
// id. Do not change them.
func (t *Tokenizer) Piece(id int32) []byte {
	if !t.has(id) {
		return nil
	}
	return t.pieces.of(id)
}

// Pieces returns the bytes that each token adds to a text, by id: nil for tokens without a text,
// such as control tokens. Package grammar makes a vocabulary from it. Do not change the bytes.
func (t *Tokenizer) Pieces() [][]byte {
	pieces := make([][]byte, t.Size())
	for id := range pieces {
		if k := t.kinds[id]; k != Control && k != Unknown && k != Unused {
			pieces[id] = t.pieces.of(int32(id))
		}
	}
	return pieces
}

// Decode returns the text of ids. It ignores invalid ids. The text has the bytes of the tokens,
// even if they are not valid UTF-8; use strings.ToValidUTF8 to replace them.
func (t *Tokenizer) Decode(ids []int32, o DecodeOptions) string {
	var b []byte
	first := !o.Continue && t.dropOne
	for _, id := range ids {
		b = t.appendPiece(b, id, o.Special, &first)
	}
	return string(b)
}

// appendPiece appends the bytes of a token; it drops a space before the first text.
func (t *Tokenizer) appendPiece(b []byte, id int32, special bool, first *bool) []byte {
	if !t.has(id) {
		return b
	}
	p := t.pieces.of(id)
	switch t.kinds[id] {
	case Control, Unknown:
		if special {
			b = append(b, p...)
		}
		return b
	case Unused:
		return b
	}
	if *first && len(p) > 0 {
		*first = false
		if p[0] == ' ' {
			p = p[1:]
		}
	}
	return append(b, p...)
}

// Stream decodes ids one by one and never returns a part of a character. It belongs to one
// goroutine.
type Stream struct {
	t       *Tokenizer
	special bool
	first   bool
	held    []byte // the beginning of a character
}

// Stream returns a stream. Its results, concatenated, are the result of [Tokenizer.Decode] for all
// ids.
func (t *Tokenizer) Stream(o DecodeOptions) *Stream {
	return &Stream{t: t, special: o.Special, first: !o.Continue && t.dropOne}
}

// Next returns the text that an id completes, or "".
func (s *Stream) Next(id int32) string {
	s.held = s.t.appendPiece(s.held, id, s.special, &s.first)
	n := len(s.held) - incomplete(s.held)
	text := string(s.held[:n])
	s.held = append(s.held[:0], s.held[n:]...)
	return text
}

// Flush returns the remaining bytes after the last id: those of an incomplete character.
func (s *Stream) Flush() string {
	text := string(s.held)
	s.held = s.held[:0]
	return text
}

// incomplete returns the number of bytes at the end of b that begin an incomplete character.
func incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if utf8.RuneStart(b[len(b)-n]) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
