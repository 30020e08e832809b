package llm

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// waiting returns a scheduler with requests of the given numbers of tokens. A negative number means
// that the request needs the results of all its tokens.
func waiting(m *Model, most int, tokens ...int) *Scheduler {
	c := m.NewScheduler(most)
	for _, n := range tokens {
		r := &request{tokens: make([]int32, max(n, -n)), results: 1, what: bestToken}
		if n < 0 {
			r.results, r.what = -n, lastLogits
		}
		c.queue = append(c.queue, r)
	}
	return c
}

// TestNext checks which rows a pass takes from the queue.
func TestNext(t *testing.T) {
	floats := &Model{chunk: 256, config: Config{Vocabulary: 1000}, cache: &cache{keys: []store{{}}}}
	bytes := openModel(t, openCPU(t), "llama", Options{CacheType: op.Q8_0})
	for _, c := range []struct {
		m       *Model
		most    int
		tokens  []int
		rows    []int // in any order
		waiting int
	}{
		{floats, 8, nil, nil, 0},
		{floats, 8, []int{1}, []int{1}, 0},
		{floats, 8, []int{1000}, []int{256}, 0}, // alone, as without a scheduler
		{floats, 8, []int{40, 30}, []int{30, 40}, 0},
		{floats, 8, []int{1, 1, 1}, []int{1, 1, 1}, 0},                                                            // generation
		{floats, 2, []int{1, 1, 1}, []int{1, 1}, 1},                                                               // most
		{floats, 8, []int{1, 1000}, []int{1, 63}, 0},                                                              // generation does not wait for a long pass
		{floats, 8, []int{1000, 10, 1, 1000}, []int{1, 10, 26, 27}, 0},                                            // prompts share rows evenly, but one needs fewer
		{floats, 8, []int{1000, 1000}, []int{128, 128}, 0},                                                        // prompts alone have the whole chunk
		{floats, 8, []int{1, 40}, []int{1, 40}, 0},                                                                // a short prompt beside generation
		{floats, 8, []int{-5, 1, -5}, []int{1, 5, 5}, 0},                                                          // guesses
		{floats, 8, []int{-10, -10, 1}, []int{1, 10}, 1},                                                          // results of at most 16 rows
		{bytes, 8, []int{40, 1, 30}, []int{16}, 2},                                                                // a q8_0 cache: a pass has either one prompt
		{bytes, 8, []int{1, 30, 1}, []int{1, 1}, 1},                                                               // or generated tokens
		{&Model{chunk: 16, cache: floats.cache}, 40, slices.Repeat([]int{9}, 40), slices.Repeat([]int{1}, 40), 0}, // more sessions than rows of a chunk
	} {
		s := waiting(c.m, c.most, c.tokens...)
		now := s.next()
		var rows []int
		for _, p := range now {
			rows = append(rows, p.rows)
		}
		slices.Sort(rows)
		if !slices.Equal(rows, c.rows) || len(s.queue) != c.waiting {
			t.Errorf("%v, %d at once: rows %v, want %v; %d wait, want %d", c.tokens, c.most, rows, c.rows, len(s.queue), c.waiting)
		}
	}
}

// TestSized checks that at most a third of the rows of a plan are unused, except for the smallest plans.
func TestSized(t *testing.T) {
	c := (&Model{chunk: 256}).NewScheduler(8)
	sizes := map[int]bool{}
	for rows := 1; rows <= 256; rows++ {
		n := c.sized(rows)
		if sizes[n] = true; n < rows || rows > fewTokens && n > rows*3/2 {
			t.Errorf("%d rows in a plan of %d", rows, n)
		}
	}
	if len(sizes) > 13 {
		t.Errorf("plans of %d sizes: each is compiled", len(sizes))
	}
}

// TestExpected checks for which sessions a scheduler waits after a pass: the sessions of the pass,
// and a new session in place of one that has ended.
func TestExpected(t *testing.T) {
	c := (&Model{}).NewScheduler(8)
	goesOn, ends, closes, first, second := c.NewSession(), c.NewSession(), c.NewSession(), c.NewSession(), c.NewSession()
	c.generating = 3
	for _, s := range []*Session{goesOn, ends, closes} {
		c.expected[s] = true
	}
	c.leave(ends)
	c.leave(closes)
	c.gone(closes)
	for i, step := range []struct {
		s    *Session
		left int
	}{{first, 1}, {second, 1}, {goesOn, 0}, {goesOn, 0}} {
		if c.came(step.s); len(c.expected) != step.left {
			t.Errorf("step %d: %d expected, want %d", i, len(c.expected), step.left)
		}
	}
	if c.generating != 1 {
		t.Errorf("%d generate", c.generating)
	}
}

