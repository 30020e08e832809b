package gguf

import (
	"os"
	"syscall"
	"unsafe"
)

// mapFile maps a file for reading.
func mapFile(f *os.File, size int64) (view []byte, unmap func() error, err error) {
	if int64(int(size)) != size {
		return nil, nil, ErrLimit
	}
	m, err := syscall.CreateFileMapping(syscall.Handle(f.Fd()), nil, syscall.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, nil, err
	}
	// The view keeps the mapping open.
	defer syscall.CloseHandle(m)
	addr, err := syscall.MapViewOfFile(m, syscall.FILE_MAP_READ, 0, 0, 0)
	if err != nil {
		return nil, nil, err
	}
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr)) // an address of the system, not of Go's memory
	return unsafe.Slice((*byte)(p), int(size)), func() error { return syscall.UnmapViewOfFile(addr) }, nil
}
