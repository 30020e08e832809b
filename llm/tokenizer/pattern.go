package tokenizer

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A pattern is a regular expression of the kind that tokenizers use: ordered alternatives, Unicode
// classes, greedy repetition with backtracking, and lookahead of one character. Package regexp has
// no lookahead. Only a single class can be repeated, so matching backtracks over at most one run,
// in time linear in its length.
type pattern struct {
	alts  []sequence
	atEnd *runeSet    // replaces the alternatives: matches a run of the set at the end of the text
	first [129]uint32 // for each first byte, a mask of the possible alternatives; 128 stands for all bytes from 0x80 on
}

type sequence []item

type itemKind uint8

const (
	itemRun     itemKind = iota // min to max runes of a set
	itemGroup                   // one of alts, or nothing if min is 0
	itemAhead                   // the next rune is in the set
	itemNoAhead                 // the next rune is not in the set, or the text ends
)

type item struct {
	kind     itemKind
	set      *runeSet
	min, max int
	alts     []sequence
}

// runeSet is a set of runes.
type runeSet struct {
	ascii  [2]uint64
	cats   uint32
	ranges []rune // pairs of first and last rune
	negate bool   // negates runes from 0x80 on; ascii is already negated
	table  *categoryTable
}

func (s *runeSet) hasASCII(c byte) bool { return s.ascii[c>>6]>>(c&63)&1 != 0 }

func (s *runeSet) has(r rune) bool {
	if r < utf8.RuneSelf {
		return s.hasASCII(byte(r))
	}
	return s.hasWide(r)
}

func (s *runeSet) hasWide(r rune) bool {
	if s.cats>>s.table.of(r)&1 != 0 {
		return !s.negate
	}
	for i := 0; i < len(s.ranges); i += 2 {
		if s.ranges[i] <= r && r <= s.ranges[i+1] {
			return !s.negate
		}
	}
	return s.negate
}

// next returns the width of the first rune of s if it is in the set, or 0. Invalid UTF-8 counts as
// U+FFFD.
func (set *runeSet) next(s string) int {
	if s == "" {
		return 0
	}
	if c := s[0]; c < utf8.RuneSelf {
		return int(set.ascii[c>>6] >> (c & 63) & 1)
	}
	r, n := utf8.DecodeRuneInString(s)
	if !set.hasWide(r) {
		return 0
	}
	return n
}

// match returns the length of the match at the beginning of s, or 0.
func (p *pattern) match(s string) int {
	for m := p.first[min(s[0], 128)]; m != 0; m &= m - 1 {
		if n := p.alts[bits.TrailingZeros32(m)].match(s, 0); n > 0 {
			return n
		}
	}
	return 0
}

// match returns the end of the match of the sequence at pos, or -1.
func (q sequence) match(s string, pos int) int {
	for i := range q {
		it := &q[i]
		switch it.kind {
		case itemRun:
			end, n := it.run(s, pos)
			if n < it.min {
				return -1
			}
			if i == len(q)-1 {
				return end
			}
			return q[i+1:].giveBack(s, pos, end, n-it.min)
		case itemGroup:
			for _, alt := range it.alts {
				if end := alt.match(s, pos); end >= 0 {
					if end = q[i+1:].match(s, end); end >= 0 {
						return end
					}
				}
			}
			if it.min > 0 {
				return -1
			}
		case itemAhead, itemNoAhead:
			if (it.set.next(s[pos:]) > 0) != (it.kind == itemAhead) {
				return -1
			}
		}
	}
	return pos
}

// run returns the end of the longest run of the set at pos, and its number of runes.
func (it *item) run(s string, pos int) (end, n int) {
	set := it.set
	for n < it.max && pos < len(s) {
		if c := s[pos]; c < utf8.RuneSelf {
			if !set.hasASCII(c) {
				break
			}
			pos++
		} else {
			r, w := utf8.DecodeRuneInString(s[pos:])
			if !set.hasWide(r) {
				break
			}
			pos += w
		}
		n++
	}
	return pos, n
}

