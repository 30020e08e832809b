//go:build !(linux && (amd64 || arm64))

package workers

import (
	"runtime"
	"sync/atomic"
)

// A sleeper parks a worker on a channel, which works on every system.
type sleeper struct {
	parked   atomic.Bool
	rousedAt atomic.Int64
	token    chan struct{}
}

func (s *sleeper) init()             { s.token = make(chan struct{}, 1) }
func (s *sleeper) enter()            {}
func (s *sleeper) leave()            {}
func (s *sleeper) widen()            {}
func (s *sleeper) leaveTo(int32)     {}
func (s *sleeper) unlocked(f func()) { f() }

// park returns when the worker is needed or has been woken. The result is the time at which rouse was called, or 0. The
// caller has counted the worker in p.parked.
func (s *sleeper) park(p *Pool, _ bool) (rousedAt int64) {
	s.parked.Store(true)
	if p.wanted() && s.parked.CompareAndSwap(true, false) {
		p.parked.Add(-1)
		return 0
	}
	<-s.token
	return s.rousedAt.Load()
}

// rouse wakes the worker if it is parked.
func (s *sleeper) rouse(p *Pool) bool {
	if !s.parked.CompareAndSwap(true, false) {
		return false
	}
	p.parked.Add(-1)
	s.rousedAt.Store(clock())
	s.token <- struct{}{}
	return true
}

// processor is not called on systems that cannot place threads.
func processor() int32 { return -1 }

func yield() { runtime.Gosched() }

// queued returns false: this system does not report how long a thread has waited for a processor.
func queued() (thread int32, ns int64, ok bool) { return 0, 0, false }
