package llm

import (
	"context"
	"fmt"
)

// defaultDraftTokens is the default of Sampling.DraftTokens.
const defaultDraftTokens = 4

// guess returns the n most likely tokens after tokens, one after the other, or fewer. It returns
// none if the session's model lacks one of the tokens, if the session is full, or if another
// goroutine uses it. Afterwards the session contains the tokens and all guesses except the last; it
// computes only the tokens after the common prefix with its earlier tokens.
func (s *Session) guess(ctx context.Context, tokens []int32, n int) ([]int32, error) {
	if !s.mu.TryLock() {
		return nil, nil
	}
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("the draft session: %w", ErrClosed)
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
			return nil, nil // the model lacks a token, or the session is full
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
