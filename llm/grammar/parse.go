package grammar

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parser reads GBNF. It keeps its first error.
type parser struct {
	src   string
	pos   int
	err   error
	depth int
	names map[string]int32
	used  map[int32]int // line of the first use of each rule
	rules [][]sequence  // the alternatives of each rule; nil if undefined
	texts []string      // the names of the rules
	sets  []*runeSet
	size  int // elements so far
}

// sequence is one alternative, without its end.
type sequence []element

// Parse parses a grammar in GBNF: rules of the form
//
//	name ::= "text" other-rule [a-z]+ ( a | b )? c{2,4} .
//
// A text must match the rule named root. The error is an [Error] that wraps [ErrSyntax] or
// [ErrLimit]. A left-recursive rule is an ErrSyntax: the automaton would never reach a character.
func Parse(text string) (*Grammar, error) {
	if len(text) > maxSource {
		return nil, fmt.Errorf("grammar: %w: it has %d bytes, expected at most %d", ErrLimit, len(text), maxSource)
	}
	p := &parser{src: text, names: map[string]int32{}, used: map[int32]int{}}
	p.rule("root")
	for p.space(true); p.err == nil && p.pos < len(p.src); p.space(true) {
		p.definition()
	}
	for i, alts := range p.rules {
		if alts == nil && p.err == nil {
			p.failAt(max(1, p.used[int32(i)]), ErrSyntax, "there is no rule %s", p.texts[i])
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	g := p.grammar()
	if err := g.check(p.used); err != nil {
		return nil, err
	}
	return g, nil
}

func (p *parser) line() int { return 1 + strings.Count(p.src[:min(p.pos, len(p.src))], "\n") }

func (p *parser) fail(format string, args ...any) { p.failAt(p.line(), ErrSyntax, format, args...) }

func (p *parser) failAt(line int, kind error, format string, args ...any) {
	if p.err == nil {
		p.err = &Error{Line: line, Err: fmt.Errorf("%w: "+format, append([]any{kind}, args...)...)}
	}
	p.pos = len(p.src)
}

// rule returns the number of the rule of a name.
func (p *parser) rule(name string) int32 {
	i, ok := p.names[name]
	if !ok {
		i = int32(len(p.rules))
		p.names[name] = i
		p.rules, p.texts = append(p.rules, nil), append(p.texts, name)
	}
	return i
}

// fresh returns a new rule with the given alternatives.
func (p *parser) fresh(alts ...sequence) int32 {
	p.rules, p.texts = append(p.rules, alts), append(p.texts, "")
	for _, a := range alts {
		p.count(len(a) + 1)
	}
	return int32(len(p.rules) - 1)
}

func (p *parser) count(n int) {
	if p.size += n; p.size > maxElements {
		p.failAt(p.line(), ErrLimit, "the grammar has more than %d elements", maxElements)
	}
}

// space skips white space and comments, and newlines if newlines is set.
func (p *parser) space(newlines bool) {
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == ' ' || c == '\t' || newlines && (c == '\n' || c == '\r'):
			p.pos++
		case c == '#':
			if n := strings.IndexAny(p.src[p.pos:], "\r\n"); n >= 0 {
				p.pos += n
			} else {
				p.pos = len(p.src)
			}
		default:
			return
		}
	}
}

func (p *parser) accept(text string) bool {
	if strings.HasPrefix(p.src[p.pos:], text) {
		p.pos += len(text)
		return true
	}
	return false
}

// near returns the next characters for error messages.
func (p *parser) near() string {
	if p.pos >= len(p.src) {
		return "the end"
	}
	return fmt.Sprintf("%.12q", p.src[p.pos:])
}

func (p *parser) ident() string {
	n := 0
	for n < len(p.src)-p.pos && isName(p.src[p.pos+n]) {
		n++
	}
	p.pos += n
	return p.src[p.pos-n : p.pos]
}

