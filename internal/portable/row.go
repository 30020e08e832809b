//go:build !js || !nowebgpu

package portable

import (
	"slices"
	"strconv"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A row operation computes one row from each row. A lane group keeps a row of moderate length in
// the registers of its lanes. For longer rows there are three ways: the lane group reads them
// twice; it keeps a part of them and reads the rest again from a cache; or several lane groups
// share a row. In the last case, one launch computes the partial of each part and a second launch
// the result, or a single launch does both: see [partials.lookBack].

// rowSchedule is the configuration of a row kernel.
type rowSchedule struct {
	groupLayout
	InRegisters bool // the kernel keeps rows in registers
	Good        int  // best number of resident elements of a lane, at most
	// MaxResident is the maximum number of resident elements of a lane, if the other elements
	// of a longer row are read twice; 0 if the whole row has to be resident.
	MaxResident int
	// Split assigns a part of a row to each lane group.
	Split bool
	// LookBack, if it is not 0, uses a single launch with look-back: the number of MiB of rows
	// whose partials are computed, besides those of the row itself, before the result of its first
	// part. It should be about the amount that the workgroups of a large GPU process at a time, so
	// that no lane waits, and small enough that a part stays in the caches until it is read again.
	LookBack int
	// Early says that weights are read with the elements and not with the results, which
	// takes registers and leaves one wait less.
	Early bool
	// Ragged reads misaligned rows in vectors: see raggedEnd.
	Ragged bool
}

// rowSchedules lists lane groups from the smallest, with the limits of the elements of a row that a
// lane holds in registers.
var rowSchedules = lazyTable[rowsOf, rowSchedule]{make: rowTable}

func rowTable() (vs table[rowsOf, rowSchedule]) {
	add := func(name string, w rowSchedule) {
		for _, w.Subgroups = range []bool{true, false} {
			name, w := name, w
			if w.Subgroups {
				name += "-subgroups"
			}
			vs = append(vs, variant[rowsOf, rowSchedule]{name, func(m rowsOf, t *Target) bool {
				// One lane for a row would keep a GPU busy for long.
				return w.on(t) && (w.GroupLanes > 1 || w.InRegisters || t.Serial) && (!w.Split || m.Cols > minPart) && (w.LookBack == 0 || m.Cols <= w.GroupLanes*minPart) && (w.Split && !w.Ragged || m.Cols <= min(longestRow, longestRow/256*w.GroupLanes)) && (!w.InRegisters || w.MaxResident > 0 || w.elements(m) <= maxEach) && (!w.Ragged || m.Ragged)
			}, w})
		}
	}
	inRegisters := func(lanes, good int) {
		add("team"+strconv.Itoa(lanes), rowSchedule{groupLayout: groupLayout{GroupLanes: lanes, Groups: max(128/lanes, 1)}, InRegisters: true, Good: good})
	}
	ragged := func(name string, lanes, maxResident int) {
		add("edges"+name, rowSchedule{groupLayout: groupLayout{GroupLanes: lanes, Groups: 1}, InRegisters: true, Good: maxEach, MaxResident: maxResident, Ragged: true})
	}
	ragged("512", 512, 0)
	ragged("1024", 1024, 0)
	ragged("kept1024", 1024, 16)
	add("edgessplit", rowSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}, Split: true, Early: true, Ragged: true})
	add("split", rowSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}, Split: true, Early: true})
	inRegisters(1, 4)
	inRegisters(4, 8)
	inRegisters(8, 8)
	inRegisters(16, 8)
	inRegisters(32, 32)
	inRegisters(128, 20)
	inRegisters(256, 32)
	inRegisters(512, 32)
	inRegisters(1024, 32)
	add("loop", rowSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}})
	add("serial", rowSchedule{groupLayout: groupLayout{GroupLanes: 1, Groups: 4}})
	// More elements would leave a lane too few registers for the values that it reads twice.
	add("kept1024", rowSchedule{groupLayout: groupLayout{GroupLanes: 1024, Groups: 1}, InRegisters: true, MaxResident: 16})
	add("kept256", rowSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}, InRegisters: true, MaxResident: 12})
	lookBack := func(lanes, ahead int) {
		w := rowSchedule{groupLayout: groupLayout{GroupLanes: lanes, Groups: 1}, Split: true, LookBack: ahead}
		add("flow"+strconv.Itoa(lanes), w)
		w.Ragged = true
		add("edgesflow"+strconv.Itoa(lanes), w)
	}
	lookBack(128, 8)
	lookBack(256, 9)
	return vs
}