// TestNextProperties tests random queues: no pass exceeds its limits, each session of a pass
// advances, and the number of passes until all sessions are done is bounded.
func TestNextProperties(t *testing.T) {
	rnd := testutil.Rand(t)
	for range 300 {
		m := &Model{chunk: 16 * (1 + rnd.IntN(16)), config: Config{Vocabulary: 1000}, cache: &cache{keys: []store{{}}}}
		most := 1 + rnd.IntN(40)
		var tokens []int
		total := 0
		for range 1 + rnd.IntN(60) {
			n := []int{1, 1 + rnd.IntN(100), 1 + rnd.IntN(2000), -1 - rnd.IntN(fewTokens)}[rnd.IntN(4)]
			tokens = append(tokens, n)
			total += max(n, -n)
		}
		c := waiting(m, most, tokens...)
		for passes := 0; len(c.queue) > 0; passes++ {
			now := c.next()
			shape, rows, results := c.shape(now), 0, 0
			for _, p := range now {
				if rows += p.rows; p.rows < 1 || p.rows > len(p.tokens) || p.results > 1 && !p.ends() {
					t.Fatalf("%d of %d rows, %d results", p.rows, len(p.tokens), p.results)
				}
				if p.ends() {
					results += p.results
				}
				if p.tokens = p.tokens[p.rows:]; len(p.tokens) > 0 {
					c.queue = append(c.queue, p.request)
				}
			}
			if len(now) > most || rows > c.width() || rows > shape.sequences || results > max(most, fewTokens) || shape.picked > 0 && results > shape.picked || passes > total {
				t.Fatalf("chunk %d, most %d: %d sessions, %d rows, %d results in a pass of %+v", m.chunk, most, len(now), rows, results, shape)
			}
		}
	}
}

// TestGreatestOf compares with a sort.
func TestGreatestOf(t *testing.T) {
	rnd := testutil.Rand(t)
	for range 200 {
		logits := make([]float32, 1+rnd.IntN(300))
		var all []candidate
		for i := range logits {
			logits[i] = float32(rnd.IntN(40)) - 20
			if rnd.IntN(10) == 0 {
				logits[i] = float32(math.Inf(-1))
			}
			all = append(all, candidate{id: int32(i), logit: logits[i]})
		}
		slices.SortFunc(all, byLogit)
		n := 1 + rnd.IntN(min(len(logits), topCount))
		y := make([]float32, 2*n)
		greatestOf(y, logits)
		for i, c := range all[:n] {
			if y[i] != c.logit || y[n+i] != float32(c.id) {
				t.Fatalf("number %d of %v: %v of token %v, want %v of %d", i, logits, y[i], y[n+i], c.logit, c.id)
			}
		}
		logits[rnd.IntN(len(logits))] = float32(math.NaN())
		if greatestOf(y, logits); y[0] == y[0] {
			t.Fatalf("NaN: %v", y)
		}
	}
}

