package emu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"
)

// Ptr is an address in the global memory of a machine.
type Ptr uint64

// Errors of launches.
var (
	// ErrMemory is wrapped by errors about memory that the machine does not have.
	ErrMemory = errors.New("emu: memory is not allocated")
	// ErrLaunch is wrapped by errors about a grid, a block or parameters that the kernel does not
	// accept.
	ErrLaunch = errors.New("emu: invalid launch")
	// ErrLimit is wrapped by errors about sizes that exceed a limit.
	ErrLimit = errors.New("emu: over a limit")
)

// Config says how a machine runs kernels. The zero Config is valid.
type Config struct {
	// Steps is the maximum number of warp instructions of a launch; 0 means 1<<28.
	Steps int64
	// Findings is the number of findings after which a launch ends; 0 means 16.
	Findings int
	// Memory is the maximum number of allocated bytes; 0 means 1<<30.
	Memory int64
	// Schedule is the order in which blocks and warps run.
	Schedule Schedule
	// Seed is the seed of the schedule Shuffled.
	Seed uint64
	// Unchecked turns off the checks for races and uninitialised memory, which makes memory
	// accesses faster. All other checks stay on.
	Unchecked bool
}

// Schedule is an order in which blocks, and the warps of a block, run. All orders are valid: a
// kernel whose results depend on the order has a defect.
type Schedule uint8

const (
	Ascending  Schedule = iota // in order; each warp runs until it waits
	Descending                 // in reverse order
	Shuffled                   // in random order, a few instructions at a time
)

// Machine is a device with global memory that runs kernels. Only one goroutine may use it.
type Machine struct {
	config Config
	allocs []*allocation // ordered by address
	next   uint64
	used   int64
	stats  Stats
	launch uint32 // number of launches so far
	loaded map[*Module]map[int]*allocation
}

// allocation is a range of global memory.
type allocation struct {
	name     string
	base     uint64
	data     []byte
	defined  bitmap
	whole    bool // all of it is defined
	constant bool // kernels may only read it
	shadow   shadow
}

// Global memory begins far from shared and parameter addresses. There is a gap between allocations,
// and no allocation is aligned better than the driver guarantees.
const (
	globalBase  = 0x7f0000000000
	globalAlign = 256
	globalGap   = 4096
)

// NewMachine returns a machine without memory.
func NewMachine(c Config) *Machine {
	if c.Steps <= 0 {
		c.Steps = 1 << 28
	}
	if c.Findings <= 0 {
		c.Findings = 16
	}
	if c.Memory <= 0 {
		c.Memory = 1 << 30
	}
	return &Machine{config: c, next: globalBase}
}

// Alloc allocates the given number of bytes, which are undefined until they are written. Findings use the name.
func (m *Machine) Alloc(name string, bytes int) (Ptr, error) {
	if bytes < 0 || int64(bytes) > m.config.Memory-m.used {
		return 0, fmt.Errorf("%w: allocating %d bytes for %s: expected 0 to %d, the rest of Config.Memory", ErrLimit, bytes, name, m.config.Memory-m.used)
	}
	at := (m.next + globalAlign - 1) &^ (globalAlign - 1)
	if at%(2*globalAlign) == 0 {
		at += globalAlign
	}
	a := &allocation{name: name, base: at, data: make([]byte, bytes), defined: newBitmap(bytes), shadow: newShadow(bytes), whole: bytes == 0}
	m.next = at + uint64(bytes) + globalGap
	m.allocs = append(m.allocs, a)
	m.used += int64(bytes)
	return Ptr(at), nil
}

// Free frees an allocation. Its addresses are then out of bounds.
func (m *Machine) Free(p Ptr) error {
	for i, a := range m.allocs {
		if a.base == uint64(p) {
			m.used -= int64(len(a.data))
			m.allocs = append(m.allocs[:i:i], m.allocs[i+1:]...)
			return nil
		}
	}
	return fmt.Errorf("%w: no allocation begins at %#x", ErrMemory, uint64(p))
}

