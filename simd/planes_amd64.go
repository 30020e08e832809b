//go:build amd64 && !noasm

package simd

import "unsafe"

// mixPlanes are the kernels for 2 to 4 planes: those that move bytes, and those that move words.
var mixPlanes = [PlanesMost + 1][2]func(dst, x, tables *byte, ds, dstep, xs, xstep, steps int){
	2: {mixBytes2AVX512, mixWords2AVX512},
	3: {mixBytes3AVX512, mixWords3AVX512},
	4: {mixBytes4AVX512, mixWords4AVX512},
}

// planesTables are the tables for 1<<i bytes, the number of planes, and both directions.
var planesTables = tablesOfPlanes()

func tablesOfPlanes() (t [4][PlanesMost + 1][2][2*PlanesMost*lineBytes + 8*PlanesMost]byte) {
	for k := range t {
		size := 1 << k
		for planes := 2; planes <= PlanesMost; planes++ {
			for direction := range 2 {
				fillPlanes(t[k][planes][direction][:], size, planes, direction == 1)
			}
		}
	}
	return t
}

// fillPlanes sets a table for elements of size bytes. The kernels for words have indices of words.
func fillPlanes(t []byte, size, planes int, split bool) {
	unit := 1
	if size >= 4 {
		unit = 4
	}
	for at := 0; at < planes*lineBytes; at += unit { // a place in the interleaved elements
		e := at / size
		mixed, plane, place := at, e%planes, e/planes*size+at%size
		in, from, out, to := plane, place, mixed/lineBytes, mixed%lineBytes
		if split {
			in, from, out, to = mixed/lineBytes, mixed%lineBytes, plane, place
		}
		index := from/unit + in%2*lineBytes/unit
		t[2*lineBytes*out+in/2*lineBytes+to] = byte(index)
		if in >= 2 {
			lane := to / unit
			t[2*lineBytes*planes+8*out+lane/8] |= 1 << (lane % 8)
		}
	}
}

// HasPlanes reports whether there are kernels for MixPlanes of elements of size bytes.
func HasPlanes(size int) bool { return HasLines(1) || size >= 4 && HasLines(size) }

// MixPlanes interleaves n elements of size bytes of some planes, 2 to PlanesMost: element i of plane k, at pitch·k+i in x, becomes element planes·i+k of dst.
// If split is true, it does the reverse. n is at least 64/size, and pitch is in elements. It needs HasPlanes.
func MixPlanes(dst, x unsafe.Pointer, size, n, planes, pitch int, split bool) {
	k, kind, direction := 0, 0, 0
	for 1<<k < size {
		k++
	}
	if size >= 4 {
		kind = 1
	}
	ds, dstep, xs, xstep := lineBytes, planes*lineBytes, pitch*size, lineBytes
	if split {
		direction = 1
		ds, dstep, xs, xstep = xs, xstep, ds, dstep
	}
	kernel, table := mixPlanes[planes][kind], &planesTables[k][planes][direction][0]
	steps := n * size / lineBytes
	for at := 0; at < steps; at += planesCall { // the runtime cannot interrupt a call
		kernel((*byte)(unsafe.Add(dst, at*dstep)), (*byte)(unsafe.Add(x, at*xstep)), table, ds, dstep, xs, xstep, min(planesCall, steps-at))
	}
	if rest := n*size - lineBytes; n*size%lineBytes > 0 { // the last step overlaps the one before
		kernel((*byte)(unsafe.Add(dst, rest*(dstep/lineBytes))), (*byte)(unsafe.Add(x, rest*(xstep/lineBytes))), table, ds, dstep, xs, xstep, 1)
	}
}

// planesCall is the largest number of steps of a call.
const planesCall = 1 << 10
