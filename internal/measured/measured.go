//go:build !js

// Package measured stores measurements of a device in files in the user's
// cache folder, one per line. The key is the identity of the device, because the
// measurements of one driver or model do not hold for another.
package measured

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/rayo-go/rayo/internal/genfile"
)

var errNone = errors.New("the user has no cache folder (on Linux XDG_CACHE_HOME or HOME names it)")

// folder returns the folder of the files, "" if there is none.
var folder = func() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "rayo")
}

// Path returns where a file is or would be, "" if there is no folder for it.
func Path(file string) string {
	dir := folder()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, file)
}

// Lines returns the lines that a file has under an identity, nil if none.
func Lines(file, identity string) []string {
	dir := folder()
	if dir == "" {
		return nil
	}
	f, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	defer f.Close()
	var lines []string
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), identity+"\t"); ok {
			lines = append(lines, rest)
		}
	}
	return lines
}

// Replace replaces the lines of an identity in the file. Lines of other identities stay, and so do
// lines of this identity for which keep, if it is not nil, returns true. Lines that contain line
// breaks are left out.
func Replace(file, identity string, lines []string, keep func(line string) bool) error {
	dir := folder()
	if dir == "" {
		return errNone
	}
	path := filepath.Join(dir, file)
	var b strings.Builder
	if old, err := os.ReadFile(path); err == nil {
		for line := range strings.Lines(string(old)) {
			rest, mine := strings.CutPrefix(line, identity+"\t")
			if !mine || keep != nil && keep(strings.TrimSuffix(rest, "\n")) {
				b.WriteString(line)
			}
		}
	}
	for _, l := range lines {
		if !strings.Contains(l, "\n") {
			b.WriteString(identity + "\t" + l + "\n")
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// Another process may write at the same time: a reader must never read a part of a file.
	return genfile.Write(path, []byte(b.String()))
}
