package llm

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Sampling has the options for choosing each token and for ending the text. The zero value chooses
// the most likely token each time, until the model ends the text or the session is full.
//
// The options are applied in the order of the fields: bias, Mask, penalties, TopK, Typical, TopP,
// MinP, Temperature.
type Sampling struct {
	// LogitBias is added to the logits of tokens; -Inf forbids one.
	LogitBias map[int32]float32
	// Mask, if not nil, may change the logits, for example to -Inf where a grammar does
	// not allow a token. generated are the tokens that this call has yielded.
	Mask func(generated []int32, logits []float32) error

	// The penalties apply to tokens that occur among the last tokens. RepeatPenalty, of 1 or more,
	// divides their positive logits and multiplies their other logits; 0 means 1. FrequencyPenalty
	// is subtracted once for each occurrence, and PresencePenalty once.
	RepeatPenalty, FrequencyPenalty, PresencePenalty float32
	// PenaltyLast is the number of last tokens of the session for penalties. 0 means 64, a negative
	// number means all tokens.
	PenaltyLast int

	TopK    int     // keeps the TopK most likely tokens; 0 keeps all
	Typical float32 // typical sampling: keeps the tokens whose surprise is nearest to the expected surprise, up to this total probability; 0 and 1 keep all
	TopP    float32 // keeps the smallest set of most likely tokens with at least this total probability; 0 and 1 keep all
	MinP    float32 // keeps tokens with at least this fraction of the probability of the most likely one

	// Temperature divides the logits of the kept tokens; 0 means the most likely token.
	Temperature float32
	// Seed is the seed of the random numbers. The same prompt, options and seed give the same tokens
	// again on the same device if the passes have the same numbers of rows. A pass with another number
	// of rows may use another kernel, which rounds differently. The numbers change if other sessions
	// of a Scheduler share the passes, if the beginning of the prompt is in the cache, and with Lookup or
	// Draft. Without [Options.Exact] the difference may change a token; with it, it rarely does.
	Seed uint64

	// LogProbs adds the log-probability to each token, computed before any other option applies.
	// TopLogProbs adds the log-probabilities of that many most likely tokens.
	LogProbs    bool
	TopLogProbs int

	// Lookup, if not 0, is the number of tokens that are guessed and checked in one pass (prompt
	// lookup decoding): the tokens that followed an earlier occurrence of the last few tokens. The
	// generated tokens are the same as without Lookup, except for the rounding of different
	// kernels. Texts that repeat their prompt, such as summaries and edited code, are generated
	// faster. The maximum is 15.
	Lookup int

	// Draft, if not nil, is a session of a smaller model with the same vocabulary. It guesses
	// DraftTokens tokens at a time (0 means 4, the maximum is 15), which are checked in one pass.
	// Guesses of Lookup have priority. The generated tokens are the same as without Draft, as for
	// Lookup. The draft session takes over the tokens of the generating session and drops its other
	// tokens. It serves one text at a time: while another goroutine uses it, there are no guesses.
	// The sessions of a Scheduler that generate at the same time check at most 16 tokens together
	// in a pass, so each of many sessions guesses fewer tokens, and more than 8 sessions guess
	// none.
	//
	//	small, err := llm.Open(ctx, dev, "small.gguf", llm.Options{})
	//	...
	//	o.Draft = small.NewSession()
	Draft       *Session
	DraftTokens int

	MaxTokens int     // 0 for no limit
	Stop      []int32 // tokens that end the text in addition to the model's own
	IgnoreEnd bool    // do not stop at Model.EndTokens
}

// TokenProb is a token and the logarithm of its probability.
type TokenProb struct {
	ID      int32
	LogProb float32
}

// Token is a token that was chosen.
type Token struct {
	ID      int32
	LogProb float32     // with Sampling.LogProbs
	Top     []TokenProb // with Sampling.TopLogProbs, the most likely first
	// Stop means that the token, which is the last one, ended the text: it is in Sampling.Stop or
	// Model.EndTokens.
	Stop bool
}

