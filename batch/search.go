package batch

import (
	"math"
	"math/bits"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// SearchSorted returns for each element of values the index at which to insert it into sorted [n],
// which must be ascending. The result is an i32 from 0 to n in the shape of values: the number of
// elements of sorted that are less than the element or, with Right, not greater. It is
// numpy.searchsorted; with bin edges as sorted it is torch.bucketize:
//
//	i := b.SearchSorted(edges, x, op.SearchOpts{Right: true}) // edges[i-1] <= x < edges[i]
//
// NaN counts as the greatest and equals NaN, as in [Batch.Sort]; -0 equals 0. If sorted is not in
// order, the results are undefined numbers from 0 to n.
//
// The search halves n in a fixed number of steps, a gather and a comparison each: 10 for 1,000 elements.
//
// If sorted does not have exactly one axis, Execute or Compile returns [op.ErrShape]. If the
// operands have different types, or a type that is not floating, i32 or u32, it returns
// [op.ErrUnsupported].
func (b *Batch) SearchSorted(sorted, values Value, opts ...op.SearchOpts) Value {
	n, ok := b.flatSize("search_sorted", sorted, values)
	if !ok {
		return Value{}
	}
	in := []Value{sorted, values}
	o, err := op.OptionOf(opts)
	if err == nil {
		_, err = op.Less.Types(&op.Attrs{}, []op.DType{sorted.Type(), values.Type()})
	}
	if err != nil {
		return b.refuse("search_sorted", in, "%w", err)
	}
	if len(sorted.Shape()) != 1 {
		return b.refuse("search_sorted", in, "sorted elements of shape %v: expected one axis: %w", sorted.Shape(), device.ErrShape)
	}
	if n == 0 {
		return b.filled(op.I32, 0, values.Shape()...)
	}
	levels := bits.Len(uint(n))
	table, v := b.sortKeys(sorted), b.sortKeys(values)
	table = b.Pad(table, 0, 0, 1<<levels-1-n, greatestPad(table.Type()))
	// The table has one element less than a power of two. i is the index of the middle one of the remaining elements.
	i := b.filled(op.I32, float64(int64(1)<<(levels-1)-1), values.Shape()...)
	for k := levels - 2; k >= -1; k-- {
		e := b.Gather(table, i)
		before := b.Less(e, v)
		if o.Right {
			before = b.LessEqual(e, v)
		}
		up, down := 1.0, 0.0 // after the last level i becomes the number of elements before v
		if k >= 0 {
			up = float64(int64(1) << k)
			down = -up
		}
		i = b.Add(i, b.Where(before, b.scalar(op.I32, up), b.scalar(op.I32, down)))
	}
	if o.Right { // a value that equals the padding counts the padding too
		i = b.Minimum(i, b.scalar(op.I32, float64(n)))
	}
	return i
}

// sortKeys returns integers with the order of x. For floating elements these are the bits as i32; for negative elements all
// bits but the sign are inverted. -0 has the key of 0, and every NaN has the greatest integer.
func (b *Batch) sortKeys(x Value) Value {
	if !x.Type().Float() {
		return x
	}
	x = b.Add(b.Cast(x, op.F32), b.scalar(op.F32, 0))
	k := b.Bitcast(x, op.I32)
	most := b.scalar(op.I32, math.MaxInt32)
	k = b.Where(b.Less(k, b.scalar(op.I32, 0)), b.Xor(k, most), k)
	return b.Where(b.IsNaN(x), most, k)
}

// greatestPad returns the padding value for which [Batch.Pad] adds the greatest integer of a type.
func greatestPad(t op.DType) float32 {
	if t == op.U32 {
		return 1 << 32
	}
	return 1 << 31
}

// IsIn returns for each element of x whether it equals one of values, which are of any
// shape: a bool of the shape of x. It is numpy.isin:
//
//	stop := b.IsIn(tokens, ends)
//
// NaN equals nothing, -0 equals 0. IsIn sorts the values and searches each element in them, as
// [Batch.SearchSorted] does.
//
// If the operands have different types, or a type that is not floating, i32 or u32, Execute or
// Compile returns [op.ErrUnsupported].
func (b *Batch) IsIn(x, values Value) Value {
	n, ok := b.flatSize("is_in", values, x)
	if !ok {
		return Value{}
	}
	if n == 0 && x.Type() == values.Type() {
		return b.filled(op.Bool, 0, x.Shape()...)
	}
	sorted, _ := b.Sort(b.Reshape(values, n))
	at := b.SearchSorted(sorted, x)
	found := b.Equal(b.Gather(sorted, at), x)
	// Gather returns 0 for an integer index after the last element, so compare the index too.
	return b.And(found, b.Less(at, b.scalar(op.I32, float64(n))))
}

// Bincount returns how often each number from 0 to n-1 is among ids: an i32 [n] for an
// i32 of any shape. IDs below 0 and from n on are dropped. It is numpy.bincount with a
// length:
//
//	frequency := b.Bincount(tokens, vocabulary)
//
// For weights, use [Batch.Scatter] with op.ScatterAdd. Counts beyond 2^31-1 wrap around.
//
// Execute or Compile returns [op.ErrShape] for an n below 0 or above 2^31-1, and
// [op.ErrUnsupported] for ids of another type.
func (b *Batch) Bincount(ids Value, n int) Value {
	if !b.takes("bincount", ids) {
		return Value{}
	}
	switch {
	case n < 0 || int64(n) > math.MaxInt32:
		return b.refuse("bincount", []Value{ids}, "%d bins, not from 0 to %d: %w", n, math.MaxInt32, device.ErrShape)
	case ids.Type() != op.I32:
		return b.refuse("bincount", []Value{ids}, "ids of type %v: expected i32: %w", ids.Type(), device.ErrUnsupported)
	}
	flat := b.Reshape(ids, -1)
	at := b.Where(b.Less(flat, b.scalar(op.I32, 0)), b.scalar(op.I32, outside), flat)
	return b.Scatter(b.filled(op.I32, 0, n), at, b.filled(op.I32, 1, flat.Shape()...), op.ScatterOpts{Reduce: op.ScatterAdd})
}

// mostBins is the maximum number of bins. With more bins, float32 would have too few numbers for
// many ranges.
const mostBins = 1 << 24

// Histogram returns how many elements of x, of any shape, are in each of the bins of
// equal widths between lo and hi: an i32 [bins], and the edges of the bins, an f32
// [bins+1]. Bin i has edges[i] <= x < edges[i+1], the last one hi too. Elements outside
// and NaN are dropped. It is numpy.histogram:
//
//	counts, edges := b.Histogram(x, 10, 0, 1)
//
// Edge i is lo + (hi - lo)·i/bins, rounded once.
//
// Execute or Compile returns [op.ErrShape] for bins below 1 or above 2^24, and lo and hi that
// are not finite or not lo < hi, and [op.ErrUnsupported] for elements that are not of a
// floating type: convert integers by [Batch.Cast].
func (b *Batch) Histogram(x Value, bins int, lo, hi float32) (counts, edges Value) {
	if !b.takes("histogram", x) {
		return Value{}, Value{}
	}
	from, to, in := float64(lo), float64(hi), []Value{x}
	switch {
	case bins < 1 || bins > mostBins:
		b.refuse("histogram", in, "%d bins, not from 1 to %d: %w", bins, mostBins, device.ErrShape)
	case !(from < to) || math.IsInf(from, 0) || math.IsInf(to, 0):
		b.refuse("histogram", in, "bins from %v to %v: expected finite ascending limits: %w", lo, hi, device.ErrShape)
	case !x.Type().Float():
		b.refuse("histogram", in, "elements of type %v: expected a floating type; use Cast: %w", x.Type(), device.ErrUnsupported)
	}
	if b.err != nil {
		return Value{}, Value{}
	}
	edges = b.table(op.F32, op.Shape{bins + 1}, func(i int) float64 {
		return (from*float64(bins-i) + to*float64(i)) / float64(bins)
	})
	x = b.Cast(x, op.F32)
	at := b.bins(x, edges, bins, from, to)
	last := b.Equal(x, b.scalar(op.F32, to))
	return b.Bincount(b.Where(last, b.scalar(op.I32, float64(bins-1)), at), bins), edges
}

// bins returns the bin of each element of x: -1 below the first edge, and the number of bins for NaN and
// from the last edge on.
func (b *Batch) bins(x, edges Value, bins int, from, to float64) Value {
	width, one := (to-from)/float64(bins), b.scalar(op.I32, 1)
	if narrow := width < max(math.Abs(from), math.Abs(to))*0x1p-20; narrow || bins > 1<<20 || to-from > math.MaxFloat32 || width < 0x1p-120 {
		return b.Sub(b.SearchSorted(edges, x, op.SearchOpts{Right: true}), one)
	}
	// Bins are wide enough that rounding moves an element by at most one bin.
	place := b.Mul(b.Sub(x, b.scalar(op.F32, from)), b.scalar(op.F32, 1/width))
	at := b.Cast(b.Minimum(b.Maximum(place, b.scalar(op.F32, 0)), b.scalar(op.F32, float64(bins-1))), op.I32)
	below := b.Less(x, b.Gather(edges, at))
	above := b.GreaterEqual(x, b.Gather(edges, b.Add(at, one)))
	at = b.Sub(b.Add(at, b.Cast(above, op.I32)), b.Cast(below, op.I32))
	return b.Where(b.IsNaN(x), b.scalar(op.I32, float64(bins)), at)
}
