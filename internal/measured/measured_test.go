//go:build !js

package measured

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// within uses a temporary cache folder for the test.
func within(t *testing.T, dir string) {
	old := folder
	folder = func() string { return dir }
	t.Cleanup(func() { folder = old })
}

func TestReplace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "when needed")
	within(t, dir)
	if l := Lines("f", "a"); l != nil {
		t.Errorf("lines of no file: %q", l)
	}
	put := func(identity string, keep func(string) bool, lines ...string) {
		t.Helper()
		if err := Replace("f", identity, lines, keep); err != nil {
			t.Fatal(err)
		}
	}
	put("a", nil, "x 1", "y 2", "two\nlines")
	put("b", nil, "x 9")
	put("a", func(l string) bool { return strings.HasPrefix(l, "y") }, "x 3")
	if got, want := Lines("f", "a"), []string{"y 2", "x 3"}; !slices.Equal(got, want) {
		t.Errorf("a has %q, want %q", got, want)
	}
	if got, want := Lines("f", "b"), []string{"x 9"}; !slices.Equal(got, want) {
		t.Errorf("b has %q, want %q", got, want)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%d files are left", len(files))
	}
}

func TestNoFolder(t *testing.T) {
	within(t, "")
	if Lines("f", "a") != nil || Replace("f", "a", nil, nil) == nil {
		t.Error("a file in no folder")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	within(t, file)
	if Replace("f", "a", nil, nil) == nil {
		t.Error("a file within a file")
	}
}
