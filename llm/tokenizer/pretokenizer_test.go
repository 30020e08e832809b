package tokenizer

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestWords compares the words with those of the expressions in the models' own tokenizers.
func TestWords(t *testing.T) {
	for _, c := range []struct{ names, text, want string }{
		{"gpt-2", "I'll say  hello123, World!!\n\n x", "I|'ll| say| | hello|123|,| World|!!|\n\n| x"},
		{"gpt-2", "DON'T 日本語 3.14  ", "DON|'|T| 日本語| 3|.|14|  "},
		{"llama-bpe llama3", "I'LL say  hello12345, World!!\n\n x", "I|'LL| say| | hello|123|45|,| World|!!\n\n| x"},
		{"llama-bpe", "\t\tx\r\n  \n y   ", "\t|\tx|\r\n  \n| y|   "},
		{"qwen2 deepseek-r1-qwen", "a 123 (b)", "a| |1|2|3| (|b|)"},
		{"qwen35", "cafe\u0301 ok", "cafe\u0301| ok"},
		{"qwen2", "cafe\u0301 ok", "cafe|\u0301| ok"},
		{"smollm starcoder", "a 123 b2", "a| |1|2|3| b|2"},
		{"falcon", "a12345!b", "a|123|45|!|b"},
		{"default", "a $12345 b!", "a| |$|123|45| b|!"},
		{"deepseek-v3", "x 12345 日本abc .foo ?!\n", "x| |123|45| |日本|abc| .|foo| ?!\n"},
		{"deepseek-coder", "ab 12\n日本 ..", "ab| |1|2|\n|日本| .."},
		{"deepseek-llm", "Ab, cd!日本12 \n ", "Ab|,| cd|!|日本|12| |\n| "},
		{"gemma4", "a b\n\nc", "a b|\n\n|c"},
		{"gpt-4o", "HelloWorld's CAMELcase/x 1234", "Hello|World's| CAMELcase|/x| |123|4"},
		{"tekken", "HelloWorld's 12 a/\n", "Hello|World|'s| |1|2| a|/\n"},
		{"bloom", "one two,three. four", "one| two|,|three|.| four"},
		{"seed-coder", "a !!\n12", "a| !!|\n|1|2"},
		{"bailingmoe", "it'S\n\nok", "it|'S|\n\n|ok"},
	} {
		for _, name := range strings.Fields(c.names) {
			w, err := wordsOf(name)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			split(w.compiled, c.text, func(s string) { got = append(got, s) })
			if !slices.Equal(got, strings.Split(c.want, "|")) {
				t.Errorf("%s: %q: %q, expected %q", name, c.text, got, c.want)
			}
		}
	}
}

// TestPreTokenizers checks that all names compile, and that the concatenated words of random text are the text.
func TestPreTokenizers(t *testing.T) {
	rng := testutil.Rand(t)
	names := preTokenizerNames()
	if len(names) != len(slices.Compact(slices.Clone(names))) {
		t.Errorf("a name is in the table twice: %q", names)
	}
	for _, name := range names {
		w, err := wordsOf(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			text := randomText(rng, 30)
			var all strings.Builder
			split(w.compiled, text, func(s string) {
				if s == "" {
					t.Fatalf("%s: %q has an empty word", name, text)
				}
				all.WriteString(s)
			})
			if all.String() != text {
				t.Fatalf("%s: the words of %q are %q", name, text, all.String())
			}
		}
	}
}

// TestPattern compares with package regexp for expressions that it supports.
func TestPattern(t *testing.T) {
	rng := testutil.Rand(t)
	// \s of package regexp matches only ASCII, so the texts have no other white space.
	chars := []rune("aAbB'sS 1٣\n\r\t!/.é日Ǆǅʰ\u0301—$")
	for _, expr := range []string{
		`[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+`,
		`(?i:'s|a1)|[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s)?|\p{N}{2}`,
		` ?[^(\s|.,!?)]+|[\--/]|b?B`,
	} {
		p, err := compilePattern(expr)
		if err != nil {
			t.Fatal(err)
		}
		re := regexp.MustCompile("^(?:" + expr + ")")
		for range 3000 {
			var s strings.Builder
			for range 1 + rng.IntN(8) {
				s.WriteRune(chars[rng.IntN(len(chars))])
			}
			if got, want := p.match(s.String()), len(re.FindString(s.String())); got != want {
				t.Fatalf("%s: %q: matches %d bytes, expected %d", expr, s.String(), got, want)
			}
		}
	}
	for _, bad := range []string{"(a", "[a", `\p{Xy}`, "(?:ab)+", "a{2,1}", "a)", `(?!ab)`, `a\`} {
		if _, err := compilePattern(bad); err == nil {
			t.Errorf("%q compiles", bad)
		}
	}
}
