package cuda

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

func TestGPURoundTrips(t *testing.T) {
	d := gpu(t)
	s := must[*Stream](t)(d.NewStream(0))
	relu, saxpy := gpuFunction(t, d, "relu"), gpuFunction(t, d, "saxpy")
	if i := relu.Info(); i.Registers == 0 || i.Spilled != 0 || i.MaxThreads < 256 || i.Params != 20 || i.Binary.Major != d.Info().Capability.Major {
		t.Errorf("relu: %+v", i)
	}
	for _, n := range []int{1, 2, 31, 257, 4099, 262143, 262144, 1<<20 + 7, 5<<20 + 3} {
		in, y0, out := random(n), random(n), make([]float32, n)
		x, y := must[Memory](t)(s.Alloc(int64(4*n))), must[Memory](t)(s.Alloc(int64(4*n)))
		var p Params
		p.Ptr(y.Ptr())
		p.Ptr(x.Ptr())
		p.U32(uint32(n))
		for i := range out {
			out[i] = float32(math.NaN())
		}
		for _, err := range []error{s.Upload(x.Ptr(), AsBytes(in)), s.Set32(y.Ptr(), 0x7fc00000, int64(n)), s.Launch(relu, blocks(n), p), s.Download(AsBytes(out), y.Ptr())} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range out {
			if out[i] != max(in[i], 0) {
				t.Fatalf("relu, n = %d: out[%d] = %v, want %v", n, i, out[i], max(in[i], 0))
			}
		}
		p = p[:0]
		p.Ptr(y.Ptr())
		p.Ptr(x.Ptr())
		p.F32(1.5)
		p.U32(uint32(n))
		for _, err := range []error{s.Upload(y.Ptr(), AsBytes(y0)), s.Launch(saxpy, blocks(n), p), s.Download(AsBytes(out), y.Ptr())} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range out {
			if want := float32(math.FMA(1.5, float64(in[i]), float64(y0[i]))); math.Abs(float64(out[i]-want)) > 1e-6*math.Abs(float64(want))+1e-7 {
				t.Fatalf("saxpy, n = %d: out[%d] = %v, want %v", n, i, out[i], want)
			}
		}
		x.Free()
		y.Free()
	}
}

// TestGPUCurrentContext uses a stream on threads without a current context, and on threads with the context of other
// code in the process.
func TestGPUCurrentContext(t *testing.T) {
	d := gpu(t)
	s := must[*Stream](t)(d.NewStream(0))
	relu := gpuFunction(t, d, "relu")
	e := must[*Event](t)(d.NewEvent(false))
	const n = 1000
	x, y := must[Memory](t)(s.Alloc(4*n)), must[Memory](t)(s.Alloc(4*n))
	var p Params
	p.Ptr(y.Ptr())
	p.Ptr(x.Ptr())
	p.U32(n)
	g := must[*Graph](t)(s.Capture(func() error { return s.Launch(relu, blocks(n), p) }))
	defer g.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f := newFrame()
	defer f.release()
	f.Bind = 0
	call := func(name string, args ...uintptr) {
		t.Helper()
		f.Fn = must[uintptr](t)(d.prim.drv.lib.Symbol(name))
		copy(f.Args[:], args)
		f.Call()
		if err := f.failed(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	call("cuCtxCreate_v2", f.out(0), 0, uintptr(d.prim.dev))
	other := f.ptr(0)
	defer call("cuCtxDestroy_v2", other)
	for name, current := range map[string]uintptr{"none": 0, "another": other} {
		in, out := random(n), make([]float32, n)
		call("cuCtxSetCurrent", current)
		for i, err := range []error{s.Set8(y.Ptr(), 0xff, 4*n), s.Upload(x.Ptr(), AsBytes(in)), s.Launch(relu, blocks(n), p), s.Copy(x.Ptr(), y.Ptr(), 4*n),
			g.Launch(s), s.Record(e), s.After(e), e.Synchronize(), s.Synchronize()} {
			if err != nil {
				t.Errorf("%s: call %d: %v", name, i, err)
			}
		}
		if _, err := s.Done(); err != nil {
			t.Errorf("%s: Done: %v", name, err)
		}
		if err := s.Download(AsBytes(out), y.Ptr()); err != nil {
			t.Errorf("%s: Download: %v", name, err)
		}
		for i, v := range in {
			if out[i] != max(v, 0) {
				t.Fatalf("%s: relu(%v) = %v", name, v, out[i])
			}
		}
	}
}

func TestGPUHostMemory(t *testing.T) {
	d := gpu(t)
	s := must[*Stream](t)(d.NewStream(-1))
	relu := gpuFunction(t, d, "relu")
	const n = 1<<20 + 1
	h, back := must[*HostMemory](t)(d.AllocHost(4*n)), must[*HostMemory](t)(d.AllocHost(4*n))
	in, out := HostSlice[float32](h), HostSlice[float32](back)
	copy(in, random(n))
	x, y := must[Memory](t)(s.Alloc(4*n)), must[Memory](t)(d.Alloc(4*n))
	var p Params
	p.Ptr(y.Ptr())
	p.Ptr(x.Ptr())
	p.U32(n)
	a, b := must[*Event](t)(d.NewEvent(true)), must[*Event](t)(d.NewEvent(true))
	for _, err := range []error{s.Record(a), s.CopyFromHost(x.Ptr(), h, 0, 4*n), s.Launch(relu, blocks(n), p), s.Copy(x.Ptr(), y.Ptr(), 4*n),
		s.CopyToHost(back, 0, x.Ptr(), 4*n), s.Record(b), s.Synchronize()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range out {
		if out[i] != max(in[i], 0) {
			t.Fatalf("out[%d] = %v, want %v", i, out[i], max(in[i], 0))
		}
	}
	elapsed, err := Elapsed(a, b)
	t.Logf("up, relu, copy, down of %d floats: %v", n, elapsed)
	if err != nil || elapsed <= 0 || elapsed > time.Second {
		t.Errorf("Elapsed = %v, %v", elapsed, err)
	}
	// The kernel reads and writes the memory of the host.
	clear(out)
	p = p[:0]
	p.Ptr(back.Ptr())
	p.Ptr(h.Ptr())
	p.U32(n)
	for _, err := range []error{s.Launch(relu, blocks(n), p), s.Synchronize()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range out {
		if out[i] != max(in[i], 0) {
			t.Fatalf("mapped: out[%d] = %v, want %v", i, out[i], max(in[i], 0))
		}
	}
}

func TestGPUStagingIsOrdered(t *testing.T) {
	d := gpu(t)
	s := must[*Stream](t)(d.NewStream(0))
	const room = 9 << 20
	m := must[Memory](t)(s.Alloc(room))
	want := make([]byte, room)
	if err := s.Set8(m.Ptr(), 0, room); err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		n := rand.IntN(5000)
		if i%10 == 0 {
			n = rand.IntN(room)
		}
		off := rand.IntN(room - n + 1)
		if rand.IntN(3) > 0 {
			src := make([]byte, n)
			for j := range src {
				src[j] = byte((j*j + i*j + i) >> 3)
			}
			copy(want[off:], src)
			if err := s.Upload(m.Ptr()+Ptr(off), src); err != nil {
				t.Fatal(err)
			}
			clear(src)
		} else {
			dst := make([]byte, n)
			if err := s.Download(dst, m.Ptr()+Ptr(off)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(dst, want[off:off+n]) {
				t.Fatalf("step %d: %d bytes from %d on differ", i, n, off)
			}
		}
	}
}
