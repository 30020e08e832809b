//go:build (linux || darwin) && !(386 || arm || mips || mipsle)

package memory

import (
	"errors"
	"testing"
)

// Asking for far more than any machine has must not end the program.
func TestRefusal(t *testing.T) {
	if s, err := Floats(largest / 4); s != nil || !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("Floats(%d) = %d elements, %v", largest/4, len(s), err)
	}
	p := NewPool(Options{})
	kept, err := p.Get(Huge)
	if err != nil {
		t.Fatal(err)
	}
	kept.Free()
	if b, err := p.Get(largest); b != (Block{}) || !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("Get(%d) = %d bytes, %v", largest, b.Len(), err)
	}
	if s := p.Stats(); s != (Stats{Peak: Huge, Fresh: 1}) {
		t.Errorf("after the refusal: %+v, want all kept memory returned", s)
	}
}
