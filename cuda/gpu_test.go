package cuda

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/testutil"
)

// gpuText has the kernels of the tests on a device: relu and saxpy over n floats, a store to a given address, a kernel
// whose blocks store the size of their cluster, and a kernel with 4 KiB of parameters and more.
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

// resident returns the resident memory of this process in bytes, or 0 if it is not known.
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

// TestGPUIllegalAddress loses the device in a separate process, and opens it there again if the driver can.
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
		// Other processes can still use the device.
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
