package cpu

import (
	"math"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/incomparable"
	"github.com/rayo-go/rayo/internal/memory"
)

// array is device memory: a block of the pool, and its current users.
type array struct {
	_ incomparable.Type

	block memory.Block
	base  unsafe.Pointer
	bytes int64
	access
}

func (d *processor) Alloc(bytes int64) (driver.Memory, error) {
	if d.closed.Load() {
		return nil, driver.ErrClosed
	}
	if bytes < 0 || bytes > math.MaxInt {
		return nil, fmt.Errorf("%d bytes: %w", bytes, driver.ErrOutOfMemory)
	}
	b, err := d.memory.Get(int(bytes))
	if err != nil {
		return nil, err
	}
	return &array{block: b, base: base(b), bytes: bytes}, nil
}

func (a *array) Bytes() int64 { return a.bytes }

func (a *array) Free() {
	a.block.Free()
	a.base = nil
}

// base returns the address of a block; nil if it is empty.
func base(b memory.Block) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(memory.As[uint8](b)))
}
