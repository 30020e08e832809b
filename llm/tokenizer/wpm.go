package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// wpm is a bert vocabulary: a word begins with U+2581, and its longest prefix that is a token is
// split off repeatedly.
type wpm struct {
	t     *Tokenizer
	lower bool // convert to lower case
	strip bool // remove accents
}

func newWPM(t *Tokenizer, r *reader) model {
	m := &wpm{t: t, lower: r.flag("normalizer.lowercase", true)}
	m.strip = r.flag("normalizer.strip_accents", m.lower)
	t.readSpecial(r, Special{BOS: 101, EOS: None, Unknown: 100, Padding: 0, Separator: 102, Class: 101, Mask: 103})
	s := &t.special
	if _, ok := r.m.Get(prefix + "cls_token_id"); ok {
		s.BOS = s.Class
	} else {
		s.Class = s.BOS
	}
	t.readAdded(r, true, false)
	if t.after == None && r.flag("add_sep_token", true) {
		t.after = s.Separator
	}
	if s.Unknown == None {
		r.fail("there is no unknown token: %sunknown_token_id is missing", prefix)
	}
	t.dropOne = true
	t.readPieces(func(dst []byte, text string) []byte { return append(dst, strings.ReplaceAll(text, space, " ")...) })
	return m
}

// encode cuts the text into words at white space. Punctuation and Chinese characters are separate
// words.
func (m *wpm) encode(e *encoder, text string) {
	if m.strip && !isASCII(text) {
		text = norm.NFD.String(text)
	}
	table := categories()
	e.text = append(e.text[:0], space...)
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		i += n
		category := uint32(1) << table.of(r)
		switch {
		case unicode.IsSpace(r) || category&separators != 0:
			m.flush(e)
			continue
		case r == 0 || r == utf8.RuneError || category&controls != 0 || m.strip && category&marks != 0:
			continue
		}
		if m.lower {
			r = unicode.ToLower(r)
		}
		if category&punctuation != 0 || r < 0x7F && category&signs != 0 || isChinese(r) {
			m.flush(e)
			e.text = utf8.AppendRune(e.text, r)
			m.flush(e)
			continue
		}
		e.text = utf8.AppendRune(e.text, r)
	}
	m.flush(e)
}

var (
	separators  = categoryMask("Z")
	controls    = categoryMask("Cc") | categoryMask("Cf") | categoryMask("Co") | categoryMask("Cs")
	marks       = categoryMask("M")
	punctuation = categoryMask("P")
	signs       = categoryMask("S")
)

// flush ends the word in e.text.
func (m *wpm) flush(e *encoder) {
	if len(e.text) > len(space) {
		cached(e, e.text, m.word)
		e.text = e.text[:len(space)]
	}
}

// word appends the ids of a word, or the unknown token if a part of it is not a token.
func (m *wpm) word(e *encoder, word []byte) {
	n := len(e.ids)
	for len(word) > 0 {
		cut := min(len(word), m.t.longest)
		id, ok := int32(0), false
		for ; cut > 0; cut-- {
			if id, ok = m.t.ids[string(word[:cut])]; ok {
				break
			}
		}
		if !ok {
			e.ids = append(e.ids[:n], m.t.special.Unknown)
			return
		}
		e.ids = append(e.ids, id)
		word = word[cut:]
	}
}

// chinese lists the blocks of Chinese characters, in pairs of first and last.
var chinese = []rune{0x3400, 0x4DBF, 0x4E00, 0x9FFF, 0xF900, 0xFAFF, 0x20000, 0x2A6DF, 0x2A700, 0x2B73F, 0x2B740, 0x2B81F, 0x2B920, 0x2CEAF, 0x2F800, 0x2FA1F}

func isChinese(r rune) bool {
	if r < chinese[0] {
		return false
	}
	for i := 0; i < len(chinese); i += 2 {
		if chinese[i] <= r && r <= chinese[i+1] {
			return true
		}
	}
	return false
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