// check returns an ErrSampling for parameters out of their range.
func (o *Sampling) check() error {
	for _, p := range []struct {
		name      string
		v         float32
		low, high float32
	}{
		{"RepeatPenalty", o.RepeatPenalty, 0, math.MaxFloat32},
		{"FrequencyPenalty", o.FrequencyPenalty, -math.MaxFloat32, math.MaxFloat32},
		{"PresencePenalty", o.PresencePenalty, -math.MaxFloat32, math.MaxFloat32},
		{"Typical", o.Typical, 0, 1}, {"TopP", o.TopP, 0, 1}, {"MinP", o.MinP, 0, 1},
		{"Temperature", o.Temperature, 0, math.MaxFloat32},
	} {
		if !(p.v >= p.low && p.v <= p.high) {
			return fmt.Errorf("%s is %v, expected %v to %v: %w", p.name, p.v, p.low, p.high, ErrSampling)
		}
	}
	for _, p := range []struct {
		name string
		v    int
	}{{"TopK", o.TopK}, {"TopLogProbs", o.TopLogProbs}, {"MaxTokens", o.MaxTokens}} {
		if p.v < 0 {
			return fmt.Errorf("%s is %d, expected 0 or more: %w", p.name, p.v, ErrSampling)
		}
	}
	if o.Lookup < 0 || o.Lookup >= fewTokens {
		return fmt.Errorf("sampling: Lookup is %d, expected 0 to %d: %w", o.Lookup, fewTokens-1, ErrSampling)
	}
	if o.DraftTokens < 0 || o.DraftTokens >= fewTokens {
		return fmt.Errorf("sampling: DraftTokens is %d, expected 0 to %d: %w", o.DraftTokens, fewTokens-1, ErrSampling)
	}
	if o.Draft != nil && o.Draft.m.cache == nil {
		return fmt.Errorf("sampling: Draft is a session of a model of architecture %s without a causal mask, which cannot guess tokens: %w", o.Draft.m.config.Architecture, ErrSampling)
	}
	return nil
}

// draftTokens returns the number of tokens that the draft model guesses at a time.
func (o *Sampling) draftTokens() int {
	if o.DraftTokens == 0 {
		return defaultDraftTokens
	}
	return o.DraftTokens
}

// sampler chooses tokens.
type sampler struct {
	Sampling
	rnd        *rand.Rand
	logits     []float32
	candidates []candidate
	counts     map[int32]int
}

// candidate is a token that may be chosen.
type candidate struct {
	id    int32
	logit float32
	p     float64
}

func newSampler(o Sampling) *sampler {
	return &sampler{Sampling: o, rnd: rand.New(rand.NewPCG(o.Seed, 0)), counts: make(map[int32]int)}
}

// next chooses a token. history has the tokens of the session, and generated the last of them.
func (s *sampler) next(logits []float32, history, generated []int32) (Token, error) {
	s.logits = append(s.logits[:0], logits...)
	for id, v := range s.LogitBias {
		if id >= 0 && int(id) < len(s.logits) {
			s.logits[id] += v
		}
	}
	if s.Mask != nil {
		if err := s.Mask(generated, s.logits); err != nil {
			return Token{}, err
		}
	}
	s.penalise(history)
	id, err := s.choose()
	if err != nil {
		return Token{}, err
	}
	t := Token{ID: id}
	if s.LogProbs || s.TopLogProbs > 0 {
		s.report(logits, &t)
	}
	return t, nil
}

// wants returns the kind of result that suffices to choose a token.
func (o *Sampling) wants() result {
	switch {
	case o.Mask != nil || len(o.LogitBias) > 0 || o.penalises() || o.LogProbs || o.TopLogProbs > 0:
		return lastLogits
	case o.greedy():
		return bestToken
	case o.TopK > 0 && o.TopK <= topCount:
		return topTokens
	}
	return lastLogits
}

// penalises reports whether there are penalties.
func (o *Sampling) penalises() bool {
	return o.RepeatPenalty != 0 && o.RepeatPenalty != 1 || o.FrequencyPenalty != 0 || o.PresencePenalty != 0
}

// among chooses one of the most likely tokens. The first half of top is their logits in descending order, the second half
// their token numbers. The result is false if top is empty or a logit is NaN.
func (s *sampler) among(top []float32) (Token, bool) {
	n := len(top) / 2
	s.candidates = s.candidates[:0]
	for i, x := range top[:n] {
		if x != x || i == 0 && math.IsInf(float64(x), -1) {
			return Token{}, false
		}
		if s.listed(x, top[0]) {
			s.candidates = append(s.candidates, candidate{id: int32(top[n+i]), logit: x})
		}
	}
	if s.greedy() {
		return Token{ID: s.candidates[0].id}, true
	}
	return Token{ID: s.decide()}, true
}

// greedy reports whether sampling always chooses the most likely token.
func (o *Sampling) greedy() bool { return o.Temperature == 0 || o.TopK == 1 }

// penalise lowers the logits of tokens that occur among the last ones.
func (s *sampler) penalise(history []int32) {
	if !s.penalises() {
		return
	}
	n := s.PenaltyLast
	if n == 0 {
		n = 64
	}
	if n < 0 || n > len(history) {
		n = len(history)
	}
	clear(s.counts)
	for _, id := range history[len(history)-n:] {
		s.counts[id]++
	}
	repeat := cmp.Or(s.RepeatPenalty, 1)
	for id, count := range s.counts {
		x := s.logits[id]
		if x > 0 {
			x /= repeat
		} else {
			x *= repeat
		}
		s.logits[id] = x - float32(count)*s.FrequencyPenalty - s.PresencePenalty
	}
}

