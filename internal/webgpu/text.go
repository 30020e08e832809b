package webgpu

import (
	"strings"
	"unicode/utf8"

	"github.com/rayo-go/rayo/internal/fmt"
)

// WGSL compilers parse a text, and process its syntax tree, by recursive functions. A deeply nested
// text overflows the stack of the thread and ends the process. These are the limits of untrusted
// texts; hand-written texts do not come near them.
const (
	maxText    = 4 << 20 // bytes
	maxNesting = 256     // brackets
	maxElse    = 2048    // branches: each else branch is nested in the previous one
	maxLogical = 256     // && and || in one statement: the generated code is nested
	maxChain   = 4096    // operators in one expression
)

// maxLine is the largest length of a line in an error.
const maxLine = 200

// sane returns an error for a text that would crash a compiler, or nil.
func (s *Shader) sane() error {
	if len(s.Text) > maxText {
		return fmt.Errorf("%s: a text of %d bytes, of %d: %w", s.Label, len(s.Text), maxText, ErrLimit)
	}
	if s.Trusted {
		return nil
	}
	if !utf8.ValidString(s.Text) || !utf8.ValidString(s.Entry) {
		return &CompileError{Label: s.Label, Message: "the text is not UTF-8"}
	}
	return s.Nested(maxNesting, maxChain, false)
}

// Nested returns the error of a text with more brackets in each other, or more operators in one expression, or else
// in one statement, than the given numbers, or nil.
func (s *Shader) Nested(maxNesting, maxChain int, statements bool) error {
	var nesting, angles, branches, logical, chain int
	text := s.Text
	for i := 0; i < len(text); i++ {
		next := byte(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch c := text[i]; c {
		case '/':
			if next != '/' && next != '*' {
				chain++
			} else {
				i = comment(text, i)
			}
		case '(', '[':
			nesting++
			chain++
		case ')', ']':
			nesting = max(nesting-1, 0)
		case '{':
			nesting++
			angles, logical, chain = 0, 0, 0
		case '}':
			nesting = max(nesting-1, 0)
			angles, logical, chain = 0, 0, 0
		case ';':
			angles, logical, chain = 0, 0, 0
		case ',':
			if !statements {
				chain = 0
			}
		case '<':
			angles++
			chain++
		case '>':
			angles = max(angles-1, 0)
			chain++
		case '+', '-', '*', '%', '!', '~', '^', '.':
			chain++
		case '&', '|':
			chain++
			if next == c {
				logical++
				i++
			}
		case 'e':
			if len(text)-i >= 4 && text[i:i+4] == "else" {
				branches++
			}
		}
		what := ""
		switch {
		case nesting+angles > maxNesting:
			what = "too many brackets in each other"
		case branches > maxElse:
			what = "too many branches"
		case logical > maxLogical:
			what = "too many && and ||"
		case chain > maxChain:
			what = "too many operators"
		default:
			continue
		}
		return s.Mistake(i, what)
	}
	return nil
}

// comment returns the end of the comment that begins at i.
func comment(text string, i int) int {
	if text[i+1] == '/' {
		for i < len(text) && text[i] != '\n' {
			i++
		}
		return i
	}
	depth := 0
	for ; i+1 < len(text); i++ {
		switch text[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			if i++; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// Mistake returns the error of a mistake at byte i of the text.
func (s *Shader) Mistake(i int, message string) *CompileError {
	e := &CompileError{Label: s.Label, Line: 1, Message: message}
	start := 0
	for j := range i {
		if s.Text[j] == '\n' {
			e.Line, start = e.Line+1, j+1
		}
	}
	e.Column = utf8.RuneCountInString(s.Text[start:i]) + 1
	if line, _, _ := strings.Cut(s.Text[start:], "\n"); len(line) <= maxLine {
		e.Text = line
	}
	return e
}
