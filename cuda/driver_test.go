package cuda

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/dl"
)

const reluText = `.version 8.0
.target sm_80
.address_size 64
.visible .entry relu(.param .u64 y, .param .u64 x, .param .u32 n) { ret; }
.visible .entry fault(.param .u64 p) { ret; }
.visible .entry empty() { ret; }
.global counter;
`

// noLeaks closes the device, and fails the test if the fake still has objects of it.
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

// TestCurrentContext uses drivers that answer stream calls without a bound context in
// different ways: success, no context, a handle of another context, or a lost context.
// Only the answer with the context bound may count.
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
