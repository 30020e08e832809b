//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// panelForm says how an operand of a product lies in memory and how kernels read it. The lines of
// an operand are the rows of the result for a, and the columns of the result for b.
type panelForm uint8

const (
	lineVectors panelForm = iota // the lines of a term are contiguous; vectors of four are read
	termVectors                  // the terms of a line are contiguous; vectors of four are read
	lineScalars                  // the lines of a term are contiguous; single elements are read
	termScalars                  // the terms of a line are contiguous; single elements are read
	gathered                     // a function finds the elements
)

// formOf returns the form of a matrix. terms says that the terms of a line are contiguous, and
// otherwise the lines of a term are. beside is the number of contiguous elements.
func formOf(terms bool, beside int) panelForm {
	switch {
	case terms && beside%4 == 0:
		return termVectors
	case terms:
		return termScalars
	case beside%4 == 0:
		return lineVectors
	}
	return lineScalars
}

// strided reports whether the four lines of a quad are not adjacent but as far apart as the panel
// has quads. Adjacent lanes then read adjacent elements.
func (f panelForm) strided() bool { return f == lineScalars || f == gathered }

// A panel holds the elements of one operand for a step, in workgroup memory: depth terms of some
// lines, with four lines in a vector. The loaders are the lanes that load it.
type panel struct {
	b              *kernel.Builder
	form           panelForm
	lines, depth   int
	first, loaders int // lanes first to first+loaders-1 load the panel
	half           bool

	// f1, f4, h1 and h4 read an element or a vector at a position in memory. get reads an element
	// of a gathered operand, given the unit, the line of the quad and the term.
	f1    func(i kernel.U32) kernel.F32
	f4    func(i kernel.U32) kernel.Vec4F
	h1    func(i kernel.U32) kernel.F16
	h4    func(i kernel.U32) kernel.Vec4H
	get   func(unit, q int, term kernel.U32) kernel.F32
	units []panelUnit
	from  []kernel.U32 // positions from which the units are read in the first step; the first terms of gathered units
	slot  kernel.U32   // position in workgroup memory of the first unit's first term, in vectors
	pitch kernel.U32   // stride of lines or terms in memory
}

// A panelUnit is the unit of a lane's loads: one term or four terms of four lines.
type panelUnit struct {
	line [4]kernel.U32 // numbers of the lines; a line beyond the end is replaced by the last line
	term kernel.U32    // first term, counted from the beginning of the step
	slot int           // position of the first term, relative to the first unit
}

// newPanel declares an operand. The code that computes the positions of gathered operands declares
// them itself.
func newPanel(b *kernel.Builder, name string, t op.DType, form panelForm, lines, depth, first, loaders int) *panel {
	x := &panel{b: b, form: form, lines: lines, depth: depth, first: first, loaders: loaders, half: t == op.F16 && form != gathered}
	vectors := form == lineVectors || form == termVectors
	switch {
	case form == gathered:
	case x.half && vectors:
		x.h4 = kernel.Input[kernel.Vec4H](b, name).At
	case x.half:
		x.h1 = kernel.Input[kernel.F16](b, name).At
	case vectors:
		x.f4 = kernel.Input[kernel.Vec4F](b, name).At
	default:
		x.f1 = kernel.Input[kernel.F32](b, name).At
	}
	return x
}

// newBlockPanel declares a quantised operand with adjacent terms.
func newBlockPanel(b *kernel.Builder, name string, t op.DType, lines, depth, first, loaders int) *panel {
	return &panel{b: b, form: termVectors, lines: lines, depth: depth, first: first, loaders: loaders, f4: inputBlocks(b, name, t).quad}
}

// width is the stride of terms in workgroup memory, in vectors. If neighbouring lanes write
// different terms, the stride has one additional vector, so that they write to different banks.
func (x *panel) width() int {
	if x.form == termVectors || x.form == termScalars {
		return x.lines/4 + 1
	}
	return x.lines / 4
}

func (x *panel) size() int { return x.depth * x.width() }

// perUnit is the number of vectors of a unit.
func (x *panel) perUnit() int {
	if x.form == termVectors {
		return 4
	}
	return 1
}

// iterations is the number of units that a loader loads. If the number of units does not divide
// evenly, the last lanes load none.
func (x *panel) iterations() int { return max(1, x.lines*x.depth/4/x.perUnit()/x.loaders) }

// registers is the number of vectors that a lane reads for a step.
func (x *panel) registers() int { return x.iterations() * x.perUnit() }

// start finds the units of the lane: terms from term from on, of the count lines from line on, in a
// matrix that begins at origin and whose rows in memory have the stride pitch.
func (x *panel) start(origin, from, line, count, pitch kernel.U32) {
	u := func(v int) kernel.U32 { return kernel.U(uint32(v)) }
	lane, scale := x.b.Lane().Sub(u(x.first)), kernel.U(0)
	if x.form == lineVectors || x.form == termVectors {
		scale = u(2)
	}
	if x.form == termVectors || x.form == termScalars {
		origin = origin.Add(from)
	} else {
		origin = origin.Add(from.Mul(pitch))
	}
	x.pitch, origin = pitch.Shr(scale), origin.Shr(scale)
	quads, last := x.lines/4, count.Sub(u(1))
	// Units are numbered along the contiguous direction. All units of a lane have the same position
	// in this direction, and their positions in the other direction differ by multiples of jump.
	by := quads
	switch x.form {
	case termVectors:
		by = x.depth / 4
	case termScalars:
		by = x.depth
	}
	rest, times, jump := lane.Mod(u(by)), lane.Div(u(by)), x.loaders/by
	for i := range x.iterations() {
		var quad kernel.U32
		e := panelUnit{}
		switch x.form {
		case termVectors:
			e.term, quad, e.slot = rest.Mul(u(4)), times.Add(u(i*jump)), i*jump
		case termScalars:
			e.term, quad, e.slot = rest, times.Add(u(i*jump)), i*jump
		default:
			e.term, quad, e.slot = times.Add(u(i*jump)), rest, i*jump*x.width()
		}
		if i == 0 {
			x.slot = e.term.Mul(u(x.width())).Add(quad)
		}
		for q := range 4 {
			l := line.Add(quad.Mul(u(4))).Add(u(q))
			if x.form.strided() {
				l = line.Add(quad).Add(u(q * quads))
			}
			e.line[q] = l.Min(last)
		}
		x.readFrom(&e, origin, from)
		x.units = append(x.units, e)
	}
}

