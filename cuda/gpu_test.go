package cuda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/testutil"
)

// gpuText holds the kernels of the tests on a device: relu and saxpy over n
// floats, a store to an address of one's own, a grid whose blocks tell how many
// their cluster has, and one whose parameters fill 4 KiB and more.
const gpuText = `.version 7.8
.target sm_90
.address_size 64

.visible .global .align 4 .u32 counter = 42;

.visible .entry relu(.param .u64 y, .param .u64 x, .param .u32 n)
{
	.reg .b64 %rd<6>; .reg .b32 %r<6>; .reg .f32 %f<3>; .reg .pred %p<2>;
	ld.param.u64 %rd0, [y]; ld.param.u64 %rd1, [x]; ld.param.u32 %r0, [n];
	mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
	mad.lo.u32 %r4, %r1, %r2, %r3;
	setp.ge.u32 %p0, %r4, %r0;
	@%p0 bra done;
	mul.wide.u32 %rd2, %r4, 4;
	add.u64 %rd3, %rd1, %rd2; add.u64 %rd4, %rd0, %rd2;
	ld.global.f32 %f0, [%rd3];
	max.f32 %f1, %f0, 0f00000000;
	st.global.f32 [%rd4], %f1;
done:
	ret;
}

.visible .entry saxpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
	.reg .b64 %rd<6>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .pred %p<2>;
	ld.param.u64 %rd0, [y]; ld.param.u64 %rd1, [x]; ld.param.u32 %r0, [n]; ld.param.f32 %f3, [a];
	mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
	mad.lo.u32 %r4, %r1, %r2, %r3;
	setp.ge.u32 %p0, %r4, %r0;
	@%p0 bra done;
	mul.wide.u32 %rd2, %r4, 4;
	add.u64 %rd3, %rd1, %rd2; add.u64 %rd4, %rd0, %rd2;
	ld.global.f32 %f0, [%rd3]; ld.global.f32 %f1, [%rd4];
	fma.rn.f32 %f2, %f3, %f0, %f1;
	st.global.f32 [%rd4], %f2;
done:
	ret;
}

.visible .entry poke(.param .u64 p)
{
	.reg .b64 %rd<2>; .reg .b32 %r<2>;
	ld.param.u64 %rd0, [p];
	mov.u32 %r0, 7;
	st.global.u32 [%rd0], %r0;
	ret;
}

.visible .entry clusters(.param .u64 p)
{
	.reg .b64 %rd<4>; .reg .b32 %r<4>;
	ld.param.u64 %rd0, [p];
	mov.u32 %r0, %cluster_nctaid.x; mov.u32 %r1, %ctaid.x;
	mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1;
	st.global.u32 [%rd2], %r0;
	ret;
}

.visible .entry empty() { ret; }

.extern .shared .align 16 .b8 room[];
.visible .entry shared(.param .u64 p, .param .u32 bytes)
{
	.reg .b64 %rd<2>; .reg .b32 %r<6>;
	ld.param.u64 %rd0, [p]; ld.param.u32 %r0, [bytes];
	mov.u32 %r1, room; add.u32 %r2, %r1, %r0; sub.u32 %r2, %r2, 4;
	st.shared.u32 [%r2], %r0;
	ld.shared.u32 %r3, [%r2];
	st.global.u32 [%rd0], %r3;
	ret;
}
`

