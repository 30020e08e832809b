package cpu

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// TestBoxes copies permuted arrays of 2 to 6 axes by boxes, in any order, and compares them with an index loop.
func TestBoxes(t *testing.T) {
	if !simd.HasTurn() {
		return // such processors copy permuted arrays in another way
	}
	r := testutil.Rand(t)
	fixed := []struct {
		s     op.Shape
		order []int
	}{
		{op.Shape{300, 301}, []int{1, 0}}, {op.Shape{512, 1040}, []int{1, 0}}, {op.Shape{17, 3000}, []int{1, 0}}, {op.Shape{3000, 17}, []int{1, 0}},
		{op.Shape{259, 513}, []int{1, 0}}, {op.Shape{40, 60, 120}, []int{2, 1, 0}}, {op.Shape{64, 32, 48}, []int{2, 1, 0}},
		{op.Shape{2, 3}, []int{1, 0}}, {op.Shape{48, 4, 20480}, []int{2, 1, 0}}, {op.Shape{8, 8, 8, 8, 16}, []int{4, 3, 2, 1, 0}}, {op.Shape{4, 25, 25, 20}, []int{0, 3, 2, 1}}, {op.Shape{16, 9, 8, 7, 16}, []int{3, 4, 2, 0, 1}},
		{op.Shape{8, 5, 9, 23, 11}, []int{3, 1, 4, 0, 2}}, {op.Shape{11111, 3}, []int{1, 0}},
	}
	kinds := map[string]int{}
	for i := range 150 {
		s, order := randomOrder(r)
		if i < len(fixed) {
			s, order = fixed[i].s, fixed[i].order
		}
		for _, from := range []int{0, math.MaxInt} {
			testBoxes(t, r, s, order, i%2 == 0, from, kinds)
		}
	}
	want := []string{"direct", "columns", "narrow", "joined", "lines", "skewed"}
	if simd.HasJoinRows() {
		want = append(want, "joinRows joined", "joinRows lines", "joinRows skewed")
	} else {
		want = append(want, "tiled")
	}
	for _, k := range want {
		if kinds[k] == 0 {
			t.Errorf("no copy was %s", k)
		}
	}
}

// testBoxes copies a permuted array of shape s, and adds to the counts of kinds of boxes. near and from are the arguments of boxesFor.
func testBoxes(t *testing.T, r *rand.Rand, s op.Shape, order []int, near bool, from int, kinds map[string]int) {
	t.Helper()
	l := permuted(s, order)
	b := boxesFor(&l, near, from)
	if b == nil {
		return
	}
	fits(t, b, s, order)
	n := l.Size()
	x := make([]uint32, n)
	for i := range x {
		x[i] = uint32(i) ^ 0x55555555
	}
	for _, past := range []bool{false, true} {
		const poison = 0xdeadbeef
		dst := make([]uint32, n+4*line)
		for i := range dst {
			dst[i] = poison
		}
		first := line + int(-uintptr(unsafe.Pointer(&dst[0]))/4%line) // a whole cache line
		if r.IntN(2) == 0 {
			first += r.IntN(line)
		}
		kind := [2]string{"", "joinRows "}[toInt(b.joinRows)]
		switch {
		case b.narrow:
			kinds["narrow"]++
		case b.tiled:
			kinds["tiled"]++
		case b.direct && b.inner > 1 && b.hop == 1:
			kinds["columns"]++
		case b.direct:
			kinds["direct"]++
		case b.joined:
			kinds[kind+"joined"]++
		case b.lines && onLine(&dst[first]):
			kinds[kind+"lines"]++
		case past && b.across > 2:
			kinds[kind+"skewed"]++
		}
		for _, i := range r.Perm(b.count) {
			b.copy(&dst[first], &x[0], i, past)
		}
		simd.StreamFence()
		for i, got := range dst {
			want := uint32(poison)
			if i >= first && i < first+n {
				at, _ := l.At(i - first)
				want = x[at]
			}
			if got != want {
				t.Fatalf("%v by %v at %d, past %v: element %d is %#x, not %#x", s, order, first, past, i-first, got, want)
			}
		}
	}
}

// fits checks that the buffers have room for the boxes.
func fits(t *testing.T, b *boxes, s op.Shape, order []int) {
	t.Helper()
	if b.direct {
		if rows := b.high + line - 1; rows+simd.StripAhead > len(stripTable{}) {
			t.Fatalf("%v by %v: boxes have up to %d rows", s, order, rows)
		}
		if n := (b.across-1)*b.high + simd.StripRows; n > b.total {
			t.Fatalf("%v by %v: %d boxes of %d rows for %d rows", s, order, b.across, b.high, b.total)
		}
	}
	if b.run > 0 || b.direct || b.narrow {
		return
	}
	high := b.high
	if b.across > 1 {
		high = min(b.high+line, b.total)
	}
	w, cols := new(stage), b.inner*b.wide
	groups := (high + line - 1) / line
	if b.joinRows {
		groups++ // JoinRows reads a group more
	}
	if need := groups * line * (cols + turnGap); need > len(w.groups)-line {
		t.Fatalf("%v by %v: boxes need %d words of the buffer, which has %d", s, order, need, len(w.groups)-line)
	}
	if b.joined && cols/b.inner*b.total > len(w.row)-line || groups*line > len(w.at)+line*toInt(b.joinRows) {
		t.Fatalf("%v by %v: boxes need rows of %d elements", s, order, cols/b.inner*b.total)
	}
}

// TestBoxSizes checks the sizes of boxes of arrays that are too large to be copied here.
func TestBoxSizes(t *testing.T) {
	if !simd.HasTurn() {
		return
	}
	r := testutil.Rand(t)
	for i := range 5000 {
		s, order := randomOrder(r)
		switch i {
		case 0:
			s, order = op.Shape{2, 65, 16, 4096, 16}, []int{4, 2, 3, 0, 1}
		case 1:
			s, order = op.Shape{127, 2, 1 << 20}, []int{2, 1, 0}
		case 2:
			s, order = op.Shape{5, 48, 48, 257, 16}, []int{2, 4, 3, 0, 1}
		default:
			s[r.IntN(len(s))] *= 1 + r.IntN(100)
		}
		l := permuted(s, order)
		if b := boxesFor(&l, i%2 == 1, i%4/2*boxLimits.join); b != nil {
			fits(t, b, s, order)
		}
	}
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// randomOrder returns a shape of up to 300,000 elements and an order of its axes.
func randomOrder(r *rand.Rand) (op.Shape, []int) {
	extents := []int{2, 3, 5, 7, 8, 15, 16, 17, 20, 31, 32, 33, 48, 64, 65, 100, 129, 200, 257}
	rank := 2 + r.IntN(5)
	s, n := make(op.Shape, rank), 1
	for _, k := range r.Perm(rank) {
		s[k] = 1 + r.IntN(3)
		if e := extents[r.IntN(len(extents))]; n*e <= 60_000 {
			s[k] = e
		}
		n *= s[k]
	}
	if n < boxLimits.array {
		s[r.IntN(rank)] *= (boxLimits.array + n - 1) / n
	}
	return s, r.Perm(rank)
}
