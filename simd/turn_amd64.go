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

// The strips of TransposeStrips. A strip of 16 columns reads a cache line or two of each row.
const (
	// StripRows is the smallest number of rows for TransposeStrips.
	StripRows = 16
	// StripAhead is the number of offsets after those of the rows for TransposeStrips, for prefetches.
	StripAhead = 16
)

// stripKernels are kernels that transpose a strip of columns.
type stripKernels struct {
	wide, half, narrow func(dst, x *uint32, offs *int, ds, ahead, rows int) // 16, 8 and 4 columns
	columns            func(dst, x *uint32, offs, cols *int, ahead, rows int)
}

var (
	stripsAVX2   = stripKernels{strip16AVX2, strip8AVX2, strip4AVX2, stripColumnsAVX2}
	stripsAVX512 = stripKernels{strip16AVX512, strip8AVX2, strip4AVX512, stripColumnsAVX512}
)

// TransposeStrips sets row j of dst to column j of a matrix of at least StripRows rows and 4 columns. Row i of the matrix is offs[i] bytes
// after x; StripAhead more offsets follow. The rows of dst are ds elements apart. It transposes strips of columns, and prefetches rows if
// ahead is true. It needs HasTurn.
func TransposeStrips(dst, x *uint32, offs []int, ds, cols int, ahead bool) {
	k, rows, bytes := stripsOf(active), len(offs)-StripAhead, aheadBytes(ahead)
	for j := 0; j < cols; {
		kernel, width := k.wide, 16
		switch n := cols - j; {
		case n > 8 && cols >= 16: // with n < 16, the strip overlaps the one before
		case n > 4 && cols >= 8:
			kernel, width = k.half, 8
		default:
			kernel, width = k.narrow, 4
		}
		j = min(j, cols-width)
		kernel(word(dst, j*ds), word(x, j), &offs[0], 4*ds, bytes, rows)
		j += width
	}
}

// TransposeColumns is TransposeStrips for at least 16 columns, which may be anywhere in dst: column j is cols[j] bytes after it.
func TransposeColumns(dst, x *uint32, offs, cols []int, ahead bool) {
	k, rows := stripsOf(active), len(offs)-StripAhead
	for j := 0; j < len(cols); j += 16 {
		j := min(j, len(cols)-16)
		k.columns(dst, word(x, j), &offs[0], &cols[j], aheadBytes(ahead), rows)
	}
}

// stripsOf returns the kernels of a level, which is at least AVX2.
func stripsOf(l Level) *stripKernels {
	if l >= AVX512 {
		return &stripsAVX512
	}
	return &stripsAVX2
}

// aheadBytes returns the argument of kernels for rows that are prefetched.
func aheadBytes(ahead bool) int {
	if ahead {
		return 8 * StripAhead
	}
	return 0
}
