//go:build amd64 && !noasm

package simd

import (
	"math"
	"slices"
	"unsafe"
)

const (
	equalCall   = 8       // values of one call of the kernel
	equalValues = 16      // maximum number of different elements that are counted by comparisons
	equalSample = 64      // elements whose values are tried
	equalPart   = 4 << 10 // elements between checks of the sum of the counts. The first cache holds them.
)

// equals sorts row r by comparing each element with a few values, if a sample has no more and they are all that there are. It
// reports whether it sorted the row.
func (t *sortTask) equals(r int) bool {
	x := t.x[r*t.cols:][:t.cols]
	if sortKernel.count == nil || len(x) < sortLimits.count {
		return false
	}
	values, n := t.sample(x)
	if n == 0 {
		return false
	}
	var counts [equalValues]uint32
	for rest := x; len(rest) > 0; {
		part := rest[:min(equalPart, len(rest))]
		rest = rest[len(part):]
		if !countValues(&counts, &values, n, part) {
			return false
		}
	}
	dst := t.values[r*t.cols:]
	for i, v := range values[:n] {
		k := int(counts[i])
		repeatAll(dst[:k], v)
		dst = dst[k:]
	}
	return true
}

// sample returns the different values of a sample of x in the order of their keys, and their number. It returns 0 if they are too many,
// or if elements with different bits may have the same key.
func (t *sortTask) sample(x []uint32) (values [equalValues]uint32, n int) {
	step := len(x) / equalSample
	for i := range equalSample {
		v := x[i*step]
		if slices.Contains(values[:n], v) {
			continue
		}
		if f := math.Float32frombits(v); n == equalValues || t.key.float && (f == 0 && v != 0 || f != f) {
			return values, 0
		}
		values[n] = v
		n++
	}
	slices.SortFunc(values[:n], func(a, b uint32) int {
		if t.key.of(a) < t.key.of(b) {
			return -1
		}
		return 1
	})
	for i := n; i < equalValues; i++ {
		values[i] = values[0]
	}
	return values, n
}

// countValues adds how often each of n values occurs in x to counts. It reports whether x has no other values.
func countValues(counts, values *[equalValues]uint32, n int, x []uint32) bool {
	var more [equalValues]uint32
	vectors := len(x) &^ 15
	for at := 0; at < n && vectors > 0; at += equalCall {
		sortKernel.count((*uint32)(noescape(unsafe.Pointer(&more[at]))), (*uint32)(noescape(unsafe.Pointer(&values[at]))), &x[0], vectors)
	}
	for _, v := range x[vectors:] {
		if i := slices.Index(values[:n], v); i >= 0 {
			more[i]++
		}
	}
	sum := 0
	for i := range n {
		counts[i] += more[i]
		sum += int(more[i])
	}
	return sum == len(x)
}
