// Package roofline measures two limits of a processor: its memory bandwidth and its rate of fused
// multiply-adds. A kernel can be compared with the roofline model of these limits.
package roofline

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/rayo-go/rayo/internal/memory"
)

// Roofline is the limits of a machine with a number of threads.
type Roofline struct {
	Threads int
	Read    float64 // bytes read per second from memory
	Copy    float64 // bytes read and written per second
	FMA     float64 // float32 operations per second; a multiply-add is two
}

// loops are the loops of a machine. If several measure one limit, the fastest counts. n is a multiple
// of stride.
type loops struct {
	fma  []fma
	read []func(x []float32)
	copy []func(dst, src []float32)
}

// fma runs n rounds of flops operations each.
type fma struct {
	run   func(n int)
	flops int
}

const (
	// The lengths of arrays must be multiples of stride.
	stride = 256
	// floats is the size of the array that is read, and the sum of the sizes of the two arrays of a
	// copy: 128 MiB, which exceeds most caches.
	floats = 32 << 20
	// rounds is the number of runs of each loop. The fastest run counts, because other work of the
	// machine makes a run slower.
	rounds = 7
)

// Measure measures the limits with the given number of threads, at least 1. It
// takes a few hundred milliseconds and 128 MiB.
func Measure(ctx context.Context, threads int) (Roofline, error) {
	if err := ctx.Err(); err != nil {
		return Roofline{}, err
	}
	threads = max(threads, 1)
	x, err := memory.Floats(floats)
	if err != nil {
		return Roofline{}, fmt.Errorf("roofline: %w", err)
	}
	for i := 0; i < len(x); i += 1024 {
		x[i] = 1 // touch the pages before the measurement
	}
	r := Roofline{Threads: threads}
	m := machine()
	src, dst := x[:len(x)/2], x[len(x)/2:]
	for _, f := range m.read {
		t, err := fastest(ctx, threads, func(i int) { f(part(x, i, threads)) })
		if err != nil {
			return r, err
		}
		r.Read = max(r.Read, 4*float64(len(x))/t.Seconds())
	}
	for _, f := range m.copy {
		t, err := fastest(ctx, threads, func(i int) { f(part(dst, i, threads), part(src, i, threads)) })
		if err != nil {
			return r, err
		}
		r.Copy = max(r.Copy, 8*float64(len(src))/t.Seconds())
	}
	for _, f := range m.fma {
		n := calibrate(f.run)
		t, err := fastest(ctx, threads, func(int) { f.run(n) })
		if err != nil {
			return r, err
		}
		r.FMA = max(r.FMA, float64(n)*float64(f.flops)*float64(threads)/t.Seconds())
	}
	return r, nil
}

// part returns the part of thread i.
func part(x []float32, i, threads int) []float32 {
	at := func(i int) int { return len(x) / threads * i / stride * stride }
	if i == threads-1 {
		return x[at(i) : len(x)/stride*stride]
	}
	return x[at(i):at(i+1)]
}

// calibrate returns a number of rounds that takes some milliseconds, so that the time to start a
// thread is negligible.
func calibrate(f func(n int)) int {
	for n := 1 << 10; ; n *= 2 {
		from := time.Now()
		f(n)
		if time.Since(from) > 4*time.Millisecond || n >= math.MaxInt32/2 {
			return n
		}
	}
}

// fastest runs f on all threads at once, several times, and returns the least
// time from the first start to the last end.
func fastest(ctx context.Context, threads int, f func(thread int)) (time.Duration, error) {
	best := time.Duration(math.MaxInt64)
	for range rounds {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		best = min(best, once(threads, f))
	}
	return max(best, 1), nil
}

func once(threads int, f func(thread int)) time.Duration {
	if threads == 1 {
		from := time.Now()
		f(0)
		return time.Since(from)
	}
	var ready, done sync.WaitGroup
	ready.Add(threads)
	start := make(chan struct{})
	for i := range threads {
		done.Add(1)
		go func() {
			defer done.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-start
			f(i)
		}()
	}
	ready.Wait()
	from := time.Now()
	close(start)
	done.Wait()
	return time.Since(from)
}