// rowLimit has the limits between the schedules of rows, in elements of a row. The fastest schedule on
// an H200 changes there (docs/measurements/experiments.md).
type rowLimit struct {
	ragged   int // length from which on alignment pays for the additional launches
	resident int // longest row of a schedule that keeps most elements in registers and reads the others again, from the caches
	lookBack int // rows above which a single pass with look-back is faster
	lanes    int // lanes of a lane group with look-back
}

// rowLimits are the limits by the number of weights: operands in addition to the rows. Without weights, rows must be
// longer to gain by alignment. With two, rows in parts are slower, and lanes wait longer and have fewer registers.
var rowLimits = [...]rowLimit{
	{ragged: 16 << 10, resident: 3 << 15, lookBack: 1 << 16, lanes: 256},
	{ragged: 6 << 10, resident: 3 << 15, lookBack: 3 << 14, lanes: 256},
	{ragged: 6 << 10, resident: 9 << 14, lookBack: 1 << 16, lanes: 128},
}

// singleResident replaces the limit resident if lanes read single elements, because the caches then hold fewer elements.
const singleResident = 1 << 16

// serialRows is a number of rows that keeps all threads of a processor busy if each lane computes a row.
const serialRows = 64

// good reports whether the schedule is the best of those that fit. weights is the number of operands in addition to the rows.
func (w *rowSchedule) good(m rowsOf, weights int, t *Target) bool {
	single, serial := w.GroupLanes == 1 && !w.InRegisters, t.Serial && m.Rows >= serialRows && m.Cols <= longestRow/256
	if single || serial {
		return single && serial
	}
	w.take(&m)
	limit := &rowLimits[weights]
	long := m.Cols > maxEach*t.Lanes
	if w.Ragged && !long && (m.Cols < limit.ragged || m.Rows*m.Cols < 1<<24) {
		return false
	}
	longest := limit.resident
	if m.Unit == 1 {
		longest = singleResident
	}
	lookBack := 0
	if long {
		lookBack = m.lookBackLanes(weights, t)
	}
	resident := lookBack == 0 && m.Rows >= 128 && m.Cols <= longest && t.Lanes >= 1024 && (m.Unit > 1 || weights == 0)
	switch {
	case w.LookBack > 0:
		return w.GroupLanes == lookBack && w.Ragged == m.Ragged
	case w.Split && lookBack > 0:
		return false
	case w.Split && w.Ragged:
		return long && !resident && m.Rows*m.Cols >= 1<<22
	case w.Split:
		return m.Cols >= 4*minPart && (m.Rows < 128 || long && !resident)
	case w.MaxResident > 0:
		return w.GroupLanes == 1024 && long && resident
	}
	return w.elements(m) <= w.Good
}

// lookBackLanes returns the number of lanes of a lane group for a single pass with
// look-back, or 0 if another schedule is faster. Rows a little longer than the registers
// hold are faster if most of the row stays resident, and very long rows exceed the caches.
func (m rowsOf) lookBackLanes(weights int, t *Target) int {
	l := &rowLimits[weights]
	if !t.Ordered || m.Bytes != 4 || m.Unit == 1 && !m.Ragged || m.Cols <= l.lookBack || m.Cols > l.lanes*minPart || m.Rows*m.Cols < 1<<25 {
		return 0
	}
	return l.lanes
}

