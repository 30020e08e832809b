//go:build linux && (amd64 || arm64)

package workers

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/testutil"
)

// Two threads on one processor wait for it in turn, and a thread that sleeps does not wait for a
// processor.
func TestQueued(t *testing.T) {
	testutil.Need(t, "schedstat")
	if _, _, ok := queued(); !ok {
		t.Fatal("the kernel tells, but not to queued")
	}
	waited := func() time.Duration {
		_, ns, _ := queued()
		return time.Duration(ns)
	}
	runtime.LockOSThread() // and never unlocked: its processors are limited
	// On a busy machine it waits as well, once it is awake.
	least := time.Hour
	for try := 0; try < 50 && least > 15*time.Millisecond; try++ {
		from := waited()
		time.Sleep(20 * time.Millisecond)
		least = min(least, waited()-from)
	}
	if least > 15*time.Millisecond {
		t.Errorf("a thread that slept for 20 ms waited for %v", least)
	}
	cpu := processor()
	if cpu < 0 {
		t.Fatal("the kernel does not say which processor this is")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // with one the scheduler lets them take turns
	var one cpuSet
	one[cpu/64] = 1 << (cpu % 64)
	setAffinity(0, &one)
	ready := make(chan struct{})
	var stop atomic.Bool
	go func() {
		runtime.LockOSThread()
		setAffinity(0, &one)
		close(ready)
		for !stop.Load() {
		}
	}()
	<-ready
	defer stop.Store(true)
	from := waited()
	testutil.Soon(t, "of two threads on one processor this one waits", func() bool {
		for end := time.Now().Add(10 * time.Millisecond); time.Now().Before(end); {
		}
		return waited()-from >= time.Millisecond
	})
}

// The time for which one thread waited must not count for the next thread of the worker.
func TestWaitedOnAnotherThread(t *testing.T) {
	testutil.Need(t, "schedstat")
	if _, _, ok := queued(); !ok {
		t.Fatal("the kernel tells, but not to queued")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var w worker
	w.waited()
	w.thread++ // as if it had been another one,
	w.queued = -int64(time.Hour)
	if ns, told := w.waited(); ns != 0 || !told {
		t.Errorf("after a change of threads: waited %v, %t", time.Duration(ns), told)
	}
	w.queued -= int64(time.Hour)
	if ns, _ := w.waited(); ns < int64(time.Hour) {
		t.Errorf("on the same thread: waited only %v", time.Duration(ns))
	}
}
