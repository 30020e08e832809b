//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A radix sort orders numbers by one digit after the other, from the lowest digit on. Each pass has
// three launches: radixCounts counts the digits of each tile; radixOffsets computes for each tile
// how many elements of the earlier tiles have the same digit; radixMoves writes each element to its
// position. Elements with equal digits keep their order. A workgroup moves one tile. Each of its
// subgroups has neighbouring elements, and a lane finds by votes which lanes of its subgroup have
// the same digit.

const (
	radixLanes  = 256
	radixWarp   = 32 // lanes of a subgroup: see [Target.Votes]
	radixWarps  = radixLanes / radixWarp
	radixDigits = 8  // bits of a digit in a sort
	radixMost   = 10 // bits of the largest digit for which workgroup memory has room
)

// radixKeys says where the keys of a pass come from.
type radixKeys uint8

const (
	keysMade   radixKeys = iota // the previous pass wrote them
	keysOfRow                   // from the elements of a row that is sorted
	keysOfIds                   // from ids: the row that an id names; ids that name no row come last
	keysOfMost                  // like keysOfRow, with the greatest elements first
)

type radixSpec struct {
	Type    op.DType // type of the sorted elements, or of the values that are moved with rows
	Keys    radixKeys
	Bits    int  // bits of the digit
	Items   int  // elements of a lane
	Values  bool // the pass moves elements of v instead of positions
	Last    bool // the pass writes elements of x instead of keys
	Offsets bool // the pass writes the position at which the elements of each digit begin
}

func (s *radixSpec) tile() int { return radixLanes * s.Items }

type radixParams struct {
	N      uint32 // elements of a row
	Tiles  uint32 // tiles of a row
	All    uint32 // tiles of all rows
	Shift  uint32 // position of the digit's lowest bit
	Extent uint32 // number of rows that ids can name; also the key of ids that name no row
}

// radixTile is the tile of the running workgroup.
type radixTile struct {
	b      *kernel.Builder
	s      *radixSpec
	number kernel.U32 // number of the tile; 0 if the workgroup has no tile
	row    kernel.U32
	first  kernel.U32 // index of the row's first element in the array
	at     kernel.U32 // index of the tile's first element in the row
	n      kernel.U32 // elements of the row; 0 if the workgroup has no tile
	shift  kernel.U32
	key    func(i kernel.U32) kernel.U32
}

// newRadixTile sets the local size, declares the array from which the keys are computed, and
// returns the tile of the workgroup.
func newRadixTile(b *kernel.Builder, p *radixParams, s *radixSpec) *radixTile {
	b.LocalSize(radixLanes, 1, 1)
	t := &radixTile{b: b, s: s, shift: b.U32(&p.Shift)}
	switch s.Keys {
	case keysMade:
		t.key = kernel.Input[kernel.U32](b, "keys").At
	case keysOfIds:
		ids, extent := kernel.Input[kernel.I32](b, "ids"), b.U32(&p.Extent)
		t.key = func(i kernel.U32) kernel.U32 {
			row, is := rowOf(ids.At(i), extent)
			return kernel.Select(is, row, extent)
		}
	default:
		order, x := sortSpec{Type: s.Type, Descending: s.Keys == keysOfMost}, inputBits(b, "x", s.Type)
		t.key = func(i kernel.U32) kernel.U32 { return order.key(x(i)) }
	}
	is := b.Group().Lt(b.U32(&p.All))
	t.number = kernel.Select(is, b.Group(), kernel.U(0))
	tiles, n := b.U32(&p.Tiles), b.U32(&p.N)
	t.row = t.number.Div(tiles)
	t.first = t.row.Mul(n)
	t.at = t.number.Mod(tiles).Mul(kernel.U(uint32(s.tile())))
	t.n = kernel.Select(is, n, kernel.U(0))
	return t
}

// element is one element of a lane.
type element struct {
	at, key kernel.U32  // index in the row; key
	is      kernel.Bool // whether the element exists
}

// element returns element j of the lane. The lanes of a subgroup have neighbouring elements.
func (t *radixTile) element(j int) element {
	warp, lane := warpLane(t.b)
	i := t.at.Add(warp.Mul(kernel.U(uint32(radixWarp * t.s.Items)))).Add(kernel.U(uint32(j * radixWarp))).Add(lane)
	key := kernel.NewVar(t.b, "key", kernel.U(0))
	t.b.If(i.Lt(t.n), func() { key.Set(t.key(t.first.Add(i))) })
	return element{i, key.Get(), i.Lt(t.n)}
}