// early reports whether weights should be read before the row: the registers of a multiprocessor
// hold them too, and lanes hold so many elements that they would otherwise wait long.
func (w *rowSchedule) early(m rowsOf, weights int) bool {
	n, much := w.elements(m), 20
	if w.Ragged {
		much = 28 // a misaligned row needs two vectors of weights instead of one
	}
	return w.Early || w.InRegisters && w.MaxResident == 0 && (w.GroupLanes == 1024 || w.GroupLanes == 512 && n > much) && w.GroupLanes*n*(1+weights) <= 1<<16
}

// elements returns the number of elements of a row that a lane holds.
func (w *rowSchedule) elements(m rowsOf) int {
	w.take(&m)
	return ((m.units()-1)/w.GroupLanes + 1) * max(m.Unit, 1)
}

// take sets the number of elements of one load.
func (w *rowSchedule) take(m *rowsOf) {
	if w.Ragged {
		m.Unit = 4
	}
}

type rowParams struct {
	Rows, Cols uint32  // Cols is the length of a row in units
	Count      float32 // elements of a row
	Eps        float32
	// For rows in parts: the units of a part, the parts of a row, and, with look-back, the number
	// of partials that are computed before the result of the first part.
	Part, Parts, Behind uint32
}

// maxMerged is the maximum number of parts of a row for which each lane group of the result
// combines all partials itself.
const maxMerged = 128

// minSharedCols is the least length of a ragged row that is also kept in workgroup memory.
// The caches hold the rest of shorter rows, and each store takes time.
const minSharedCols = 43 << 10

// rowSpec specialises the kernels of row operations.
type rowSpec struct {
	Op   string
	Type op.DType
	rowSchedule
	Weights int // number of operands besides x
	Unit    int // elements of one load
	Each    int // see stridedRange
	filled
	// Shifted says that an earlier launch has laid weights out for misaligned rows.
	Shifted  bool
	Rest     bool     // rows are longer than their resident part
	InShared int      // units that a lane keeps in workgroup memory, in addition to Each
	Part     partKind // kind of the partials if rows have parts
	Parts    bool     // the kernel handles a part of a row
	Joined   bool     // an earlier launch has combined the partials of each row
	Back     bool     // the kernel starts with the last part
}

// rowFamily returns the family of row operations with kernels from m.
func rowFamily(m *maker[rowParams, rowSpec]) *family {
	return &family{variants: rowSchedules.get().names(), plan: func(q *request) (*Plan, error) { return planRows(m, q) }}
}

// planRows plans a row operation with kernels from m.
func planRows(m *maker[rowParams, rowSpec], q *request) (*Plan, error) {
	a := rowsOf{}
	a.Rows, a.Cols = q.In[0].Shape.Rows()
	a.Bytes, a.Unit = q.In[0].Type.Size(), unitOf(q.In[0].Type, a.Cols)
	if q.epilogue != nil && !alignedOperands(q.epilogue.in, a.Rows*a.Cols) {
		a.Unit = 1
	}
	a.Ragged = a.Unit == 1 && q.In[0].Type == op.F32 && q.epilogue == nil && a.Cols >= minRaggedCols
	w, name, err := rowSchedules.get().prefer(q, a, func(w *rowSchedule) bool { return w.good(a, len(q.inputs())-1, &q.Target) })
	if err != nil {
		return nil, err
	}
	w.take(&a)
	w.groupLayout, w.Early = w.with(&q.Target), w.early(a, len(q.inputs())-1)
	bind := q.inputs()
	s := rowSpec{Op: q.Op.Name(), Type: q.In[0].Type, rowSchedule: w, Unit: a.Unit}
	s.reside(a, &q.Target)
	for i := 1; i < len(q.In); i++ {
		if q.In[i].Shape != nil {
			s.Weights |= 1 << i
		}
	}
	params := rowParams{Rows: uint32(a.Rows), Cols: uint32(a.units()), Count: float32(a.Cols), Eps: op.NormOptsOf(&q.Attrs).Eps}
	var p planner
	groups, in, weights, out := a.Rows, bind[:1:1], bind[1:], q.outputs()
	if w.Ragged {
		params.Cols = uint32(a.Cols)
		in = append(in, in[0])
		out = append(out[:1:1], p.scratch(raggedLanes*a.Rows))
	}
	var pieces []Ref
	if w.Split {
		groups, pieces = s.split(&p, q, a, &params, in)
	}
	if w.Ragged {
		weights = s.raggedWeights(&p, weights, a.Cols)
	}
	p.stage(m.of(s, q.epilogue), w.groups(groups), params, slices.Concat(in, weights, pieces, out)...)
	if w.Ragged {
		e, from := raggedSpec{Type: s.Type}, []Ref{out[1]}
		if w.Split {
			e.Weights, from = s.Weights, append(from, bind[1:]...)
		}
		p.stage(storeRagged.of(e, nil), kernel.GridFor(raggedLanes*a.Rows, raggedLocal), raggedParams{uint32(a.Rows), uint32(a.Cols)}, append(from, out[0])...)
	}
	return p.done(name)
}

