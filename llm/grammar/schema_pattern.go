package grammar

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// pattern returns the strings that a regular expression matches. As in JSON Schema it may match
// anywhere in a string, unless it begins with ^ and ends with $.
func (s *schemaReader) pattern(expr, at string) string {
	re, err := syntax.Parse(goSyntax(expr), syntax.Perl)
	if err != nil {
		return s.fail(ErrUnsupported, at, "%v", err)
	}
	w := &patternWriter{s: s, at: at}
	return `"\"" ` + w.search([]*syntax.Regexp{re}, "char* ", " char*") + ` "\""`
}

// token matches an escaped character, the escape of a UTF-16 code unit or of a surrogate pair, or a bracket.
var token = regexp.MustCompile(`(?s)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\.|[\[\]]`)

// The white space of JavaScript, and all other characters, in the syntax of a class of package regexp.
const (
	space    = `\t-\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}`
	notSpace = `\x{0}-\x{8}\x{E}-\x{1F}!-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}` +
		`\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{FEFE}\x{FF00}-\x{10FFFF}`
)

// goSyntax replaces the parts of an expression of JavaScript that package regexp does not have, or has with another
// meaning: \uXXXX, the white space of \s and \S, and brackets in classes, which can begin [:alpha:].
func goSyntax(expr string) string {
	class := false
	return token.ReplaceAllStringFunc(expr, func(e string) string {
		m := token.FindStringSubmatch(e)
		unit := func(i int) rune { n, _ := strconv.ParseUint(m[i], 16, 16); return rune(n) }
		switch {
		case m[1] != "":
			return fmt.Sprintf(`\x{%X}`, utf16.DecodeRune(unit(1), unit(2)))
		case m[3] != "":
			return fmt.Sprintf(`\x{%X}`, unit(3))
		case e == `\s` && class:
			return space
		case e == `\s`:
			return "[" + space + "]"
		case e == `\S` && class:
			return notSpace
		case e == `\S`:
			return "[" + notSpace + "]"
		case e == "[" && class:
			return `\[`
		case e == "[" || e == "]":
			class = e == "["
		}
		return e
	})
}

// search returns the texts in which the concatenation of parts matches somewhere. before and after are the texts
// that may precede and follow the match, except where ^ and $ forbid it.
func (w *patternWriter) search(parts []*syntax.Regexp, before, after string) string {
	w.depth++
	defer func() { w.depth-- }()
	if w.s.err != nil {
		return ""
	}
	// Each call copies parts, and the number of calls grows exponentially with the number of such alternatives.
	if w.written += len(before) + len(after) + len(parts) + 1; w.depth > maxSchemaDepth || w.written > maxSource {
		return w.s.fail(ErrLimit, w.at, "the pattern has too many alternatives with ^ or $")
	}
	if len(parts) == 0 {
		return before + `""` + after
	}
	last := len(parts) - 1
	switch first, end := parts[0], parts[last]; {
	case first.Op == syntax.OpConcat:
		return w.search(slices.Concat(first.Sub, parts[1:]), before, after)
	case first.Op == syntax.OpBeginText:
		return w.search(parts[1:], "", after)
	case end.Op == syntax.OpConcat:
		return w.search(slices.Concat(parts[:last], end.Sub), before, after)
	case end.Op == syntax.OpEndText:
		return w.search(parts[:last], before, "")
	case anchored(first):
		return w.each(first, func(sub *syntax.Regexp) []*syntax.Regexp { return slices.Concat([]*syntax.Regexp{sub}, parts[1:]) }, before, after)
	case anchored(end):
		return w.each(end, func(sub *syntax.Regexp) []*syntax.Regexp { return slices.Concat(parts[:last], []*syntax.Regexp{sub}) }, before, after)
	}
	y := before + w.concat(parts) + after
	w.written += len(y)
	return y
}

// each is search for each alternative of an expression. join returns all parts with the alternative in its place.
func (w *patternWriter) each(re *syntax.Regexp, join func(*syntax.Regexp) []*syntax.Regexp, before, after string) string {
	var out []string
	for _, sub := range re.Sub {
		out = append(out, w.search(join(sub), before, after))
	}
	if re.Op == syntax.OpQuest {
		out = append(out, w.search(join(&syntax.Regexp{Op: syntax.OpEmptyMatch}), before, after))
	}
	return "(" + strings.Join(out, " | ") + ")"
}