// gpu opens the first device, or skips the test.
func gpu(t testing.TB, opts ...Option) *Device {
	t.Helper()
	testutil.Need(t, "cuda")
	d, err := Open(0, append([]Option{WithCubinCache("")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func gpuFunction(t testing.TB, d *Device, name string) *Function {
	t.Helper()
	return must[*Function](t)(must[*Module](t)(d.Load([]byte(gpuText))).Function(name))
}

func random(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rand.NormFloat64())
	}
	return x
}

func blocks(n int) Config {
	return Config{Grid: Dim{X: uint32(max(n+255, 256) / 256)}, Block: Dim{X: 256}}
}

func TestGPUDevices(t *testing.T) {
	testutil.Need(t, "cuda")
	all, err := Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		t.Logf("%+v", i)
		if i.Name == "" || i.Memory <= 0 || i.Capability.Major < 3 || i.WarpSize != 32 || i.UUID == "" || i.PCI == "" || i.MaxGrid[0] == 0 {
			t.Errorf("incomplete: %+v", i)
		}
	}
	missing, err := Missing()
	if err != nil || len(missing) > 0 {
		t.Errorf("missing functions: %v, %v", missing, err)
	}
	d := gpu(t)
	free, total, err := d.MemInfo()
	t.Logf("free %d of %d, %v", free, total, err)
	if err != nil || free <= 0 || free > total {
		t.Errorf("MemInfo = %d, %d, %v", free, total, err)
	}
	if _, err := Open(len(all)); !errors.Is(err, ErrNoDevice) {
		t.Errorf("a device too many: %v", err)
	}
}

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

// TestGPUCurrentContext has threads with no current context, and with that of
// something else in the process, use a stream.
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

func TestGPUModules(t *testing.T) {
	d := gpu(t)
	m := must[*Module](t)(d.Load([]byte(gpuText)))
	t.Logf("log: %.300s", m.Log())
	p, n, err := m.Global("counter")
	if err != nil || n != 4 {
		t.Fatalf("counter: %d bytes, %v", n, err)
	}
	s := must[*Stream](t)(d.NewStream(0))
	v := make([]uint32, 1)
	if err := s.Download(AsBytes(v), p); err != nil || v[0] != 42 {
		t.Errorf("counter = %d, %v", v[0], err)
	}
	if _, err := m.Function("sgemm"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a function that is not there: %v", err)
	}
	for _, c := range []struct {
		text string
		want error
	}{
		{strings.Replace(gpuText, "max.f32 %f1", "mix.f32 %f1", 1), ErrBadImage},
		{strings.Replace(gpuText, ".target sm_90", ".target sm_999", 1), ErrBadImage},
		{strings.Replace(gpuText, ".version 7.8", ".version 99.9", 1), ErrPTXTooNew},
		{gpuText[:len(gpuText)/2], ErrBadImage},
		{strings.Replace(gpuText, ".target sm_90", ".target sm_100a", 1), ErrBadImage},
	} {
		_, err := d.Load([]byte(c.text))
		if !errors.Is(err, c.want) {
			t.Errorf("want %v, got %v", c.want, err)
		} else {
			t.Logf("%.400v", err)
		}
	}
	if d.Err() != nil {
		t.Fatal(d.Err())
	}
	// Texts that were cut off or changed are errors or modules, and nothing else.
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		b := []byte(gpuText)
		if r.IntN(2) == 0 {
			b = b[:r.IntN(len(b))]
		} else {
			for range 1 + r.IntN(5) {
				b[r.IntN(len(b))] = byte(1 + r.IntN(127))
			}
		}
		if m, err := d.Load(b); err == nil {
			m.Close()
		}
		if d.Err() != nil {
			t.Fatal(d.Err())
		}
	}
}

// TestGPUCompilations: goroutines that compile at the same time, and change
// threads as the scheduler pleases, do not disturb the driver's linker.
func TestGPUCompilations(t *testing.T) {
	d := gpu(t, WithCubinCache(t.TempDir()))
	var all sync.WaitGroup
	for w := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 250 {
				text := strings.Replace(gpuText, ".version", fmt.Sprintf("// %d.%d\n.version", w, i), 1)
				m, err := d.Load([]byte(text))
				if err != nil {
					t.Error(err)
					return
				}
				m.Close()
				if i%8 == 0 {
					runtime.GC() // waits of it move goroutines
				}
			}
		}()
	}
	all.Wait()
}

func TestGPUCubinCache(t *testing.T) {
	dir := t.TempDir()
	for _, target := range []string{"sm_90", "sm_90a"} {
		// A text that no cache has seen.
		text := []byte(strings.NewReplacer(".version 7.8", ".version 8.0", ".target sm_90", ".target "+target).Replace(gpuText) + fmt.Sprintf("// %d\n", rand.Int64()))
		for i := range 3 {
			d := gpu(t, WithCubinCache(dir))
			if i == 2 {
				all, _ := filepath.Glob(filepath.Join(dir, "*"))
				for _, f := range all {
					os.Truncate(f, 1000)
				}
			}
			start := time.Now()
			m, err := d.Load(text)
			took := time.Since(start)
			if err != nil {
				t.Fatalf("%s, load %d: %v", target, i, err)
			}
			fn := must[*Function](t)(m.Function("relu"))
			all, _ := filepath.Glob(filepath.Join(dir, "*.cubin"))
			t.Logf("%s, load %d: %v, %d files, %+v", target, i, took, len(all), fn.Info())
			if len(all) == 0 {
				t.Errorf("%s: no cubin is kept", target)
			}
			for _, f := range all {
				if b, err := os.ReadFile(f); err != nil || openCubins(dir).get(strings.TrimSuffix(filepath.Base(f), cubinSuffix)) == nil && i != 2 {
					t.Errorf("%s: %d bytes, %v", f, len(b), err)
				}
			}
			d.Close()
		}
	}
	// A cubin by itself, whole and cut off.
	d := gpu(t)
	f := newFrame()
	cubin, _, err := d.compile(f, onHeap(gpuText), LoadOptions{})
	f.release()
	if err != nil {
		t.Fatal(err)
	}
	must[*Function](t)(must[*Module](t)(d.Load(cubin)).Function("saxpy"))
	for n := 1; n < len(cubin); n += 1 + len(cubin)/50 {
		if _, err := d.Load(cubin[:n]); !errors.Is(err, ErrBadImage) {
			t.Errorf("%d of %d bytes of a cubin: %v", n, len(cubin), err)
		}
	}
}

