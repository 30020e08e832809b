// Package genfile writes files atomically: the output of generators, and data that
// processes share.
package genfile

import (
	"bytes"
	"os"
	"path/filepath"
)

// Write sets the content of the file. It does not touch a file that has this content already,
// so that builds do not repeat work. It replaces the file atomically otherwise: a concurrent
// reader, such as a compiler, sees the old or the new content and never a part of it.
func Write(name string, content []byte) error {
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, content) {
		return nil
	}
	mode := os.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".*.part")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
