// Package tokenizer converts text to the token ids of a language model and back. It uses the
// vocabulary in the metadata of a GGUF file.
//
//	t, err := tokenizer.New(f.Metadata())
//	if err != nil { ... }
//	ids := t.Encode("Hello, world", tokenizer.Options{AddSpecial: true})
//	text := t.Decode(ids, tokenizer.DecodeOptions{})
//
// There are three kinds of vocabulary: "llama" (pieces of SentencePiece that merge by score), "gpt2" (byte pairs
// that merge by rank, after the text was cut into words; "gemma4" is one of characters), and "bert" (longest
// pieces of words). The ids are the same as in llama.cpp, except where llama.cpp differs from the models' own
// tokenizers, which this package follows:
//   - Korean in bert vocabularies: syllables are decomposed completely; llama.cpp keeps only the first letter.
//   - Combining marks with the expressions of tekken and gpt-4o belong to words; llama.cpp treats them as signs.
//   - Wide spaces such as U+3000 with the expressions of deepseek-llm and deepseek-coder are in the range of
//     Chinese characters; llama.cpp replaces them before it matches.
//   - </s> is a control token only if the file says so; llama.cpp makes it one in every vocabulary.
//
// The package does not depend on models or devices. Vocabularies may be untrusted: New checks them,
// and its error wraps [ErrVocabulary] or [ErrUnsupported]. Any text can be encoded, even invalid
// UTF-8, in time that grows little faster than its length.
package tokenizer

import (
	"errors"
	"strings"
	"sync"
	"unicode/utf8"
)

// The errors. The package returns them wrapped, with details.
var (
	ErrVocabulary  = errors.New("the vocabulary is damaged")
	ErrUnsupported = errors.New("this kind of tokenizer is not supported")
)

// Kind is the kind of a token, with its number in files.
type Kind int32

// The kinds of token.
const (
	Normal      Kind = 1 + iota
	Unknown          // used for text without a token
	Control          // controls the model, for example the beginning of a text or the end of a turn
	UserDefined      // recognised in any text, before it is cut into words
	Unused           // unused
	Byte             // a byte of a character without a token
)

// None is the id of a special token that the vocabulary does not have.
const None int32 = -1

// Special has the ids of the special tokens, [None] for absent ones.
type Special struct {
	BOS, EOS, EOT, EOM     int32 // beginning of text, end of text, end of turn, end of message
	Unknown, Padding       int32
	Separator, Class, Mask int32 // of bert; Class is the BOS of bert
	FIMPrefix, FIMSuffix   int32 // fill in the middle
	FIMMiddle              int32
}

// Options change the encoding of a text. The zero value adds no tokens and treats control tokens as plain text.
type Options struct {
	// AddSpecial adds the tokens that the vocabulary requires before and after a text: BOS and EOS,
	// or [CLS] and [SEP]. With ParseSpecial, a text that already begins with the text of BOS gets
	// no second BOS.
	AddSpecial bool
	// ParseSpecial encodes the texts of control tokens, for example <|im_start|>, as these tokens.
	// Use it for the output of a chat template, and never for text that a user typed.
	ParseSpecial bool
}

// Tokenizer is a vocabulary. Its methods are safe for concurrent use.
type Tokenizer struct {
	vocabulary
	model model
	pool  sync.Pool // of *encoder
}

// model is a kind of vocabulary.
type model interface {
	// encode appends the ids of a non-empty text that contains no special tokens and is at the
	// beginning or after a special token.
	encode(e *encoder, text string)
}

// Encode returns the ids of a text.
func (t *Tokenizer) Encode(text string, o Options) []int32 { return t.Append(nil, text, o) }

// Append appends the ids of a text to ids and returns the longer slice.
func (t *Tokenizer) Append(ids []int32, text string, o Options) []int32 {
	e, _ := t.pool.Get().(*encoder)
	if e == nil {
		e = new(encoder)
	}
	e.ids = ids
	if o.AddSpecial && t.before != None && !(o.ParseSpecial && strings.HasPrefix(text, t.texts[t.before]) && t.texts[t.before] != "") {
		e.ids = append(e.ids, t.before)
	}
	for prev := None; text != ""; {
		n, id, skip := t.specials.find(text, o.ParseSpecial)
		if plain := t.trimAround(text[:n], prev, id); plain != "" {
			t.model.encode(e, plain)
		}
		if id != None {
			e.ids = append(e.ids, id)
		}
		text, prev = text[n+skip:], id
	}
	if o.AddSpecial && t.after != None {
		e.ids = append(e.ids, t.after)
	}
	ids = e.ids
	e.release()
	t.pool.Put(e)
	return ids
}

// Size returns the number of tokens.
func (t *Tokenizer) Size() int { return len(t.kinds) }

// Special returns the ids of the tokens with a purpose.
func (t *Tokenizer) Special() Special { return t.special }

// Kind returns the kind of a token, or 0 for an invalid id.
func (t *Tokenizer) Kind(id int32) Kind {
	if !t.has(id) {
		return 0
	}
	return t.kinds[id]
}

// Text returns the text of a token in the vocabulary, in which U+2581 or U+0120 means a space, or
// "" for an invalid id. [Tokenizer.Piece] returns the bytes that it decodes to.
func (t *Tokenizer) Text(id int32) string {
	if !t.has(id) {
		return ""
	}
	return t.texts[id]
}

// ID returns the token with this text in the vocabulary. If several tokens have the text, normal
// ones have priority.
func (t *Tokenizer) ID(text string) (id int32, ok bool) {
	id, ok = t.ids[text]
	return id, ok
}

// EndsGeneration reports whether the token ends an answer of a model: EOS, EOT, EOM, and tokens
// with common names for this purpose, such as <|im_end|> or, in models of code, <|file_sep|>.
func (t *Tokenizer) EndsGeneration(id int32) bool {
	for _, e := range t.ends {
		if e == id {
			return true
		}
	}
	return false
}

// EndTokens returns the tokens for which [Tokenizer.EndsGeneration] is true, in order.
func (t *Tokenizer) EndTokens() []int32 { return append([]int32(nil), t.ends...) }

func (t *Tokenizer) has(id int32) bool { return uint32(id) < uint32(len(t.kinds)) }

// runeLen returns the length in bytes of the first character of a non-empty text. An invalid byte
// counts as a character.
func runeLen(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}