// TestPromptsTogether runs prompts of many sessions in passes with generated tokens, with all kinds
// of sampling and with guesses. The tokens must be the most likely ones by the logits of a separate
// session.
func TestPromptsTogether(t *testing.T) {
	rnd := testutil.Rand(t)
	dev := openCPU(t)
	for i, typ := range []op.DType{op.F32, op.Q8_0} {
		m := openModel(t, dev, []string{"gemma3", "llama"}[i], Options{Context: 300, Cache: 6000, Chunk: 64, CacheType: typ})
		tol := []float64{1e-3, 0.1}[i] // rounding a q8_0 key in the other direction has a large effect
		c := m.NewScheduler(6)
		free := m.cache.available()
		var all sync.WaitGroup
		for i := range 14 {
			prompt := randomTokens(rnd, []int{1 + rnd.IntN(40), 1, 1 + rnd.IntN(250)}[i%3])
			o := []Sampling{{}, {LogProbs: true}, {Temperature: 1, TopK: 1}, {Lookup: 1 + rnd.IntN(fewTokens-1)}}[i%4]
			o.MaxTokens, o.IgnoreEnd = 1+rnd.IntN(30), true
			all.Go(func() {
				s := c.NewSession()
				defer s.Close()
				if err := s.Feed(t.Context(), prompt); err != nil {
					t.Error(err)
					return
				}
				alone := m.NewSession()
				err := alone.Feed(t.Context(), prompt)
				if d := worst(s.Logits(), alone.Logits(), greatest(alone.Logits())); err != nil || d > tol/10 {
					t.Errorf("%v: logits after a prompt of %d tokens are off by %.3g, %v", typ, len(prompt), d, err)
				}
				_ = alone.Close()
				text := slices.Concat(prompt, idsOf(t, s, prompt, o))
				if len(text) != len(prompt)+o.MaxTokens {
					t.Errorf("%+v: %d tokens", o, len(text)-len(prompt))
				}
				likeliest(t, m, text, len(prompt), tol)
			})
		}
		all.Wait()
		_ = c.Close()
		if n := m.cache.available(); n != free {
			t.Errorf("%d of %d pages are free after all sessions were closed", n, free)
		}
	}
}

// TestPromptLeaves cancels prompts that share passes with others. Their sessions must be able to continue.
func TestPromptLeaves(t *testing.T) {
	rnd := testutil.Rand(t)
	m := openModel(t, openCPU(t), "qwen2", Options{Context: 300, Cache: 6000, Chunk: 32})
	c := m.NewScheduler(4)
	defer c.Close()
	var all sync.WaitGroup
	for i := range 12 {
		prompt := randomTokens(rnd, 200+rnd.IntN(90))
		after := time.Duration(rnd.IntN(4000)) * time.Microsecond
		all.Go(func() {
			s := c.NewSession()
			defer s.Close()
			ctx := t.Context()
			if i%2 == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, after)
				defer cancel()
			}
			if err := s.Feed(ctx, prompt); err != nil && (!errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil) {
				t.Error(err)
			}
			if s.Len() == 0 { // it was cancelled before it began
				return
			}
			if err := s.Feed(t.Context(), nil); err != nil {
				t.Error(err)
				return
			}
			alone := m.NewSession()
			defer alone.Close()
			if err := alone.Feed(t.Context(), prompt); err != nil {
				t.Error(err)
				return
			}
			near(t, "after a cancelled prompt", s.Logits(), alone.Logits())
		})
	}
	all.Wait()
}

// packsOn compares a pass over two prompts on a device with separate passes.
func packsOn(t *testing.T, dev *device.Device) {
	t.Helper()
	m := openModel(t, dev, "qwen3", Options{Context: 60, Cache: 300, Chunk: 16})
	c := m.NewScheduler(2)
	for i, prompt := range [][]int32{{5, 17, 3, 8, 40}, {90, 2, 61, 33, 7, 7, 12, 55}} {
		s := c.NewSession()
		defer s.Close()
		if err := s.add(prompt, true); err != nil {
			t.Fatal(err)
		}
		c.queue = append(c.queue, &request{s: s, tokens: prompt, what: []result{lastLogits, bestToken}[i], results: 1, y: make([]float32, []int{m.config.Vocabulary, 2}[i])})
	}
	now := c.next()
	if shape := c.shape(now); shape.sequences != 16 || shape.picked != 2 || shape.result != lastLogits {
		t.Fatalf("%+v", shape)
	}
	if err := c.pass(now); err != nil {
		t.Fatal(err)
	}
	for _, p := range now {
		want := fed(t, m, p.s.Tokens()).Logits()
		if p.what == bestToken {
			best := argmax(want)
			want = []float32{want[best], float32(best)}
		}
		if d := worst(p.y, want, greatest(want)); d > 1e-4 {
			t.Errorf("prompt of %d tokens together with another one: off by %.3g", p.s.Len(), d)
		}
	}
}

// TestPacks computes two prompts in one pass on the CPU.
func TestPacks(t *testing.T) { packsOn(t, openCPU(t)) }
