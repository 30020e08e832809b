package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/dl"
	"github.com/rayo-go/rayo/internal/testutil"
)

const reluText = `.version 8.0
.target sm_80
.address_size 64
.visible .entry relu(.param .u64 y, .param .u64 x, .param .u32 n) { ret; }
.visible .entry fault(.param .u64 p) { ret; }
.visible .entry empty() { ret; }
.global counter;
`

// noLeaks closes the device and fails if the fake still has something of it.
func noLeaks(t *testing.T, k *fake, d *Device) {
	t.Helper()
	if d != nil {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, l := range k.leaks() {
		t.Errorf("left over: %s", l)
	}
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestNoDriver(t *testing.T) {
	d := &driver{load: func() (library, error) { return loadShared([]string{"librayo-has-no-driver.so.1"}) }}
	for range 2 {
		dev, err := d.open(0)
		if dev != nil || !errors.Is(err, ErrNoDriver) {
			t.Fatalf("Open = %v, %v; want ErrNoDriver", dev, err)
		}
		if !errors.Is(err, dl.ErrUnsupported) && !strings.Contains(err.Error(), "librayo-has-no-driver.so.1") {
			t.Errorf("the error does not name the library: %v", err)
		}
	}
	if _, err := d.devices(); !errors.Is(err, ErrNoDriver) {
		t.Errorf("Devices: %v", err)
	}
}

func TestOldDriver(t *testing.T) {
	k := newFake()
	k.version = 10020
	_, err := k.driver().open(0)
	var v *VersionError
	if !errors.Is(err, ErrDriverTooOld) || !errors.As(err, &v) || v.Have != 10020 || v.Need != need {
		t.Fatalf("Open = %v", err)
	}
	for _, part := range []string{"10.2", "11.4"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %s: %v", part, err)
		}
	}
}

func TestNoDevice(t *testing.T) {
	k := newFake()
	k.devices = 0
	if _, err := k.driver().open(0); !errors.Is(err, ErrNoDevice) {
		t.Errorf("without devices: %v", err)
	}
	k = newFake()
	for _, i := range []int{-1, 1, 1 << 30} {
		if _, err := k.driver().open(i); !errors.Is(err, ErrNoDevice) {
			t.Errorf("device %d of one: %v", i, err)
		}
	}
	noLeaks(t, k, nil)
}

func TestInitFailures(t *testing.T) {
	for code, want := range map[Code]error{codeStubLibrary: ErrNoDriver, codeDriverMismatch: ErrNoDriver, codeSystemNotReady: ErrNoDriver,
		codeUnknown: ErrNoDriver, codeNoDevice: ErrNoDevice} {
		k := newFake()
		k.inject = func(name string) Code {
			if name == "cuInit" {
				return code
			}
			return 0
		}
		_, err := k.driver().open(0)
		var e *Error
		if !errors.Is(err, want) || !errors.As(err, &e) || e.Code != code || e.Call != "cuInit" {
			t.Errorf("cuInit answers %d: %v; want %v", code, err, want)
		}
	}
}

func TestMissingSymbols(t *testing.T) {
	k := newFake()
	k.missing["cuStreamQuery"] = true
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	if _, err := s.Done(); !errors.Is(err, ErrMissingSymbol) || !strings.Contains(err.Error(), "cuStreamQuery") {
		t.Errorf("without cuStreamQuery: %v", err)
	}
	if d.Err() != nil {
		t.Errorf("a missing function lost the device: %v", d.Err())
	}
	noLeaks(t, k, d)

	k = newFake()
	k.version = 11040
	k.missing["cuLaunchKernelEx"], k.missing["cuFuncGetParamInfo"], k.missing["cuTensorMapEncodeTiled"] = true, true, true
	d = k.open(t)
	s = must[*Stream](t)(d.NewStream(0))
	fn := must[*Function](t)(must[*Module](t)(d.Load([]byte(reluText))).Function("empty"))
	if err := s.Launch(fn, Config{}, nil); err != nil {
		t.Error(err)
	}
	err := s.Launch(fn, Config{Cooperative: true}, nil)
	var v *VersionError
	if !errors.As(err, &v) || v.Need != 11080 || v.Have != 11040 {
		t.Errorf("a cooperative launch on 11.4: %v", err)
	}
	if _, err := d.TensorMap(Tiled{Size: []uint64{8}, Tile: []uint32{8}}); !errors.Is(err, ErrDriverTooOld) {
		t.Errorf("a tensor map on 11.4: %v", err)
	}
	if fn.Info().Params != -1 {
		t.Errorf("parameters = %d, want -1: the driver does not say", fn.Info().Params)
	}
	noLeaks(t, k, d)
}

// TestCurrentContext has drivers answer calls in streams that bind no context:
// that they need none, that there is none, that the handle is of another one than
// the current, that the current one is lost. The answer with the context bound is
// what counts.
func TestCurrentContext(t *testing.T) {
	for _, code := range []Code{codeSuccess, 201, 400, codeIllegalAddress} {
		k := newFake()
		k.current = code
		d := k.open(t)
		s := must[*Stream](t)(d.NewStream(0))
		e := must[*Event](t)(d.NewEvent(false))
		m := must[*Module](t)(d.Load([]byte(reluText)))
		fn := must[*Function](t)(m.Function("relu"))
		in, out := []float32{-1, 2, -3, 4, 5}, make([]float32, 5)
		x, y := must[Memory](t)(s.Alloc(20)), must[Memory](t)(s.Alloc(20))
		var p Params
		p.Ptr(y.Ptr())
		p.Ptr(x.Ptr())
		p.U32(5)
		one := Config{Grid: Dim{X: 1}, Block: Dim{X: 32}}
		launch := func() error { return s.Launch(fn, one, p) }
		g := must[*Graph](t)(s.Capture(launch))
		for what, err := range map[string]error{"Upload": s.Upload(x.Ptr(), AsBytes(in)), "Launch": launch(), "Graph.Launch": g.Launch(s),
			"Record": s.Record(e), "After": s.After(e), "Event.Synchronize": e.Synchronize(), "Synchronize": s.Synchronize(),
			"Download": s.Download(AsBytes(out), y.Ptr()), "Err": d.Err()} {
			if err != nil {
				t.Errorf("answer %d: %s: %v", code, what, err)
			}
		}
		if want := []float32{0, 2, 0, 4, 5}; !slices.Equal(out, want) {
			t.Errorf("answer %d: %v, want %v", code, out, want)
		}
		if k.unbound == 0 {
			t.Errorf("answer %d: every call binds the context", code)
		}
		k.inject = func(name string) Code {
			if name == "cuLaunchKernel" {
				return codeInvalidValue
			}
			return 0
		}
		if err := launch(); !errors.Is(err, ErrInvalid) || d.Err() != nil {
			t.Errorf("answer %d: a launch that is refused: %v, and then %v", code, err, d.Err())
		}
		k.inject = nil
		if err := s.Launch(must[*Function](t)(m.Function("fault")), Config{}, make([]byte, 8)); err != nil {
			t.Error(err)
		}
		if err := s.Synchronize(); !errors.Is(err, ErrDeviceLost) {
			t.Errorf("answer %d: Synchronize after a kernel that fails: %v", code, err)
		}
		g.Close()
		noLeaks(t, k, d)
	}
}

func TestDevices(t *testing.T) {
	k := newFake()
	k.devices = 3
	all, err := k.driver().devices()
	if err != nil || len(all) != 3 {
		t.Fatalf("Devices = %v, %v", all, err)
	}
	i := all[2]
	if i.Ordinal != 2 || i.Name != "Fake H0" || i.Capability != (Capability{9, 0}) || i.Memory != 1<<30 || i.Driver != 13000 ||
		i.PCI != "0000:1b:00.0" || i.UUID != "GPU-30313233-3435-3637-3839-616263646566" || i.SharedPerBlockOptin != 227<<10 {
		t.Errorf("device 2 = %+v", i)
	}
	k.inject = func(name string) Code {
		if name == "cuDeviceTotalMem_v2" && k.calls[name]%2 == 0 {
			return codeUnknown
		}
		return 0
	}
	all, err = k.driver().devices()
	if len(all) == 0 || len(all) == 3 || err == nil || !strings.Contains(err.Error(), "device ") {
		t.Errorf("with a broken device: %d devices, %v", len(all), err)
	}
}

func TestRoundTrips(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	fn := must[*Function](t)(must[*Module](t)(d.Load([]byte(reluText))).Function("relu"))
	for _, n := range []int{0, 1, 3, 255, 256, 257, 4099, 262143, 262144, 262147, 1<<20 + 5, 5<<18 + 1} {
		in, out := make([]float32, n), make([]float32, n)
		for i := range in {
			in[i] = float32((i*7919)%1000) - 500
			out[i] = float32(math.NaN())
		}
		x := must[Memory](t)(s.Alloc(int64(4 * n)))
		y := must[Memory](t)(s.Alloc(int64(4 * n)))
		if err := s.Upload(x.Ptr(), AsBytes(in)); err != nil {
			t.Fatal(err)
		}
		var p Params
		p.Ptr(y.Ptr())
		p.Ptr(x.Ptr())
		p.U32(uint32(n))
		if err := s.Launch(fn, Config{Grid: Dim{X: uint32(n+255)/256 + 1}, Block: Dim{X: 256}}, p); err != nil {
			t.Fatal(err)
		}
		if err := s.Download(AsBytes(out), y.Ptr()); err != nil {
			t.Fatal(err)
		}
		for i := range out {
			if out[i] != max(in[i], 0) {
				t.Fatalf("n = %d: out[%d] = %v, want %v", n, i, out[i], max(in[i], 0))
			}
		}
		if x.Free() != nil || y.Free() != nil {
			t.Error("Free fails")
		}
	}
	if u := d.Usage(); u.Used != 0 || u.Kept == 0 {
		t.Errorf("Usage after all is freed = %+v", u)
	}
	if err := d.Trim(); err != nil {
		t.Error(err)
	}
	if u := d.Usage(); u != (Usage{}) || k.used != 0 {
		t.Errorf("Usage after Trim = %+v, the driver has given %d", u, k.used)
	}
	noLeaks(t, k, d)
}

// TestStagingIsOrdered mixes uploads and downloads of many sizes through the
// ring and looks at every byte.
func TestStagingIsOrdered(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	const room = 18 << 20 // several times the ring
	m := must[Memory](t)(s.Alloc(room))
	want := make([]byte, room)
	seed := uint32(1)
	next := func(n int) int {
		seed = seed*1664525 + 1013904223
		return int(seed>>8) % n
	}
	if err := s.Set8(m.Ptr(), 0, room); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		n := next(3000)
		if i%40 == 0 {
			n = next(room)
		}
		off := next(room - n + 1)
		if next(3) > 0 {
			src := make([]byte, n)
			for j := range src {
				src[j] = byte((j*j + i*j + i) >> 3)
			}
			copy(want[off:], src)
			if err := s.Upload(m.Ptr()+Ptr(off), src); err != nil {
				t.Fatal(err)
			}
			clear(src) // it may be changed as soon as Upload returns
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
	noLeaks(t, k, d)
}

func TestHostMemory(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	h := must[*HostMemory](t)(d.AllocHost(1000))
	if !bytes.Equal(h.Bytes(), make([]byte, 1000)) || h.Size() != 1000 || h.Ptr() == 0 || len(HostSlice[float64](h)) != 125 {
		t.Error("fresh host memory is not 1000 zeros")
	}
	m := must[Memory](t)(s.Alloc(1000))
	for i := range h.Bytes() {
		h.Bytes()[i] = byte(i)
	}
	if err := s.CopyFromHost(m.Ptr(), h, 0, 1000); err != nil {
		t.Error(err)
	}
	if err := s.Copy(m.Ptr(), m.Ptr()+500, 400); err != nil {
		t.Error(err)
	}
	if err := s.CopyToHost(h, 10, m.Ptr(), 400); err != nil {
		t.Error(err)
	}
	if err := s.Synchronize(); err != nil {
		t.Error(err)
	}
	if got, want := h.Bytes()[10+399], byte((500+399)%256); got != want || h.Bytes()[9] != 9 || h.Bytes()[410] != byte(410%256) {
		t.Errorf("byte 409 = %d, want %d", got, want)
	}
	for _, c := range [][2]int64{{-1, 1}, {0, 1001}, {1000, 1}, {1, math.MaxInt64}, {0, -1}, {math.MaxInt64, 1}} {
		if err := s.CopyFromHost(m.Ptr(), h, c[0], c[1]); !errors.Is(err, ErrInvalid) {
			t.Errorf("a copy of %d bytes from %d on: %v", c[1], c[0], err)
		}
	}
	h.Close()
	h.Close()
	if err := s.CopyFromHost(m.Ptr(), h, 0, 1); !errors.Is(err, ErrClosed) || h.Bytes() != nil || h.Ptr() != 0 || h.Size() != 0 {
		t.Errorf("after Close: %v", err)
	}
	if _, err := d.AllocHost(-1); !errors.Is(err, ErrInvalid) {
		t.Errorf("AllocHost(-1): %v", err)
	}
	noLeaks(t, k, d)
}

func TestMemoryHandles(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	a := must[Memory](t)(s.Alloc(5000))
	p := a.Ptr()
	copied := a
	a.Free()
	if copied.Ptr() != 0 || copied.Size() != 0 {
		t.Error("a copy of freed memory still has an address")
	}
	b := must[Memory](t)(s.Alloc(4900))
	if b.Ptr() != p {
		t.Error("freed memory is not used again")
	}
	copied.Free() // must not free b
	a.Free()
	if b.Ptr() != p || b.Size() != 4900 {
		t.Error("freeing twice freed what belongs to another")
	}
	if (Memory{}).Free() != nil || (Memory{}).Ptr() != 0 {
		t.Error("no memory is not harmless")
	}
	for _, n := range []int64{-1, math.MinInt64} {
		if _, err := s.Alloc(n); !errors.Is(err, ErrInvalid) {
			t.Errorf("Alloc(%d): %v", n, err)
		}
	}
	for _, n := range []int64{k.capacity + 1, math.MaxInt64} {
		if _, err := s.Alloc(n); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("Alloc(%d): %v", n, err)
		}
		if _, err := d.Alloc(n); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("Device.Alloc(%d): %v", n, err)
		}
	}
	// Memory outlives its stream, and is freed without it.
	c := must[Memory](t)(s.Alloc(100))
	s.Close()
	if c.Ptr() == 0 {
		t.Error("memory went with its stream")
	}
	c.Free()
	own := must[Memory](t)(d.Alloc(1 << 20))
	own.Free()
	kept := must[Memory](t)(d.Alloc(1 << 20))
	d.Close()
	if kept.Ptr() != 0 || kept.Free() != nil {
		t.Error("memory is there after Close")
	}
	noLeaks(t, k, d)
}

