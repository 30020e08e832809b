package dl

import (
	"runtime"
	"syscall"
)

func load(name string) (uintptr, error) {
	h, err := syscall.LoadLibrary(name)
	return uintptr(h), err
}

func find(handle uintptr, name string) (uintptr, error) {
	return syscall.GetProcAddress(syscall.Handle(handle), name)
}

// Call makes the call. Everything that the arguments point to must stay
// reachable until it returns.
func (f *Frame) Call() {
	f.Refused = 0
	if f.Bind != 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if r, _, _ := syscall.SyscallN(f.Bind, f.Context); int32(r) != 0 {
			f.Result, f.Refused = r, 1
			return
		}
	}
	f.Result, _, _ = syscall.SyscallN(f.Fn, f.Args[:]...)
}
