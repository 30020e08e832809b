package assistant

import (
	"testing"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/tokenizer"
)

// TestHalfCharacter ends a text after the first byte of a character of two bytes.
func TestHalfCharacter(t *testing.T) {
	m := new(gguf.Metadata)
	for k, v := range map[string]gguf.Value{"model": gguf.NewValue("gpt2"), "pre": gguf.NewValue("gpt-2"), "tokens": gguf.NewArray([]string{"a", "Ã"}),
		"token_type": gguf.NewArray([]int32{1, 1}), "merges": gguf.NewArray([]string{})} {
		if err := m.Set("tokenizer.ggml."+k, v); err != nil {
			t.Fatal(err)
		}
	}
	tok, err := tokenizer.New(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Piece{{}, {Tokens: []llm.Token{{Stop: true}}}} {
		g := &generation{r: &Request{Stop: []string{"ab"}}, stream: tok.Stream(tokenizer.DecodeOptions{})}
		text := ""
		for _, id := range []int32{0, 0, 1} {
			more, _ := g.text(g.stream.Next(id))
			text += more
		}
		if err := g.finish(p, Truncated, func(p Piece, _ error) bool { text += p.Text; return true }); err != nil || text != "aa" {
			t.Errorf("%q, %v, want the two whole characters", text, err)
		}
	}
}
