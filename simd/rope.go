package simd

import (
	"math"
	"sync"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/workers"
)

// A Rope rotates pairs of elements of vectors by angles that grow with the
// position of the vector: the rotary position embedding of Su et al. 2021.
//
// The vectors are the rows of an array [Outer Positions Inner Dim]. In
// [heads, positions, dim] Outer is the number of heads; in [positions, heads, dim]
// Inner is. Pair i of a vector
// at position t turns by t·Base^(-2i/Rotary). The angles and their sines and
// cosines are computed in float64 and rounded once, so the error is at most
// 2^-23 of the length of the pair.
type Rope struct {
	Outer, Positions, Inner int // 0 in Outer or Inner means 1
	Dim                     int // elements of a vector
	// Rotary is the number of elements of each vector that are rotated, an even number
	// up to Dim. The others are copied. 0 means Dim, or Dim-1 if Dim is odd.
	Rotary int
	// Half pairs element i with element i+Rotary/2, as GPT-NeoX and most
	// published weights of Llama require. Otherwise neighbours are pairs, as in
	// the paper.
	Half   bool
	Base   float64 // 0 means 10000
	Offset int     // the position of the first vector
	At     []int32 // positions, one for each of Positions, in place of Offset + 0, 1, 2 …; or nil
	// Frequencies, if not nil, has for each pair the angle between one position and the
	// next. It replaces the powers of Base.
	Frequencies []float32
	// XPosition and XInner are strides of x in elements, along Positions and along Inner. They
	// require an Outer of 1. 0 means that vectors are contiguous.
	XPosition, XInner int
}

// ropeNS is the time of one thread for an element, in nanoseconds, and
// ropeAngleNS that for a sine and a cosine.
const (
	ropeNS      = 0.2
	ropeAngleNS = 25
)

// Run sets dst to the rotated vectors of x, with the threads of p. With a nil Pool it
// uses only the calling thread. dst may be x, but must not overlap it otherwise.
// It panics if a slice is too short or a size is invalid.
func (r Rope) Run(p *workers.Pool, dst, x []float32) {
	if r.Outer == 0 {
		r.Outer = 1
	}
	if r.Inner == 0 {
		r.Inner = 1
	}
	if r.Rotary == 0 {
		r.Rotary = r.Dim &^ 1
	}
	if r.Base == 0 {
		r.Base = 10000
	}
	if r.XInner == 0 {
		r.XInner = r.Dim
	}
	if r.XPosition == 0 {
		r.XPosition = area(r.Inner, r.Dim)
	}
	n := area(area(area(r.Outer, r.Positions), r.Inner), r.Dim)
	reads := n // the elements of x up to the last one
	if n > 0 && r.Outer == 1 {
		reads = area(r.Positions-1, r.XPosition) + area(r.Inner-1, r.XInner) + r.Dim
	}
	if r.Rotary < 0 || r.Rotary > r.Dim || r.Rotary%2 != 0 || r.At != nil && len(r.At) < r.Positions ||
		r.Frequencies != nil && len(r.Frequencies) < r.Rotary/2 || len(dst) < n || len(x) < reads {
		panic(fmt.Sprintf("simd: Rope of %dx%dx%d vectors of %d elements, Rotary %d, %d positions, %d frequencies: dst and x have lengths %d and %d",
			r.Outer, r.Positions, r.Inner, r.Dim, r.Rotary, len(r.At), len(r.Frequencies), len(dst), len(x)))
	}
	if n == 0 {
		return
	}
	t := ropes.Get().(*ropeTask)
	t.Rope, t.dst, t.x = r, dst, x
	t.frequencies = t.frequencies[:0]
	// Powers by repeated multiplication: its error in float64 is far below the
	// rounding of an angle to float32.
	ratio, f := math.Pow(r.Base, -2/float64(max(2, r.Rotary))), 1.0
	for i := range r.Rotary / 2 {
		if r.Frequencies != nil {
			f = float64(r.Frequencies[i])
		}
		t.frequencies = append(t.frequencies, f)
		f *= ratio
	}
	t.group = r.Positions
	if p.Worth(float64(n)*ropeNS + float64(r.Positions*r.Rotary/2)*ropeAngleNS) {
		t.group = max(1, r.Positions/(8*p.Threads()))
	}
	p.Do((r.Positions+t.group-1)/t.group, t)
	t.Rope, t.dst, t.x = Rope{}, nil, nil
	ropes.Put(t)
}

type ropeTask struct {
	Rope
	dst, x      []float32
	frequencies []float64
	group       int
}

// turn holds the cosines and sines of one position. If neighbours are pairs, they are in the
// order of the elements: each occurs twice, and the first sine of each pair is negative.
type turn struct{ cos, sin []float32 }

var (
	ropes = sync.Pool{New: func() any { return new(ropeTask) }}
	turns = sync.Pool{New: func() any { return new(turn) }}
)

// Part rotates the vectors of a few positions.
func (t *ropeTask) Part(i int) {
	a := turns.Get().(*turn)
	for pos := i * t.group; pos < min((i+1)*t.group, t.Positions); pos++ {
		at := float64(t.Offset) + float64(pos)
		if t.At != nil {
			at = float64(t.At[pos])
		}
		a.cos, a.sin = a.cos[:0], a.sin[:0]
		for _, f := range t.frequencies {
			sin64, cos64 := math.Sincos(at * f)
			sin, cos := float32(sin64), float32(cos64)
			if t.Half {
				a.cos, a.sin = append(a.cos, cos), append(a.sin, sin)
			} else {
				a.cos, a.sin = append(a.cos, cos, cos), append(a.sin, -sin, sin)
			}
		}
		for o := range t.Outer {
			v := (o*t.Positions + pos) * t.Inner * t.Dim
			if t.Outer == 1 {
				t.rotate(t.dst[v:][:t.Inner*t.Dim], t.x[pos*t.XPosition:][:(t.Inner-1)*t.XInner+t.Dim], a)
				continue
			}
			t.rotate(t.dst[v:][:t.Inner*t.Dim], t.x[v:][:t.Inner*t.Dim], a)
		}
	}
	turns.Put(a)
}

// rotate turns the vectors of one position.
func (t *ropeTask) rotate(dst, x []float32, a *turn) {
	if t.XInner != t.Dim && t.Inner > 1 {
		one := ropeTask{Rope: t.Rope}
		one.Inner = 1
		for i := range t.Inner {
			one.rotate(dst[i*t.Dim:][:t.Dim], x[i*t.XInner:][:t.Dim], a)
		}
		return
	}
	if t.Rotary > 0 {
		turn := rowKernel().ropePairs
		if t.Half {
			turn = rowKernel().ropeHalves
		}
		turn(&dst[0], &x[0], &a.cos[0], &a.sin[0], len(a.cos), t.Inner, 4*t.Dim)
	}
	if t.Rotary < t.Dim {
		for v := 0; v < len(x); v += t.Dim {
			copy(dst[v+t.Rotary:v+t.Dim], x[v+t.Rotary:])
		}
	}
}