func isName(c byte) bool {
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// definition reads one rule.
func (p *parser) definition() {
	line := p.line()
	name := p.ident()
	p.space(false)
	if name == "" || !p.accept("::=") {
		p.fail("unexpected %s, expected a rule of the form name ::= ...", p.near())
		return
	}
	i := p.rule(name)
	if p.rules[i] != nil {
		p.failAt(line, ErrSyntax, "there are two rules %s", name)
		return
	}
	p.space(true)
	alts := p.alternatives(false)
	p.rules[i] = alts
	for _, a := range alts {
		p.count(len(a) + 1)
	}
	if p.err == nil && p.pos < len(p.src) && p.src[p.pos] != '\n' && p.src[p.pos] != '\r' {
		p.fail("unexpected %s in rule %s", p.near(), name)
	}
}

func (p *parser) alternatives(nested bool) (alts []sequence) {
	if p.depth++; p.depth > maxNested {
		p.failAt(p.line(), ErrLimit, "parentheses more than %d deep", maxNested)
	}
	for p.err == nil {
		alts = append(alts, p.sequence(nested))
		// An alternative may begin on the next line.
		at := p.pos
		p.space(true)
		if !p.accept("|") {
			if p.err == nil {
				p.pos = at
			}
			break
		}
		p.space(true)
	}
	p.depth--
	return alts
}

// sequence reads elements with their repetitions.
func (p *parser) sequence(nested bool) (q sequence) {
	q = sequence{}
	for p.err == nil && p.pos < len(p.src) {
		n := len(q)
		switch c := p.src[p.pos]; {
		case c == '"':
			q = append(q, p.literal()...)
		case c == '[':
			q = append(q, p.class())
		case c == '.':
			p.pos++
			q = append(q, p.set(newSet(nil, true)))
		case c == '(':
			p.pos++
			p.space(true)
			i := p.fresh(p.alternatives(true)...)
			p.space(true)
			if !p.accept(")") {
				p.fail("unexpected %s, expected )", p.near())
			}
			q = append(q, element{elemRule, i})
		case isName(c):
			line := p.line()
			name := p.ident()
			i := p.rule(name)
			if _, ok := p.used[i]; !ok {
				p.used[i] = line
			}
			q = append(q, element{elemRule, i})
		default:
			return q
		}
		// A repetition applies to the whole literal.
		p.space(nested)
		q = p.repeated(q, n)
		p.space(nested)
	}
	return q
}

// set returns the element of a set.
func (p *parser) set(s *runeSet) element {
	i := slices.IndexFunc(p.sets[max(0, len(p.sets)-64):], func(o *runeSet) bool { return slices.Equal(o.ranges, s.ranges) })
	if i >= 0 {
		return element{elemSet, int32(i + max(0, len(p.sets)-64))}
	}
	if len(s.ranges) == 0 {
		p.fail("a class contains no character")
	}
	p.sets = append(p.sets, s)
	return element{elemSet, int32(len(p.sets) - 1)}
}

func (p *parser) literal() (q sequence) {
	line := p.line()
	p.pos++
	for p.err == nil {
		if p.pos >= len(p.src) {
			p.failAt(line, ErrSyntax, `the text has no end: expected "`)
			return nil
		}
		if p.accept(`"`) {
			return q
		}
		r := p.char()
		q = append(q, p.set(newSet([]rune{r, r}, false)))
	}
	return q
}

func (p *parser) class() element {
	line := p.line()
	p.pos++
	negate := p.accept("^")
	var ranges []rune
	for p.err == nil && !p.accept("]") {
		if p.pos >= len(p.src) {
			p.failAt(line, ErrSyntax, "the class has no end: expected ]")
			break
		}
		lo := p.char()
		hi := lo
		if strings.HasPrefix(p.src[p.pos:], "-") && !strings.HasPrefix(p.src[p.pos:], "-]") {
			p.pos++
			if hi = p.char(); hi < lo {
				p.fail("the range %q to %q is empty", lo, hi)
			}
		}
		ranges = append(ranges, lo, hi)
	}
	if p.err != nil {
		return element{}
	}
	return p.set(newSet(ranges, negate))
}

// simpleEscapes and hexEscapes are the characters allowed after a backslash.
var (
	simpleEscapes = map[byte]rune{'n': '\n', 'r': '\r', 't': '\t', '\\': '\\', '"': '"', '[': '[', ']': ']', '-': '-', '^': '^'}
	hexEscapes    = map[byte]int{'x': 2, 'u': 4, 'U': 8}
)

// char reads a character or an escape.
func (p *parser) char() rune {
	if !p.accept(`\`) {
		r, n := utf8.DecodeRuneInString(p.src[p.pos:])
		if r == utf8.RuneError && n < 2 {
			p.fail("%s is not a character of UTF-8", p.near())
			return 0
		}
		p.pos += n
		return r
	}
	if p.pos < len(p.src) {
		c := p.src[p.pos]
		if r, ok := simpleEscapes[c]; ok {
			p.pos++
			return r
		}
		if n := hexEscapes[c]; n > 0 && p.pos+n < len(p.src) {
			r, err := strconv.ParseUint(p.src[p.pos+1:p.pos+1+n], 16, 32)
			if err == nil && r <= utf8.MaxRune {
				p.pos += 1 + n
				return rune(r)
			}
		}
	}
	p.fail(`unknown escape \%s`, p.near())
	return 0
}

// bounds are the bounds of * + and ?; -1 is no bound.
var bounds = map[byte][2]int{'*': {0, -1}, '+': {1, -1}, '?': {0, 1}}

// repeated reads the repetition that follows the elements from n on.
func (p *parser) repeated(q sequence, n int) sequence {
	if p.pos >= len(p.src) || p.err != nil {
		return q
	}
	b, ok := bounds[p.src[p.pos]]
	switch {
	case ok:
		p.pos++
	case p.src[p.pos] == '{':
		if b = p.braces(); p.err != nil {
			return q
		}
	default:
		return q
	}
	item := slices.Clone(q[n:])
	if len(item) == 0 {
		return q
	}
	if len(item) > 1 {
		item = sequence{{elemRule, p.fresh(item)}}
	}
	return append(q[:n], p.repeat(item[0], b[0], b[1])...)
}

func (p *parser) braces() (b [2]int) {
	text, _, ok := strings.Cut(p.src[p.pos+1:], "}")
	lo, hi, two := strings.Cut(text, ",")
	lo, hi = strings.TrimSpace(lo), strings.TrimSpace(hi)
	var err, err2 error
	b[0], err = strconv.Atoi(lo)
	switch {
	case !two:
		b[1] = b[0]
	case hi == "":
		b[1] = -1
	default:
		b[1], err2 = strconv.Atoi(hi)
	}
	if !ok || err != nil || err2 != nil || b[0] < 0 || b[1] >= 0 && b[1] < b[0] || b[0] > maxElements || b[1] > maxElements {
		p.fail("bad repetition %s, expected {n}, {n,} or {n,m}, at most %d", p.near(), maxElements)
		return b
	}
	p.pos += len(text) + 2
	return b
}

// repeat returns lo to hi repetitions of an element; a negative hi means no limit.
func (p *parser) repeat(item element, lo, hi int) (q sequence) {
	p.count(lo)
	for range lo {
		if p.err != nil {
			return q
		}
		q = append(q, item)
	}
	if hi < 0 {
		i := p.fresh()
		p.rules[i] = []sequence{{item, {elemRule, i}}, {}}
		p.count(4)
		return append(q, element{elemRule, i})
	}
	var rest sequence
	for range hi - lo {
		if p.err != nil {
			return q
		}
		rest = sequence{{elemRule, p.fresh(append(sequence{item}, rest...), sequence{})}}
	}
	return append(q, rest...)
}

// grammar returns the grammar of the parsed rules.
func (p *parser) grammar() *Grammar {
	g := &Grammar{source: p.src, sets: p.sets, places: map[*Vocabulary]*places{}}
	for i, alts := range p.rules {
		r := rule{name: p.texts[i]}
		for _, a := range alts {
			r.alts = append(r.alts, int32(len(g.elems)))
			g.elems = append(append(g.elems, a...), element{})
		}
		g.rules = append(g.rules, r)
	}
	return g
}

// check returns an error for rules that begin with themselves.
func (g *Grammar) check(used map[int32]int) error {
	empty := g.nullable()
	const (
		unseen = iota
		open
		closed
	)
	mark := make([]uint8, len(g.rules))
	type frame struct {
		rule int32
		next []int32 // rules with which it can begin
	}
	for start := range g.rules {
		if mark[start] != unseen {
			continue
		}
		mark[start] = open
		stack := []frame{{int32(start), g.begins(int32(start), empty)}}
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			if len(f.next) == 0 {
				mark[f.rule] = closed
				stack = stack[:len(stack)-1]
				continue
			}
			r := f.next[0]
			f.next = f.next[1:]
			switch mark[r] {
			case open:
				name := g.rules[r].name
				for i := len(stack) - 1; name == "" && i >= 0; i-- {
					name = g.rules[stack[i].rule].name
				}
				return &Error{Line: max(1, used[r]), Err: fmt.Errorf("%w: rule %s begins with itself, or repeats an expression that can be empty", ErrSyntax, name)}
			case unseen:
				mark[r] = open
				stack = append(stack, frame{r, g.begins(r, empty)})
			}
		}
	}
	return nil
}

// begins returns the rules that an alternative of a rule can begin with.
func (g *Grammar) begins(r int32, empty []bool) (rules []int32) {
	for _, at := range g.rules[r].alts {
		for ; g.elems[at].kind == elemRule; at++ {
			rules = append(rules, g.elems[at].i)
			if !empty[g.elems[at].i] {
				break
			}
		}
	}
	return rules
}

// nullable reports which rules can be empty. It checks a rule again when a rule that one of its
// alternatives needs is found to be nullable.
func (g *Grammar) nullable() []bool {
	empty := make([]bool, len(g.rules))
	waiting := make([][]int32, len(g.rules))
	var queue []int32
	for r := range g.rules {
		queue = append(queue, int32(r))
	}
	for len(queue) > 0 {
		r := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if empty[r] {
			continue
		}
		for _, at := range g.rules[r].alts {
			for g.elems[at].kind == elemRule && empty[g.elems[at].i] {
				at++
			}
			switch e := g.elems[at]; e.kind {
			case elemEnd:
				if !empty[r] {
					empty[r] = true
					queue = append(queue, waiting[r]...)
				}
			case elemRule:
				waiting[e.i] = append(waiting[e.i], r)
			}
		}
	}
	return empty
}