// TestOutOfMemoryTrims fills the device with memory that is kept, and asks for
// more than is left.
func TestOutOfMemoryTrims(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s1, s2 := must[*Stream](t)(d.NewStream(0)), must[*Stream](t)(d.NewStream(0))
	for _, s := range []*Stream{s1, s2} {
		must[Memory](t)(s.Alloc(400 << 20)).Free()
	}
	m, err := s1.Alloc(900 << 20)
	if err != nil {
		t.Fatalf("memory that is kept is in the way: %v", err)
	}
	if _, err := s2.Alloc(900 << 20); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("more than there is: %v", err)
	}
	m.Free()
	if _, err := s2.Alloc(900 << 20); err != nil {
		t.Errorf("after Free: %v", err)
	}
	noLeaks(t, k, d)
}

func TestSizes(t *testing.T) {
	last := int64(0)
	lastBin := -1
	for n := int64(0); n <= largest; n += 1 + n/37 {
		size, bin := rounded(n)
		if size < n || size%grain != 0 || size > max(n+n/4+grain, grain) {
			t.Fatalf("%d bytes take %d", n, size)
		}
		if again, b := rounded(size); again != size || b != bin {
			t.Fatalf("a block of %d bytes is of bin %d and rounds to %d in bin %d", size, bin, again, b)
		}
		if bin < 0 || bin >= binCount || size < last || size > last && bin <= lastBin || size == last && bin != lastBin {
			t.Fatalf("%d bytes: size %d after %d, bin %d after %d", n, size, last, bin, lastBin)
		}
		last, lastBin = size, bin
	}
	for _, n := range []int64{largest + 1, 100 << 20, 1<<40 + 1} {
		size, bin := rounded(n)
		if bin != -1 || size < n || size-n >= largeStep {
			t.Errorf("%d bytes take %d, bin %d", n, size, bin)
		}
	}
}

