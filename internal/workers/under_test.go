package workers

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// stopper ends its context in part at.
type stopper struct {
	at   int
	end  context.CancelFunc
	done atomic.Int64
	// Number of parts that began after the end, because they had checked the context before.
	over atomic.Bool
	late atomic.Int64
}

func (s *stopper) Part(i int) {
	if s.over.Load() {
		s.late.Add(1)
	}
	if s.done.Add(1) == int64(s.at) {
		s.end()
		s.over.Store(true)
	}
}

// TestUnder requires that no part begins after the end of the context, and that the pool still runs
// other jobs.
func TestUnder(t *testing.T) {
	needThreads(t)
	for _, threads := range []int{1, 2, 5} {
		p := start(threads)
		for round := range 200 {
			ctx, cancel := context.WithCancel(context.Background())
			s := &stopper{at: 1 + round%7, end: cancel}
			v := p.Under(ctx)
			if v.Threads() != threads {
				t.Fatalf("%d threads, not %d", v.Threads(), threads)
			}
			if round%3 == 0 {
				v = v.Serial()
			}
			if round%2 == 0 {
				v.Do(1000, s)
			} else {
				v.Spread(1000, round%4 == 1, s)
			}
			v.Release()
			if done, late := s.done.Load(), s.late.Load(); done < int64(s.at) || late >= int64(threads) {
				t.Fatalf("%d parts, the context ended in part %d and %d began later", done, s.at, late)
			}
			c := newTally(30)
			w := p.Under(t.Context())
			w.Do(30, c)
			w.Release()
			c.check(t)
		}
		if v := p.Under(context.Background()); v != p {
			t.Error("a view for a context that cannot end")
		}
		p.Close()
	}
	var none *Pool
	none.Under(t.Context()).Release()
}

func TestUnderAllocatesNothing(t *testing.T) {
	p := start(2)
	defer p.Close()
	c := &crunch{turns: 10}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if n := testutil.Allocations(200, func() {
		v := p.Under(ctx)
		if v.Worth(1e6) {
			v.Do(8, c)
		}
		v.Release()
	}); n > 0 {
		t.Errorf("%d allocations", n)
	}
}
