package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGeneratedFilesAreCurrent fails if the catalogue has changed and go
// generate has not been run.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	const root = "../.."
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Errorf("%v: run go generate ./...", err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the catalogue makes: run go generate ./...", name)
		}
	}
}

func TestMethodsAreGo(t *testing.T) {
	for name, f := range map[string]func() ([]byte, error){"device": deviceMethods, "batch": batchMethods} {
		if _, err := f(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestComment(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "//\n"},
		{"a b", "// a b\n"},
		{"# Errors\n\n  - one", "// # Errors\n//\n//   - one\n"},
	} {
		if got := comment(c.text); got != c.want {
			t.Errorf("comment(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}
