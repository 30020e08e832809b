package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokData     tokenKind = iota // text outside of tags
	tokName                      // a name or keyword
	tokString                    // text is the string
	tokInt                       //
	tokFloat                     //
	tokOperator                  //
	tokBegin                     // {{ or {%
	tokEnd                       // }} or %}
	tokEOF                       //
)

type token struct {
	kind tokenKind
	text string
	line int
}

// lexer cuts a template into tokens.
type lexer struct {
	src    string
	pos    int
	line   int
	tokens []token
	err    error
}

// tokenize cuts a template into tokens. Line ends are one character.
func tokenize(src string) ([]token, error) {
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1}
	for l.pos < len(l.src) {
		l.data()
	}
	l.add(tokEOF, "")
	return l.tokens, l.err
}

func (l *lexer) add(kind tokenKind, text string) {
	l.tokens = append(l.tokens, token{kind, text, l.line})
}

// advance consumes n bytes and returns them.
func (l *lexer) advance(n int) string {
	s := l.src[l.pos : l.pos+n]
	l.line += strings.Count(s, "\n")
	l.pos += n
	return s
}

// data reads text up to a tag, and the tag.
func (l *lexer) data() {
	rest := l.src[l.pos:]
	n := len(rest)
	for from := 0; ; {
		i := strings.IndexByte(rest[from:], '{')
		if i < 0 {
			break
		}
		from += i + 1
		if from < len(rest) && strings.IndexByte("{%#", rest[from]) >= 0 {
			n = from - 1
			break
		}
	}
	text := rest[:n]
	mark := byte(0)
	if n+2 < len(rest) {
		mark = rest[n+2]
	}
	if kept := l.keep(text, n < len(rest) && rest[n+1] != '{', mark); kept != "" {
		l.add(tokData, kept)
	}
	l.advance(n)
	if n < len(rest) {
		l.tag(mark == '-' || mark == '+')
	}
}

// keep returns the text between tags without the white space that the tags remove.
func (l *lexer) keep(text string, block bool, mark byte) string {
	if mark == '-' {
		return strings.TrimRightFunc(text, unicode.IsSpace)
	}
	if block && mark != '+' {
		// A tag alone on its line also removes the white space before it.
		begin := strings.LastIndexByte(text, '\n') + 1
		atStart := begin > 0 || l.pos == 0 || l.src[l.pos-1] == '\n'
		if atStart && strings.Trim(text[begin:], " \t") == "" {
			return text[:begin]
		}
	}
	return text
}

// tag reads a tag: a comment, a raw block, or the tokens of an expression or a statement.
func (l *lexer) tag(marked bool) {
	line := l.line
	kind := l.src[l.pos+1]
	l.advance(2)
	if marked {
		l.advance(1)
	}
	if kind == '#' {
		i := strings.Index(l.src[l.pos:], "#}")
		if i < 0 {
			l.fail(line, "the comment has no end: expected #}")
			return
		}
		l.advance(i)
		l.end("#}", i > 0 && l.src[l.pos-1] == '-', false)
		return
	}
	l.add(tokBegin, "{"+string(kind))
	if kind == '%' && l.raw(line) {
		return
	}
	close, depth := map[byte]string{'{': "}}", '%': "%}"}[kind], 0
	for l.err == nil {
		l.space()
		rest := l.src[l.pos:]
		if rest == "" {
			l.fail(line, "the tag has no end: expected %s", close)
			return
		}
		marked := len(rest) > 2 && (rest[0] == '-' || rest[0] == '+') && strings.HasPrefix(rest[1:], close)
		if depth == 0 && (marked || strings.HasPrefix(rest, close)) {
			l.add(tokEnd, close)
			if marked {
				l.advance(1)
			}
			l.end(close, marked && rest[0] == '-', marked && rest[0] == '+')
			return
		}
		switch rest[0] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
		l.token(rest)
	}
}

// end consumes the end of a tag and the white space that it removes.
func (l *lexer) end(close string, trim, keep bool) {
	l.advance(len(close))
	rest := l.src[l.pos:]
	switch {
	case trim:
		l.advance(len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace)))
	case close != "}}" && !keep && strings.HasPrefix(rest, "\n"):
		l.advance(1)
	}
}

var rawBegin, rawEnd = rawTag("raw"), rawTag("endraw")

