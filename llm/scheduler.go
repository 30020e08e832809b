package llm

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Scheduler computes the tokens of several sessions, of prompts and of generated texts, in one
// pass. A pass reads the weights only once. Sessions can begin and end at any time.
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
// A pass takes a token of each session that generates, and shares its other rows among the prompts, so that
// generation continues while prompts are computed. A session of a scheduler gives the same tokens as a session of the model,
// except for the rounding of different kernels. With a cache of [op.Q8_0], a pass takes either generated tokens or one prompt.
type Scheduler struct {
	m    *Model
	most int

	mu      sync.Mutex
	closed  bool
	running bool
	queue   []*request
	// expected are the sessions that got a result from the last pass. The value is true if the session may come back soon with the
	// next token, and false if it has ended and another may soon begin in its place.
	expected   map[*Session]bool
	generating int           // running calls of Session.Generate
	last       time.Duration // duration of the last pass
	wake       chan struct{} // signals that queue or expected has changed while the scheduler gathers
	results    []float32     // results of a pass; used by the goroutine that serves
}

// request has the tokens of a session that wait to be computed. The session is locked until the request is done.
type request struct {
	ctx     context.Context
	s       *Session
	start   int     // the position of the first token
	tokens  []int32 // tokens that are not in the cache yet
	what    result  // kind of the results of the last tokens
	results int     // the number of the last tokens that have results; 1, or all
	y       []float32
	done    chan error
	left    bool // the session no longer waits
}

// NewScheduler returns a scheduler that computes tokens of at most n sessions at once; n is at
// least 1. Further sessions wait.
func (m *Model) NewScheduler(n int) *Scheduler {
	return &Scheduler{m: m, most: max(n, 1), expected: make(map[*Session]bool), wake: make(chan struct{}, 1)}
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

// compute computes the tokens of r. It returns the number of tokens in the cache, which is smaller
// than the number of all tokens after an error.
func (c *Scheduler) compute(ctx context.Context, r *request) (int, error) {
	n := len(r.tokens)
	r.ctx, r.done = ctx, make(chan error, 1)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return 0, fmt.Errorf("scheduler: %w", ErrClosed)
	}
	c.queue = append(c.queue, r)
	c.came(r.s)
	if !c.running {
		c.running = true
		go c.serve()
	} else {
		c.notify()
	}
	c.mu.Unlock()
	select {
	case err := <-r.done:
		return n - len(r.tokens), err
	case <-ctx.Done():
	}
	c.mu.Lock()
	r.left = true
	for i, q := range c.queue {
		if q == r {
			c.queue = append(c.queue[:i], c.queue[i+1:]...)
			c.mu.Unlock()
			return n - len(r.tokens), ctx.Err()
		}
	}
	c.mu.Unlock()
	<-r.done // a running pass writes to the cache and to y
	return n - len(r.tokens), ctx.Err()
}

// notify wakes the scheduler if it gathers. The lock is held.
func (c *Scheduler) notify() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// came records that a session has returned, so that gather no longer waits for it. A new session
// takes the place of one that has ended. The lock is held.
func (c *Scheduler) came(s *Session) {
	if _, is := c.expected[s]; is {
		delete(c.expected, s)
		return
	}
	for o, continues := range c.expected {
		if !continues {
			delete(c.expected, o)
			return
		}
	}
}

// enter records that a session begins to generate.
func (c *Scheduler) enter() {
	c.mu.Lock()
	c.generating++
	c.mu.Unlock()
}

// leave records that a session has stopped generating.
func (c *Scheduler) leave(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generating--
	if c.expected[s] {
		c.expected[s] = false
	}
}

// gone makes gather wait neither for a session nor for one in its place.
func (c *Scheduler) gone(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, is := c.expected[s]; is {
		delete(c.expected, s)
		c.notify()
	}
}

// guesses returns the number of guessed tokens that a session may check. All sessions together
// check as many as fit in fewTokens rows, because in larger passes each row costs time.
func (c *Scheduler) guesses() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fewTokens/max(c.generating, 1) - 1
}

// serve computes waiting tokens until there are none.
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
		c.mu.Unlock()
		begun := time.Now()
		err := c.pass(now)
		c.finish(now, time.Since(begun), err)
	}
}

// finish records the results of a pass. Requests with further tokens go to the end of the queue.
func (c *Scheduler) finish(now []span, took time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = took
	clear(c.expected)
	for _, p := range now {
		r := p.request
		if err == nil {
			r.start += p.rows
			r.tokens = r.tokens[p.rows:]
		}
		if err == nil && len(r.tokens) > 0 && !r.left {
			c.queue = append(c.queue, r)
			continue
		}
		if err == nil && !r.left {
			c.expected[r.s] = true
		}
		r.done <- err
	}
}

// gather waits until the sessions of the last pass have returned with their next tokens, for at
// most a fraction of the duration of the pass.
func (c *Scheduler) gather() {
	c.mu.Lock()
	wait := c.last / 8
	c.mu.Unlock()
	end := time.NewTimer(wait)
	defer end.Stop()
	for {
		c.mu.Lock()
		enough := len(c.queue) >= c.most || len(c.expected) == 0
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
