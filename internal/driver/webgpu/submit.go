package webgpu

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
)

// Submit implements [driver.Executable]. When it returns, the work is in the queue, unless a step
// of this or of an earlier submission computes on the host.
func (e *executable) Submit(ctx context.Context, s *driver.Submission) (driver.Fence, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := e.Check(s.Ext, e.d.behind); err != nil {
		return nil, err
	}
	if e.d.closed.Load() || !e.inUse.Enter() {
		return nil, driver.ErrClosed
	}
	if len(e.hosted) == 0 && e.d.order.Free() {
		if s.Wait {
			defer e.inUse.Leave()
			return nil, e.run(ctx, s)
		}
		return e.start(ctx, s)
	}
	t := e.d.order.Take()
	if s.Wait {
		defer e.inUse.Leave()
		return nil, e.inTurn(ctx, s, t)
	}
	j := driver.NewJob(s)
	go func() { j.End(e.inTurn(ctx, &j.Submission, t), &e.inUse) }()
	return j, nil
}

// behind returns the number of bytes of an array from an offset on.
func (d *device) behind(m driver.Memory, off int64) (int64, error) {
	a, ok := m.(*array)
	switch {
	case !ok || a.d != d:
		return 0, driver.ErrForeign
	case off < 0 || a.id == 0:
		return -1, nil
	case off%4 != 0:
		return 0, fmt.Errorf("an array begins at byte %d of a buffer, which is not a multiple of four: %w", off, driver.ErrUnsupported)
	}
	return a.bytes - off, nil
}

// fence is the fence of a queued submission.
type fence struct {
	*gpu.Fence
}

// Wait implements [driver.Fence].
func (f fence) Wait(ctx context.Context) error { return translateError(f.Fence.Wait(ctx)) }

// work is a submission that is being prepared.
type work struct {
	e    *executable
	ext  []driver.Binding
	host []bool
	set  *set
	rec  *recording
	sub  gpu.Submission
}

var works = sync.Pool{New: func() any { return new(work) }}

