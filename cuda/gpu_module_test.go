package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

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
	// Loading a truncated or changed text must give an error or a module.
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

// TestGPUCompilations checks that goroutines can compile at the same time although the Go scheduler moves them between
// threads, which could disturb the driver's linker.
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
					runtime.GC() // waiting for it moves goroutines to other threads
				}
			}
		}()
	}
	all.Wait()
}

func TestGPUCubinCache(t *testing.T) {
	dir := t.TempDir()
	for _, target := range []string{"sm_90", "sm_90a"} {
		// Use a new text that no cache contains.
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
	// Load a cubin, complete and truncated.
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
