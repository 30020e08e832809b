package testutil

import (
	"math"
	"runtime"
	"runtime/debug"
	"time"
)

// tries bounds how often a measurement is repeated. The counters of memory are
// the whole process's: the scheduler, which starts threads where processors are
// scarce, adds to them at any time, and so do other goroutines. What the measured
// code does itself is in every try, so the least of several is its own.
const tries = 10

// Allocations returns how many allocations on the heap each of n runs of f
// makes, rounded down: 0 if there are fewer than n in all. The garbage
// collector, which empties the pools that f may live on, rests meanwhile. More
// runs forgive more of what happens once on each processor, and find fewer
// of what happens in some runs only.
//
// Under the race detector what uses a sync.Pool allocates: see [Raced].
func Allocations(n int, f func()) int {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	f()
	return least(0, func() int {
		before := memory().Mallocs
		for range n {
			f()
		}
		return int(memory().Mallocs-before) / n
	})
}

// Growth returns how many bytes each run of f leaves on the heap for good,
// rounded down, and 0 for less than any object takes. They are the slope between n
// runs and eight times as many: what is made once, or once in a while, is in both.
// The larger n is, the less noise of a few KiB weighs. Before that f runs n times to
// fill its caches. More than most bytes are measured again, several times.
func Growth(n, most int, f func()) int {
	grown := func(n int) int {
		before := live()
		for range n {
			f()
		}
		return live() - before
	}
	grown(n)
	return least(most, func() int {
		few := grown(n)
		each := int(math.Floor(float64(grown(8*n)-few) / float64(7*n)))
		if each < 8 {
			return 0
		}
		return each
	})
}

// least returns the least of several results of measure, or the first that is no more
// than enough, and 0 for less.
func least(enough int, measure func() int) int {
	v := math.MaxInt
	for try := 0; try < tries && v > enough; try++ {
		v = min(v, measure())
	}
	return max(v, 0)
}

// live returns the bytes on the heap that something refers to.
func live() int {
	Collect()
	return int(memory().HeapAlloc)
}

// Collect runs the garbage collector, and the cleanups of what nothing refers to,
// until that frees nothing any more: a sync.Pool forgets what it holds at the second
// collection, what a cleanup has let go is garbage for the next, and the runtime,
// which runs cleanups in any order, does not tell when the last has run.
func Collect() {
	least, still := uint64(math.MaxUint64), 0
	for start := time.Now(); still < 5 && time.Since(start) < patience; {
		collect()
		still++
		if n := memory().HeapAlloc; n+noise < least {
			least, still = n, 0
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// noise is how many bytes the heap varies by when nobody allocates much.
const noise = 1 << 10

// collect runs the garbage collector and waits for the cleanups that it began.
func collect() {
	done := make(chan struct{})
	runtime.AddCleanup(&struct{ _ *int }{}, func(c chan struct{}) { close(c) }, done)
	runtime.GC()
	select {
	case <-done:
	case <-time.After(patience):
	}
}

func memory() (m runtime.MemStats) {
	runtime.ReadMemStats(&m)
	return m
}
