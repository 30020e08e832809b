package tokenizer

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/internal/testutil"
)

func must(t testing.TB, values map[string]gguf.Value) *Tokenizer {
	t.Helper()
	tok, err := New(metadata(values))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestMergeSPM compares with the definition: merge the pair of the highest score, the
// leftmost of equal ones, until there is none. Merges make control tokens too.
func TestMergeSPM(t *testing.T) {
	rng := testutil.Rand(t)
	for range 60 {
		tok := must(t, smallSPM(rng, "a▁", "a▁a", "b▁", "ab▁▁"))
		m := tok.model.(*spm)
		for range 50 {
			text := strings.ReplaceAll(randomText(rng, rng.IntN(30)), "<user>", "")
			var parts []string
			if text != "" {
				for s := strings.ReplaceAll(" "+text, " ", space); s != ""; s = s[runeLen(s):] {
					parts = append(parts, s[:runeLen(s)])
				}
			}
			for {
				best, at := uint32(noMerge), -1
				for i := range len(parts) - 1 {
					if id, ok := tok.ID(parts[i] + parts[i+1]); ok && m.prios[id] < best {
						best, at = m.prios[id], i
					}
				}
				if at < 0 {
					break
				}
				parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
			}
			var want []int32
			for _, p := range parts {
				if id, ok := tok.ID(p); ok {
					want = append(want, id)
					continue
				}
				for i := range len(p) {
					want = append(want, 3+int32(p[i]))
				}
			}
			if got := tok.Encode(text, Options{}); !slices.Equal(got, want) {
				t.Fatalf("%q: ids %v, expected %v", text, got, want)
			}
		}
	}
}

// TestMergeBPE compares with the definition: merge the pair of the lowest rank, the leftmost of
// equal ones, until there is none.
func TestMergeBPE(t *testing.T) {
	rng := testutil.Rand(t)
	for range 30 {
		values := smallBPE(rng, "gpt-2")
		tok := must(t, values)
		merges, _ := gguf.Slice[string](values["merges"])
		for range 50 {
			text := strings.ReplaceAll(randomText(rng, rng.IntN(30)), "<note>", "")
			var want []int32
			split(tok.model.(*bpe).words.compiled, text, func(word string) { want = append(want, naiveBPE(tok, merges, word)...) })
			if got := tok.Encode(text, Options{}); !slices.Equal(got, want) {
				t.Fatalf("%q: ids %v, expected %v", text, got, want)
			}
			if got := tok.Decode(want, DecodeOptions{}); got != text {
				t.Fatalf("%q: decoded %q", text, got)
			}
		}
	}
}

// TestMergeGemma compares with the definition, as TestMergeBPE does, where merging begins with
// characters.
func TestMergeGemma(t *testing.T) {
	rng := testutil.Rand(t)
	for range 30 {
		values := smallGemma(rng)
		tok := must(t, values)
		merges, _ := gguf.Slice[string](values["merges"])
		for range 30 {
			text := strings.ReplaceAll(randomText(rng, rng.IntN(30)), "<user>", "")
			var want []int32
			split(tok.model.(*bpe).words.compiled, text, func(word string) {
				var parts []string
				for s := strings.ReplaceAll(word, " ", space); s != ""; s = s[runeLen(s):] {
					parts = append(parts, s[:runeLen(s)])
				}
				for _, p := range mergeParts(merges, parts) {
					if id, ok := tok.ID(p); ok {
						want = append(want, id)
						continue
					}
					for i := range len(p) {
						want = append(want, 3+int32(p[i]))
					}
				}
			})
			if got := tok.Encode(text, Options{}); !slices.Equal(got, want) {
				t.Fatalf("%q: ids %v, expected %v", text, got, want)
			}
			_, spaced := tok.ID(space)
			if got := tok.Decode(want, DecodeOptions{}); spaced && got != strings.ReplaceAll(text, space, " ") {
				t.Fatalf("%q: decoded %q", text, got)
			}
		}
	}
}

func naiveBPE(tok *Tokenizer, merges []string, word string) (ids []int32) {
	var parts []string
	for i := range len(word) {
		parts = append(parts, byteText[word[i]])
	}
	for _, p := range mergeParts(merges, parts) {
		if id, ok := tok.ID(p); ok {
			ids = append(ids, id)
			continue
		}
		for _, r := range p {
			id, _ := tok.ID(string(r))
			ids = append(ids, id)
		}
	}
	return ids
}

// mergeParts merges as often as there is a pair among the merges.
func mergeParts(merges, parts []string) []string {
	for {
		best, at := len(merges), -1
		for i := range len(parts) - 1 {
			if rank := slices.Index(merges, parts[i]+" "+parts[i+1]); rank >= 0 && rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			break
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
	return parts
}

func TestWPM(t *testing.T) {
	tok := must(t, smallWPM())
	for text, want := range map[string]string{
		"Unaffable":       "[UNK]",
		"unable":          "▁un able",
		"Running, x.":     "▁runn ing ▁, ▁x ▁.",
		"Résumé\x00":      "▁resume",
		"日本 日":            "▁日 ▁本 ▁日",
		"x$x é":           "▁x ▁$ ▁x ▁e",
		" \t\u00a0\u200b": "",
	} {
		var got []string
		for _, id := range tok.Encode(text, Options{}) {
			got = append(got, tok.Text(id))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, expected %q", text, got, want)
		}
	}
	if got := tok.Encode("x", Options{AddSpecial: true}); !slices.Equal(got, []int32{2, 18, 3}) {
		t.Errorf("with special tokens: %v", got)
	}
	if got := tok.Decode([]int32{2, 5, 8, 18, 3}, DecodeOptions{}); got != "unable x" {
		t.Errorf("decoded %q", got)
	}
}

func TestSpecialTokens(t *testing.T) {
	tok := must(t, smallBPE(rand.New(rand.NewPCG(1, 1)), "llama-bpe"))
	end, _ := tok.ID("<|end|>")
	user, _ := tok.ID("<|user|>")
	note, _ := tok.ID("<note>")
	text := "<|user|>a<note>b<|end|>"
	got := tok.Encode(text, Options{AddSpecial: true, ParseSpecial: true})
	a, b := tok.Encode("a", Options{}), tok.Encode("b", Options{})
	if want := slices.Concat([]int32{user}, a, []int32{note}, b, []int32{end}); !slices.Equal(got, want) {
		t.Errorf("parsed: %v, expected %v with one BOS", got, want)
	}
	if got = tok.Encode(text, Options{AddSpecial: true}); got[0] != user || slices.Contains(got[1:], user) || slices.Contains(got, end) || !slices.Contains(got, note) {
		t.Errorf("not parsed: %v, expected BOS and the user-defined token", got)
	}
	if !tok.EndsGeneration(end) || tok.EndsGeneration(user) || tok.Special().EOT != end || tok.Special().EOS != None {
		t.Errorf("ends: %v, special %+v", tok.EndTokens(), tok.Special())
	}
	ids := []int32{user, a[0], end, -1, 1 << 30}
	if got := tok.Decode(ids, DecodeOptions{}); got != "a" {
		t.Errorf("decoded %q", got)
	}
	if got := tok.Decode(ids, DecodeOptions{Special: true}); got != "<|user|>a<|end|>" {
		t.Errorf("decoded with special tokens %q", got)
	}
	if p := tok.Pieces(); len(p) != tok.Size() || p[end] != nil || string(p[note]) != "<note>" || string(p[a[0]]) != "a" {
		t.Errorf("pieces of the special tokens: %q %q %q", p[end], p[note], p[a[0]])
	}
	if tok.Kind(end) != Control || tok.Kind(-1) != 0 || tok.Text(1<<30) != "" || tok.Piece(-1) != nil {
		t.Error("invalid ids have text or properties")
	}
}

// TestSpaceBeforeText checks that encoding adds a space at the beginning and after each special
// token, and that decoding drops only the space at the beginning.
func TestSpaceBeforeText(t *testing.T) {
	tok := must(t, smallSPM(rand.New(rand.NewPCG(1, 2))))
	ids := tok.Encode(" a", Options{AddSpecial: true})
	if ids[0] != tok.Special().BOS || tok.Decode(ids, DecodeOptions{}) != " a" || tok.Decode(ids[1:], DecodeOptions{Continue: true}) != "  a" {
		t.Errorf("ids %v decoded %q", ids, tok.Decode(ids, DecodeOptions{}))
	}
	if got := tok.Decode(tok.Encode("a<user>b", Options{}), DecodeOptions{}); got != "a<user> b" {
		t.Errorf("decoded %q", got)
	}
	values := smallSPM(rand.New(rand.NewPCG(1, 2)))
	values["add_space_prefix"] = gguf.NewValue(false)
	if tok = must(t, values); tok.Decode(tok.Encode(" a", Options{}), DecodeOptions{}) != " a" {
		t.Error("without add_space_prefix, the space is lost")
	}
}

// TestStream checks that streams return whole characters, and that their concatenation is the result of Decode.
func TestStream(t *testing.T) {
	rng := testutil.Rand(t)
	for _, values := range []map[string]gguf.Value{smallBPE(rng, "default"), smallSPM(rng)} {
		tok := must(t, values)
		for range 200 {
			ids := make([]int32, rng.IntN(20))
			for i := range ids {
				ids[i] = int32(rng.IntN(tok.Size()+2) - 1)
			}
			if rng.IntN(2) == 0 {
				ids = tok.Encode("日本é𝄞"+randomText(rng, 4), Options{})
			}
			o := DecodeOptions{Special: rng.IntN(2) == 0, Continue: rng.IntN(2) == 0}
			want := tok.Decode(ids, o)
			s := tok.Stream(o)
			var got strings.Builder
			for _, id := range ids {
				text := s.Next(id)
				if utf8.ValidString(want) && !utf8.ValidString(text) {
					t.Fatalf("%v: %q has incomplete characters", ids, text)
				}
				got.WriteString(text)
			}
			rest := s.Flush()
			if utf8.ValidString(want) && rest != "" {
				t.Fatalf("%v: %q is left of %q", ids, rest, want)
			}
			if got.WriteString(rest); got.String() != want {
				t.Fatalf("%v: streamed %q, decoded %q", ids, got.String(), want)
			}
		}
	}
}

// TestStripPhi checks that special tokens of phi3 strip the white space after them.
func TestStripPhi(t *testing.T) {
	m := metadata(smallSPM(rand.New(rand.NewPCG(1, 3))))
	if err := m.Set("general.name", gguf.NewValue("Phi-3-mini")); err != nil {
		t.Fatal(err)
	}
	tok, err := New(m)
	if err != nil {
		t.Fatal(err)
	}
	got, want := tok.Encode("[inst]\n  \na", Options{ParseSpecial: true}), tok.Encode("[inst]a", Options{ParseSpecial: true})
	if !slices.Equal(got, want) {
		t.Errorf("ids %v, expected %v", got, want)
	}
}

// TestDamaged checks that damaged vocabularies give an error of the right kind with the key.
func TestDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	spm, bpe, wpm := func() map[string]gguf.Value { return smallSPM(rng) }, func() map[string]gguf.Value { return smallBPE(rng, "qwen2") }, smallWPM
	for _, c := range []struct {
		of    func() map[string]gguf.Value
		key   string
		value gguf.Value
		want  error
	}{
		{spm, "model", gguf.NewValue("t5"), ErrUnsupported},
		{spm, "model", gguf.NewValue(uint32(3)), ErrVocabulary},
		{spm, "tokens", gguf.NewValue("x"), ErrVocabulary},
		{spm, "tokens", gguf.NewArray([]int32{1}), ErrVocabulary},
		{spm, "tokens", gguf.NewArray([]string{}), ErrVocabulary},
		{bpe, "tokens", gguf.NewArray([]string{strings.Repeat("x", 5000)}), ErrVocabulary},
		{spm, "scores", gguf.NewArray([]float32{1}), ErrVocabulary},
		{spm, "token_type", gguf.NewArray([]string{"a"}), ErrVocabulary},
		{spm, "bos_token_id", gguf.NewValue(uint32(1 << 20)), ErrVocabulary},
		{spm, "eos_token_id", gguf.NewValue("x"), ErrVocabulary},
		{spm, "add_bos_token", gguf.NewValue("x"), ErrVocabulary},
		{bpe, "pre", gguf.NewValue("nobody's"), ErrUnsupported},
		{bpe, "merges", gguf.NewArray([]string{"a b", "ab"}), ErrVocabulary},
		{bpe, "merges", gguf.NewArray([]string{""}), ErrVocabulary},
		{bpe, "merges", gguf.NewArray([]int32{1}), ErrVocabulary},
		{wpm, "unknown_token_id", gguf.NewValue(int32(-1)), ErrVocabulary},
	} {
		values := c.of()
		values[c.key] = c.value
		_, err := New(metadata(values))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.key) && c.key != "tokens" {
			t.Errorf("%s = %v: error %v, expected %v that names the key", c.key, c.value, err, c.want)
		}
	}
	if _, err := New(new(gguf.Metadata)); !errors.Is(err, ErrVocabulary) {
		t.Errorf("no metadata: error %v", err)
	}
}

// TestLongTexts encodes texts that are one word. Merging in quadratic time would take minutes.
func TestLongTexts(t *testing.T) {
	n := 10 << 20
	if testing.Short() {
		n = 1 << 20
	}
	rng := rand.New(rand.NewPCG(1, 5))
	for _, values := range []map[string]gguf.Value{smallBPE(rng, "gpt-4o"), smallSPM(rng), smallWPM()} {
		tok := must(t, values)
		for _, c := range []string{"a", "A", " ", "\n", "\xff", "!", "1", "é"} {
			text := strings.Repeat(c, n/len(c)/40)
			ids := tok.Encode(text, Options{})
			if _, lossy := tok.model.(*wpm); !lossy && tok.Decode(ids, DecodeOptions{}) != text {
				t.Errorf("decoding the ids of %q repeated gives another text", c)
			}
		}
	}
	text := strings.Repeat("a", n)
	tok := must(t, smallBPE(rng, "gpt-2"))
	if tok.Decode(tok.Encode(text, Options{}), DecodeOptions{}) != text {
		t.Error("decoding the ids of a long word gives another text")
	}
}

// TestConcurrent uses one tokenizer in several goroutines and requires the results of a single goroutine.
func TestConcurrent(t *testing.T) {
	rng := testutil.Rand(t)
	tok := must(t, smallBPE(rng, "llama3"))
	text := randomText(rng, 2000)
	want := tok.Encode(text, Options{})
	done := make(chan bool)
	for range 4 {
		go func() { done <- slices.Equal(tok.Encode(text, Options{}), want) }()
	}
	for range 4 {
		if !<-done {
			t.Error("ids differ")
		}
	}
}

// FuzzEncode checks that no text causes a panic, and that decoding the ids of a text returns the text.
func FuzzEncode(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 6))
	var toks []*Tokenizer
	for _, p := range preTokenizers {
		if p.chars {
			continue // smallGemma has separate byte tokens
		}
		toks = append(toks, must(f, smallBPE(rng, strings.Fields(p.names)[0])))
	}
	toks = append(toks, must(f, smallSPM(rng)), must(f, smallWPM()), must(f, smallGemma(rng)))
	for range 20 {
		f.Add(randomText(rng, 8))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range toks {
			tok.Encode(text, Options{AddSpecial: true, ParseSpecial: true})
			ids := tok.Encode(text, Options{})
			if m, ok := tok.model.(*bpe); ok && !m.words.chars && tok.Decode(ids, DecodeOptions{}) != text {
				t.Errorf("%q decoded %q", text, tok.Decode(ids, DecodeOptions{}))
			}
		}
	})
}

