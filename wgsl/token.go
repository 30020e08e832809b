package wgsl

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A token is a word, a number or one character of a text. A longer operator is several tokens, so
// that the tokenizer need not decide whether >> ends two template lists or is a shift.
type token struct {
	kind tokenKind
	at   int // byte offset
	text string
}

type tokenKind uint8

const (
	endToken tokenKind = iota
	wordToken
	numberToken
	punctToken
)

//go:noinline
func (t *token) is(text string) bool { return t.kind != endToken && t.text == text }

func (t *token) end() int { return t.at + len(t.text) }

// maxText limits the length of texts in bytes.
const maxText = 1 << 20

// tokens splits a text into tokens. Invalid characters become tokens of one character.
func tokens(text string) ([]token, *CompileError) {
	if len(text) > maxText {
		return nil, &CompileError{Message: "the text has more than 1 MiB"}
	}
	var ts []token
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == 0 || r == utf8.RuneError && n == 1:
			return nil, mistake(text, i, "the text is not UTF-8 without zeros")
		case unicode.IsSpace(r) || r == '\u200e' || r == '\u200f':
			i += n
		case strings.HasPrefix(text[i:], "//"):
			if n := strings.IndexAny(text[i:], "\n\v\f\r\u0085\u2028\u2029"); n >= 0 {
				i += n
			} else {
				i = len(text)
			}
		case strings.HasPrefix(text[i:], "/*"):
			end := comment(text[i:])
			if end < 0 {
				return nil, mistake(text, i, "the comment does not end")
			}
			i += end
		case r == '_' || unicode.IsLetter(r):
			n := strings.IndexFunc(text[i:], func(r rune) bool {
				return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) && !unicode.Is(unicode.Mc, r)
			})
			if n < 0 {
				n = len(text) - i
			}
			ts = append(ts, token{wordToken, i, text[i : i+n]})
			i += n
		case r >= '0' && r <= '9' || r == '.' && i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9':
			n := number(text[i:])
			ts = append(ts, token{numberToken, i, text[i : i+n]})
			i += n
		default:
			ts = append(ts, token{punctToken, i, text[i : i+n]})
			i += n
		}
	}
	return append(ts, token{endToken, len(text), ""}), nil
}

// comment returns the length of a comment, or -1 if the comment does not end. Comments may be
// nested.
func comment(text string) int {
	depth := 0
	for i := 0; i+1 < len(text); i++ {
		switch text[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			if depth--; depth == 0 {
				return i + 2
			}
			i++
		}
	}
	return -1
}

// number returns the length of the number at the beginning of text.
func number(text string) int {
	hex := len(text) > 1 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '.':
		case c == '+' || c == '-':
			before := text[i-1] | 0x20
			if hex && before != 'p' || !hex && before != 'e' {
				return i
			}
		default:
			return i
		}
	}
	return len(text)
}

// maxLine limits the length of the line that an error shows.
const maxLine = 400

// mistake returns an error at a position of the text.
func mistake(text string, at int, message string) *CompileError {
	at = min(at, len(text))
	start := strings.LastIndexByte(text[:at], '\n') + 1
	line := text[start:]
	if n := strings.IndexByte(line, '\n'); n >= 0 {
		line = line[:n]
	}
	if len(line) > maxLine {
		line = ""
	}
	return &CompileError{Line: 1 + strings.Count(text[:at], "\n"), Column: utf8.RuneCountInString(text[start:at]) + 1, Message: message, Text: strings.TrimSuffix(line, "\r")}
}
