package webgpu

import (
	"context"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/incomparable"
)

// Command is one command of a submission: a dispatch if Group is set, a copy if Src is set, else a
// clear of Dst. If Dst is not set either, it does nothing.
type Command struct {
	_ incomparable.Type

	Group    *Group
	Grid     [3]uint32 // workgroups; the dispatch does nothing if one of them is 0
	Src, Dst *Buffer
	From, To int64 // multiples of 4
	Bytes    int64 // a multiple of 4, or up to the end of one of the buffers
	Stamp    bool  // record the time after the command
}

// Transfer copies bytes from the host to a buffer, or back. Their number is arbitrary; a copy to a
// buffer may also write up to three bytes after them.
type Transfer struct {
	Host   []byte
	Buffer *Buffer
	Off    int64 // a multiple of 4
}

// Submission is a round trip: it copies operands to the device, runs commands in order, and copies
// results back.
type Submission struct {
	Uploads   []Transfer
	Commands  []Command
	Downloads []Transfer
	// Stamps, if not nil, receives the time before the first command and the time after each command
	// with Stamp set, in nanoseconds of the device's clock. It becomes empty if the adapter has no
	// Clocks. The slice belongs to the submission until the fence is done.
	Stamps *[]uint64
}

// Submit starts a submission. The caller may reuse the host memory of Uploads when it returns; the
// submission uses the memory of Downloads until the fence is done. The caller may reuse the rest of
// s, and free buffers and groups.
//
// A submission is complete before the next one starts, and the parts of different submissions are
// not interleaved.
//
// If complete is not nil it is called once, just before the fence is done, but
// not if Submit returns an error. It must not block.
func (d *Device) Submit(ctx context.Context, s *Submission, complete func(error)) (*Fence, error) {
	w, err := d.start(ctx, s, false)
	if err != nil {
		return nil, err
	}
	f := &Fence{d: d, serial: w.serial, done: make(chan struct{})}
	go func() {
		f.err = w.end(context.Background())
		if complete != nil {
			complete(f.err)
		}
		close(f.done)
	}()
	return f, nil
}

// Run is Submit followed by Wait, by the shortest path. When ctx ends it returns at once, and the
// memory of Downloads is no longer accessed; the commands still run.
func (d *Device) Run(ctx context.Context, s *Submission) error {
	w, err := d.start(ctx, s, true)
	if err != nil {
		return err
	}
	w.again()
	return w.end(ctx)
}

// again lets the host prepare for another submission like this one, which is running.
func (w *work) again() {
	d := w.d
	if d.repeater == nil || w.serial == 0 || d.enter() != nil {
		return
	}
	defer d.leave()
	d.repeater.Again(w.serial)
}

// start puts a submission into the queue of the host. If waits is set, the caller waits for it at
// once.
func (d *Device) start(ctx context.Context, s *Submission, waits bool) (*work, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	w := d.newWork()
	var err error
	if d.closing.Load() {
		err = ErrClosed // Close may have counted before w was
	} else {
		err = w.hold(s, waits)
	}
	if err == nil {
		err = w.put(ctx)
	}
	if err != nil {
		w.abandon()
		return nil, err
	}
	return w, nil
}

// queue orders submissions to the host, so that the parts of different submissions do not mix.
type queue struct {
	turn     chan struct{} // holds the submission whose turn it is
	last     uint64        // the serial of the last submission
	commands []HostCommand
	remap    []HostBuffer
}

