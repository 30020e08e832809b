package llm

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/convert"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/llm/tokenizer"
)

// realText is the text that llama.cpp generates after a prompt, with the most likely token each time.
type realText struct {
	Text   string
	Prompt []int32
	Tokens []int32
	Gaps   []float32 // difference of the two greatest logits, at each of Tokens
}

// realPerplexity has the predictions of llama.cpp for a long text.
type realPerplexity struct {
	Tokens []int32
	Top    []int32   // the most likely token after each token but the last
	Gaps   []float32 // difference of its logit and the next
	NLL    float64   // mean negative log-likelihood of Tokens
	NLLs   []float64 // means over the first 512, 1024 ...
}

// realGolden is a file real-NAME.json.
type realGolden struct {
	Greedy     []realText
	Perplexity *realPerplexity
}

// If the gap between the two greatest logits is at least realGap, both implementations must choose
// the same token. longGap is the limit after thousands of tokens, where the angles of positions are
// less accurate.
const (
	realGap = 1e-3
	longGap = 1e-2
	// roundedGap is the limit with 8-bit activations. With these, llama.cpp differs from itself by up to 0.4.
	roundedGap = 1.5
)

// realModels are decoders by the names of their goldens.
var realModels = map[string]string{"real-smollm2": testutil.SmolLM2, "real-gemma3": testutil.Gemma3}

func readReal[T any](t *testing.T, name string) (g T) {
	t.Helper()
	if err := json.Unmarshal(testutil.Unzip(t, "testdata/"+name+".json.gz"), &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// openReal opens a real model on the CPU.
func openReal(t *testing.T, path string, o Options) *Model {
	t.Helper()
	m, err := Open(t.Context(), openCPU(t), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// TestRealModels compares with llama.cpp: the tokens of the prompts, the most likely token after
// every token of the text, and the tokens of Generate up to the first one with a small gap.
func TestRealModels(t *testing.T) {
	for name, file := range realModels {
		t.Run(name, func(t *testing.T) {
			path := testutil.Model(t, file)
			g := readReal[realGolden](t, name)
			sameTokens(t, path, g.Greedy)
			m := openReal(t, path, Options{Context: 256, Cache: 1024, Exact: true})
			rnd := testutil.Rand(t)
			if testing.Short() {
				rnd.Shuffle(len(g.Greedy), func(i, j int) { g.Greedy[i], g.Greedy[j] = g.Greedy[j], g.Greedy[i] })
				g.Greedy = g.Greedy[:3]
			}
			rounded := openReal(t, path, Options{Context: 256, Cache: 1024})
			for i, x := range g.Greedy {
				follows(t, rounded, x, roundedGap)
				follows(t, m, x, realGap)
				if !testing.Short() || i == 0 {
					generates(t, m, x)
				}
			}
		})
	}
}

// sameTokens compares the tokens of prompts.
func sameTokens(t *testing.T, path string, texts []realText) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.New(f.Metadata())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range texts {
		if got := tok.Encode(x.Text, tokenizer.Options{AddSpecial: true, ParseSpecial: true}); !slices.Equal(got, x.Prompt) {
			t.Errorf("tokens of %q are %v, not %v", x.Text, got, x.Prompt)
		}
	}
}

// follows compares the most likely tokens after the prompt and after each token of a text.
func follows(t *testing.T, m *Model, x realText, least float32) {
	t.Helper()
	s := m.NewSession()
	defer s.Close()
	first := len(x.Prompt) - 1
	err := s.Evaluate(t.Context(), append(slices.Clone(x.Prompt), x.Tokens[:len(x.Tokens)-1]...), func(i int, logits []float32) error {
		if i -= first; i >= 0 {
			agreesOn(t, x.Text, i, logits, x.Tokens[i], x.Gaps[i], least)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// agreesOn fails the test if want does not have the greatest logit although llama.cpp's gap is above least.
func agreesOn(t *testing.T, text string, i int, logits []float32, want int32, gap, least float32) {
	t.Helper()
	if got := argmax(logits); got != want && gap > least {
		t.Errorf("%q: token %d is %d, not %d: logits %v and %v, where llama.cpp's are %v apart", text, i, got, want, logits[got], logits[want], gap)
	}
}

// generates compares the tokens of Generate.
func generates(t *testing.T, m *Model, x realText) {
	t.Helper()
	n := 0
	for n < len(x.Gaps) && x.Gaps[n] > realGap {
		n++
	}
	s := m.NewSession()
	defer s.Close()
	var got []int32
	for token, err := range s.Generate(t.Context(), x.Prompt, Sampling{MaxTokens: n, IgnoreEnd: true}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, token.ID)
	}
	if !slices.Equal(got, x.Tokens[:n]) {
		t.Errorf("%q goes on with %v, not %v", x.Text, got, x.Tokens[:n])
	}
}

// TestRealPerplexity compares the perplexity of a text of 8192 tokens (2048 for gemma). Short runs
// use only its beginning.
func TestRealPerplexity(t *testing.T) {
	for name, file := range realModels {
		t.Run(name, func(t *testing.T) {
			path := testutil.Model(t, file)
			g := readReal[realGolden](t, name).Perplexity
			n, want := len(g.Tokens), g.NLL
			if testing.Short() {
				n, want = 512, g.NLLs[0]
			}
			m := openReal(t, path, Options{Context: n, Exact: true})
			s := m.NewSession()
			defer s.Close()
			sum := 0.0
			err := s.Evaluate(t.Context(), g.Tokens[:n], func(i int, logits []float32) error {
				if i == n-1 {
					return nil
				}
				agreesOn(t, "the long text", i, logits, g.Top[i], g.Gaps[i], longGap)
				sum -= logProb(logits, g.Tokens[i+1])
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			got := sum / float64(n-1)
			if d := math.Abs(math.Exp(got-want) - 1); !(d <= 5e-3) {
				t.Errorf("perplexity of %d tokens is %v, not %v: off by %.3g", n, math.Exp(got), math.Exp(want), d)
			}
		})
	}
}

func logProb(logits []float32, id int32) float64 {
	top, sum := float64(logits[argmax(logits)]), 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - top)
	}
	return float64(logits[id]) - top - math.Log(sum)
}

// TestRealEmbeddings converts a real embedder from its safetensors file and compares embeddings
// with those of llama.cpp.
func TestRealEmbeddings(t *testing.T) {
	folder := testutil.Model(t, testutil.MiniLM)
	path := filepath.Join(t.TempDir(), "minilm.gguf")
	if err := convert.Folder(t.Context(), os.DirFS(folder), path, convert.Options{}); err != nil {
		t.Fatal(err)
	}
	texts := readReal[[]struct {
		Text      string
		Prompt    []int32
		Embedding []float32
	}](t, "real-minilm")
	m := openReal(t, path, Options{})
	for _, x := range texts {
		sameTokens(t, path, []realText{{Text: x.Text, Prompt: x.Prompt}})
		y, err := m.Embed(t.Context(), x.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		if d := worst(y, x.Embedding, 1); d > 1e-3 {
			t.Errorf("the embedding of %q is off by %.3g", x.Text, d)
		}
	}
}
