//go:build linux && (amd64 || arm64)

package workers

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Two threads on one processor wait for each other, and one that sleeps waits
// for nobody.
func TestQueued(t *testing.T) {
	if fd, err := syscall.Open("/proc/thread-self/schedstat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err != nil {
		t.Skip("the kernel does not tell")
	} else {
		syscall.Close(fd)
	}
	runtime.LockOSThread() // and never unlocked: its processors are limited
	from := queued(0)
	time.Sleep(20 * time.Millisecond)
	if d := queued(0) - from; d > int64(15*time.Millisecond) {
		t.Errorf("a thread that slept waited for %v", time.Duration(d))
	}
	cpu := processor()
	if cpu < 0 {
		t.Skip("no processor to share")
	}
	var one cpuSet
	one[cpu/64] = 1 << (cpu % 64)
	setAffinity(0, &one)
	ready, stop := make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		setAffinity(0, &one)
		close(ready)
		for {
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	<-ready
	from = queued(0)
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
	}
	close(stop)
	if d := queued(0) - from; d < int64(time.Millisecond) {
		t.Errorf("two threads on one processor for 100 ms: this one waited for %v", time.Duration(d))
	}
}
