package cpu

import (
	"context"
	"sync"

	"github.com/rayo-go/rayo/internal/driver"
)

// A queue runs asynchronous submissions one after the other, in a goroutine that ends when there
// are none.
type queue struct {
	tracker *accessTracker

	mu      sync.Mutex
	jobs    []job
	running bool
	idle    sync.Cond // on mu: running has become false
}

// A job is a queued submission.
type job struct {
	*driver.Job
	ctx   context.Context
	e     admitter
	entry *queueEntry
}

// An admitter is an *executable. Pages without programs do not load that type with the queue.
type admitter interface {
	admit(ctx context.Context, s *driver.Submission, t *queueEntry) error
	running() *driver.RefBarrier
}

// push queues j and enters its entry in the tracker atomically. If the orders of queue and tracker
// could differ, a job might wait for a later one.
func (q *queue) push(j job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.entry != nil {
		q.tracker.enter(j.entry)
	}
	q.jobs = append(q.jobs, j)
	if !q.running {
		q.running = true
		go q.work()
	}
}

func (q *queue) work() {
	for {
		q.mu.Lock()
		if len(q.jobs) == 0 {
			q.running = false
			q.jobs = nil
			q.idle.Broadcast()
			q.mu.Unlock()
			return
		}
		j := q.jobs[0]
		q.jobs[0] = job{}
		q.jobs = q.jobs[1:]
		q.mu.Unlock()
		j.End(j.e.admit(j.ctx, &j.Submission, j.entry), j.e.running())
	}
}

// wait returns when no work is queued or running.
func (q *queue) wait() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.running {
		q.idle.Wait()
	}
}