func TestEvents(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(-100))
	a, b := must[*Event](t)(d.NewEvent(true)), must[*Event](t)(d.NewEvent(true))
	plain := must[*Event](t)(d.NewEvent(false))
	for _, err := range []error{s.Record(a), s.After(a), s.Record(b), b.Synchronize(), a.Wait(context.Background())} {
		if err != nil {
			t.Error(err)
		}
	}
	if e, err := Elapsed(a, b); e != 1500*time.Microsecond || err != nil {
		t.Errorf("Elapsed = %v, %v", e, err)
	}
	if _, err := Elapsed(a, plain); !errors.Is(err, ErrInvalid) {
		t.Errorf("Elapsed without timing: %v", err)
	}
	if done, err := b.Done(); !done || err != nil {
		t.Errorf("Done = %v, %v", done, err)
	}
	a.Close()
	a.Close()
	if _, err := Elapsed(a, b); !errors.Is(err, ErrClosed) {
		t.Errorf("Elapsed after Close: %v", err)
	}
	if err := s.Record(a); !errors.Is(err, ErrClosed) {
		t.Errorf("Record after Close: %v", err)
	}
	noLeaks(t, k, d)
}

func TestWaitHearsTheContext(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	k.mu.Lock()
	k.busy = math.MaxInt32
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if err := s.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait = %v", err)
	}
	if done, err := s.Done(); done || err != nil {
		t.Errorf("Done = %v, %v", done, err)
	}
	if err := s.Synchronize(); err != nil { // blocks, which the fake ends
		t.Error(err)
	}
	noLeaks(t, k, d)
}

func TestModuleErrors(t *testing.T) {
	k := newFake()
	d := k.open(t)
	for _, c := range []struct {
		image string
		want  error
		says  string
	}{
		{"", ErrBadImage, "empty"},
		{"hello", ErrBadImage, ".version"},
		{reluText + "\x00", ErrBadImage, "neither"},
		{reluText + "@bad", ErrBadImage, "syntax error near '@bad'"},
		{strings.Replace(reluText, "8.0", "99.9", 1), ErrPTXTooNew, "PTX 99.9"},
		{"\x7fELF", ErrBadImage, "64 bits"},
		{string(fakeCubin(reluText)[:100]), ErrBadImage, "lacks"},
		{string(fakeCubin("@wrongdevice")), ErrBadImage, "FAKE_ERROR_209"},
	} {
		m, err := d.Load([]byte(c.image))
		if m != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Load(%.20q) = %v; want %v that says %q", c.image, err, c.want, c.says)
		}
	}
	_, err := d.Load([]byte(strings.Replace(reluText, "8.0", "99.9", 1)))
	var p *PTXError
	if !errors.As(err, &p) || p.Have != 90 || p.Need != 999 || p.Driver != 13000 || !errors.Is(err, ErrDriverTooOld) {
		t.Errorf("too new: %v", err)
	}
	m := must[*Module](t)(d.Load([]byte(reluText)))
	if _, err := m.Function("sgemm"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "sgemm") {
		t.Errorf("a function that is not there: %v", err)
	}
	if _, _, err := m.Global("table"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a variable that is not there: %v", err)
	}
	if _, n, err := m.Global("counter"); n != 64 || err != nil {
		t.Errorf("counter = %d bytes, %v", n, err)
	}
	if !strings.Contains(m.Log(), "20 registers") {
		t.Errorf("Log = %q", m.Log())
	}
	noLeaks(t, k, d)
}

