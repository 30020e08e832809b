package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/internal/tinymodel"
	"github.com/rayo-go/rayo/llm/tokenizer"
)

func TestRun(t *testing.T) {
	var b bytes.Buffer
	// The model has a token for each character, and room for 512.
	if err := run(t.Context(), &b, tinymodel.Path(t), strings.Repeat("A line of a long text.\n", 20)); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), "part 1 of 2: ") {
		t.Errorf("%q, want two parts first", b.String())
	}
}

func TestSplit(t *testing.T) {
	f, err := gguf.Open(tinymodel.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.New(f.Metadata())
	if err != nil {
		t.Fatal(err)
	}
	text := "one two\n" + strings.Repeat("x", 45) + "three\n\nfour five\nsix\n"
	parts := split(tok, text, 20)
	if got, want := strings.Join(parts, ""), strings.ReplaceAll(text, "\n", ""); got != want { // the vocabulary has no ends of lines
		t.Errorf("%q, not %q", got, want)
	}
	for _, p := range parts {
		if n := len(tok.Encode(p, tokenizer.Options{})); n > 20 {
			t.Errorf("%q has %d tokens", p, n)
		}
	}
	if got := split(tok, "", 20); len(got) != 1 || got[0] != "" {
		t.Errorf("%q of no text", got)
	}
}
