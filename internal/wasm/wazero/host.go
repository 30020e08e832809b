//go:build wazero && !js

// Package wazero runs a module of SIMD128 kernels outside of JavaScript, in wazero. Each call
// under way has an instance of the module on a memory of its own: what a kernel reads is copied
// into it before the call, and what it has written is copied out afterwards.
package wazero

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/wasm/frame"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Host is a module of kernels. It is safe for concurrent use.
type Host struct {
	module  []byte
	compile sync.Once
	runtime wazero.Runtime
	code    wazero.CompiledModule

	mu   sync.Mutex
	free []*Call
}

// Call is a call of a kernel, to be given arguments.
type Call struct {
	Core   uint32 // of an elementwise kernel, the place of its loop
	Ints   [frame.NumInts]int
	Floats [frame.NumFloats]float32

	kernel   uint32
	pointers [frame.NumPointers]uint32
	outputs  [frame.NumPointers]output

	host    *Host
	memory  api.Memory
	bytes   []byte // of memory
	top     int    // where the next argument goes
	run     api.Function
	stack   [2]uint64
	closers [2]api.Closer
}

// An output is what a kernel writes: rows that lie beside each other in the module's memory, and
// apart in this program's.
type output struct {
	p                  unsafe.Pointer
	from               int // in the module's memory
	rows, width, apart int
}

const (
	// callAt is where the call lies: pointers to 0 are nil.
	callAt   = 64
	pageSize = 1 << 16
	// firstPages is the size of a new memory. It grows with the arguments.
	firstPages = 16
	// keptBytes is the most memory that an instance without a call keeps.
	keptBytes = 64 << 20
)

// Start returns a host of a module, which is compiled at the first call.
func Start(module []byte) (*Host, error) { return &Host{module: module}, nil }

// Begin returns a call of the kernel at a place of the table. Run ends it.
func (h *Host) Begin(place uint32) *Call {
	h.mu.Lock()
	var c *Call
	if n := len(h.free); n > 0 {
		c, h.free = h.free[n-1], h.free[:n-1]
	}
	h.mu.Unlock()
	if c == nil {
		c = h.instance()
	}
	c.kernel, c.top = place, callAt+frame.Size
	return c
}

// instance returns a call with a new instance of the module.
func (h *Host) instance() *Call {
	ctx := context.Background()
	h.compile.Do(func() {
		h.runtime = wazero.NewRuntime(ctx)
		code, err := h.runtime.CompileModule(ctx, h.module)
		must(err)
		h.code = code
	})
	// A module that exports a memory of so many pages.
	env := []byte{0, 'a', 's', 'm', 1, 0, 0, 0, 5, 3, 1, 0, firstPages, 7, 10, 1, 6, 'm', 'e', 'm', 'o', 'r', 'y', 2, 0}
	m, err := h.runtime.InstantiateWithConfig(ctx, env, wazero.NewModuleConfig().WithName(""))
	must(err)
	ctx = experimental.WithImportResolver(ctx, func(string) api.Module { return m })
	i, err := h.runtime.InstantiateModule(ctx, h.code, wazero.NewModuleConfig().WithName(""))
	must(err)
	c := &Call{host: h, memory: m.ExportedMemory("memory"), run: i.ExportedFunction("run"), closers: [2]api.Closer{i, m}}
	c.view()
	return c
}

// must panics if the module of this package's own making does not run.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("BUG: wazero: %v", err))
	}
}

// view takes the memory, which moves as it grows.
func (c *Call) view() { c.bytes, _ = c.memory.Read(0, c.memory.Size()) }

// room returns where size bytes of an argument go. It panics if there is no memory.
func (c *Call) room(size int) int {
	at := (c.top + 63) &^ 63
	// Kernels may read a vector beyond what they use.
	if size < 0 || size > math.MaxInt32 || at > math.MaxInt32 {
		panic(fmt.Sprintf("wazero: no memory for an argument of %d bytes", size))
	}
	if need := at + size + 64; need > len(c.bytes) {
		pages := (need-len(c.bytes))/pageSize + 1 + len(c.bytes)/pageSize/2
		if _, ok := c.memory.Grow(uint32(pages)); !ok {
			panic(fmt.Sprintf("wazero: no memory for an argument of %d bytes", size))
		}
		c.view()
	}
	c.top = at + size
	return at
}

