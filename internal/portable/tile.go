//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// matMulTile is the tile configuration of a product. A workgroup computes Rows × Cols elements of
// the result and iterates over the terms in steps of Depth. A lane computes Own rows of Wide
// vectors of four columns.
type matMulTile struct {
	Rows, Cols, Depth int
	Own, Wide         int
}

func (t matMulTile) lanes() (x, y int) { return t.Cols / (4 * t.Wide), t.Rows / t.Own }

// exactTerms is the maximum number of terms that a float32 adds one after the other within the
// tolerance of sums. Longer sums are divided into parts.
const exactTerms = 1024

// multiply returns the lane's sums of the products of the lines of a and b over k terms. In each
// step, the workgroup loads a part of both operands into workgroup memory, and each lane multiplies
// its lines.
func (s matMulTile) multiply(b *kernel.Builder, ta, tb *tile, k kernel.U32, long bool) [][]kernel.Var[kernel.Vec4F] {
	lx, ly := s.lanes()
	sums := make([][]kernel.Var[kernel.Vec4F], s.Own)
	for i := range sums {
		sums[i] = kernel.NewVars(b, "sum", s.Wide, kernel.Vec4F{})
	}
	steps := func(from, to kernel.U32) {
		b.ForStep(from, to, kernel.U(uint32(s.Depth)), func(at kernel.U32) {
			ta.load(at)
			tb.load(at)
			b.Barrier()
			b.ForStep(kernel.U(0), kernel.U(uint32(s.Depth)), kernel.U(4), func(d kernel.U32) {
				as := make([]kernel.Vec4F, s.Own)
				for i := range as {
					as[i] = ta.along(b.LocalY().Add(kernel.U(uint32(i*ly))), d)
				}
				for c := range 4 {
					for j := range s.Wide {
						x := tb.beside(d.Add(kernel.U(uint32(c))), b.LocalX().Add(kernel.U(uint32(j*lx))))
						for i := range as {
							sums[i][j].Set(as[i].At(c).Splat4().MulAdd(x, sums[i][j].Get()))
						}
					}
				}
			})
			b.Barrier()
		})
	}
	if long {
		inParts(b, k, steps, sums)
	} else {
		steps(kernel.U(0), k)
	}
	return sums
}

// each calls f for each sum of the lane that is within rows × cols, with its row and column. The
// tile begins at row and col.
func (s matMulTile) each(b *kernel.Builder, sums [][]kernel.Var[kernel.Vec4F], row, col, rows, cols kernel.U32, f func(r, c kernel.U32, v kernel.F32)) {
	lx, ly := s.lanes()
	for i := range sums {
		r := row.Add(b.LocalY()).Add(kernel.U(uint32(i * ly)))
		b.If(r.Lt(rows), func() {
			for j := range sums[i] {
				v := sums[i][j].Get()
				first := col.Add(b.LocalX().Add(kernel.U(uint32(j * lx))).Mul(kernel.U(4)))
				for c := range 4 {
					at := first.Add(kernel.U(uint32(c)))
					b.If(at.Lt(cols), func() { f(r, at, v.At(c)) })
				}
			}
		})
	}
}

// inParts runs steps over parts of [0, k) with at most exactTerms terms, and adds the sums of the
// parts. The totals replace sums.
func inParts(b *kernel.Builder, k kernel.U32, steps func(from, to kernel.U32), sums [][]kernel.Var[kernel.Vec4F]) {
	totals := make([][]kernel.Var[kernel.Vec4F], len(sums))
	for i := range sums {
		totals[i] = kernel.NewVars(b, "total", len(sums[i]), kernel.Vec4F{})
	}
	b.ForStep(kernel.U(0), k, kernel.U(exactTerms), func(from kernel.U32) {
		steps(from, k.Min(from.Add(kernel.U(exactTerms))))
		for i := range sums {
			for j := range sums[i] {
				totals[i][j].Set(totals[i][j].Get().Add(sums[i][j].Get()))
				sums[i][j].Set(kernel.Vec4F{})
			}
		}
	})
	for i := range sums {
		for j := range sums[i] {
			sums[i][j].Set(totals[i][j].Get())
		}
	}
}

// A tile is a part of a matrix in workgroup memory: side lines of depth elements. If deep, the rows
// of the matrix in memory are lines, and otherwise the columns are. If the rows are multiples of
// four elements, the kernel loads and stores them in vectors. In this case only [tile.along] can
// read a deep tile, and only [tile.beside] can read another one.
type tile struct {
	b           *kernel.Builder
	side, depth int
	deep        bool
	wide        kernel.Array[kernel.Vec4F]
	narrow      kernel.Array[kernel.F32]
	at          func(i kernel.U32) kernel.F32
	at4         func(i kernel.U32) kernel.Vec4F // nil unless rows are multiples of four elements
	// get, if not nil, reads an element of an operand that is not a plain matrix.
	get func(line, term kernel.U32) kernel.F32

	origin, first, lines, terms kernel.U32
}

