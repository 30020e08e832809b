package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGenerated shows that go generate was run after the tables changed.
func TestGenerated(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s does not match the tables: run go generate in package ptx", name)
		}
	}
}
