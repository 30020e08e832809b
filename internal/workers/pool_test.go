package workers

import (
	"sync"
	"sync/atomic"
	"testing"
)

// tally counts how often each part ran.
type tally struct{ ran []atomic.Int32 }

func (t *tally) Part(i int) { t.ran[i].Add(1) }

func (t *tally) check(tb testing.TB) {
	tb.Helper()
	for i := range t.ran {
		if c := t.ran[i].Load(); c != 1 {
			tb.Fatalf("part %d of %d ran %d times", i, len(t.ran), c)
		}
	}
}

func TestEveryPartRunsOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 8} {
		p := start(threads)
		for _, n := range []int{0, 1, 2, 3, 7, 64, 1000} {
			for range 50 {
				c := &tally{make([]atomic.Int32, n)}
				p.Do(n, c)
				c.check(t)
			}
		}
		p.Close()
	}
}

func TestConcurrentDo(t *testing.T) {
	p := start(4)
	defer p.Close()
	var wg sync.WaitGroup
	for range 1000 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range 20 {
				c := &tally{make([]atomic.Int32, n)}
				p.Do(n, c)
				c.check(t)
			}
		}()
	}
	wg.Wait()
}
