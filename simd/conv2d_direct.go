package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/internal/workers"
)

// directLimits are the limits of convolutions that are computed row by row, measured on 2 cores of an Intel Xeon
// with AVX-512, 2026-11-21 (go test -bench Conv2D ./simd).
var directLimits = struct{ windows, taps, ring int }{
	windows: 4,       // windows in a group; with more, matrix products are faster
	taps:    1024,    // elements of a window with all its channels
	ring:    1 << 18, // elements of the ring buffer
}

// Convolutions with few windows, such as filters of images, are bound by reading and writing the
// images: a matrix of pixels (im2col) would be many times as large. They are computed row by row. A
// ring buffer has the rows of pixels that the window covers, padded with zeros; every row is copied
// there once, and all elements of the window then read it from the first-level cache.

// direct reports whether the convolution is computed row by row.
func (c *Conv2D) direct() bool {
	taps := c.C / c.Groups * c.KH * c.KW
	return c.StrideW == 1 && c.O/c.Groups <= directLimits.windows && taps <= directLimits.taps && c.ringFloats() <= directLimits.ring
}

// span returns the number of rows of an image from the first to the last row of a window.
func (c *Conv2D) span() int { return (c.KH-1)*c.DilationH + 1 }

// pitch returns the distance between rows of the ring: a padded row of the image, plus the elements
// that a vector may read beyond it.
func (c *Conv2D) pitch() int { return pad(c.W + 2*c.PadW) }

// ringFloats returns the size of the ring: span rows of all channels of a group.
func (c *Conv2D) ringFloats() int {
	if c.span() > directLimits.ring || c.pitch() > directLimits.ring || c.C/c.Groups > directLimits.taps {
		return directLimits.ring + 1
	}
	// No overflow: below 2^18 * 2^18 * 2^10.
	return int(min(int64(c.span())*int64(c.pitch())*int64(c.C/c.Groups), int64(directLimits.ring)+1))
}

func (j *gemmJob) runDirect(p *workers.Pool) {
	c := &j.window
	j.form, j.ks = formConv, gemmActive()
	h, w := c.outSize()
	planes := c.N * c.Groups
	flops := 2 * float64(c.N) * float64(c.O) * float64(h) * float64(w) * float64(c.C/c.Groups*c.KH*c.KW)
	bytes := 4 * float64(planes) * (float64(c.C/c.Groups)*float64(c.H)*float64(c.W) + float64(c.O/c.Groups)*float64(h)*float64(w))
	parts := partsOf(p, max(2*flops/flopsPerNS, bytes/bytesPerNS))
	// Each band fills the ring first, so bands should not be too short.
	j.mParts, j.nParts = 1, max(1, min(ceilDiv(parts, planes), h/(4*c.span())))
	p.Do(planes*j.nParts, j)
}

// copyLine copies row y of all channels to the ring, zeros for a row beyond the image.
func (c *Conv2D) copyLine(ring, x []float32, y, channels, rows, pitch int) {
	for ch := range channels {
		line := ring[(ch*rows+modulo(y, rows))*pitch:][c.PadW:][:c.W]
		if y >= 0 && y < c.H {
			copy(line, x[(ch*c.H+y)*c.W:])
		} else {
			clear(line)
		}
	}
}

// ringOffsets sets the offsets of the pixels of n rows of results in the ring, in the order of the
// weights: by channels for one row, and by rows of pixels for two.
func (c *Conv2D) ringOffsets(offsets []int, top, n, channels, rows, pitch int) {
	t := 0
	offset := func(ch, i int) {
		line := (ch*rows + modulo(top+i*c.DilationH, rows)) * pitch
		for q := range c.KW {
			offsets[t] = 4 * (line + q*c.DilationW)
			t++
		}
	}
	if n == 1 {
		for ch := range channels {
			for i := range c.KH {
				offset(ch, i)
			}
		}
		return
	}
	for i := range c.KH + 1 {
		for ch := range channels {
			offset(ch, i)
		}
	}
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

	// Computing two rows at once shares their loads: all of their pixels except the first row of
	// the one and the last row of the other.
	pairs := j.ks.convPair != nil && c.StrideH == 1 && c.DilationH == 1
	together := 1
	if pairs {
		together = 2
	}
	outer, inner := channels*c.KW, channels*(c.KH-1)*c.KW

	rows, pitch := c.span()+together-1, c.pitch()
	ringSize := channels * rows * pitch
	pairWeights := 2 * taps // the number of weights of one window
	const perInt = int(unsafe.Sizeof(int(0)) / 4)
	sc := takeScratch(ringSize + perInt*(taps+outer) + windows*pairWeights + 1)
	buf := sc.data
	ring := buf[:ringSize]
	clear(ring)
	// The offsets come after the ring, whose size is a multiple of a cache line.
	offsets := unsafe.Slice((*int)(unsafe.Pointer(unsafe.SliceData(buf[ringSize:]))), taps+outer)
	paired := buf[ringSize+perInt*(taps+outer):]
	if pairs {
		for o := range windows {
			c.pairWeights(paired[o*pairWeights:][:pairWeights], c.Weights[(first+o)*taps:], channels)
		}
	}

	y0, y1 := spread(h, j.nParts, band), spread(h, j.nParts, band+1)
	ready := y0*c.StrideH - c.PadH // the next row to copy to the ring
	for y := y0; y < y1; {
		n := min(together, y1-y)
		top := y*c.StrideH - c.PadH
		for ready = max(ready, top); ready < top+c.span()+n-1; ready++ {
			c.copyLine(ring, x, ready, channels, rows, pitch)
		}
		c.ringOffsets(offsets, top, n, channels, rows, pitch)
		for o := range windows {
			start := float32(0)
			if c.Bias != nil {
				start = c.Bias[first+o]
			}
			i := plane*windows + o
			out := c.Y[(i*h+y)*w:][: n*w : n*w]
			if n == 1 {
				j.ks.convRow(&out[0], unsafe.SliceData(ring), unsafe.SliceData(offsets), unsafe.SliceData(c.Weights[(first+o)*taps:]), start, taps, w)
			} else {
				j.ks.convPair(&out[0], unsafe.SliceData(ring), 4*w, unsafe.SliceData(offsets), unsafe.SliceData(paired[o*pairWeights:]), start, outer, inner, w)
			}
			if c.Epilogue != nil {
				c.Epilogue(out, i, y*w)
			}
		}
		y += n
	}
	sc.free()
}

// pairWeights lays out the weights w of one window as convPair reads them:
// along the rows of pixels that two neighbouring results lie on.
func (c *Conv2D) pairWeights(dst, w []float32, channels int) {
	t := 0
	for i := range c.KH + 1 {
		for ch := range channels {
			for q := range c.KW {
				if i < c.KH {
					dst[t] = w[(ch*c.KH+i)*c.KW+q]
					t++
				}
				if i > 0 {
					dst[t] = w[(ch*c.KH+i-1)*c.KW+q]
					t++
				}
			}
		}
	}
}

// modulo returns the remainder of a division that rounds down.
func modulo(a, n int) int {
	if a %= n; a < 0 {
		a += n
	}
	return a
}
