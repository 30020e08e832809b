package assistant

import (
	"fmt"
	"slices"
	"sync"

	"github.com/rayo-go/rayo/llm"
)

// prefixes keeps unused sessions, so that a prompt with the same beginning as one of them need not
// be computed again.
type prefixes struct {
	mu     sync.Mutex
	idle   []*llm.Session // in order of their last use
	most   int
	closed bool
}

// session returns a session that has the longest known prefix of a prompt, without the last token.
// cached is the number of tokens that an earlier prompt has computed.
func (p *prefixes) session(sch *llm.Scheduler, prompt []int32) (s *llm.Session, cached int, err error) {
	if len(prompt) == 0 {
		return nil, 0, fmt.Errorf("assistant: the prompt has no tokens: %w", ErrRequest)
	}
	if s, cached = p.longest(prompt); s == nil {
		s = sch.NewSession()
	}
	return s, cached, nil
}

// longest returns a fork of the session with the longest common prefix with a prompt, truncated to
// this prefix, or nil.
func (p *prefixes) longest(prompt []int32) (*llm.Session, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *llm.Session
	most := 0
	for _, s := range p.idle {
		if n := common(s.Tokens(), prompt); n > most {
			best, most = s, n
		}
	}
	most = min(most, len(prompt)-1)
	if best == nil || most <= 0 {
		return nil, 0
	}
	s, err := best.Fork()
	if err != nil {
		return nil, 0
	}
	if err := s.Rewind(most); err != nil {
		_ = s.Close()
		return nil, 0
	}
	return s, most
}

// common returns the length of the common prefix.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// keep keeps a session for later. It closes kept sessions that are a prefix of it.
func (p *prefixes) keep(s *llm.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tokens := s.Tokens()
	if p.closed || len(tokens) == 0 {
		_ = s.Close()
		return
	}
	p.idle = slices.DeleteFunc(p.idle, func(old *llm.Session) bool {
		n := old.Len()
		if n > len(tokens) || common(old.Tokens(), tokens) < n {
			return false
		}
		_ = old.Close()
		return true
	})
	p.idle = append(p.idle, s)
	if len(p.idle) > p.most {
		_ = p.idle[0].Close()
		p.idle = slices.Delete(p.idle, 0, 1)
	}
}

// drop closes the least recently used session, and reports whether there was one. The cache calls
// it when it is full.
func (p *prefixes) drop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return false
	}
	_ = p.idle[0].Close()
	p.idle = slices.Delete(p.idle, 0, 1)
	return true
}

// isClosed reports whether close was called.
func (p *prefixes) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// close closes all sessions, including sessions that are kept later.
func (p *prefixes) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, s := range p.idle {
		_ = s.Close()
	}
	p.idle = nil
}