// choose returns a token for the current logits.
func (s *sampler) choose() (int32, error) {
	best := argmax(s.logits)
	if best < 0 {
		return 0, fmt.Errorf("no token is allowed, or the logits are NaN: %w", ErrSampling)
	}
	if s.greedy() {
		return best, nil
	}
	s.gather(s.logits[best])
	return s.decide(), nil
}

// decide chooses one of the sorted candidates.
func (s *sampler) decide() int32 {
	if s.TopK > 0 && s.TopK < len(s.candidates) {
		s.candidates = s.candidates[:s.TopK]
	}
	if s.Typical > 0 && s.Typical < 1 {
		s.typical()
	}
	if s.TopP > 0 && s.TopP < 1 {
		s.topP()
	}
	if s.MinP > 0 {
		floor := s.candidates[0].logit + float32(math.Log(float64(s.MinP)))
		n := 1
		for n < len(s.candidates) && s.candidates[n].logit >= floor {
			n++
		}
		s.candidates = s.candidates[:n]
	}
	return s.draw()
}

// argmax returns the first greatest logit that is above -Inf, or -1.
func argmax(logits []float32) int32 {
	best, top := int32(-1), float32(math.Inf(-1))
	for i, x := range logits {
		if x > top {
			best, top = int32(i), x
		}
	}
	return best
}

// byLogit orders candidates by descending logit.
func byLogit(x, y candidate) int {
	if c := cmp.Compare(y.logit, x.logit); c != 0 {
		return c
	}
	return cmp.Compare(x.id, y.id)
}

// listed reports whether a token can be chosen, given the greatest logit: a random number of 53
// bits never chooses a token with less than e^-40 of the greatest probability.
func (o *Sampling) listed(x, top float32) bool { return x >= top-40*max(1, o.Temperature) }

// gather lists the candidates by descending logit.
func (s *sampler) gather(top float32) {
	s.candidates = s.candidates[:0]
	for i, x := range s.logits {
		if s.listed(x, top) {
			s.candidates = append(s.candidates, candidate{id: int32(i), logit: x})
		}
	}
	slices.SortFunc(s.candidates, byLogit)
}

// weigh computes the probabilities of the candidates at a temperature.
func (s *sampler) weigh(temperature float32) {
	top, sum := float64(s.candidates[0].logit), 0.0
	for _, c := range s.candidates {
		top = max(top, float64(c.logit))
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		c.p = math.Exp((float64(c.logit) - top) / float64(temperature))
		sum += c.p
	}
	for i := range s.candidates {
		s.candidates[i].p /= sum
	}
}

// topP keeps the most likely candidates.
func (s *sampler) topP() {
	s.weigh(1)
	sum := 0.0
	for i, c := range s.candidates {
		if sum += c.p; sum >= float64(s.TopP) {
			s.candidates = s.candidates[:i+1]
			return
		}
	}
}

// typical keeps the candidates whose surprise is nearest to the expected surprise.
func (s *sampler) typical() {
	s.weigh(1)
	entropy := 0.0
	for _, c := range s.candidates {
		if c.p > 0 {
			entropy -= c.p * math.Log(c.p)
		}
	}
	far := func(c candidate) float64 { return math.Abs(-math.Log(c.p) - entropy) }
	slices.SortStableFunc(s.candidates, func(x, y candidate) int { return cmp.Compare(far(x), far(y)) })
	sum := 0.0
	for i, c := range s.candidates {
		if sum += c.p; sum >= float64(s.Typical) {
			s.candidates = s.candidates[:i+1]
			break
		}
	}
	slices.SortFunc(s.candidates, byLogit)
}

// draw chooses a candidate at random.
func (s *sampler) draw() int32 {
	s.weigh(s.Temperature)
	u := s.rnd.Float64()
	for _, c := range s.candidates {
		if u -= c.p; u < 0 {
			return c.id
		}
	}
	return s.candidates[0].id // the sum of the probabilities may be slightly less than 1
}

// report sets the log-probabilities of a token.
func (s *sampler) report(logits []float32, t *Token) {
	top := float64(logits[max(argmax(logits), 0)])
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - top)
	}
	norm := top + math.Log(sum)
	prob := func(id int32) float32 { return float32(float64(logits[id]) - norm) }
	t.LogProb = prob(t.ID)
	n := min(s.TopLogProbs, len(logits))
	if n == 0 {
		return
	}
	best := make([]candidate, 0, n+1)
	for i, x := range logits {
		c := candidate{id: int32(i), logit: x}
		if len(best) == n && byLogit(c, best[n-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, c, byLogit)
		best = slices.Insert(best, at, c)
		best = best[:min(len(best), n)]
	}
	for _, c := range best {
		t.Top = append(t.Top, TokenProb{c.id, prob(c.id)})
	}
}