// anchored reports whether an expression that is a choice contains ^ or $.
func anchored(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAlternate, syntax.OpCapture, syntax.OpQuest:
		return slices.ContainsFunc(re.Sub, hasAnchor)
	}
	return false
}

func hasAnchor(re *syntax.Regexp) bool {
	return re.Op == syntax.OpBeginText || re.Op == syntax.OpEndText || slices.ContainsFunc(re.Sub, hasAnchor)
}

type patternWriter struct {
	s       *schemaReader
	at      string
	depth   int
	written int // bytes of alternatives
}

func (w *patternWriter) concat(parts []*syntax.Regexp) string {
	if len(parts) == 0 {
		return `""`
	}
	var out []string
	for _, p := range parts {
		out = append(out, w.write(p))
	}
	return strings.Join(out, " ")
}

// suffixes has the GBNF suffix of each repetition.
var suffixes = map[syntax.Op]string{syntax.OpStar: "*", syntax.OpPlus: "+", syntax.OpQuest: "?"}

func (w *patternWriter) write(re *syntax.Regexp) string {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > maxSchemaDepth {
		return w.s.fail(ErrLimit, w.at, "the pattern is nested more than %d deep", maxSchemaDepth)
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
		return `""`
	case syntax.OpLiteral:
		var out []string
		for _, r := range re.Rune {
			ranges := []rune{r, r}
			if re.Flags&syntax.FoldCase != 0 {
				ranges = append(ranges, foldRange(r)...)
			}
			out = append(out, w.class(ranges))
		}
		return strings.Join(out, " ")
	case syntax.OpCharClass:
		return w.class(re.Rune)
	case syntax.OpAnyChar:
		return "char"
	case syntax.OpAnyCharNotNL:
		return w.class([]rune{0, '\n' - 1, '\n' + 1, '\r' - 1, '\r' + 1, 0x2027, 0x202A, utf8.MaxRune})
	case syntax.OpCapture:
		return "(" + w.write(re.Sub[0]) + ")"
	case syntax.OpConcat:
		return w.concat(re.Sub)
	case syntax.OpAlternate:
		var out []string
		for _, p := range re.Sub {
			out = append(out, w.write(p))
		}
		return "(" + strings.Join(out, " | ") + ")"
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return "(" + w.write(re.Sub[0]) + ")" + suffixes[re.Op]
	case syntax.OpRepeat:
		return "(" + w.write(re.Sub[0]) + ")" + times(re.Min, re.Max)
	}
	return w.s.fail(ErrUnsupported, w.at, "%s in a pattern", re)
}

// foldRange returns the other case of a letter of ASCII.
func foldRange(r rune) []rune {
	if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
		return []rune{r ^ 0x20, r ^ 0x20}
	}
	return nil
}

// jsonEscapes has the JSON escapes of characters that must be escaped in a string.
var jsonEscapes = []struct {
	r    rune
	text string
}{{'"', `\"`}, {'\\', `\\`}, {'\n', `\n`}, {'\t', `\t`}, {'\r', `\r`}, {'\b', `\b`}, {'\f', `\f`}}

// class returns the rule of a character in ranges, in JSON notation.
func (w *patternWriter) class(ranges []rune) string {
	var plain strings.Builder
	var alts []string
	forbidden := []rune{0, 0x1F, '"', '"', '\\', '\\', 0x7F, 0x7F, 0xD800, 0xDFFF}
	for i := 0; i < len(ranges); i += 2 {
		lo := ranges[i]
		for j := 0; j < len(forbidden); j += 2 {
			if hi := min(ranges[i+1], forbidden[j]-1); lo <= hi {
				fmt.Fprintf(&plain, `\U%08X-\U%08X`, lo, hi)
			}
			lo = max(lo, forbidden[j+1]+1)
		}
		if lo <= ranges[i+1] {
			fmt.Fprintf(&plain, `\U%08X-\U%08X`, lo, ranges[i+1])
		}
	}
	if plain.Len() > 0 {
		alts = append(alts, "["+plain.String()+"]")
	}
	for _, e := range jsonEscapes {
		for i := 0; i < len(ranges); i += 2 {
			if ranges[i] <= e.r && e.r <= ranges[i+1] {
				alts = append(alts, quote(e.text))
			}
		}
	}
	if len(alts) == 0 {
		return w.s.fail(ErrUnsupported, w.at, "a class contains no character that is allowed in JSON")
	}
	return "(" + strings.Join(alts, " | ") + ")"
}
