//go:build amd64 && !noasm && !wazero

package simd

import (
	"math"
	"unsafe"
)

// inRuns is the order for kernels that multiply one run of 32 elements after the other.
func inRuns(_ []int8, quads []int32, _ []float32, group int) {
	if group == 16 {
		packQuads(quads)
	} else {
		sumQuads(quads)
	}
}

// inPairs is the order for kernels that multiply half a run of 32 elements and half of the fourth run after
// it at once.
func inPairs(q []int8, quads []int32, _ []float32, _ int) {
	pair(q)
	sumQuads(quads)
}

// inPairsOfSizes is inPairs for kernels that read magnitudes instead of quads.
func inPairsOfSizes(q []int8, quads []int32, _ []float32, _ int) {
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

// inRowOrder changes nothing. It is the order for kernels that read the row in its own order but need a
// multiple of columnSuper elements.
func inRowOrder([]int8, []int32, []float32, int) {}

// inLanes is the order for kernels that multiply four groups of 32 at once, one in each 128-bit lane of a
// vector. For each 128 elements it stores the first sixteen elements of each group, then the last sixteen of
// each. It replaces their 32 quads by sixteen sums, four for each group, and by the scale of each group, four
// times.
func inLanes(q []int8, quads []int32, scales []float32, _ int) {
	for i := 0; i+128 <= len(q); i += 128 {
		x, w := *(*[128]int8)(q[i:]), *(*[32]int32)(quads[i/4:])
		y, v := (*[128]int8)(q[i:]), (*[32]int32)(quads[i/4:])
		for l := range 4 {
			copy(y[16*l:][:16], x[32*l:])
			copy(y[64+16*l:][:16], x[32*l+16:])
			for k := range 4 {
				v[4*l+k] = w[8*l+k] + w[8*l+4+k]
				v[16+4*l+k] = int32(math.Float32bits(scales[i/32+l]))
			}
		}
	}
}

// inEighths is the order for kernels of formats whose groups of sixteen elements have their first eight codes in the lower halves of
// bytes. For each 128 elements it stores the first eight elements of each sixteen, then the last eight of each. It replaces their quads
// like inLanes, but two of the four sums in a lane are for each sixteen elements.
func inEighths(q []int8, quads []int32, scales []float32, _ int) {
	for i := 0; i+128 <= len(q); i += 128 {
		x, w := *(*[128]int8)(q[i:]), *(*[32]int32)(quads[i/4:])
		y, v := (*[128]int8)(q[i:]), (*[32]int32)(quads[i/4:])
		for g := range 8 {
			copy(y[8*g:][:8], x[16*g:])
			copy(y[64+8*g:][:8], x[16*g+8:])
			for k := range 2 {
				v[2*g+k] = w[4*g+k] + w[4*g+2+k]
				v[16+2*g+k] = int32(math.Float32bits(scales[i/32+g/2]))
			}
		}
	}
}

// inChunks is the order for kernels that multiply 64 elements in each 128-bit lane of a vector. It stores the
// first sixteen elements of each lane, then the next sixteen of each, and so on. It replaces the first sixteen
// quads of columnSuper elements by their eight scales, each twice.
func inChunks(q []int8, quads []int32, scales []float32, _ int) {
	for i := 0; i+columnSuper <= len(q); i += columnSuper {
		x := *(*[columnSuper]int8)(q[i:])
		for k := range 16 {
			copy(q[i+16*k:][:16], x[64*(k%4)+16*(k/4):])
			quads[i/4+k] = int32(math.Float32bits(scales[i/32+k/2]))
		}
	}
}

// inHalves is the order for kernels whose vectors hold a run of 32 elements and the fourth run after it. The codes of the second and
// fourth vector are multiplied by four.
func inHalves(q []int8, quads []int32, scales []float32, _ int) {
	placeRuns(q, quads, scales, [8]uint8{0, 4, 1, 5, 2, 6, 3, 7}, 4)
}

// withDigits is the order for kernels of TQ1_0. Vector n has, in the first two lanes, run n; in the third lane half of run 5, or of run
// 6 from vector 2 on; and in the fourth lane half of run 4, or of run 7. The codes of the second and fourth vector are multiplied by
// four. It replaces the first 32 quads of columnSuper elements by sums and scales like placeRuns.
func withDigits(q []int8, quads []int32, scales []float32, _ int) {
	for i := 0; i+columnSuper <= len(q); i += columnSuper {
		x, v := *(*[columnSuper]int8)(q[i:]), quads[i/4:][:columnSuper/4]
		sumQuads(v)
		sums := *(*[8]int32)(v)
		clear(v[:16])
		for n := range 4 {
			late := n / 2
			runs := [4]int{n, n, 5 + late, 4 + 3*late} // of the lanes
			copy(q[i+64*n:][:32], x[32*n:])
			copy(q[i+64*n+32:][:16], x[160+16*n:])
			copy(q[i+64*n+48:][:16], x[32*runs[3]+n%2*16:])
			for lane, run := range runs {
				scale := scales[i/32+run]
				if n%2 > 0 {
					scale /= 4
				}
				v[16+4*lane+n] = int32(math.Float32bits(scale))
			}
			v[n] = sums[n] * (1 + 3*int32(n%2))
		}
		v[8], v[10], v[12], v[14] = sums[5], sums[6], sums[4], sums[7]
	}
}

// placeRuns stores the runs of each columnSuper elements in the given order, two in each of four vectors. It
// replaces their first sixteen quads by the sums of the four runs in lower halves, four zeros, the sums of the
// four runs in upper halves, and four zeros. It replaces the next sixteen quads by the scales of the runs in
// lower halves, twice, and the scales of the runs in upper halves, twice. It multiplies the sums of the second and fourth vector
// by times and divides their scales by it.
func placeRuns(q []int8, quads []int32, scales []float32, order [8]uint8, times int32) {
	for i := 0; i+columnSuper <= len(q); i += columnSuper {
		x, v := *(*[columnSuper]int8)(q[i:]), quads[i/4:][:columnSuper/4]
		sumQuads(v)
		sums := *(*[8]int32)(v)
		for k, run := range order {
			copy(q[i+32*k:][:32], x[32*int(run):])
			at, scale := k%2*8+k/2, scales[i/32+int(run)]
			if k/2%2 > 0 {
				sums[run] *= times
				scale /= float32(times)
			}
			v[at], v[at+4] = sums[run], 0
			s := int32(math.Float32bits(scale))
			v[16+at], v[20+at] = s, s
		}
	}
}
