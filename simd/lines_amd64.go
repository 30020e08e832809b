//go:build amd64 && !noasm

package simd

import (
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

// linesKernels are kernels that transpose blocks of columns to cache lines.
type linesKernels struct {
	cols int // columns of a block
	turn func(dst, x *byte, offs, cols *int, fetch, ahead, groups, blocks int)
	edge func(dst, x *byte, offs, cols *int, memory *byte, blocks int)
	past func(dst, x *byte, offs, lines *int, memory *byte, fetch, groups, blocks int)
}

// linesOfSize are the kernels for elements of each size, those for more columns first.
var linesOfSize = [9][]linesKernels{
	1: {{16, turnLines1x16AVX512, edgeLines1x16AVX512, pastLines1x16AVX512}},
	2: {{16, turnLines2x16AVX512, edgeLines2x16AVX512, pastLines2x16AVX512}, {8, turnLines2x8AVX512, edgeLines2x8AVX512, pastLines2x8AVX512}},
	4: {{16, turnLines4x16AVX512, edgeLines4x16AVX512, pastLines4x16AVX512}, {4, turnLines4x4AVX512, edgeLines4x4AVX512, pastLines4x4AVX512}},
	8: {{8, turnLines8x8AVX512, edgeLines8x8AVX512, pastLines8x8AVX512}, {2, turnLines8x2AVX512, edgeLines8x2AVX512, pastLines8x2AVX512}},
}

// lineNumbers are the numbers from 0 on, in 1, 2, 4 and 8 bytes.
var lineNumbers = numbersOfLines()

func numbersOfLines() (t [9][2 * lineBytes]byte) {
	for size := 1; size <= 8; size *= 2 {
		for i := 0; i < len(t[size]); i += size {
			t[size][i] = byte(i / size)
		}
	}
	return t
}

// HasLines reports whether there are kernels for TransposeLines of elements of size bytes.
func HasLines(size int) bool {
	return active >= AVX512 && (size > 1 || hasVBMI)
}

var hasVBMI = cpuid.CPU.Supports(cpuid.AVX512VBMI)

// TransposeLines transposes columns of elements of size bytes: column j is at cols[j] bytes after dst. Row i is offs[i] bytes after x. There are at least 64
// bytes in a column, and 16 in a row. LinesAhead offsets follow those of the rows in offs. It stores whole cache lines, and prefetches rows if ahead is
// true. With past, it uses non-temporal stores, and the caller calls [StreamFence] at the end. It needs HasLines.
func TransposeLines(dst, x unsafe.Pointer, size int, offs, cols []int, m *LinesMemory, ahead, past bool) {
	kernels := linesOfSize[size]
	for j := 0; j < len(cols); {
		k, left := &kernels[0], len(cols)-j
		if left <= k.cols/2 || len(cols) < k.cols {
			k = &kernels[len(kernels)-1]
		}
		blocks := min(left, linesColumns(size, ahead)) / k.cols
		if blocks == 0 { // the last block overlaps the one before
			j, blocks = len(cols)-k.cols, 1
		}
		k.transpose(dst, unsafe.Add(x, j*size), size, offs, cols[j:j+blocks*k.cols], blocks, m, ahead, past)
		j += blocks * k.cols
	}
}

// transpose transposes blocks of columns.
func (k *linesKernels) transpose(dst, x unsafe.Pointer, size int, offs, cols []int, blocks int, m *LinesMemory, ahead, past bool) {
	high, rows, fetch := lineBytes/size, len(offs)-LinesAhead, 0
	groups := rows / high
	if ahead {
		fetch = 8 * max(high, linesFetch)
	}
	if past && groups > 2 && uintptr(dst)%uintptr(size) == 0 {
		k.transposePast((*byte)(dst), (*byte)(x), size, offs, cols, m, fetch, groups, blocks)
	} else {
		k.turn((*byte)(dst), (*byte)(x), &offs[0], &cols[0], fetch, linesAhead/max(linesLeast, len(cols)), groups, blocks)
	}
	if at := rows - high; rows%high > 0 { // the last group overlaps the one before
		k.turn((*byte)(unsafe.Add(dst, at*size)), (*byte)(x), &offs[at], &cols[0], 0, 0, 1, blocks)
	}
}

// transposePast transposes groups of rows with non-temporal stores.
func (k *linesKernels) transposePast(dst, x *byte, size int, offs, cols []int, m *LinesMemory, fetch, groups, blocks int) {
	memory := m.first()
	k.edge(dst, x, &offs[0], &cols[0], memory, blocks)
	beginLinesAVX512(dst, &lineNumbers[size][0], &cols[0], &m.lines[0], memory, len(cols))
	k.past(dst, x, &offs[lineBytes/size], &m.lines[0], memory, fetch, groups-1, blocks)
	endLinesAVX512((*byte)(unsafe.Add(unsafe.Pointer(dst), (groups-1)*lineBytes)), &cols[0], memory, len(cols))
}

// linesAhead is the distance of prefetches in the columns that are transposed together, in bytes of all of them.
const linesAhead = 8 << 10

// linesColumns returns the number of columns of elements of size bytes that are transposed together. Several blocks read whole cache lines of rows
// that are not in the first cache.
func linesColumns(size int, far bool) int {
	if far {
		return max(linesLeast, lineBytes/size)
	}
	return linesLeast
}
