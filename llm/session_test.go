package llm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// randomTokens returns tokens of the vocabulary of the models of testdata.
func randomTokens(rnd *rand.Rand, n int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(rnd.IntN(96))
	}
	return x
}

func fed(t *testing.T, m *Model, tokens []int32) *Session {
	t.Helper()
	s := m.NewSession()
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Feed(t.Context(), tokens); err != nil {
		t.Fatal(err)
	}
	return s
}

// near fails the test if logits differ by more than rounding.
func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if d := worst(got, want, greatest(want)); d > 1e-5 {
		t.Errorf("%s: logits are off by %.3g", what, d)
	}
}

// TestRewindAndFork forks sessions that continue differently, over several pages, and requires the
// predictions of independent sessions.
func TestRewindAndFork(t *testing.T) {
	rnd := testutil.Rand(t)
	m := openModel(t, openCPU(t), "gemma3", Options{Context: 400, Cache: 2000, Chunk: 32})
	all := m.cache.available()
	t.Cleanup(func() {
		if n := m.cache.available(); n != all {
			t.Errorf("%d of %d pages are free after all sessions were closed", n, all)
		}
	})
	a, b, c := randomTokens(rnd, 100+rnd.IntN(60)), randomTokens(rnd, 1+rnd.IntN(80)), randomTokens(rnd, 1+rnd.IntN(80))
	s := fed(t, m, a)
	f, err := s.Fork()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "fork", f.Logits(), s.Logits())
	for range 2 { // both ways, and again after a rewind
		for _, w := range []struct {
			s    *Session
			more []int32
		}{{f, b}, {s, c}} {
			if err := w.s.Feed(t.Context(), w.more); err != nil {
				t.Fatal(err)
			}
		}
		near(t, "fork that went on", f.Logits(), fed(t, m, slices.Concat(a, b)).Logits())
		near(t, "original that went on", s.Logits(), fed(t, m, slices.Concat(a, c)).Logits())
		for _, s := range []*Session{s, f} {
			if err := s.Rewind(len(a)); err != nil {
				t.Fatal(err)
			}
			if s.Logits() != nil || !slices.Equal(s.Tokens(), a) {
				t.Fatalf("after rewind: %d tokens", s.Len())
			}
		}
	}
	n := rnd.IntN(len(a))
	if err := f.Rewind(n); err != nil {
		t.Fatal(err)
	}
	if err := f.Feed(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	near(t, "far rewind", f.Logits(), fed(t, m, slices.Concat(a[:n], b)).Logits())
	if err := s.Feed(t.Context(), nil); err != nil { // the logits again
		t.Fatal(err)
	}
	near(t, "fed nothing", s.Logits(), fed(t, m, a).Logits())
	if err := f.Rewind(f.Len() + 1); !errors.Is(err, ErrToken) {
		t.Errorf("rewind forwards: %v", err)
	}
	s.Close()
	f.Close()
}

