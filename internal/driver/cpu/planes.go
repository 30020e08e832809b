package cpu

import (
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// planesLimits are the limits of copies that interleave planes, measured on 2 cores of an Intel Xeon with AVX-512, 2026-11-30 (docs/measurements/cpu.md).
var planesLimits = struct{ places, piece int }{
	places: 256,      // bytes of a plane, at least
	piece:  32 << 10, // bytes of a plane in a piece of work
}

// planesOf returns boxes of a layout that interleaves a few planes, such as the colours of a picture, or divides elements into planes; or nil.
func planesOf(l *op.Layout, size int) *boxes {
	if !simd.HasPlanes(size) || l.Windowed() {
		return nil
	}
	dims, first := boxDims(l)
	if first <= 0 {
		return nil
	}
	b := &boxes{direct: true, size: size, high: 1, across: 1, down: 1, inner: 1}
	var places, k int
	switch {
	case dims[0].src == dims[first].n && dims[first].n <= simd.PlanesMost: // the places are the rows of the box, and the planes are the columns
		b.split, k, places, b.planes, b.pitch = true, first, dims[0].n, dims[first].n, dims[first].dst
		b.wide, b.total = b.planes, places
		b.rows, b.cols = dims[:1], dims[first:first+1]
	case first == 1:
		k, places, b.planes, b.pitch = 1, dims[1].n, dims[0].n, dims[0].src
		b.rows, b.cols, b.total = dims[:1], dims[1:2], 1
	}
	if b.planes < 2 || b.planes > simd.PlanesMost || places*size < planesLimits.places {
		return nil
	}
	b.outer = append(append([]dim(nil), dims[1:k]...), dims[k+1:]...)
	piece, least := min(places, planesLimits.piece/size), 4*line/size
	count := (places-least)/piece + 1
	if b.split {
		b.high, b.across = piece, count
	} else {
		b.wide, b.down = piece, count
	}
	b.countBoxes()
	return b
}

// copyPlanes copies a part of some planes. The elements of the first place are at dst and src. n is the number of columns of the box.
func (b *boxes) copyPlanes(dst, src unsafe.Pointer, first, n int) {
	if b.split {
		dst, src = unsafe.Add(dst, first*b.size), unsafe.Add(src, first*b.size*b.planes)
		n = b.rowsOf(first)
	}
	simd.MixPlanes(dst, src, b.size, n, b.planes, b.pitch, b.split)
}
