package ptxkernels

import (
	"math"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

const (
	radixFoldBits  = 5 // a bucket has 32 rows, one for each lane of a warp
	radixFoldWarps = 8 // warps of a block
	radixFoldEach  = 128
	// radixFoldAlone is the number of elements of a bucket that a warp folds in order. It folds further
	// elements in shared memory, which is faster for many.
	radixFoldAlone = 256
	radixFoldAhead = 8 // loads of a lane in flight while it folds in shared memory
)

// radixFold is a kernel that adds elements, sorted by bucket, to their rows. A warp folds the buckets that
// begin in its radixFoldEach elements. It reads 32 elements at a time. Buckets that begin and end among them are folded
// together, with a lane for each row. Of other buckets each lane holds the sum of one row. The order of
// the additions depends only on the ids.
type radixFold struct{ Type op.DType }

// radixFolding is the kernel while it is built.
type radixFolding struct {
	radixFold
	k               *ptx.Kernel
	rows, values, x ptx.Global[ptx.U32]
	to              *sink
	part            ptx.Shared[ptx.U32] // partials of the warp, one of each lane for each row
	n, extent, lane ptx.U32
	bucket          ptx.Var[ptx.U32] // the current bucket, or none
	begin           ptx.Var[ptx.U32] // its first element
	old, sum        ptx.Var[ptx.U32] // element of x and sum of the lane's row
}

const radixNoBucket = ^uint32(0)

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

// build writes the kernel.
func (s radixFold) build(k *ptx.Kernel, e *epilogue) {
	k.Block(32*radixFoldWarps, 1, 1)
	t := &radixFolding{radixFold: s, k: k}
	t.rows, t.values, t.x = ptx.GlobalParam[ptx.U32](k, "rows"), ptx.GlobalParam[ptx.U32](k, "values"), ptx.GlobalParam[ptx.U32](k, "x")
	t.n, t.extent = ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "extent")
	t.to, t.lane = e.sink(k), k.Special(ptx.LaneID)
	warp := k.Special(ptx.TidX).Shr(ptx.U(5))
	t.part = ptx.DynamicShared[ptx.U32](k, radixFoldWarps*32*32).At(warp.Shl(ptx.U(10)))
	from := k.Special(ptx.CtaidX).MulAdd(ptx.U(radixFoldWarps), warp).Mul(ptx.U(radixFoldEach))
	t.bucket, t.begin = ptx.NewVar(k, ptx.U(radixNoBucket)), ptx.NewVar(k, from)
	t.old, t.sum = ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, s.nothing())
	k.If(from.Lt(t.n), func() { t.fold(from) })
}

// fold folds the buckets that begin in the warp's elements.
func (t *radixFolding) fold(from ptx.U32) {
	k := t.k
	before := ptx.NewVar(k, ptx.U(radixNoBucket)) // bucket of the element before the warp's first
	k.When(from.Ne(ptx.U(0)), func() { before.Set(t.rows.At(from).Offset(-1).Load().Shr(ptx.U(radixFoldBits))) })
	var rows, values [radixFoldEach / 32]ptx.U32
	for c := range rows {
		rows[c], values[c] = t.read(from.Add(ptx.N(32 * c)))
	}
	for c := range rows {
		own := rows[c].Shr(ptx.U(radixFoldBits))
		is := rows[c].Ne(ptx.AllLanes).And(own.Ne(before.Live())).Ballot(ptx.AllLanes)
		continued := own.Eq(t.bucket.Live()).Ballot(ptx.AllLanes)
		t.addToBucket(continued, rows[c], values[c])
		more := is.And(continued.Not())
		k.If(more.Ne(ptx.U(0)), func() {
			t.flush()
			last := ptx.ShuffleIndex(own, ptx.U(31).Sub(more.LeadingZeros()))
			open := own.Eq(last).Ballot(ptx.AllLanes)
			t.addWhole(more.And(open.Not()), rows[c], values[c])
			t.open(last, from.Add(ptx.N(32*c)).Add(open.ReverseBits().LeadingZeros()))
			t.addToBucket(open, rows[c], values[c])
		})
	}
	k.If(t.bucket.Live().Ne(ptx.U(radixNoBucket)), func() {
		t.further(from.Add(ptx.N(radixFoldEach)))
		t.flush()
	})
}