func TestPTXVersions(t *testing.T) {
	for _, c := range []struct {
		driver Version
		ptx    PTXVersion
	}{{11040, 74}, {11080, 78}, {12060, 85}, {12080, 87}, {13000, 90}, {10020, 0}} {
		if got := c.driver.PTX(); got != c.ptx {
			t.Errorf("CUDA %v understands PTX %v, want %v", c.driver, got, c.ptx)
		}
	}
	if v := driverFor(87); v != 12080 {
		t.Errorf("PTX 8.7 needs CUDA %v", v)
	}
	if v := driverFor(999); v != 0 {
		t.Errorf("PTX 99.9 needs CUDA %v", v)
	}
	for text, want := range map[string]PTXVersion{".version 8.7\n": 87, "// x\n  .version\t7.0 // y\n": 70, ".version x": 0, "": 0, ".version 8": 0} {
		if got := textVersion([]byte(text)); got != want {
			t.Errorf("textVersion(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestOwnTarget(t *testing.T) {
	for target, want := range map[string]uintptr{"sm_90a": 0x1005a, "sm_100f": 0x20064, "sm_80": 0, "sm_90": 0, "": 0, "sm_a": 0, "sm_9x0a": 0, "sm_99999999999999999999a": 0} {
		if got := ownTarget(target); got != want {
			t.Errorf("ownTarget(%q) = %#x, want %#x", target, got, want)
		}
	}
}

func TestCubinCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	k := newFake()
	files := func() []string {
		f, _ := filepath.Glob(filepath.Join(dir, "*"))
		return f
	}
	run := func(o LoadOptions) (compiled int) {
		t.Helper()
		d := must[*Device](t)(k.driver().open(0, WithCubinCache(dir)))
		defer noLeaks(t, k, d)
		before := k.count("cuLinkAddData_v2")
		m := must[*Module](t)(d.LoadWith([]byte(reluText), o))
		must[*Function](t)(m.Function("relu"))
		return k.count("cuLinkAddData_v2") - before
	}
	if run(LoadOptions{}) != 1 || run(LoadOptions{}) != 0 || len(files()) != 1 {
		t.Fatalf("the second load compiles, or there are %d files", len(files()))
	}
	if run(LoadOptions{MaxRegisters: 32}) != 1 || len(files()) != 2 {
		t.Error("other options take the same cubin")
	}
	if run(LoadOptions{NoCache: true}) != 0 || len(files()) != 2 {
		t.Error("NoCache uses the cache")
	}
	os.Remove(files()[1])
	run(LoadOptions{})
	run(LoadOptions{MaxRegisters: 32})
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)-1] },
		func(b []byte) []byte { return b[:20] },
		func(b []byte) []byte { return nil },
		func(b []byte) []byte { b[len(b)-70] ^= 1; return b },
		func(b []byte) []byte { b[3] ^= 1; return b },
		func(b []byte) []byte { return append(b, 0) },
		func(b []byte) []byte { return []byte(strings.Repeat("x", 500)) },
	} {
		for _, f := range files() {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(f, damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if run(LoadOptions{}) != 1 || run(LoadOptions{}) != 0 {
			t.Error("a damaged file is used, or not replaced")
		}
		run(LoadOptions{MaxRegisters: 32})
	}

	// A file that is whole, and that the driver does not take.
	c := openCubins(dir)
	key := cubinKey([]byte(reluText), 13000, Capability{9, 0}, LoadOptions{})
	c.put(key, fakeCubin("@wrongdevice"))
	if run(LoadOptions{}) != 1 || run(LoadOptions{}) != 0 {
		t.Error("a cubin that the driver refuses is not replaced")
	}
	// Another driver.
	k.version = 12090
	if run(LoadOptions{}) != 1 {
		t.Error("a cubin of another driver is used")
	}
	for _, f := range files() {
		if strings.HasSuffix(f, ".tmp") {
			t.Errorf("%s is left", f)
		}
	}
}

func TestCubinCachePrunes(t *testing.T) {
	c := openCubins(t.TempDir())
	for i := range cubinFiles + 5 {
		name := c.path(fmt.Sprintf("%04d", i))
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if i < 10 {
			old := time.Now().Add(time.Duration(i-100) * time.Hour)
			os.Chtimes(name, old, old)
		}
	}
	c.put("new", fakeCubin(reluText))
	all, _ := filepath.Glob(c.path("*"))
	if len(all) != cubinFiles {
		t.Errorf("%d files are left, want %d", len(all), cubinFiles)
	}
	if _, err := os.Stat(c.path("0000")); err == nil {
		t.Error("the oldest is left")
	}
	if c.get("new") == nil {
		t.Error("the newest is gone")
	}
}

// TestCacheWithoutPlace loads where nothing can be kept.
func TestCacheWithoutPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k := newFake()
	d := must[*Device](t)(k.driver().open(0, WithCubinCache(filepath.Join(file, "below"))))
	must[*Module](t)(d.Load([]byte(reluText)))
	noLeaks(t, k, d)
}

// TestParameterPlaces lays parameters out as ptxas 12.9 has them for sm_90a.
func TestParameterPlaces(t *testing.T) {
	for _, c := range []struct {
		to, size, from []int
		end            int
	}{
		{[]int{0, 8, 16}, []int{8, 8, 4}, nil, 0},
		{[]int{0, 64, 192}, []int{8, 128, 4}, nil, 0}, // they begin at a multiple of 64
		{[]int{48, 176, 304}, []int{128, 128, 4}, []int{0, 128, 256}, 260},
		{[]int{0, 48, 176, 240}, []int{4, 128, 4, 128}, []int{0, 64, 192, 256}, 384},
		{[]int{0, 48, 176, 184}, []int{4, 128, 4, 8}, []int{0, 64, 192, 200}, 208},
		{[]int{0, 12}, []int{12, 20}, nil, 0}, // structures, whose alignment nobody knows
	} {
		moves := make([]paramMove, len(c.to))
		for i := range moves {
			moves[i] = paramMove{to: c.to[i], size: c.size[i]}
		}
		if end := lay(moves); end != c.end {
			t.Errorf("%v %v: %d bytes, not %d", c.to, c.size, end, c.end)
		}
		for i, from := range c.from {
			if moves[i].from != from {
				t.Errorf("%v %v: parameter %d from %d, not %d", c.to, c.size, i, moves[i].from, from)
			}
		}
	}
}