// reside determines how many units of a row stay in the registers of each lane, and in shared memory.
func (s *rowSpec) reside(a rowsOf, t *Target) {
	w := &s.rowSchedule
	if !w.InRegisters {
		return
	}
	limit := maxEach
	if w.MaxResident > 0 {
		limit = w.MaxResident
	}
	if s.Each, s.filled = eachOf(a.units(), w.groupLayout, limit/a.Unit); s.Each == 0 {
		s.Each, s.Rest = limit/a.Unit, true
		if w.Ragged && a.Cols > minSharedCols && t.Shared >= 48<<10 {
			s.InShared = 2
		}
	} else if w.Ragged {
		s.filled = allButLast // a row may have one sector less
	}
}

// split adds the launch that computes the partials of the rows of in; with look-back, it adds the
// launch that clears the words of the partials. It returns how many lane groups the launch of the
// result has, and the arrays of the partials.
func (s *rowSpec) split(p *planner, q *request, a rowsOf, params *rowParams, in []Ref) (groups int, pieces []Ref) {
	units := max(minPart, ((a.Cols-1)/maxParts+4)&^3) / a.Unit
	if units*a.Unit == minPart {
		// The lane reads these elements before the partials, so that both loads overlap.
		s.Each, s.filled = units/s.GroupLanes, anyOf
		if a.units()%units == 0 && !s.Ragged {
			s.filled = all
		}
	}
	s.Part = partKinds[q.Op]
	params.Part, params.Parts = uint32(units), uint32((a.units()-1)/units+1)
	parts := a.Rows * int(params.Parts)
	if s.LookBack > 0 {
		words := s.Part.words() * parts
		pieces = append(pieces, p.scratch(words))
		p.stage(fill.of(op.F32, nil), kernel.GridFor(words, fillLanes), fillParams{N: uint32(words)}, pieces...)
		params.Behind = params.Parts - 1 + uint32(s.LookBack<<20/(minPart*s.Type.Size()))
		return 2 * (parts + int(params.Behind)), pieces
	}
	pieces = s.Part.scratch(p, parts)
	first := rowSpec{Op: s.Part.name, Type: s.Type, rowSchedule: s.rowSchedule, Unit: s.Unit, Each: s.Each, filled: s.filled, Part: s.Part, Parts: true}
	p.stage(rowParts.of(first, nil), s.groups(parts), *params, slices.Concat(in, pieces)...)
	if s.Back, s.Joined = true, params.Parts > maxMerged; s.Joined {
		from := pieces
		pieces = s.Part.scratch(p, a.Rows)
		first.Parts, first.Each, first.filled = false, 0, allButLast
		p.stage(combinedParts.of(first, nil), s.groups(a.Rows), *params, slices.Concat(from, pieces)...)
	}
	return parts, pieces
}

