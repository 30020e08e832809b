package llm

import (
	"context"
	"fmt"
	"math"
)

// Embed returns the embedding of tokens: the states after the last layer, pooled as the file
// specifies and normalised to length 1. Models without a causal mask, such as bert, process all
// tokens at once. The others process them in chunks.
//
// # Errors
//   - [ErrToken] for no tokens, and for invalid tokens.
//   - [CapacityError] for more tokens than the context.
//   - [ErrClosed] after Close, and the error of ctx.
func (m *Model) Embed(ctx context.Context, tokens []int32) ([]float32, error) {
	y, err := m.pooled(ctx, tokens)
	if err != nil {
		return nil, err
	}
	sum := 0.0
	for _, v := range y {
		sum += float64(v) * float64(v)
	}
	if sum > 0 {
		f := 1 / math.Sqrt(sum)
		for i := range y {
			y[i] = float32(float64(y[i]) * f)
		}
	}
	return y, nil
}

// pooled is Embed without the normalisation.
func (m *Model) pooled(ctx context.Context, tokens []int32) ([]float32, error) {
	if len(tokens) == 0 {
		return nil, fmt.Errorf("an embedding of no tokens: %w", ErrToken)
	}
	p := pool{kind: m.config.Pooling, sum: make([]float64, m.config.Width), total: len(tokens)}
	var err error
	if m.cache == nil {
		err = m.encode(ctx, tokens, &p)
	} else {
		s := m.NewSession()
		err = s.states(ctx, tokens, &p)
		_ = s.Close()
	}
	if err != nil {
		return nil, err
	}
	return p.result(), nil
}

// pool pools states incrementally.
type pool struct {
	kind        Pooling
	sum         []float64
	seen, total int
}

func (p *pool) add(states []float32, n int) {
	w := len(p.sum)
	for i := range n {
		at := p.seen + i
		if p.kind == PoolingCLS && at > 0 || p.kind == PoolingLast && at < p.total-1 {
			continue
		}
		for j, v := range states[i*w:][:w] {
			p.sum[j] += float64(v)
		}
	}
	p.seen += n
}

func (p *pool) result() []float32 {
	n := 1
	if p.kind != PoolingCLS && p.kind != PoolingLast {
		n = p.total
	}
	y := make([]float32, len(p.sum))
	for i, v := range p.sum {
		y[i] = float32(v / float64(n))
	}
	return y
}

// encode runs an encoder over all tokens at once.
func (m *Model) encode(ctx context.Context, tokens []int32, p *pool) error {
	for i, t := range tokens {
		if t < 0 || int(t) >= m.config.Vocabulary {
			return fmt.Errorf("token %d at %d: not from 0 to %d: %w", t, i, m.config.Vocabulary-1, ErrToken)
		}
	}
	if len(tokens) > m.context {
		return &CapacityError{Tokens: len(tokens), Capacity: m.context}
	}
	if err := m.begin(); err != nil {
		return err
	}
	defer m.users.Done()
	rows := fewTokens
	for rows < len(tokens) {
		rows *= 2 // round up to a power of two, so that few plans serve all lengths
	}
	q, err := m.pass(ctx, passShape{sequences: 1, rows: rows, result: hiddenStates})
	if err != nil {
		return err
	}
	r := q.run()
	r.set(q, 0, tokens, 0, nil)
	y := make([]float32, rows*m.config.Width)
	if err := q.do(ctx, r, y); err != nil {
		return err
	}
	p.add(y, len(tokens))
	return nil
}

// states feeds tokens to a session of a decoder and pools their states.
func (s *Session) states(ctx context.Context, tokens []int32, p *pool) error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.unuse()
	if err := s.add(tokens, false); err != nil {
		return err
	}
	y := make([]float32, max(s.m.chunk, fewTokens)*s.m.config.Width)
	for s.done < len(s.tokens) {
		n, err := s.pass(ctx, hiddenStates, y)
		if err != nil {
			return err
		}
		p.add(y, n)
	}
	return nil
}
