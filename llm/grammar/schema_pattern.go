package grammar

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// pattern returns the strings that a regular expression matches. As in JSON Schema it may match
// anywhere in a string, unless it begins with ^ and ends with $.
func (s *schemaReader) pattern(expr, at string) string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return s.fail(ErrUnsupported, at, "%v", err)
	}
	w := &patternWriter{s: s, at: at}
	before, after := "char* ", " char*"
	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = re.Sub
	}
	if parts[0].Op == syntax.OpBeginText {
		before, parts = "", parts[1:]
	}
	if n := len(parts) - 1; n >= 0 && parts[n].Op == syntax.OpEndText {
		after, parts = "", parts[:n]
	}
	return `"\"" ` + before + w.concat(parts) + after + ` "\""`
}

type patternWriter struct {
	s     *schemaReader
	at    string
	depth int
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
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "char"
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
