package llm

import (
	"context"
	"fmt"
	"iter"
	"slices"
)

// Generate appends tokens to the session and yields the tokens that the model generates after them,
// which it also appends to the session. Without tokens it continues after the session's last token.
//
// The sequence ends after Sampling.MaxTokens tokens, after a token of Sampling.Stop or of
// [Model.EndTokens], which has Stop set, or when the caller leaves the loop. An error comes with
// the zero Token and ends the sequence. When ctx is cancelled, it ends within one token.
//
// # Errors
//   - those of [Session.Feed]: a [CapacityError] when the session is full.
//   - [ErrSampling] for parameters out of their range, and if no token is allowed.
//   - the error of Sampling.Mask.
func (s *Session) Generate(ctx context.Context, tokens []int32, o Sampling) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		if err := o.check(); err != nil {
			yield(Token{}, err)
			return
		}
		if o.Draft == s {
			yield(Token{}, fmt.Errorf("sampling: Draft is the generating session itself: %w", ErrSampling))
			return
		}
		if c := s.scheduler; c != nil {
			c.enter()
			defer c.leave(s)
		}
		g := &generation{s: s, sampler: newSampler(o), next: tokens}
		for n := 0; o.MaxTokens == 0 || n < o.MaxTokens; n++ {
			t, err := g.step(ctx)
			if err != nil {
				yield(Token{}, err)
				return
			}
			if !yield(t, nil) || t.Stop {
				return
			}
		}
	}
}

// generation is one call of Generate.
type generation struct {
	s         *Session
	sampler   *sampler
	next      []int32 // tokens to append
	generated []int32
	guesses
}

// step computes and appends one token.
func (g *generation) step(ctx context.Context) (Token, error) {
	s := g.s
	if err := s.use(); err != nil {
		return Token{}, err
	}
	defer s.unuse()
	if err := ctx.Err(); err != nil {
		return Token{}, err
	}
	if err := s.add(g.next, true); err != nil {
		return Token{}, err
	}
	g.next = nil
	t, err := g.choose(ctx)
	if err != nil {
		return Token{}, err
	}
	t.Stop = slices.Contains(g.sampler.Stop, t.ID) || !g.sampler.IgnoreEnd && slices.Contains(s.m.ends, t.ID)
	if err := s.add([]int32{t.ID}, false); err != nil {
		return Token{}, err
	}
	g.generated = append(g.generated, t.ID)
	g.confirm(t.ID)
	return t, nil
}

// choose computes the logits after the last token and chooses a token. It uses the most likely
// tokens, which the device selects, if they suffice, and otherwise all logits.
func (g *generation) choose(ctx context.Context) (Token, error) {
	s := g.s
	known := s.done == len(s.tokens) && s.logits != nil
	if what := g.sampler.wants(); what != lastLogits && g.allowed() == 0 && !known {
		g.draft = nil
		top, err := s.likely(ctx, what)
		if err != nil {
			return Token{}, err
		}
		if t, ok := g.sampler.among(top); ok {
			return t, nil
		}
	}
	if err := g.logits(ctx); err != nil {
		return Token{}, err
	}
	return g.sampler.next(s.logits, s.tokens, g.generated)
}