// Read makes pointer i one to bytes that the kernel reads; p may be nil.
func (c *Call) Read(i int, p unsafe.Pointer, bytes int) { c.ReadRows(i, p, 1, bytes, bytes) }

// Write makes pointer i one to bytes that the kernel writes; p may be nil.
func (c *Call) Write(i int, p unsafe.Pointer, bytes int) { c.WriteRows(i, p, 1, bytes, bytes) }

// ReadRows makes pointer i one to rows of so many bytes that the kernel reads, and returns how
// far apart the kernel finds them.
func (c *Call) ReadRows(i int, p unsafe.Pointer, rows, width, apart int) int {
	if p == nil {
		return width
	}
	at := c.place(i, rows, width)
	for r := range rows {
		copy(c.bytes[at+r*width:], bytesAt(p, r*apart, width))
	}
	return width
}

// WriteRows is ReadRows for rows that the kernel writes.
func (c *Call) WriteRows(i int, p unsafe.Pointer, rows, width, apart int) int {
	if p != nil {
		c.outputs[i] = output{p, c.place(i, rows, width), rows, width, apart}
	}
	return width
}

// UpdateRows is ReadRows for rows that the kernel reads and writes.
func (c *Call) UpdateRows(i int, p unsafe.Pointer, rows, width, apart int) int {
	c.ReadRows(i, p, rows, width, apart)
	if p != nil {
		c.outputs[i] = output{p, int(c.pointers[i]), rows, width, apart}
	}
	return width
}

// Gather passes p as pointer i, and a list of count offsets from p in bytes as pointer i+1. The kernel
// reads width bytes at each offset.
func (c *Call) Gather(i int, p unsafe.Pointer, offsets *int, count, width int) {
	at := c.place(i, count, width)
	list := c.place(i+1, count, 8)
	for r, offset := range unsafe.Slice(offsets, count) {
		copy(c.bytes[at+r*width:], bytesAt(p, offset, width))
		binary.LittleEndian.PutUint64(c.bytes[list+8*r:], uint64(r*width))
	}
}

// place makes room for pointer i.
func (c *Call) place(i, rows, width int) int {
	if width > 0 && rows > math.MaxInt32/width {
		panic(fmt.Sprintf("wazero: no memory for %d rows of %d bytes", rows, width))
	}
	at := c.room(rows * width)
	c.pointers[i] = uint32(at)
	return at
}

// bytesAt returns n bytes at an offset from p.
func bytesAt(p unsafe.Pointer, offset, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(p, offset)), n)
}

// Run makes the call and returns the kernel's results. The call must not be used afterwards.
func (c *Call) Run() [2]float32 {
	b, le := c.bytes[callAt:][:frame.Size], binary.LittleEndian
	le.PutUint32(b[frame.Kernel:], c.kernel)
	le.PutUint32(b[frame.Core:], c.Core)
	for i, p := range c.pointers {
		le.PutUint64(b[frame.Pointers+8*i:], uint64(p))
	}
	for i, v := range c.Ints {
		le.PutUint64(b[frame.Ints+8*i:], uint64(v))
	}
	for i, v := range c.Floats {
		le.PutUint32(b[frame.Floats+4*i:], math.Float32bits(v))
	}
	c.stack = [2]uint64{callAt, 1}
	must(c.run.CallWithStack(context.Background(), c.stack[:]))
	for i := range c.outputs {
		o := &c.outputs[i]
		for r := range o.rows {
			copy(bytesAt(o.p, r*o.apart, o.width), c.bytes[o.from+r*o.width:])
		}
	}
	var results [2]float32
	for i := range results {
		results[i] = math.Float32frombits(le.Uint32(b[frame.Results+4*i:]))
	}
	c.end()
	return results
}

// end forgets the arguments and gives the instance back.
func (c *Call) end() {
	clear(c.outputs[:])
	clear(c.pointers[:])
	if len(c.bytes) > keptBytes {
		for _, m := range c.closers {
			must(m.Close(context.Background()))
		}
		return
	}
	c.host.mu.Lock()
	c.host.free = append(c.host.free, c)
	c.host.mu.Unlock()
}
