//go:build !race

package testutil

import (
	"syscall"
	"testing"
)

// TestResident: memory that is written is counted, and no longer when it is gone,
// whether it is Go's or not. (The race detector keeps more of what is written.)
func TestResident(t *testing.T) {
	const size, slack = 64 << 20, 8 << 20
	fill := func(m []byte) {
		for i := range m {
			m[i] = 1
		}
	}
	for name, take := range map[string]func() (free func()){
		"Go's": func() func() {
			kept = make([]byte, size)
			fill(kept)
			return func() { kept = nil }
		},
		"the system's": func() func() {
			m, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			if err != nil {
				t.Fatal(err)
			}
			fill(m)
			return func() {
				if err := syscall.Munmap(m); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		before := Resident(t)
		free := take()
		if d := Resident(t) - before; d < size-slack || d > size+slack {
			t.Errorf("%s %d bytes are counted as %d", name, size, d)
		}
		free()
		if d := Resident(t) - before; d < -slack || d > slack {
			t.Errorf("%d bytes are left of %s", d, name)
		}
	}
}
