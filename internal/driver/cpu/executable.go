package cpu

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/memory"
)

// executable is a prepared program. The mutable state is in frames. Each frame serves one
// submission at a time.
type executable struct {
	d     *processor
	slots []driver.Slot
	steps []step
	arena int  // bytes of temporaries, of the program and of its steps
	keep  bool // the arena is small, so each frame keeps one

	driver.Externals
	consts []constant

	permits chan struct{} // has an element for each submission in a frame; its capacity is their maximum number
	idle    chan *frame   // frames that no submission uses
	shut    chan struct{}
	closed  atomic.Bool
	inUse   driver.RefBarrier // counts the submissions in the queue
}

// constant is the memory of a constant slot.
type constant struct {
	slot int
	data []byte
}

// step is one step of a program, prepared. It is immutable.
type step interface {
	// runner returns the runner of the step in a frame.
	runner(f *frame) runner
}

// runner runs one step in a frame, with the memory in f.base.
type runner interface {
	run(ctx context.Context, f *frame) error
}

// A frame is the working memory of one submission.
type frame struct {
	d       *processor
	base    []unsafe.Pointer // address of each slot; nil if the slot is empty
	arena   memory.Block
	temp    unsafe.Pointer // the arena
	runners []runner
	lane    lane // lane of the calling goroutine
}

const (
	// Arenas up to this size stay with their frame; larger ones return to the device's pool after
	// each submission, so that an idle plan holds no large memory.
	keepArena = 256 << 10
	// Maximum number of concurrent submissions of one program. Each uses all cores, so more frames
	// would not be faster.
	maxFrames = 16
	// Approximate maximum size of the arenas of all frames of one program.
	maxArenas = 64 << 20
)

func (d *processor) prepare(ctx context.Context, p *driver.Program) (driver.Executable, error) {
	if d.closed.Load() {
		return nil, driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e := &executable{d: d, slots: p.Slots, shut: make(chan struct{}), Externals: driver.ExternalsOf(p)}
	for i := range p.Slots {
		if b := p.Slots[i].Data; b != nil {
			e.consts = append(e.consts, constant{i, aligned(b)})
		}
	}
	e.arena = int(p.Arena)
	for i := range p.Steps {
		st, err := d.prepareStep(&p.Steps[i], e)
		if err != nil {
			return nil, fmt.Errorf("step %d, %s: %w", i, p.Steps[i].Name(), err)
		}
		e.steps = append(e.steps, st)
	}
	e.keep = e.arena <= keepArena
	n := max(1, min(maxFrames, maxArenas/max(1, e.arena)))
	e.permits, e.idle = make(chan struct{}, n), make(chan *frame, n)
	return e, nil
}

// aligned returns b, or a copy of b that is aligned for 32-bit values.
func aligned(b []byte) []byte {
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%4 == 0 {
		return b
	}
	w := make([]uint32, (len(b)+3)/4)
	c := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), len(b))
	copy(c, b)
	return c
}

// reserve adds temporary memory of a step to the arena and returns its offset.
func (e *executable) reserve(bytes int) int {
	at := (e.arena + 255) &^ 255
	e.arena = at + bytes
	return at
}

