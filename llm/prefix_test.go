package llm

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestSharedPrefix checks that a session reuses the pages that others have computed for its beginning.
func TestSharedPrefix(t *testing.T) {
	rnd := testutil.Rand(t)
	dev := openCPU(t)
	m := openModel(t, dev, "qwen3", Options{Context: 400, Cache: 800, Chunk: 32})
	fresh := openModel(t, dev, "qwen3", Options{Context: 400, Cache: 800, Chunk: 32})
	a := randomTokens(rnd, 200)
	first := m.NewSession()
	passes := func(s *Session, tokens []int32) int64 {
		before := dev.Stats().Submissions
		if err := s.Feed(t.Context(), tokens); err != nil {
			t.Fatal(err)
		}
		return dev.Stats().Submissions - before
	}
	whole := passes(first, a)
	beside := m.NewSession() // while the first is open
	defer beside.Close()
	b := slices.Concat(a[:150], randomTokens(rnd, 20))
	if n := passes(beside, b); n > 2 {
		t.Errorf("%d passes over 42 new tokens of 170", n)
	}
	near(t, "beside the first", beside.Logits(), fed(t, fresh, b).Logits())
	first.Close()
	after := m.NewSession() // when it is closed
	defer after.Close()
	if n := passes(after, a); n > 1 {
		t.Errorf("%d passes over 8 new tokens of 200; the first took %d", n, whole)
	}
	near(t, "after the first", after.Logits(), fed(t, fresh, a).Logits())
	// The last token is computed again to get its logits.
	exact := m.NewSession()
	defer exact.Close()
	if n := passes(exact, a[:128]); n != 2 {
		t.Errorf("%d passes over 64 new tokens of 128", n)
	}
	near(t, "of whole pages", exact.Logits(), fed(t, fresh, a[:128]).Logits())
}

// TestPrefixesAtRandom opens, closes, rewinds and forks sessions with common beginnings in a small
// cache. It compares their predictions with those of sessions of another model.
func TestPrefixesAtRandom(t *testing.T) {
	rnd := testutil.Rand(t)
	dev := openCPU(t)
	m := openModel(t, dev, "llama", Options{Context: 400, Cache: 15 * PageSize, Chunk: 48})
	fresh := openModel(t, dev, "llama", Options{Context: 400, Chunk: 48})
	all := m.cache.available()
	text := [][]int32{randomTokens(rnd, 400), randomTokens(rnd, 400)}
	text[1] = slices.Concat(text[0][:100], text[1][100:])
	open := []*Session{m.NewSession()}
	for range 150 {
		i := rnd.IntN(len(open))
		s := open[i]
		switch rnd.IntN(7) {
		case 0:
			if len(open) < 6 {
				open = append(open, m.NewSession())
			}
			continue
		case 1:
			if len(open) > 1 {
				s.Close()
				open = slices.Delete(open, i, i+1)
			}
			continue
		case 2:
			if err := s.Rewind(rnd.IntN(s.Len() + 1)); err != nil {
				t.Fatal(err)
			}
			continue
		case 3:
			if len(open) < 6 {
				f, err := s.Fork()
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, f)
			}
			continue
		}
		from := text[rnd.IntN(2)]
		n := s.Len()
		to := min(n+1+rnd.IntN(130), len(from))
		var full *CapacityError
		if err := s.Feed(t.Context(), from[n:to]); errors.As(err, &full) {
			s.Close()
			open[i] = m.NewSession()
			continue
		} else if err != nil && n < to {
			t.Fatal(err)
		}
		if tokens := s.Tokens(); len(tokens) > 0 {
			w := fresh.NewSession()
			w.private = true
			if err := w.Feed(t.Context(), tokens); err != nil {
				t.Fatal(err)
			}
			near(t, "of a shared cache", s.Logits(), w.Logits())
			w.Close()
		}
		if t.Failed() {
			return
		}
	}
	for _, s := range open {
		s.Close()
	}
	if n := m.cache.available(); n != all {
		t.Errorf("%d of %d pages can be taken after all sessions were closed", n, all)
	}
}

// TestReclaimByOthers checks that a session gets pages that become free while Options.Reclaim finds no session to close, because another
// goroutine has just closed the last one.
func TestReclaimByOthers(t *testing.T) {
	var m *Model
	var held []int32
	calls := 0
	reclaim := func() bool {
		calls++
		m.cache.release(held)
		held = nil
		return false
	}
	m = openModel(t, openCPU(t), "llama", Options{Cache: 2 * PageSize, Reclaim: reclaim})
	held, _ = m.cache.take(nil, 2)
	if err := fed(t, m, randomTokens(testutil.Rand(t), PageSize+1)).Close(); err != nil {
		t.Error(err)
	}
	if calls != 1 {
		t.Errorf("Reclaim was called %d times, want 1", calls)
	}
	held, _ = m.cache.take(nil, 2)
	kept := held
	held = nil
	if pages, ok := m.cache.take(nil, 1); ok {
		t.Errorf("page %v of a full cache", pages)
	}
	m.cache.release(kept)
}

// TestCopyInProgress checks that a session waits for a page that another one releases after a copy.
func TestCopyInProgress(t *testing.T) {
	m := openModel(t, openCPU(t), "llama", Options{Cache: 2 * PageSize})
	old, _ := m.cache.take(nil, 1)
	fresh, _ := m.cache.takeFor(nil, 1, 1)
	got := make(chan bool)
	go func() {
		pages, ok := m.cache.take(nil, 1)
		m.cache.release(pages)
		got <- ok
	}()
	select {
	case ok := <-got:
		t.Fatalf("%v before the copy has ended", ok)
	case <-time.After(10 * time.Millisecond):
	}
	m.cache.copied(old)
	if !<-got {
		t.Error("no page after the copy has ended")
	}
	m.cache.release(fresh)
}