// readFrom adds the places in memory from which unit e is read.
func (x *panel) readFrom(e *panelUnit, origin, from kernel.U32) {
	two := kernel.U(2)
	switch x.form {
	case gathered:
		x.from = append(x.from, from.Add(e.term))
	case lineVectors: // either all four lines exist or none of them
		x.from = append(x.from, origin.Add(e.term.Mul(x.pitch)).Add(e.line[0].Shr(two)))
	case lineScalars:
		for _, l := range e.line {
			x.from = append(x.from, origin.Add(e.term.Mul(x.pitch)).Add(l))
		}
	case termVectors:
		for _, l := range e.line {
			x.from = append(x.from, origin.Add(l.Mul(x.pitch)).Add(e.term.Shr(two)))
		}
	case termScalars:
		for _, l := range e.line {
			x.from = append(x.from, origin.Add(l.Mul(x.pitch)).Add(e.term))
		}
	}
}

// ahead returns by how much the positions of the units grow with the given number of terms.
func (x *panel) ahead(terms kernel.U32) kernel.U32 {
	switch x.form {
	case termVectors:
		return terms.Shr(kernel.U(2))
	case lineVectors, lineScalars:
		return terms.Mul(x.pitch)
	}
	return terms
}

// staged holds the vectors of a panel that a lane has read but not yet stored in workgroup memory.
type staged struct {
	f []kernel.Var[kernel.Vec4F]
	h []kernel.Var[kernel.Vec4H]
}

func newStaged(b *kernel.Builder, name string, n int, half bool) staged {
	if half {
		return staged{h: kernel.NewVars(b, name, n, kernel.Vec4H{})}
	}
	return staged{f: kernel.NewVars(b, name, n, kernel.Vec4F{})}
}

func (s staged) get(i int) kernel.Vec4F {
	if s.h != nil {
		return s.h[i].Get().Vec4F()
	}
	return s.f[i].Get()
}

func (s staged) clear(i int) {
	if s.h != nil {
		s.h[i].Set(kernel.Vec4H{})
	} else {
		s.f[i].Set(kernel.Vec4F{})
	}
}

// working runs f on the loaders that have a unit to load.
func (x *panel) working(f func()) {
	if n := x.lines * x.depth / 4 / x.perUnit(); n < x.loaders {
		x.b.If(x.b.Lane().Lt(kernel.U(uint32(x.first+n))), f)
	} else {
		f()
	}
}

// load reads the lane's units of a step from the given positions. If have is not nil, the step has
// only *have terms, and the others are zeros.
func (x *panel) load(to staged, places []kernel.U32, have *kernel.U32) {
	x.working(func() {
		for i := range x.units {
			n := len(x.from) / len(x.units)
			read := func() { x.read(to, i, places[i*n:][:n]) }
			if have == nil {
				read()
				continue
			}
			for v := range x.perUnit() {
				to.clear(i*x.perUnit() + v)
			}
			x.b.If(x.units[i].term.Lt(*have), read)
		}
	})
}

func (x *panel) read(to staged, i int, at []kernel.U32) {
	b := x.b
	switch {
	case x.form == gathered:
		var v [4]kernel.F32
		for q := range v {
			v[q] = x.get(i, q, at[0])
		}
		to.f[i].Set(b.Vec4F(v[0], v[1], v[2], v[3]))
	case x.h1 != nil:
		to.h[i].Set(b.Vec4H(x.h1(at[0]), x.h1(at[1]), x.h1(at[2]), x.h1(at[3])))
	case x.f1 != nil:
		to.f[i].Set(b.Vec4F(x.f1(at[0]), x.f1(at[1]), x.f1(at[2]), x.f1(at[3])))
	default:
		for v := range x.perUnit() {
			if x.half {
				to.h[i*x.perUnit()+v].Set(x.h4(at[v]))
			} else {
				to.f[i*x.perUnit()+v].Set(x.f4(at[v]))
			}
		}
	}
}

// store writes the vectors that load has read to workgroup memory. slot is the position of the
// first vector of the first unit.
func (x *panel) store(shared kernel.Array[kernel.Vec4F], slot kernel.U32, from staged) {
	x.working(func() {
		for i, e := range x.units {
			if x.form != termVectors {
				shared.Set(slot.Add(kernel.U(uint32(e.slot))), from.get(i))
				continue
			}
			var v [4]kernel.Vec4F
			for q := range v {
				v[q] = from.get(4*i + q)
			}
			for t := range 4 {
				shared.Set(slot.Add(kernel.U(uint32(e.slot+t*x.width()))), x.b.Vec4F(v[0].At(t), v[1].At(t), v[2].At(t), v[3].At(t)))
			}
		}
	})
}

// place returns the number of line q of a quad, relative to the first line of the panel.
func (x *panel) place(quad kernel.U32, q int) kernel.U32 {
	if x.form.strided() {
		return quad.Add(kernel.U(uint32(q * x.lines / 4)))
	}
	return quad.Mul(kernel.U(4)).Add(kernel.U(uint32(q)))
}
