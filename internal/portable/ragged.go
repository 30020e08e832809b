//go:build !js || !nowebgpu

package portable

import (
	"slices"
	"strconv"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A misaligned row is read in vectors too, from the first to the last sector boundary of
// memory within the row. The elements before and after are its ragged head and tail; each
// lane takes at most one of them. A kernel writes an array either in vectors or in single
// elements, so a second launch stores the results of the heads and tails.

const (
	sector = 8 // elements of a sector
	// raggedLanes is the number of lanes for the ragged ends of a row. The first sector lanes take
	// the head. The other lanes take the tail, which has up to four elements more than a sector.
	raggedLanes = 32
	// minRaggedCols is the least length of a row that contains a whole sector at any start.
	minRaggedCols = 2*sector + 3
)

// raggedEnd is the element of the ragged head or tail that a lane takes.
type raggedEnd struct {
	from, to kernel.U32  // the range of the vectors of the row: from is included, to is not
	at       kernel.U32  // index of the element in the array; that of the row's first element if the lane has none
	is       kernel.Bool // whether the lane has an element
}

// raggedEndOf returns a lane's part of the ragged ends of the row of cols elements that begins at
// start. The ragged tail has at least four elements, so that the weights for each vector of the row
// lie in two vectors of weights.
func raggedEndOf(lane, start, cols kernel.U32) raggedEnd {
	four, eight, two := kernel.U(4), kernel.U(sector), kernel.U(sector/4)
	end := start.Add(cols)
	e := raggedEnd{from: start.Add(kernel.U(sector - 1)).Div(eight).Mul(two), to: end.Sub(four).Div(eight).Mul(two)}
	front := lane.Lt(eight)
	at := kernel.Select(front, start.Add(lane), e.to.Mul(four).Add(lane.Sub(eight)))
	e.is = at.Lt(kernel.Select(front, e.from.Mul(four), end))
	e.at = kernel.Select(e.is, at, start)
	return e
}

// alignedUnits returns how many vectors a row of cols elements has at most.
func alignedUnits(cols int) int { return (cols - 4) / sector * (sector / 4) }

// shifted reads vectors that begin the given number of elements after the vectors of x.
func (x units) shifted(by kernel.U32) units {
	whole := by.Div(kernel.U(4))
	two, one := by.And(kernel.U(2)).Ne(kernel.U(0)), by.And(kernel.U(1)).Ne(kernel.U(0))
	return func(i kernel.U32) []kernel.F32 {
		i = i.Add(whole)
		vs := append(x(i), x(i.Add(kernel.U(1)))...)
		for k := range 5 {
			vs[k] = kernel.Select(two, vs[k+2], vs[k])
		}
		for k := range 4 {
			vs[k] = kernel.Select(one, vs[k+1], vs[k])
		}
		return vs[:4]
	}
}

// raggedInput reads an operand of a row operation: its units, and the elements of ragged ends.
type raggedInput struct {
	units
	single func(i kernel.U32) kernel.F32
	// shifted returns a reader of units that begin the given number of elements later.
	shifted func(by kernel.U32) units
}

// input declares an operand of the row operation.
func (s *rowSpec) input(b *kernel.Builder, name string) (x raggedInput) {
	x.units = inputUnits(b, name, s.Type, s.Unit)
	if s.Ragged {
		x.single, x.shifted = input(b, name+"_elements", s.Type), x.units.shifted
	}
	return x
}

// output declares the result and the array for the results of ragged ends, which has one element
// for each lane. It returns a function that stores a unit, or a single element of a ragged end.
func (s *rowSpec) output(b *kernel.Builder, e *epilogue) func(i kernel.U32, vs []kernel.F32) {
	put := e.units(b, s.Type, s.Unit)
	if !s.Ragged {
		return put
	}
	ends := kernel.Output[kernel.F32](b, "edges")
	return func(i kernel.U32, vs []kernel.F32) {
		if len(vs) == 1 {
			ends.Set(i, vs[0])
			return
		}
		put(i, vs)
	}
}

type shiftParams struct{ Cols uint32 }

// shiftedUnits returns the number of vectors of weights that begin at each of the first four
// elements and exist for all of them.
func shiftedUnits(cols kernel.U32) kernel.U32 { return cols.Div(kernel.U(4)).Sub(kernel.U(1)) }

// shiftedWeights copies weights in four orders: as vectors that begin with the first, second, third
// and fourth element. Each order has n vectors.
var shiftedWeights = maker[shiftParams, int]{name: "shifted_weights", build: func(b *kernel.Builder, p *shiftParams, n int, _ *epilogue) {
	b.LocalSize(raggedLocal, 1, 1)
	ws := make([]kernel.Buffer[kernel.F32], n)
	for k := range ws {
		ws[k] = kernel.Input[kernel.F32](b, "weights"+strconv.Itoa(k))
	}
	out := kernel.Output[kernel.Vec4F](b, "out")
	i, four, units := b.Index(), kernel.U(4), shiftedUnits(b.U32(&p.Cols))
	all := units.Mul(four)
	b.If(i.Lt(all), func() {
		first := i.Div(units).Add(i.Mod(units).Mul(four))
		for k, w := range ws {
			var vs [4]kernel.F32
			for c := range vs {
				vs[c] = w.At(first.Add(kernel.U(uint32(c))))
			}
			out.Set(all.Mul(kernel.U(uint32(k))).Add(i), b.Vec4F(vs[0], vs[1], vs[2], vs[3]))
		}
	})
}}

// raggedWeights returns the bindings of a kernel for weights, both in vectors and in single
// elements, and adds the launch that shifts the weights if necessary.
func (s *rowSpec) raggedWeights(p *planner, weights []Ref, cols int) (bind []Ref) {
	n := len(weights)
	switch {
	case s.Split: // storeRagged applies the weights of ragged ends, because a device may not allow enough buffers
		return weights
	case n > 1 && s.MaxResident > 0: // lanes have too few registers for two vectors of each of several weights
		s.Shifted = true
		units := 4 * (cols/4 - 1)
		bind = append(slices.Clone(weights), p.scratch(4*n*units))
		p.stage(shiftedWeights.of(n, nil), kernel.GridFor(units, raggedLocal), shiftParams{uint32(cols)}, bind...)
	default:
		for _, r := range weights {
			bind = append(bind, r, r)
		}
	}
	return bind
}

// shiftedBy returns a reader of the nth shifted weights for rows of cols elements. Its units begin
// by elements later.
func (laid units) shiftedBy(by, cols kernel.U32, nth int) units {
	four := kernel.U(4)
	from := by.Mod(four).Add(kernel.U(uint32(4 * nth))).Mul(shiftedUnits(cols)).Add(by.Div(four))
	return func(i kernel.U32) []kernel.F32 { return laid(from.Add(i)) }
}

type raggedParams struct{ Rows, Cols uint32 }

const raggedLocal = 256

// raggedSpec specialises storeRagged. For rows in parts, storeRagged applies the weights.
type raggedSpec struct {
	Type    op.DType
	Weights int // see rowSpec
}

// storeRagged stores the results of the ragged ends of rows.
var storeRagged = maker[raggedParams, raggedSpec]{name: "row_edges", build: func(b *kernel.Builder, p *raggedParams, s raggedSpec, _ *epilogue) {
	b.LocalSize(raggedLocal, 1, 1)
	x := kernel.Input[kernel.F32](b, "edges")
	var ws weights
	for i, name := range []string{"gamma", "beta"} {
		var w func(k int, j kernel.U32) []kernel.F32
		if s.Weights>>(i+1)&1 != 0 {
			read := inputUnits(b, name, s.Type, 1)
			w = func(_ int, j kernel.U32) []kernel.F32 { return read(j) }
		}
		ws = append(ws, w)
	}
	y := outputValue(b, "out", s.Type)
	i := b.Index()
	row := i.Div(kernel.U(raggedLanes))
	start := row.Mul(b.U32(&p.Cols))
	e := raggedEndOf(i.Mod(kernel.U(raggedLanes)), start, b.U32(&p.Cols))
	b.If(row.Lt(b.U32(&p.Rows)).And(e.is), func() {
		v := ws.affine([]kernel.F32{x.At(i)}, 0, e.at.Sub(start), func(x kernel.F32) kernel.F32 { return x })
		y.set(e.at, kernel.Dyn(v[0]))
	})
}}