// read returns the row and the value of the lane's element of 32 elements. The row of a missing element has all bits.
func (t *radixFolding) read(at ptx.U32) (row, value ptx.U32) {
	i := at.Add(t.lane)
	r, v := ptx.NewVar(t.k, ptx.AllLanes), ptx.NewVar(t.k, ptx.U(0))
	t.k.When(i.Lt(t.n), func() {
		t.rows.At(i).LoadTo(r)
		t.values.At(i).LoadTo(v)
	})
	return r.Live(), v.Live()
}

// load returns the bits of an element of x, as a float32 if x has floats, or 0 if the row is not below extent.
func (t *radixFolding) load(row ptx.U32, is ptx.Pred) ptx.U32 {
	v := ptx.NewVar(t.k, ptx.U(0))
	t.k.If(is.And(row.Lt(t.extent)), func() {
		x := loadElements(t.Type, t.x, row, 1)[0]
		if t.Type.Float() {
			x = ptx.F32(x).Bits().U32()
		}
		v.Set(x)
	})
	return v.Live()
}

// store writes an element of x plus its sum, if the row is below extent.
func (t *radixFolding) store(row, x, sum ptx.U32, is ptx.Pred) {
	t.k.If(is.And(row.Lt(t.extent)), func() {
		y := ptx.F32(x.Add(sum))
		if t.Type.Float() {
			y = x.B32().Float().Add(sum.B32().Float())
		}
		t.to.set(row, y)
	})
}

// open begins a bucket.
func (t *radixFolding) open(number, begin ptx.U32) {
	t.bucket.Set(number)
	t.begin.Set(begin)
	t.sum.Set(t.nothing())
	t.old.Set(t.load(t.row(), ptx.Is(true)))
}

// row returns the lane's row of the current bucket.
func (t *radixFolding) row() ptx.U32 { return t.bucket.Get().Shl(ptx.U(radixFoldBits)).Add(t.lane) }

// flush writes the sums of the current bucket, if there is one.
func (t *radixFolding) flush() {
	changed := t.sum.Live().Ne(t.nothing()).And(t.bucket.Live().Ne(ptx.U(radixNoBucket)))
	t.store(t.row(), t.old.Live(), t.sum.Live(), changed)
}

// addWhole folds the elements of the lanes in a mask, which are all elements of their buckets. The first lane of each row
// has its sum.
func (t *radixFolding) addWhole(in, row, v ptx.U32) {
	k := t.k
	k.If(in.Ne(ptx.U(0)), func() {
		same := row.MatchAny(ptx.AllLanes).And(in)
		first := same.ReverseBits().LeadingZeros().Eq(t.lane)
		old, sum := t.load(row, first), ptx.NewVar(k, t.nothing())
		t.addLanes(ptx.Select(first, same, ptx.U(0)), v, sum)
		t.store(row, old, sum.Live(), first)
	})
}

// further folds the elements of the current bucket from element at on.
func (t *radixFolding) further(from ptx.U32) {
	k := t.k
	at := ptx.NewVar(k, from)
	k.Repeat(func() ptx.Pred {
		row, v := t.read(at.Get())
		in := row.Shr(ptx.U(radixFoldBits)).Eq(t.bucket.Live()).Ballot(ptx.AllLanes)
		t.addToBucket(in, row, v)
		ptx.AddTo(at, in.CountOnes())
		return in.Eq(ptx.AllLanes).And(at.Live().Sub(t.begin.Live()).Lt(ptx.U(radixFoldAlone)))
	})
	k.If(at.Live().Sub(t.begin.Live()).Ge(ptx.U(radixFoldAlone)), func() { t.rest(at.Live()) })
}