func (t *radixTile) digit(key kernel.U32) kernel.U32 {
	return key.Shr(t.shift).And(kernel.U(1<<t.s.Bits - 1))
}

// warpLane returns the number of the lane's subgroup, and the number of the lane in it.
func warpLane(b *kernel.Builder) (warp, lane kernel.U32) {
	return b.LocalX().Shr(kernel.U(5)), b.LocalX().And(kernel.U(radixWarp - 1))
}

// votes returns a word with one bit for each lane of the subgroup. The bit is set if the lane's in
// is true and the lowest n bits of its digit equal those of the running lane.
func votes(b *kernel.Builder, digit kernel.U32, n int, in kernel.Bool) kernel.U32 {
	_, lane := warpLane(b)
	zero, own := kernel.U(0), kernel.U(1).Shl(lane)
	same := kernel.SubgroupOr(b, kernel.Select(in, own, zero))
	for i := range n {
		has := digit.And(kernel.U(1 << i)).Ne(zero)
		with := kernel.SubgroupOr(b, kernel.Select(in.And(has), own, zero))
		same = same.And(kernel.Select(has, with, with.Not()))
	}
	return kernel.Select(in, same, zero)
}

// below returns the bits of a vote for earlier lanes.
func below(b *kernel.Builder, votes kernel.U32) kernel.U32 {
	_, lane := warpLane(b)
	return votes.And(kernel.U(1).Shl(lane).Sub(kernel.U(1)))
}

// radixCounts counts the digits of each tile.
var radixCounts = maker[radixParams, radixSpec]{name: "radix_counts", build: func(b *kernel.Builder, p *radixParams, s radixSpec, _ *epilogue) {
	t := newRadixTile(b, p, &s)
	counts := kernel.Output[kernel.U32](b, "counts")
	hist := kernel.SharedAtomic[kernel.U32](b, "digits", 1<<s.Bits)
	perLane(b, 1<<s.Bits, func(d kernel.U32) { hist.Store(d, kernel.U(0)) })
	b.Barrier()
	for j := range s.Items {
		e := t.element(j)
		b.If(e.is, func() { hist.Add(t.digit(e.key), kernel.U(1)) })
	}
	b.Barrier()
	b.If(b.Group().Lt(b.U32(&p.All)), func() {
		perLane(b, 1<<s.Bits, func(d kernel.U32) {
			counts.Set(t.number.Mul(kernel.U(1<<s.Bits)).Add(d), hist.Load(d))
		})
	})
}}

// perLane runs f for each i below n, with one lane for each i.
func perLane(b *kernel.Builder, n int, f func(i kernel.U32)) {
	if n%radixLanes != 0 {
		b.ForStep(b.LocalX(), kernel.U(uint32(n)), kernel.U(radixLanes), f)
		return
	}
	for k := range n / radixLanes {
		f(b.LocalX().Add(kernel.U(uint32(k * radixLanes))))
	}
}

type offsetParams struct {
	Tiles   uint32 // tiles of a row
	Digits  uint32 // number of different digits
	Columns uint32 // digits of all rows
}

// radixOffsets replaces the count of a digit in each tile of a row by the sum of the counts in the
// earlier tiles, and writes the total. A lane of each subgroup has one digit and an eighth of the
// tiles.
var radixOffsets = maker[offsetParams, struct{}]{name: "radix_offsets", build: func(b *kernel.Builder, p *offsetParams, _ struct{}, _ *epilogue) {
	b.LocalSize(radixLanes, 1, 1)
	counts, totals := kernel.InOut[kernel.U32](b, "counts"), kernel.Output[kernel.U32](b, "totals")
	parts := kernel.Shared[kernel.U32](b, "parts", radixLanes)
	warp, lane := warpLane(b)
	column, digits, tiles := b.Group().Mul(kernel.U(radixWarp)).Add(lane), b.U32(&p.Digits), b.U32(&p.Tiles)
	is := column.Lt(b.U32(&p.Columns))
	first := column.Div(digits).Mul(tiles).Mul(digits).Add(column.Mod(digits))
	each := tiles.Add(kernel.U(radixWarps - 1)).Div(kernel.U(radixWarps))
	from := warp.Mul(each).Min(tiles)
	to := kernel.Select(is, from.Add(each).Min(tiles), from)
	sum := kernel.NewVar(b, "sum", kernel.U(0))
	b.For(from, to, func(i kernel.U32) { sum.Set(sum.Get().Add(counts.At(first.Add(i.Mul(digits))))) })
	parts.Set(b.LocalX(), sum.Get())
	b.Barrier()
	before, whole := kernel.NewVar(b, "before", kernel.U(0)), kernel.NewVar(b, "whole", kernel.U(0))
	for w := range uint32(radixWarps) {
		part := parts.At(lane.Add(kernel.U(w * radixWarp)))
		before.Set(before.Get().Add(kernel.Select(kernel.U(w).Lt(warp), part, kernel.U(0))))
		whole.Set(whole.Get().Add(part))
	}
	b.For(from, to, func(i kernel.U32) {
		at := first.Add(i.Mul(digits))
		count := counts.At(at)
		counts.Set(at, before.Get())
		before.Set(before.Get().Add(count))
	})
	b.If(is.And(warp.Eq(kernel.U(0))), func() { totals.Set(column, whole.Get()) })
}}

