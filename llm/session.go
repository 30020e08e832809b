package llm

import (
	"context"
	"fmt"
	"sync"
)

// Session is a text as tokens, with their keys and values in the cache. Its methods are safe for
// concurrent use, but run one at a time.
type Session struct {
	m         *Model
	scheduler *Scheduler // if not nil, it computes passes with results for one row

	mu     sync.Mutex
	closed bool
	tokens []int32
	done   int // number of tokens in the cache
	edits  int // number of times that tokens were appended or removed
	// prefixes has the ids of the full pages. Private pages have arbitrary contents and no ids.
	prefixes []int64
	private  bool
	pages    []int32
	logits   []float32 // logits after the last computed token, or nil
	top      []float32 // result of the last pass for bestToken or topTokens

	guessed, confirmed int // see Guesses
}

// NewSession returns an empty session. It takes memory from the cache as tokens are appended; Close
// returns the memory.
func (m *Model) NewSession() *Session { return &Session{m: m} }

// Model returns the model of the session.
func (s *Session) Model() *Model { return s.m }

// Len returns the number of tokens.
func (s *Session) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tokens)
}

// Tokens returns the tokens.
func (s *Session) Tokens() []int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int32(nil), s.tokens...)
}

// Guesses returns the number of tokens that [Session.Generate] has guessed in this session, with
// Sampling.Lookup or Sampling.Draft, and the number of guesses that were confirmed.
func (s *Session) Guesses() (guessed, confirmed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.guessed, s.confirmed
}

// use locks an open session.
func (s *Session) use() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("session: %w", ErrClosed)
	}
	if s.m.cache == nil {
		s.mu.Unlock()
		return fmt.Errorf("the model of architecture %s has no causal mask and thus no sessions: use Model.Embed: %w", s.m.config.Architecture, ErrModel)
	}
	if err := s.m.begin(); err != nil {
		s.mu.Unlock()
		return err
	}
	return nil
}

func (s *Session) unuse() {
	s.m.users.Done()
	s.mu.Unlock()
}

// Feed appends tokens and computes the logits after them, which [Session.Logits] returns.
//
// # Errors
//   - [ErrToken] for invalid tokens, and for an empty list in an empty session.
//   - [CapacityError] if there is no room; the session does not change.
//   - [ErrClosed] after Close of the session or the model.
//   - the error of ctx. The session then has the tokens, and the next call continues to compute them.
func (s *Session) Feed(ctx context.Context, tokens []int32) error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.unuse()
	if err := s.add(tokens, true); err != nil {
		return err
	}
	return s.catchUp(ctx)
}

// Logits returns the logits after the last token, one for each token of the vocabulary, or nil
// before Feed and after Rewind.
func (s *Session) Logits() []float32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logits == nil || s.done != len(s.tokens) {
		return nil
	}
	return append([]float32(nil), s.logits...)
}

// Evaluate appends tokens and calls each with the logits after each of the tokens, in order, for
// example to compute a perplexity. The slice is valid during the call. If each returns an error,
// Evaluate returns it, but still appends the tokens. The other errors are those of Feed.
func (s *Session) Evaluate(ctx context.Context, tokens []int32, each func(i int, logits []float32) error) error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.unuse()
	if len(s.tokens) > 0 && s.done < len(s.tokens) {
		if err := s.catchUp(ctx); err != nil {
			return err
		}
	}
	if err := s.add(tokens, false); err != nil {
		return err
	}
	v := s.m.config.Vocabulary
	rows := make([]float32, s.m.evaluated()*v)
	for i := 0; i < len(tokens); {
		n, err := s.pass(ctx, allLogits, rows)
		if err != nil {
			return err
		}
		for j := range n {
			if err := each(i+j, rows[j*v:][:v]); err != nil {
				return err
			}
		}
		i += n
		s.logits = append(s.logits[:0], rows[(n-1)*v:][:v]...)
	}
	return nil
}

// add appends tokens and takes pages for them. With adopt, an empty session takes the known pages
// with their beginning.
func (s *Session) add(tokens []int32, adopt bool) error {
	for i, t := range tokens {
		if t < 0 || int(t) >= s.m.config.Vocabulary {
			return fmt.Errorf("token %d at %d: not from 0 to %d: %w", t, i, s.m.config.Vocabulary-1, ErrToken)
		}
	}
	n := len(s.tokens) + len(tokens)
	if n > 0 && len(tokens) == 0 {
		return nil
	}
	if n == 0 {
		return fmt.Errorf("an empty session has no logits, feed it a token first: %w", ErrToken)
	}
	if n > s.m.context {
		return &CapacityError{Tokens: n, Capacity: s.m.context}
	}
	fresh := len(s.tokens) == 0
	if fresh && adopt {
		s.adopt(tokens)
	}
	pages, ok := s.m.cache.take(s.pages, ceilDiv(n, PageSize))
	if !ok {
		err := &CapacityError{Tokens: n, Capacity: (len(s.pages) + s.m.cache.available()) * PageSize, Shared: true}
		if fresh {
			s.m.cache.release(s.pages)
			s.pages, s.prefixes, s.done = nil, nil, 0
		}
		return err
	}
	s.pages = pages
	s.tokens = append(s.tokens, tokens...)
	s.edits++
	return nil
}

// catchUp computes the tokens that are not in the cache yet, and the logits after the last token.
func (s *Session) catchUp(ctx context.Context) error {
	if s.done == len(s.tokens) && s.logits != nil {
		return nil
	}
	s.done = min(s.done, len(s.tokens)-1) // compute the last token again if its logits are missing
	if s.logits == nil {
		s.logits = make([]float32, s.m.config.Vocabulary)
	}
	for s.done < len(s.tokens) {
		if _, err := s.pass(ctx, lastLogits, s.logits); err != nil {
			return err
		}
	}
	return nil
}

