package workers

import (
	"math"
	"testing"
)

// trained returns a pool without goroutines, whose heuristics the test feeds.
func trained(threads int, hot, cold, wake int64) *Pool {
	p := &Pool{threads: threads, finished: make(chan struct{}, 1)}
	p.heuristics.init(threads)
	p.hotNS.ns.Store(hot)
	p.coldNS.ns.Store(cold)
	p.wakeNS.ns.Store(wake)
	p.parked.Store(int32(threads - 1))
	return p
}

func TestWorth(t *testing.T) {
	needThreads(t)
	const micro = 1000.0
	for _, c := range []struct {
		name    string
		threads int
		hot     bool
		serial  float64
		want    bool
	}{
		{"tiny", 2, true, 1 * micro, false},
		{"spinning workers from a few microseconds on", 2, true, 5 * micro, true},
		{"hot", 2, true, 20 * micro, true},
		{"cold and less than waking takes", 2, false, 40 * micro, false},
		{"cold and just as long", 2, false, 60 * micro, false},
		{"cold and long", 2, false, 200 * micro, true},
		{"one thread", 1, true, 1e9, false},
		{"nothing", 2, true, 0, false},
		{"negative", 2, true, -5, false},
		{"not a number", 2, true, math.NaN(), false},
		{"forever", 2, false, math.Inf(1), true},
	} {
		p := trained(c.threads, 500, 50_000, 10_000)
		if c.hot {
			p.hot.Store(1)
		}
		if got := p.Worth(c.serial); got != c.want {
			t.Errorf("%s: Worth(%v) = %t", c.name, c.serial, got)
		}
	}
}

// Many threads save more of the same work.
func TestWorthOfMoreThreads(t *testing.T) {
	needThreads(t)
	if trained(2, 500, 50_000, 10_000).Worth(90_000) || !trained(16, 500, 50_000, 10_000).Worth(90_000) {
		t.Error("90 µs are to be worth splitting by 16 but not by 2")
	}
}

func TestWorthWakesForARunOfCalls(t *testing.T) {
	needThreads(t)
	p := trained(2, 500, 50_000, 10_000)
	calls := 0
	for !p.Worth(10_000) {
		if calls++; calls > 100 {
			t.Fatal("a run of calls never wakes the workers")
		}
	}
	if calls < 3 {
		t.Errorf("woken after %d calls that would have saved 4 µs each, for a price of 10", calls)
	}
	// The same calls with long pauses never wake the workers.
	p = trained(2, 500, 50_000, 10_000)
	for range 100 {
		p.last.Store(clock() - 10_000_000)
		if p.Worth(10_000) {
			t.Fatal("calls with long pauses wake the workers")
		}
	}
}

// A bad estimate of the time to wake must not keep the workers asleep forever.
func TestWorthTriesAgain(t *testing.T) {
	needThreads(t)
	p := trained(2, 500, 300_000, 10_000)
	tries := 0
	for range 640 {
		p.last.Store(clock() - 10_000_000)
		if p.Worth(350_000) {
			tries++
		}
	}
	if tries != 10 {
		t.Errorf("%d tries in 640 calls, want 10", tries)
	}
}

func TestWithdrawal(t *testing.T) {
	needThreads(t)
	const ms = 1_000_000
	p := trained(2, 500, 50_000, 10_000)
	p.hot.Store(1)
	// The times are far in the future, so that no pause ends before this test has checked.
	now := clock() + 1e15
	// A fifth of a millisecond is lost occasionally, as on every machine.
	for range 1000 {
		p.worked(10 * ms)
		p.stalled(now, ms/5)
	}
	if !p.Worth(50_000) {
		t.Fatal("a few short stalls made the pool withdraw")
	}
	// Half of the time is lost.
	p = trained(2, 500, 50_000, 10_000)
	p.hot.Store(1)
	for range 10 {
		p.worked(3 * ms)
		p.stalled(now, 3*ms)
	}
	if p.Worth(50_000) || p.budget(now) != 0 {
		t.Fatal("the pool goes on although it stalls half of the time")
	}
	if !p.Worth(100 * ms) {
		t.Error("work much longer than a stall is not split")
	}
	first := p.pause.Load()
	for range 20 {
		now = p.calm.Load() + ms
		p.stalled(now, 3*ms)
	}
	if p.pause.Load() <= first || p.pause.Load() > maxPause {
		t.Errorf("pauses went from %d to %d ns", first, p.pause.Load())
	}
	// A stall long after the last one starts with the shortest pause.
	now = p.calm.Load() + 10*maxPause
	p.stalled(now, 3*ms)
	if p.pause.Load() != 2*3*ms {
		t.Errorf("the pause after a long calm is %d ns", p.pause.Load())
	}
}

func TestSpinBudget(t *testing.T) {
	p := trained(2, 500, 50_000, 10_000)
	for range 8 {
		p.last.Store(0)
		p.demand(1e9, 1e9)
	}
	if b := p.budget(clock()); b != p.longest()/8 {
		t.Errorf("after calls with long pauses workers spin for %d ns", b)
	}
	for range 3 {
		p.demand(p.last.Load()+1000, p.last.Load()+2000)
	}
	if b := p.budget(clock()); b != p.longest() || b != 240_000 {
		t.Errorf("after calls in close succession workers spin for %d ns", b)
	}
}

func TestAverage(t *testing.T) {
	var a average
	a.guess(1000)
	if a.get() != 1000 {
		t.Errorf("guess is %d", a.get())
	}
	a.observe(0)
	a.observe(-5)
	if a.get() != 1000 {
		t.Errorf("a coarse clock made it %d", a.get())
	}
	a.observe(300)
	if a.get() != 300 {
		t.Errorf("the first observation made it %d", a.get())
	}
	for range 100 {
		a.observe(500)
	}
	if a.get() < 480 || a.get() > 500 {
		t.Errorf("after many 500 it is %d", a.get())
	}
	a.observe(1e9)
	if a.get() > 600 {
		t.Errorf("one outlier made it %d", a.get())
	}
	for range 100 {
		a.observe(1)
	}
	if a.get() < 1 || a.get() > 10 {
		t.Errorf("after many 1 it is %d", a.get())
	}
}

// Only waiting for a processor counts as caused by other threads. The time for which the process was
// stopped, and the waiting of its own threads afterwards, do not count.
func TestBlame(t *testing.T) {
	const ms = 1_000_000
	for _, c := range []struct {
		name       string
		ns, queued int64
		told       bool
		want       int64
	}{
		{"a time slice of another thread", 4 * ms, 4 * ms, true, 4 * ms},
		{"most of a gap", 5 * ms, 3 * ms, true, 3 * ms},
		{"waits before the gap as well", 3 * ms, 5 * ms, true, 3 * ms},
		{"stopped", 500 * ms, 0, true, 0},
		{"stopped, then all threads wait", 30 * ms, 3 * ms, true, 0},
		{"a clock that went back", 3 * ms, -ms, true, 0},
		{"a gap that nobody explains", 4 * ms, 0, false, 4 * ms},
		{"too long for a turn", 500 * ms, 0, false, 0},
	} {
		if got := blame(c.ns, c.queued, c.told); got != c.want {
			t.Errorf("%s: blame(%d, %d, %t) = %d, want %d", c.name, c.ns, c.queued, c.told, got, c.want)
		}
	}
}
