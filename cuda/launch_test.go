package cuda

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestParameterPlaces compares the layout of parameters with that of ptxas 12.9 for sm_90a.
func TestParameterPlaces(t *testing.T) {
	for _, c := range []struct {
		to, size, from []int
		end            int
	}{
		{[]int{0, 8, 16}, []int{8, 8, 4}, nil, 0},
		{[]int{0, 64, 192}, []int{8, 128, 4}, nil, 0}, // tensor maps begin at a multiple of 64
		{[]int{48, 176, 304}, []int{128, 128, 4}, []int{0, 128, 256}, 260},
		{[]int{0, 48, 176, 240}, []int{4, 128, 4, 128}, []int{0, 64, 192, 256}, 384},
		{[]int{0, 48, 176, 184}, []int{4, 128, 4, 8}, []int{0, 64, 192, 200}, 208},
		{[]int{0, 12}, []int{12, 20}, nil, 0}, // structures, whose alignment the module does not contain
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
	noLeaks(t, k, d)
}

// TestCaptureErrors checks that an error or a panic of the function ends the capture, and that calls that need the
// device at once return errors during a capture.
func TestCaptureErrors(t *testing.T) {
	k := newFake()
	d := k.open(t)
	s := must[*Stream](t)(d.NewStream(0))
	x := must[Memory](t)(s.Alloc(1024))
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