func (e *executable) Submit(ctx context.Context, s *driver.Submission) (driver.Fence, error) {
	if e.closed.Load() {
		return nil, driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := e.Check(s.Ext, behind); err != nil {
		return nil, err
	}
	t := newQueueEntry(s.Ext, e.Written)
	if s.Wait {
		if t != nil {
			e.d.tracker.enter(t)
		}
		return nil, e.admit(ctx, s, t)
	}
	if !e.inUse.Enter() {
		return nil, driver.ErrClosed
	}
	j := driver.NewJob(s)
	e.d.queue.push(job{j, ctx, e, t})
	return j, nil
}

// behind returns the number of bytes of an array from an offset on.
func behind(m driver.Memory, off int64) (int64, error) {
	a, ok := m.(*array)
	switch {
	case !ok:
		return 0, driver.ErrForeign
	case off < 0 || a.base == nil && a.bytes > 0:
		return -1, nil
	}
	return a.bytes - off, nil
}

// running counts the submissions in the queue.
func (e *executable) running() *driver.RefBarrier { return &e.inUse }

// admit runs s when its entry is admitted.
func (e *executable) admit(ctx context.Context, s *driver.Submission, t *queueEntry) error {
	if t == nil {
		return e.enter(ctx, s)
	}
	if err := e.d.tracker.await(ctx, t); err != nil {
		return err
	}
	defer e.d.tracker.leave(t)
	return e.enter(ctx, s)
}

// enter waits until fewer than the maximum number of submissions run, and runs s in a frame. A submission with a frame never
// waits for another one.
func (e *executable) enter(ctx context.Context, s *driver.Submission) error {
	select {
	case e.permits <- struct{}{}:
	default:
		select {
		case e.permits <- struct{}{}:
		case <-e.shut:
			return driver.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-e.permits }()
	if e.closed.Load() {
		return driver.ErrClosed
	}
	f, err := e.frame()
	if err != nil {
		return err
	}
	defer func() { e.idle <- f }()
	if !e.keep {
		if err := f.takeArena(e); err != nil {
			return err
		}
		defer f.dropArena()
	}
	f.bind(e, s.Ext)
	defer f.unbind(e)
	return f.run(ctx, s.Times)
}

// frame returns an idle frame. It makes one only if all are in use, because frames of large programs take hundreds of kilobytes.
func (e *executable) frame() (*frame, error) {
	select {
	case f := <-e.idle:
		return f, nil
	default:
		return e.newFrame()
	}
}

func (e *executable) newFrame() (*frame, error) {
	f := &frame{d: e.d, base: make([]unsafe.Pointer, len(e.slots))}
	if e.keep {
		if err := f.takeArena(e); err != nil {
			return nil, err
		}
	}
	for _, c := range e.consts {
		f.base[c.slot] = unsafe.Pointer(unsafe.SliceData(c.data))
	}
	for _, s := range e.steps {
		f.runners = append(f.runners, s.runner(f))
	}
	return f, nil
}

func (f *frame) takeArena(e *executable) error {
	b, err := e.d.memory.Get(e.arena)
	if err != nil {
		return fmt.Errorf("temporary memory: %w", err)
	}
	f.arena, f.temp = b, base(b)
	for i := range e.slots {
		if s := &e.slots[i]; s.Data == nil && s.Ext < 0 && s.Bytes > 0 {
			f.base[i] = unsafe.Add(f.temp, s.Off)
		}
	}
	return nil
}

func (f *frame) dropArena() {
	f.arena.Free()
	f.arena, f.temp = memory.Block{}, nil
}

// bind sets the addresses of the external slots.
func (f *frame) bind(e *executable, ext []driver.Binding) {
	for i := range e.slots {
		s := &e.slots[i]
		if s.Ext < 0 || s.Data != nil {
			continue
		}
		b := &ext[s.Ext]
		switch {
		case s.Bytes == 0:
			f.base[i] = nil
		case b.Mem != nil:
			f.base[i] = unsafe.Add(b.Mem.(*array).base, b.Off)
		default:
			f.base[i] = unsafe.Pointer(unsafe.SliceData(b.Host))
		}
	}
}

// unbind drops the addresses of the caller's memory, so that the frame does not keep it alive.
func (f *frame) unbind(e *executable) {
	for i := range e.slots {
		if e.slots[i].Data == nil && e.slots[i].Ext >= 0 {
			f.base[i] = nil
		}
	}
}

// run runs the steps in order. It converts a panic in a step, which is a bug of this package or of
// a kernel, to an error.
func (f *frame) run(ctx context.Context, times *driver.Times) (err error) {
	defer driver.Recovered(&err)
	if times != nil {
		return f.runTimed(ctx, times)
	}
	for _, r := range f.runners {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.run(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (f *frame) runTimed(ctx context.Context, times *driver.Times) error {
	start := time.Now()
	for i, r := range f.runners {
		if err := ctx.Err(); err != nil {
			return err
		}
		from := time.Since(start)
		if err := r.run(ctx, f); err != nil {
			return err
		}
		if i < len(times.Steps) {
			times.Steps[i] = driver.Span{Start: from, End: time.Since(start)}
		}
	}
	times.Total = driver.Span{End: time.Since(start)}
	return nil
}

// Close waits for running submissions and frees the frames.
func (e *executable) Close() {
	e.inUse.Shut(func() {
		e.closed.Store(true)
		close(e.shut)
		for range cap(e.permits) {
			e.permits <- struct{}{}
		}
		for range len(e.idle) {
			(<-e.idle).dropArena()
		}
	})
}