// open returns a submission with its memory and its commands.
func (e *executable) open(ext []driver.Binding, waits bool) (*work, error) {
	w := works.Get().(*work)
	w.e, w.ext = e, ext
	for i := range e.Need {
		w.host = append(w.host, ext[i].Mem == nil)
	}
	var err error
	l := e.layouts.of(w.host)
	if w.set, err = e.d.sets.take(l, waits); err == nil {
		w.rec, err = e.d.sets.record(w.set, ext)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// close frees the resources of a submission after it was queued.
func (w *work) close() {
	if w.rec != nil {
		w.e.d.sets.done(w.rec)
	}
	if w.set != nil {
		w.e.d.sets.give(w.set)
	}
	clear(w.sub.Uploads)
	clear(w.sub.Downloads)
	*w = work{host: w.host[:0], sub: gpu.Submission{Uploads: w.sub.Uploads[:0], Downloads: w.sub.Downloads[:0]}}
	works.Put(w)
}

// uploads adds the transfers of operands from the host, and downloads the transfers of results to it.
func (w *work) uploads()   { w.sub.Uploads = w.transfers(w.sub.Uploads[:0], w.set.l.up) }
func (w *work) downloads() { w.sub.Downloads = w.transfers(w.sub.Downloads[:0], w.set.l.down) }

func (w *work) transfers(to []gpu.Transfer, ts []transfer) []gpu.Transfer {
	for i := range ts {
		t := &ts[i]
		x := gpu.Transfer{Host: t.host, Off: t.off}
		if x.Host == nil {
			x.Host = w.ext[t.ext].Host[:t.bytes]
		}
		switch {
		case t.mem >= 0:
			b := &w.ext[t.mem]
			x.Buffer, x.Off = b.Mem.(*array).b, b.Off+t.memOff
		case t.params:
			x.Buffer = w.set.uniform
		default:
			x.Buffer = w.set.buffers[t.buffer]
		}
		to = append(to, x)
	}
	return to
}

// run runs a submission and waits.
func (e *executable) run(ctx context.Context, s *driver.Submission) (err error) {
	defer driver.Recovered(&err)
	w, err := e.open(s.Ext, true)
	if err != nil {
		return err
	}
	defer w.close()
	w.uploads()
	w.downloads()
	w.sub.Commands = w.rec.commands
	if s.Times == nil {
		return translateError(e.d.gpu.Run(ctx, &w.sub))
	}
	c := e.newClock(s.Times)
	c.stamp(w, 0, len(e.steps))
	if err := e.d.gpu.Run(ctx, &w.sub); err != nil {
		return translateError(err)
	}
	c.read()
	return nil
}

// start puts a submission into the queue.
func (e *executable) start(ctx context.Context, s *driver.Submission) (f driver.Fence, err error) {
	defer func() {
		if err != nil {
			e.inUse.Leave()
		}
	}()
	defer driver.Recovered(&err)
	w, err := e.open(s.Ext, false)
	if err != nil {
		return nil, err
	}
	defer w.close()
	w.uploads()
	w.downloads()
	w.sub.Commands = w.rec.commands
	var c *clock
	if s.Times != nil {
		c = e.newClock(s.Times)
		c.stamp(w, 0, len(e.steps))
	}
	complete := s.Complete // s belongs to the caller after Submit returns
	g, err := e.d.gpu.Submit(ctx, &w.sub, func(err error) {
		if err == nil && c != nil {
			c.read()
		}
		if complete != nil {
			complete(translateError(err))
		}
		e.inUse.Leave()
	})
	if err != nil {
		return nil, translateError(err)
	}
	return fence{g}, nil
}

// inTurn waits for the turn of a submission, runs it and waits for its end. If steps compute on the
// host, it runs the submission in parts.
func (e *executable) inTurn(ctx context.Context, s *driver.Submission, t driver.FIFOTicket) (err error) {
	if err := t.Await(ctx); err != nil {
		return err
	}
	defer t.End()
	if len(e.hosted) == 0 {
		return e.run(ctx, s)
	}
	defer driver.Recovered(&err)
	w, err := e.open(s.Ext, false)
	if err != nil {
		return err
	}
	defer w.close()
	var c *clock
	if s.Times != nil {
		c = e.newClock(s.Times)
	}
	r := &recorder{d: e.d, e: e, set: w.set, ext: s.Ext}
	w.uploads()
	from := 0
	for _, at := range append(slices.Clone(e.hosted), len(e.steps)) {
		first, last := 0, w.rec.ends[len(w.rec.ends)-1]
		if from > 0 {
			first = w.rec.ends[from-1]
		}
		var h hosted
		if at < len(e.steps) {
			h = e.steps[at].(hosted)
			last = w.rec.ends[at]
			w.sub.Downloads = h.downloads(r)
		} else {
			w.downloads()
		}
		w.sub.Commands = w.rec.commands[first:last]
		if c != nil {
			c.stamp(w, from, at)
		}
		if err := e.d.gpu.Run(ctx, &w.sub); err != nil {
			return translateError(err)
		}
		if c != nil {
			c.read()
		}
		if h != nil {
			if w.sub.Uploads, err = h.run(ctx, r, w.sub.Downloads); err != nil {
				return err
			}
		}
		from = at
	}
	return nil
}

// clock measures when steps begin and end.
type clock struct {
	e       *executable
	times   *driver.Times
	began   time.Time
	base    time.Duration // the start of the current part
	from    int           // number of measured steps of the program
	steps   int           // number of steps in the current part
	stamps  []uint64
	started time.Time
}

func (e *executable) newClock(t *driver.Times) *clock {
	return &clock{e: e, times: t, began: time.Now()}
}

// stamp makes the device record the time at the end of each step of the program that ends in the
// range of steps from..to.
func (c *clock) stamp(w *work, from, to int) {
	c.started = time.Now()
	c.base = c.started.Sub(c.began)
	ends := w.rec.ends
	at := 0 // number of commands so far
	if from > 0 {
		at = ends[from-1]
	}
	var list []gpu.Command
	c.steps = 0
	for n := c.from; n < len(c.e.ends) && c.e.ends[n] <= max(to, 0); n++ {
		end := at
		if k := c.e.ends[n]; k > 0 {
			end = ends[k-1]
		}
		list = append(list, w.rec.commands[at:end]...)
		if at == end {
			list = append(list, gpu.Command{}) // a timestamp needs a command
		}
		list[len(list)-1].Stamp = true
		at = end
		c.steps++
	}
	if to > 0 {
		list = append(list, w.rec.commands[at:ends[to-1]]...)
	}
	w.sub.Commands, w.sub.Stamps = list, &c.stamps
}

// read reads the recorded times when the part is done.
func (c *clock) read() {
	last := c.base
	for i := range c.steps {
		end := last
		if i+1 < len(c.stamps) {
			end = c.base + time.Duration(c.stamps[i+1]-c.stamps[0])
		} else if i == c.steps-1 && len(c.stamps) == 0 {
			end = c.base + time.Since(c.started) // the device has no timestamps
		}
		if n := c.from + i; n < len(c.times.Steps) {
			c.times.Steps[n] = driver.Span{Start: last, End: end}
		}
		last = end
	}
	c.from += c.steps
	c.times.Total = driver.Span{End: last}
}
