package device

import (
	"sync"

	"github.com/rayo-go/rayo/internal/engine"
)

// LockedPages is memory that [LockPages] has locked.
type LockedPages struct {
	once   sync.Once
	unlock func() error
	err    error
}

// LockPages locks the pages of s in the memory of the host, so that a GPU copies operands and results in
// s directly. It is worth it for memory that is used several times: locking takes about as long as one
// copy, and copies of more than a few hundred KiB are then up to twice as fast. For example, a
// pipeline over a slice (batch.Pipeline.RunSlice) runs at the speed of the bus.
//
//	pages, err := device.LockPages(dev, x)
//	...
//	defer pages.Unlock()
//
// Parts of s that are copied must not change while a call uses them, as without LockPages. On devices
// whose copies would not be faster, such as the CPU, LockPages does nothing.
//
// # Errors
//   - [ErrOverlap] if some of the pages are locked already, also for another device.
//   - [ErrUnsupported] if the memory is not writable, as that of a file that is mapped for reading.
//   - [ErrOutOfMemory] if the system does not lock so much memory, and [ErrClosed].
func LockPages[T Element](d *Device, s []T) (*LockedPages, error) {
	if d == nil {
		return nil, errNilDevice
	}
	unlock, err := d.engine().LockPages(engine.Bytes(s))
	if err != nil {
		return nil, d.wrapAs(err, copying, []int{len(s)})
	}
	return &LockedPages{unlock: unlock}, nil
}

// Unlock unlocks the pages, after the copies that use them. The memory remains valid. Unlocking again
// does nothing, and closing the device unlocks all pages.
func (p *LockedPages) Unlock() error {
	if p == nil || p.unlock == nil {
		return nil
	}
	p.once.Do(func() { p.err = p.unlock() })
	return p.err
}
