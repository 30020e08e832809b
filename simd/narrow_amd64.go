//go:build amd64 && !noasm

package simd

import "unsafe"

// narrowBlocks is the largest number of blocks of 8 rows in a call, which the runtime cannot interrupt.
const narrowBlocks = 1 << 10

// Interleave sets dst[i*k+j] to element i of src[j], for j < k and i < n; k is 2 to 8. If there is no
// kernel for it, it does nothing and returns false.
func Interleave(dst *uint32, src *[8]*uint32, k, n int) bool {
	if active < AVX2 || k < 2 || k > narrowMost {
		return false
	}
	kernel, at := interleave4AVX2, *src
	if k > 4 {
		kernel = interleave8AVX2
	}
	for j := k; j < len(at); j++ {
		at[j] = at[k-1]
	}
	i := 0
	for blocks := (n - 1) / 8; blocks > 0; { // a kernel writes beyond its last row, so the last row is stored separately
		b := min(blocks, narrowBlocks)
		kernel(word(dst, i*k), &at, k, b)
		for j := range at {
			at[j] = word(at[j], 8*b)
		}
		i, blocks = i+8*b, blocks-b
	}
	for ; i < n; i++ {
		for j, p := range src[:k] {
			*word(dst, i*k+j) = *word(p, i)
		}
	}
	return true
}

// Deinterleave sets element i of dst[j] to x[i*step+j], for j < k and i < n; k is 2 to 8. If there is no
// kernel for it, it does nothing and returns false.
func Deinterleave(dst *[8]*uint32, x *uint32, k, step, n int) bool {
	if active < AVX2 || k < 2 || k > narrowMost || step < k {
		return false
	}
	kernel, at := deinterleave4AVX2, *dst
	if k > 4 {
		kernel = deinterleave8AVX2
	}
	for j := k; j < len(at); j++ {
		at[j] = at[k-1]
	}
	i := 0
	for blocks := (n - 1) / 8; blocks > 0; { // of the last row, k elements are read
		b := min(blocks, narrowBlocks)
		kernel(&at, word(x, i*step), step, b)
		for j := range at {
			at[j] = word(at[j], 8*b)
		}
		i, blocks = i+8*b, blocks-b
	}
	for ; i < n; i++ {
		for j, p := range dst[:k] {
			*word(p, i) = *word(x, i*step+j)
		}
	}
	return true
}

// transposeNarrow is [TransposeTile] for a few rows or columns. If it would not be faster, it does nothing
// and returns false.
func transposeNarrow(dst, x *float32, ds, ss, rows, cols int) bool {
	var at [8]*uint32
	switch {
	case rows <= narrowMost && cols >= 16 && ds == rows:
		for i := range rows {
			at[i] = wordOf(step(x, i*ss))
		}
		return Interleave(wordOf(dst), &at, rows, cols)
	case cols <= narrowMost && rows >= 16:
		for j := range cols {
			at[j] = wordOf(step(dst, j*ds))
		}
		return Deinterleave(&at, wordOf(x), cols, ss, rows)
	}
	return false
}

// transposeTall is [TransposeTile] for sixteen rows at a time. It returns how many of the rows it has transposed. AVX-512
// has a kernel for sixteen rows with ordinary stores.
func transposeTall(dst, x *float32, ds, ss, rows, cols int) int {
	if active != AVX2 || cols < 4 {
		return 0
	}
	i := 0
	for ; i+16 <= rows; i += 16 {
		transpose16AVX2(step(dst, i), step(x, i*ss), ds, ss, cols/4)
		if j := cols - 4; cols%4 != 0 {
			transpose16AVX2(step(dst, j*ds+i), step(x, i*ss+j), ds, ss, 1)
		}
	}
	return i
}

// CopyPast copies the first elements of x to dst, with non-temporal stores for whole cache lines if there is a kernel for it.
// The caller calls [StreamFence] at the end.
func CopyPast(dst, x []uint32) {
	n := len(dst)
	if active < AVX2 || n < 32 {
		copy(dst, x[:n])
		return
	}
	head := int(-uintptr(unsafe.Pointer(&dst[0]))%64) / 4
	copy(dst[:head], x)
	whole := (n - head) &^ 15
	copyRowsStreamAVX2(&dst[head], &x[head], whole, 0, 0, 1)
	copy(dst[head+whole:], x[head+whole:n])
}

// repeatVectors is [Repeat] for the first elements, as far as kernels support them. It returns their
// number.
func repeatVectors(dst, x *uint32, n, step, count int) int {
	switch {
	case active < AVX2 || n < 2:
		return 0
	case n >= 8:
		repeatAVX2(dst, x, n, step, count)
		return count
	}
	count -= (7 + n) / n // a kernel stores whole vectors, so dst must have room for one after the last element
	if count <= 0 {
		return 0
	}
	repeatShortAVX2(dst, x, n, step, count)
	return count
}

// HasRows reports whether CopyRows may have a kernel.
const HasRows = true

// CopyRows copies count rows of n elements, which are ss elements apart in x, to rows ds elements apart in dst. If there is no
// kernel for it, it does nothing and returns false. With past, it uses non-temporal stores if the rows consist of whole vectors at
// aligned positions; the caller then calls [StreamFence].
func CopyRows(dst, x *uint32, n, ds, ss, count int, past bool) bool {
	if active < AVX2 || n < 8 {
		return false
	}
	kernel := copyRowsAVX2
	if past && n%8 == 0 && ds%8 == 0 && uintptr(unsafe.Pointer(dst))%32 == 0 {
		kernel = copyRowsStreamAVX2
	}
	for most := max(1, wordCall/n); ; count -= most {
		k := min(count, most)
		kernel(dst, x, n, ds, ss, k)
		if count <= most {
			return true
		}
		dst, x = word(dst, k*ds), word(x, k*ss)
	}
}

// JoinPieces writes count rows, which follow each other, to dst: each has one row of each part. It moves the parts behind these rows. If there is
// no kernel for it, it does nothing and returns false.
func JoinPieces(dst *byte, parts []JoinPart, count int) bool {
	row := 0
	for i := range parts {
		if active < AVX2 || parts[i].Bytes < 32 {
			return false
		}
		row += parts[i].Bytes
	}
	most := max(1, 4*wordCall/row)
	for at := 0; at < count; at += most { // computes no pointer beyond the last row
		to := (*byte)(unsafe.Add(unsafe.Pointer(dst), at*row))
		joinPiecesAVX2(to, (*byte)(unsafe.Pointer(&parts[0])), len(parts), min(count-at, most))
	}
	return true
}

var smallTiles = map[int][]smallTile{
	1: {{32, 16, turnTile1x32AVX2}, {16, 16, turnTile1x16AVX2}},
	2: {{16, 8, turnTile2x16AVX2}, {8, 8, turnTile2x8AVX2}},
	8: {{4, 4, turnTile8x4AVX2}},
}

// smallTilesOf returns the kernels for elements of size bytes, those for more rows first.
func smallTilesOf(size int) []smallTile {
	if active < AVX2 {
		return nil
	}
	return smallTiles[size]
}
