//go:build amd64 || arm64

package workers

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// A sleeper parks a worker. Go's scheduler needs two threads to wake a goroutine, and often wakes it
// on the caller's own processor. Therefore a worker owns its thread, sleeps in a futex, and is moved
// to another processor when it is woken. After a second without work it gives up the thread.
type sleeper struct {
	state    atomic.Uint32
	thread   atomic.Int32 // the worker's own thread; 0 if it has none
	confined atomic.Bool  // the thread may only run on some processors
	cpu      atomic.Int32 // its processor when it was last woken; -1 while it is parked
	rousedAt atomic.Int64
	token    chan struct{}
}

// States of a sleeper. Only the worker leaves the state awake. The thread that leaves another state
// must wake the worker.
const (
	awake     = iota
	inFutex   // it sleeps in the futex or is about to: the worker owns the thread
	inChannel // the goroutine waits for a token
)

func (s *sleeper) init() {
	s.token = make(chan struct{}, 1)
	s.cpu.Store(-1)
}

func (s *sleeper) enter() {
	runtime.LockOSThread()
	s.thread.Store(int32(syscall.Gettid()))
}

func (s *sleeper) leave() {
	s.thread.Store(0)
	s.widen()
	runtime.UnlockOSThread()
}

// unlocked calls f, a scheduling point, with the goroutine unlocked from its thread: switching from a
// locked goroutine moves work to another thread and back.
func (s *sleeper) unlocked(f func()) {
	s.leave()
	f()
	s.enter()
}

// park returns when the worker is needed or has been woken. The result is the time at which rouse was
// called, or 0 if the worker was not woken. The caller has counted the worker in p.parked. A deep sleep returns the scheduler's processor at once.
func (s *sleeper) park(p *Pool, deep bool) (rousedAt int64) {
	s.cpu.Store(-1)
	s.state.Store(inFutex)
	for s.state.Load() == inFutex {
		s.widen() // leaveTo confined it after its last part
		if p.wanted() && s.state.CompareAndSwap(inFutex, awake) {
			p.parked.Add(-1)
			return 0
		}
		if (deep || s.wait() == syscall.ETIMEDOUT) && s.state.CompareAndSwap(inFutex, inChannel) {
			s.leave()
			<-s.token
			s.enter()
			return 0
		}
	}
	s.cpu.Store(processor())
	return s.rousedAt.Load()
}

// rouse wakes the worker if it is parked.
func (s *sleeper) rouse(p *Pool) bool {
	if s.state.CompareAndSwap(inFutex, awake) {
		p.parked.Add(-1)
		s.rousedAt.Store(clock())
		s.place(p)
		syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&s.state)), futexWakePrivate, 1, 0, 0, 0)
		return true
	}
	if s.state.CompareAndSwap(inChannel, awake) {
		p.parked.Add(-1)
		s.token <- struct{}{}
		return true
	}
	return false
}

const (
	futexWaitPrivate = 128
	futexWakePrivate = 129
)

// wait sleeps while the state is inFutex, at most a second.
func (s *sleeper) wait() syscall.Errno {
	// Not RawSyscall: the scheduler must get the processor back.
	t := syscall.Timespec{Sec: 1}
	_, _, errno := syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&s.state)), futexWaitPrivate, inFutex, uintptr(unsafe.Pointer(&t)), 0, 0)
	return errno
}

// A cpuSet is the kernel's set of processors.
type cpuSet [16]uint64

func (c *cpuSet) remove(cpu int32) {
	if cpu >= 0 && int(cpu) < 64*len(c) {
		c[cpu/64] &^= 1 << (cpu % 64)
	}
}

// everywhere has the processors that the process may use. It is empty if the kernel does not report them.
var everywhere = func() (c cpuSet) {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c))); errno != 0 {
		return cpuSet{}
	}
	return c
}()

// place excludes the processors of the caller and of the other workers for the parked thread, only
// while the kernel chooses its processor. The kernel often chooses the waker's processor, where the
// worker would stop the caller. Virtual machines that save idle processors always do.
func (s *sleeper) place(p *Pool) {
	set := everywhere
	set.remove(p.home.Load())
	for i := range p.workers {
		set.remove(p.workers[i].sleep.cpu.Load())
	}
	s.confine(&set)
}

// leaveTo moves a worker that runs or waits on processor cpu to another one, so that the caller can
// use cpu.
func (s *sleeper) leaveTo(cpu int32) {
	set := everywhere
	set.remove(cpu)
	if s.state.Load() != awake {
		return
	}
	s.confine(&set)
	if s.state.Load() != awake {
		// It has parked in the meantime, and place chooses its processor when it is woken.
		s.confine(&everywhere)
	}
}

// confine limits the worker's thread to set, unless it is empty, until widen. The worker may at the
// same time remove the limit or give up the thread; no thread with a limit may return to the runtime.
func (s *sleeper) confine(set *cpuSet) {
	thread := s.thread.Load()
	if thread == 0 || *set == (cpuSet{}) {
		return
	}
	s.confined.Store(true)
	setAffinity(thread, set)
	s.confined.Store(true)
	if s.thread.Load() != thread {
		setAffinity(thread, &everywhere)
	}
}

// widen removes the limit of confine. Only the worker calls it.
func (s *sleeper) widen() {
	if s.confined.Load() {
		s.confined.Store(false)
		setAffinity(0, &everywhere)
	}
}

// setAffinity limits a thread; 0 is the caller's. If the kernel refuses, the thread keeps its
// processors.
func setAffinity(thread int32, set *cpuSet) {
	syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(thread), unsafe.Sizeof(*set), uintptr(unsafe.Pointer(set)))
}

// yield lets another thread run that waits for this processor.
func yield() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// processor returns the number of the processor on which the caller runs.
func processor() int32 {
	var cpu uint32
	if _, _, errno := syscall.RawSyscall(sysGetcpu, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return -1
	}
	return int32(cpu)
}

// schedstat is the file in which the kernel reports the running time of a thread, its waiting time,
// and the number of its time slices.
var schedstat = []byte("/proc/thread-self/schedstat\x00")

// queued returns the calling thread and the nanoseconds for which it has waited for a processor. It
// returns false if the kernel does not report them.
func queued() (thread int32, ns int64, ok bool) {
	// syscall.Open, and Read under the race detector, allocate, and workers call this function each
	// time they park.
	fd, _, errno := syscall.Syscall6(syscall.SYS_OPENAT, 0, uintptr(unsafe.Pointer(&schedstat[0])), syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return 0, 0, false
	}
	var b [64]byte
	n, _, errno := syscall.Syscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	_ = syscall.Close(int(fd))
	if errno != 0 || n > uintptr(len(b)) {
		return 0, 0, false
	}
	field := 0
	for _, c := range b[:n] {
		switch {
		case c == ' ':
			field++
		case field == 1 && '0' <= c && c <= '9':
			ns = ns*10 + int64(c-'0')
		}
	}
	return int32(syscall.Gettid()), ns, field == 2
}
