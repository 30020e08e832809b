package testutil

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// Resident returns how many bytes of this process are in memory, whoever took
// them, without what Go's heap could do without.
func Resident(t testing.TB) int {
	t.Helper()
	debug.FreeOSMemory()
	const file = "/proc/self/statm"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		t.Fatalf("%s: %q", file, text)
	}
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return pages * os.Getpagesize()
}
