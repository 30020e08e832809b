package llm

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// drawn counts the tokens that are chosen from the logits.
func drawn(t *testing.T, o Sampling, logits, history []float32, n int) map[int32]int {
	t.Helper()
	var past []int32
	for _, h := range history {
		past = append(past, int32(h))
	}
	s := newSampler(o)
	counts := make(map[int32]int)
	for range n {
		tok, err := s.next(logits, past, nil)
		if err != nil {
			t.Fatal(err)
		}
		counts[tok.ID]++
	}
	return counts
}

// logOf returns logits whose softmax is p.
func logOf(p ...float64) []float32 {
	x := make([]float32, len(p))
	for i, v := range p {
		x[i] = float32(math.Log(v)) + 3
	}
	return x
}

// TestSampling chooses tokens of known probabilities.
func TestSampling(t *testing.T) {
	p := []float64{0.05, 0.4, 0.1, 0.3, 0.15}
	inf := float32(math.Inf(-1))
	const n = 40000
	for name, c := range map[string]struct {
		o       Sampling
		history []float32
		want    []float64 // probabilities, not normalised
	}{
		"greedy":      {Sampling{}, nil, []float64{0, 1, 0, 0, 0}},
		"temperature": {Sampling{Temperature: 1}, nil, p},
		"cold":        {Sampling{Temperature: 0.5}, nil, []float64{0.0025, 0.16, 0.01, 0.09, 0.0225}},
		"hot":         {Sampling{Temperature: 2}, nil, []float64{math.Sqrt(0.05), math.Sqrt(0.4), math.Sqrt(0.1), math.Sqrt(0.3), math.Sqrt(0.15)}},
		"top-k":       {Sampling{Temperature: 1, TopK: 3}, nil, []float64{0, 0.4, 0, 0.3, 0.15}},
		"top-p":       {Sampling{Temperature: 1, TopP: 0.69}, nil, []float64{0, 0.4, 0, 0.3, 0}},
		"top-p least": {Sampling{Temperature: 1, TopP: 0.01}, nil, []float64{0, 1, 0, 0, 0}},
		"min-p":       {Sampling{Temperature: 1, MinP: 0.3}, nil, []float64{0, 0.4, 0, 0.3, 0.15}},
		// The entropy is 1.39. The surprise of 0.3 is nearest to it, then that of 0.4.
		"typical":   {Sampling{Temperature: 1, Typical: 0.4}, nil, []float64{0, 0.4, 0, 0.3, 0}},
		"bias":      {Sampling{Temperature: 1, LogitBias: map[int32]float32{1: inf, 0: float32(math.Log(2)), 77: 1}}, nil, []float64{0.1, 0, 0.1, 0.3, 0.15}},
		"repeat":    {Sampling{Temperature: 1, RepeatPenalty: 2}, []float32{1, 1}, []float64{0.05, math.Exp((math.Log(0.4)+3)/2 - 3), 0.1, 0.3, 0.15}},
		"frequency": {Sampling{Temperature: 1, FrequencyPenalty: 1}, []float32{1, 3, 1}, []float64{0.05, 0.4 * math.Exp(-2), 0.1, 0.3 * math.Exp(-1), 0.15}},
		"presence":  {Sampling{Temperature: 1, PresencePenalty: 1}, []float32{1, 3, 1}, []float64{0.05, 0.4 * math.Exp(-1), 0.1, 0.3 * math.Exp(-1), 0.15}},
		"last":      {Sampling{Temperature: 1, PresencePenalty: 1, PenaltyLast: 1}, []float32{1, 3}, []float64{0.05, 0.4, 0.1, 0.3 * math.Exp(-1), 0.15}},
		"mask": {Sampling{Mask: func(_ []int32, x []float32) error {
			x[1], x[3] = inf, inf
			return nil
		}}, nil, []float64{0, 0, 0, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			sum := 0.0
			for _, w := range c.want {
				sum += w
			}
			c.o.Seed = 7
			counts := drawn(t, c.o, logOf(p...), c.history, n)
			for i, w := range c.want {
				w /= sum
				got := float64(counts[int32(i)]) / n
				if d := math.Abs(got - w); d > 5*math.Sqrt(w*(1-w)/n) {
					t.Errorf("token %d is chosen with %.4f, want %.4f", i, got, w)
				}
			}
		})
	}
}

func TestSamplingMistakes(t *testing.T) {
	nan := float32(math.NaN())
	m := openModel(t, openCPU(t), "llama", Options{})
	for _, o := range []Sampling{{Temperature: -1}, {Temperature: nan}, {TopP: 2}, {MinP: -1}, {Typical: nan}, {TopK: -1}, {MaxTokens: -1}, {TopLogProbs: -1}, {RepeatPenalty: -1},
		{Mask: func(_ []int32, x []float32) error {
			for i := range x {
				x[i] = float32(math.Inf(-1))
			}
			return nil
		}}} {
		s := m.NewSession()
		n := 0
		for _, err := range s.Generate(t.Context(), []int32{1}, o) {
			if n++; !errors.Is(err, ErrSampling) {
				t.Errorf("%+v: %v", o, err)
			}
		}
		if n != 1 {
			t.Errorf("%+v: %d tokens and errors", o, n)
		}
		s.Close()
	}
	mine := errors.New("mine")
	for _, err := range m.NewSession().Generate(t.Context(), []int32{1}, Sampling{Mask: func([]int32, []float32) error { return mine }}) {
		if !errors.Is(err, mine) {
			t.Error(err)
		}
	}
	if _, err := newSampler(Sampling{}).next([]float32{nan, nan}, nil, nil); !errors.Is(err, ErrSampling) {
		t.Error(err)
	}
}

// TestGenerate checks the tokens of one call, and that they depend on the seed.
func TestGenerate(t *testing.T) {
	m := openModel(t, openCPU(t), "llama", Options{})
	text := func(o Sampling) (ids []int32, tokens []Token) {
		s := m.NewSession()
		defer s.Close()
		for tok, err := range s.Generate(t.Context(), []int32{3, 1, 4}, o) {
			if err != nil {
				t.Fatal(err)
			}
			ids, tokens = append(ids, tok.ID), append(tokens, tok)
		}
		if got := s.Tokens(); !slices.Equal(got, append([]int32{3, 1, 4}, ids...)) {
			t.Errorf("the session has %v, generated were %v", got, ids)
		}
		return ids, tokens
	}
	o := Sampling{Temperature: 1.5, MaxTokens: 30, Seed: 5, LogProbs: true, TopLogProbs: 96}
	ids, tokens := text(o)
	if again, _ := text(o); !slices.Equal(ids, again) || len(ids) != 30 {
		t.Errorf("the same seed gave %v and %v", ids, again)
	}
	o.Seed = 6
	if other, _ := text(o); slices.Equal(ids, other) {
		t.Error("another seed gave the same tokens")
	}
	for _, tok := range tokens {
		sum, found := 0.0, false
		for i, p := range tok.Top {
			sum += math.Exp(float64(p.LogProb))
			if i > 0 && p.LogProb > tok.Top[i-1].LogProb {
				t.Fatalf("%v: not the most likely first", tok.Top)
			}
			found = found || p.ID == tok.ID && p.LogProb == tok.LogProb
		}
		if math.Abs(sum-1) > 1e-5 || !found {
			t.Fatalf("probabilities of all tokens add up to %v; the chosen one is among them: %v", sum, found)
		}
	}
	o.Stop = []int32{ids[0]}
	o.Seed = 5
	stopped, last := text(o)
	if len(stopped) != 1 || !last[0].Stop {
		t.Errorf("stopped at %d: %v", ids[0], last)
	}
}
