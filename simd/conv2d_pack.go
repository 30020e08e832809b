package simd

import "unsafe"

// packB gathers rows k0 to k1 and columns c0 to c1 of the matrix of pixels of the channels x in
// panels. It does not write the padding between the last column and the end of its panel.
//
// It first copies the rows of the image that these columns need to a band, padded with zeros. For a
// stride above 1, the band groups columns by their phase. Each element of the window then reads
// contiguous pixels of the band, whatever the stride.
func (c *Conv2D) packB(ks *gemmKernels, dst, x []float32, k0, k1, c0, c1 int) {
	_, width := c.outSize()
	window := c.KH * c.KW
	b := convBand{
		firstCh: k0 / window, endCh: ceilDiv(k1, window),
		top:   c0/width*c.StrideH - c.PadH,
		rows:  ((c1-1)/width-c0/width)*c.StrideH + c.span(),
		phase: ceilDiv(c.W+2*c.PadW, c.StrideW),
	}
	if float64(b.endCh-b.firstCh)*float64(b.rows)*float64(b.phase)*float64(c.StrideW) > largestBand {
		c.packSparse(ks, dst, x, k0, k1, c0, c1)
		return
	}
	const perInt = int(unsafe.Sizeof(int(0)) / 4)
	size := ceilDiv(b.floats(c), 16) * 16
	sc := takeScratch(size + perInt*(k1-k0))
	buf := sc.data
	band := buf[:size]
	offsets := unsafe.Slice((*int)(unsafe.Pointer(unsafe.SliceData(buf[size:]))), k1-k0)
	c.fillBand(band, x, &b)
	for t := range offsets {
		ch, i, q := (k0+t)/window-b.firstCh, (k0+t)%window/c.KW, (k0+t)%c.KW*c.DilationW
		offsets[t] = 4 * ((ch*b.rows+i*c.DilationH)*b.pitch(c) + q%c.StrideW*b.phase + q/c.StrideW)
	}
	for p := c0; p < c1; p += ks.cols {
		panel := dst[(p-c0)*(k1-k0):]
		end := min(p+ks.cols, c1)
		// A panel consists of pieces of rows of the result.
		for at := p; at < end; {
			row, col := at/width-c0/width, at%width
			n := min(end-at, width-col)
			from, to := band[row*c.StrideH*b.pitch(c)+col:], panel[at-p:]
			if ks.convGather != nil {
				ks.convGather(&to[0], &from[0], &offsets[0], k1-k0, n)
			} else {
				for t, offset := range offsets {
					copy(to[t*ks.cols:][:n], from[offset/4:])
				}
			}
			at += n
		}
	}
	sc.free()
}

// largestBand is the largest size of a band in floats. Only strides, dilations or paddings that
// are far larger than the image need a larger one.
const largestBand = 1 << 22

// packSparse is packB without a band: it takes every pixel from the image itself.
func (c *Conv2D) packSparse(ks *gemmKernels, dst, x []float32, k0, k1, c0, c1 int) {
	_, width := c.outSize()
	window := c.KH * c.KW
	for p := c0; p < c1; p++ {
		panel := (p - c0) / ks.cols * ks.cols * (k1 - k0)
		for k := k0; k < k1; k++ {
			row := p/width*c.StrideH + k%window/c.KW*c.DilationH - c.PadH
			col := p%width*c.StrideW + k%c.KW*c.DilationW - c.PadW
			v := float32(0)
			if row >= 0 && row < c.H && col >= 0 && col < c.W {
				v = x[(k/window*c.H+row)*c.W+col]
			}
			dst[panel+(k-k0)*ks.cols+(p-c0)%ks.cols] = v
		}
	}
}

// A convBand is a copy of some rows of some channels with their padding. Each row
// is stored as StrideW phases: column x is element x/StrideW of phase x%StrideW.
type convBand struct {
	firstCh, endCh int
	top, rows      int // the rows of the image; rows before 0 are padding
	phase          int // the number of elements of a phase
}

// pitch returns the distance between rows.
func (b *convBand) pitch(c *Conv2D) int { return b.phase * c.StrideW }

func (b *convBand) floats(c *Conv2D) int { return (b.endCh - b.firstCh) * b.rows * b.pitch(c) }

func (c *Conv2D) fillBand(band, x []float32, b *convBand) {
	pitch := b.pitch(c)
	for ch := b.firstCh; ch < b.endCh; ch++ {
		for r := range b.rows {
			row := band[:pitch]
			band = band[pitch:]
			y := b.top + r
			if y < 0 || y >= c.H {
				clear(row)
				continue
			}
			line := x[(ch*c.H+y)*c.W:][:c.W]
			if c.StrideW == 1 {
				clear(row[:c.PadW])
				copy(row[c.PadW:], line)
				clear(row[c.PadW+c.W:])
				continue
			}
			clear(row)
			for f := range c.StrideW {
				// The first column of this phase within the image.
				first := modulo(f-c.PadW, c.StrideW)
				to := row[f*b.phase+(first+c.PadW)/c.StrideW:]
				for i, q := 0, first; q < len(line); i, q = i+1, q+c.StrideW {
					to[i] = line[q]
				}
			}
		}
	}
}
