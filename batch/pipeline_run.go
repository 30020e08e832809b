package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/memory"
)

// running is one run of a pipeline. Three goroutines work on it: one reads into chunks, one submits
// them to the device, and the caller's takes the results. A chunk has the states free, filled, in
// flight, with the caller, and then free again. With turns, lanes read and compute chunks.
type running struct {
	p     *flow
	ctx   context.Context // ends when the caller leaves
	size  *sizing
	turns *turns // nil without lanes

	free           [lanes]chan *chunk // of each lane; without turns all are in the first
	filled, flight chan *chunk

	lane int    // the lane that reads
	cur  *chunk // the chunk that is being filled
	// depth is the number of chunks; the caller's goroutine owns it.
	depth int

	// err and panicked are the reason for an early end of the stream; done is closed when they are
	// set.
	done     chan struct{}
	err      error
	panicked any
}

// chunk is the memory of some rows and of their results.
type chunk struct {
	mem, in, out []byte
	got          int   // bytes read
	from         int64 // position in a file of bytes that the lane has yet to read, or -1
	rows, trial  int
	plan         *chunkPlan
	pend         *device.Pending
	lane         int        // that had the chunk last
	done         chan error // the result, if a lane computes the chunk
}

// wait waits until the computation of the chunk has ended, or the context. In both cases nothing uses the chunk when it returns.
func (c *chunk) wait(ctx context.Context) error {
	if c.pend == nil {
		return <-c.done
	}
	err := c.pend.Wait(ctx)
	if err != nil {
		<-c.pend.Done()
	}
	return err
}

// results returns the results of a run over the stream that read delivers, in lanes if inTurns is set.
func results[Out device.Element](p *flow, ctx context.Context, inTurns bool, read func(*running) error) iter.Seq2[[]Out, error] {
	return func(yield func([]Out, error) bool) {
		if p == nil {
			yield(nil, errNoPlan)
			return
		}
		err := p.run(ctx, inTurns, read, func(out []byte) bool { return yield(engine.View[Out](out), nil) })
		if err != nil {
			yield(nil, err)
		}
	}
}

// run computes over the stream that read delivers and calls yield for each chunk, until yield
// returns false. After it returns, nothing uses the device or the caller's memory, except a read
// that still runs after the context was cancelled.
func (p *flow) run(ctx context.Context, inTurns bool, read func(*running) error, yield func(out []byte) bool) (err error) {
	inner, cancel := context.WithCancel(ctx)
	r := &running{p: p, ctx: inner, size: p.sizing(), done: make(chan struct{}), filled: make(chan *chunk, deeper), flight: make(chan *chunk, deeper)}
	for i := range r.free {
		r.free[i] = make(chan *chunk, deeper)
	}
	if inTurns {
		r.turns = newTurns()
	}
	c, _ := r.size.next()
	r.deepen(c.depth)
	go r.read(read)
	go r.submit()
	left := true // the caller left the loop, by break or by a panic
	defer func() {
		cancel()
		if fault := r.end(ctx); err == nil && !left {
			err = fault
		}
	}()
	for c := range r.flight {
		if err = c.wait(ctx); err != nil {
			return err
		}
		r.size.done(c.trial, c.rows, time.Now())
		if !yield(c.out) {
			return nil
		}
		r.recycle(c)
	}
	left = false
	return nil
}

