//go:build amd64 && !noasm && !wazero

package simd

import "unsafe"

// inRuns is the order of kernels that multiply 32 elements of a row, and then the next ones.
func inRuns(_ []int8, quads []int32, group int) {
	if group == 16 {
		packQuads(quads)
	} else {
		sumQuads(quads)
	}
}

// inPairs is the order of kernels that multiply half a run of 32 elements and half of the fourth run behind it at
// once.
func inPairs(q []int8, quads []int32, _ int) {
	pair(q)
	sumQuads(quads)
}

// inPairsOfSizes is inPairs for kernels that want magnitudes instead of quads.
func inPairsOfSizes(q []int8, quads []int32, _ int) {
	pair(q)
	sizes := unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(quads))), len(q))
	for i, v := range q {
		sizes[i] = max(v, -v)
	}
}

func pair(q []int8) {
	for i := 0; i+columnSuper <= len(q); i += columnSuper {
		x := *(*[columnSuper]int8)(q[i:])
		y := (*[columnSuper]int8)(q[i:])
		for n := range 8 {
			from, to := n/2*32+n%2*16, 32*n
			*(*[16]int8)(y[to:]) = *(*[16]int8)(x[from:])
			*(*[16]int8)(y[to+16:]) = *(*[16]int8)(x[from+128:])
		}
	}
}

// sumQuads writes the sums of each group of 32 to the beginning of the memory of quads.
func sumQuads(quads []int32) {
	for i := 0; i+8 <= len(quads); i += 8 {
		q := (*[8]int32)(quads[i:])
		quads[i/8] = q[0] + q[1] + q[2] + q[3] + q[4] + q[5] + q[6] + q[7]
	}
}

// packQuads packs quads as 16 bits each, to the first half of their memory: first those of the first
// sixteen elements of two runs of 32, then those of the second sixteen elements of both.
func packQuads(quads []int32) {
	to := unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(quads))), 2*len(quads))
	for i := 0; i+16 <= len(quads); i += 16 {
		q := *(*[16]int32)(quads[i:])
		y := (*[16]int16)(to[i:])
		for j := range 4 {
			y[j], y[4+j], y[8+j], y[12+j] = int16(q[j]), int16(q[8+j]), int16(q[4+j]), int16(q[12+j])
		}
	}
}