// row is the row of a lane group, or a part of this row. A lane group without a row reads the first
// row and writes nothing.
type row struct {
	stridedRange
	is    kernel.Bool
	start kernel.U32 // first unit of the row; its first element if rows are ragged
	begin kernel.U32 // first whole unit of the row
	unit  int
	raggedInput
	resident []kernel.F32  // the lane's elements if they are resident
	at       []kernel.U32  // positions of the resident units
	there    []kernel.Bool // whether each resident unit exists
	rest     *stridedRange // the part of the row that is not resident, or nil
	ragged   *raggedEnd    // the ragged element, which follows the resident units, or nil
	number   kernel.U32    // number of the row
	// The following fields are for parts of rows.
	piece  kernel.U32    // index of the part's partial
	pieces [2]kernel.U32 // range of the partials of the row: the first is included, the last is not
	parted
}

// parted gives the extent of each part of a row.
type parted struct {
	elements func(piece kernel.U32) kernel.F32            // number of elements of a part
	extent   func(piece kernel.U32) (from, to kernel.U32) // range of its units
	singles  func(piece kernel.U32) (from, to kernel.U32) // range of its ragged elements, if rows are ragged
}

func (r *row) isPart() bool { return r.extent != nil }

// isFirst and isLast report whether a part is the first or the last of the row.
func (r *row) isFirst(piece kernel.U32) kernel.Bool { return piece.Eq(r.pieces[0]) }
func (r *row) isLast(piece kernel.U32) kernel.Bool {
	return piece.Add(kernel.U(1)).Eq(r.pieces[1])
}

func newRow(b *kernel.Builder, t *laneGroup, p *rowParams, s *rowSpec, x raggedInput) *row {
	r := placeRow(b, t, p, s, x)
	r.load()
	return r
}

// placeRow is newRow without the loads.
func placeRow(b *kernel.Builder, t *laneGroup, p *rowParams, s *rowSpec, x raggedInput) *row {
	if s.Split {
		return placePart(b, t, p, s, x)
	}
	cols := b.U32(&p.Cols)
	r := &row{unit: s.Unit, raggedInput: x, stridedRange: stridedRange{t: t, Each: s.Each, filled: s.filled}}
	r.number = t.number
	r.is = t.number.Lt(b.U32(&p.Rows))
	r.start = kernel.Select(r.is, t.number, kernel.U(0)).Mul(cols)
	r.begin = r.start
	r.first, r.last = r.start, r.start.Add(cols)
	if s.Ragged {
		e := raggedEndOf(t.lane, r.start, cols)
		r.begin, r.first, r.last, r.ragged = e.from, e.from, e.to, &e
		b.PreferRegisters() // for resident elements and vectors of weights
	}
	if s.Rest {
		b.PreferRegisters() // for resident elements and the weights that are read with them
		r.rest = &stridedRange{t: t, first: r.first.Add(kernel.U(uint32(s.Each * s.GroupLanes))), last: r.last}
		if s.InShared > 0 {
			r.rest.shared = &inShared{row: r, n: s.InShared, x: kernel.Shared[kernel.Vec4F](b, "stored", s.InShared*s.GroupLanes)}
		}
	}
	return r
}