// raw reads a raw block after {%, if there is one.
func (l *lexer) raw(line int) bool {
	n, trim := rawBegin(l.src[l.pos:])
	if n == 0 {
		return false
	}
	l.tokens = l.tokens[:len(l.tokens)-1]
	l.advance(n - 2)
	l.end("%}", trim, false)
	for from := l.pos; ; {
		i := strings.Index(l.src[from:], "{%")
		if i < 0 {
			l.fail(line, "the raw block has no end: expected {%% endraw %%}")
			return true
		}
		from += i + 2
		inner := strings.TrimLeft(l.src[from:], "-+")
		if n, trim = rawEnd(inner); n > 0 {
			text := l.src[l.pos : from-2]
			if strings.HasPrefix(l.src[from:], "-") {
				text = strings.TrimRightFunc(text, unicode.IsSpace)
			}
			l.add(tokData, text)
			l.advance(len(l.src) - len(inner) + n - 2 - l.pos)
			l.end("%}", trim, false)
			return true
		}
	}
}

// rawTag returns a function that returns the length of the rest of a tag of that name, or 0, and
// whether the tag removes the white space after it.
func rawTag(name string) func(s string) (n int, trim bool) {
	return func(s string) (int, bool) {
		rest, ok := strings.CutPrefix(strings.TrimLeft(s, " \t\n"), name)
		if !ok {
			return 0, false
		}
		rest = strings.TrimLeft(rest, " \t\n")
		rest, trim := strings.CutPrefix(rest, "-")
		if !strings.HasPrefix(rest, "%}") {
			return 0, false
		}
		return len(s) - len(rest) + 2, trim
	}
}

func (l *lexer) space() {
	rest := l.src[l.pos:]
	l.advance(len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace)))
}

var operators = []string{"//", "**", "==", "!=", "<=", ">="}

// token reads a token from the beginning of rest.
func (l *lexer) token(rest string) {
	c := rest[0]
	switch {
	case c == '"' || c == '\'':
		l.str(c)
	case '0' <= c && c <= '9':
		l.number(rest)
	case c == '_' || c >= utf8.RuneSelf || unicode.IsLetter(rune(c)):
		n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(rest)
		}
		if n == 0 {
			l.fail(l.line, "unexpected %.8q", rest)
			return
		}
		l.add(tokName, l.advance(n))
	default:
		n := 1
		for _, op := range operators {
			if strings.HasPrefix(rest, op) {
				n = 2
			}
		}
		if n == 1 && strings.IndexByte("+-*/%~()[]{}.,:|=<>", c) < 0 {
			l.fail(l.line, "unexpected %q", string(c))
			return
		}
		l.add(tokOperator, l.advance(n))
	}
}

func (l *lexer) number(rest string) {
	digits := func(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789_")) }
	n, kind := digits(rest), tokInt
	if f := rest[n:]; len(f) > 1 && f[0] == '.' && digits(f[1:2]) > 0 {
		n, kind = n+1+digits(f[1:]), tokFloat
	}
	if f := strings.TrimLeft(rest[n:], "eE"); len(f) == len(rest)-n-1 {
		signed := strings.TrimLeft(f, "+-")
		if d := digits(signed); d > 0 && len(f)-len(signed) < 2 {
			n, kind = n+1+len(f)-len(signed)+d, tokFloat
		}
	}
	l.add(kind, l.advance(n))
}

// str reads a string with the escapes of Python.
func (l *lexer) str(quote byte) {
	line := l.line
	var b strings.Builder
	for i := l.pos + 1; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == quote:
			l.add(tokString, b.String())
			l.advance(i + 1 - l.pos)
			return
		case c == '\\' && i+1 < len(l.src):
			i += unescape(&b, l.src[i+1:])
		default:
			b.WriteByte(c)
		}
	}
	l.fail(line, "the string has no end: expected %c", quote)
}

var (
	simpleEscapes = map[byte]string{
		'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"", 'b': "\b", 'f': "\f", 'v': "\v", 'a': "\a", '0': "\x00", '\n': "",
	}
	hexEscapes = map[byte]int{'x': 2, 'u': 4, 'U': 8}
)

// unescape decodes the escape sequence after a backslash and returns its length.
func unescape(b *strings.Builder, s string) int {
	if e, ok := simpleEscapes[s[0]]; ok {
		b.WriteString(e)
		return 1
	}
	if n := hexEscapes[s[0]]; n > 0 && len(s) > n {
		if r, err := strconv.ParseUint(s[1:1+n], 16, 32); err == nil {
			b.WriteRune(rune(r))
			return 1 + n
		}
	}
	b.WriteByte('\\')
	return 0
}

func (l *lexer) fail(line int, format string, args ...any) {
	if l.err == nil {
		l.err = &Error{Line: line, Err: fmt.Errorf("%w: "+format, append([]any{ErrSyntax}, args...)...)}
	}
	l.pos = len(l.src)
}
