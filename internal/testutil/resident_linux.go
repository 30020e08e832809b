package testutil

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// Resident returns the number of bytes of this process in memory, allocated by Go or by
// libraries, without the unused parts of Go's heap.
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
