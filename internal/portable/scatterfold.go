//go:build !js || !nowebgpu

package portable

import (
	"math"
	"math/bits"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// These kernels fold elements into rows of one element. A pass of a radix sort moves the elements
// to buckets of neighbouring rows, and a workgroup folds each bucket. If there are few rows,
// workgroups fold parts of the elements into all rows instead, and a second kernel folds the parts.
// Each subgroup folds neighbouring elements into its own copy of the rows in workgroup memory, and
// the workgroup then folds the copies in the order of the subgroups. The order of additions
// therefore depends only on the ids.

const (
	scatterPartRows  = 512  // maximum number of rows for which elements are folded in parts
	scatterPartSize  = 2048 // elements of a part, unless there would be more than scatterMostParts parts
	scatterMostParts = 256
	scatterItems     = 16 // elements of a lane in the pass that moves elements to buckets
	foldShared       = radixWarps*(4<<radixMost) + 4<<10
)

type scatterFoldSpec struct {
	scatterSpec
	Bits  int  // bits of a row number within a bucket
	Parts bool // the kernel folds a part of the elements into all rows
}

type scatterFoldParams struct {
	IDs     uint32 // number of elements
	Extent  uint32 // number of rows
	Groups  uint32 // number of buckets or parts
	Offsets uint32 // number of offsets of buckets
	Size    uint32 // elements of a part
}

// identity returns the bits of the number that leaves every element unchanged.
func (s scatterSpec) identity() kernel.U32 {
	least := map[op.DType]uint32{op.U32: 0, op.I32: 1 << 31}
	most := map[op.DType]uint32{op.U32: math.MaxUint32, op.I32: math.MaxInt32}
	integer := s.Type == op.U32 || s.Type == op.I32
	float := func(v float64) kernel.U32 { return kernel.U(math.Float32bits(float32(v))) }
	switch {
	case s.Reduce == op.ScatterAdd && integer:
		return kernel.U(0)
	case s.Reduce == op.ScatterAdd:
		return float(math.Copysign(0, -1)) // adding 0 would change -0
	case s.Reduce == op.ScatterMul && integer:
		return kernel.U(1)
	case s.Reduce == op.ScatterMul:
		return float(1)
	case s.Reduce == op.ScatterMin && integer:
		return kernel.U(most[s.Type])
	case s.Reduce == op.ScatterMin:
		return float(math.Inf(1))
	case integer:
		return kernel.U(least[s.Type])
	}
	return float(math.Inf(-1))
}

// foldInWarp folds the values of all lanes of a subgroup that have the same row, in the order of
// the lanes. The first of these lanes gets the result. same has the bits of these lanes.
func (s scatterSpec) foldInWarp(b *kernel.Builder, same, v kernel.U32) kernel.U32 {
	_, lane := warpLane(b)
	later := same.And(kernel.U(1).Shl(lane).Sub(kernel.U(1)).Not()).And(kernel.U(1).Shl(lane).Not())
	value, next := kernel.NewVar(b, "folded", v), kernel.NewVar(b, "next", later.TrailingZeros()) // 32 if there is no later lane
	for d := 1; d < radixWarp; d *= 2 {
		is := next.Get().Lt(kernel.U(radixWarp))
		from := kernel.Select(is, next.Get(), lane)
		other, after := kernel.SubgroupShuffle(b, value.Get(), from), kernel.SubgroupShuffle(b, next.Get(), from)
		b.If(is, func() {
			value.Set(s.combine(value.Get(), other))
			next.Set(after)
		})
	}
	return value.Get()
}

// scatterFolds folds the elements of a bucket into its rows, or a part of all elements into one
// array of partials.
var scatterFolds = maker[scatterFoldParams, scatterFoldSpec]{name: "scatter_fold", build: func(b *kernel.Builder, p *scatterFoldParams, s scatterFoldSpec, e *epilogue) {
	b.LocalSize(radixLanes, 1, 1)
	n, extent, rows := b.U32(&p.IDs), b.U32(&p.Extent), 1<<s.Bits
	group := b.Group().Min(b.U32(&p.Groups).Sub(kernel.U(1)))
	is := b.Group().Lt(b.U32(&p.Groups))
	limits := kernel.Shared[kernel.U32](b, "limits", 2)
	var row func(i kernel.U32) kernel.U32
	var from, to, first kernel.U32
	var v func(i kernel.U32) kernel.U32
	if s.Parts {
		ids := kernel.Input[kernel.I32](b, "ids")
		row = func(i kernel.U32) kernel.U32 {
			r, named := rowOf(ids.At(i), extent)
			return kernel.Select(named, r, extent)
		}
		v = inputBits(b, "v", s.Type)
		from, first = group.Mul(b.U32(&p.Size)).Min(n), kernel.U(0)
		to = from.Add(b.U32(&p.Size)).Min(n)
	} else {
		row, v = kernel.Input[kernel.U32](b, "rows").At, kernel.Input[kernel.U32](b, "v").At
		offsets, last := kernel.Input[kernel.U32](b, "offsets"), b.U32(&p.Offsets)
		from, first = offsets.At(group), group.Shl(kernel.U(uint32(s.Bits)))
		after := group.Add(kernel.U(1))
		to = kernel.Select(after.Lt(last), offsets.At(after.Min(last.Sub(kernel.U(1)))), n)
	}
	var get func(i kernel.U32) kernel.U32
	var put func(i, v kernel.U32)
	if s.Parts {
		put = kernel.Output[kernel.U32](b, "partial").Set
	} else {
		get, put = s.memory(b, e)
	}
	state := kernel.Shared[kernel.U32](b, "state", radixWarps*rows)
	perLane(b, radixWarps*rows, func(i kernel.U32) { state.Set(i, s.identity()) })
	b.If(b.LocalX().Eq(kernel.U(0)), func() {
		limits.Set(kernel.U(0), from)
		limits.Set(kernel.U(1), kernel.Select(is, to, from))
	})
	b.Barrier()
	s.foldRange(b, limits, state, first, extent, row, v)
	b.If(is, func() {
		perLane(b, rows, func(r kernel.U32) {
			at := first.Add(r)
			b.If(at.Lt(extent), func() {
				own := func(w int) kernel.U32 { return state.At(r.Add(kernel.U(uint32(w * rows)))) }
				if s.Parts {
					put(group.Mul(extent).Add(at), chain(radixWarps, s.combine, own))
					return
				}
				all := get(at)
				for w := range radixWarps {
					all = s.combine(all, own(w))
				}
				put(at, all)
			})
		})
	})
}}

// foldRange folds a range of elements into the subgroups' copies of the rows.
func (s scatterFoldSpec) foldRange(b *kernel.Builder, limits, state kernel.Array[kernel.U32], first, extent kernel.U32, row, v func(i kernel.U32) kernel.U32) {
	from, to := limits.Uniform(kernel.U(0)), limits.Uniform(kernel.U(1))
	b.Barrier()
	warp, lane := warpLane(b)
	rounds := to.Sub(from).Add(kernel.U(radixLanes - 1)).Div(kernel.U(radixLanes))
	begin := from.Add(warp.Mul(rounds).Mul(kernel.U(radixWarp))).Add(lane)
	own := warp.Shl(kernel.U(uint32(s.Bits)))
	b.For(kernel.U(0), rounds, func(k kernel.U32) {
		i := begin.Add(k.Mul(kernel.U(radixWarp)))
		local, value := kernel.NewVar(b, "local", kernel.U(1<<32-1)), kernel.NewVar(b, "value", kernel.U(0))
		b.If(i.Lt(to), func() {
			r := row(i)
			b.If(r.Lt(extent), func() {
				local.Set(r.Sub(first))
				value.Set(v(i))
			})
		})
		in := local.Get().Ne(kernel.U(1<<32 - 1))
		same := votes(b, local.Get(), s.Bits, in)
		all := s.foldInWarp(b, same, value.Get())
		b.If(in.And(below(b, same).Eq(kernel.U(0))), func() {
			at := own.Add(local.Get())
			state.Set(at, s.combine(state.At(at), all))
		})
		b.Barrier()
	})
}

// scatterJoins folds partials into rows. A lane of each subgroup has one row and an eighth of the
// parts.
var scatterJoins = maker[scatterFoldParams, scatterSpec]{name: "scatter_join", build: func(b *kernel.Builder, p *scatterFoldParams, s scatterSpec, e *epilogue) {
	b.LocalSize(radixLanes, 1, 1)
	partial := kernel.Input[kernel.U32](b, "partial")
	get, put := s.memory(b, e)
	shared := kernel.Shared[kernel.U32](b, "shared", radixLanes)
	warp, lane := warpLane(b)
	row, extent, groups := b.Group().Mul(kernel.U(radixWarp)).Add(lane), b.U32(&p.Extent), b.U32(&p.Groups)
	is := row.Lt(extent)
	each := groups.Add(kernel.U(radixWarps - 1)).Div(kernel.U(radixWarps))
	from := warp.Mul(each).Min(groups)
	to := kernel.Select(is, from.Add(each).Min(groups), from)
	all := kernel.NewVar(b, "all", s.identity())
	b.For(from, to, func(i kernel.U32) { all.Set(s.combine(all.Get(), partial.At(i.Mul(extent).Add(row)))) })
	shared.Set(b.LocalX(), all.Get())
	b.Barrier()
	b.If(is.And(warp.Eq(kernel.U(0))), func() {
		x := get(row)
		for w := range uint32(radixWarps) {
			x = s.combine(x, shared.At(lane.Add(kernel.U(w*radixWarp))))
		}
		put(row, x)
	})
}}

// scatterByParts adds the launches that fold parts of the elements into few rows.
func (p *planner) scatterByParts(spec scatterSpec, q *request, s op.Indexed, in []Ref, into func(...Ref) []Ref) {
	size := max(scatterPartSize, (s.IDs-1)/scatterMostParts+1)
	n := (s.IDs-1)/size + 1
	params := scatterFoldParams{IDs: uint32(s.IDs), Extent: uint32(s.Extent), Groups: uint32(n), Size: uint32(size)}
	partial := p.scratch(n * s.Extent)
	fold := scatterFoldSpec{scatterSpec: spec, Bits: bits.Len(uint(s.Extent - 1)), Parts: true}
	fold.InPlace = false
	p.stage(scatterFolds.of(fold, nil), kernel.GridOf(n), params, in[1], in[2], partial)
	p.stage(scatterJoins.of(spec, q.epilogue), kernel.GridOf((s.Extent-1)/radixWarp+1), params, into(partial)...)
}

// scatterByBuckets adds the launches that move elements to buckets and fold the buckets.
func (p *planner) scatterByBuckets(spec scatterSpec, q *request, s op.Indexed, in []Ref, into func(...Ref) []Ref) {
	all := bits.Len(uint(s.Extent)) // bits of the numbers of rows, including the number for ids that name no row
	shift := max(all-radixMost, 0)
	pass := radixSpec{Type: spec.Type, Keys: keysOfIds, Bits: all - shift, Items: scatterItems, Values: true, Offsets: true}
	r := &radixSort{rows: 1, cols: s.IDs, extent: s.Extent}
	rows, values := p.scratch(s.IDs), p.scratch(s.IDs)
	offsets := p.radixPass(r, pass, shift, []Ref{in[1]}, []Ref{in[2]}, []Ref{rows, values})
	buckets := (s.Extent-1)>>shift + 1
	params := scatterFoldParams{IDs: uint32(s.IDs), Extent: uint32(s.Extent), Groups: uint32(buckets), Offsets: 1 << pass.Bits}
	p.stage(scatterFolds.of(scatterFoldSpec{scatterSpec: spec, Bits: shift}, q.epilogue), kernel.GridOf(buckets), params, into(rows, values, offsets)...)
}