func TestSaveAndLoad(t *testing.T) {
	rnd := testutil.Rand(t)
	dev := openCPU(t)
	for _, typ := range []op.DType{op.F32, op.F16, op.Q8_0} {
		m := openModel(t, dev, "qwen3", Options{Context: 300, Cache: 1000, CacheType: typ})
		a, b := randomTokens(rnd, 1+rnd.IntN(200)), randomTokens(rnd, 10)
		s := fed(t, m, a)
		var saved bytes.Buffer
		if err := s.Save(t.Context(), &saved); err != nil {
			t.Fatal(err)
		}
		f, err := m.LoadSession(t.Context(), bytes.NewReader(saved.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.Tokens(), a) {
			t.Error("other tokens than saved")
		}
		for _, s := range []*Session{s, f} {
			if err := s.Feed(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		near(t, "loaded", f.Logits(), s.Logits())
		f.Close()

		free := m.cache.available()
		for range 20 {
			cut := rnd.IntN(saved.Len())
			if _, err := m.LoadSession(t.Context(), bytes.NewReader(saved.Bytes()[:cut])); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%d of %d bytes: %v", cut, saved.Len(), err)
			}
			bad := slices.Clone(saved.Bytes())
			bad[rnd.IntN(24+4*len(a))] ^= byte(1 + rnd.IntN(255)) // header or tokens
			var full *CapacityError
			s, err := m.LoadSession(t.Context(), bytes.NewReader(bad))
			switch {
			case err == nil:
				s.Close() // another token
			case !errors.Is(err, ErrState) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &full):
				t.Fatal(err)
			}
		}
		if n := m.cache.available(); n != free {
			t.Errorf("%d pages are free after a failed load, %d before", n, free)
		}
		other := openModel(t, dev, "llama", Options{})
		if _, err := other.LoadSession(t.Context(), &saved); !errors.Is(err, ErrState) {
			t.Errorf("of another model: %v", err)
		}
	}
}

// TestHalfCache compares a cache of half floats with one of floats.
func TestHalfCache(t *testing.T) {
	dev := openCPU(t)
	for name, tol := range map[string]float64{"llama": 3e-3, "gemma3": 3e-3} {
		t.Run(name, func(t *testing.T) {
			matches(t, dev, name, op.F16, tol, cuts...)
		})
	}
}

func TestCapacity(t *testing.T) {
	rnd := testutil.Rand(t)
	m := openModel(t, openCPU(t), "llama", Options{Context: 150, Cache: 200})
	s := m.NewSession()
	defer s.Close()
	var full *CapacityError
	if err := s.Feed(t.Context(), randomTokens(rnd, 151)); !errors.As(err, &full) || full.Tokens != 151 || full.Capacity != 150 || full.Shared || s.Len() != 0 {
		t.Errorf("%v; %d tokens", err, s.Len())
	}
	if err := s.Feed(t.Context(), randomTokens(rnd, 150)); err != nil {
		t.Error(err)
	}
	if err := s.Feed(t.Context(), []int32{1}); !errors.As(err, &full) {
		t.Error(err)
	}
	// The cache has 256 tokens in four pages; one page is free.
	other := m.NewSession()
	defer other.Close()
	if err := other.Feed(t.Context(), randomTokens(rnd, 65)); !errors.As(err, &full) || !full.Shared || full.Capacity != 64 {
		t.Error(err)
	}
	if err := other.Feed(t.Context(), randomTokens(rnd, 64)); err != nil {
		t.Error(err)
	}
	s.Close()
	if err := other.Feed(t.Context(), randomTokens(rnd, 80)); err != nil {
		t.Error(err)
	}
	n := 0
	for _, err := range other.Generate(t.Context(), nil, Sampling{}) {
		if err != nil {
			if !errors.As(err, &full) {
				t.Error(err)
			}
			break
		}
		n++
	}
	if n != 150-144 {
		t.Errorf("%d tokens until the session was full", n)
	}
}

func TestMistakes(t *testing.T) {
	dev := openCPU(t)
	m := openModel(t, dev, "llama", Options{})
	s := m.NewSession()
	for _, tokens := range [][]int32{nil, {96}, {-1}, {1, 1 << 30}} {
		if err := s.Feed(t.Context(), tokens); !errors.Is(err, ErrToken) {
			t.Errorf("%v: %v", tokens, err)
		}
	}
	for _, o := range []Options{{Context: -1}, {Cache: -1}, {Chunk: -1}, {Chunk: 1 << 20}, {CacheType: op.I32}, {Cache: math.MaxInt}} {
		if m, err := Load(t.Context(), dev, modelFile(t, "llama"), o); err == nil {
			m.Close()
			t.Errorf("%+v: no error", o)
		}
	}
	if _, err := openModel(t, dev, "bert", Options{}).NewSession().Fork(); !errors.Is(err, ErrModel) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Feed(ctx, []int32{1, 2, 3}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := s.Feed(t.Context(), nil); err != nil || s.Len() != 3 {
		t.Errorf("after a cancelled call: %v, %d tokens", err, s.Len())
	}
	near(t, "after a cancelled call", s.Logits(), fed(t, m, []int32{1, 2, 3}).Logits())
	s.Close()
	s.Close()
	if err := s.Feed(t.Context(), []int32{1}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	open := m.NewSession()
	m.Close()
	m.Close()
	if err := open.Feed(t.Context(), []int32{1}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := m.Embed(t.Context(), []int32{1}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	for _, err := range open.Generate(t.Context(), []int32{1}, Sampling{}) {
		if !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	open.Close()
}

// TestOnePlan checks that decoding many tokens compiles no further plans and allocates no memory.
func TestOnePlan(t *testing.T) {
	dev := openCPU(t)
	m := openModel(t, dev, "llama", Options{Context: 600, Cache: 600})
	s := fed(t, m, []int32{1, 2, 3})
	var before device.Stats
	n := 0
	for _, err := range s.Generate(t.Context(), nil, Sampling{IgnoreEnd: true, MaxTokens: 500}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 3 {
			before = dev.Stats()
		}
	}
	if after := dev.Stats(); after.Compiled != before.Compiled || n != 500 {
		t.Errorf("%d compilations after the third of %d tokens", after.Compiled-before.Compiled, n)
	}
	tokens := []int32{5}
	least := math.Inf(1)
	for range 5 { // a collection in between empties pools
		least = min(least, testing.AllocsPerRun(10, func() {
			if err := s.Feed(t.Context(), tokens); err != nil {
				t.Fatal(err)
			}
		}))
	}
	if least > 2 && !testutil.Raced { // under the race detector a sync.Pool drops items at random
		t.Errorf("%v allocations a token", least)
	}
}

// TestScheduler decodes in sessions of many goroutines and requires the tokens of sessions that
// decode alone.
func TestScheduler(t *testing.T) {
	rnd := testutil.Rand(t)
	m := openModel(t, openCPU(t), "qwen2", Options{Context: 200, Cache: 3000})
	c := m.NewScheduler(4)
	var all sync.WaitGroup
	for range 9 {
		prompt, n := randomTokens(rnd, 1+rnd.IntN(50)), 5+rnd.IntN(30)
		all.Go(func() {
			s := c.NewSession()
			defer s.Close()
			generated := slices.Clone(prompt)
			for tok, err := range s.Generate(t.Context(), prompt, Sampling{MaxTokens: n}) {
				if err != nil {
					t.Error(err)
					return
				}
				generated = append(generated, tok.ID)
			}
			if len(generated) != len(prompt)+n {
				t.Errorf("%d tokens, not %d", len(generated)-len(prompt), n)
			}
			if err := s.Feed(t.Context(), nil); err != nil {
				t.Error(err)
				return
			}
			alone := m.NewSession()
			defer alone.Close()
			if err := alone.Feed(t.Context(), generated); err != nil {
				t.Error(err)
				return
			}
			near(t, "decoded with others", s.Logits(), alone.Logits())
		})
	}
	// One that goes away.
	ctx, cancel := context.WithCancel(t.Context())
	all.Go(func() {
		s := c.NewSession()
		defer s.Close()
		n := 0
		for _, err := range s.Generate(ctx, []int32{5}, Sampling{}) {
			if n++; n == 4 {
				cancel()
			}
			if err != nil {
				if !errors.Is(err, context.Canceled) || n > 5 {
					t.Errorf("token %d: %v", n, err)
				}
			}
		}
	})
	all.Wait()
	c.Close()
	s := c.NewSession()
	defer s.Close()
	if err := s.Feed(t.Context(), []int32{1}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// TestRowsFor checks that the passes over a short prompt together have no more rows than one
// pass of a chunk.
func TestRowsFor(t *testing.T) {
	m := &Model{chunk: 256, config: Config{Vocabulary: 1000}}
	small := &Model{chunk: 32, config: Config{Vocabulary: 1000}}
	for _, c := range []struct {
		m            *Model
		tokens, want int
	}{{m, 1, 1}, {m, 2, 16}, {m, 48, 16}, {m, 49, 64}, {m, 192, 64}, {m, 193, 256}, {m, 1000, 256}, {small, 31, 16}, {small, 32, 32}, {small, 100, 32}, {&Model{chunk: 100}, 64, 64}, {&Model{chunk: 100}, 65, 100}} {
		if got := c.m.rowsFor(c.tokens, lastLogits); got != c.want {
			t.Errorf("%d tokens in chunks of %d: %d rows, want %d", c.tokens, c.m.chunk, got, c.want)
		}
	}
}
