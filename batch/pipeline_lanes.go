package batch

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/rayo-go/rayo/device"
)

// lanes is the number of goroutines that read and compute chunks in turn, if a run uses them.
const lanes = 2

// handover is the time for which a lane spins for its turn to read. It is about the time to read a chunk. A goroutine that
// blocks instead may take as long to wake up.
const handover = 100 * time.Microsecond

// turns lets the lanes of a run read one after the other. A lane computes the chunk that it has read while another one
// reads, so a chunk stays in the cache of one core.
type turns struct {
	token     chan struct{} // the lane that holds it reads
	computing sync.RWMutex  // held for reading by lanes that compute
}

func newTurns() *turns {
	t := &turns{token: make(chan struct{}, 1)}
	t.token <- struct{}{}
	return t
}

// wait waits for the lanes that compute. The context has ended, so a lane that begins later computes nothing. It does not keep the
// lock, because such a lane must end too.
func (t *turns) wait() {
	t.computing.Lock()
	defer t.computing.Unlock()
}

// inLanes reads and computes src on several goroutines, until it ends.
func (r *running) inLanes(src *source) error {
	src.file = openRange(src.from)
	var others sync.WaitGroup
	for i := 1; i < lanes; i++ {
		others.Go(func() { r.runLane(i, src) })
	}
	r.runLane(0, src)
	others.Wait()
	if src.panicked != nil {
		panic(src.panicked)
	}
	if err := src.leaveFile(); src.err == nil {
		src.err = err
	}
	return src.err
}

// runLane reads and computes every chunk for which it gets the turn.
func (r *running) runLane(lane int, src *source) {
	for r.acquire() {
		c := r.readChunk(lane, src)
		if c == nil {
			return
		}
		err := src.fill(c)
		if err == nil {
			err = r.compute(c)
		}
		c.done <- err
		runtime.Gosched() // lets the caller take the result and return the chunk
	}
}

// readChunk reads or claims one chunk, passes it on and ends the turn. It returns nil if the stream must end.
func (r *running) readChunk(lane int, src *source) (c *chunk) {
	defer func() { r.turns.token <- struct{}{} }()
	if src.ended || r.ctx.Err() != nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			src.panicked = v
		}
	}()
	r.lane = lane
	src.ended, src.err = true, errExit // if the source ends the goroutine
	c, src.err = src.next()
	src.ended = c == nil
	return c
}

// acquire waits for the turn to read. It returns false if the run has ended.
func (r *running) acquire() bool {
	for start := time.Now(); time.Since(start) < handover && r.ctx.Err() == nil; runtime.Gosched() {
		select {
		case <-r.turns.token:
			return true
		default:
		}
	}
	select {
	case <-r.turns.token:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// compute runs the plan of a chunk.
func (r *running) compute(c *chunk) error {
	r.turns.computing.RLock()
	defer r.turns.computing.RUnlock()
	if err := r.ctx.Err(); err != nil {
		return err
	}
	return c.plan.plan.Run(r.ctx, c.bindings(r.p)...)
}

// source is a stream that a run reads.
type source struct {
	r    *running
	from io.Reader
	idle int   // reads in a row that returned nothing
	late error // that came with the last bytes of a chunk
	file *fileRange

	// State of the lanes, which the one that reads owns.
	ended    bool
	err      error
	panicked any
}

// next fills a chunk and passes it on. It returns nil if the stream must end.
func (s *source) next() (*chunk, error) {
	if s.file != nil {
		if c, err := s.claim(); c != nil || err != nil || s.file != nil {
			return c, err
		}
	}
	err := s.late
	for err == nil {
		to := s.r.space()
		if to == nil {
			return nil, nil
		}
		var n int
		n, err = s.from.Read(to)
		switch {
		case n < 0 || n > len(to):
			return nil, fmt.Errorf("pipeline: a Read into %d bytes returned %d: %w", len(to), n, device.ErrUnsupported)
		case n > 0:
			s.idle = 0
			c := s.r.cur
			ok := s.r.advance(n)
			if s.r.cur == nil { // the chunk was passed on
				s.late = err
				return c, nil
			}
			if !ok {
				return nil, nil
			}
		default:
			if s.idle++; s.idle == maxIdle && err == nil {
				err = io.ErrNoProgress
			}
		}
	}
	if err == io.EOF {
		return nil, nil
	}
	return nil, fmt.Errorf("pipeline: read: %w", err)
}

// maxIdle is the number of reads in a row that may return nothing.
const maxIdle = 100
