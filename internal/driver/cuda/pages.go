package cuda

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"unsafe"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
)

// lockedPages are pages of users' memory that are locked. The device copies them directly, instead
// of by way of the ring.
type lockedPages struct {
	mu   sync.RWMutex
	list []HostMemory
}

// LockPages implements [driver.PageLocker].
func (d *gpuDevice) LockPages(b []byte) (unlock func() error, err error) {
	b = wholePages(b)
	if len(b) == 0 {
		return func() error { return nil }, nil
	}
	if err := d.pages.overlap(b); err != nil {
		return nil, err
	}
	h, err := d.hw.LockHost(b) // takes long, so other calls may lock pages meanwhile; the driver refuses pages that are locked
	if err != nil {
		return nil, d.translateError(err)
	}
	d.pages.mu.Lock()
	d.pages.list = append(d.pages.list, h)
	d.pages.mu.Unlock()
	return func() error { return d.unlockPages(h) }, nil
}

// overlap returns an error if a part of b is locked.
func (p *lockedPages) overlap(b []byte) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if h, from, to := p.find(b); h != nil {
		return fmt.Errorf("bytes %d to %d are locked already: %w", from, to, driver.ErrOverlap)
	}
	return nil
}

// unlockPages unlocks pages once. No submission uses them after they are removed from the list, and
// the device has finished the copies of earlier submissions when it returns.
func (d *gpuDevice) unlockPages(h HostMemory) error {
	p := &d.pages
	p.mu.Lock()
	at := slices.Index(p.list, h)
	if at >= 0 {
		p.list = slices.Delete(p.list, at, at+1)
	}
	p.mu.Unlock()
	if at < 0 {
		return nil
	}
	err := d.hw.Synchronize()
	if closed := h.Close(); err == nil {
		err = closed
	}
	return d.translateError(err)
}

// free unlocks all pages.
func (p *lockedPages) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.list {
		_ = h.Close()
	}
	p.list = nil
}

// wholePages returns the part of b that consists of whole pages.
func wholePages(b []byte) []byte {
	page := uintptr(os.Getpagesize())
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := -from & (page - 1)
	if uintptr(len(b)) < skip+page {
		return nil
	}
	return b[skip : skip+(uintptr(len(b))-skip)&^(page-1)]
}

// common returns the range of b that is also part of c.
func common(b, c []byte) (from, to int) {
	if len(b) == 0 || len(c) == 0 {
		return 0, 0
	}
	distance := int(uintptr(unsafe.Pointer(&c[0])) - uintptr(unsafe.Pointer(&b[0])))
	from, to = max(distance, 0), min(distance+len(c), len(b))
	if from >= to {
		return 0, 0
	}
	return from, to
}

// find returns locked memory that contains a part of b, and the range of that part. The caller
// holds the lock.
func (p *lockedPages) find(b []byte) (h HostMemory, from, to int) {
	for _, h := range p.list {
		if from, to := common(b, h.Bytes()); from < to {
			return h, from, to
		}
	}
	return nil, len(b), len(b)
}

// transfer calls locked for each part of b whose pages are locked, and other for the remaining parts,
// with the offset of the part in b.
func (p *lockedPages) transfer(b []byte, locked func(h HostMemory, off int64, at, n int) error, other func(at int, b []byte) error) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.divide(b, 0, locked, other)
}

func (p *lockedPages) divide(b []byte, at int, locked func(h HostMemory, off int64, at, n int) error, other func(at int, b []byte) error) error {
	h, from, to := p.find(b)
	if h == nil {
		if len(b) == 0 {
			return nil
		}
		return other(at, b)
	}
	off, _ := common(h.Bytes(), b[from:to])
	if err := locked(h, int64(off), at+from, to-from); err != nil {
		return err
	}
	if err := p.divide(b[:from], at, locked, other); err != nil {
		return err
	}
	return p.divide(b[to:], at+to, locked, other)
}

// upload copies an operand to the device. Pages that are locked must not change until the run has
// ended.
func (r *run) upload(dst cu.Ptr, src []byte) error {
	return r.e.d.pages.transfer(src, func(h HostMemory, off int64, at, n int) error {
		return r.hw.CopyFromHost(dst+cu.Ptr(at), h, off, int64(n))
	}, func(at int, b []byte) error { return r.hw.Upload(dst+cu.Ptr(at), b) })
}

// fetch copies a result to the host. Pages that are locked are complete when the run has ended.
func (r *run) fetch(dst []byte, src cu.Ptr) error {
	return r.e.d.pages.transfer(dst, func(h HostMemory, off int64, at, n int) error {
		return r.hw.CopyToHost(h, off, src+cu.Ptr(at), int64(n))
	}, func(at int, b []byte) error { return r.hw.Download(b, src+cu.Ptr(at)) })
}
