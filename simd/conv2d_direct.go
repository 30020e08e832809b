package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/internal/workers"
)

// Convolutions with few windows, such as filters of images, are bound by
// reading and writing the images: a matrix of pixels would be many
// times as large. They are computed row by row. The rows of pixels that the
// window lies on stand in a ring, with zeros around them; every row is
// copied there once and then read from the first cache by all elements of the
// window.

// Limits of what is computed row by row.
const (
	directWindows = 4    // windows in a group; more share too little
	directTaps    = 1024 // elements of a window with all its channels
	directRing    = 1 << 18
)

// direct reports whether the convolution is one of these.
func (c *Conv2D) direct() bool {
	taps := c.C / c.Groups * c.KH * c.KW
	return c.StrideW == 1 && c.O/c.Groups <= directWindows && taps <= directTaps && c.ringFloats() <= directRing
}

// span returns how many rows of an image the window reaches over.
func (c *Conv2D) span() int { return (c.KH-1)*c.DilationH + 1 }

// pitch returns the distance between rows of the ring: an image with its
// padding, and what a vector may read beyond it.
func (c *Conv2D) pitch() int { return pad(c.W + 2*c.PadW) }

// ringFloats returns the size of the ring: as many rows as the window
// spans, of all channels of a group.
func (c *Conv2D) ringFloats() int {
	if c.span() > directRing || c.pitch() > directRing || c.C/c.Groups > directTaps {
		return directRing + 1
	}
	// No overflow: below 2^18 * 2^18 * 2^10.
	return int(min(int64(c.span())*int64(c.pitch())*int64(c.C/c.Groups), directRing+1))
}

func (j *gemmJob) runDirect(p *workers.Pool) {
	c := &j.window
	j.form, j.ks = formConv, gemmActive
	h, w := c.outSize()
	planes := c.N * c.Groups
	flops := 2 * float64(c.N) * float64(c.O) * float64(h) * float64(w) * float64(c.C/c.Groups*c.KH*c.KW)
	bytes := 4 * float64(planes) * (float64(c.C/c.Groups)*float64(c.H)*float64(c.W) + float64(c.O/c.Groups)*float64(h)*float64(w))
	parts := partsOf(p, max(2*flops/flopsPerNS, bytes/bytesPerNS))
	// A band begins by filling the ring.
	j.mParts, j.nParts = 1, max(1, min(ceilDiv(parts, planes), h/(4*c.span())))
	p.Do(planes*j.nParts, j)
}

// convPart computes one band of rows of the results of one group of channels
// of one image.
func (j *gemmJob) convPart(plane, band int) {
	c := &j.window
	h, w := c.outSize()
	channels, windows := c.C/c.Groups, c.O/c.Groups
	taps := channels * c.KH * c.KW
	x := c.X[plane*channels*c.H*c.W:]
	first := plane % c.Groups * windows

	sc := scratches.Get().(*scratch)
	span, pitch := c.span(), c.pitch()
	ringSize := channels * span * pitch
	const perInt = int(unsafe.Sizeof(int(0)) / 4)
	buf := sc.floats(ringSize + perInt*taps + 1)
	ring := buf[:ringSize]
	clear(ring)
	// The offsets stand behind the ring, which ends on a whole line.
	offsets := unsafe.Slice((*int)(unsafe.Pointer(unsafe.SliceData(buf[ringSize:]))), taps)

	y0, y1 := spread(h, j.nParts, band), spread(h, j.nParts, band+1)
	ready := y0*c.StrideH - c.PadH // the next row that the ring lacks
	for y := y0; y < y1; y++ {
		top := y*c.StrideH - c.PadH
		for ready = max(ready, top); ready < top+span; ready++ {
			for ch := range channels {
				line := ring[(ch*span+modulo(ready, span))*pitch:][c.PadW:][:c.W]
				if ready >= 0 && ready < c.H {
					copy(line, x[(ch*c.H+ready)*c.W:])
				} else {
					clear(line)
				}
			}
		}
		t := 0
		for ch := range channels {
			for i := range c.KH {
				line := (ch*span + modulo(top+i*c.DilationH, span)) * pitch
				for q := range c.KW {
					offsets[t] = 4 * (line + q*c.DilationW)
					t++
				}
			}
		}
		for o := range windows {
			start := float32(0)
			if c.Bias != nil {
				start = c.Bias[first+o]
			}
			weights := unsafe.SliceData(c.Weights[(first+o)*taps:])
			i := plane*windows + o
			row := c.Y[(i*h+y)*w:][:w:w]
			j.ks.convRow(&row[0], unsafe.SliceData(ring), unsafe.SliceData(offsets), weights, start, taps, w)
			if c.Epilogue != nil {
				c.Epilogue(row, i, y*w)
			}
		}
	}
	scratches.Put(sc)
}

// modulo is the remainder of a division that rounds down.
func modulo(a, n int) int {
	if a %= n; a < 0 {
		a += n
	}
	return a
}
