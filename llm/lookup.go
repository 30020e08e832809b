package llm

import (
	"context"
	"slices"
)

// guesses holds a draft of the next tokens, which a pass computed together with the last chosen token.
type guesses struct {
	draft []int32
	rows  []float32 // logits after the token before the draft, and after each token of the draft
	right int       // number of tokens of the draft that were confirmed
	edits int       // Session.edits when the guesses were made
}

// lookupMost and lookupLeast bound the number of last tokens whose earlier occurrence is searched.
const (
	lookupMost  = 4
	lookupLeast = 2
)

// logits computes the logits after the last token, possibly together with guesses of the next
// tokens, unless a correct guess has already computed them.
func (g *generation) logits(ctx context.Context) error {
	if g.edits != g.s.edits {
		g.draft = nil // another caller has changed the session
	}
	if g.draft == nil {
		return g.guess(ctx)
	}
	return nil
}

// reveal selects the logits after the confirmed guesses.
func (g *generation) reveal() {
	v := g.s.m.config.Vocabulary
	g.s.advance(1)
	g.s.logits = append(g.s.logits[:0], g.rows[g.right*v:][:v]...)
}

// guess computes the last token together with a draft, if it is the only token to compute, there
// are guesses, and the session has room; otherwise it computes the missing tokens.
func (g *generation) guess(ctx context.Context) error {
	s := g.s
	if s.done != len(s.tokens)-1 {
		return s.catchUp(ctx)
	}
	draft, err := g.propose(ctx)
	if err != nil {
		return err
	}
	if len(draft) > 0 {
		pages, ok := s.m.cache.take(s.pages, ceilDiv(len(s.tokens)+len(draft), PageSize))
		if s.pages = pages; !ok {
			draft = nil
		}
	}
	if len(draft) == 0 {
		return s.catchUp(ctx)
	}
	if err := s.own(ctx); err != nil {
		return err
	}
	if g.rows == nil {
		g.rows = make([]float32, (g.most()+1)*s.m.config.Vocabulary)
	}
	tokens := append([]int32{s.tokens[s.done]}, draft...)
	if err := g.check(ctx, tokens); err != nil {
		return err
	}
	g.draft, g.right, g.edits = tokens[1:], 0, s.edits
	s.guessed += len(draft)
	g.reveal()
	return nil
}

// check computes the logits after each of the tokens.
func (g *generation) check(ctx context.Context, tokens []int32) error {
	s := g.s
	if s.scheduler == nil || !s.m.cache.floats() {
		return s.compute(ctx, passShape{sequences: 1, rows: g.most() + 1, result: allLogits}, s.done, tokens, g.rows)
	}
	n := len(tokens)
	_, err := s.scheduler.compute(ctx, &request{s: s, start: s.done, tokens: tokens, what: lastLogits, results: n, y: g.rows[:n*s.m.config.Vocabulary]})
	return err
}

// most returns the maximum number of guessed tokens, 0 for no guessing.
func (g *generation) most() int {
	o := &g.sampler.Sampling
	if o.Draft == nil {
		return o.Lookup
	}
	return max(o.Lookup, o.draftTokens())
}

// allowed returns the maximum number of tokens that may be guessed now. It is 0 if the other
// sessions of the scheduler leave no room.
func (g *generation) allowed() int {
	n := g.most()
	if c := g.s.scheduler; n > 0 && c != nil {
		n = min(n, c.guesses())
	}
	return n
}

// propose returns guesses of the next tokens: from an earlier occurrence of the last tokens in the
// text, otherwise from the draft model.
func (g *generation) propose(ctx context.Context) ([]int32, error) {
	s, o := g.s, &g.sampler.Sampling
	room := min(s.m.context-len(s.tokens), g.allowed())
	draft := follow(s.tokens, min(o.Lookup, room))
	n := min(o.draftTokens(), room)
	if len(draft) > 0 || o.Draft == nil || n < 1 {
		return draft, nil
	}
	draft, err := o.Draft.guess(ctx, s.tokens, n)
	for i, id := range draft {
		if int(id) >= s.m.config.Vocabulary {
			return draft[:i], err
		}
	}
	return draft, err
}

// confirm compares an appended token with the guess at its position.
func (g *generation) confirm(id int32) {
	g.edits = g.s.edits
	switch {
	case g.draft == nil:
	case g.right < len(g.draft) && g.draft[g.right] == id:
		g.right++
		g.s.confirmed++
		g.reveal()
	default:
		g.draft = nil
	}
}

// follow returns the n tokens that followed an earlier occurrence of the last tokens: it prefers
// the longest match, then the latest one. It returns nil if there is no match. If the tokens reach
// the end of the text, it continues with the guessed tokens.
func follow(tokens []int32, n int) []int32 {
	for match := lookupMost; match >= lookupLeast && n > 0; match-- {
		for at := len(tokens) - match - 1; at >= 0; at-- {
			if slices.Equal(tokens[at:at+match], tokens[len(tokens)-match:]) {
				next := tokens[at+match:]
				all := slices.Clone(next[:min(n, len(next))])
				for i := 0; len(all) < n; i++ {
					all = append(all, all[i])
				}
				return all[:n]
			}
		}
	}
	return nil
}