// starts computes in workgroup memory where the elements of each digit begin in a row. totals reads
// how many elements of the row have digit d.
func starts(b *kernel.Builder, n int, totals func(d kernel.U32) kernel.U32) kernel.Array[kernel.U32] {
	begin := kernel.Shared[kernel.U32](b, "begin", n)
	sums := kernel.Shared[kernel.U32](b, "warp_sums", radixWarps)
	each := (n + radixLanes - 1) / radixLanes
	warp, lane := warpLane(b)
	own := kernel.NewVars(b, "own", each, kernel.U(0))
	sum := kernel.NewVar(b, "sum", kernel.U(0))
	place := func(k int) kernel.U32 { return b.LocalX().Mul(kernel.U(uint32(each))).Add(kernel.U(uint32(k))) }
	for k := range each {
		b.If(place(k).Lt(kernel.U(uint32(n))), func() { own[k].Set(totals(place(k))) })
		sum.Set(sum.Get().Add(own[k].Get()))
	}
	within := kernel.SubgroupScanAdd(b, sum.Get())
	b.If(lane.Eq(kernel.U(radixWarp-1)), func() { sums.Set(warp, within.Add(sum.Get())) })
	b.Barrier()
	before := kernel.NewVar(b, "before", within)
	for w := range uint32(radixWarps) {
		before.Set(before.Get().Add(kernel.Select(kernel.U(w).Lt(warp), sums.At(kernel.U(w)), kernel.U(0))))
	}
	for k := range each {
		b.If(place(k).Lt(kernel.U(uint32(n))), func() { begin.Set(place(k), before.Get()) })
		before.Set(before.Get().Add(own[k].Get()))
	}
	b.Barrier()
	return begin
}

// radixMoves writes each element of a tile to its position.
var radixMoves = maker[radixParams, radixSpec]{name: "radix_moves", build: func(b *kernel.Builder, p *radixParams, s radixSpec, e *epilogue) {
	t := newRadixTile(b, p, &s)
	digits := 1 << s.Bits
	load, write := t.payload(e)
	counts, totals := kernel.Input[kernel.U32](b, "counts"), kernel.Input[kernel.U32](b, "totals")
	hist := kernel.SharedAtomic[kernel.U32](b, "digits", radixWarps*digits)
	perLane(b, radixWarps*digits, func(i kernel.U32) { hist.Store(i, kernel.U(0)) })
	begin := starts(b, digits, func(d kernel.U32) kernel.U32 { return totals.At(t.row.Mul(kernel.U(uint32(digits))).Add(d)) })
	if s.Offsets {
		offsets := kernel.Output[kernel.U32](b, "offsets")
		b.If(b.Group().Eq(kernel.U(0)), func() {
			perLane(b, digits, func(d kernel.U32) { offsets.Set(d, begin.At(d)) })
		})
	}
	warp, _ := warpLane(b)
	mine := warp.Mul(kernel.U(uint32(digits)))
	elements, ranks := make([]element, s.Items), make([]kernel.U32, s.Items)
	for j := range s.Items {
		elements[j] = t.element(j)
		ranks[j] = rankInWarp(b, hist, mine, t.digit(elements[j].key), s.Bits, elements[j].is)
	}
	b.Barrier()
	perLane(b, digits, func(d kernel.U32) {
		at := kernel.NewVar(b, "at", begin.At(d).Add(counts.At(t.number.Mul(kernel.U(uint32(digits))).Add(d))))
		for w := range radixWarps {
			i := kernel.U(uint32(w * digits)).Add(d)
			count := hist.Load(i)
			hist.Store(i, at.Get())
			at.Set(at.Get().Add(count))
		}
	})
	b.Barrier()
	for j, x := range elements {
		b.If(x.is, func() {
			to := t.first.Add(hist.Load(mine.Add(t.digit(x.key)))).Add(ranks[j])
			write(to, x.key, load(x.at))
		})
	}
}}

