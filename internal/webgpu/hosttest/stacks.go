package hosttest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// scale multiplies by a number from a block of parameters.
const scale = `@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> by: vec4<u32>;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	if (id.x < arrayLength(&y)) { y[id.x] = x[id.x] * by.x + id.x; }
}
`

// Trip makes, fills, binds, runs, reads and frees everything that a submission needs, and checks the
// result. If apart is set, each call runs in its own goroutine.
func Trip(d webgpu.HostDevice, n int, apart func(func())) (err error) {
	var p webgpu.HostPipeline
	var g webgpu.HostGroup
	var b [5]webgpu.HostBuffer
	step := func(f func() error) {
		if err == nil {
			apart(func() { err = f() })
		}
	}
	defer func() {
		apart(func() {
			if g != nil {
				g.Release()
			}
			if p != nil {
				p.Release()
			}
			for _, b := range b {
				if b != nil {
					b.Release()
				}
			}
		})
	}()
	size := int64(4 * n)
	by := rand.Uint32()
	for i, k := range []struct {
		bytes int64
		usage webgpu.Usage
	}{{size + 16, webgpu.Upload}, {size, webgpu.Storage}, {size, webgpu.Storage}, {16, webgpu.Uniform}, {size, webgpu.Readback}} {
		step(func() (err error) { b[i], err = d.NewBuffer(k.bytes, k.usage); return err })
	}
	step(func() (err error) {
		p, err = d.NewPipeline(&webgpu.Shader{Label: "scale", Text: scale, Entry: "main", Bindings: []webgpu.BindingKind{webgpu.ReadOnly, webgpu.ReadWrite, webgpu.Block}, Trusted: true})
		return err
	})
	step(func() (err error) {
		g, err = d.NewGroup(p, []webgpu.HostRange{{Buffer: b[1], Bytes: size}, {Buffer: b[2], Bytes: size}, {Buffer: b[3], Bytes: 16}})
		return err
	})
	if err != nil {
		return err
	}
	in := make([]uint32, n)
	m := make([]byte, size+16)
	for i := range in {
		in[i] = rand.Uint32()
		binary.LittleEndian.PutUint32(m[4*i:], in[i])
	}
	binary.LittleEndian.PutUint32(m[size:], by)
	step(func() error { return put(d, b[0], m) })
	var ticket uint64
	step(func() (err error) {
		ticket, err = d.Submit([]webgpu.HostCommand{
			{Do: webgpu.Copy, Src: b[0], Dst: b[1], Bytes: size},
			{Do: webgpu.Copy, Src: b[0], From: size, Dst: b[3], Bytes: 16},
			{Do: webgpu.Dispatch, Pipeline: p, Group: g, Grid: [3]uint32{uint32(n+31) / 32, 1, 1}},
			{Do: webgpu.Copy, Src: b[2], Dst: b[4], Bytes: size},
		}, []webgpu.HostBuffer{b[0], b[4]})
		return err
	})
	step(func() error { return Wait(d, ticket) })
	if err != nil {
		return err
	}
	got, err := get(d, b[4], int(size))
	if err != nil {
		return err
	}
	for i, v := range in {
		if w, want := binary.LittleEndian.Uint32(got[4*i:]), v*by+uint32(i); w != want {
			return fmt.Errorf("element %d of %d is %d, not %d", i, n, w, want)
		}
	}
	return nil
}

// Deep calls f below n frames. The sizes of the frames vary, so that the stack is full at another
// place of f each time.
func Deep(n int, f func()) (sum byte) {
	var room [136]byte
	if n == 0 {
		f()
		return room[len(room)-1]
	}
	room[n%len(room)] = byte(n)
	return Deep(n-1, f) + room[(n+1)%len(room)]
}

// stacks makes every call on a new stack, which grows before or during the call. Meanwhile the
// collector frees memory without references, other goroutines overwrite it, and stacks shrink. The
// test fails if a result is written to an old address, or if an argument is freed too early.
func stacks(t *testing.T, d webgpu.HostDevice) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	stop := make(chan struct{})
	var others sync.WaitGroup
	for i := range 2 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if i == 0 {
					runtime.GC()
					continue
				}
				var junk [64][]byte
				for i := range junk {
					junk[i] = make([]byte, 8<<(i%8))
					for j := range junk[i] {
						junk[i][j] = 0xa5
					}
				}
				runtime.Gosched()
			}
		})
	}
	defer others.Wait()
	defer close(stop)

	trips := 8
	if testing.Short() {
		trips = 3
	}
	for _, goroutines := range []int{1, 8, 64} {
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {
				for range max(1, trips*8/goroutines) {
					// A large buffer has its own memory, which is mapped each time.
					n := 1 + rand.IntN(3000)
					if rand.IntN(8) == 0 {
						n += 1 << 18
					}
					err := Trip(d, n, func(f func()) {
						done := make(chan struct{})
						go func() {
							defer close(done)
							Deep(rand.IntN(100), f)
						}()
						<-done
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		if t.Failed() {
			t.Fatalf("with %d goroutines", goroutines)
		}
	}
}
