//go:build amd64 || arm64

package workers

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/testutil"
)

// A worker that was limited to some processors must be able to use all afterwards.
func TestWorkersMayRunEverywhere(t *testing.T) {
	p := start(3)
	defer p.Close()
	for range 30 {
		c := newTally(30)
		p.Do(30, c)
		p.dispersed = false
		p.Do(30, c)
		p.disperse()
		p.Do(30, c)
		testutil.Soon(t, "workers sleep", p.idle)
	}
	for i := range p.workers {
		s := &p.workers[i].sleep
		testutil.Soon(t, "a worker that sleeps may run everywhere", func() bool {
			var set cpuSet
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, uintptr(s.thread.Load()), unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set))); errno != 0 {
				t.Fatal(errno)
			}
			return set == everywhere
		})
	}
}

// A worker gives up its thread after a second without work, and still runs the next job.
func TestDeepSleep(t *testing.T) {
	p := start(2)
	defer p.Close()
	testutil.Soon(t, "the worker gives up its thread", func() bool { return p.workers[0].sleep.state.Load() == inChannel })
	for range 3 {
		c := newTally(10)
		p.Do(10, c)
		c.check(t)
	}
	testutil.Soon(t, "the worker sleeps again", p.idle)
}
