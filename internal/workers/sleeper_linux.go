//go:build amd64 || arm64

package workers

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// A sleeper is how a worker parks. Waking a goroutine through the scheduler
// takes two threads and often ends on the caller's own processor, so a worker
// owns its thread, sleeps in a futex, and is sent elsewhere when it is
// roused. After a second without work it gives the thread up.
type sleeper struct {
	state    atomic.Uint32
	thread   atomic.Int32 // the worker's own; 0 while it has none
	confined atomic.Bool  // the thread may not run everywhere
	cpu      atomic.Int32 // where it was when last roused; -1 while parked
	rousedAt atomic.Int64
	token    chan struct{}
}

// States of a sleeper. Only the worker leaves awake; whoever leaves the
// others has the duty to wake.
const (
	awake     = iota
	inFutex   // or about to be: the thread is the worker's
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

// unlocked calls f, a scheduling point, without the lock on the thread: to
// switch goroutines on a locked one takes a hand-off to another thread and back.
func (s *sleeper) unlocked(f func()) {
	s.leave()
	f()
	s.enter()
}

// park returns when the worker is wanted or was roused, and then when that
// was. The caller has counted the worker in p.parked. Deep sleep is the one
// that gives the scheduler's processor back at once.
func (s *sleeper) park(p *Pool, deep bool) (rousedAt int64) {
	s.cpu.Store(-1)
	s.state.Store(inFutex)
	for s.state.Load() == inFutex {
		s.widen() // it was told to leave a processor after its last part
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

// everywhere is where the process may run; empty if the kernel does not tell.
var everywhere = func() (c cpuSet) {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c))); errno != 0 {
		return cpuSet{}
	}
	return c
}()

// place forbids the parked thread the processors of the caller and of the
// other workers, for the one moment at which the kernel chooses: it tends to
// wake a thread beside its waker, where it would stop the very work it is to
// help with, and virtual machines that save idle processors always do.
func (s *sleeper) place(p *Pool) {
	set := everywhere
	set.remove(p.home.Load())
	for i := range p.workers {
		set.remove(p.workers[i].sleep.cpu.Load())
	}
	s.confine(&set)
}

// leaveTo leaves processor cpu to its caller: a worker that runs or waits
// there goes on elsewhere.
func (s *sleeper) leaveTo(cpu int32) {
	set := everywhere
	set.remove(cpu)
	if s.state.Load() != awake {
		return
	}
	s.confine(&set)
	if s.state.Load() != awake {
		// It has parked meanwhile, and is placed when it is roused.
		s.confine(&everywhere)
	}
}

// confine limits the worker's thread to set, if that is not empty, until
// widen. The worker may undo that or give the thread up at the same time; no
// thread may go back to the runtime confined.
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

// widen undoes confine. Only the worker calls it.
func (s *sleeper) widen() {
	if s.confined.Load() {
		s.confined.Store(false)
		setAffinity(0, &everywhere)
	}
}

// setAffinity limits a thread, 0 being the caller's. It may be refused, and
// then the kernel's choice holds.
func setAffinity(thread int32, set *cpuSet) {
	syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(thread), unsafe.Sizeof(*set), uintptr(unsafe.Pointer(set)))
}

// yield lets another thread run that waits for this processor.
func yield() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// processor returns the number of the one that the caller runs on.
func processor() int32 {
	var cpu uint32
	if _, _, errno := syscall.RawSyscall(sysGetcpu, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return -1
	}
	return int32(cpu)
}

// schedstat is where the kernel tells a thread of its time running, its time
// waiting, and its turns.
var schedstat = []byte("/proc/thread-self/schedstat\x00")

// queued returns the calling thread and the nanoseconds that it has waited for a
// processor so far; false: the kernel does not tell.
func queued() (thread int32, ns int64, ok bool) {
	// Not syscall.Open and, under the race detector, Read, which allocate: workers
	// ask each time they park.
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
