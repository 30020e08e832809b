package testutil

import (
	"slices"
	"strings"
	"testing"
)

// TestFlat: growth in each of three runs fails a test, growth in one or two does not, and f runs no more often than it must.
func TestFlat(t *testing.T) {
	const slack = 10
	for _, c := range []struct {
		sizes []int
		runs  int
		fails bool
	}{
		{sizes: []int{100, 110}, runs: 1},
		{sizes: []int{100, 50}, runs: 1},
		{sizes: []int{100, 200, 210}, runs: 2},
		{sizes: []int{100, 111, 122, 132}, runs: 3},
		{sizes: []int{100, 111, 122, 133}, runs: 3, fails: true},
		{sizes: []int{100, 200, 111, 133}, runs: 2},
	} {
		runs := 0
		got, ok := flat(slack, func() int { return c.sizes[runs] }, func() { runs++ })
		if runs != c.runs || ok == c.fails || !slices.Equal(got, c.sizes[:runs+1]) {
			t.Errorf("%d: %d runs and %d, %v; want %d runs, failure %v", c.sizes, runs, got, ok, c.runs, c.fails)
		}
	}
}

// TestFlatLeak: memory that stays each time is a failure with the sizes, memory that is written again is not.
func TestFlatLeak(t *testing.T) {
	const size = 64 << 20
	var kept [][]byte
	keep := func() {
		m := make([]byte, size)
		for i := range m {
			m[i] = 1
		}
		kept = append(kept, m)
	}
	r := &recorder{TB: t}
	r.run(func() { Flat(r, size/2, keep) })
	if len(kept) != 3 || !strings.HasPrefix(r.failed, "memory grew each time by more than 33554432 bytes: [") {
		t.Errorf("after %d runs: %q", len(kept), r.failed)
	}
	Flat(t, size/2, func() {
		for i := range kept[0] {
			kept[0][i]++
		}
	})
}