// find returns the allocation that contains n bytes from addr on, or nil.
func (m *Machine) find(addr uint64, n int) *allocation {
	i := sort.Search(len(m.allocs), func(i int) bool { return m.allocs[i].base > addr }) - 1
	if i < 0 {
		return nil
	}
	a := m.allocs[i]
	if off := addr - a.base; off > uint64(len(a.data)) || uint64(len(a.data))-off < uint64(n) {
		return nil
	}
	return a
}

// near describes an address outside of all allocations.
func (m *Machine) near(addr uint64) (name string, off int64) {
	i := sort.Search(len(m.allocs), func(i int) bool { return m.allocs[i].base > addr }) - 1
	if i >= 0 && addr-m.allocs[i].base < uint64(len(m.allocs[i].data))+globalGap {
		return m.allocs[i].name, int64(addr - m.allocs[i].base)
	}
	return "", -1
}

func (m *Machine) span(p Ptr, n int) (*allocation, int, error) {
	a := m.find(uint64(p), n)
	if a == nil {
		return nil, 0, fmt.Errorf("%w: accessing %d bytes at %#x", ErrMemory, n, uint64(p))
	}
	return a, int(uint64(p) - a.base), nil
}

// Write copies data to the memory of the machine.
func (m *Machine) Write(p Ptr, data []byte) error {
	a, off, err := m.span(p, len(data))
	if err != nil {
		return err
	}
	copy(a.data[off:], data)
	a.defined.set(off, len(data))
	a.whole = a.whole || len(data) == len(a.data)
	return nil
}

// Read copies memory of the machine to data. Bytes that were never written are 0xff, so that
// elements of a float array are NaN.
func (m *Machine) Read(p Ptr, data []byte) error {
	a, off, err := m.span(p, len(data))
	if err != nil {
		return err
	}
	copy(data, a.data[off:])
	if !a.whole {
		for i := range data {
			if !a.defined.has(off+i, 1) {
				data[i] = 0xff
			}
		}
	}
	return nil
}

// Floats allocates an array that holds v.
func (m *Machine) Floats(name string, v []float32) (Ptr, error) {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	return m.array(name, b)
}

// Words allocates an array that holds v.
func (m *Machine) Words(name string, v []uint32) (Ptr, error) {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], x)
	}
	return m.array(name, b)
}

func (m *Machine) array(name string, b []byte) (Ptr, error) {
	p, err := m.Alloc(name, len(b))
	if err == nil {
		err = m.Write(p, b)
	}
	return p, err
}

// ReadFloats reads n elements.
func (m *Machine) ReadFloats(p Ptr, n int) ([]float32, error) {
	w, err := m.ReadWords(p, n)
	v := make([]float32, len(w))
	for i, x := range w {
		v[i] = math.Float32frombits(x)
	}
	return v, err
}

// ReadWords reads n elements.
func (m *Machine) ReadWords(p Ptr, n int) ([]uint32, error) {
	if n < 0 || int64(n) > m.config.Memory/4 {
		return nil, fmt.Errorf("%w: reading %d elements, expected 0 to %d", ErrMemory, n, m.config.Memory/4)
	}
	b := make([]byte, 4*n)
	if err := m.Read(p, b); err != nil {
		return nil, err
	}
	v := make([]uint32, n)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return v, nil
}

// Stats returns the statistics of the last launch.
func (m *Machine) Stats() *Stats { return &m.stats }

// bitmap has a bit for each byte.
type bitmap []uint64

func newBitmap(n int) bitmap { return make(bitmap, (n+63)/64+1) }

// has reports whether n bits, at most 16, from i on are all set.
func (b bitmap) has(i, n int) bool {
	w, s := i>>6, i&63
	m := uint64(1)<<n - 1
	v := b[w] >> s
	if s+n > 64 {
		v |= b[w+1] << (64 - s)
	}
	return v&m == m
}

func (b bitmap) set(i, n int) {
	for n > 0 {
		s := i & 63
		k := min(64-s, n)
		b[i>>6] |= (1<<k - 1) << s
		i, n = i+k, n-k
	}
}

func (b bitmap) unset(i, n int) {
	for n > 0 {
		s := i & 63
		k := min(64-s, n)
		b[i>>6] &^= (1<<k - 1) << s
		i, n = i+k, n-k
	}
}