func TestGPULaunchKinds(t *testing.T) {
	d := gpu(t)
	s := must[*Stream](t)(d.NewStream(0))
	m := must[*Module](t)(d.Load([]byte(gpuText)))
	empty, clusters, shared := must[*Function](t)(m.Function("empty")), must[*Function](t)(m.Function("clusters")), must[*Function](t)(m.Function("shared"))
	x := must[Memory](t)(s.Alloc(1024))
	v := make([]uint32, 16)
	var p Params
	p.Ptr(x.Ptr())
	for _, c := range []uint32{2, 4, 8} {
		if !d.Info().Clusters {
			break
		}
		if err := s.Launch(clusters, Config{Grid: Dim{X: 16}, Cluster: Dim{X: c}}, p); err != nil {
			t.Fatal(err)
		}
		if err := s.Download(AsBytes(v), x.Ptr()); err != nil || v[0] != c || v[15] != c {
			t.Errorf("clusters of %d: %v, %v", c, v, err)
		}
	}
	if err := clusters.AllowLargeClusters(); err != nil {
		t.Error(err)
	}
	if n, err := clusters.MaxActiveClusters(Config{Grid: Dim{X: 16}, Block: Dim{X: 256}, Cluster: Dim{X: 8}}); err != nil || n < 1 {
		t.Errorf("MaxActiveClusters = %d, %v", n, err)
	}
	for _, c := range []Config{{Cooperative: true, Grid: Dim{X: 8}}, {Overlap: true}, {Cooperative: true, Overlap: true}} {
		if err := s.Launch(empty, c, nil); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, n := range []uint32{4, 48 << 10, uint32(d.Info().SharedPerBlockOptin)} {
		p = p[:0]
		p.Ptr(x.Ptr())
		p.U32(n)
		if err := s.Launch(shared, Config{Shared: n}, p); err != nil {
			t.Errorf("%d bytes shared: %v", n, err)
		} else if err := s.Download(AsBytes(v[:1]), x.Ptr()); err != nil || v[0] != n {
			t.Errorf("%d bytes shared: read %d, %v", n, v[0], err)
		}
	}
	for _, c := range []Config{{Block: Dim{X: 2048}}, {Grid: Dim{Y: 70000}}, {Shared: 1 << 30}} {
		if err := s.Launch(empty, c, nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := s.Launch(shared, Config{}, nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("without parameters: %v", err)
	}
	if n, err := empty.MaxActiveBlocks(256, 0); err != nil || n < 1 {
		t.Errorf("MaxActiveBlocks = %d, %v", n, err)
	}
	if th, b, err := empty.BestBlock(0); err != nil || th < 32 || b < 1 {
		t.Errorf("BestBlock = %d, %d, %v", th, b, err)
	}
	if _, err := d.TensorMap(Tiled{Type: ElementBF16, Address: x.Ptr(), Size: []uint64{64, 8}, Stride: []uint64{128}, Tile: []uint32{64, 8}, Swizzle: Swizzle128}); err != nil {
		t.Errorf("TensorMap: %v", err)
	}
	if _, err := d.TensorMap(Tiled{Type: ElementBF16, Address: x.Ptr() + 2, Size: []uint64{64, 8}, Stride: []uint64{128}, Tile: []uint32{64, 8}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("TensorMap of an odd address: %v", err)
	}
	if err := s.Copy(x.Ptr()+1<<40, x.Ptr(), 64); err == nil {
		err = s.Synchronize()
		t.Logf("a copy to nowhere is noticed late: %v", err)
	} else if !errors.Is(err, ErrInvalid) {
		t.Errorf("a copy to nowhere: %v", err)
	}
}

func TestGPUOutOfMemory(t *testing.T) {
	d := gpu(t)
	s := must[*Stream](t)(d.NewStream(0))
	free, _, err := d.MemInfo()
	if err != nil {
		t.Fatal(err)
	}
	m := must[Memory](t)(s.Alloc(free / 2))
	if _, err := s.Alloc(free * 3 / 4); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("more than there is: %v", err)
	} else {
		t.Log(err)
	}
	m.Free()
	if m, err = s.Alloc(free * 3 / 4); err != nil {
		t.Errorf("what was freed is in the way: %v", err)
	}
	m.Free()
	if err := d.Trim(); err != nil {
		t.Error(err)
	}
	if now, _, _ := d.MemInfo(); now < free-64<<20 {
		t.Errorf("%d bytes free, were %d", now, free)
	}
}

func TestGPUGraphs(t *testing.T) {
	d := gpu(t)
	s := must[*Stream](t)(d.NewStream(0))
	relu := gpuFunction(t, d, "relu")
	const n = 5000
	x, y, z := must[Memory](t)(s.Alloc(4*n)), must[Memory](t)(s.Alloc(4*n)), must[Memory](t)(s.Alloc(4*n))
	params := func(y, x Memory, n uint32) (p Params) {
		p.Ptr(y.Ptr())
		p.Ptr(x.Ptr())
		p.U32(n)
		return p
	}
	g := must[*Graph](t)(s.Capture(func() error {
		if err := s.Set32(y.Ptr(), 0x7fc00000, n); err != nil {
			return err
		}
		return s.Launch(relu, blocks(n), params(y, x, n))
	}))
	if g.Kernels() != 1 {
		t.Fatalf("%d kernels", g.Kernels())
	}
	out := make([]float32, n)
	check := func(what string, in []float32, m Memory) {
		t.Helper()
		for _, err := range []error{s.Upload(x.Ptr(), AsBytes(in)), g.Launch(s), s.Download(AsBytes(out), m.Ptr())} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range out {
			if out[i] != max(in[i], 0) {
				t.Fatalf("%s: out[%d] = %v, want %v", what, i, out[i], max(in[i], 0))
			}
		}
	}
	check("first", random(n), y)
	check("again", random(n), y)
	if err := g.SetKernel(0, relu, blocks(n), params(z, x, n)); err != nil {
		t.Fatal(err)
	}
	check("SetKernel", random(n), z)
	g2 := must[*Graph](t)(s.Capture(func() error {
		if err := s.Set32(y.Ptr(), 0x7fc00000, n); err != nil {
			return err
		}
		return s.Launch(relu, blocks(n), params(y, x, n))
	}))
	if err := g.Update(g2); err != nil {
		t.Fatal(err)
	}
	check("Update", random(n), y)
	g3 := must[*Graph](t)(s.Capture(func() error { return s.Launch(relu, blocks(n), params(y, x, n)) }))
	if err := g.Update(g3); !errors.Is(err, ErrDifferent) {
		t.Errorf("Update with another form: %v", err)
	}
	wrong := errors.New("no")
	if _, err := s.Capture(func() error { s.Launch(relu, blocks(n), params(y, x, n)); return wrong }); err != wrong {
		t.Errorf("Capture: %v", err)
	}
	check("afterwards", random(n), y)
}

func TestGPUConcurrent(t *testing.T) {
	d := gpu(t)
	relu := gpuFunction(t, d, "relu")
	shared := must[*Stream](t)(d.NewStream(0))
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s := must[*Stream](t)(d.NewStream(0))
			defer s.Close()
			for i := range 30 {
				on := s
				if i%3 == 0 {
					on = shared
				}
				n := 1 + rand.IntN(300000)
				in, out := make([]float32, n), make([]float32, n)
				for j := range in {
					in[j] = float32(j%101-50) * float32(g+1)
				}
				x, y := must[Memory](t)(on.Alloc(int64(4*n))), must[Memory](t)(on.Alloc(int64(4*n)))
				var p Params
				p.Ptr(y.Ptr())
				p.Ptr(x.Ptr())
				p.U32(uint32(n))
				for _, err := range []error{on.Upload(x.Ptr(), AsBytes(in)), on.Launch(relu, blocks(n), p), on.Download(AsBytes(out), y.Ptr()), x.Free(), y.Free()} {
					if err != nil {
						t.Error(err)
						return
					}
				}
				for j := range out {
					if out[j] != max(in[j], 0) {
						t.Errorf("goroutine %d: out[%d] = %v", g, j, out[j])
						return
					}
				}
			}
		}()
	}
	wg.Wait()
}

// resident returns the memory of this process in bytes, or 0 where that is not
// known.
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	fmt.Sscan(string(b), &size, &pages)
	return pages * int64(os.Getpagesize())
}

