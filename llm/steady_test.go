package llm

import (
	"runtime"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestSteady generates a long text. After the third token, no plan may be compiled and memory must not grow.
func TestSteady(t *testing.T) {
	tokens := 10000
	if testing.Short() {
		tokens = 2000
	}
	for _, typ := range []op.DType{op.F32, op.F16} {
		dev := openCPU(t)
		m := openModel(t, dev, "llama", Options{Context: tokens + 100, CacheType: typ})
		s := m.NewSession()
		plans, heap, buffers := int64(0), uint64(0), int64(0)
		n := 0
		for _, err := range s.Generate(t.Context(), randomTokens(testutil.Rand(t), 40), Sampling{MaxTokens: tokens, IgnoreEnd: true, Temperature: 1, TopK: 20}) {
			if err != nil {
				t.Fatal(err)
			}
			switch n++; n {
			case 3:
				plans, buffers = dev.Stats().Compiled, dev.Stats().BufferBytes
			case 1500: // what long sessions need besides has been taken
				heap = heapInUse()
			}
		}
		if n != tokens {
			t.Fatalf("%d tokens, want %d", n, tokens)
		}
		if made := dev.Stats().Compiled - plans; made != 0 {
			t.Errorf("%v: %d plans were compiled after the third token", typ, made)
		}
		if got := dev.Stats().BufferBytes; got != buffers {
			t.Errorf("%v: buffers of %d bytes, %d after the third token", typ, got, buffers)
		}
		// Only the list of tokens and the index of shared prefixes grow: about 32 bytes a token.
		if got := heapInUse(); got > heap+uint64(tokens)*64+1<<20 {
			t.Errorf("%v: %d bytes in use after %d tokens, %d after 1500", typ, got, tokens, heap)
		}
		_ = s.Close()
	}
}

// TestPlansBounded checks that a model keeps at most maxPlans plans and none of their memory, that it compiles closed plans again, and that
// it does not close a plan in use.
func TestPlansBounded(t *testing.T) {
	m := openModel(t, openCPU(t), "llama", Options{})
	pages, _ := m.cache.take(nil, 1)
	begin := func(sequences int) *pass {
		p, err := m.pass(t.Context(), passShape{sequences: sequences, rows: 1, result: lastLogits})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	end := func(p *pass) {
		r := p.run()
		r.set(p, 0, []int32{1}, 0, pages)
		if err := p.do(t.Context(), r, make([]float32, p.sequences*p.width)); err != nil {
			t.Fatal(err)
		}
	}
	held := begin(1)
	cycle := func() {
		for n := range maxPlans + 10 {
			end(begin(n + 2))
			if n := len(m.plans); n > maxPlans {
				t.Fatalf("%d plans, want at most %d", n, maxPlans)
			}
		}
	}
	cycle()
	heap := heapInUse()
	for range 3 {
		cycle()
	}
	if got := heapInUse(); got > heap+1<<20 {
		t.Errorf("%d bytes in use after 4 cycles, %d after the first", got, heap)
	}
	end(held)
}

// TestPlansInUse checks that plans in use are kept even if there are more than maxPlans, and that the rest is closed after their use.
func TestPlansInUse(t *testing.T) {
	m := openModel(t, openCPU(t), "llama", Options{})
	begin := func(sequences int) *pass {
		p, err := m.pass(t.Context(), passShape{sequences: sequences, rows: 1, result: lastLogits})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var held []*pass
	for n := range maxPlans + 5 {
		held = append(held, begin(n+1))
	}
	for _, p := range held {
		if err := p.do(t.Context(), p.run(), make([]float32, p.sequences*p.width)); err != nil {
			t.Fatal(err)
		}
	}
	p := begin(maxPlans + 6)
	if n := len(m.plans); n != maxPlans {
		t.Errorf("%d plans after all but one have ended, want %d", n, maxPlans)
	}
	if err := p.do(t.Context(), p.run(), make([]float32, p.sequences*p.width)); err != nil {
		t.Error(err)
	}
}

// heapInUse returns the bytes of live objects, after the cleanups of the other objects have run.
// Cleanups run on another goroutine, which may be late on a busy machine.
func heapInUse() uint64 {
	testutil.Collect()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
