package cuda

import (
	"encoding/binary"
	"fmt"
)

// elfMagic begins a cubin.
var elfMagic = []byte("\x7fELF")

// checkCubin returns an error unless b is a whole ELF file for NVIDIA's devices.
// The driver takes an image without its length, so that it would read beyond the
// end of one that was cut off.
func checkCubin(b []byte) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("cuda: %w: a cubin of %d bytes %s", ErrBadImage, len(b), fmt.Sprintf(format, args...))
	}
	const (
		header  = 64 // bytes of the header of a file,
		section = 64 // size of a section header,
		segment = 56 // and of a program header
		machine = 190
		noBits  = 8 // the kind of a section that has no bytes
	)
	if len(b) < header || string(b[:4]) != string(elfMagic) || b[4] != 2 || b[5] != 1 {
		return bad("is no ELF file of 64 bits")
	}
	le := binary.LittleEndian
	if m := le.Uint16(b[18:]); m != machine {
		return bad("is for machine %d, not for CUDA", m)
	}
	n := uint64(len(b))
	inside := func(off, size uint64) bool { return off <= n && size <= n-off }

	segments, sections := le.Uint64(b[32:]), le.Uint64(b[40:])
	segmentCount, sectionCount := uint64(le.Uint16(b[56:])), uint64(le.Uint16(b[60:]))
	if sections < header {
		return bad("has sections in its header")
	}
	if segmentCount > 0 && (le.Uint16(b[54:]) != segment || !inside(segments, segmentCount*segment)) {
		return bad("lacks a part of its segments")
	}
	if sectionCount == 0 || le.Uint16(b[58:]) != section || !inside(sections, sectionCount*section) {
		return bad("lacks a part of its sections")
	}
	if uint64(le.Uint16(b[62:])) >= sectionCount {
		return bad("has no names")
	}
	for i := range segmentCount {
		h := b[segments+i*segment:]
		if !inside(le.Uint64(h[8:]), le.Uint64(h[32:])) {
			return bad("lacks a part of segment %d", i)
		}
	}
	for i := range sectionCount {
		h := b[sections+i*section:]
		if le.Uint32(h[4:]) != noBits && !inside(le.Uint64(h[24:]), le.Uint64(h[32:])) {
			return bad("lacks a part of section %d", i)
		}
	}
	return nil
}
