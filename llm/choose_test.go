package llm

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestChoiceOnDevice chooses tokens from the most likely ones that the device selects, and from all
// logits, and requires the same tokens.
func TestChoiceOnDevice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6)) // always the same texts, as in TestLookup
	dev := openCPU(t)
	for _, name := range []string{"llama", "qwen3", "gemma3"} {
		m := openModel(t, dev, name, Options{Context: 300, Sessions: 3, Chunk: 32})
		for i := range 8 {
			prompt := randomTokens(rnd, 1+rnd.IntN(80))
			o := []Sampling{{}, {Temperature: 0.7, TopK: 40}, {Temperature: 2, TopK: 1 + rnd.IntN(topCount), TopP: 0.9}, {Temperature: 1, TopK: 20, MinP: 0.01, Typical: 0.9}}[i%4]
			o.Seed, o.MaxTokens, o.IgnoreEnd = rnd.Uint64(), 40, true
			if o.wants() == lastLogits {
				t.Fatalf("%+v needs all logits", o)
			}
			s := m.NewSession()
			if got, want := idsOf(t, s, prompt, o), hostIDs(t, s, prompt, o); !slices.Equal(got, want) {
				t.Errorf("%s, %+v: %v on the device, %v by all logits", name, o, got, want)
			}
			_ = s.Close()
		}
	}
}

// TestChoicesTogether chooses the most likely tokens in sessions of a scheduler, some of them from all logits.
func TestChoicesTogether(t *testing.T) {
	rnd := testutil.Rand(t)
	m := openModel(t, openCPU(t), "llama", Options{Context: 200, Sessions: 20, Chunk: 32})
	sch := m.NewScheduler(4)
	defer sch.Close()
	var all sync.WaitGroup
	for i := range 9 {
		prompt := randomTokens(rnd, 1+rnd.IntN(80))
		o := []Sampling{{}, {LogProbs: true}, {Temperature: 1, TopK: 1}}[i%3]
		o.MaxTokens, o.IgnoreEnd = 40, true
		all.Go(func() {
			s := sch.NewSession()
			defer s.Close()
			text := slices.Concat(prompt, idsOf(t, s, prompt, o))
			likeliest(t, m, text, len(prompt), 1e-3)
		})
	}
	all.Wait()
}

// likeliest checks that each token after the prompt is the most likely one in a separate session.
// The logits may differ by a fraction of the greatest logit, because rounding may exchange similar
// logits.
func likeliest(t *testing.T, m *Model, text []int32, prompt int, tol float64) {
	t.Helper()
	s := m.NewSession()
	defer s.Close()
	err := s.Evaluate(t.Context(), text, func(at int, logits []float32) error {
		if at < prompt-1 || at == len(text)-1 {
			return nil
		}
		best, got := logits[argmax(logits)], logits[text[at+1]]
		if float64(best-got) > tol*greatest(logits) {
			t.Errorf("token %d has the logit %v, another one %v", at, got, best)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// idsOf returns the tokens that a session generates after a prompt.
func idsOf(t *testing.T, s *Session, prompt []int32, o Sampling) []int32 {
	t.Helper()
	if err := s.Rewind(0); err != nil {
		t.Error(err)
	}
	var ids []int32
	for tok, err := range s.Generate(t.Context(), prompt, o) {
		if err != nil {
			t.Error(err)
			return nil
		}
		ids = append(ids, tok.ID)
	}
	return ids
}

// hostIDs is idsOf with choices from all logits.
func hostIDs(t *testing.T, s *Session, prompt []int32, o Sampling) []int32 {
	t.Helper()
	o.LogitBias = map[int32]float32{-1: 0} // an invalid token, which only disables the choice on the device
	return idsOf(t, s, prompt, o)
}

// choosesOn compares choices on another device.
func choosesOn(t *testing.T, dev *device.Device) {
	t.Helper()
	m := openModel(t, dev, "qwen3", Options{Context: 60, Chunk: 16})
	s := m.NewSession()
	defer s.Close()
	for _, o := range []Sampling{{MaxTokens: 3}, {MaxTokens: 3, Temperature: 1, TopK: 30, Seed: 5}} {
		o.IgnoreEnd = true
		prompt := []int32{5, 17, 3}
		if got, want := idsOf(t, s, prompt, o), hostIDs(t, s, prompt, o); !slices.Equal(got, want) {
			t.Errorf("%+v: %v on the device, %v by all logits", o, got, want)
		}
	}
}

// TestAmong includes logits from which no token can be chosen.
func TestAmong(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		top  []float32
		want int32 // -1 for none
	}{
		{[]float32{3, 2, 40, 7}, 40}, {[]float32{3, inf, 40, 7}, 40}, {[]float32{inf, inf, 1, 2}, -1}, {[]float32{nan, 2, 1, 2}, -1}, {[]float32{3, nan, 1, 2}, -1},
	} {
		tok, ok := newSampler(Sampling{}).among(c.top)
		if ok != (c.want >= 0) || ok && tok.ID != c.want {
			t.Errorf("%v: %v, %v, want %d", c.top, tok.ID, ok, c.want)
		}
	}
}