// rankInWarp returns how many earlier elements of the subgroup have the same digit, and counts the
// element.
func rankInWarp(b *kernel.Builder, hist kernel.Atomics[kernel.U32], mine, digit kernel.U32, n int, is kernel.Bool) kernel.U32 {
	same := votes(b, digit, n, is)
	before := below(b, same)
	old := kernel.NewVar(b, "old", kernel.U(0))
	b.If(is.And(before.Eq(kernel.U(0))), func() { old.Set(hist.Add(mine.Add(digit), same.CountOnes())) })
	first := kernel.Select(is, same.TrailingZeros(), kernel.U(0))
	return kernel.SubgroupShuffle(b, old.Get(), first).Add(before.CountOnes())
}

// payload declares the arrays that are moved with the keys. It returns a function that reads an
// element of them and one that writes an element.
func (t *radixTile) payload(e *epilogue) (load func(i kernel.U32) kernel.U32, write func(to, key, v kernel.U32)) {
	b, s := t.b, t.s
	switch {
	case s.Values:
		load = inputBits(b, "v", s.Type)
	case s.Keys == keysMade:
		places := kernel.Input[kernel.U32](b, "places")
		load = func(i kernel.U32) kernel.U32 { return places.At(t.first.Add(i)) }
	default:
		load = func(i kernel.U32) kernel.U32 { return i }
	}
	if s.Last {
		x := inputBits(b, "elements", s.Type)
		put, places := e.bits(b, s.Type), kernel.Output[kernel.U32](b, "sorted_places")
		return load, func(to, _, v kernel.U32) {
			put(to, x(t.first.Add(v)))
			places.Set(to, v)
		}
	}
	keys, moved := kernel.Output[kernel.U32](b, "sorted_keys"), kernel.Output[kernel.U32](b, "sorted_places")
	return load, func(to, key, v kernel.U32) {
		keys.Set(to, key)
		moved.Set(to, v)
	}
}

// radixSort describes a sort of rows.
type radixSort struct {
	rows, cols int
	bits       int // bits of the keys
	radixSpec      // specialisation of the first pass
	extent     int
}

// radixPass adds the launches of a pass. from has the array from which the keys are computed, load
// the array that is moved with them, if there is one, and out the results.
func (p *planner) radixPass(r *radixSort, s radixSpec, shift int, from, load, out []Ref) (totals Ref) {
	digits, tile := 1<<s.Bits, s.tile()
	tiles := (r.cols-1)/tile + 1
	all := r.rows * tiles
	params := radixParams{uint32(r.cols), uint32(tiles), uint32(all), uint32(shift), uint32(r.extent)}
	counts, totals := p.scratch(all*digits), p.scratch(r.rows*digits)
	p.stage(radixCounts.of(radixSpec{Type: s.Type, Keys: s.Keys, Bits: s.Bits, Items: s.Items}, nil), kernel.GridOf(all), params, from[0], counts)
	columns := r.rows * digits
	p.stage(radixOffsets.of(struct{}{}, nil), kernel.GridOf((columns-1)/radixWarp+1), offsetParams{uint32(tiles), uint32(digits), uint32(columns)}, counts, totals)
	bind := append(append(append([]Ref{from[0]}, load...), out...), counts, totals)
	if s.Offsets {
		offsets := p.scratch(digits)
		p.stage(radixMoves.of(s, nil), kernel.GridOf(all), params, append(bind, offsets)...)
		return offsets
	}
	p.stage(radixMoves.of(s, nil), kernel.GridOf(all), params, bind...)
	return totals
}

// radixSorted adds the passes that sort x. The last pass writes values and positions to out. If out
// is nil, it writes keys and positions to temporary arrays, and radixSorted returns these.
func (p *planner) radixSorted(r *radixSort, x Ref, out []Ref) (keys, places Ref) {
	n := r.rows * r.cols
	passes := (r.bits-1)/radixDigits + 1
	var halves [2][]Ref
	for i := range min(passes, 2) {
		halves[i] = []Ref{p.scratch(n), p.scratch(n)}
	}
	from, load := []Ref{x}, []Ref(nil)
	for k := range passes {
		s := r.radixSpec
		s.Bits = min(radixDigits, max(r.bits-k*radixDigits, 1))
		to := halves[k%2]
		if k > 0 {
			s.Keys = keysMade
		}
		if k == passes-1 && out != nil {
			s.Last, to, load = true, out, append(load, x)
		}
		p.radixPass(r, s, k*radixDigits, from, load, to)
		from, load = to[:1], to[1:2:2]
	}
	return from[0], load[0]
}