// giveBack matches the rest of the sequence after the run from pos to end, and backtracks by up to n runes.
func (q sequence) giveBack(s string, pos, end, n int) int {
	for {
		if e := q.match(s, end); e >= 0 {
			return e
		}
		if n == 0 {
			return -1
		}
		n--
		_, w := utf8.DecodeLastRuneInString(s[pos:end])
		end -= w
	}
}

// compilePattern compiles an expression of a preTokenizer.
func compilePattern(expr string) (*pattern, error) {
	body, atEnd := strings.CutSuffix(expr, "+$")
	c := &patternParser{text: body}
	p := &pattern{}
	if atEnd {
		// Matching it forwards would take quadratic time.
		p.atEnd = c.class()
	} else {
		p.alts = c.alternatives()
	}
	if c.err == nil && c.text != "" {
		c.fail("unexpected %q", c.text)
	}
	if len(p.alts) > 32 {
		c.fail("the pattern has more than 32 alternatives")
	}
	if c.err != nil {
		return nil, fmt.Errorf("pattern %q: %w", expr, c.err)
	}
	for i, alt := range p.alts {
		first, wide, _ := alt.first()
		for b := range 128 {
			p.first[b] |= uint32(first[b>>6]>>(b&63)&1) << i
		}
		if wide {
			p.first[128] |= 1 << i
		}
	}
	return p, nil
}

// first returns the set of ASCII bytes with which the sequence can begin, whether it can begin with
// another byte, and whether it can be empty.
func (q sequence) first() (ascii [2]uint64, wide, empty bool) {
	add := func(a [2]uint64, w bool) {
		ascii[0] |= a[0]
		ascii[1] |= a[1]
		wide = wide || w
	}
	for _, it := range q {
		empty = it.min == 0
		switch it.kind {
		case itemRun:
			add(it.set.ascii, it.set.negate || it.set.cats != 0 || len(it.set.ranges) > 0)
		case itemGroup:
			for _, alt := range it.alts {
				a, w, e := alt.first()
				add(a, w)
				empty = empty || e
			}
		default:
			empty = true
		}
		if !empty {
			return ascii, wide, false
		}
	}
	return [2]uint64{math.MaxUint64, math.MaxUint64}, true, true
}

// patternParser reads an expression from the front of text.
type patternParser struct {
	text string
	fold bool // inside (?i:
	err  error
}

func (c *patternParser) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.text = ""
}

func (c *patternParser) accept(prefix string) (ok bool) {
	c.text, ok = strings.CutPrefix(c.text, prefix)
	return ok
}

func (c *patternParser) alternatives() (alts []sequence) {
	for {
		var q sequence
		for c.text != "" && c.text[0] != '|' && c.text[0] != ')' {
			q = append(q, c.quantified())
		}
		alts = append(alts, q)
		if !c.accept("|") {
			return alts
		}
	}
}

func (c *patternParser) quantified() item {
	it := c.atom()
	switch {
	case c.accept("?"):
		it.min = 0
	case c.accept("*"):
		it.min, it.max = 0, math.MaxInt
	case c.accept("+"):
		it.max = math.MaxInt
	case strings.HasPrefix(c.text, "{"):
		bounds, rest, ok := strings.Cut(c.text[1:], "}")
		lo, hi, two := strings.Cut(bounds, ",")
		if !two {
			hi = lo
		}
		var err, err2 error
		it.min, err = strconv.Atoi(lo)
		it.max, err2 = strconv.Atoi(hi)
		if !ok || err != nil || err2 != nil || it.min > it.max {
			c.fail("the bounds {%s} of a repetition are malformed, expected {n}, {n,} or {n,m}", bounds)
			return it
		}
		c.text = rest
	}
	if it.max > 1 && it.kind != itemRun {
		c.fail("a group is repeated: expected a single class")
	}
	return it
}

