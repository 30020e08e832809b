//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package memory

import (
	"fmt"
	"syscall"
)

// mapAligned returns size bytes outside the Go heap, zero and not yet
// resident, on a huge page boundary, and the mapping to give to unmap.
func mapAligned(size int) (block, mapping []byte, err error) {
	mapping, err = syscall.Mmap(-1, 0, size+Huge, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("mapping %d bytes: %v: %w", size, err, ErrOutOfMemory)
	}
	// The slack on both sides is never touched and so never resident.
	block = align(mapping, Huge)[:size:size]
	adviseHuge(block)
	return block, mapping, nil
}

// unmap returns a mapping of mapAligned to the system.
func unmap(mapping []byte) error { return syscall.Munmap(mapping) }

// probe asks whether the system would map size more bytes.
func probe(size int) error {
	_, mapping, err := mapAligned(size)
	if err != nil {
		return err
	}
	return unmap(mapping)
}