func TestLaunches(t *testing.T) {
	k := newFake()
	k.devices = 2
	drv := k.driver()
	d := must[*Device](t)(drv.open(0, WithCubinCache("")))
	other := must[*Device](t)(drv.open(1, WithCubinCache("")))
	s := must[*Stream](t)(d.NewStream(0))
	m := must[*Module](t)(d.Load([]byte(reluText)))
	relu, empty := must[*Function](t)(m.Function("relu")), must[*Function](t)(m.Function("empty"))
	if again := must[*Function](t)(m.Function("relu")); again != relu {
		t.Error("a function is looked up twice")
	}
	if i := relu.Info(); i.Registers != 20 || i.Params != 20 || i.PTX != 80 || i.Binary != (Capability{9, 0}) || relu.Name() != "relu" {
		t.Errorf("Info = %+v", i)
	}
	if err := s.Launch(relu, Config{}, make([]byte, 19)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "relu") {
		t.Errorf("too few parameters: %v", err)
	}
	if err := s.Launch(empty, Config{}, make([]byte, largeParams+1)); !errors.Is(err, ErrInvalid) {
		t.Errorf("too many parameters: %v", err)
	}
	big := bytes.Repeat([]byte{7}, largeParams)
	if err := s.Launch(empty, Config{}, big); err != nil || !bytes.Equal(k.params[len(k.params)-1], big) {
		t.Errorf("large parameters: %v", err)
	}
	if err := s.Launch(empty, Config{}, nil); err != nil {
		t.Error(err)
	}
	if err := s.Launch(empty, Config{Grid: Dim{Y: 70000}}, nil); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "1×70000×1") {
		t.Errorf("a grid too large: %v", err)
	}
	if err := s.Launch(empty, Config{Shared: 200 << 10}, nil); err != nil {
		t.Errorf("200 KiB of shared memory: %v", err)
	}
	if n := k.count("cuFuncSetAttribute"); n != 1 {
		t.Errorf("the limit was raised %d times", n)
	}
	if err := s.Launch(empty, Config{Shared: 100 << 10}, nil); err != nil || k.count("cuFuncSetAttribute") != 1 {
		t.Errorf("a smaller limit was set: %v", err)
	}
	if err := s.Launch(empty, Config{Shared: 228 << 10}, nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("228 KiB of shared memory: %v", err)
	}
	if err := s.Launch(empty, Config{Cluster: Dim{X: 2}, Cooperative: true, Overlap: true, Grid: Dim{X: 4}}, nil); err != nil {
		t.Error(err)
	}
	if n, err := empty.MaxActiveBlocks(256, 60<<10); n != 2 || err != nil {
		t.Errorf("MaxActiveBlocks = %d, %v", n, err)
	}
	if th, b, err := empty.BestBlock(0); th != 256 || b != 8 || err != nil {
		t.Errorf("BestBlock = %d, %d, %v", th, b, err)
	}
	if n, err := empty.MaxActiveClusters(Config{Cluster: Dim{X: 2}}); n != 2 || err != nil {
		t.Errorf("MaxActiveClusters = %d, %v", n, err)
	}
	if err := empty.AllowLargeClusters(); err != nil {
		t.Error(err)
	}
	foreign := must[*Stream](t)(other.NewStream(0))
	if err := foreign.Launch(empty, Config{}, nil); !errors.Is(err, ErrForeign) {
		t.Errorf("a kernel of another device: %v", err)
	}
	x, y := must[Memory](t)(d.Alloc(64)), must[Memory](t)(other.Alloc(64))
	for _, err := range []error{d.EnablePeer(other), d.EnablePeer(other), s.CopyPeer(other, y.Ptr(), d, x.Ptr(), 64)} {
		if err != nil {
			t.Error(err)
		}
	}
	m.Close()
	m.Close()
	if err := s.Launch(empty, Config{}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a kernel of a closed module: %v", err)
	}
	if err := s.Launch(nil, Config{}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("no kernel: %v", err)
	}
	other.Close()
	noLeaks(t, k, d)
}

