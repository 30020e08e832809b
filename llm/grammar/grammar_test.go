package grammar

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rayo-go/rayo/internal/testutil"
)

// byteVocabulary returns a vocabulary of all bytes and a few longer tokens, some of which end
// inside a character.
func byteVocabulary(more ...string) *Vocabulary {
	var tokens [][]byte
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	tokens = append(tokens, nil)
	for _, m := range append(more, `{"`, `":`, `",`, `"}`, `": "`, "}}", "[[", "true", "null", "12", "0.5", "日本", "\xe6\x97", "a\xf0\x9f", "e\xcc", "\n  ", `\u00`, "ab", "aab", "name") {
		tokens = append(tokens, []byte(m))
	}
	return NewVocabulary(tokens)
}

func mustParse(t testing.TB, text string) *Grammar {
	t.Helper()
	g, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// matches reports whether a text matches the grammar, and whether it is a prefix of a matching text.
func matches(g *Grammar, text string) (complete, begins bool) {
	m := g.Matcher(NewVocabulary(nil))
	if m.AcceptText([]byte(text)) != nil {
		return false, false
	}
	return m.Done(), true
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ grammar, yes, no string }{
		{`root ::= "a" | "bc"  # comment`, "a bc", "b ab abc"},
		{"root ::= x+ \"!\"?\nx ::= [a-c] | ( \"d\" |\n \"e\" )", "a abcde dd!", "! a!! f"},
		{`root ::= "a"{2} "b"{1,3} "c"{2,} .`, "aabccx aabbbccccé", "abccx aabcx aabbbbccx"},
		{`root ::= [^a-z\]\n] [\x41-\u0043é日] "\"\\\t"?`, "1A -é 日日", "aA 1D"},
		{"root ::=\n  \"a\"\n  | \"b\" y\ny ::= \"c\"", "a bc", "b c"},
		{`root ::= a-1 | ("x" root)
a-1 ::= "é"*`, "é éé xé xxé x", "y éx"},
		{"# first\n\nroot ::= \"(\" root \")\" root |\n  \"\"\r\n", "() (()) ()()", ")( ())"},
		{`root ::= ("ab")* "a"?`, "ab aba abab", "b aab"},
	} {
		g := mustParse(t, c.grammar)
		for _, text := range strings.Fields(c.yes) {
			if ok, _ := matches(g, text); !ok {
				t.Errorf("%q does not match %q", c.grammar, text)
			}
		}
		for _, text := range strings.Fields(c.no) {
			if ok, _ := matches(g, text); ok {
				t.Errorf("%q matches %q", c.grammar, text)
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		grammar string
		line    int
		kind    error
		says    string
	}{
		{"", 1, ErrSyntax, "root"},
		{"root ::= x", 1, ErrSyntax, "no rule x"},
		{"root ::= \"a\"\nx ::= y", 2, ErrSyntax, "no rule y"},
		{"root ::= \"a", 1, ErrSyntax, "no end"},
		{"root ::= [a", 1, ErrSyntax, "no end"},
		{"root ::= (\"a\"", 1, ErrSyntax, "expected )"},
		{"root ::= \"a\" )", 1, ErrSyntax, "unexpected"},
		{"root ::= [z-a]", 1, ErrSyntax, "empty"},
		{"root ::= []", 1, ErrSyntax, "no character"},
		{"root ::= \"\\q\"", 1, ErrSyntax, "escape"},
		{"root ::= \"\\x4\"", 1, ErrSyntax, "escape"},
		{"root ::= \"\xff\"", 1, ErrSyntax, "UTF-8"},
		{"root ::= \"a\"{3,2}", 1, ErrSyntax, "repetition"},
		{"root ::= \"a\"{x}", 1, ErrSyntax, "repetition"},
		{"root = \"a\"", 1, ErrSyntax, "::="},
		{"root ::= \"a\"\nroot ::= \"b\"", 2, ErrSyntax, "two rules"},
		{"root ::= root \"a\" | \"b\"", 1, ErrSyntax, "begins with itself"},
		{"root ::= x \"a\"\nx ::= y? z\ny ::= \"b\"\nz ::= root", 4, ErrSyntax, "begins with itself"},
		{"root ::= (\"a\"*)*", 1, ErrSyntax, "repeats an expression that can be empty"},
		{"root ::= \"a\"{9999999}", 1, ErrSyntax, "at most"},
		{"root ::= \"a\"{400000} \"b\"{400000}", 1, ErrLimit, "elements"},
		{"root ::= \"ab\"{0,400000}", 1, ErrLimit, "elements"},
		{"root ::= " + strings.Repeat("(", 1000), 1, ErrLimit, "deep"},
	} {
		_, err := Parse(c.grammar)
		var e *Error
		if !errors.As(err, &e) || e.Line != c.line || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.60q: error %v, expected %v in line %d that says %q", c.grammar, err, c.kind, c.line, c.says)
		}
	}
	if _, err := Parse(strings.Repeat(" ", 2<<20)); !errors.Is(err, ErrLimit) {
		t.Errorf("a long grammar: error %v", err)
	}
}

// randomGrammar returns a grammar with rules that refer to each other.
func randomGrammar(rng *rand.Rand) string {
	var b strings.Builder
	items := []string{`"a"`, `"b"`, `"ab"`, `[a-c]`, `[^a]`, `"日"`, `"日本"`, `.`, `"é"`, `[à-ÿ]`, `"\""`, `[0-9]+`, `"a"*`, `"b"?`, `("a" | "ab"){1,2}`}
	n := 1 + rng.IntN(4)
	for i := range n {
		name := "root"
		if i > 0 {
			name = fmt.Sprintf("r%d", i)
		}
		fmt.Fprintf(&b, "%s ::= ", name)
		for a := range 1 + rng.IntN(3) {
			if a > 0 {
				b.WriteString(" | ")
			}
			fmt.Fprintf(&b, "%s ", items[rng.IntN(9)])
			for range rng.IntN(3) {
				if rng.IntN(3) == 0 && n > 1 {
					fmt.Fprintf(&b, "r%d ", 1+rng.IntN(n-1))
				} else {
					fmt.Fprintf(&b, "%s ", items[rng.IntN(len(items))])
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// nested are grammars in which one token can end many rules at once.
var nested = []string{
	`root ::= "[" (root ("," root)*)? "]" "x"?`,
	`root ::= "(" root ")" | "[" root "]" | "a"`,
	"root ::= \"[\" b \"]\"\nb ::= \"(\" c \")\" | \"a\"\nc ::= \"[\" b \"]\" \",\"? | root \"x\" | \"a\"+",
	`root ::= "{" ( "\"" [^"]* "\"" ":" root ","? )* "}" | "0" | "12"`,
}

// TestAllowed checks that the mask has exactly the tokens that a matcher accepts, at random
// positions of grammars, also inside characters.
func TestAllowed(t *testing.T) {
	rng := testutil.Rand(t)
	v := byteVocabulary("]]", "]]]", "]]]]", "]]]]]", "]]]]]]]]", "]]]]x", "]],[", "],[[", "]]]],", "[[[[", "a]]]]]", ")])", "))))", ")))))))", "((((", "[a]]]]]]", "aa", `":{"`, "0}}}}", `,"a":`, "}}}}", "},}}}}", `":12}}}`)
	counts, limited := [2]int{}, 0
	for i := range 100 {
		text := randomGrammar(rng)
		if i < 40 {
			text = nested[i%len(nested)]
		}
		m := mustParse(t, text).Matcher(v)
		for range 15 {
			mask, err := m.Allowed()
			if err != nil && !errors.Is(err, ErrLimit) {
				t.Fatalf("%s: %v", text, err)
			}
			if err != nil {
				limited++
				break
			}
			may, ok := acceptable(t, text, m, mask)
			if !ok {
				limited++
				break
			}
			counts[0], counts[1] = counts[0]+v.Size()-len(may), counts[1]+len(may)
			if len(may) == 0 {
				if !m.Done() {
					t.Fatalf("%s: no token is allowed although the text is not complete", text)
				}
				break
			}
			id := may[rng.IntN(len(may))]
			if open := strings.IndexByte("[({", text[min(10, len(text)-1)]); open >= 0 && rng.IntN(2) == 0 && mask.Has(int32("[({"[open])) {
				id = int32("[({"[open]) // nest more deeply, so that a later token can end many rules
			}
			if err := m.Accept(id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if counts[0] < 1000 || counts[1] < 1000 {
		t.Errorf("%d tokens were refused and %d accepted: too few for the test", counts[0], counts[1])
	}
	if limited > 20 {
		t.Errorf("%d of 100 grammars reached the limit of derivations: too many for the test", limited)
	}
}

// acceptable returns the tokens that a matcher accepts, which must be those of the mask. It returns
// false if a token leads to more derivations than a matcher can follow; the mask tests the
// derivations one by one and allows such a token.
func acceptable(t *testing.T, text string, m *Matcher, mask Mask) (may []int32, ok bool) {
	t.Helper()
	for id := range int32(m.v.Size()) {
		err := m.Clone().Accept(id)
		if errors.Is(err, ErrLimit) {
			return nil, false
		}
		if (err == nil) != mask.Has(id) {
			t.Fatalf("%s: token %q: in the mask %v, accepting it gives %v", text, m.v.tokens[id], mask.Has(id), err)
		}
		if err == nil {
			may = append(may, id)
		}
	}
	return may, true
}

// TestPartialCharacters checks that a token with a part of a character is allowed only if a
// character with this part may follow.
func TestPartialCharacters(t *testing.T) {
	g := mustParse(t, `root ::= [一-龥] "é" [\U0001F600-\U0001F64F]`)
	for text, begins := range map[string]bool{
		"\xe6": true, "\xe6\x97": true, "\xe6\x97\xa5": true, "日\xc3": true, "日é\xf0\x9f\x98": true, "日é😀": true,
		"\xe3\x81": false, "\xe2": false, "日\xc4": false, "日é\xf0\x9f\x97": false, "日é\xf0\xa0": false, "\x97": false, "\xe6a": false,
		"\xe0\x80": false, "\xff": false, "\xc1": false, "\xed\xa0": false,
	} {
		if _, ok := matches(g, text); ok != begins {
			t.Errorf("%q is a prefix of a text: %v, expected %v", text, ok, begins)
		}
	}
	g = mustParse(t, `root ::= .*`)
	for _, text := range []string{"\xe0\x80", "\xed\xa0", "\xf4\x90", "\xf5", "\xc0", "\xe0\x9f", "\xf0\x8f", "\x80"} {
		if _, ok := matches(g, text); ok {
			t.Errorf("%q begins a text of UTF-8", text)
		}
	}
	if m := g.Matcher(byteVocabulary()); m.AcceptText([]byte("\xe6")) != nil || m.Done() {
		t.Error("a text may end inside a character")
	}
}

// TestRejected checks that a rejected token does not change the matcher.
func TestRejected(t *testing.T) {
	v := byteVocabulary()
	m := mustParse(t, `root ::= "abc"`).Matcher(v)
	for _, id := range []int32{'b', 256, -1, 1 << 20} {
		if err := m.Accept(id); !errors.Is(err, ErrRejected) {
			t.Errorf("token %d: error %v", id, err)
		}
	}
	if err := m.AcceptText([]byte("abd")); !errors.Is(err, ErrRejected) {
		t.Errorf("error %v", err)
	}
	for _, id := range []int32{'a', 'b', 'c'} {
		if err := m.Accept(id); err != nil {
			t.Error(err)
		}
	}
	if !m.Done() {
		t.Error("the text is not done")
	}
	if mask, err := m.Allowed(); err != nil || !slices.Equal(mask, v.mask()) {
		t.Errorf("after the end %v is allowed, error %v", mask, err)
	}
}

// TestReadings checks that a highly ambiguous grammar gives an error and does not hang.
func TestReadings(t *testing.T) {
	g := mustParse(t, `root ::= "a" root "b" x | "a" root "b" y | "a"
x ::= "x"
y ::= "y" | "x" "y"`)
	m := g.Matcher(byteVocabulary())
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		err = m.Accept('a')
	}
	if !errors.Is(err, ErrLimit) {
		t.Errorf("error %v, expected %v", err, ErrLimit)
	}
	if _, err = m.Allowed(); !errors.Is(err, ErrLimit) {
		t.Errorf("allowed: error %v, expected %v", err, ErrLimit)
	}
}

// TestLongText checks that long and deeply nested texts are matched in bounded memory.
func TestLongText(t *testing.T) {
	g := mustParse(t, `root ::= "[" (root ("," root)*)? "]"`)
	m := g.Matcher(byteVocabulary())
	const deep = 20000
	for _, s := range []string{strings.Repeat("[", deep), strings.Repeat("],[", 300000) + "]", strings.Repeat("]", deep-1)} {
		for len(s) > 0 {
			n := min(len(s), 1000)
			if err := m.AcceptText([]byte(s[:n])); err != nil {
				t.Fatal(err)
			}
			s = s[n:]
		}
		if len(m.a.nodes) > 2*resetNodes {
			t.Fatalf("%d nodes", len(m.a.nodes))
		}
	}
	if !m.Done() {
		t.Error("the text is not done")
	}
	flat := mustParse(t, `root ::= ("a" | "b" "c"?)* "."`).Matcher(byteVocabulary())
	if err := flat.AcceptText(bytes.Repeat([]byte("abcb"), 100000)); err != nil || len(flat.a.nodes) > 100 {
		t.Errorf("a text without nesting makes %d nodes, error %v", len(flat.a.nodes), err)
	}
}

// TestConcurrent runs matchers of one grammar in several goroutines and requires the masks of a single matcher.
func TestConcurrent(t *testing.T) {
	text := randomGrammar(testutil.Rand(t))
	v, g := byteVocabulary(), mustParse(t, text)
	want, err := mustParse(t, text).Matcher(v).Allowed()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	for range 4 {
		go func() {
			mask, err := g.Matcher(v).Allowed()
			done <- err == nil && slices.Equal(mask, want)
		}()
	}
	for range 4 {
		if !<-done {
			t.Error("the masks differ")
		}
	}
}

// FuzzParse checks that no grammar panics, and that masks agree with the accepted tokens.
func FuzzParse(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10 {
		f.Add(randomGrammar(rng), "ab")
	}
	f.Add("root ::= [a-\\x7f]{2,} (\"x\" | root)?", "aa")
	v := NewVocabulary([][]byte{[]byte("a"), []byte("b"), []byte("\""), []byte("ab"), []byte("\xe6"), []byte("\x97\xa5"), []byte("é")})
	f.Fuzz(func(t *testing.T, text, said string) {
		if len(text) > 2000 || len(said) > 100 {
			return
		}
		g, err := Parse(text)
		if err != nil {
			return
		}
		m := g.Matcher(v)
		if m.AcceptText([]byte(said)) != nil {
			return
		}
		mask, err := m.Allowed()
		if err != nil {
			return
		}
		for id := range int32(v.Size()) {
			if err := m.Clone().Accept(id); (err == nil) != mask.Has(id) && !errors.Is(err, ErrLimit) {
				t.Errorf("after %q: token %q: in the mask %v, error %v", said, v.tokens[id], mask.Has(id), err)
			}
		}
		if m.Done() && !utf8.ValidString(said) {
			t.Errorf("%q is complete", said)
		}
	})
}
