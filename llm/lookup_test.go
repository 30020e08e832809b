package llm

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLookup checks that guesses do not change the tokens, whether most of them are right or few.
func TestLookup(t *testing.T) {
	// The seed is fixed, because rounding may exchange two tokens that are almost equally likely.
	rnd := rand.New(rand.NewPCG(1, 2))
	m := openModel(t, openCPU(t), "llama", Options{Context: 300, Cache: 10000, Chunk: 32})
	for range 4 {
		prompt := randomTokens(rnd, 5+rnd.IntN(100))
		for _, o := range []Sampling{
			{MaxTokens: 100}, // the text soon repeats itself
			{MaxTokens: 60, Temperature: 0.3, Seed: 3, RepeatPenalty: 1.05},
			{MaxTokens: 30, Temperature: 1, Seed: 4, LogitBias: map[int32]float32{7: 9, 8: 8}},
		} {
			want := generated(t, m, prompt, o)
			o.Lookup = 1 + rnd.IntN(fewTokens-1)
			if got := generated(t, m, prompt, o); !slices.Equal(got, want) {
				t.Errorf("%v with guesses, %v without", got, want)
			}
		}
	}
}

// TestLookupPasses counts passes over a text that repeats itself: guesses must save most of them.
func TestLookupPasses(t *testing.T) {
	dev := openCPU(t)
	m := openModel(t, dev, "llama", Options{Context: 300})
	passes := func(lookup int) int64 {
		s := m.NewSession()
		defer s.Close()
		before := dev.Stats().Submissions
		for _, err := range s.Generate(t.Context(), []int32{1, 2, 3}, Sampling{MaxTokens: 200, Lookup: lookup, LogitBias: map[int32]float32{7: 1000}}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		return dev.Stats().Submissions - before
	}
	if with, without := passes(7), passes(0); with > without/4 {
		t.Errorf("%d passes with guesses, %d without", with, without)
	}
}

func TestFollow(t *testing.T) {
	for _, c := range []struct {
		tokens []int32
		n      int
		want   []int32
	}{
		{nil, 3, nil},
		{[]int32{1, 2}, 3, nil},
		{[]int32{1, 2, 1, 2}, 3, []int32{1, 2, 1}}, // a period of two
		{[]int32{1, 2, 3, 9, 2, 3, 4, 1, 2, 3}, 3, []int32{9, 2, 3}}, // the longer match, not the later one
		{[]int32{2, 3, 5, 2, 3, 6, 2, 3}, 2, []int32{6, 2}},          // the later of equally long matches
		{[]int32{2, 3, 5, 2, 3, 6, 2, 3}, 0, nil},
	} {
		if got := follow(c.tokens, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.tokens, got, c.want)
		}
	}
}
