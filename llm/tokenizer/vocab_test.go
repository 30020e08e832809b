package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/gguf"
)

// metadata returns metadata with the given values under tokenizer.ggml.
func metadata(values map[string]gguf.Value) *gguf.Metadata {
	m := new(gguf.Metadata)
	for k, v := range values {
		if err := m.Set(prefix+k, v); err != nil {
			panic(err)
		}
	}
	return m
}

// smallSPM is a vocabulary with bytes, a few characters and pieces of them with random scores, so
// that all orders of merging occur. It also has the control tokens.
func smallSPM(rng *rand.Rand, controls ...string) map[string]gguf.Value {
	texts, kinds := []string{"<unk>", "<s>", "</s>"}, []int32{2, 3, 3}
	for b := range 256 {
		texts, kinds = append(texts, fmt.Sprintf("<0x%02X>", b)), append(kinds, 6)
	}
	texts, kinds = append(texts, "<user>", "[inst]"), append(kinds, 4, 3)
	chars := []string{"▁", "a", "b", "ab", "é", "▁a", "aa", "▁▁", "ba", "日"}
	joining := []string{"", "é", "aé", "abé日"}[rng.IntN(4)] // characters that may precede a space inside a piece
	seen := map[string]bool{}
	for len(chars) > 0 && len(texts) < 330 {
		text := chars[rng.IntN(len(chars))]
		for range rng.IntN(3) {
			text += chars[rng.IntN(len(chars))]
		}
		if !seen[text] && joinedBy(text, joining) {
			seen[text] = true
			texts, kinds = append(texts, text), append(kinds, 1)
		}
	}
	for _, text := range controls {
		if !seen[text] {
			texts, kinds = append(texts, text), append(kinds, 3)
		}
	}
	scores := make([]float32, len(texts))
	for i := range scores {
		scores[i] = float32(rng.IntN(20)) - 10
	}
	return map[string]gguf.Value{
		"model": gguf.NewValue("llama"), "tokens": gguf.NewArray(texts), "token_type": gguf.NewArray(kinds), "scores": gguf.NewArray(scores),
	}
}

// joinedBy reports whether only certain characters precede the spaces inside a text.
func joinedBy(text, joining string) bool {
	last := '▁'
	for _, r := range text {
		if r == '▁' && last != '▁' && !strings.ContainsRune(joining, last) {
			return false
		}
		last = r
	}
	return true
}

// smallBPE is a vocabulary of all bytes and random merges. Some merges give no token.
func smallBPE(rng *rand.Rand, pre string) map[string]gguf.Value {
	var texts []string
	var kinds []int32
	for _, text := range byteText {
		texts, kinds = append(texts, text), append(kinds, 1)
	}
	parts := strings.Split("a b c Ġ Ġ Ċ é 日", " ")
	parts[5], parts[6], parts[7] = byteText['\n'], byteText[0xC3], byteText[0xA9]
	var merges []string
	seen := map[string]bool{}
	for len(merges) < 60 {
		l, r := parts[rng.IntN(len(parts))], parts[rng.IntN(len(parts))]
		if seen[l+r] || len(l+r) > 12 {
			continue
		}
		seen[l+r] = true
		merges, parts = append(merges, l+" "+r), append(parts, l+r)
		if rng.IntN(8) > 0 {
			texts, kinds = append(texts, l+r), append(kinds, 1)
		}
	}
	texts, kinds = append(texts, "<|end|>", "<|user|>", "<note>"), append(kinds, 3, 3, 4)
	return map[string]gguf.Value{
		"model": gguf.NewValue("gpt2"), "pre": gguf.NewValue(pre), "tokens": gguf.NewArray(texts), "token_type": gguf.NewArray(kinds),
		"merges": gguf.NewArray(merges), "bos_token_id": gguf.NewValue(uint32(len(texts) - 2)), "add_bos_token": gguf.NewValue(true),
	}
}

// smallGemma is the vocabulary of smallSPM with merges in random order in place of scores.
func smallGemma(rng *rand.Rand) map[string]gguf.Value {
	values := smallSPM(rng)
	texts, _ := gguf.Slice[string](values["tokens"])
	var merges []string
	for _, l := range texts[261:] {
		for _, r := range texts[261:] {
			if slices.Contains(texts, l+r) {
				merges = append(merges, l+" "+r)
			}
		}
	}
	rng.Shuffle(len(merges), func(i, j int) { merges[i], merges[j] = merges[j], merges[i] })
	delete(values, "scores")
	values["model"], values["merges"] = gguf.NewValue("gemma4"), gguf.NewArray(merges)
	return values
}

// smallWPM is a vocabulary of bert.
func smallWPM() map[string]gguf.Value {
	texts := strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] ▁un ▁a ff able ▁runn ing ▁resume ▁, ▁. ▁日 ▁本 ▁e ▁$ ▁x")
	kinds := make([]int32, len(texts))
	for i := range kinds {
		kinds[i] = 1
		if i < 5 {
			kinds[i] = 3
		}
	}
	return map[string]gguf.Value{
		"model": gguf.NewValue("bert"), "tokens": gguf.NewArray(texts), "token_type": gguf.NewArray(kinds),
		"padding_token_id": gguf.NewValue(uint32(0)), "unknown_token_id": gguf.NewValue(uint32(1)), "cls_token_id": gguf.NewValue(uint32(2)),
		"bos_token_id": gguf.NewValue(uint32(2)), "seperator_token_id": gguf.NewValue(uint32(3)), "mask_token_id": gguf.NewValue(uint32(4)),
	}
}

// randomText returns text of characters that the small vocabularies know, and some others.
func randomText(rng *rand.Rand, n int) string {
	parts := []string{"a", "b", "c", "aa", "ab", " ", "  ", "é", "日", "\n", "x", "\xff", "\xe6\x97", "▁", "'s", "12", "!", "<user>", "<note>"}
	var s strings.Builder
	for range n {
		s.WriteString(parts[rng.IntN(len(parts))])
	}
	return s.String()
}
