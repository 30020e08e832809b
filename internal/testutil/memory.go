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
// collector is off meanwhile, because it empties the pools that f may use. A larger n
// tolerates more allocations that happen once per processor, and hides more allocations
// that happen in some runs only.
//
// Under the race detector code that uses a sync.Pool allocates: see [Raced].
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
// rounded down, and 0 for less than any object takes. The result is the slope between n
// and 8·n runs, which cancels objects that are made once or rarely. A larger n reduces the
// effect of a few KiB of noise. f runs n times first to fill its caches. A result above
// most is measured again, several times.
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

// Collect runs the garbage collector and the cleanups of unreachable objects until
// they free nothing more. One collection is not enough: a sync.Pool drops its contents at
// the second one, objects that a cleanup releases are garbage for the next one, and the
// runtime does not report when the last cleanup has run.
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

// noise is the variation of the heap in bytes while no goroutine allocates much.
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
