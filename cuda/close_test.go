package cuda

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/testutil"
)

// everything uses all kinds of objects, and stops at the first error.
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

// TestEveryCallFails lets each call of the driver fail in turn, with each of several
// codes. The error must have a type and name the call, the device must be lost only if
// the code means a lost device, and no handle may leak.
func TestEveryCallFails(t *testing.T) {
	dir := t.TempDir()
	// These calls may fail without an error for the caller: the flags of the context,
	// properties that are only reported, the linker, which the loader replaces, and the
	// query for the number of parameters.
	optional := map[string]bool{"cuDevicePrimaryCtxSetFlags_v2": true, "cuDeviceGetAttribute": true, "cuDeviceGetUuid": true, "cuDeviceGetPCIBusId": true,
		"cuLinkCreate_v2": true, "cuLinkAddData_v2": true, "cuLinkComplete": true, "cuFuncGetParamInfo": true, "cuMemPoolTrimTo": true, "cuModuleLoadDataEx": true}
	for code, want := range map[Code]error{codeUnknown: nil, codeOutOfMemory: ErrOutOfMemory, codeInvalidValue: ErrInvalid, codeLaunchFailed: ErrDeviceLost, codeIllegalAddress: ErrIllegalAddress} {
		step := 1
		if testutil.Raced { // a sample suffices for work of a single goroutine
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

// TestUseAfterClose calls every method on closed objects and on zero values.
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
				t.Errorf("%s of an object that is %s: %v", name, what, err)
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

// TestManyCycles creates and closes each kind of object many times, and checks that the
// process and the driver hold no more resources afterwards.
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

// TestConcurrentUse uses one device in 64 goroutines, each with its own stream and with a shared one, while other
// goroutines close objects.
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

// TestConcurrentClose closes a device while goroutines use it. Each call must succeed or return ErrClosed. The fake
// reports the use of a freed handle.
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
