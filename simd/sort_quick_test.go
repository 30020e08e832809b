//go:build amd64 && !noasm

package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
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
