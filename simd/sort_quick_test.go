//go:build amd64 && !noasm

package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestSortUnfavourable sorts runs of keys by partitions until the bound of the depth is reached.
func TestSortUnfavourable(t *testing.T) {
	sortLevels(func(l Level) {
		s := new(quickSort)
		for depth := 0; depth < 6 && sortKernel != nil; depth++ {
			keys := make([]uint32, 5000)
			for i := range keys {
				keys[i] = rand.Uint32() >> (rand.Uint32() % 32)
			}
			want := slices.Sorted(slices.Values(keys))
			s.sort(keys, keys, s.room(len(keys)), depth)
			if !slices.Equal(keys, want) {
				t.Fatalf("%v, depth %d: not sorted", l, depth)
			}
		}
	})
}

// sortLevels runs f with the kernels of each level of this machine.
func sortLevels(f func(l Level)) {
	defer func(k *sortKernels) { sortKernel = k }(sortKernel)
	for _, l := range Supported() {
		sortKernel = sortKernelsOf(l)
		f(l)
	}
}

// TestSortEqual sorts rows with few different elements, some with one more element that no sample has, with zeros of both signs or with NaNs.
func TestSortEqual(t *testing.T) {
	r := testutil.Rand(t)
	sortLevels(func(l Level) {
		for i := range 200 {
			n := 1 + r.IntN(12_000)
			few := make([]float32, 1+r.IntN(20))
			for i := range few {
				few[i] = float32(r.NormFloat64())
			}
			if i%4 == 0 {
				few[0], few[len(few)-1] = 0, float32(math.Copysign(0, -1))
			}
			if i%5 == 0 {
				few[len(few)/2] = float32(math.NaN())
			}
			x := make([]float32, n)
			for i := range x {
				x[i] = few[r.IntN(len(few))]
			}
			if i%3 == 0 {
				x[r.IntN(n)] = 0.25
			}
			sortCase(t, nil, 1, n, i%2 == 0, func(i int) float32 { return x[i] }, compareFloats)
			sortCase(t, nil, 1, n, i%2 == 0, func(i int) int32 { return int32(math.Float32bits(x[i])) }, compareOrdered[int32])
		}
	})
}

// TestSplit compares the kernel that divides keys with a loop, for all numbers of keys of a few vectors.
func TestSplit(t *testing.T) {
	r := testutil.Rand(t)
	sortLevels(func(l Level) {
		if sortKernel == nil || sortKernel.split == nil {
			return
		}
		for n := 1; n < 200; n++ {
			src := make([]uint32, n)
			for i := range src {
				src[i] = r.Uint32()
			}
			pivot := src[r.IntN(n)]
			for _, invert := range []uint32{0, math.MaxUint32} {
				var stay, leave []uint32
				for _, key := range src {
					if (key <= pivot) == (invert == 0) {
						stay = append(stay, key)
					} else {
						leave = append(leave, key)
					}
				}
				keep, move := append(slices.Clone(src), 1, 2, 3), make([]uint32, n+3)
				copy(move[n:], []uint32{1, 2, 3})
				k := sortKernel.split(&keep[0], &move[0], &keep[0], n, pivot, invert)
				if !slices.Equal(keep[:k], stay) || !slices.Equal(move[:n-k], leave) {
					t.Fatalf("%v, %d keys: %v and %v, not %v and %v", l, n, keep[:k], move[:n-k], stay, leave)
				}
				if want := []uint32{1, 2, 3}; !slices.Equal(keep[n:], want) || !slices.Equal(move[n:], want) {
					t.Fatalf("%v, %d keys: written behind the arrays", l, n)
				}
			}
		}
	})
}

// TestInward divides keys in place, also with pivots that leave one part empty, and more keys than one call of the kernel takes.
func TestInward(t *testing.T) {
	r := testutil.Rand(t)
	sortLevels(func(l Level) {
		if sortKernel == nil || sortKernel.inward == nil {
			return
		}
		s := new(quickSort)
		for i := range 400 {
			n := 3*sortGroup + r.IntN(2000)
			if i%50 == 0 {
				n += sortCall + r.IntN(3*sortCall)
			}
			all := make([]uint32, n+16)
			for i := range all {
				all[i] = r.Uint32() >> (r.Uint32() % 32)
			}
			if i%7 == 0 {
				slices.Sort(all[:n])
			}
			pivot := [4]uint32{0, math.MaxUint32, all[r.IntN(n)], 1 << r.IntN(32)}[r.IntN(4)]
			keys, behind, want := all[:n], slices.Clone(all[n:]), slices.Sorted(slices.Values(all[:n]))
			k := s.inward(keys, pivot)
			if k > 0 && slices.Max(keys[:k]) > pivot || k < n && slices.Min(keys[k:]) <= pivot {
				t.Fatalf("%v, %d keys: %d are not those up to %d", l, n, k, pivot)
			}
			if slices.Sort(keys); !slices.Equal(keys, want) || !slices.Equal(all[n:], behind) {
				t.Fatalf("%v, %d keys: other keys, or written behind the array", l, n)
			}
		}
	})
}

// TestNetworks sorts every number of keys that a network with masks takes.
func TestNetworks(t *testing.T) {
	sortLevels(func(l Level) {
		for k, network := range sortKernel.maskedNetworks() {
			least := 1
			if k > 0 {
				least = 32<<k + 1
			}
			for n := least; n <= 64<<k; n++ {
				src, dst := make([]uint32, n), make([]uint32, n+16)
				for i := range src {
					src[i] = rand.Uint32() >> (rand.Uint32() % 32)
				}
				network(&dst[0], &src[0], n)
				if want := slices.Sorted(slices.Values(src)); !slices.Equal(dst[:n], want) || slices.Max(dst[n:]) > 0 {
					t.Fatalf("%v, %d keys: not sorted", l, n)
				}
			}
		}
	})
}

// maskedNetworks returns the networks with masks, if there are any.
func (k *sortKernels) maskedNetworks() []func(dst, src *uint32, n int) {
	if k == nil || k.masked[0] == nil {
		return nil
	}
	return k.masked[:]
}
