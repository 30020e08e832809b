//go:build wazero && !js

package wazero

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/wasm/frame"
	"github.com/rayo-go/rayo/internal/wasm/kernels"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// host is an instance of the module on a memory of its own.
type host struct {
	t      *testing.T
	memory api.Memory
	run    api.Function
	places map[string]int
	top    uint32 // where the next array goes
	random *rand.Rand
}

// call is one call of a kernel.
type call struct {
	kernel   string
	core     string // of an elementwise kernel
	pointers []uint32
	ints     []int
	floats   []float32
}

const (
	calls  = 4096 // where calls lie
	arrays = 1 << 17
	pages  = 64
)

// start returns an instance of the kernels of s.
func start(t *testing.T, s *kernels.Set) *host {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { r.Close(ctx) })
	// A module that exports a memory of so many pages.
	env := []byte{0, 'a', 's', 'm', 1, 0, 0, 0, 5, 3, 1, 0, pages, 7, 10, 1, 6, 'm', 'e', 'm', 'o', 'r', 'y', 2, 0}
	m, err := r.InstantiateWithConfig(ctx, env, wazero.NewModuleConfig().WithName("env"))
	if err != nil {
		t.Fatal(err)
	}
	instance, err := r.Instantiate(ctx, s.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	seed := testutil.Seed(t)
	h := &host{t: t, memory: m.ExportedMemory("memory"), run: instance.ExportedFunction("run"), places: map[string]int{},
		random: rand.New(rand.NewPCG(seed, 1))}
	for i, n := range s.Names() {
		h.places[n] = i
	}
	h.clear()
	return h
}

// clear forgets all arrays: memory is full of guards.
func (h *host) clear() {
	h.top = arrays
	b := make([]byte, 1<<16)
	for i := 0; i < len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], guard)
	}
	for at := uint32(arrays); at < pages<<16; at += uint32(len(b)) {
		h.memory.Write(at, b)
	}
}

// guard is what lies between arrays: a NaN that no kernel makes.
const guard = 0xffc0dead

// words puts an array in memory, at an address that is a multiple of four alone.
func (h *host) words(w []uint32) uint32 {
	at := h.top + 64 + 4*h.random.Uint32N(4)
	h.top = at + uint32(4*len(w))
	for i, v := range w {
		h.memory.WriteUint32Le(at+uint32(4*i), v)
	}
	return at
}

func (h *host) floats(x []float32) uint32 {
	w := make([]uint32, len(x))
	for i, v := range x {
		w[i] = math.Float32bits(v)
	}
	return h.words(w)
}

func (h *host) bytes(b []byte) uint32 {
	w := make([]uint32, (len(b)+3)/4)
	at := h.words(w)
	h.memory.Write(at, b)
	return at
}

// room returns where n words may be written.
func (h *host) room(n int) uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = guard
	}
	return h.words(w)
}

// read returns n floats, and reports it if a word around them has been written.
func (h *host) read(at uint32, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		w, _ := h.memory.ReadUint32Le(at + uint32(4*i))
		x[i] = math.Float32frombits(w)
	}
	for i := range uint32(16) {
		before, _ := h.memory.ReadUint32Le(at - 4 - 4*i)
		after, _ := h.memory.ReadUint32Le(at + uint32(4*n) + 4*i)
		if i < 8 && before != guard || after != guard && at+uint32(4*n) == h.top {
			h.t.Errorf("a word beside the result was written")
		}
	}
	return x
}

// do runs calls, all in one call of the module, and returns the results of the last one.
func (h *host) do(cs ...call) (result [2]float32) {
	h.t.Helper()
	for i, c := range cs {
		place, ok := h.places[c.kernel]
		if !ok {
			h.t.Fatalf("no kernel is called %q", c.kernel)
		}
		at := uint32(calls + i*frame.Size)
		put := func(offset int, v uint32) { h.memory.WriteUint32Le(at+uint32(offset), v) }
		put(frame.Kernel, uint32(place))
		put(frame.Core, uint32(h.places[c.core]))
		for j := range frame.NumPointers {
			put(frame.Pointers+8*j, 0)
		}
		for j, p := range c.pointers {
			put(frame.Pointers+8*j, p)
		}
		for j, v := range c.ints {
			put(frame.Ints+8*j, uint32(v))
		}
		for j, v := range c.floats {
			put(frame.Floats+4*j, math.Float32bits(v))
		}
	}
	if _, err := h.run.Call(context.Background(), calls, uint64(len(cs))); err != nil {
		h.t.Fatal(err)
	}
	last := uint32(calls + (len(cs)-1)*frame.Size)
	for i := range result {
		w, _ := h.memory.ReadUint32Le(last + frame.Results + uint32(4*i))
		result[i] = math.Float32frombits(w)
	}
	return result
}

// numbers returns n numbers between -4 and 4.
func (h *host) numbers(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = h.random.Float32()*8 - 4
	}
	return x
}

// lengths are awkward ones.
func (h *host) lengths() []int {
	return []int{1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 67, 1 + h.random.IntN(500)}
}
