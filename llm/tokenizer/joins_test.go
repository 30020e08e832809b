package tokenizer

import "testing"

// TestJoins checks where texts are cut, for vocabularies with different merged symbols.
func TestJoins(t *testing.T) {
	for _, c := range []struct {
		symbols    []string
		text, want string
	}{
		{nil, "a b  c", "a| b|  c"},
		{[]string{"▁a", "▁▁", "ab"}, "  a b▁▁ c ", "  a| b|▁▁ c| "},
		{[]string{"▁▁a", ">▁</"}, "<p> </p> <a>▁x é  y", "<p> </p> <a>▁x| é|  y"},
		{[]string{"é▁"}, "é a é", "é a| é"},
		{[]string{"日▁▁b"}, "日  b c日 d", "日  b| c日 d"},
	} {
		var j joins
		for _, s := range c.symbols {
			j.add(s)
		}
		got := ""
		j.words(c.text, func(word string) { got += "|" + word })
		if got[1:] != c.want {
			t.Errorf("symbols %q: %q is cut into %q, want %q", c.symbols, c.text, got[1:], c.want)
		}
	}
}
