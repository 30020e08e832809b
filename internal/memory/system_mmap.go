//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package memory

import (
	"fmt"
	"syscall"
)

// mapAligned returns size zeroed bytes outside the Go heap, on a huge page boundary, and the
// mapping for unmap. The memory is not resident yet.
func mapAligned(size int) (block, mapping []byte, err error) {
	mapping, err = syscall.Mmap(-1, 0, size+Huge, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot map %d bytes: %v: %w", size, err, ErrOutOfMemory)
	}
	// The slack on both sides is never touched, so it never becomes resident.
	block = align(mapping, Huge)[:size:size]
	adviseHuge(block)
	return block, mapping, nil
}

// unmap returns a mapping of mapAligned to the system.
func unmap(mapping []byte) error { return syscall.Munmap(mapping) }

// probe returns an error if the system cannot map size more bytes.
func probe(size int) error {
	_, mapping, err := mapAligned(size)
	if err != nil {
		return err
	}
	return unmap(mapping)
}
