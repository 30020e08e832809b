package tokenizer

import (
	"slices"
	"testing"

	"github.com/rayo-go/rayo/gguf"
)

// byteVocabulary returns a vocabulary of the printable ASCII characters as bytes, without merges, and of
// more tokens, which the file marks as user-defined.
func byteVocabulary(more ...string) map[string]gguf.Value {
	var texts []string
	var kinds []int32
	for b := '!'; b <= '~'; b++ {
		texts, kinds = append(texts, string(b)), append(kinds, 1)
	}
	for _, text := range more {
		texts, kinds = append(texts, text), append(kinds, 4)
	}
	return map[string]gguf.Value{
		"model": gguf.NewValue("gpt2"), "pre": gguf.NewValue("qwen2"), "merges": gguf.NewArray([]string{}),
		"tokens": gguf.NewArray(texts), "token_type": gguf.NewArray(kinds), "unknown_token_id": gguf.NewValue(uint32(0)),
	}
}

// TestPurposes checks that tokens with well-known texts are control tokens, whatever the file says, and that the
// right ones end answers. llama.cpp v0.5.0 gives the same ids.
func TestPurposes(t *testing.T) {
	const first = '~' - '!' + 1 // the id of the first token in more
	for _, c := range []struct {
		more []string
		ends []int32 // indices into more
	}{
		{[]string{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|file_sep|>", "<|repo_name|>"}, []int32{3, 4, 5}},
		{[]string{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "<eos>", "<end_of_turn>"}, []int32{3, 4}},
		{[]string{"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "[EOT]", "[EOS]", "<|tool_response>", "</s>"}, []int32{3, 4, 5}},
		{[]string{"<|prefix|>", "<|suffix|>", "<|middle|>", "<|return|>", "<|call|>", "<|end|>"}, []int32{3, 4}},
		{[]string{"<PRE>", "<SUF>", "<MID>", "<|flush|>", "<|calls|>", "<|end|>"}, []int32{3, 4}},
		{[]string{"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "<|end|>", "<|call|>"}, []int32{3, 4}},
	} {
		tok := must(t, byteVocabulary(c.more...))
		var ends []int32
		for _, i := range c.ends {
			ends = append(ends, first+i)
		}
		if got := tok.EndTokens(); !slices.Equal(got, ends) {
			t.Errorf("%q: ends are %d, expected %d", c.more, got, ends)
		}
		if s := tok.Special(); s.FIMPrefix != first || s.FIMSuffix != first+1 || s.FIMMiddle != first+2 {
			t.Errorf("%q: special tokens %+v", c.more, s)
		}
		for i, text := range c.more {
			parsed := slices.Equal(tok.Encode(text, Options{ParseSpecial: true}), []int32{first + int32(i)})
			plain := slices.Equal(tok.Encode(text, Options{}), []int32{first + int32(i)})
			if own := text == "</s>"; !parsed || plain != own {
				t.Errorf("%s: a token with ParseSpecial %v, without %v", text, parsed, plain)
			}
		}
	}
}

// TestMissingBytes checks that bytes without a token are left out, and do not become the unknown token.
func TestMissingBytes(t *testing.T) {
	tok := must(t, byteVocabulary())
	if got := tok.Encode("aé\n!", Options{}); !slices.Equal(got, []int32{'a' - '!', 0}) {
		t.Errorf("ids %v", got)
	}
}
