package webgpu

import (
	"context"
	"slices"
)

// If kernels can access memory that the host maps, small operands and results need no
// staging copies, which would double the time of a round trip. Memory is either mapped, for
// the host, or unmapped, for the device. So one submission at a time uses such memory: the
// next one waits until the results have been read and the memory is mapped again.

// maxMapped is the maximum size of such a buffer in bytes. For larger buffers, copies that
// overlap with the transfer are as fast.
const maxMapped = 8 << 20

// hostMapping is the state of memory for Input or Output. The lock of the queue guards it.
type hostMapping struct {
	mapped bool
	owner  chan struct{} // closed when the submission that uses the memory exclusively is done
}

// approach prepares the memory for the submission and writes operands to it. The caller holds the lock
// of the queue.
func (w *work) approach(ctx context.Context, q *queue) error {
	for _, m := range w.mappable {
		if m.mapping.owner == nil {
			continue
		}
		select {
		case <-m.mapping.owner:
		case <-ctx.Done():
			return ctx.Err()
		case <-w.d.lost:
			return w.d.lostErr
		}
		m.mapping.owner = nil
	}
	late := newUpload(nil)
	for _, s := range w.mappedIn {
		mapped := []byte(nil)
		if s.m.mapping.mapped {
			mapped = s.m.host.Mapped()
		}
		w.toMap(s.m) // for the next submission
		if mapped == nil {
			late.list = append(late.list, s)
			continue
		}
		n := int64(len(s.host))
		w.d.copies(mapped[s.off:s.off+n], s.host)
		clear(mapped[s.off+n : s.off+(n+3)&^3])
		w.d.stats.uploaded.Add(uint64(n))
	}
	for _, s := range w.mappedOut {
		w.toMap(s.m)
	}
	for _, m := range w.mappable {
		if m.mapping.mapped {
			m.host.Unmap()
			m.mapping.mapped = false
		}
	}
	if late.left = aligned(late.list); late.left == 0 {
		return nil
	}
	if err := late.fill(ctx, w); err != nil {
		return err
	}
	late.put(q, w)
	return nil
}

// toMap makes the host map m when the submission is complete.
func (w *work) toMap(m *memory) {
	if !slices.Contains(w.owned, m) {
		w.owned = append(w.owned, m)
	}
}

// own reserves the memory that will be mapped for the submission. The caller holds the lock of the
// queue, and the submission is in the queue.
func (w *work) own() {
	if len(w.owned) == 0 || w.done != nil {
		return
	}
	w.done = make(chan struct{})
	for _, m := range w.owned {
		m.mapping.owner = w.done
		m.mapping.mapped = m.usage == Input // before another submission reads the field
	}
}

// takeMapped copies results from memory that is now mapped.
func (w *work) takeMapped() error {
	for _, s := range w.mappedOut {
		mapped := s.m.host.Mapped()
		if mapped == nil {
			return errNotMapped
		}
		w.d.copies(s.host, mapped[s.off:s.off+int64(len(s.host))])
		w.d.stats.downloaded.Add(uint64(len(s.host)))
	}
	return nil
}

// disown releases the memory for other submissions. The submission is complete, or the device is lost.
func (w *work) disown() {
	if w.done == nil {
		return
	}
	if w.d.failed() == nil {
		for _, m := range w.owned {
			if m.usage == Output {
				m.host.Unmap()
			}
		}
	}
	close(w.done)
}
