package webgpu

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/rayo-go/rayo/internal/incomparable"
)

// work is a running submission: the objects that it uses, and the actions after it has run.
type work struct {
	d      *Device
	serial uint64 // serial of its last part

	mems     []*memory
	groups   []*binding
	commands []HostCommand
	copies   []HostCommand // from the stage that is being filled

	in, out             []span    // transfers through stages
	mappedIn, mappedOut []span    // transfers by mapped memory
	mappable            []*memory // Input and Output among the used buffers, possibly several times
	owned               []*memory // of mappable
	done                chan struct{}

	ups   []sent
	downs []sent
	parts []part
	taken int // downs that have been taken from

	stamps  *[]uint64
	stamped uint32
}

// sent is a stage in a running submission.
type sent struct {
	stage       *stage
	serial      uint64
	first, last int   // of work.parts
	used        int64 // by stamps
}

// part is a result in a stage.
type part struct {
	host []byte
	at   int64
}

var errNotMapped = errors.New("the library did not map the memory of the host")

var works = sync.Pool{New: func() any { return new(work) }}

func (d *Device) newWork() *work {
	w := works.Get().(*work)
	w.d = d
	d.pending.Add(1)
	return w
}

// end waits until the submission has run and copies its results. If ctx ends earlier, end returns and
// the results are discarded. The caller must not use w afterwards.
func (w *work) end(ctx context.Context) error {
	d := w.d
	var err error
	for err == nil && w.taken < len(w.downs) {
		err = w.takeFirst(ctx)
	}
	if err == nil {
		err = d.until(ctx, w.serial)
	}
	if err == nil {
		err = w.takeMapped()
	}
	if err != nil && d.failed() == nil && d.wait.reached.Load() < w.serial {
		// The submission still runs: a goroutine waits for its end and drops the results.
		clear(w.parts)
		clear(w.mappedOut)
		go func() {
			_ = d.watch(w.serial)
			w.finish()
		}()
		return err
	}
	w.finish()
	return err
}

// takeFirst takes the results from the first stage that still has some.
func (w *work) takeFirst(ctx context.Context) error {
	d := w.d
	s := &w.downs[w.taken]
	if err := d.until(ctx, s.serial); err != nil {
		return err
	}
	err := w.takeFrom(s)
	if err == nil {
		s.stage.host.Unmap()
	}
	w.taken++
	d.unstage(s.stage, err == nil)
	return err
}

// takeFrom takes the results from a stage that is mapped.
func (w *work) takeFrom(s *sent) error {
	d := w.d
	if s.used > 0 {
		times := make([]byte, 8*w.stamped)
		if err := d.read(s.stage.host, 0, times); err != nil {
			return err
		}
		for i := range int(w.stamped) {
			t := binary.LittleEndian.Uint64(times[8*i:])
			*w.stamps = append(*w.stamps, uint64(float64(t)*d.adapter.Tick))
		}
	}
	for _, p := range w.parts[s.first:s.last] {
		if err := d.read(s.stage.host, p.at, p.host); err != nil {
			return err
		}
		d.stats.downloaded.Add(uint64(len(p.host)))
	}
	return nil
}

// read copies bytes from mapped memory.
func (d *Device) read(b HostBuffer, off int64, to []byte) error {
	if d.remote != nil {
		return d.hosted(d.remote.Read(b, off, to))
	}
	mapped := b.Mapped()
	if mapped == nil {
		return errNotMapped
	}
	d.copies(to, mapped[off:off+int64(len(to))])
	return nil
}

// finish releases the objects of the submission, which has run, or whose device is lost.
func (w *work) finish() {
	d := w.d
	lost := d.failed() != nil
	for i := range w.ups {
		if !lost {
			d.unstage(w.ups[i].stage, true)
		}
	}
	for i := w.taken; i < len(w.downs); i++ {
		if s := w.downs[i].stage; !lost {
			s.host.Unmap()
			d.unstage(s, true)
		}
	}
	w.disown()
	w.free()
}

// abandon ends a submission if only some of its parts were submitted.
func (w *work) abandon() {
	d := w.d
	if w.serial == 0 || d.failed() != nil {
		for i := range w.ups {
			d.unstage(w.ups[i].stage, false)
		}
		for i := w.taken; i < len(w.downs); i++ {
			d.unstage(w.downs[i].stage, false)
		}
		w.disown()
		w.free()
		return
	}
	// Some parts are running.
	go func() {
		_ = d.watch(w.serial)
		if d.failed() == nil {
			for i := range w.ups {
				d.unstage(w.ups[i].stage, false)
			}
			for i := w.taken; i < len(w.downs); i++ {
				d.unstage(w.downs[i].stage, false)
			}
		}
		w.disown()
		w.free()
	}()
}

// free frees objects without references, and w itself.
func (w *work) free() {
	d := w.d
	d.mu.Lock()
	for _, b := range w.groups {
		d.dropGroup(b)
	}
	for _, m := range w.mems {
		d.memory.drop(m)
	}
	d.mu.Unlock()
	clear(w.mems)
	clear(w.groups)
	clear(w.commands)
	clear(w.copies)
	clear(w.ups)
	clear(w.downs)
	clear(w.parts)
	clear(w.in)
	clear(w.out)
	clear(w.mappedIn)
	clear(w.mappedOut)
	clear(w.mappable)
	clear(w.owned)
	*w = work{
		mems: w.mems[:0], groups: w.groups[:0], commands: w.commands[:0], copies: w.copies[:0],
		in: w.in[:0], out: w.out[:0], mappedIn: w.mappedIn[:0], mappedOut: w.mappedOut[:0], mappable: w.mappable[:0], owned: w.owned[:0],
		ups: w.ups[:0], downs: w.downs[:0], parts: w.parts[:0],
	}
	works.Put(w)
	d.pending.Add(-1)
}

// Fence is the completion of a submission.
type Fence struct {
	_ incomparable.Type

	d      *Device
	serial uint64
	done   chan struct{}
	err    error // set when done is closed
	once   sync.Once
}

// Done is closed when the results are in place, or the submission has failed.
func (f *Fence) Done() <-chan struct{} { return f.done }

// Wait waits for the fence or for ctx.
func (f *Fence) Wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	default:
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		// The device may have hung.
		f.once.Do(func() { go func() { _ = f.d.watch(f.serial) }() })
		return ctx.Err()
	}
}
