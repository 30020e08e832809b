package ptxkernels

import (
	"math"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

func init() { register(planScatter, op.Scatter) }

const (
	// radixScatterRows is the smallest number of rows for which sorting is faster. For fewer rows,
	// the portable kernels fold buckets of rows in shared memory.
	radixScatterRows = 1 << 19
	radixScatterIDs  = 1 << 14
	radixFoldLanes   = 256
	radixFoldAlone   = 32 // elements that a thread folds before its warp helps
)

// planScatter plans a scatter-add into many rows of one element. It sorts the elements by row
// (stably, in the order of the ids); then one thread folds the elements of each row.
func planScatter(r *portable.Request, d *Device) (*Plan, error) {
	m, err := op.IndexedOf(&r.Attrs, r.In[0].Shape, r.In[1].Shape)
	if err != nil {
		return nil, err
	}
	if op.ScatterReduceOf(&r.Attrs) != op.ScatterAdd || m.Outer != 1 || m.Inner != 1 || m.Extent < radixScatterRows || m.IDs < radixScatterIDs || !radixFits(r, d, m.IDs) {
		return nil, unsupported("%v into %d rows", op.ScatterReduceOf(&r.Attrs), m.Extent)
	}
	e, err := newEpilogue(r, nil, 0)
	if err != nil {
		return nil, err
	}
	t := r.In[0].Type
	s := &radixSort{radixOrder: rowsOf(m.Extent), rows: 1, cols: m.IDs, limit: m.IDs, d: d, tile: chooseRadixTile(m.IDs), extent: m.Extent}
	s.values, s.copied, s.to = radixValues{r.In[2].Type, input(2)}, radixValues{t, input(0)}, output(0)
	p := &Plan{Variant: s.tile.name(), InPlace: true} // copying an array onto itself is harmless
	rows, values := p.temporary(m.IDs), p.temporary(m.IDs)
	s.sort(p, input(1), rows, values)
	f := radixFold{Type: t}
	p.Stages = append(p.Stages, Stage{
		Kernel: radixKernel(f, "radix_fold", radixFoldLanes, func(k *ptx.Kernel) { f.build(k, e) }),
		Grid:   [3]uint32{uint32(ceil(m.IDs, radixFoldLanes)), 1, 1}, Zero: -1,
		Args: append([]Arg{rows, values, input(0), word(uint32(m.IDs)), word(uint32(m.Extent))}, e.args()...),
	})
	return p, nil
}

// radixFold is a kernel that adds sorted elements to their rows.
type radixFold struct{ Type op.DType }

// add returns the sum of two values given by their bits.
func (s radixFold) add(x, y ptx.U32) ptx.U32 {
	if !s.Type.Float() {
		return x.Add(y)
	}
	return x.B32().Float().Add(y.B32().Float()).Bits().U32()
}

// nothing returns the bits of the neutral element of add.
func (s radixFold) nothing() ptx.U32 {
	if !s.Type.Float() {
		return ptx.U(0)
	}
	return ptx.U(math.Float32bits(float32(math.Copysign(0, -1))))
}

// build writes the kernel. Each thread has one element. The thread of a row's first element folds
// the row; if the row is long, its warp helps.
func (s radixFold) build(k *ptx.Kernel, e *epilogue) {
	k.Block(radixFoldLanes, 1, 1)
	rows, values := ptx.GlobalParam[ptx.U32](k, "rows"), ptx.GlobalParam[ptx.U32](k, "values")
	x, n, extent := ptx.GlobalParam[ptx.U32](k, "x"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "extent")
	to := e.sink(k)
	i := k.Special(ptx.CtaidX).MulAdd(ptx.U(radixFoldLanes), k.Special(ptx.TidX))
	row, before := ptx.NewVar(k, extent), ptx.NewVar(k, extent)
	k.When(i.Lt(n), func() { rows.At(i).LoadTo(row) })
	k.When(i.Lt(n).And(i.Ne(ptx.U(0))), func() { rows.At(i).Offset(-1).LoadTo(before) })
	first := row.Live().Lt(extent).And(row.Live().Ne(before.Live()))
	sum, next, more := ptx.NewVar(k, s.nothing()), ptx.NewVar(k, i), ptx.NewVar(k, ptx.U(0))
	k.If(first, func() {
		k.Loop(func() {
			sum.Set(s.add(sum.Live(), values.At(next.Live()).Load()))
			ptx.AddTo(next, ptx.U(1))
			k.BreakIf(next.Live().Ge(n))
			k.BreakIf(rows.At(next.Live()).Load().Ne(row.Live()))
			k.If(next.Live().Sub(i).Ge(ptx.U(radixFoldAlone)), func() {
				more.Set(ptx.U(1))
				k.Break()
			})
		})
	})
	k.SyncWarp(ptx.AllLanes)
	s.help(k, rows, values, n, row.Live(), next.Live(), more.Live(), sum)
	k.If(first, func() {
		old := loadElements(s.Type, x, row.Live(), 1)[0]
		if s.Type.Float() {
			to.set(row.Live(), ptx.F32(old).Add(sum.Live().B32().Float()))
		} else {
			to.set(row.Live(), ptx.F32(old.Add(sum.Live())))
		}
	})
}

// help folds the remaining elements of long rows with all lanes: for each lane with more set, the
// elements of its row from next on.
func (s radixFold) help(k *ptx.Kernel, rows, values ptx.Global[ptx.U32], n, row, next, more ptx.U32, sum ptx.Var[ptx.U32]) {
	lane := k.Special(ptx.LaneID)
	left := ptx.NewVar(k, more.Ne(ptx.U(0)).Ballot(ptx.AllLanes))
	k.While(func() ptx.Pred { return left.Live().Ne(ptx.U(0)) }, func() {
		leader := left.Get().ReverseBits().LeadingZeros()
		own, from := ptx.ShuffleIndex(row, leader), ptx.ShuffleIndex(next, leader)
		low, high := ptx.NewVar(k, from), ptx.NewVar(k, n) // binary search of the end of the row
		k.While(func() ptx.Pred { return low.Live().Lt(high.Live()) }, func() {
			middle := low.Live().Add(high.Live()).Shr(ptx.U(1))
			k.IfElse(rows.At(middle).Load().Eq(own), func() { low.Set(middle.Add(ptx.U(1))) }, func() { high.Set(middle) })
		})
		part := ptx.NewVar(k, s.nothing())
		k.For(from.Add(lane), low.Live(), ptx.U(32), func(j ptx.U32) { part.Set(s.add(part.Live(), values.At(j).Load())) })
		k.SyncWarp(ptx.AllLanes)
		for d := 1; d < 32; d *= 2 {
			part.Set(s.add(part.Live(), ptx.ShuffleDown(part.Live(), ptx.N(d))))
		}
		all := ptx.ShuffleIndex(part.Live(), ptx.U(0))
		k.When(lane.Eq(leader), func() { sum.Set(s.add(sum.Live(), all)) })
		left.Set(left.Live().And(left.Live().Sub(ptx.U(1))))
	})
}
