package cpu

import (
	"testing"

	"github.com/rayo-go/rayo/internal/memory"
)

// TestSweep checks that pieces are adjacent, in the requested direction, and cover all elements
// once.
func TestSweep(t *testing.T) {
	for _, n := range []int{0, 1, 63, shortPiece, shortPiece + 1, 100_000, maxShortPieces * shortPiece, maxShortPieces*shortPiece + 1, 1_000_003} {
		for _, lo := range []int{0, 5, 1024} {
			for _, back := range []bool{false, true} {
				s := sweepOf(lo, lo+n, back)
				at, end := lo, lo+n
				for {
					a, b, ok := s.next()
					if !ok {
						break
					}
					if a >= b || b-a > max(callElements, pagePiece) || !back && a != at || back && b != end {
						t.Fatalf("piece %d to %d of %d to %d", a, b, at, end)
					}
					if back {
						end = a
					} else {
						at = b
					}
				}
				if at != end {
					t.Errorf("%d to %d of %d elements from %d on were not covered (back: %t)", at, end, n, lo, back)
				}
			}
		}
	}
}

// TestAlternates checks that the direction alternates if a cache holds a share of the bytes, and is
// fixed if the last-level cache may hold everything.
func TestAlternates(t *testing.T) {
	c := memory.CPUCaches()
	for _, threads := range []int{1, 2} {
		near := noticeable * float64(threads) * float64(c.L2)
		for _, bytes := range []float64{0, near, float64(c.Last)/2 + 1, 1e15} {
			if !alternates(bytes, threads) {
				t.Errorf("%g bytes, %d threads: does not alternate", bytes, threads)
			}
		}
		if near < float64(c.Last)/2 && alternates(float64(c.Last)/2, threads) {
			t.Errorf("half of the last-level cache, %d threads: alternates", threads)
		}
	}
}
