// Package genfile writes files as a whole: what generators make, and what processes
// leave for each other.
package genfile

import (
	"bytes"
	"os"
	"path/filepath"
)

// Write gives the file this content. One that has it is left alone, so that nothing is built
// again; another is replaced as a whole, so that who reads it meanwhile, a compiler say, sees the
// one or the other and never a part.
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