// end waits until no goroutine uses the memory of the run, and returns the reason for an early end
// of the stream. It does not wait for a read after the caller's context has ended.
func (r *running) end(ctx context.Context) error {
	for c := range r.flight {
		_ = c.wait(context.Background())
	}
	if r.turns != nil {
		r.turns.wait()
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.panicked != nil {
		panic(r.panicked)
	}
	if r.err == nil {
		return ctx.Err()
	}
	return r.err
}

// deepen allocates chunks until there are n.
func (r *running) deepen(n int) {
	for ; r.depth < n; r.depth++ {
		c := &chunk{}
		if r.turns != nil {
			c.lane, c.done = r.depth%lanes, make(chan error, 1)
		}
		r.free[c.lane] <- c
	}
}

// recycle returns a chunk to the free ones, or drops it if there are more than wanted.
func (r *running) recycle(c *chunk) {
	want, _ := r.size.next()
	if r.depth > want.depth {
		r.depth--
		return
	}
	r.free[c.lane] <- c
	r.deepen(want.depth)
}

// errExit is the error of a source that ended its goroutine.
var errExit = errors.New("pipeline: the source called runtime.Goexit")

// read fills chunks until the stream ends.
func (r *running) read(read func(*running) error) {
	defer close(r.done)
	defer close(r.filled)
	returned := false
	defer func() {
		if r.panicked = recover(); r.panicked == nil && !returned {
			r.err = errExit
		}
	}()
	err := read(r)
	if r.err == nil && r.ctx.Err() == nil {
		r.finish(err)
	}
	returned = true
}

// submit begins the work on chunks in order.
func (r *running) submit() {
	defer close(r.flight)
	for {
		select {
		case c, ok := <-r.filled:
			if !ok {
				return
			}
			if c.pend = nil; c.done == nil || c.trial == rest {
				c.pend = c.plan.plan.RunAsync(r.ctx, c.bindings(r.p)...)
			}
			r.flight <- c // has room for all chunks
		case <-r.ctx.Done():
			return
		}
	}
}

// take makes a free chunk the current one, with a plan that the device can run. It returns false if
// the stream must end.
func (r *running) take() bool {
	if r.cur != nil {
		return true
	}
	c := r.unused()
	if c == nil {
		return false
	}
	for {
		choice, trial := r.size.next()
		plan, err := r.p.plan(r.ctx, choice.rows)
		if err == nil {
			c.got, c.rows, c.trial, c.plan, c.from = 0, choice.rows, trial, plan, -1
			r.cur = c
			return true
		}
		if !tooLarge(err) || !r.size.refuse(trial) {
			r.err = err
			return false
		}
	}
}

// unused returns a free chunk, if possible one that the lane had before, or nil if the stream must end.
func (r *running) unused() *chunk {
	select {
	case c := <-r.free[r.lane]:
		return c
	default:
	}
	select {
	case c := <-r.free[r.lane]:
		return c
	case c := <-r.free[(r.lane+1)%lanes]:
		c.lane = r.lane
		return c
	case <-r.ctx.Done():
		return nil
	}
}

// space returns the memory for the next bytes of the stream, or nil if the stream must end.
func (r *running) space() []byte {
	if r.ctx.Err() != nil || !r.take() {
		return nil
	}
	var err error
	if r.cur.mem, err = room(r.cur.mem, r.cur.rows*r.p.row); err != nil {
		r.err = err
		return nil
	}
	return r.cur.mem[r.cur.got : r.cur.rows*r.p.row]
}

// room returns n bytes of memory: mem if it is large enough, but not so much larger that it would
// waste the budget.
func room(mem []byte, n int) ([]byte, error) {
	if cap(mem) >= n && cap(mem)/4 <= n {
		return mem[:n], nil
	}
	f, err := memory.Floats((n + 3) / 4)
	if err != nil {
		return nil, fmt.Errorf("pipeline: a chunk of %d bytes: %w", n, err)
	}
	return engine.Bytes(f)[:n], nil
}

// advance records that n more bytes are in the chunk, and passes the chunk on when it is full. It
// returns false if the stream must end.
func (r *running) advance(n int) bool {
	c := r.cur
	if c.got += n; c.got < c.rows*r.p.row {
		return true
	}
	return r.pass(c.mem[:c.got])
}

// pass passes the current chunk to the device, with the operand in.
func (r *running) pass(in []byte) bool {
	c := r.cur
	var err error
	if c.out, err = room(c.out, c.plan.out); err != nil {
		r.err = err
		return false
	}
	c.in = in
	r.cur = nil
	r.filled <- c // has room for all chunks
	return r.ctx.Err() == nil
}

// rest is the trial of an incomplete last chunk, which is not measured. No lane computes it.
const rest = -1

// finish passes on the rows of an incomplete last chunk, and keeps the error of the source.
func (r *running) finish(err error) {
	c := r.cur
	if c == nil {
		r.err = err
		return
	}
	rows, over := c.got/r.p.row, c.got%r.p.row
	if rows > 0 {
		plan, fault := r.p.plan(r.ctx, rows)
		if fault != nil {
			r.err = fault
			return
		}
		c.rows, c.trial, c.plan = rows, rest, plan
		r.pass(c.mem[:rows*r.p.row])
	}
	if over > 0 && err == nil {
		err = fmt.Errorf("pipeline: the stream ends after %d of the %d bytes of a row: %w", over, r.p.row, io.ErrUnexpectedEOF)
	}
	if r.err == nil {
		r.err = err
	}
}

// write copies the next bytes of the stream. It returns false if the stream must end.
func (r *running) write(data []byte) bool {
	for len(data) > 0 {
		to := r.space()
		if to == nil {
			return false
		}
		n := copy(to, data)
		data = data[n:]
		if !r.advance(n) {
			return false
		}
	}
	return r.ctx.Err() == nil
}

// readFrom reads the stream from src.
func (r *running) readFrom(src io.Reader) error {
	if src == nil {
		return fmt.Errorf("pipeline: nil reader: expected an io.Reader: %w", device.ErrUnsupported)
	}
	s := &source{r: r, from: src}
	if r.turns != nil {
		return r.inLanes(s)
	}
	for {
		if c, err := s.next(); c == nil {
			return err
		}
	}
}

// lend passes on the parts of data without a copy.
func (r *running) lend(data []byte) {
	for len(data) > 0 && r.take() {
		n := r.cur.rows * r.p.row
		if len(data) < n {
			r.write(data) // the last rows, or a part of a row
			return
		}
		if !r.pass(data[:n:n]) {
			return
		}
		data = data[n:]
	}
}
