package simd

import "slices"

// A RowFold sets dst[i] to the combination of the cols elements of 32 bits in row i of x, in any order. rows and cols are at
// least 1. The runtime cannot preempt a kernel in assembly, so a call should take at most about 65,536 elements.
type RowFold func(dst, x *uint32, rows, cols int)

// wordFolds are the kernels of one level over words. n is a positive multiple of 8. A kernel is nil
// if the level does not have it.
type wordFolds struct {
	fold              map[string]RowFold                                // by type and name of the elementwise kernel that combines two elements
	zeros, floatZeros RowFold                                           // minus the number of elements that are 0; floatZeros includes -0
	index             func(x *uint32, n int, v uint32) int              // the first index of v in x, or n
	bytes             func(x *uint8, n int) int                         // the number of elements that are not 0; n is a positive multiple of 32
	scan              func(dst, x *uint32, n int, before uint32) uint32 // see CumsumWords
	scanShortRows     func(dst, x *uint32, rows, cols int)              // cumulative sums of rows of at most 8 elements; uses 8 elements from the first one of each row on, and dst must not overlap x
}

var wordFold = wordFoldsOf(active)

// wordCall is the largest number of elements of one call of a kernel, which the runtime cannot interrupt.
const wordCall = 1 << 16

// FoldRows returns the kernel that combines the elements of rows by the elementwise kernel of the given name ("i32.add",
// "u32.maximum", "f32.mul"; see [Map]), or nil if there is none.
func FoldRows(name string) RowFold { return wordFold.fold[name] }

// ZerosOfRows returns the kernel for minus the number of elements that are 0, or nil. With floats, -0 is 0.
func ZerosOfRows(floats bool) RowFold {
	if floats {
		return wordFold.floatZeros
	}
	return wordFold.zeros
}

// CumsumWords sets dst[i] to before plus the sum of x[:i+1], modulo 2^32, for each element of x. It
// returns the last sum. dst may be x.
func CumsumWords(dst, x []uint32, before uint32) uint32 {
	dst = dst[:len(x)]
	for wordFold.scan != nil && len(x) > 0 {
		n := min(len(x), wordCall)
		before = wordFold.scan(&dst[0], &x[0], n, before)
		dst, x = dst[n:], x[n:]
	}
	for i, v := range x {
		before += v
		dst[i] = before
	}
	return before
}

// CumsumWordRows is CumsumWords from 0 on for each row of cols elements. It ignores the elements behind
// the last whole row. The runtime cannot interrupt it while rows are short, so it should take at most about 65,536 elements.
func CumsumWordRows(dst, x []uint32, cols int) {
	if n := (len(x) - 8) / max(1, cols); wordFold.scanShortRows != nil && cols <= 8 && cols > 1 && n > 0 && &dst[0] != &x[0] {
		wordFold.scanShortRows(&dst[0], &x[0], n, cols) // the other rows have fewer than 8 elements from their first one on
		dst, x = dst[n*cols:], x[n*cols:]
	}
	if cols <= shortRow {
		cumsumShortRows(dst, x, cols)
		return
	}
	for ; len(x) >= cols; dst, x = dst[cols:], x[cols:] {
		CumsumWords(dst[:cols], x[:cols], 0)
	}
}

// CountNonzero returns the number of elements that are not 0. With floats it counts -0 as 0.
func CountNonzero(x []uint32, floats bool) int {
	count, fold, shift := 0, ZerosOfRows(floats), 0
	if floats {
		shift = 1
	}
	for fold != nil && len(x) > 0 {
		n, zeros := min(len(x), wordCall), uint32(0)
		fold(&zeros, &x[0], 1, n)
		count += n + int(int32(zeros))
		x = x[n:]
	}
	for _, e := range x {
		e <<= shift
		count += int((e | -e) >> 31)
	}
	return count
}

// CountNonzeroBytes returns the number of elements that are not 0.
func CountNonzeroBytes(x []uint8) int {
	count := 0
	for wordFold.bytes != nil && len(x) >= 32 {
		n := min(len(x)&^31, 4*wordCall)
		count += wordFold.bytes(&x[0], n)
		x = x[n:]
	}
	for _, e := range x {
		count += int((uint32(e) + 255) >> 8)
	}
	return count
}

// IndexWord returns the first index of v in x, or -1.
func IndexWord(x []uint32, v uint32) int {
	at := 0
	for wordFold.index != nil && len(x)-at >= 8 {
		n := min((len(x)-at)&^7, wordCall)
		i := wordFold.index(&x[at], n, v)
		at += i
		if i < n {
			return at
		}
	}
	if i := slices.Index(x[at:], v); i >= 0 {
		return at + i
	}
	return -1
}
