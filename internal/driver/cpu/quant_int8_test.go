package cpu

import "testing"

// TestStreamColumns checks that the parts of a row are not too large, and that there are never a few more than the
// threads compute at the same time.
func TestStreamColumns(t *testing.T) {
	for threads := 1; threads <= 70; threads++ {
		for _, n := range []int{0, 1, 15, 16, 17, 100, 576, 640, 1000, 1024, 1025, 2048, 4096, 5632, 11008, 32000, 32001, 151936} {
			columns := streamColumns(n, threads)
			rounds := max(1, (n+1024*threads-1)/(1024*threads))
			if parts := (n + columns - 1) / columns; parts > rounds*threads {
				t.Errorf("%d columns, %d threads: %d parts of %d, want at most %d a thread", n, threads, parts, columns, rounds)
			}
			if columns%panelUnit != 0 || columns <= 0 || columns > int8StreamColumns {
				t.Errorf("%d columns, %d threads: parts of %d", n, threads, columns)
			}
		}
	}
	for n, want := range map[int]int{576: 288, 640: 320, 2048: 1024, 5632: 944, 32000: 1008} {
		if got := streamColumns(n, 2); got != want {
			t.Errorf("%d columns, 2 threads: parts of %d, want %d", n, got, want)
		}
	}
	if got := streamColumns(4096, 6); got != 688 {
		t.Errorf("4096 columns, 6 threads: parts of %d", got)
	}
}
