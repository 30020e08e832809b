package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/irhook"
)

// RopeOpts are the parameters of [Rope].
type RopeOpts struct {
	Start       int     // position of the first row if there is no operand of positions
	Theta       float32 // base of the wavelengths; 0 means 10000
	Interleaved bool    // pairs are adjacent elements; otherwise they are d/2 apart
}

// Attrs converts the options to parameters.
func (o RopeOpts) Attrs() Attrs {
	a := Floats(written(o.Theta, ropeTheta))
	a.I[0], a.I[1] = o.Start, integer(o.Interleaved)
	return a
}

// RopeOptsOf returns the options from which [RopeOpts.Attrs] made a. A Theta of 0 in the result is the number 0, not the
// default.
func RopeOptsOf(a *Attrs) RopeOpts { return RopeOpts{a.I[0], a.read(0, ropeTheta), a.I[1] != 0} }

const ropeTheta = 10000

// maxPosition is the greatest position up to which float32 holds all integers.
const maxPosition = 1 << 24

// The operands of a [Rope].
const (
	RopeX = iota
	RopeByPositions
	RopeByFrequencies
)

// defRope rotates pairs of elements by angles that grow with the position.
var defRope = Operation{define: func() *definition {
	return add(&definition{name: "rope", class: Shaped, selfTest: &irhook.SelfTest{Attrs: RopeOpts{}.Attrs(), Shapes: [][]int{{3, 2, 8}}}, doc: "the rotary embedding of positions: pair j of each head rotated by the angle position·theta**(-2j/d)",
		formula: "(u cos α - v sin α, u sin α + v cos α) for each pair (u, v), α = position * theta**(-2j/d)",
		inputs:  []string{"x", "positions", "frequencies"}, arity: [2]int{1, 3},
		shapes:  "x [t h d] with d even, positions [t] of i32, frequencies [d/2] of f32 in place of theta**(-2j/d); gives the shape of x; without positions row i has the position start + i",
		options: "RopeOpts", params: []Param{{Name: "theta", Doc: "base of the wavelengths", Default: ropeTheta}},
		tol: Tolerance{ULP: 1, Mag: 1}, types: ropeTypes, shape: ropeShape, ref: ropeReference,
		special: "NaN or an infinity in a pair gives NaN in both. Positions must be within ±2^24: the angles are not defined for elements of the operand of positions outside this range, nor for frequencies that are not finite.",
		flops:   func(_ *Attrs, in, _ []Shape) float64 { return 3 * elements(in[0]) }})
}}

// RopeFrequencies returns theta**(-2j/d) for each pair j of a head of d
// elements. Devices multiply positions by these in float32.
func RopeFrequencies(d int, theta float32) []float32 {
	f := make([]float32, max(d, 0)/2)
	for j := range f {
		f[j] = float32(math.Pow(float64(theta), -2*float64(j)/float64(d)))
	}
	return f
}

func ropeTypes(a *Attrs, in []DType) ([]DType, error) {
	if len(in) > RopeByPositions && in[RopeByPositions] != InvalidType && in[RopeByPositions] != I32 {
		return nil, unsupported("positions have type %v: expected i32", in[RopeByPositions])
	}
	if len(in) > RopeByFrequencies && in[RopeByFrequencies] != InvalidType && in[RopeByFrequencies] != F32 {
		return nil, unsupported("frequencies have type %v: expected f32", in[RopeByFrequencies])
	}
	return floats(a, in[:1])
}

func ropeShape(a *Attrs, in []Shape) ([]Shape, error) {
	x, o := in[0], RopeOptsOf(a)
	switch {
	case len(x) != 3 || x[2]%2 != 0:
		return nil, mismatch("the operand has shape %v: expected [t h d] with an even d", x)
	case len(in) > 1 && in[1] != nil && !in[1].Equal(x[:1]):
		return nil, mismatch("positions have shape %v: expected [%d], one for each row", in[1], x[0])
	case len(in) > RopeByFrequencies && in[RopeByFrequencies] != nil && !in[RopeByFrequencies].Equal(Shape{x[2] / 2}):
		return nil, mismatch("frequencies have shape %v: expected [%d], one for each pair", in[RopeByFrequencies], x[2]/2)
	case o.Theta == 0:
		return nil, mismatch("theta is 0: it must not be 0, because its powers have negative exponents")
	case o.Start < -maxPosition || o.Start > maxPosition || x[0] > maxPosition:
		return nil, mismatch("%d positions from %d on: positions must be within ±2^24", x[0], o.Start)
	}
	return []Shape{x}, nil
}

func ropeReference(a *Attrs, in, out []*Array) {
	x, y, o := in[0], out[0], RopeOptsOf(a)
	y.Mag = make([]float64, len(y.Data))
	heads, d := x.Shape[1], x.Shape[2]
	for p := range len(x.Data) / 2 {
		// p counts the pairs of all heads, in the order of their first elements in memory.
		row, j := p/(d/2), p%(d/2)
		u, v := row*d+j, row*d+j+d/2
		if o.Interleaved {
			u, v = row*d+2*j, row*d+2*j+1
		}
		at := row / heads
		position := float64(o.Start + at)
		if len(in) > RopeByPositions && in[RopeByPositions] != nil {
			position = in[RopeByPositions].Data[at]
		}
		frequency := math.Pow(float64(o.Theta), -2*float64(j)/float64(d))
		if len(in) > RopeByFrequencies && in[RopeByFrequencies] != nil {
			frequency = in[RopeByFrequencies].Data[j]
		}
		angle := position * frequency
		sin, cos := math.Sincos(angle)
		y.Data[u] = x.Data[u]*cos - x.Data[v]*sin
		y.Data[v] = x.Data[u]*sin + x.Data[v]*cos
		// The angle has two roundings, and each function is off by at most two units.
		mag := (math.Abs(x.Data[u]) + math.Abs(x.Data[v])) * (math.Abs(angle) + 4)
		if math.Abs(position) > maxPosition || math.IsInf(frequency, 0) || frequency != frequency {
			mag = math.Inf(1)
		}
		y.Mag[u], y.Mag[v] = mag, mag
	}
}
