package llm

import (
	"context"
	"slices"
)

// guesses are tokens that may follow, which were computed together with one that does.
type guesses struct {
	draft []int32
	rows  []float32 // logits behind the token before the draft, and behind each of it
	right int       // how many of the draft have turned out right
	edits int       // of the session, when they were made
}

// lookupMost and lookupLeast are how many of the last tokens are looked for.
const (
	lookupMost  = 4
	lookupLeast = 2
)

// logits computes the logits behind the last token, perhaps with guesses of what follows it,
// unless a guess that was right has brought them.
func (g *generation) logits(ctx context.Context) error {
	if g.edits != g.s.edits {
		g.draft = nil // somebody else has changed the session
	}
	if g.draft == nil {
		return g.guess(ctx)
	}
	return nil
}

// reveal has the session expect what the pass has computed behind the guesses that are right.
func (g *generation) reveal() {
	v := g.s.m.config.Vocabulary
	g.s.advance(1)
	g.s.logits = append(g.s.logits[:0], g.rows[g.right*v:][:v]...)
}

// guess computes the last token together with a draft, if that is the only one to be computed and
// there are guesses and room, and otherwise what is not computed yet.
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
	if err := s.compute(ctx, passShape{1, g.most() + 1, allLogits}, tokens, g.rows); err != nil {
		return err
	}
	g.draft, g.right, g.edits = tokens[1:], 0, s.edits
	g.reveal()
	return nil
}

// most returns how many tokens are guessed at most, 0 where none are.
func (g *generation) most() int {
	o := &g.sampler.Sampling
	if o.Draft == nil {
		return o.Lookup
	}
	return max(o.Lookup, o.draftTokens())
}

// propose returns guesses of what follows: from the text, if it repeats itself, or else of the draft model.
func (g *generation) propose(ctx context.Context) ([]int32, error) {
	s, o := g.s, &g.sampler.Sampling
	room := s.m.context - len(s.tokens)
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

// confirm compares a token that was appended with the guess in its place.
func (g *generation) confirm(id int32) {
	g.edits = g.s.edits
	switch {
	case g.draft == nil:
	case g.right < len(g.draft) && g.draft[g.right] == id:
		g.right++
		g.reveal()
	default:
		g.draft = nil
	}
}

// follow returns n tokens that stood behind an earlier place with the same last tokens, the
// longest match first, then the latest; nil if there is none. What reaches the end goes on
// with itself.
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
