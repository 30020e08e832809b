//go:build amd64 && !noasm

package simd

// HasTurn reports whether there are kernels for TurnRows and JoinLines.
func HasTurn() bool { return active >= AVX2 }

// HasJoinRows reports whether there are kernels for TurnGroups and JoinRows.
func HasJoinRows() bool { return active >= AVX512 }

// TurnRows transposes a matrix of 16 rows for each group. Row i is offs[i] bytes after x. Column j of group k becomes 16 elements from
// k·gap+16j on of dst, which is aligned to cache lines; gap is at least 16·cols. It prefetches the elements that are ahead columns after
// these. It needs HasTurn.
func TurnRows(dst, x *uint32, offs []int, gap, ahead, cols int) {
	groups := len(offs) / 16
	if cols < 16 {
		turnFew(dst, x, offs[:16*groups], gap, cols)
		return
	}
	n := cols / 16
	for most := max(1, wordCall/(16*cols)); groups > 0; groups -= most {
		some := min(groups, most)
		turnRowsAVX2(dst, x, &offs[0], 4*(gap-256*n), 4*ahead, some, n)
		if cols%16 > 0 {
			turnRowsAVX2(word(dst, 16*(cols-16)), word(x, cols-16), &offs[0], 4*(gap-256), 0, some, 1)
		}
		if some < groups {
			dst, offs = word(dst, some*gap), offs[16*some:]
		}
	}
}

// turnFew is TurnRows without a kernel.
func turnFew(dst, x *uint32, offs []int, gap, cols int) {
	for i, o := range offs {
		for j := range cols {
			*word(dst, i/16*gap+16*j+i%16) = *word(x, o/4+j)
		}
	}
}

// TurnGroups is TurnRows with AVX-512. dst is aligned to cache lines. It needs HasJoinRows.
func TurnGroups(dst, x *uint32, offs []int, gap, ahead, cols int) {
	if cols < 4 {
		turnFew(dst, x, offs[:len(offs)&^15], gap, cols)
		return
	}
	const ds = 16
	n, rest := cols/16, cols%16/4
	for most := max(1, wordCall/(16*cols)); len(offs) >= 16; {
		some := min(len(offs)/16, most)
		if n > 0 {
			turnRows16AVX512(dst, x, &offs[0], 4*ds, 4*(gap-16*n*ds), 4*ahead, some, n)
		}
		if j := 16 * n; rest > 0 {
			turnRows4AVX512(word(dst, j*ds), word(x, j), &offs[0], 4*ds, 4*(gap-4*rest*ds), 0, some, rest)
		}
		if j := cols - 4; cols%4 > 0 { // these overlap the columns before
			turnRows4AVX512(word(dst, j*ds), word(x, j), &offs[0], 4*ds, 4*(gap-4*ds), 0, some, 1)
		}
		if offs = offs[16*some:]; len(offs) >= 16 {
			dst = word(dst, some*gap)
		}
	}
}

// joinParts calls a kernel that joins lines for parts of the rows, because the runtime cannot interrupt a call.
func joinParts(kernel func(dst, x *uint32, ds, xs, ss, lines, count int), dst, x *uint32, ds, xs, ss, lines, count int) {
	for most := max(1, wordCall/(16*lines)); count > most; count -= most {
		kernel(dst, x, ds, xs, ss, lines, most)
		dst, x = word(dst, most*ds), word(x, most*xs)
	}
	kernel(dst, x, ds, xs, ss, lines, count)
}

// JoinLines writes count rows to dst, which are ds elements apart. A row has lines parts of 16 elements, which are ss elements
// apart in x; the first part of a row is xs elements after that of the row before it. x is aligned to cache lines, xs and ss are
// multiples of 16. It needs HasTurn.
func JoinLines(dst, x *uint32, ds, xs, ss, lines, count int) {
	joinParts(joinLinesAVX2, dst, x, ds, xs, ss, lines, count)
}

// JoinLinesPast is JoinLines with non-temporal stores. dst is aligned to cache lines, and ds is a multiple of 16. The caller calls
// [StreamFence] at the end.
func JoinLinesPast(dst, x *uint32, ds, xs, ss, lines, count int) {
	joinParts(joinLinesStreamAVX2, dst, x, ds, xs, ss, lines, count)
}

// JoinLinesSkew is JoinLinesPast for any dst and ds. It writes the same number of elements of each row, but from the first whole cache line
// on. Therefore the rows in x have another part. buffer has room for them.
func JoinLinesSkew(dst, x *uint32, ds, xs, ss, lines, count int, buffer *uint32) {
	joinLinesSkewAVX2(dst, x, ds, xs, ss, lines, count, buffer)
}

// JoinRows writes count rows to dst, which are ds elements apart, by whole cache lines. Elements i to i+15 of a row, for multiples i of 16,
// are ss·i/16 elements after the first one in x; the first part of a row is xs elements after that of the row before it. A row has have
// elements in x. If lead is the number of elements before its first whole cache line, it writes elements lead to high+lead of those. It also
// writes the elements before lead if first is true; then have is at least 16, or rows begin with a cache line. With past, it uses
// non-temporal stores for whole lines, and the caller calls [StreamFence] at the end. x is aligned to cache lines, xs and ss are multiples
// of 16, and x has a part more than the rows. It needs HasJoinRows.
func JoinRows(dst, x *uint32, ds, xs, ss int, first bool, high, have, count int, past bool) {
	kernel, from := joinLinesAVX512, 16
	if past {
		kernel = joinLinesStreamAVX512
	}
	if first {
		from = 0
	}
	for most := max(1, wordCall/have); count > 0; count -= most {
		kernel(dst, x, ds, xs, ss, from, high, have, min(count, most))
		if count > most {
			dst, x = word(dst, most*ds), word(x, most*xs)
		}
	}
}
