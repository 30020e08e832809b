package incomparable

import (
	"reflect"
	"testing"
)

// TestType checks that a struct with the field is not comparable, and that the field takes no memory.
func TestType(t *testing.T) {
	type plain [2]uint64
	type marked struct {
		_ Type
		_ plain
	}
	m := reflect.TypeFor[marked]()
	if m.Comparable() || m.Size() != reflect.TypeFor[plain]().Size() {
		t.Errorf("comparable: %v, %d bytes", m.Comparable(), m.Size())
	}
}
