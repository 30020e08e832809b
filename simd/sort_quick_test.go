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
			for n := 64*k + 1; n <= 64*(k+1); n++ {
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

// TestDivideElements compares the keys of elements and their number up to a pivot with a loop, for rows with and without -0 and NaN.
func TestDivideElements(t *testing.T) {
	r := testutil.Rand(t)
	negative, nan := math.Float32bits(float32(math.Copysign(0, -1))), math.Float32bits(float32(math.NaN()))
	sortLevels(func(l Level) {
		if sortKernel == nil || sortKernel.inward == nil {
			return
		}
		for i := range 300 {
			n := 64 + r.IntN(3000)
			if i%30 == 0 {
				n += sortCall
			}
			x, key := make([]uint32, n), keyer[float32](i%2 == 0)
			if i%3 == 0 {
				key = keyer[int32](i%2 == 0)
			}
			for i := range x {
				x[i] = math.Float32bits(float32(r.NormFloat64()))
			}
			some := [4]uint32{0, 1, negative, nan}[i%4]
			x[r.IntN(n)] = some
			s := &quickSort{key: key, x: x, values: make([]uint32, n+16)[:n]}
			want := make([]uint32, n)
			for i, b := range x {
				want[i] = key.of(b)
			}
			lows, special := s.divideElements()
			if lows > 0 && lows < n && slices.Max(s.values[:lows]) >= slices.Min(s.values[lows:]) {
				t.Fatalf("%v, %d elements: the first %d keys are not the least", l, n, lows)
			}
			slices.Sort(want)
			if slices.Sort(s.values); !slices.Equal(s.values, want) || slices.Max(s.values[n:n+16]) > 0 {
				t.Fatalf("%v, %d elements: other keys, or written behind the array", l, n)
			}
			if special != (key.float && some > 1) {
				t.Fatalf("%v, %d elements, one of bits %x: special is %v", l, n, some, special)
			}
		}
	})
}

// TestPivot compares the median of a sample with that of its sorted keys.
func TestPivot(t *testing.T) {
	r := testutil.Rand(t)
	sortLevels(func(l Level) {
		for i := 0; i < 100 && sortKernel != nil; i++ {
			keys, sample := make([]uint32, 2*sortSample+r.IntN(1000)), make([]uint32, sortSample)
			for i := range keys {
				keys[i] = r.Uint32()
			}
			for i := range sample {
				sample[i] = keys[(2*i+1)*(len(keys)/(2*sortSample))]
			}
			slices.Sort(sample)
			if pivot, equal := new(quickSort).pivot(keys); pivot != sample[sortSample/2] || equal {
				t.Fatalf("%v, %d keys: %d, not %d, or equal", l, len(keys), pivot, sample[sortSample/2])
			}
			for i := range keys {
				keys[i] = 5
			}
			if pivot, equal := new(quickSort).pivot(keys); pivot != 5 || !equal {
				t.Fatalf("%v, %d equal keys: %d, or not equal", l, len(keys), pivot)
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