func TestParams(t *testing.T) {
	var p Params
	p.U8(1)
	p.U16(2)
	p.U8(3)
	p.U32(4)
	p.F32(1)
	p.Ptr(5)
	p.I32(-1)
	p.F64(1)
	p.Bytes([]byte{9, 9}, 64)
	want := append([]byte{1, 0, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0x80, 0x3f, 5, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, make([]byte, 24)...)
	want = append(want, 9, 9)
	if !bytes.Equal(p, want) {
		t.Errorf("Params = %v\nwant     %v", []byte(p), want)
	}
}

// TestIllegalAddress loses the device and opens it again.
func TestIllegalAddress(t *testing.T) {
	k := newFake()
	drv := k.driver()
	d := must[*Device](t)(drv.open(0, WithCubinCache("")))
	twin := must[*Device](t)(drv.open(0, WithCubinCache("")))
	s := must[*Stream](t)(d.NewStream(0))
	m := must[*Module](t)(d.Load([]byte(reluText)))
	fault := must[*Function](t)(m.Function("fault"))
	mem := must[Memory](t)(s.Alloc(100))
	if err := s.Upload(mem.Ptr(), make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := s.Launch(fault, Config{}, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	first := s.Synchronize()
	var e *Error
	if !errors.Is(first, ErrDeviceLost) || !errors.Is(first, ErrIllegalAddress) || !errors.As(first, &e) || e.Code != codeIllegalAddress {
		t.Fatalf("Synchronize = %v", first)
	}
	if !strings.Contains(first.Error(), "fault") {
		t.Errorf("the error does not name the kernel: %v", first)
	}
	before := k.total
	_, allocErr := s.Alloc(1)
	_, loadErr := d.Load([]byte(reluText))
	_, streamErr := twin.NewStream(0)
	for i, err := range []error{s.Synchronize(), s.Launch(fault, Config{}, make([]byte, 8)), s.Upload(mem.Ptr(), make([]byte, 1)),
		s.Download(make([]byte, 1), mem.Ptr()), d.Synchronize(), twin.Synchronize(), allocErr, loadErr, streamErr, d.Err(), twin.Err()} {
		if !errors.Is(err, ErrDeviceLost) || !errors.As(err, &e) || e != first {
			t.Errorf("call %d after the loss returns %v", i, err)
		}
	}
	if k.total != before {
		t.Errorf("%d calls of the driver after the loss", k.total-before)
	}
	if _, err := drv.open(0); !errors.Is(err, ErrDeviceLost) {
		t.Errorf("Open of a lost device: %v", err)
	}
	mem.Free()
	d.Close()
	noLeaks(t, k, twin)
	d = must[*Device](t)(drv.open(0, WithCubinCache("")))
	must[*Stream](t)(d.NewStream(0))
	noLeaks(t, k, d)
}

func TestSynchronousLaunches(t *testing.T) {
	k := newFake()
	d := k.open(t, WithSynchronousLaunches())
	s := must[*Stream](t)(d.NewStream(0))
	fault := must[*Function](t)(must[*Module](t)(d.Load([]byte(reluText))).Function("fault"))
	if err := s.Launch(fault, Config{}, make([]byte, 8)); !errors.Is(err, ErrIllegalAddress) || !strings.Contains(err.Error(), "fault") {
		t.Errorf("Launch = %v", err)
	}
	noLeaks(t, k, d)
}

func TestGraphs(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	relu := must[*Function](t)(must[*Module](t)(d.Load([]byte(reluText))).Function("relu"))
	x, y, z := must[Memory](t)(s.Alloc(1024)), must[Memory](t)(s.Alloc(1024)), must[Memory](t)(s.Alloc(1024))
	params := func(y, x Memory) []byte {
		var p Params
		p.Ptr(y.Ptr())
		p.Ptr(x.Ptr())
		p.U32(256)
		return p
	}
	record := func(to Memory, launches int) *Graph {
		t.Helper()
		return must[*Graph](t)(s.Capture(func() error {
			if err := s.Copy(z.Ptr(), x.Ptr(), 1024); err != nil {
				return err
			}
			for range launches {
				if err := s.Launch(relu, Config{Grid: Dim{X: 1}, Block: Dim{X: 256}}, params(to, z)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	in, out := make([]float32, 256), make([]float32, 256)
	fill := func(base float32) {
		for i := range in {
			in[i] = base - float32(i)
		}
		if err := s.Upload(x.Ptr(), AsBytes(in)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, m Memory) {
		t.Helper()
		if err := s.Download(AsBytes(out), m.Ptr()); err != nil {
			t.Fatal(err)
		}
		for i := range out {
			if out[i] != max(in[i], 0) {
				t.Fatalf("%s: out[%d] = %v, want %v", what, i, out[i], max(in[i], 0))
			}
		}
	}
	g := record(y, 1)
	if g.Kernels() != 1 {
		t.Fatalf("%d kernels", g.Kernels())
	}
	for _, base := range []float32{10, 100} {
		fill(base)
		if err := g.Launch(s); err != nil {
			t.Fatal(err)
		}
		check("replay", y)
	}
	w := must[Memory](t)(s.Alloc(1024))
	if err := g.SetKernel(0, relu, Config{Grid: Dim{X: 1}, Block: Dim{X: 256}}, params(w, z)); err != nil {
		t.Fatal(err)
	}
	fill(50)
	if err := g.Launch(s); err != nil {
		t.Fatal(err)
	}
	check("after SetKernel", w)
	g2 := record(y, 1)
	if err := g.Update(g2); err != nil {
		t.Fatal(err)
	}
	fill(70)
	for _, err := range []error{g.Upload(s), g.Launch(s)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	check("after Update", y)
	if err := g.Update(record(y, 2)); !errors.Is(err, ErrDifferent) {
		t.Errorf("Update with another form: %v", err)
	}
	if err := g.SetKernel(1, relu, Config{}, params(y, z)); !errors.Is(err, ErrInvalid) {
		t.Errorf("SetKernel beyond the last: %v", err)
	}
	g.Close()
	g.Close()
	if err := g.Launch(s); !errors.Is(err, ErrClosed) {
		t.Errorf("Launch after Close: %v", err)
	}
	if must[*Graph](t)(s.Capture(func() error { return nil })).Kernels() != 0 {
		t.Error("an empty graph has kernels")
	}

	wrong := errors.New("no")
	if _, err := s.Capture(func() error { return wrong }); err != wrong {
		t.Errorf("Capture returns %v", err)
	}
	func() {
		defer func() {
			if recover() != "mine" {
				t.Error("the panic did not get through")
			}
		}()
		s.Capture(func() error { panic("mine") })
	}()
	s.Capture(func() error {
		small, err := s.Alloc(100) // none is kept
		if !errors.Is(err, ErrCapturing) || small.Ptr() != 0 {
			t.Errorf("Alloc while capturing: %v", err)
		}
		_, doneErr := s.Done()
		_, captureErr := s.Capture(nil)
		for i, err := range []error{s.Synchronize(), doneErr, captureErr, s.Upload(x.Ptr(), make([]byte, 1)), s.Download(make([]byte, 1), x.Ptr())} {
			if !errors.Is(err, ErrCapturing) {
				t.Errorf("call %d while capturing: %v", i, err)
			}
		}
		return wrong
	})
	if err := s.Synchronize(); err != nil {
		t.Errorf("after Capture: %v", err)
	}
	noLeaks(t, k, d)
}

func TestTensorMap(t *testing.T) {
	k := newFake()
	d := k.open(t)
	for range 20 {
		m, err := d.TensorMap(Tiled{Type: ElementF16, Address: 0x1000, Size: []uint64{64, 32}, Stride: []uint64{128}, Tile: []uint32{64, 8}, Swizzle: Swizzle128})
		if err != nil || m[0] != 64 {
			t.Fatalf("TensorMap = %v, %v", m[:8], err)
		}
	}
	for _, bad := range []Tiled{{}, {Size: make([]uint64, 6), Stride: make([]uint64, 5), Tile: make([]uint32, 6)}, {Size: []uint64{1}},
		{Size: []uint64{1, 2}, Tile: []uint32{1, 1}}, {Size: []uint64{1}, Tile: []uint32{1}, Step: []uint32{1, 1}}} {
		if _, err := d.TensorMap(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("TensorMap(%+v): %v", bad, err)
		}
	}
	noLeaks(t, k, d)
}

// everything uses what there is, and stops at the first error.
func everything(d *Device) error {
	s, err := d.NewStream(0)
	if err != nil {
		return err
	}
	e, err := d.NewEvent(true)
	if err != nil {
		return err
	}
	m, err := d.Load([]byte(reluText))
	if err != nil {
		return err
	}
	relu, err := m.Function("relu")
	if err != nil {
		return err
	}
	x, err := s.Alloc(1 << 12)
	if err != nil {
		return err
	}
	y, err := d.Alloc(1 << 12)
	if err != nil {
		return err
	}
	h, err := d.AllocHost(1 << 12)
	if err != nil {
		return err
	}
	var p Params
	p.Ptr(y.Ptr())
	p.Ptr(x.Ptr())
	p.U32(1 << 10)
	work := func() error {
		for _, err := range []error{s.Set32(x.Ptr(), 0x3f800000, 1<<10), s.Launch(relu, Config{Grid: Dim{X: 4}, Block: Dim{X: 256}}, p),
			s.CopyToHost(h, 0, y.Ptr(), 1<<12), s.CopyFromHost(x.Ptr(), h, 0, 1<<12)} {
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := work(); err != nil {
		return err
	}
	g, err := s.Capture(work)
	if err != nil {
		return err
	}
	big := make([]byte, 3<<20)
	z, err := s.Alloc(3 << 20)
	if err != nil {
		return err
	}
	for _, f := range []func() error{
		func() error { return g.SetKernel(0, relu, Config{Grid: Dim{X: 4}, Block: Dim{X: 256}}, p) },
		func() error { return g.Upload(s) }, func() error { return g.Launch(s) },
		func() error { return s.Record(e) }, func() error { return s.After(e) },
		func() error { _, err := s.Done(); return err }, func() error { _, err := e.Done(); return err },
		func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			return s.Wait(ctx)
		}, e.Synchronize,
		func() error { _, err := Elapsed(e, e); return err },
		func() error { return s.Upload(z.Ptr(), big) }, func() error { return s.Download(big, z.Ptr()) },
		func() error { return s.Launch(relu, Config{Shared: 60 << 10, Cooperative: true}, p) },
		func() error { _, err := relu.MaxActiveBlocks(256, 0); return err },
		func() error { _, _, err := relu.BestBlock(0); return err },
		func() error { _, _, err := m.Global("counter"); return err },
		func() error { _, _, err := d.MemInfo(); return err },
		func() error { _, err := d.Attribute(WarpSize); return err },
		func() error {
			_, err := d.TensorMap(Tiled{Size: []uint64{8}, Tile: []uint32{8}})
			return err
		},
		x.Free, y.Free, z.Free, g.Close, h.Close, d.Trim, s.Synchronize, d.Synchronize, m.Close, e.Close, s.Close,
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// TestEveryCallFails lets each call of the driver fail in turn, in each of
// several ways: the error is typed and names the call, the device is lost only if
// that is what it means, and nothing is left over.
func TestEveryCallFails(t *testing.T) {
	dir := t.TempDir()
	// What may fail without consequence: the flags of the context, properties that
	// are nice to know, a linker without which the loader compiles, the answer to
	// "how many parameters".
	optional := map[string]bool{"cuDevicePrimaryCtxSetFlags_v2": true, "cuDeviceGetAttribute": true, "cuDeviceGetUuid": true, "cuDeviceGetPCIBusId": true,
		"cuLinkCreate_v2": true, "cuLinkAddData_v2": true, "cuLinkComplete": true, "cuFuncGetParamInfo": true, "cuMemPoolTrimTo": true, "cuModuleLoadDataEx": true}
	for code, want := range map[Code]error{codeUnknown: nil, codeOutOfMemory: ErrOutOfMemory, codeInvalidValue: ErrInvalid, codeLaunchFailed: ErrDeviceLost, codeIllegalAddress: ErrIllegalAddress} {
		step := 1
		if testutil.Raced { // of what one goroutine does a sample will do
			step = 5
		}
		for fail := 1 + rand.IntN(step); ; fail += step {
			k := newFake()
			failed := ""
			k.inject = func(name string) Code {
				if k.total == fail {
					failed = name
					return code
				}
				return 0
			}
			os.RemoveAll(dir)
			d, err := k.driver().open(0, WithCubinCache(dir), WithScheduling(Yield))
			if err == nil {
				err = everything(d)
				if lost := d.Err(); (lost != nil) != code.sticky() && failed != "" && !withoutContext[failed] {
					t.Errorf("%s answers %d: lost = %v", failed, code, lost)
				}
				d.Close()
			}
			if failed == "" {
				if err != nil {
					t.Fatalf("without a failure: %v", err)
				}
				break
			}
			if err == nil && !optional[failed] && !(code == codeOutOfMemory && strings.HasPrefix(failed, "cuMemAlloc")) {
				t.Errorf("%s answers %d (call %d), and nobody says so", failed, code, fail)
			}
			if err != nil && failed != "cuInit" && failed != "cuDriverGetVersion" {
				var e *Error
				if !errors.As(err, &e) || e.Code != code || e.Call != failed || want != nil && !errors.Is(err, want) {
					t.Errorf("%s answers %d (call %d): %v", failed, code, fail, err)
				}
			}
			for _, l := range k.leaks() {
				t.Errorf("%s answers %d (call %d): left over: %s", failed, code, fail, l)
			}
			if t.Failed() {
				return
			}
		}
	}
}

// TestUseAfterClose calls everything there is on what is closed, and on what
// never was.
func TestUseAfterClose(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	e := must[*Event](t)(d.NewEvent(true))
	m := must[*Module](t)(d.Load([]byte(reluText)))
	fn := must[*Function](t)(m.Function("empty"))
	h := must[*HostMemory](t)(d.AllocHost(8))
	g := must[*Graph](t)(s.Capture(func() error { return s.Launch(fn, Config{}, nil) }))
	mem := must[Memory](t)(s.Alloc(8))
	noLeaks(t, k, d)
	before := k.total
	calls := func(d *Device, s *Stream, e *Event, m *Module, fn *Function, h *HostMemory, g *Graph) map[string]error {
		all := map[string]error{}
		second := func(name string, f func() error) { all[name] = f() }
		second("Device.NewStream", func() error { _, err := d.NewStream(0); return err })
		second("Device.NewEvent", func() error { _, err := d.NewEvent(false); return err })
		second("Device.Load", func() error { _, err := d.Load([]byte(reluText)); return err })
		second("Device.Alloc", func() error { _, err := d.Alloc(1); return err })
		second("Device.AllocHost", func() error { _, err := d.AllocHost(1); return err })
		second("Device.Attribute", func() error { _, err := d.Attribute(WarpSize); return err })
		second("Device.MemInfo", func() error { _, _, err := d.MemInfo(); return err })
		second("Device.Synchronize", func() error { return d.Synchronize() })
		second("Device.Trim", func() error { return d.Trim() })
		second("Device.CanAccessPeer", func() error { _, err := d.CanAccessPeer(d); return err })
		second("Device.EnablePeer", func() error { return d.EnablePeer(d) })
		second("Device.TensorMap", func() error { _, err := d.TensorMap(Tiled{}); return err })
		second("Stream.Alloc", func() error { _, err := s.Alloc(1); return err })
		second("Stream.Synchronize", func() error { return s.Synchronize() })
		second("Stream.Done", func() error { _, err := s.Done(); return err })
		second("Stream.Launch", func() error { return s.Launch(fn, Config{}, nil) })
		second("Stream.Copy", func() error { return s.Copy(1, 2, 3) })
		second("Stream.CopyPeer", func() error { return s.CopyPeer(d, 1, d, 2, 3) })
		second("Stream.CopyFromHost", func() error { return s.CopyFromHost(1, h, 0, 1) })
		second("Stream.CopyToHost", func() error { return s.CopyToHost(h, 0, 1, 1) })
		second("Stream.Set8", func() error { return s.Set8(1, 2, 3) })
		second("Stream.Set32", func() error { return s.Set32(1, 2, 3) })
		second("Stream.Upload", func() error { return s.Upload(1, make([]byte, 1)) })
		second("Stream.Download", func() error { return s.Download(make([]byte, 1), 1) })
		second("Stream.Record", func() error { return s.Record(e) })
		second("Stream.After", func() error { return s.After(e) })
		second("Stream.Capture", func() error { _, err := s.Capture(func() error { return nil }); return err })
		second("Event.Synchronize", func() error { return e.Synchronize() })
		second("Event.Done", func() error { _, err := e.Done(); return err })
		second("Elapsed", func() error { _, err := Elapsed(e, e); return err })
		second("Module.Function", func() error { _, err := m.Function("empty"); return err })
		second("Module.Global", func() error { _, _, err := m.Global("counter"); return err })
		second("Function.MaxActiveBlocks", func() error { _, err := fn.MaxActiveBlocks(1, 0); return err })
		second("Function.BestBlock", func() error { _, _, err := fn.BestBlock(0); return err })
		second("Function.MaxActiveClusters", func() error { _, err := fn.MaxActiveClusters(Config{}); return err })
		second("Function.AllowLargeClusters", func() error { return fn.AllowLargeClusters() })
		second("Graph.Launch", func() error { return g.Launch(s) })
		second("Graph.Upload", func() error { return g.Upload(s) })
		second("Graph.SetKernel", func() error { return g.SetKernel(0, fn, Config{}, nil) })
		second("Graph.Update", func() error { return g.Update(g) })
		return all
	}
	for what, all := range map[string]map[string]error{
		"closed": calls(d, s, e, m, fn, h, g), "nil": calls(nil, nil, nil, nil, nil, nil, nil),
		"zero": calls(&Device{}, &Stream{}, &Event{}, &Module{}, &Function{}, &HostMemory{}, &Graph{}),
	} {
		for name, err := range all {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%s of what is %s: %v", name, what, err)
			}
		}
	}
	for _, c := range []child{d, s, e, m, h, g, (*Device)(nil), (*Stream)(nil), (*Event)(nil), (*Module)(nil), (*HostMemory)(nil), (*Graph)(nil),
		&Device{}, &Stream{}, &Event{}, &Module{}, &HostMemory{}, &Graph{}, (*Monitor)(nil), &Monitor{}} {
		if err := c.Close(); err != nil {
			t.Errorf("closing a %T again: %v", c, err)
		}
	}
	if mem.Free() != nil || mem.Ptr() != 0 || d.Usage() != (Usage{}) {
		t.Error("memory outlived its device")
	}
	if k.total != before {
		t.Errorf("%d calls of the driver after Close", k.total-before)
	}
	for _, l := range k.leaks() {
		t.Errorf("left over: %s", l)
	}
}

// TestManyCycles makes and closes everything many times, and looks at what the
// process and the driver have afterwards.
func TestManyCycles(t *testing.T) {
	cycles := 10000
	if testing.Short() {
		cycles = 500
	}
	k := newFake()
	drv := k.driver()
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	run := func(n int) {
		for range n {
			d, err := drv.open(0, WithCubinCache(""))
			if err != nil {
				t.Fatal(err)
			}
			s := must[*Stream](t)(d.NewStream(0))
			m := must[*Module](t)(d.Load([]byte(reluText)))
			fn := must[*Function](t)(m.Function("empty"))
			if err := s.Launch(fn, Config{}, nil); err != nil {
				t.Fatal(err)
			}
			must[*Event](t)(d.NewEvent(false))
			must[Memory](t)(s.Alloc(300)).Free()
			must[Memory](t)(s.Alloc(400))
			d.Close()
		}
	}
	run(100)
	before, goroutines := heap(), runtime.NumGoroutine()
	run(cycles)
	if after := heap(); after > before+256<<10 {
		t.Errorf("%d cycles: %d bytes of heap became %d", cycles, before, after)
	}
	if n := runtime.NumGoroutine(); n > goroutines+2 {
		t.Errorf("%d goroutines became %d", goroutines, n)
	}
	noLeaks(t, k, nil)
}

// TestChildCycles makes and closes children of one device many times.
func TestChildCycles(t *testing.T) {
	k := newFake()
	d := k.open(t)
	for range 2000 {
		s := must[*Stream](t)(d.NewStream(0))
		m := must[Memory](t)(s.Alloc(1000))
		e := must[*Event](t)(d.NewEvent(false))
		s.Close()
		m.Free()
		e.Close()
	}
	if len(d.children) != 0 || len(d.pools) != 1 || k.used != 0 {
		t.Errorf("%d children, %d pools, %d bytes", len(d.children), len(d.pools), k.used)
	}
	noLeaks(t, k, d)
}

// TestConcurrentUse has 64 goroutines use one device, with streams of their own
// and one that all share, while others close things under their feet.
func TestConcurrentUse(t *testing.T) {
	k := newFake()
	d := k.open(t)
	shared := must[*Stream](t)(d.NewStream(0))
	m := must[*Module](t)(d.Load([]byte(reluText)))
	relu := must[*Function](t)(m.Function("relu"))
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s := must[*Stream](t)(d.NewStream(0))
			for i := range 20 {
				on := s
				if i%2 == 0 {
					on = shared
				}
				n := 100 + g*7 + i
				in, out := make([]float32, n), make([]float32, n)
				for j := range in {
					in[j] = float32(j - n/2)
				}
				x, y := must[Memory](t)(on.Alloc(int64(4*n))), must[Memory](t)(on.Alloc(int64(4*n)))
				var p Params
				p.Ptr(y.Ptr())
				p.Ptr(x.Ptr())
				p.U32(uint32(n))
				for _, err := range []error{on.Upload(x.Ptr(), AsBytes(in)), on.Launch(relu, Config{Grid: Dim{X: 8}, Block: Dim{X: 128}}, p),
					on.Download(AsBytes(out), y.Ptr()), on.Synchronize(), x.Free(), y.Free()} {
					if err != nil {
						t.Error(err)
					}
				}
				for j := range out {
					if out[j] != max(in[j], 0) {
						t.Errorf("goroutine %d: out[%d] = %v", g, j, out[j])
						return
					}
				}
			}
			s.Close()
		}()
	}
	wg.Wait()
	noLeaks(t, k, d)
}

// TestConcurrentClose closes a device while goroutines use it: each call works
// or returns ErrClosed, and the fake would see a handle that is used too late.
func TestConcurrentClose(t *testing.T) {
	for round := range 30 {
		k := newFake()
		d := k.open(t)
		s := must[*Stream](t)(d.NewStream(0))
		m := must[*Module](t)(d.Load([]byte(reluText)))
		empty := must[*Function](t)(m.Function("empty"))
		e := must[*Event](t)(d.NewEvent(false))
		h := must[*HostMemory](t)(d.AllocHost(64))
		g := must[*Graph](t)(s.Capture(func() error { return s.Launch(empty, Config{}, nil) }))
		mem := must[Memory](t)(d.Alloc(64))
		var wg sync.WaitGroup
		use := func(f func() error) {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 1000 {
					if err := f(); errors.Is(err, ErrClosed) {
						return
					} else if err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		use(func() error { return s.Launch(empty, Config{}, nil) })
		use(s.Synchronize)
		use(func() error { return s.Record(e) })
		use(e.Synchronize)
		use(func() error { return g.Launch(s) })
		use(func() error { m, err := s.Alloc(64); m.Free(); return err })
		use(func() error { m, err := d.Alloc(64); m.Free(); return err })
		use(func() error { x, err := d.NewStream(0); x.Close(); return err })
		use(func() error { x, err := d.Load([]byte(reluText)); x.Close(); return err })
		use(func() error { _, err := d.Attribute(WarpSize); return err })
		use(func() error { return s.Upload(mem.Ptr(), nil) })
		use(d.Trim)
		use(func() error { d.Usage(); return d.Synchronize() })
		time.Sleep(time.Duration(round%7) * 50 * time.Microsecond)
		if round%3 == 0 {
			for _, c := range []child{e, m, h, g, s} {
				go c.Close()
			}
		}
		go d.Close()
		d.Close()
		wg.Wait()
		noLeaks(t, k, nil)
		if t.Failed() {
			return
		}
	}
}
