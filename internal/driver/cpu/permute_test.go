package cpu

import (
	"slices"
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

// TestPermutedSizes reads parts of permuted arrays of elements of one, two and four bytes. The last axes of some have few elements, which are copied
// together.
func TestPermutedSizes(t *testing.T) {
	r := testutil.Rand(t)
	extents := []int{1, 3, 8, 15, 16, 17, 32, 33, 70}
	turned, wide := 0, 0
	for i := range 300 {
		size, rank := 1<<r.IntN(3), 2+r.IntN(3)
		var s op.Shape
		for n := 1; len(s) < rank; n *= s[len(s)-1] {
			if s = append(s, extents[r.IntN(len(extents))]); n*s[len(s)-1] > 60_000 {
				s[len(s)-1] = 3
			}
		}
		order := r.Perm(rank)
		if i%2 == 0 {
			s, order = append(s, 2<<r.IntN(2)), append(order, rank)
		}
		l := permuted(s, order)
		from := stream{layout: &l, size: size}
		if from.widen() > 0 {
			turned++
		}
		if from.times > 1 {
			wide++
		}
		n := l.Size()
		x := make([]byte, n*size)
		for i := range x {
			x[i] = byte(r.Uint32())
		}
		for range 2 {
			lo := r.IntN(n)
			hi := lo + 1 + r.IntN(n-lo)
			if r.IntN(2) == 0 {
				lo, hi = 0, n
			}
			dst, want := make([]byte, (hi-lo+2)*size), make([]byte, (hi-lo+2)*size)
			for i := lo; i < hi; i++ {
				at, _ := l.At(i)
				copy(want[(1+i-lo)*size:][:size], x[at*size:])
			}
			from.bring(unsafe.Pointer(&dst[size]), unsafe.Pointer(&x[0]), lo, hi-lo, false)
			if !slices.Equal(dst, want) {
				t.Fatalf("%v by %v, elements of %d bytes, %d to %d: other elements", s, order, size, lo, hi)
			}
		}
	}
	if turned == 0 || wide == 0 {
		t.Fatalf("%d arrays were transposed and %d had elements that are copied together", turned, wide)
	}
}
