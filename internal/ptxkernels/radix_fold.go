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
	radixFoldAlone = 1024
	radixFoldAhead = 4 // loads of a lane in flight while it folds in shared memory
)

// radixFold is a kernel that adds elements, sorted by bucket, to their rows. A warp folds the buckets that
// begin in its radixFoldEach elements. Each lane holds the sum of one row of the bucket. The order of the
// additions depends only on the ids.
type radixFold struct{ Type op.DType }

// radixFolding is the kernel while it is built.
type radixFolding struct {
	radixFold
	k            *ptx.Kernel
	rows, values ptx.Global[ptx.U32]
	part         ptx.Shared[ptx.U32] // partials of the warp, one of each lane for each row
	n, lane      ptx.U32
	at           ptx.Var[ptx.U32] // the next element
	sum          ptx.Var[ptx.U32] // the sum of the lane's row
}

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
	t.rows, t.values = ptx.GlobalParam[ptx.U32](k, "rows"), ptx.GlobalParam[ptx.U32](k, "values")
	x, n, extent := ptx.GlobalParam[ptx.U32](k, "x"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "extent")
	to := e.sink(k)
	t.n, t.lane = n, k.Special(ptx.LaneID)
	warp := k.Special(ptx.TidX).Shr(ptx.U(5))
	t.part = ptx.DynamicShared[ptx.U32](k, radixFoldWarps*32*32).At(warp.Shl(ptx.U(10)))
	from := k.Special(ptx.CtaidX).MulAdd(ptx.U(radixFoldWarps), warp).Mul(ptx.U(radixFoldEach))
	end := from.Add(ptx.U(radixFoldEach)).Min(n)
	t.at, t.sum = ptx.NewVar(k, from), ptx.NewVar(k, s.nothing())
	t.skip(end)
	k.While(func() ptx.Pred { return t.at.Live().Lt(end) }, func() {
		bucket := t.bucket()
		row := bucket.Shl(ptx.U(radixFoldBits)).Add(t.lane)
		k.If(t.sum.Live().Ne(s.nothing()).And(row.Lt(extent)), func() {
			old := loadElements(s.Type, x, row, 1)[0]
			if s.Type.Float() {
				to.set(row, ptx.F32(old).Add(t.sum.Live().B32().Float()))
			} else {
				to.set(row, ptx.F32(old.Add(t.sum.Live())))
			}
		})
		k.SyncWarp(ptx.AllLanes)
	})
}

// read returns the row of the lane's element of the next 32, and whether it exists.
func (t *radixFolding) read(end ptx.U32) (i, row ptx.U32, is ptx.Pred) {
	i = t.at.Get().Add(t.lane)
	is = i.Lt(end)
	r := ptx.NewVar(t.k, ptx.AllLanes)
	t.k.When(is, func() { t.rows.At(i).LoadTo(r) })
	return i, r.Live(), is
}

// skip moves to the first bucket that begins before end, and not before the warp's first element.
func (t *radixFolding) skip(end ptx.U32) {
	k := t.k
	k.If(t.at.Live().Ne(ptx.U(0)).And(t.at.Live().Lt(end)), func() {
		before := t.rows.At(t.at.Live()).Offset(-1).Load().Shr(ptx.U(radixFoldBits))
		k.Repeat(func() ptx.Pred {
			_, row, is := t.read(end)
			same := is.And(row.Shr(ptx.U(radixFoldBits)).Eq(before)).Ballot(ptx.AllLanes)
			ptx.AddTo(t.at, same.CountOnes())
			return same.Eq(ptx.AllLanes)
		})
	})
}

// bucket sums the elements of the bucket that begins at the next element, and returns its number.
func (t *radixFolding) bucket() ptx.U32 {
	k := t.k
	t.sum.Set(t.nothing())
	from := t.at.Get()
	number := ptx.NewVar(k, ptx.U(0))
	k.Repeat(func() ptx.Pred {
		i, row, is := t.read(t.n)
		v := ptx.NewVar(k, ptx.U(0))
		k.When(is, func() { t.values.At(i).LoadTo(v) })
		own := row.Shr(ptx.U(radixFoldBits))
		first := ptx.ShuffleIndex(own, ptx.U(0))
		k.When(t.at.Live().Eq(from), func() { number.Set(first) })
		in := is.And(own.Eq(number.Live())).Ballot(ptx.AllLanes)
		t.inOrder(in, row, v.Live())
		ptx.AddTo(t.at, in.CountOnes())
		return in.Eq(ptx.AllLanes).And(t.at.Live().Sub(from).Lt(ptx.U(radixFoldAlone)))
	})
	k.If(t.at.Live().Sub(from).Ge(ptx.U(radixFoldAlone)), func() { t.rest(number.Live()) })
	return number.Live()
}

// inOrder adds the values of the lanes in a mask to the sums of their rows, in the order of the lanes.
func (t *radixFolding) inOrder(in, row, v ptx.U32) {
	k := t.k
	for i := range radixFoldBits { // keep the lanes that have the lane's row
		has := row.And(ptx.U(1 << i)).Ne(ptx.U(0)).Ballot(ptx.AllLanes)
		mine := t.lane.And(ptx.U(1 << i)).Ne(ptx.U(0))
		const andSame = 0xf0 & (0xcc ^ 0xaa) // x & (y ^ z)
		in = in.Lop3(has, ptx.Select(mine, ptx.U(0), ptx.AllLanes), andSame)
	}
	left := ptx.NewVar(k, in)
	k.While(func() ptx.Pred { return left.Live().Ne(ptx.U(0)).Any(ptx.AllLanes) }, func() {
		is := left.Live().Ne(ptx.U(0))
		from := left.Get().ReverseBits().LeadingZeros() // 32 if no lane is left: the shuffle then returns any value
		x := ptx.ShuffleIndex(v, from.And(ptx.U(31)))
		k.When(is, func() { t.sum.Set(t.add(t.sum.Live(), x)) })
		left.Set(left.Live().And(left.Live().Sub(ptx.U(1))))
	})
}

// rest adds the remaining elements of a large bucket. Each lane has every 32nd element and a partial
// of each row in shared memory; then each lane adds the partials of its row.
func (t *radixFolding) rest(bucket ptx.U32) {
	k := t.k
	end := t.end(bucket)
	for i := range 32 {
		t.part.At(t.lane).Offset(32 * i).Store(t.nothing())
	}
	k.SyncWarp(ptx.AllLanes)
	k.For(t.at.Get().Add(t.lane), end, ptx.U(32*radixFoldAhead), func(i ptx.U32) {
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
	t.at.Set(end)
}

// end returns the index after the last element of a bucket that contains the next element or ended before it.
func (t *radixFolding) end(bucket ptx.U32) ptx.U32 {
	low, high := ptx.NewVar(t.k, t.at.Get()), ptx.NewVar(t.k, t.n)
	t.k.While(func() ptx.Pred { return low.Live().Lt(high.Live()) }, func() {
		middle := low.Live().Add(high.Live()).Shr(ptx.U(1))
		own := t.rows.At(middle).Load().Shr(ptx.U(radixFoldBits))
		t.k.IfElse(own.Eq(bucket), func() { low.Set(middle.Add(ptx.U(1))) }, func() { high.Set(middle) })
	})
	return low.Live()
}
