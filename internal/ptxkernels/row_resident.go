package ptxkernels

import (
	"math"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// rowPart is a vector of a row that a thread holds: in registers with one element each, in
// registers packed as in memory, or in a slot of shared memory that only this thread uses.
type rowPart struct {
	values []ptx.F32
	packed []ptx.B32
	slot   ptx.Shared[ptx.B32]
	behind int // groups of copies that were started after the copy of this part; -1 if the part has arrived
}

// residentRow is a row that its threads hold in registers and shared memory.
type residentRow struct {
	s      *rowSpec
	k      *ptx.Kernel
	number ptx.U32
	place  ptx.U32  // index in the row of the thread's first vector
	is     ptx.Pred // whether the row exists
	n      ptx.U32  // end of the row's vectors; 0 if the row does not exist
	first  ptx.U32  // index in the array of the row's first vector
	skip   ptx.U32  // elements of the first vector before the row
	cols   ptx.U32
	parts  []rowPart
	stream *rowStream // the stream that loads the row, or nil
	stage  *rowStage  // the stage that holds the row, or nil
}

// newResidentRow returns row number, without loading its elements.
func (t *rowGroup) newResidentRow(number, rows, cols ptx.U32) *residentRow {
	s := t.s
	width := ptx.N(s.Width)
	r := &residentRow{s: s, k: t.k, number: number, place: t.lane, cols: cols, is: number.Lt(rows)}
	start := number.Mul(cols)
	r.first, r.n = start, cols
	switch {
	case s.Width == 1:
	case s.Misaligned:
		r.skip = start.And(ptx.N(s.Width - 1))
		r.first = start.Div(width)
		r.n = cols.Add(r.skip).Add(ptx.N(s.Width - 1)).Div(width)
	default:
		r.first, r.n = start.Div(width), cols.Div(width)
	}
	r.n = ptx.Select(r.is, r.n, ptx.U(0))
	if s.Parts != wholeRows { // all parts but the last have t.each vectors
		begin := t.part.Mul(t.each)
		r.place = begin.Add(t.lane)
		r.n = r.n.Min(begin.Add(t.each))
	}
	return r
}

// in returns whether part p of the thread is in the row.
func (r *residentRow) in(p int) ptx.Pred {
	if p < r.s.Whole {
		return r.is
	}
	return r.place.Add(ptx.N(p * r.s.Lanes)).Lt(r.n)
}

// column returns the index in the row of the first element of part p. It may be negative if rows
// are misaligned.
func (r *residentRow) column(p int) ptx.U32 {
	return r.place.Add(ptx.N(p * r.s.Lanes)).Mul(ptx.N(r.s.Width)).Sub(r.skip)
}

// ragged reports whether part p may have elements of other rows.
func (r *residentRow) ragged(p int) bool { return r.s.Misaligned && (p == 0 || p >= r.s.Whole) }

// valid returns whether element e of part p is in the row.
func (r *residentRow) valid(p, e int) ptx.Pred {
	switch col := r.column(p).Add(ptx.N(e)); {
	case !r.ragged(p):
		return r.in(p)
	case p < r.s.Whole:
		return r.is.And(col.S32().Ge(ptx.S(0)))
	default:
		in := r.is.And(col.Lt(r.cols))
		if r.s.Parts != wholeRows {
			in = in.And(r.in(p))
		}
		return in
	}
}

// rowNeutral returns a word whose elements all are v.
func rowNeutral(t op.DType, v float32) ptx.B32 {
	switch bits := math.Float32bits(v); {
	case t == op.F32 || bits == 0:
		return ptx.B(bits)
	case t == op.BF16:
		return ptx.B(bits>>16 | bits&0xffff0000)
	case math.IsInf(float64(v), 0):
		return ptx.B(0x7c007c00 | bits>>31*0x80008000)
	}
	panic("ptxkernels: unsupported neutral element for f16 rows")
}

// load loads the row from x. Elements outside the row become neutral. It starts all loads before it
// waits for one.
func (r *residentRow) load(x ptx.Global[ptx.B32], t *rowGroup, neutral float32) {
	s := r.s
	if s.Width == 1 {
		r.loadSingle(x, neutral)
		return
	}
	r.parts = make([]rowPart, s.Registers+s.Shared)
	// Start the copies to shared memory first: they need no registers while they are in flight.
	for p := s.Registers; p < len(r.parts); p++ {
		r.parts[p] = rowPart{slot: t.slot(), behind: -1}
		r.copyTo(r.parts[p].slot, x, p, t.all)
	}
	r.loadRegisters(x, t, neutral, 0)
	if s.Shared > 0 {
		r.k.CopyCommit()
	}
}

// copyTo starts to copy part p to shared memory. all is the number of elements of the array, which
// may end inside a vector.
func (r *residentRow) copyTo(slot ptx.Shared[ptx.B32], x ptx.Global[ptx.B32], p int, all ptx.U32) {
	s, k := r.s, r.k
	at := r.first.Add(r.place)
	src := x.At(at.Mul(ptx.U(4))).Offset(4 * p * s.Lanes)
	if !s.Misaligned || p < s.Whole {
		k.When(r.in(p), func() { ptx.CopyAsync(slot, src, 16) })
		return
	}
	bytes := all.Sub(at.Add(ptx.N(p * s.Lanes)).Mul(ptx.N(s.Width))).Min(ptx.N(s.Width)).Mul(ptx.N(s.Type.Size()))
	k.When(r.in(p), func() { ptx.CopyAsyncZero(slot, src, 16, bytes) })
}

// copyAll is copyTo, but it writes zeros if the part is beyond the row.
func (r *residentRow) copyAll(slot ptx.Shared[ptx.B32], x ptx.Global[ptx.B32], p int, all ptx.U32) {
	s, k := r.s, r.k
	if p < s.Whole {
		r.copyTo(slot, x, p, all)
		return
	}
	at := r.first.Add(r.place)
	bytes := ptx.U(16)
	if s.Misaligned {
		bytes = all.Sub(at.Add(ptx.N(p * s.Lanes)).Mul(ptx.N(s.Width))).Min(ptx.N(s.Width)).Mul(ptx.N(s.Type.Size()))
	}
	bytes = ptx.Select(r.in(p), bytes, ptx.U(0))
	k.When(r.is, func() { ptx.CopyAsyncZero(slot, x.At(at.Mul(ptx.U(4))).Offset(4*p*s.Lanes), 16, bytes) })
}

// loadRegisters loads the parts that registers hold, from part from on.
func (r *residentRow) loadRegisters(x ptx.Global[ptx.B32], t *rowGroup, neutral float32, from int) {
	s, k := r.s, r.k
	at := r.first.Add(r.place)
	words := s.words()
	src := x.At(at.Mul(ptx.N(words))).Hint(s.Load)
	fill := rowNeutral(s.Type, neutral)
	vars := make([][]ptx.Var[ptx.B32], s.Registers)
	for p := from; p < len(vars); p++ {
		for range words {
			vars[p] = append(vars[p], ptx.NewVar(k, fill))
		}
		whole := r.in(p)
		if s.Misaligned && p >= s.Whole {
			end := at.Add(ptx.N(p*s.Lanes + 1)).Mul(ptx.N(s.Width))
			whole = whole.And(end.Le(t.all))
		}
		k.When(whole, func() {
			for j, v := range loadWords(src.Offset(words*p*s.Lanes), words) {
				vars[p][j].Set(v)
			}
		})
	}
	if s.Misaligned {
		for p := max(s.Whole, from); p < len(vars); p++ {
			begin := at.Add(ptx.N(p * s.Lanes)).Mul(ptx.N(s.Width))
			k.If(r.in(p).And(begin.Add(ptx.N(s.Width)).Gt(t.all)), func() {
				r.loadEnd(vars[p], src.Offset(words*p*s.Lanes), t.all.Sub(begin), fill)
			})
		}
	}
	for p := from; p < len(vars); p++ {
		raw := make([]ptx.B32, words)
		for j, v := range vars[p] {
			raw[j] = v.Get()
		}
		r.setRegisters(p, raw, neutral)
	}
}

// words returns the number of words that a thread loads at once.
func (s *rowSpec) words() int { return s.Width * s.Type.Size() / 4 }

// loadWords loads 1, 2 or 4 words.
func loadWords(from ptx.Global[ptx.B32], n int) []ptx.B32 {
	switch n {
	case 1:
		return []ptx.B32{from.Load()}
	case 2:
		v := from.Load2()
		return v[:]
	}
	v := from.Load4()
	return v[:]
}

// storeWords stores 1, 2 or 4 words.
func storeWords(to ptx.Global[ptx.B32], v []ptx.B32) {
	switch len(v) {
	case 1:
		to.Store(v[0])
	case 2:
		to.Store2([2]ptx.B32(v))
	default:
		to.Store4([4]ptx.B32(v))
	}
}

// setRegisters stores the words of a vector in the registers of part p.
func (r *residentRow) setRegisters(p int, raw []ptx.B32, neutral float32) {
	if r.s.Packed {
		r.parts[p].packed = r.maskedWords(p, raw, neutral)
	} else {
		r.parts[p].values = r.masked(p, unpackRow(r.s.Type, raw), neutral)
	}
}

// loadEnd loads the first n elements of the last vector of the array.
func (r *residentRow) loadEnd(to []ptx.Var[ptx.B32], from ptx.Global[ptx.B32], n ptx.U32, fill ptx.B32) {
	if r.s.Type == op.F32 {
		for j := range to {
			r.k.When(ptx.N(j).Lt(n), func() { to[j].Set(from.Offset(j).Load()) })
		}
		return
	}
	half := ptx.Cast[ptx.U16](from)
	for j := range to {
		var part [2]ptx.Var[ptx.U32]
		for h := range part {
			part[h] = ptx.NewVar(r.k, fill.U32().And(ptx.U(0xffff)))
			r.k.When(ptx.N(2*j+h).Lt(n), func() { part[h].Set(half.Offset(2*j + h).Load().U32()) })
		}
		to[j].Set(part[1].Get().Shl(ptx.U(16)).Or(part[0].Get()).B32())
	}
}

// loadSingle is load, element by element.
func (r *residentRow) loadSingle(x ptx.Global[ptx.B32], neutral float32) {
	at := r.first.Add(r.place)
	r.parts = make([]rowPart, r.s.Registers)
	vars := make([]ptx.Var[ptx.F32], r.s.Registers)
	load := rowElement(x, r.s.Type, at, r.s.Load)
	for p := range vars {
		vars[p] = ptx.NewVar(r.k, ptx.F(neutral))
		r.k.When(r.in(p), func() { vars[p].Set(load(p * r.s.Lanes)) })
	}
	for p := range vars {
		r.parts[p].values = []ptx.F32{vars[p].Get()}
	}
}

// rowElement returns a function that loads element i+offset.
func rowElement(x ptx.Global[ptx.B32], t op.DType, i ptx.U32, h ptx.Hint) func(offset int) ptx.F32 {
	switch t {
	case op.F16:
		p := ptx.Cast[ptx.F16](x).At(i).Hint(h)
		return func(n int) ptx.F32 { return p.Offset(n).Load().F32() }
	case op.BF16:
		p := ptx.Cast[ptx.BF16](x).At(i).Hint(h)
		return func(n int) ptx.F32 { return p.Offset(n).Load().F32() }
	}
	p := ptx.Cast[ptx.F32](x).At(i).Hint(h)
	return func(n int) ptx.F32 { return p.Offset(n).Load() }
}

// unpackRow returns the elements of words.
func unpackRow(t op.DType, raw []ptx.B32) []ptx.F32 {
	var v []ptx.F32
	for _, w := range raw {
		switch t {
		case op.F32:
			v = append(v, w.Float())
		case op.F16:
			low, high := w.F16x2().Halves()
			v = append(v, low.F32(), high.F32())
		case op.BF16:
			v = append(v, w.Shl(ptx.U(16)).Float(), w.And(ptx.B(0xffff0000)).Float())
		}
	}
	return v
}

// packRow returns the words of elements.
func packRow(t op.DType, v []ptx.F32) []ptx.B32 {
	raw := make([]ptx.B32, len(v)*t.Size()/4)
	for i := range raw {
		switch t {
		case op.F32:
			raw[i] = v[i].Bits()
		case op.F16:
			raw[i] = v[2*i+1].PackF16(v[2*i]).B32()
		case op.BF16:
			raw[i] = v[2*i+1].PackBF16(v[2*i]).B32()
		}
	}
	return raw
}

// slot allocates a slot in shared memory for each thread and returns this thread's.
func (t *rowGroup) slot() ptx.Shared[ptx.B32] {
	return ptx.DynamicShared[ptx.B32](t.k, 4*t.s.threads()).At(t.tid.Mul(ptx.U(4)))
}

// words returns the contents of the slot of part p, with neutral for parts beyond the row, which
// were not copied.
func (r *residentRow) words(slot ptx.Shared[ptx.B32], p int, neutral float32) []ptx.B32 {
	if r.stream != nil { // copyAll wrote zeros there
		v := slot.Load4()
		return v[:]
	}
	raw := [4]ptx.Var[ptx.B32]{}
	for j := range raw {
		raw[j] = ptx.NewVar(r.k, rowNeutral(r.s.Type, neutral))
	}
	r.k.When(r.in(p), func() {
		for j, v := range slot.Load4() {
			raw[j].Set(v)
		}
	})
	words := make([]ptx.B32, 4)
	for j := range raw {
		words[j] = raw[j].Get()
	}
	return words
}

// each runs f for the elements of each part of the row. Elements outside the row are replaced by
// neutral. If f returns a non-nil slice, it replaces the elements; f may do this only if keeps(p)
// is true.
func (r *residentRow) each(neutral float32, f func(p int, v []ptx.F32) []ptx.F32) {
	for p := range r.parts {
		r.one(p, neutral, func(v []ptx.F32) []ptx.F32 { return f(p, v) })
	}
}

// one runs f for part p: see [residentRow.each].
func (r *residentRow) one(p int, neutral float32, f func(v []ptx.F32) []ptx.F32) {
	c := &r.parts[p]
	switch {
	case c.values != nil:
		if v := f(c.values); v != nil {
			c.values = v
		}
	case c.packed != nil:
		f(unpackRow(r.s.Type, c.packed))
	default:
		if c.behind >= 0 {
			r.k.CopyWait(c.behind)
			c.behind = -1
		}
		words := r.words(c.slot, p, neutral)
		if v := f(r.masked(p, unpackRow(r.s.Type, words), neutral)); v != nil {
			c.slot.Store4([4]ptx.B32(packRow(r.s.Type, v)))
		}
	}
}

// keeps reports whether [residentRow.each] can replace the elements of part p.
func (r *residentRow) keeps(p int) bool {
	return !r.s.Packed && (p < r.s.Registers || r.s.Type == op.F32)
}

// masked returns v with elements outside the row replaced by neutral.
func (r *residentRow) masked(p int, v []ptx.F32, neutral float32) []ptx.F32 {
	if r.mixed(p) {
		for e := range v {
			v[e] = ptx.Select(r.valid(p, e), v[e], ptx.F(neutral))
		}
	}
	return v
}

// mixed reports whether part p may contain elements outside the row.
func (r *residentRow) mixed(p int) bool { return r.ragged(p) || r.stream != nil && p >= r.s.Whole }

// maskedWords is masked for packed elements.
func (r *residentRow) maskedWords(p int, raw []ptx.B32, neutral float32) []ptx.B32 {
	if !r.mixed(p) {
		return raw
	}
	words, fill := make([]ptx.B32, len(raw)), rowNeutral(r.s.Type, neutral)
	for j, w := range raw {
		if r.s.Type == op.F32 {
			words[j] = ptx.Select(r.valid(p, j), w, fill)
			continue
		}
		low, high := ptx.Select(r.valid(p, 2*j), w, fill), ptx.Select(r.valid(p, 2*j+1), w, fill)
		words[j] = low.And(ptx.B(0xffff)).Or(high.And(ptx.B(0xffff0000)))
	}
	return words
}

// store applies the epilogue to the elements of part p and writes them.
func (r *residentRow) store(y *sink, p int, v []ptx.F32) {
	r.put(y, p, v)
	if r.stream != nil && p >= r.s.Registers {
		r.stream.issue(p) // the slot is free now
	}
}

func (r *residentRow) put(y *sink, p int, v []ptx.F32) {
	s, k := r.s, r.k
	at := r.first.Add(r.place).Add(ptx.N(p * s.Lanes)).Mul(ptx.N(s.Width)) // element of the array
	if r.stage != nil {
		r.stage.store(r, p, v[0])
		return
	}
	one := func(e int) {
		y.setRow(r.number, r.column(p).Add(ptx.N(e)), at.Add(ptx.N(e)), v[e])
	}
	if s.Width == 1 {
		k.If(r.in(p), func() { one(0) })
		return
	}
	words := s.words()
	to := ptx.Cast[ptx.B32](y.to[0]).At(r.first.Add(r.place).Mul(ptx.N(words))).Offset(words * p * s.Lanes).Hint(s.Save)
	all := func(in ptx.Pred) {
		if y.exprs == nil {
			raw := packRow(s.Type, v)
			k.When(in, func() { storeWords(to, raw) })
			return
		}
		k.If(in, func() {
			for e := 0; e < len(v); e += 4 {
				if len(v) < 4 {
					one(e)
					one(e + 1)
					continue
				}
				y.setRow(r.number, r.column(p).Add(ptx.N(e)), at.Add(ptx.N(e)), v[e:e+4]...)
			}
		})
	}
	if !r.ragged(p) {
		all(r.in(p))
		return
	}
	// Vectors within the row are processed whole, the first and the last by element.
	col := r.column(p)
	whole := r.in(p).And(col.S32().Ge(ptx.S(0))).And(col.Add(ptx.N(s.Width)).S32().Le(r.cols.S32()))
	all(whole)
	k.If(r.in(p).And(whole.Not()), func() {
		if y.exprs == nil && s.Width == 2 { // with wider vectors, a branch that skips them is faster
			r.storePair(to, p, v)
			return
		}
		for e := range v {
			k.If(r.valid(p, e), func() { one(e) })
		}
	})
}

// storePair stores a pair of 16-bit elements, without those outside the row.
func (r *residentRow) storePair(to ptx.Global[ptx.B32], p int, v []ptx.F32) {
	for e := range v {
		r.k.When(r.valid(p, e), func() {
			if r.s.Type == op.F16 {
				ptx.Cast[ptx.F16](to).Offset(e).Store(v[e].F16())
			} else {
				ptx.Cast[ptx.BF16](to).Offset(e).Store(v[e].BF16())
			}
		})
	}
}