func (c *patternParser) atom() item {
	switch {
	case c.accept("(?!"):
		return c.lookahead(itemNoAhead)
	case c.accept("(?="):
		return c.lookahead(itemAhead)
	case c.accept("(?i:"):
		c.fold = true
		it := c.group()
		c.fold = false
		return it
	case c.accept("(?:"):
		return c.group()
	}
	if strings.HasPrefix(c.text, "(") {
		c.fail("unexpected %q", c.text)
	}
	return item{kind: itemRun, set: c.class(), min: 1, max: 1}
}

func (c *patternParser) lookahead(kind itemKind) item {
	it := item{kind: kind, set: c.class()}
	if !c.accept(")") {
		c.fail("a lookahead has several classes, expected one")
	}
	return it
}

func (c *patternParser) group() item {
	it := item{kind: itemGroup, alts: c.alternatives(), min: 1, max: 1}
	if !c.accept(")") {
		c.fail("a group has no end: expected )")
	}
	return it
}

// class reads one class: a bracket expression, an escape or a character.
func (c *patternParser) class() *runeSet {
	b := setBuilder{fold: c.fold}
	if !c.accept("[") {
		c.member(&b, false)
		return b.set()
	}
	b.negate = c.accept("^")
	for c.err == nil && !c.accept("]") {
		if c.text == "" {
			c.fail("a class has no end: expected ]")
		}
		c.member(&b, true)
	}
	return b.set()
}

// escapes lists the characters with a special meaning after a backslash.
var escapes = map[rune]rune{'r': '\r', 'n': '\n', 't': '\t'}

// member reads a character, an escape or, if ranges is set, a range.
func (c *patternParser) member(b *setBuilder, ranges bool) {
	var lo rune
	if c.accept(`\`) {
		switch {
		case c.accept("p{"):
			name, rest, _ := strings.Cut(c.text, "}")
			mask := categoryMask(name)
			if mask == 0 {
				c.fail("no category of Unicode is called %q", name)
			}
			b.cats |= mask
			c.text = rest
			return
		case c.accept("s"):
			b.space()
			return
		case c.accept("S"):
			b.space()
			b.negate = true
			return
		}
		lo = c.rune()
		if e, ok := escapes[lo]; ok {
			lo = e
		}
	} else {
		lo = c.rune()
	}
	if ranges && len(c.text) > 1 && c.text[0] == '-' && c.text[1] != ']' {
		c.text = c.text[1:]
		c.accept(`\`)
		b.add(lo, c.rune())
		return
	}
	b.add(lo, lo)
}

func (c *patternParser) rune() rune {
	r, n := utf8.DecodeRuneInString(c.text)
	if n == 0 {
		c.fail("unexpected end, expected a character")
		return 0
	}
	c.text = c.text[n:]
	return r
}

// setBuilder collects the characters of a set.
type setBuilder struct {
	ranges       []rune
	cats         uint32
	negate, fold bool
}

func (b *setBuilder) add(lo, hi rune) {
	b.ranges = append(b.ranges, lo, hi)
	if b.fold && lo == hi {
		b.ranges = append(b.ranges, unicode.ToUpper(lo), unicode.ToUpper(lo), unicode.ToLower(lo), unicode.ToLower(lo))
	}
}

func (b *setBuilder) space() {
	for _, r := range unicode.White_Space.R16 {
		for x := rune(r.Lo); x <= rune(r.Hi); x += rune(r.Stride) {
			b.add(x, x)
		}
	}
}

func (b *setBuilder) set() *runeSet {
	s := &runeSet{cats: b.cats, negate: b.negate, table: categories()}
	for r := range rune(128) {
		in := b.cats>>s.table.of(r)&1 != 0
		for i := 0; i < len(b.ranges); i += 2 {
			in = in || b.ranges[i] <= r && r <= b.ranges[i+1]
		}
		if in != b.negate {
			s.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	for i := 0; i < len(b.ranges); i += 2 {
		if b.ranges[i+1] >= 128 {
			s.ranges = append(s.ranges, max(b.ranges[i], 128), b.ranges[i+1])
		}
	}
	return s
}
