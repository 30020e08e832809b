package cuda

import (
	"encoding/binary"
	"fmt"
	"sync"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/ptxgen"
)

// launch is a step, or a part of a step, that runs a kernel.
type launch struct {
	e       *executable
	program *ir.Program
	options ptxgen.Options
	code    *code
	grid    [3]uint32
	arrays  []arrayRef
	lengths []uint32 // lengths of the arrays, in elements of the kernel
	params  []byte
	slot    int // index of the parameters in memory; -1 if the kernel does not read them from memory
	fault   int // index of the fault record; -1 if there is none

	mu       sync.Mutex
	byScalar *code // kernel for memory that is not aligned to vectors, compiled when it is needed
}

// bind adds the array for buffer b of the kernel.
func (l *launch) bind(b *ir.Binding, a arrayRef) error {
	each := int64(4)
	if b.Type == ir.F16 {
		each = 2
	}
	small := b.Type == ir.U32 && l.options.ElementBytes != 0
	if small {
		each = int64(l.options.ElementBytes)
	}
	size := each * int64(b.Width)
	bytes := a.bytes
	if b.Type == ir.U32 && !small {
		bytes = (bytes + 3) &^ 3 // quantised blocks, which are read by words
	}
	if bytes%each != 0 || bytes/size >= 1<<32 {
		return fmt.Errorf("an array of %d bytes cannot be bound to buffer %s: %w", a.bytes, b.Name, driver.ErrShape)
	}
	l.arrays, l.lengths = append(l.arrays, a), append(l.lengths, uint32(bytes/size))
	return nil
}

func (l *launch) enqueue(r *run) error {
	r.addresses = r.addresses[:0]
	k := l.code
	for i, a := range l.arrays {
		p := uint64(r.address(a.place))
		if p%uint64(k.entry.Aligned[i]) != 0 {
			var err error
			if k, err = l.scalar(); err != nil {
				return err
			}
		}
		r.addresses = append(r.addresses, p)
	}
	params := l.params
	if l.slot >= 0 {
		r.params = binary.LittleEndian.AppendUint64(r.params[:0], uint64(r.address(place{kind: inSlot, slot: l.slot})))
		params = r.params
	}
	fault := uint64(0)
	if l.fault >= 0 {
		fault = uint64(r.layout.faults) + uint64(l.fault*ptxgen.FaultBytes)
	}
	r.args = k.entry.Args(r.args[:0], fault, r.addresses, l.lengths, params)
	c := cu.Config{Grid: cu.Dim{X: l.grid[0], Y: l.grid[1], Z: l.grid[2]}, Shared: uint32(k.entry.Dynamic), Overlap: l.e.d.overlap}
	c.Block = cu.Dim{X: k.entry.Local[0], Y: k.entry.Local[1], Z: k.entry.Local[2]}
	return r.hw.Launch(k.fn, c, r.args)
}

func (l *launch) calls() int { return 1 }

// scalar returns the kernel for memory that is aligned only to its elements.
func (l *launch) scalar() (*code, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byScalar == nil {
		o := l.options
		o.Scalar = true
		k, err := l.e.compile(programKey{p: l.program, o: o})
		if err != nil {
			return nil, err
		}
		l.byScalar = k
	}
	return l.byScalar, nil
}

// copyStep copies an array on the device.
type copyStep struct{ dst, src arrayRef }

func (s *copyStep) enqueue(r *run) error {
	return r.hw.Copy(r.address(s.dst.place), r.address(s.src.place), s.src.bytes)
}

func (s *copyStep) calls() int { return 1 }
