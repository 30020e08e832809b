package cpu

import (
	"context"
	"sync"

	"github.com/rayo-go/rayo/internal/driver"
)

// A queue runs the submissions that nobody waits for, one after the other, in
// a goroutine that lives while there are any.
type queue struct {
	ledger *ledger

	mu      sync.Mutex
	jobs    []*job
	running bool
	idle    sync.Cond // on mu: running has become false
}

// A job is a queued submission and its fence.
type job struct {
	ctx    context.Context
	e      *executable
	s      driver.Submission
	ticket *ticket

	done chan struct{}
	err  error // once done is closed
}

// push queues j and enters its ticket, both at once: were the orders of queue
// and ledger different, a job could wait for one behind it.
func (q *queue) push(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.ticket != nil {
		q.ledger.enter(j.ticket)
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
		q.jobs[0] = nil
		q.jobs = q.jobs[1:]
		q.mu.Unlock()
		j.finish(j.e.admit(j.ctx, &j.s, j.ticket))
	}
}

// wait returns when nothing is queued or running.
func (q *queue) wait() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.running {
		q.idle.Wait()
	}
}

func (j *job) finish(err error) {
	j.err = err
	if j.s.Complete != nil {
		j.s.Complete(err)
	}
	// What the caller lent is the caller's again.
	j.ctx, j.s = nil, driver.Submission{}
	j.e.left()
	close(j.done)
}

// Done implements driver.Fence.
func (j *job) Done() <-chan struct{} { return j.done }

// Wait implements driver.Fence.
func (j *job) Wait(ctx context.Context) error {
	select {
	case <-j.done:
		return j.err
	default:
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