func newTile(b *kernel.Builder, name string, t op.DType, side, depth int, deep, wide bool) *tile {
	x := &tile{b: b, side: side, depth: depth, deep: deep}
	if wide {
		x.at4 = kernel.Input[kernel.Vec4F](b, name).At
		x.wide = kernel.Shared[kernel.Vec4F](b, "tile_"+name, side*depth/4)
	} else {
		x.at = input(b, name, t)
		x.narrow = kernel.Shared[kernel.F32](b, "tile_"+name, side*depth)
	}
	return x
}

// newGathered returns a tile whose elements the function get reads.
func newGathered(b *kernel.Builder, name string, side, depth int, deep bool, get func(line, term kernel.U32) kernel.F32) *tile {
	return &tile{b: b, side: side, depth: depth, deep: deep, get: get, narrow: kernel.Shared[kernel.F32](b, "tile_"+name, side*depth)}
}

// start selects the lines from first on, of a matrix with the given number of lines and terms that
// begins at origin.
func (x *tile) start(origin, first, lines, terms kernel.U32) {
	x.origin, x.first, x.lines, x.terms = origin, first, lines, terms
}

// load loads the depth terms from at on into the tile; elements beyond the matrix are zeros.
// Adjacent lanes read adjacent elements.
func (x *tile) load(at kernel.U32) {
	b, unit := x.b, 1
	if x.at4 != nil {
		unit = 4
	}
	inner, outer := x.side/unit, x.depth
	if x.deep {
		inner, outer = x.depth/unit, x.side
	}
	units := inner * outer
	for e := 0; e < units; e += b.Lanes() {
		i := b.Lane().Add(kernel.U(uint32(e)))
		load := func() {
			in, out := i.Mod(kernel.U(uint32(inner))), i.Div(kernel.U(uint32(inner)))
			line, term := x.first.Add(in.Mul(kernel.U(uint32(unit)))), at.Add(out)
			place := x.origin.Add(term.Mul(x.lines)).Add(line)
			if x.deep {
				line, term = x.first.Add(out), at.Add(in.Mul(kernel.U(uint32(unit))))
				place = x.origin.Add(line.Mul(x.terms)).Add(term)
			}
			inside := line.Lt(x.lines).And(term.Lt(x.terms))
			if unit == 4 {
				v := kernel.NewVar(b, "v", kernel.Vec4F{})
				b.If(inside, func() { v.Set(x.at4(place.Shr(kernel.U(2)))) })
				x.wide.Set(i, v.Get())
				return
			}
			v := kernel.NewVar(b, "v", kernel.F(0))
			b.If(inside, func() {
				if x.get != nil {
					v.Set(x.get(line, term))
				} else {
					v.Set(x.at(place))
				}
			})
			x.narrow.Set(i, v.Get())
		}
		if e+b.Lanes() <= units {
			load()
		} else {
			b.If(i.Lt(kernel.U(uint32(units))), load)
		}
	}
}

// element returns term d of a line.
func (x *tile) element(line, d kernel.U32) kernel.F32 {
	if x.deep {
		return x.narrow.At(line.Mul(kernel.U(uint32(x.depth))).Add(d))
	}
	return x.narrow.At(d.Mul(kernel.U(uint32(x.side))).Add(line))
}

// along returns the terms d to d+3 of a line; d is a multiple of four.
func (x *tile) along(line, d kernel.U32) kernel.Vec4F {
	if x.at4 != nil {
		return x.wide.At(line.Mul(kernel.U(uint32(x.depth / 4))).Add(d.Div(kernel.U(4))))
	}
	var v [4]kernel.F32
	for c := range v {
		v[c] = x.element(line, d.Add(kernel.U(uint32(c))))
	}
	return x.b.Vec4F(v[0], v[1], v[2], v[3])
}

// beside returns term d of the lines 4g to 4g+3.
func (x *tile) beside(d, g kernel.U32) kernel.Vec4F {
	four := kernel.U(4)
	if x.at4 != nil {
		return x.wide.At(d.Mul(kernel.U(uint32(x.side / 4))).Add(g))
	}
	var v [4]kernel.F32
	for c := range v {
		v[c] = x.element(g.Mul(four).Add(kernel.U(uint32(c))), d)
	}
	return x.b.Vec4F(v[0], v[1], v[2], v[3])
}