// FuzzNew checks that no metadata causes a panic.
func FuzzNew(f *testing.F) {
	f.Add("llama", "a\nb\n<0x0A>", "a b", int32(3), float32(1))
	f.Add("gpt2", "a\nb\nab", "a b", int32(1), float32(1))
	f.Add("bert", "[UNK]\n▁a", "", int32(0), float32(0))
	f.Fuzz(func(t *testing.T, model, tokens, merges string, n int32, score float32) {
		texts := strings.Split(tokens, "\n")
		kinds := make([]int32, len(texts))
		for i := range kinds {
			kinds[i] = int32(i) % 7
		}
		tok, err := New(metadata(map[string]gguf.Value{
			"model": gguf.NewValue(model), "tokens": gguf.NewArray(texts), "merges": gguf.NewArray(strings.Split(merges, "\n")),
			"token_type": gguf.NewArray(kinds), "scores": gguf.NewArray(slices.Repeat([]float32{score}, len(texts))),
			"bos_token_id": gguf.NewValue(n), "unknown_token_id": gguf.NewValue(n),
		}))
		if err != nil {
			return
		}
		ids := tok.Encode(tokens+merges, Options{AddSpecial: true, ParseSpecial: true})
		if s := tok.Stream(DecodeOptions{}); len(ids) > 0 && !bytes.Equal([]byte(tok.Decode(ids[:1], DecodeOptions{})), []byte(s.Next(ids[0])+s.Flush())) {
			t.Error("stream and text differ")
		}
	})
}
