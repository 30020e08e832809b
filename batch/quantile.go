package batch

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// Quantile returns the q-quantile, q from 0 to 1, of the elements along axes, or of all elements if
// no axes are given. It sorts the n elements and interpolates linearly at index q·(n-1), as
// numpy.quantile. Shapes are as for [Batch.Sum]; the type is that of x. A q of 0.5 gives the
// median:
//
//	median := b.Quantile(x, 0.5, op.Axes(-1))
//
// The result is NaN if any element is NaN, or if the two neighbours are infinities of different
// signs; otherwise an infinite neighbour with a nonzero weight is the result. Several quantiles of
// one value share its sort.
//
// The error is at most 3 units in the last place of the magnitudes of the neighbours.
//
// Execute or Compile returns [op.ErrShape] for no elements along the axes, axes that x lacks,
// and a q outside [0, 1], and [op.ErrUnsupported] for types that are not floating.
func (b *Batch) Quantile(x Value, q float64, along ...op.Along) Value {
	if !b.takes("quantile", x) {
		return Value{}
	}
	in, rank := []Value{x}, len(x.Shape())
	o, err := op.OptionOf(along)
	var axes, others []int
	if err == nil {
		axes, others, err = o.Of(rank)
	}
	switch {
	case err != nil:
		return b.refuse("quantile", in, "%w", err)
	case !x.Type().Float():
		return b.refuse("quantile", in, "elements of type %v: expected a floating type; use Cast: %w", x.Type(), device.ErrUnsupported)
	case !(q >= 0 && q <= 1):
		return b.refuse("quantile", in, "quantile %v, not from 0 to 1: %w", q, device.ErrShape)
	}
	rows := b.rows(x, axes, others)
	shape := slices.Clone(rows.Shape())
	n := shape[len(shape)-1]
	if n == 0 {
		return b.refuse("quantile", in, "no elements along axes %v: %w", axes, device.ErrShape)
	}
	y := b.between(rows, q*float64(n-1))
	shape = shape[:len(shape)-1]
	if o.Keeps() {
		shape = slices.Clone(x.Shape())
		for _, i := range axes {
			shape[i] = 1
		}
	}
	return b.Cast(b.Reshape(y, shape...), x.Type())
}

// between interpolates linearly at an index of each sorted row [... n], as f32, and returns NaN for
// a row with NaN.
func (b *Batch) between(rows Value, place float64) Value {
	s := rows.Shape()
	n := s[len(s)-1]
	sorted, _ := b.Sort(rows)
	at := func(i int) Value { return b.Cast(b.Slice(sorted, -1, i, i+1, 1), op.F32) }
	whole, part := math.Modf(place)
	i := min(int(whole), n-1)
	y := at(i)
	if part > 0 && i+1 < n {
		next := at(i + 1)
		mean := b.Add(b.Mul(y, b.scalar(op.F32, 1-part)), b.Mul(next, b.scalar(op.F32, part)))
		y = b.Where(b.Equal(y, next), y, mean)
	}
	last := at(n - 1)
	return b.Where(b.IsNaN(last), last, y)
}
