package batch

import (
	"fmt"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// Einsum returns the sum of products that a spec of NumPy's einsum describes. The letters of each
// operand name its axes, and the letters after -> name the axes of the result. Einsum multiplies
// the operands and sums over the letters that the result lacks. Without ->, the result has the
// letters that occur once, in alphabetical order.
//
//	b.Einsum("ij,jk->ik", x, y)            // a product of matrices
//	b.Einsum("bqhd,bkhd->bhqk", q, k)      // the scores of attention
//	b.Einsum("...ij->...ji", x)            // transposed matrices
//	b.Einsum("ii", x)                      // the trace
//	b.Einsum("bi,ijk,bk->bj", x, w, y)     // a bilinear form
//
// An ellipsis means all axes without a letter. The ellipses of several operands are aligned at the
// end and broadcast. A letter has the same extent in all operands. A letter that occurs twice in an
// operand takes its diagonal.
//
// Einsum multiplies more than two operands in pairs, in the order of the fewest
// multiplications. It finds this order by dynamic programming for up to ten operands and by
// a greedy search for more. Each pair is a product of matrices over views of its operands.
// The operands are copied only where no strides describe such a view. Each pair has the
// tolerance of docs/OPS.md#matmul.
//
// Execute or Compile returns [op.ErrShape] for a malformed spec, or operands that do not fit
// it.
func (b *Batch) Einsum(spec string, xs ...Value) Value {
	if b.unusable() {
		return Value{}
	}
	for i, x := range xs {
		if !b.own(x) {
			return b.fail(fmt.Errorf("einsum %q: operand %d: %w", spec, i, b.foreign(x)))
		}
	}
	e := &einsum{b: b, spec: spec}
	if err := e.parse(xs); err != nil {
		return b.fail(fmt.Errorf("einsum %q: %w", spec, err))
	}
	for i := range e.terms {
		e.alone(&e.terms[i])
	}
	var y term
	for i, t := range e.contracted() {
		if i == 0 {
			y = t
		} else {
			y = e.pair(y, t, labelSet(e.out))
		}
	}
	order := make([]int, len(e.out))
	for i, l := range e.out {
		order[i] = slices.Index(y.labels, l)
	}
	if b.err != nil || slices.Equal(y.labels, e.out) {
		return y.v
	}
	return b.Permute(y.v, order...)
}

// A label is a letter of a spec, or an axis covered by an ellipsis.
type label uint8

const (
	letters  = 52
	noLabels = letters + op.MaxRank // the labels of a spec are less than this
)

// A term is a value and the labels of its axes.
type term struct {
	v      Value
	labels []label
}

// einsum is a spec with its operands.
type einsum struct {
	b       *Batch
	spec    string
	terms   []term
	out     []label
	extents [noLabels]int
	uses    [noLabels]int // occurrences in operands
}

// labelSet returns a set of labels as bits.
func labelSet(ls []label) (set uint64) {
	for _, l := range ls {
		set |= 1 << l
	}
	return set
}

// alone takes the diagonals of a term, and sums over the labels that occur in no other term and not
// in the result.
func (e *einsum) alone(t *term) {
	b := e.b
	for i := 0; i < len(t.labels); i++ {
		l := t.labels[i]
		if j := slices.Index(t.labels[i+1:], l); j >= 0 {
			t.v = b.Diagonal(t.v, 0, i, i+1+j)
			t.labels = append(slices.Delete(slices.Delete(t.labels, i+1+j, i+2+j), i, i+1), l)
			i--
		}
	}
	keep := labelSet(e.out)
	for i := range e.terms {
		if o := &e.terms[i]; o != t {
			keep |= labelSet(o.labels)
		}
	}
	var axes []int
	var left []label
	for i, l := range t.labels {
		if keep>>l&1 == 0 {
			axes = append(axes, i)
		} else {
			left = append(left, l)
		}
	}
	if len(axes) > 0 {
		t.v, t.labels = b.Sum(t.v, op.Axes(axes...)), left
	}
}

// A contraction classifies the labels of two terms: batch, summed, rows and columns.
type contraction struct {
	batch, sum, rows, cols []label
}

// pair returns the product of two terms, summed over the common labels that are not in keep.
func (e *einsum) pair(x, y term, keep uint64) term {
	b := e.b
	if b.err != nil {
		return term{}
	}
	// The rows of the product precede its columns, so choose the operands such that this is the
	// order of the result.
	if first := func(t, o term) int {
		return slices.IndexFunc(e.out, func(l label) bool { return slices.Contains(t.labels, l) && !slices.Contains(o.labels, l) })
	}; first(y, x) >= 0 && first(y, x) < first(x, y) {
		x, y = y, x
	}
	var c contraction
	for _, l := range x.labels {
		switch {
		case !slices.Contains(y.labels, l):
			c.rows = append(c.rows, l)
		case keep>>l&1 != 0:
			c.batch = append(c.batch, l)
		default:
			c.sum = append(c.sum, l)
		}
	}
	for _, l := range y.labels {
		if !slices.Contains(x.labels, l) {
			c.cols = append(c.cols, l)
		}
	}
	e.order(&c, y)
	made := slices.Concat(c.batch, c.rows, c.cols)
	switch {
	case len(c.sum) == 0:
		return term{b.Mul(e.spread(x, made), e.spread(y, made)), made}
	case len(c.rows)+len(c.cols) == 0:
		order := slices.Concat(c.batch, c.sum)
		axes := make([]int, len(c.sum))
		for i := range axes {
			axes[i] = i - len(axes)
		}
		return term{b.Sum(b.Mul(e.spread(x, order), e.spread(y, order)), op.Axes(axes...)), made}
	}
	left := e.grouped(x, c.batch, c.rows, c.sum)
	right := e.grouped(y, c.batch, c.sum, c.cols)
	return term{b.Reshape(b.MatMul(left, right, None), e.shape(made)...), made}
}

// order sorts the summed labels in the order of the larger operand, so that they can more often be
// merged to one axis without a copy.
func (e *einsum) order(c *contraction, y term) {
	if e.size(c.cols) > e.size(c.rows) {
		slices.SortFunc(c.sum, func(a, b label) int { return slices.Index(y.labels, a) - slices.Index(y.labels, b) })
	}
}

// spread returns the value of t with its axes in the order of labels; a label that t lacks gets an
// axis of extent 1.
func (e *einsum) spread(t term, labels []label) Value {
	var order, s []int
	for _, l := range labels {
		i := slices.Index(t.labels, l)
		if i >= 0 {
			order = append(order, i)
			s = append(s, e.extents[l])
		} else {
			s = append(s, 1)
		}
	}
	return e.b.Reshape(e.permuted(t.v, order), s...)
}

// grouped returns the value of t as matrices: it merges the labels of each group into one axis; the
// labels of the batch become the leading axes.
func (e *einsum) grouped(t term, batch, rows, cols []label) Value {
	var order, s []int
	for _, l := range slices.Concat(batch, rows, cols) {
		order = append(order, slices.Index(t.labels, l))
	}
	s = append(e.shape(batch), e.size(rows), e.size(cols))
	return e.b.Reshape(e.permuted(t.v, order), s...)
}

// permuted is Permute, without a node for an order that changes nothing.
func (e *einsum) permuted(v Value, order []int) Value {
	if slices.IsSorted(order) {
		return v
	}
	return e.b.Permute(v, order...)
}

// shape returns the extents of labels.
func (e *einsum) shape(labels []label) []int {
	s := make([]int, len(labels))
	for i, l := range labels {
		s[i] = e.extents[l]
	}
	return s
}

func (e *einsum) size(labels []label) int { return extent(e.shape(labels)) }

// misplaced returns an ErrShape with a position in the spec.
func misplaced(at int, format string, args ...any) error {
	return fmt.Errorf("at %d: %w", at, fmt.Errorf(format+": %w", append(args, device.ErrShape)...))
}