// likely computes the tokens that are not in the cache yet, and the most likely tokens after the last one.
func (s *Session) likely(ctx context.Context, what result) ([]float32, error) {
	s.done = min(s.done, len(s.tokens)-1)
	s.logits = nil
	n := 2 * what.tokens(s.m.config.Vocabulary)
	if cap(s.top) < n {
		s.top = make([]float32, n)
	}
	s.top = s.top[:n]
	for s.done < len(s.tokens) {
		if _, err := s.pass(ctx, what, s.top); err != nil {
			return nil, err
		}
	}
	return s.top, nil
}

// pass computes the next tokens and returns their number.
func (s *Session) pass(ctx context.Context, what result, y []float32) (int, error) {
	if err := s.own(ctx); err != nil {
		return 0, err
	}
	tokens := s.tokens[s.done:]
	if s.scheduler != nil && what.ofOneRow() {
		n, err := s.scheduler.compute(ctx, &request{s: s, start: s.done, tokens: tokens, what: what, results: 1, y: y})
		s.advance(n)
		return n, err
	}
	rows := s.m.rowsFor(len(tokens), what)
	tokens = tokens[:min(rows, len(tokens))]
	if err := s.compute(ctx, passShape{sequences: 1, rows: rows, result: what}, s.done, tokens, y); err != nil {
		return 0, err
	}
	s.advance(len(tokens))
	return len(tokens), nil
}

// compute runs a pass over tokens from position start on.
func (s *Session) compute(ctx context.Context, shape passShape, start int, tokens []int32, y []float32) error {
	p, err := s.m.pass(ctx, shape)
	if err != nil {
		return err
	}
	r := p.run()
	r.set(p, 0, tokens, start, s.pages)
	n := p.width
	if !shape.result.ofOneRow() {
		n *= shape.rows
	}
	return p.do(ctx, r, y[:n])
}

// rowsFor returns the number of rows of the next pass for the given number of tokens.
func (m *Model) rowsFor(tokens int, what result) int {
	if tokens == 1 {
		return 1
	}
	for _, rows := range shortChunks {
		// Up to three short passes are cheaper than a chunk if they have no more rows than it.
		rows = min(rows, m.chunk)
		fits := tokens < m.chunk && tokens <= 3*rows && ceilDiv(tokens, rows)*rows <= m.chunk
		if fits && (rows == fewTokens || what != allLogits) {
			return rows
		}
	}
	if what == allLogits {
		return m.evaluated()
	}
	return m.chunk
}

// evaluatedLogits limits the number of logits of a pass that returns them for all rows (32 MiB).
const evaluatedLogits = 8 << 20

// evaluated returns the maximum number of rows of a pass that returns the logits of all rows.
func (m *Model) evaluated() int {
	return max(min(fewTokens, m.chunk), min(m.chunk, evaluatedLogits/m.config.Vocabulary/fewTokens*fewTokens))
}

// own replaces shared pages for the next tokens by private copies.
func (s *Session) own(ctx context.Context) error {
	for i := s.done / PageSize; i < len(s.pages); i++ {
		if s.m.cache.claim(s.pages[i]) {
			continue
		}
		fresh, ok := s.m.cache.takeFor(nil, 1, 1)
		if !ok && s.m.cache.claim(s.pages[i]) {
			continue // Options.Reclaim has closed the other session
		}
		if !ok {
			return &CapacityError{Tokens: len(s.tokens), Capacity: i * PageSize, Shared: true}
		}
		if err := s.m.copyPage(ctx, s.pages[i], fresh[0]); err != nil {
			s.m.cache.copied(fresh)
			return err
		}
		s.m.cache.copied(s.pages[i : i+1])
		s.pages[i] = fresh[0]
	}
	return nil
}

// Rewind removes all tokens after the first n.
//
// The error is [ErrToken] if there are fewer, and [ErrClosed] after Close.
func (s *Session) Rewind(n int) error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.unuse()
	if n < 0 || n > len(s.tokens) {
		return fmt.Errorf("rewind to %d of %d tokens: %w", n, len(s.tokens), ErrToken)
	}
	s.rewind(n)
	return nil
}

// rewind is Rewind for a locked session; n must not exceed the number of tokens.
func (s *Session) rewind(n int) {
	if n == len(s.tokens) {
		return
	}
	s.tokens, s.done, s.logits = s.tokens[:n], min(s.done, n), nil
	s.edits++
	s.prefixes = s.prefixes[:min(len(s.prefixes), n/PageSize)]
	keep := 0
	if n > 0 {
		keep = ceilDiv(n, PageSize)
	}
	s.m.cache.release(s.pages[keep:])
	s.pages = s.pages[:keep]
}

// Fork returns another session with the same tokens. Both sessions share pages of the cache; a
// shared page is copied when one of them appends to it. The error is [ErrClosed] after Close.
func (s *Session) Fork() (*Session, error) {
	if err := s.use(); err != nil {
		return nil, err
	}
	defer s.unuse()
	f := &Session{m: s.m, scheduler: s.scheduler, done: s.done}
	f.tokens, f.prefixes, f.private = append(f.tokens, s.tokens...), append(f.prefixes, s.prefixes...), s.private
	f.pages = s.m.cache.share(s.pages)
	if s.logits != nil {
		f.logits = append([]float32(nil), s.logits...)
	}
	return f, nil
}

// Close returns the session's memory to the cache. A second Close does nothing.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.scheduler != nil {
		s.scheduler.gone(s)
	}
	if s.m.cache != nil {
		s.m.cache.release(s.pages)
	}
	s.pages, s.tokens, s.logits = nil, nil, nil
	return nil
}