// placePart is placeRow for parts of rows.
func placePart(b *kernel.Builder, t *laneGroup, p *rowParams, s *rowSpec, x raggedInput) *row {
	cols, length, parts := b.U32(&p.Cols), b.U32(&p.Part), b.U32(&p.Parts)
	unit, zero, one := kernel.U(uint32(s.Unit)), kernel.U(0), kernel.U(1)
	r := &row{unit: s.Unit, raggedInput: x, stridedRange: stridedRange{t: t, Each: s.Each, filled: s.filled}}
	all := b.U32(&p.Rows).Mul(parts)
	r.is = t.number.Lt(all)
	r.piece = t.number
	if s.Back {
		// The last part first, because the elements that were read last may still be in a cache.
		r.piece = all.Sub(one).Sub(r.piece)
	}
	r.piece = kernel.Select(r.is, r.piece, zero)
	r.number = r.piece.Div(parts)
	r.pieces[0] = r.number.Mul(parts)
	r.pieces[1] = r.pieces[0].Add(parts)
	r.start = r.number.Mul(cols)
	r.begin = r.start
	rowEnd := r.start.Add(cols)
	end := rowEnd
	if s.Ragged { // the ragged ends belong to the first and the last part
		e := raggedEndOf(t.lane, r.start, cols)
		r.begin, end, r.ragged = e.from, e.to, &e
		e.is = e.is.And(kernel.Select(t.lane.Lt(kernel.U(sector)), r.pieces[0], r.pieces[1].Sub(one)).Eq(r.piece))
		e.at = kernel.Select(e.is, e.at, r.start)
	}
	r.extent = func(piece kernel.U32) (from, to kernel.U32) {
		from = r.begin.Add(piece.Sub(r.pieces[0]).Mul(length)).Min(end)
		return from, from.Add(length).Min(end)
	}
	r.singles = func(piece kernel.U32) (from, to kernel.U32) {
		from, to = r.extent(piece)
		return kernel.Select(r.isFirst(piece), r.start, from.Mul(unit)), kernel.Select(r.isLast(piece), rowEnd, to.Mul(unit))
	}
	r.elements = func(piece kernel.U32) kernel.F32 {
		if s.Ragged {
			from, to := r.singles(piece)
			return to.Sub(from).F32()
		}
		from, to := r.extent(piece)
		return to.Sub(from).Mul(unit).F32()
	}
	r.first, r.last = r.extent(r.piece)
	return r
}

// load reads the lane's elements if they stay resident.
func (r *row) load() {
	if r.Each > 0 {
		r.stridedRange.each(r.unit, func(at []kernel.U32, is []kernel.Bool) { r.resident, r.at, r.there = r.units.read(at), at, is })
	}
	if r.ragged != nil {
		r.resident, r.there = append(r.resident, r.raggedElement()), append(r.there, r.ragged.is)
	}
}

// raggedElement reads the lane's element of the ragged ends. Without one, it returns another
// element.
func (r *row) raggedElement() kernel.F32 {
	if !r.isPart() {
		return r.single(r.ragged.at)
	}
	v := kernel.NewVar(r.t.b, "edge", r.resident[0]) // an element of the row, which does not change a maximum
	r.t.b.If(r.isFirst(r.piece).Or(r.isLast(r.piece)), func() { v.Set(r.single(r.ragged.at)) })
	return v.Get()
}

// only replaces the values of missing elements by 0.
func (r *row) only(vs []kernel.F32) []kernel.F32 {
	out := make([]kernel.F32, len(vs))
	for i, v := range vs {
		out[i] = kernel.Select(r.there[i/r.unit], v, kernel.F(0))
	}
	return out
}

// write computes and stores the results. f computes the result of the unit xs at position j of the
// row. k is the lane's resident unit, or -1 if the unit is not resident.
func (r *row) write(put func(i kernel.U32, vs []kernel.F32), f func(k int, j kernel.U32, xs []kernel.F32) []kernel.F32) {
	b := r.t.b
	each := func(k int, i kernel.U32, xs []kernel.F32) { put(i, f(k, i.Sub(r.begin), xs)) }
	again := func(at []kernel.U32, _ []kernel.Bool) {
		xs := r.units.read(at)
		for k, i := range at {
			each(-1, i, xs[k*r.unit:][:r.unit])
		}
	}
	b.If(r.is, func() {
		if r.Each == 0 {
			r.stridedRange.each(r.unit, again)
			return
		}
		if r.rest != nil {
			r.rest.back(r.unit, again)
		}
		for k, i := range r.at {
			b.If(r.there[k], func() { each(k, i, r.resident[k*r.unit:][:r.unit]) })
		}
		if n, e := len(r.at), r.ragged; e != nil {
			b.If(e.is, func() {
				put(r.number.Mul(kernel.U(raggedLanes)).Add(r.t.lane), f(n, e.at.Sub(r.start), r.resident[n*r.unit:]))
			})
		}
	})
}
