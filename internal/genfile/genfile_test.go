package genfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x_gen.go")
	for _, content := range []string{"one", "two, which is longer", ""} {
		if err := Write(file, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != content {
			t.Fatalf("%q has become %q, %v", content, got, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// TestSameIsLeft: a file that need not change is not written.
func TestSameIsLeft(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x_gen.go")
	if err := os.WriteFile(file, []byte("same"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		content string
		same    bool
	}{{"same", true}, {"other", false}} {
		if err := Write(file, []byte(c.content)); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if os.SameFile(before, after) != c.same || after.Mode() != before.Mode() {
			t.Errorf("%q: the same file: %v, mode %v (%v before)", c.content, !c.same, after.Mode(), before.Mode())
		}
	}
}

// TestNoPartIsLeft: a file that cannot be replaced is unchanged, and no temporary file remains.
func TestNoPartIsLeft(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "folder", "full"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "folder"), []byte("x")); err == nil {
		t.Error("a folder became a file")
	}
	if err := Write(filepath.Join(dir, "none", "x"), nil); err == nil {
		t.Error("a file is in a folder that is not there")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}
