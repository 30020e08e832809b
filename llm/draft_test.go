package llm

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDraft checks that guesses do not change the tokens. One draft model has the same weights and
// is always right, another is mostly wrong.
func TestDraft(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4)) // as in TestLookup
	dev := openCPU(t)
	m := openModel(t, dev, "llama", Options{Context: 300, Cache: 10000, Chunk: 32})
	for _, other := range []string{"llama", "qwen3"} {
		draft := openModel(t, dev, other, Options{Context: 250, Chunk: 32}).NewSession()
		for i := range drafted() {
			prompt := randomTokens(rnd, 5+rnd.IntN(100))
			for _, o := range []Sampling{
				{MaxTokens: 80, RepeatPenalty: 1.1},
				{MaxTokens: 60, Temperature: 0.3, Seed: 3},
				{MaxTokens: 190 - len(prompt)}, // Until the draft session is full; the next case continues.
				{MaxTokens: 280 - len(prompt), IgnoreEnd: true},
			} {
				want := generated(t, m, prompt, o)
				o.Draft, o.DraftTokens, o.Lookup = draft, rnd.IntN(fewTokens), i%2*rnd.IntN(fewTokens)
				if got := generated(t, m, prompt, o); !slices.Equal(got, want) {
					t.Errorf("%v with guesses of %s, %v without", got, other, want)
				}
			}
		}
	}
}

// drafted is the number of prompts for each draft: one without and one with lookups, and in a long run two of each.
func drafted() int {
	if testing.Short() {
		return 2
	}
	return 4
}

// generated returns the tokens of Generate, and checks that the session then predicts the same
// next token as a fresh one.
func generated(t *testing.T, m *Model, prompt []int32, o Sampling) []int32 {
	t.Helper()
	s := m.NewSession()
	defer s.Close()
	var ids []int32
	for tok, err := range s.Generate(t.Context(), prompt, o) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, tok.ID)
	}
	if got := s.Tokens(); !slices.Equal(got, slices.Concat(prompt, ids)) {
		t.Fatalf("the session has %v", got)
	}
	if err := s.Feed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	near(t, "behind guesses", s.Logits(), fed(t, m, slices.Concat(prompt, ids)).Logits())
	return ids
}

// TestDraftPasses counts the passes of a model whose draft has the same weights, so that all guesses are right.
func TestDraftPasses(t *testing.T) {
	dev := openCPU(t)
	m := openModel(t, dev, "llama", Options{Context: 300})
	draft := openModel(t, openCPU(t), "llama", Options{Context: 300}).NewSession()
	before := dev.Stats().Submissions
	for _, err := range m.NewSession().Generate(t.Context(), []int32{1, 2, 3}, Sampling{MaxTokens: 100, IgnoreEnd: true, Draft: draft, DraftTokens: 9}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	// Ten tokens for each pass, except where two tokens are almost equally likely.
	if n := dev.Stats().Submissions - before; n > 20 {
		t.Errorf("%d passes for 100 tokens", n)
	}
}

// TestDraftErrors uses sessions that cannot guess.
func TestDraftErrors(t *testing.T) {
	dev := openCPU(t)
	m := openModel(t, dev, "llama", Options{Context: 100, Cache: 300})
	s, closed := m.NewSession(), m.NewSession()
	_ = closed.Close()
	for what, c := range map[string]struct {
		o    Sampling
		want error
	}{
		"itself":   {Sampling{Draft: s}, ErrSampling},
		"encoder":  {Sampling{Draft: openModel(t, dev, "bert", Options{}).NewSession()}, ErrSampling},
		"too many": {Sampling{Draft: m.NewSession(), DraftTokens: fewTokens}, ErrSampling},
		"closed":   {Sampling{Draft: closed}, ErrClosed},
	} {
		c.o.MaxTokens = 5
		var last error
		for _, err := range s.Generate(t.Context(), []int32{1, 2}, c.o) {
			last = err
		}
		if !errors.Is(last, c.want) {
			t.Errorf("%s: %v, want %v", what, last, c.want)
		}
	}
	// A draft session in use by another goroutine guesses nothing and does not block.
	busy := m.NewSession()
	busy.mu.Lock()
	defer busy.mu.Unlock()
	if got := generated(t, m, []int32{1, 2}, Sampling{MaxTokens: 5, IgnoreEnd: true, Draft: busy}); len(got) != 5 {
		t.Errorf("%v with a busy draft", got)
	}
}
