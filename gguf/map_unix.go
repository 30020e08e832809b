//go:build unix

package gguf

import (
	"os"
	"syscall"
)

// mapFile maps a file for reading.
func mapFile(f *os.File, size int64) (view []byte, unmap func() error, err error) {
	if int64(int(size)) != size {
		return nil, nil, ErrLimit
	}
	c, err := f.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	var failed error
	err = c.Control(func(fd uintptr) {
		view, failed = syscall.Mmap(int(fd), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	})
	if err == nil {
		err = failed
	}
	return view, func() error { return syscall.Munmap(view) }, err
}
