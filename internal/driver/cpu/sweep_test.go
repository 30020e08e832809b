package cpu

import "testing"

// TestSweep: pieces touch each other, in the order that was asked for, and
// cover everything once.
func TestSweep(t *testing.T) {
	for _, n := range []int{0, 1, 63, nearPiece, nearPiece + 1, 100_000, nearPieces * nearPiece, nearPieces*nearPiece + 1, 1_000_003} {
		for _, lo := range []int{0, 5, 1024} {
			for _, back := range []bool{false, true} {
				s := sweepOf(lo, lo+n, back)
				at, end := lo, lo+n
				for {
					a, b, ok := s.next()
					if !ok {
						break
					}
					if a >= b || b-a > callElements || !back && a != at || back && b != end {
						t.Fatalf("piece %d to %d of %d to %d", a, b, at, end)
					}
					if back {
						end = a
					} else {
						at = b
					}
				}
				if at != end {
					t.Errorf("%d to %d of %d elements from %d on are left (back: %t)", at, end, n, lo, back)
				}
			}
		}
	}
}
