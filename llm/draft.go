package llm

import (
	"context"
	"fmt"
)

// defaultDraftTokens is how many tokens a draft model guesses at a time.
const defaultDraftTokens = 4

// guess returns n tokens that the session expects behind tokens, each the most likely one, or fewer: none where
// its model does not have a token, where it has no room, or where somebody else uses it. The session has the
// tokens and the guesses but the last afterwards; what it had in common with them it does not compute again.
func (s *Session) guess(ctx context.Context, tokens []int32, n int) ([]int32, error) {
	if !s.mu.TryLock() {
		return nil, nil
	}
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("the session that guesses: %w", ErrClosed)
	}
	if err := s.m.begin(); err != nil {
		return nil, err
	}
	defer s.m.users.Done()
	n = min(n, s.m.context-len(tokens))
	if n < 1 {
		return nil, nil
	}
	same := 0
	for same < min(len(tokens), len(s.tokens)) && s.tokens[same] == tokens[same] {
		same++
	}
	s.rewind(same)
	guesses, more := make([]int32, 0, n), tokens[same:]
	for {
		if err := s.add(more, true); err != nil {
			return nil, nil // no such tokens, or no room
		}
		if err := s.catchUp(ctx); err != nil {
			return nil, err
		}
		id := argmax(s.logits)
		if id < 0 {
			return guesses, nil
		}
		guesses = append(guesses, id)
		if len(guesses) == n {
			return guesses, nil
		}
		more = guesses[len(guesses)-1:]
	}
}
