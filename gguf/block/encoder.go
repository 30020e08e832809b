package block

import (
	"math"
	"sync"
)

// encoder converts numbers to blocks of one format.
type encoder struct {
	f    Format
	l    *Layout
	ones []float32 // default importances

	// simple is the encoder without importances, and also with importances for a format that needs
	// no search.
	simple func(dst []byte, x []float32)
	// search encodes a block and minimises the weighted squared error.
	search func(w *work, dst []byte, x, weights []float32)

	levels levelSet // for searches
	halves []int    // the byte offsets of the scales of a block, if all are binary16
	limit  float64  // the greatest scale; a greater one is an overflow
}

// simple are the encoders without a search: they give the same bytes as ggml.
var simple = [len(basics)]func(dst []byte, src []float32){
	Q4_0: quantizeQ4_0, Q5_0: quantizeQ5_0, Q8_0: quantizeQ8_0,
	Q4_1: func(dst []byte, src []float32) { quantizeRange(Q4_1, dst, src) },
	Q5_1: func(dst []byte, src []float32) { quantizeRange(Q5_1, dst, src) },
}

// limits has for each encoding the greatest scale, plus half a step if greater scales are
// rounded down to it.
var limits = map[Encoding]float64{Binary16: math.MaxFloat64, E8M0: 0x1p125, UE4M3: 232}

var encoders [len(basics)]struct {
	once sync.Once
	e    *encoder
}

func encoderFor(f Format) *encoder {
	e := &encoders[f]
	e.once.Do(func() { e.e = newEncoder(f) })
	return e.e
}

func newEncoder(f Format) *encoder {
	l := f.layout()
	e := &encoder{f: f, l: l, simple: simple[f], ones: make([]float32, l.Elements)}
	e.halves, _ = l.halves()
	for i := range e.ones {
		e.ones[i] = 1
	}
	switch {
	case f.Scalar():
		e.search = (*work).scalar
	case f == Q8_0:
		// With 8 bits a search does not reduce the error.
	case l.Bias.Encoding != NoFloat:
		e.search = (*work).affine
	default:
		e.levels = newLevelSet(l)
		e.limit = limits[l.Scale.Encoding]
		e.search = (*work).scaled
	}
	return e
}

// work is the memory of one goroutine that encodes blocks.
type work struct {
	e        *encoder
	p, best  parts
	overflow bool // the last block had a scale beyond the limit
	groups   [16]fit
	sums     [16]lineSums
	x, w     [superElements]float64 // the elements of the block, and their importances
}

func (e *encoder) work() *work { return &work{e: e} }

func (w *work) scalar(dst []byte, x, _ []float32) {
	w.overflow = !encodeScalar[w.e.f](dst, x[0])
}

// wide returns the elements of a block and their importances as float64.
func (w *work) wide(x, importance []float32) (wx, ww []float64) {
	wx, ww = w.x[:len(x)], w.w[:len(x)]
	for i, v := range x {
		wx[i], ww[i] = float64(v), float64(importance[i])
	}
	return wx, ww
}
