package simd

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/workers"
)

// A Conv2D describes the correlation of images with windows, which neural
// networks call convolution:
//
//	Y[n, o, y, x] = epilogue(Bias[o] + Σ Weights[o, c, i, j] * X[n, c', y*StrideH+i*DilationH-PadH, x*StrideW+j*DilationW-PadW])
//
// where the sum is over the channels c of a group and the elements i, j of a
// window, and c' is channel c of the group in X. X is [N, C, H, W], Weights is
// [O, C/Groups, KH, KW] and Y is [N, O, OutH, OutW], all contiguous. Pixels outside
// of the image are zeros that take part in the sum: an infinite weight over one gives
// NaN. Y must not overlap the others.
//
// Sums are float32. A stride, dilation or number of groups of 0 means 1.
type Conv2D struct {
	N, C, H, W int
	O, KH, KW  int

	StrideH, StrideW     int
	PadH, PadW           int // zeros added on each side
	DilationH, DilationW int
	Groups               int

	X, Weights, Y []float32
	Bias          []float32 // O elements, or nil

	// Epilogue, unless nil, is called once for every finished piece of Y, while
	// the piece is still in the cache. row is the piece, which starts at pixel j,
	// counted along the rows of the image, of plane i = n*O + o. Several goroutines
	// call Epilogue at once, in any order.
	Epilogue func(row []float32, i, j int)
}

// OutSize returns the extents of the resulting images. An extent is 0 if the window
// does not fit into the padded image.
func (c *Conv2D) OutSize() (h, w int) {
	d := *c
	d.defaults()
	return d.outSize()
}

func (c *Conv2D) outSize() (h, w int) {
	places := func(extent, window, stride, pad, dilation int) int {
		room := int64(extent) + 2*int64(pad) - int64(dilation)*int64(window-1) - 1
		if room < 0 || window == 0 {
			return 0
		}
		return int(room/int64(stride)) + 1
	}
	return places(c.H, c.KH, c.StrideH, c.PadH, c.DilationH), places(c.W, c.KW, c.StrideW, c.PadW, c.DilationW)
}

func (c *Conv2D) defaults() {
	for _, v := range []*int{&c.StrideH, &c.StrideW, &c.DilationH, &c.DilationW, &c.Groups} {
		if *v == 0 {
			*v = 1
		}
	}
}

// Run computes the convolution with the threads of p; a nil Pool uses only the calling thread. It
// allocates nothing after its buffers have grown. It panics if a size is out of range or a slice
// too short.
func (c *Conv2D) Run(p *workers.Pool) {
	j := gemmJobs.Get().(*gemmJob)
	// The copy is in the job, because a local variable would escape to the heap.
	j.window = *c
	d := &j.window
	d.defaults()
	d.check()
	if h, w := d.outSize(); d.N > 0 && d.O > 0 && h > 0 && w > 0 {
		if d.direct() {
			j.runDirect(p)
		} else {
			j.runConv(p)
		}
	}
	j.release()
}

// largestConv bounds every size of a convolution, so that sums of a few sizes fit
// in an int, and products of two in an int64.
const largestConv = 1 << 28

// check panics if sizes or lengths are invalid.
func (c *Conv2D) check() {
	for _, v := range [...]int{c.N, c.C, c.H, c.W, c.O, c.KH, c.KW, c.StrideH, c.StrideW, c.PadH, c.PadW, c.DilationH, c.DilationW, c.Groups} {
		if v < 0 || v > largestConv {
			panic(fmt.Sprintf("simd: Conv2D: a size is %d: it must be from 0 to %d", v, largestConv))
		}
	}
	if c.C%c.Groups != 0 || c.O%c.Groups != 0 {
		panic(fmt.Sprintf("simd: Conv2D: %d groups for %d channels and %d windows: the number of groups must divide both", c.Groups, c.C, c.O))
	}
	h, w := c.outSize()
	holds("X", len(c.X), [4]int{c.N, c.C, c.H, c.W})
	holds("Weights", len(c.Weights), [4]int{c.O, c.C / c.Groups, c.KH, c.KW})
	holds("Y", len(c.Y), [4]int{c.N, c.O, h, w})
	if c.Bias != nil {
		holds("Bias", len(c.Bias), [4]int{c.O, 1, 1, 1})
	}
}

// holds panics if have is less than the product of the sizes.
func holds(name string, have int, sizes [4]int) {
	if sizes[0] == 0 || sizes[1] == 0 || sizes[2] == 0 || sizes[3] == 0 {
		return
	}
	n := 1
	for _, s := range sizes {
		if s > have/n {
			panic(fmt.Sprintf("simd: Conv2D: %s of %d elements is too short for [%d %d %d %d]", name, have, sizes[0], sizes[1], sizes[2], sizes[3]))
		}
		n *= s
	}
}

// runConv computes the convolution as products of matrices, one for each image and
// group. A has the O/Groups windows of the group as rows. Each column of B has the
// pixels under the window at one place. B is never stored as a whole.
func (j *gemmJob) runConv(p *workers.Pool) {
	c := &j.window
	h, w := c.outSize()
	j.conv, j.ks = c, gemmActive()
	j.g = Gemm{
		M: c.O / c.Groups, N: h * w, K: c.C / c.Groups * c.KH * c.KW,
		A: c.Weights, B: c.X, C: c.Y,
		Epilogue: c.Epilogue,
		Batch:    c.N * c.Groups,
	}
	g := &j.g
	g.ARow, g.ACol, g.AStride = g.K, 1, g.M*g.K
	g.BRow, g.BCol, g.BStride = g.N, 1, c.C/c.Groups*c.H*c.W
	g.CRow, g.CStride = g.N, g.M*g.N
	j.repeatA, j.rowBias = c.Groups, c.Bias
	if c.KH == 1 && c.KW == 1 && c.StrideH == 1 && c.StrideW == 1 && c.PadH == 0 && c.PadW == 0 {
		j.conv = nil // B is the image itself
	}
	j.planTiles(p)
	p.Do(j.count(), j)
}

// fill sets all of x to v.
func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}