// addToBucket adds the values of the lanes in a mask to the sums of their rows of the current bucket.
func (t *radixFolding) addToBucket(in, row, v ptx.U32) {
	for i := range radixFoldBits { // keep the lanes that have the lane's row
		has := row.And(ptx.U(1 << i)).Ne(ptx.U(0)).Ballot(ptx.AllLanes)
		mine := t.lane.And(ptx.U(1 << i)).Ne(ptx.U(0))
		const andSame = 0xf0 & (0xcc ^ 0xaa) // x & (y ^ z)
		in = in.Lop3(has, ptx.Select(mine, ptx.U(0), ptx.AllLanes), andSame)
	}
	t.addLanes(in, v, t.sum)
}

// addLanes adds the values of the lanes in the lane's own mask to sum, in the order of the lanes.
func (t *radixFolding) addLanes(in, v ptx.U32, sum ptx.Var[ptx.U32]) {
	k, left := t.k, ptx.NewVar(t.k, in)
	k.While(func() ptx.Pred { return left.Live().Ne(ptx.U(0)).Any(ptx.AllLanes) }, func() {
		is := left.Live().Ne(ptx.U(0))
		from := left.Get().ReverseBits().LeadingZeros().And(ptx.U(31))
		x := ptx.ShuffleIndex(v, from)
		k.When(is, func() { sum.Set(t.add(sum.Live(), x)) })
		left.Set(left.Live().And(left.Live().Sub(ptx.U(1))))
	})
}

// rest adds the elements of a large bucket from element at on. Each lane has every 32nd element and a partial
// of each row in shared memory; then each lane adds the partials of its row.
func (t *radixFolding) rest(at ptx.U32) {
	k := t.k
	end := t.end(at)
	for i := range 32 {
		t.part.At(t.lane).Offset(32 * i).Store(t.nothing())
	}
	k.SyncWarp(ptx.AllLanes)
	k.For(at.Add(t.lane), end, ptx.U(32*radixFoldAhead), func(i ptx.U32) {
		var rows, values [radixFoldAhead]ptx.Var[ptx.U32]
		for j := range rows {
			rows[j], values[j] = ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, t.nothing())
			k.When(i.Add(ptx.N(32*j)).Lt(end), func() {
				t.rows.At(i).Offset(32 * j).LoadTo(rows[j])
				t.values.At(i).Offset(32 * j).LoadTo(values[j])
			})
		}
		for j := range rows {
			at := t.part.At(rows[j].Live().And(ptx.U(31)).Shl(ptx.U(5)).Add(t.lane))
			at.Store(t.add(at.Load(), values[j].Live()))
		}
	})
	k.SyncWarp(ptx.AllLanes)
	for i := range 32 { // lanes read different banks
		of := t.lane.Add(ptx.N(i)).And(ptx.U(31))
		t.sum.Set(t.add(t.sum.Live(), t.part.At(t.lane.Shl(ptx.U(5)).Add(of)).Load()))
	}
	k.SyncWarp(ptx.AllLanes)
}

// end returns the index of the first element from at on that is not in the current bucket.
func (t *radixFolding) end(at ptx.U32) ptx.U32 {
	low, high := ptx.NewVar(t.k, at), ptx.NewVar(t.k, t.n)
	t.k.While(func() ptx.Pred { return low.Live().Lt(high.Live()) }, func() {
		middle := low.Live().Add(high.Live()).Shr(ptx.U(1))
		own := t.rows.At(middle).Load().Shr(ptx.U(radixFoldBits))
		t.k.IfElse(own.Eq(t.bucket.Live()), func() { low.Set(middle.Add(ptx.U(1))) }, func() { high.Set(middle) })
	})
	return low.Live()
}