// enter waits for the turn of a submission and, with a software GPU, for the end of the last one:
// lavapipe blocks submissions while it computes, and a goroutine blocked there could not be
// cancelled, and would block queries of the progress.
func (q *queue) enter(ctx context.Context, d *Device) error {
	select {
	case q.turn <- struct{}{}:
	default:
		select {
		case q.turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if d.adapter.Type == Software && d.remote == nil {
		if err := d.until(ctx, q.last); err != nil {
			q.leave()
			return err
		}
	}
	return nil
}

func (q *queue) leave() { <-q.turn }

// submit sends the collected commands to the host.
func (q *queue) submit(w *work) error {
	if len(q.commands) == 0 {
		return nil
	}
	serial, err := w.d.host.Submit(q.commands, q.remap)
	clear(q.commands)
	clear(q.remap)
	q.commands, q.remap = q.commands[:0], q.remap[:0]
	if err != nil {
		return w.d.hosted(err)
	}
	w.serial, q.last = serial, serial
	w.d.stats.submits.Add(1)
	return nil
}

// put submits all parts of the work.
func (w *work) put(ctx context.Context) (err error) {
	defer recovered(&err)
	d := w.d
	up, down := newUpload(w.in), newDownload(w.out)
	if d.remote != nil {
		up = newUpload(nil)
	}
	// Copy a submission of one chunk before taking the lock, so that others need not wait.
	once := up.left <= chunkBytes
	if once {
		if err := up.fill(ctx, w); err != nil {
			return err
		}
	}
	if err := down.reserve(w); err != nil {
		return err
	}
	q := &d.queue
	if err := q.enter(ctx, d); err != nil {
		return err
	}
	defer q.leave()
	q.commands, q.remap = q.commands[:0], q.remap[:0]
	if err := w.approach(ctx, q); err != nil {
		return err
	}
	if d.remote != nil {
		if err := w.write(); err != nil {
			return err
		}
	}
	for !once && up.left > 0 {
		if err := up.fill(ctx, w); err != nil {
			return err
		}
		up.put(q, w)
		if up.left > 0 {
			if err := up.sent(q, w); err != nil {
				return err
			}
		}
	}
	if once {
		up.put(q, w)
	}
	q.commands = append(q.commands, w.commands...)
	for _, m := range w.owned {
		q.remap = append(q.remap, m.host)
	}
	if w.stamps != nil {
		q.commands = append(q.commands, HostCommand{Do: Stamps, Dst: w.downs[0].stage.host, Bytes: int64(w.stamped)})
	}
	for down.put(q, w); ; down.put(q, w) {
		if err := q.submit(w); err != nil {
			return err
		}
		w.own()
		up.note(w)
		if len(w.downs) > 0 {
			w.downs[len(w.downs)-1].serial = w.serial
		}
		if down.left == 0 {
			return nil
		}
		if len(w.downs)-w.taken >= maxAhead {
			if err := w.takeFirst(ctx); err != nil {
				return err
			}
		}
		if err := down.reserve(w); err != nil {
			return err
		}
	}
}

// hold checks a submission, and keeps the objects that it uses until it is done.
func (w *work) hold(s *Submission, waits bool) error {
	d := w.d
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range s.Uploads {
		t := &s.Uploads[i]
		if err := w.holdTransfer(t); err != nil {
			return fmt.Errorf("upload %d: %w", i, err)
		}
		if p := (span{t.Host, t.Buffer.m, t.Off}); waits && p.m.usage == Input {
			w.mappedIn = append(w.mappedIn, p)
		} else {
			w.in = append(w.in, p)
		}
	}
	for i := range s.Downloads {
		t := &s.Downloads[i]
		if err := w.holdTransfer(t); err != nil {
			return fmt.Errorf("download %d: %w", i, err)
		}
		if p := (span{t.Host, t.Buffer.m, t.Off}); waits && p.m.usage == Output {
			w.mappedOut = append(w.mappedOut, p)
		} else {
			w.out = append(w.out, p)
		}
	}
	if s.Stamps != nil {
		*s.Stamps = (*s.Stamps)[:0]
		if d.adapter.Clocks {
			w.stamps = s.Stamps
			w.stamp()
		}
	}
	for i := range s.Commands {
		c := &s.Commands[i]
		if err := w.holdCommand(c); err != nil {
			return fmt.Errorf("command %d: %w", i, err)
		}
		if c.Stamp {
			w.stamp()
		}
	}
	return nil
}

// maxStamps is the largest number of times that one submission records.
const maxStamps = 4096

func (w *work) stamp() {
	if w.stamps != nil && w.stamped < maxStamps {
		w.commands = append(w.commands, HostCommand{Do: Stamp, Mark: w.stamped})
		w.stamped++
	}
}

func (w *work) holdTransfer(t *Transfer) error {
	if err := t.Buffer.usable(w.d); err != nil {
		return err
	}
	n := int64(len(t.Host))
	if t.Off < 0 || t.Off%4 != 0 || n > t.Buffer.bytes-t.Off {
		return fmt.Errorf("%d bytes at %d of a buffer of %d: %w", n, t.Off, t.Buffer.bytes, ErrInvalid)
	}
	w.use(t.Buffer.m)
	return nil
}

// use keeps m until the submission is done.
func (w *work) use(m *memory) {
	m.refs++
	w.mems = append(w.mems, m)
	if m.usage >= Input {
		w.mappable = append(w.mappable, m)
	}
}

func (w *work) holdCommand(c *Command) error {
	d := w.d
	switch {
	case c.Group != nil:
		if c.Group.d != d {
			return fmt.Errorf("the group: %w", ErrForeign)
		}
		b := c.Group.b
		if b == nil {
			return fmt.Errorf("the group: %w", ErrClosed)
		}
		for i, n := range c.Grid {
			if m := d.adapter.Target.Limits.Grid; m > 0 && n > m {
				return fmt.Errorf("%d workgroups along axis %d, of %d: %w", n, i, m, ErrLimit)
			}
		}
		if c.Grid[0] == 0 || c.Grid[1] == 0 || c.Grid[2] == 0 {
			return nil
		}
		d.holdGroup(b)
		w.groups = append(w.groups, b)
		w.mappable = append(w.mappable, b.mappable...)
		w.commands = append(w.commands, HostCommand{Do: Dispatch, Pipeline: b.k.host, Group: b.host, Grid: c.Grid})
		d.stats.dispatches.Add(1)
		return nil
	case c.Dst == nil && c.Src == nil:
		return nil
	case c.Src != nil:
		if err := c.span(d, c.Src, c.From); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	}
	if err := c.span(d, c.Dst, c.To); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	if c.Bytes == 0 {
		return nil
	}
	n := roundUp(c.Bytes)
	dst := c.Dst.m
	w.use(dst)
	if c.Src == nil {
		w.commands = append(w.commands, HostCommand{Do: Clear, Dst: dst.host, To: c.To, Bytes: n})
		return nil
	}
	src := c.Src.m
	w.use(src)
	if src != dst {
		w.commands = append(w.commands, HostCommand{Do: Copy, Src: src.host, Dst: dst.host, From: c.From, To: c.To, Bytes: n})
		return nil
	}
	// Hosts do not copy within a buffer.
	d.mu.Unlock()
	between, err := d.take(n, Storage)
	d.mu.Lock()
	if err != nil {
		return err
	}
	w.mems = append(w.mems, between) // it has one reference
	w.commands = append(w.commands,
		HostCommand{Do: Copy, Src: src.host, Dst: between.host, From: c.From, Bytes: n},
		HostCommand{Do: Copy, Src: between.host, Dst: src.host, To: c.To, Bytes: n})
	return nil
}

// span checks the part of a buffer that a copy or clear uses.
func (c *Command) span(d *Device, b *Buffer, off int64) error {
	if err := b.usable(d); err != nil {
		return err
	}
	if off < 0 || off%4 != 0 || c.Bytes < 0 || c.Bytes > b.bytes-off {
		return fmt.Errorf("%d bytes at %d of a buffer of %d: %w", c.Bytes, off, b.bytes, ErrInvalid)
	}
	if c.Bytes%4 == 0 || off+c.Bytes == b.bytes {
		return nil
	}
	if c.Src != nil && (c.From+c.Bytes == c.Src.bytes || c.Dst != nil && c.To+c.Bytes == c.Dst.bytes) && off+roundUp(c.Bytes) <= b.room() {
		return nil
	}
	return fmt.Errorf("%d bytes are not a multiple of 4: %w", c.Bytes, ErrInvalid)
}
