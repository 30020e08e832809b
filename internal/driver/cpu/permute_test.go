package cpu

import (
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// permuted returns the layout of an array of shape s whose axes are in the given order.
func permuted(s op.Shape, order []int) op.Layout {
	l := op.Layout{Rank: uint8(len(s))}
	for k, axis := range order {
		f := &l.F[k]
		f.N, f.Hi, f.Stride = s[axis], s[axis], 1
		for _, e := range s[axis+1:] {
			f.Stride *= e
		}
	}
	return l
}

// TestPermuted reads parts of permuted arrays, some with windows or repeated factors, and compares
// them with the addresses that the layouts return.
func TestPermuted(t *testing.T) {
	r := testutil.Rand(t)
	extents := []int{1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 64, 65}
	turned := 0
	for range 300 {
		rank := 2 + r.IntN(4)
		var s op.Shape
		for n := 1; len(s) < rank; {
			e := extents[r.IntN(len(extents))]
			if n*e > 200_000 {
				e = 2
			}
			s, n = append(s, e), n*e
		}
		order := r.Perm(rank)
		l := permuted(s, order)
		if r.IntN(4) == 0 { // cut a factor to a window
			f := &l.F[r.IntN(int(l.Rank))]
			f.Lo = r.IntN(f.N)
			f.Hi = f.Lo + 1 + r.IntN(f.N-f.Lo)
			l.Off += f.Lo * f.Stride
			l.Fill = 7
		}
		if r.IntN(4) == 0 { // repeat a factor
			l.F[r.IntN(int(l.Rank))].Stride = 0
		}
		if permutationOf(&l).unit > 0 {
			turned++
		}
		n := l.Size()
		x := make([]uint32, n)
		for i := range x {
			x[i] = uint32(i) ^ 0x55555555
		}
		for range 3 {
			lo := r.IntN(n)
			hi := lo + 1 + r.IntN(n-lo)
			if r.IntN(2) == 0 {
				lo, hi = 0, n
			}
			const poison = 0xdeadbeef
			dst := make([]uint32, hi-lo+2+line)
			past := r.IntN(2) == 0
			if past && r.IntN(2) == 0 { // to whole cache lines
				dst = dst[(-uintptr(unsafe.Pointer(&dst[1])))%(4*line)/4:]
			}
			dst = dst[:hi-lo+2]
			for i := range dst {
				dst[i] = poison
			}
			bring(unsafe.Pointer(&dst[1]), unsafe.Pointer(&x[0]), &l, lo, hi-lo, 4, past)
			if past {
				simd.StreamFence()
			}
			if dst[0] != poison || dst[len(dst)-1] != poison {
				t.Fatalf("%v by %v, %d to %d: written outside", s, order, lo, hi)
			}
			for i := lo; i < hi; i++ {
				at, in := l.At(i)
				want := l.Fill
				if in {
					want = x[at]
				}
				if got := dst[1+i-lo]; got != want {
					t.Fatalf("%v by %v, %d to %d: element %d is %#x, not %#x", s, order, lo, hi, i, got, want)
				}
			}
		}
	}
	if turned == 0 {
		t.Fatal("no array was transposed")
	}
}
