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

// Flat runs f, whose work repeats what ran before, and fails the test if the memory of the process
// grows by more than slack bytes. A leak grows each time that f runs; allocators of libraries and the
// race detector keep more of what they had only now and then. So f runs up to three times, and the
// test fails only if memory has grown beyond slack each time.
func Flat(t testing.TB, slack int, f func()) {
	t.Helper()
	if sizes, ok := flat(slack, func() int { return Resident(t) }, f); !ok {
		t.Errorf("memory grew each time by more than %d bytes: %d", slack, sizes)
	}
}

// flat returns the sizes before f ran and after each run, and whether a run added no more than slack.
func flat(slack int, size func() int, f func()) (sizes []int, ok bool) {
	sizes = []int{size()}
	for n := 0; n < 3 && !ok; n++ {
		f()
		sizes = append(sizes, size())
		ok = sizes[n+1] <= sizes[n]+slack
	}
	return sizes, ok
}
