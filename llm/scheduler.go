package llm

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Scheduler decodes several sessions in one pass: tokens that sessions of different
// goroutines wait for are computed together, which reads the weights once. Sessions come
// and go at any time.
//
//	sch := m.NewScheduler(8)
//	defer sch.Close()
//	for _, prompt := range prompts {
//		go func() {
//			s := sch.NewSession()
//			defer s.Close()
//			for t, err := range s.Generate(ctx, prompt, llm.Sampling{}) { ... }
//		}()
//	}
//
// A session of a scheduler gives the same tokens as a session of the model, except for the rounding
// of different kernels.
type Scheduler struct {
	m    *Model
	most int

	mu      sync.Mutex
	closed  bool
	running bool
	queue   []*decodeRequest
	active  int           // sessions in their last pass, which may come back soon
	last    time.Duration // of the last pass
	wake    chan struct{} // a request came while the scheduler gathers
	results []float32     // of a pass; of the goroutine that serves
}

// decodeRequest is a token that waits to be computed.
type decodeRequest struct {
	s    *Session
	what result
	y    []float32
	done chan error
}

// NewScheduler returns a scheduler that computes at most n sessions at once, at least one. More
// wait for their turn.
func (m *Model) NewScheduler(n int) *Scheduler {
	return &Scheduler{m: m, most: max(n, 1), wake: make(chan struct{}, 1)}
}

// NewSession returns a session whose tokens are computed together with those of other sessions.
func (c *Scheduler) NewSession() *Session { return &Session{m: c.m, scheduler: c} }

// Close makes the scheduler reject new tokens: sessions return [ErrClosed]. Waiting tokens are
// computed first.
func (c *Scheduler) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return nil
}

// decode computes the next token of s. The caller holds the lock of s.
func (c *Scheduler) decode(ctx context.Context, s *Session, what result, y []float32) error {
	r := &decodeRequest{s: s, what: what, y: y, done: make(chan error, 1)}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return fmt.Errorf("scheduler: %w", ErrClosed)
	}
	c.queue = append(c.queue, r)
	if !c.running {
		c.running = true
		go c.serve()
	} else {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	c.mu.Unlock()
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
	}
	c.mu.Lock()
	for i, q := range c.queue {
		if q == r {
			c.queue = append(c.queue[:i], c.queue[i+1:]...)
			c.mu.Unlock()
			return ctx.Err()
		}
	}
	c.mu.Unlock()
	<-r.done // its pass is under way, and writes to y
	return ctx.Err()
}

// serve computes the waiting tokens until there are none.
func (c *Scheduler) serve() {
	for {
		c.gather()
		c.mu.Lock()
		now := c.next()
		if len(now) == 0 {
			c.running = false
			c.mu.Unlock()
			return
		}
		c.active = len(now)
		c.mu.Unlock()
		begun := time.Now()
		err := c.pass(now)
		c.mu.Lock()
		c.last = time.Since(begun)
		c.mu.Unlock()
		for _, r := range now {
			r.done <- err
		}
	}
}

// next takes the requests of a pass from the queue: the first, and others that want the same result. The lock is held.
func (c *Scheduler) next() []*decodeRequest {
	var now, rest []*decodeRequest
	for _, r := range c.queue {
		if len(now) < c.most && r.what == c.queue[0].what {
			now = append(now, r)
		} else {
			rest = append(rest, r)
		}
	}
	c.queue = rest
	return now
}

// gather waits for the sessions of the last pass to come back, for a part of the time that
// the pass took.
func (c *Scheduler) gather() {
	c.mu.Lock()
	wait := c.last / 8
	c.mu.Unlock()
	end := time.NewTimer(wait)
	defer end.Stop()
	for {
		c.mu.Lock()
		enough := len(c.queue) >= min(max(c.active, 1), c.most)
		c.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-c.wake:
		case <-end.C:
			return
		}
	}
}

// pass computes one token of each request, with the plan of the next power of two.
func (c *Scheduler) pass(now []*decodeRequest) error {
	if err := c.m.begin(); err != nil {
		return err
	}
	defer c.m.users.Done()
	n := 1
	for n < len(now) {
		n *= 2
	}
	ctx := context.Background()
	p, err := c.m.pass(ctx, passShape{n, 1, now[0].what})
	if err != nil {
		return err
	}
	r := p.run()
	for i, q := range now {
		r.set(p, i, q.s.tokens[q.s.done:q.s.done+1], q.s.done, q.s.pages)
	}
	v := p.width
	if n == 1 {
		return p.do(ctx, r, now[0].y[:v])
	}
	if len(c.results) < n*v {
		c.results = make([]float32, n*v)
	}
	y := c.results[:n*v]
	if err := p.do(ctx, r, y); err != nil {
		return err
	}
	for i, q := range now {
		copy(q.y, y[i*v:][:v])
	}
	return nil
}
