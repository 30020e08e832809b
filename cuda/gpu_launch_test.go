package cuda

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
)

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
		t.Errorf("freed memory cannot be allocated again: %v", err)
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
