//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package memory

// mapAligned returns Go memory, which the garbage collector frees.
func mapAligned(size int) (block, mapping []byte, err error) {
	block, err = heap(size)
	return block, nil, err
}

func unmap([]byte) error { return nil }

func adviseHuge([]byte) {}