func TestGPUCycles(t *testing.T) {
	d := gpu(t)
	text := []byte(gpuText)
	f := newFrame()
	cubin, _, err := d.compile(f, onHeap(text), LoadOptions{})
	f.release()
	if err != nil {
		t.Fatal(err)
	}
	run := func(n int) {
		for range n {
			s := must[*Stream](t)(d.NewStream(0))
			m := must[*Module](t)(d.Load(cubin))
			e := must[*Event](t)(d.NewEvent(false))
			x := must[Memory](t)(s.Alloc(5000))
			if err := s.Launch(must[*Function](t)(m.Function("empty")), Config{}, nil); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{s.Record(e), s.Synchronize(), x.Free(), m.Close(), e.Close(), s.Close()} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	run(500)
	free, _, _ := d.MemInfo()
	rss := resident()
	start := time.Now()
	run(10000)
	now, _, _ := d.MemInfo()
	t.Logf("10,000 cycles in %v: %d bytes of the device, %d of the process more", time.Since(start), free-now, resident()-rss)
	if free-now > 8<<20 || resident()-rss > 32<<20 {
		t.Errorf("10,000 cycles leave %d bytes of the device and %d of the process", free-now, resident()-rss)
	}
	d.Close()
	start = time.Now()
	var first int64
	for i := range 12 {
		d, err := Open(0)
		if err != nil {
			t.Fatal(err)
		}
		must[*Stream](t)(d.NewStream(0))
		d.Close()
		if i == 3 {
			first = resident()
		}
	}
	t.Logf("12 contexts in %v: %d bytes of the process more", time.Since(start), resident()-first)
}

// TestGPUIllegalAddress loses the device in a process of its own, and opens it
// again there if the driver can.
func TestGPUIllegalAddress(t *testing.T) {
	testutil.Need(t, "cuda")
	if os.Getenv("RAYO_TEST_FAULT") == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestGPUIllegalAddress$", "-test.v")
		cmd.Env = append(os.Environ(), "RAYO_TEST_FAULT=1")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
		// The device is as good as before for others.
		if err := gpu(t).Synchronize(); err != nil {
			t.Error(err)
		}
		return
	}
	d := gpu(t)
	s := must[*Stream](t)(d.NewStream(0))
	m := must[*Module](t)(d.Load([]byte(gpuText)))
	poke := must[*Function](t)(m.Function("poke"))
	var p Params
	p.Ptr(16)
	if err := s.Launch(poke, Config{}, p); err != nil {
		t.Fatal(err)
	}
	first := s.Synchronize()
	if !errors.Is(first, ErrDeviceLost) || !errors.Is(first, ErrIllegalAddress) || !strings.Contains(first.Error(), "poke") {
		t.Fatalf("Synchronize = %v", first)
	}
	t.Log(first)
	for i, err := range []error{s.Synchronize(), s.Launch(poke, Config{}, p), d.Err()} {
		if err != first {
			t.Errorf("call %d after the loss: %v", i, err)
		}
	}
	d.Close()
	d, err := Open(0)
	if err != nil {
		t.Logf("opening again in the process: %v", err)
		if !errors.Is(err, ErrDeviceLost) {
			t.Error("which is not ErrDeviceLost")
		}
		return
	}
	t.Log("the device is open again in the same process")
	s = must[*Stream](t)(d.NewStream(0))
	x := must[Memory](t)(s.Alloc(64))
	v := []uint32{1}
	p = p[:0]
	p.Ptr(x.Ptr())
	poke = must[*Function](t)(must[*Module](t)(d.Load([]byte(gpuText))).Function("poke"))
	for _, err := range []error{s.Launch(poke, Config{}, p), s.Download(AsBytes(v), x.Ptr())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if v[0] != 7 {
		t.Errorf("the kernel stored %d", v[0])
	}
}

func TestGPUMonitor(t *testing.T) {
	testutil.Need(t, "cuda")
	m, err := OpenMonitor()
	if err != nil {
		testutil.Missing(t, "cuda", err)
	}
	defer m.Close()
	start := time.Now()
	all, err := m.Read()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(all)
	t.Logf("driver %s, read in %v: %s, %v", m.Driver(), time.Since(start), b, err)
	for _, s := range all {
		if s.Name == "" {
			t.Errorf("no name: %+v", s)
		}
	}
	for range 3 {
		if _, err := m.Read(); err != nil {
			t.Error(err)
		}
	}
}
