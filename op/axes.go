package op

// Along says which axes an operation reduces or treats as rows, and whether the result
// keeps them. It is an argument of the methods of package batch:
//
//	b.Sum(x, op.Axes(0))              // the sums of the columns of a matrix
//	b.Max(x, op.Axes(1, 2).KeepDims()) // with extents of 1 in the place of the axes
//	b.Softmax(x, op.Axes(1))
type Along struct {
	n    uint8
	axes [MaxRank]int8
	keep bool
	bad  bool
}

// Axes returns the Along of the given axes. Axes below 0 count from the end. Without arguments it
// means all axes.
func Axes(axes ...int) Along {
	a := Along{n: uint8(min(len(axes), MaxRank)), bad: len(axes) > MaxRank}
	for i, x := range axes[:a.n] {
		a.axes[i] = int8(x)
		a.bad = a.bad || int(int8(x)) != x
	}
	return a
}

// KeepDims returns a with the axes kept as extents of 1, so that the result
// broadcasts over the operand.
func (a Along) KeepDims() Along {
	a.keep = true
	return a
}

// Keeps reports whether the axes are kept as extents of 1.
func (a Along) Keeps() bool { return a.keep }

// Of returns the axes for an operand of the given rank, and its other axes, both in
// ascending order, or an ErrShape.
func (a Along) Of(rank int) (axes, others []int, err error) {
	var is [MaxRank]bool
	if a.bad || rank > MaxRank {
		return nil, nil, mismatch("axes of an operand with %d extents: at most %d extents and as many axes are supported", rank, MaxRank)
	}
	for _, x := range a.axes[:a.n] {
		i, err := axisOf(int(x), rank)
		if err != nil {
			return nil, nil, err
		}
		if is[i] {
			return nil, nil, mismatch("axis %d is given twice", i)
		}
		is[i] = true
	}
	for i := range rank {
		if is[i] || a.n == 0 {
			axes = append(axes, i)
		} else {
			others = append(others, i)
		}
	}
	return axes, others, nil
}
