package cuda

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A cubinCache keeps compiled modules in a folder. A file has a line that names the format, the
// hash of the cubin, and the cubin. A truncated or changed file is detected by the hash, and its
// module is compiled again.
type cubinCache struct{ dir string }

const (
	cubinFormat = "rayo cubin 1\n"
	cubinSuffix = ".cubin"

	// Beyond these the files that were written first are removed.
	cubinFiles = 1024
	cubinBytes = 256 << 20
)

// openCubins returns the cache in dir, or in the user's cache folder if dir is empty. It returns
// nil if the folder cannot be created.
func openCubins(dir string) *cubinCache {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil
		}
		dir = filepath.Join(user, "rayo", "cubin")
	}
	if os.MkdirAll(dir, 0o700) != nil {
		return nil
	}
	return &cubinCache{dir}
}

// cubinKey returns the name under which the compiled form of a text is kept.
func cubinKey(text []byte, driver Version, c Capability, o LoadOptions) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s%d %d.%d %d %d %v %d\n", cubinFormat, driver, c.Major, c.Minor, o.MaxRegisters, o.Optimization, o.LineInfo, len(text))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

func (c *cubinCache) path(key string) string { return filepath.Join(c.dir, key+cubinSuffix) }

// get returns a cubin, or nil if there is none. A damaged one is removed.
func (c *cubinCache) get(key string) []byte {
	b, err := os.ReadFile(c.path(key))
	if err != nil {
		return nil
	}
	rest, ok := bytes.CutPrefix(b, []byte(cubinFormat))
	if ok && len(rest) > sha256.Size+8 {
		cubin := rest[sha256.Size+8:]
		sum := sha256.Sum256(cubin)
		if bytes.Equal(sum[:], rest[:sha256.Size]) && binary.LittleEndian.Uint64(rest[sha256.Size:]) == uint64(len(cubin)) && checkCubin(cubin) == nil {
			return cubin
		}
	}
	c.remove(key)
	return nil
}

func (c *cubinCache) remove(key string) { _ = os.Remove(c.path(key)) }

// put stores a cubin atomically: other processes see the whole file or none. It ignores errors,
// because the module can be compiled again.
func (c *cubinCache) put(key string, cubin []byte) {
	t, err := os.CreateTemp(c.dir, "*.tmp")
	if err != nil {
		return
	}
	defer os.Remove(t.Name()) // has no effect after the rename
	sum := sha256.Sum256(cubin)
	head := append([]byte(cubinFormat), sum[:]...)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(cubin)))
	_, err = t.Write(append(head, cubin...))
	if closeErr := t.Close(); err != nil || closeErr != nil {
		return
	}
	if os.Rename(t.Name(), c.path(key)) == nil {
		c.prune()
	}
}

// prune removes the oldest files if there are too many.
func (c *cubinCache) prune() {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	var files []os.FileInfo
	var size int64
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), cubinSuffix) {
			continue
		}
		if i, err := e.Info(); err == nil {
			files = append(files, i)
			size += i.Size()
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for len(files) > cubinFiles || size > cubinBytes && len(files) > 1 {
		if os.Remove(filepath.Join(c.dir, files[0].Name())) == nil {
			size -= files[0].Size()
		}
		files = files[1:]
	}
}
