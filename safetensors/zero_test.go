package safetensors

import (
	"bytes"
	"errors"
	"testing"
)

// TestZero: no reader, no size and the zero File do not panic.
func TestZero(t *testing.T) {
	if _, err := NewReader(nil, 64); !errors.Is(err, ErrFormat) {
		t.Errorf("no reader: %v", err)
	}
	if _, err := NewReader(bytes.NewReader(make([]byte, 64)), -1); !errors.Is(err, ErrFormat) {
		t.Errorf("a size below 0: %v", err)
	}
	if err := new(File).Close(); err != nil {
		t.Error(err)
	}
}
