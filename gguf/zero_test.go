package gguf

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
)

// TestZero checks that nil and zero arguments give errors, or mean empty values, such as nil metadata.
func TestZero(t *testing.T) {
	for _, size := range []int64{-1, -1 << 63} {
		if _, err := NewReader(bytes.NewReader(make([]byte, 64)), size); !errors.Is(err, ErrFormat) {
			t.Errorf("a file of %d bytes: %v", size, err)
		}
	}
	if _, err := NewReader(nil, 64); !errors.Is(err, ErrFormat) {
		t.Errorf("no reader: %v", err)
	}
	if err := new(File).Close(); err != nil {
		t.Error(err)
	}
	var b bytes.Buffer
	w, err := NewWriter(&b, nil, nil)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if f, err := NewBytes(b.Bytes()); err != nil || f.Metadata().Len() != 0 || f.NumTensors() != 0 {
		t.Errorf("a file without metadata: %v", err)
	}
	path := filepath.Join(t.TempDir(), "empty.gguf")
	fw, err := Create(path, nil, nil)
	if err == nil {
		err = fw.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
