package devicetest

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
)

// known is a value with error bounds: the float64 reference of each element, and
// the interval that contains the result of any device whose operations all stay
// within their tolerances. At a discontinuity (a comparison of numbers that may be
// equal, a floor near an integer, a root around zero) the interval contains both
// outcomes, and the intervals computed from it contain the consequences of both.
// There is no other rule for undecidable elements.
//
// A value of f16 or bf16 is rounded where it is recorded, whichever operation consumes it.
type known struct {
	typ    op.DType
	shape  op.Shape
	data   []float64
	ranges []ir.Interval
	blocks []byte // operands of a quantised type have these blocks, and the ranges of zeros
}

// exactly returns a value without error.
func exactly(t Tensor) known {
	v := known{t.Type, t.Shape, t.Data, make([]ir.Interval, len(t.Data)), t.Blocks}
	for i, x := range t.Data {
		v.ranges[i] = ir.Point(x)
	}
	return v
}

// narrow is the largest width of the range of a decided element, relative to the greater of 1 and the value. Wrong
// results rarely have smaller errors.
const narrow = 2e-3

// decided reports whether the range of element i is narrow enough to tell right results from wrong ones.
func (v *known) decided(i int) bool {
	r := v.ranges[i]
	return r.Certain() || !r.NaN && v.typ != op.Bool && r.Hi-r.Lo <= narrow*(1+min(math.Abs(v.data[i]), math.MaxFloat32))
}

// undecided returns the number of elements that are not decided.
func (v *known) undecided() int {
	n := 0
	for i := range v.ranges {
		if !v.decided(i) {
			n++
		}
	}
	return n
}

// tensor returns the float64 references.
func (v *known) tensor() Tensor { return Tensor{v.typ, v.shape, v.data, v.blocks} }

// certain reports whether the ranges of all elements are single values.
func (v *known) certain() bool {
	return !slices.ContainsFunc(v.ranges, func(r ir.Interval) bool { return !r.Certain() })
}

// infer computes the ranges of the results of a case over known operands, on a device with deviations free.
func infer(c *Case, in []known, free deviations) ([]known, error) {
	a := c.Attrs()
	types, err := c.Op.Types(&a, c.Types())
	if err != nil {
		return nil, err
	}
	results, err := evaluate(c, in, func(v *known, i int) float64 { return v.data[i] })
	if err != nil {
		return nil, err
	}
	certain := !slices.ContainsFunc(in, func(v known) bool { return !v.certain() })
	var out []known
	for k, center := range results {
		v := known{typ: types[k], shape: center.Shape, data: center.Data}
		switch {
		case certain && c.Op.Class() != op.Elementwise:
			v.ranges = c.around(center, types[k], free)
		case k == 0:
			one, err := c.inferOne(in, center, types[0], free)
			if err != nil {
				return nil, err
			}
			v.ranges = one.ranges
		default:
			v.ranges = slices.Repeat([]ir.Interval{ir.Anything()}, len(center.Data))
		}
		for i, x := range v.data {
			if half := v.typ == op.F16 || v.typ == op.BF16; half || v.ranges[i].Lo == v.ranges[i].Hi {
				v.data[i] = v.typ.Round(x)
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// rounded reports whether a device with the given deviations must return the reference, rounded to the nearest
// number of type d. This does not hold for products in float32, which a device may fuse with a sum.
func (c *Case) rounded(d op.DType, free deviations) bool {
	tol := c.Op.Tolerance()
	return (d == op.F16 || d == op.BF16) && c.Op.ID() >= 0 && max(tol.ULP, 0.5) == 0.5 && tol.Mag == 0 && tol.Abs == 0 && free == deviations{finite: free.finite}
}

// around returns the ranges of a result over exact operands: the reference plus and
// minus the tolerance of the operation.
func (c *Case) around(y *op.Array, d op.DType, free deviations) []ir.Interval {
	tol, exact, more := c.Op.Tolerance(), c.rounded(d, free), c.slack(free)
	out := make([]ir.Interval, len(y.Data))
	for i, v := range y.Data {
		mag := 0.0
		if y.Mag != nil {
			mag = y.Mag[i]
		}
		switch {
		case mag-mag != 0:
			out[i] = ir.Anything()
		case !d.Float() || v-v != 0:
			out[i] = ir.Point(v)
		case exact:
			out[i] = ir.Point(d.Round(v))
		default:
			out[i] = irhook.Widen(tol, ir.Point(v), mag, uint8(d))
			if more != (op.Tolerance{}) {
				out[i] = irhook.Widen(more, out[i], 0, uint8(d))
			}
		}
	}
	return out
}

// slack is the error that a device with deviations may have in addition to the tolerance.
func (c *Case) slack(free deviations) op.Tolerance {
	more := op.Tolerance{ULP: c.units(free)}
	if free.flushes {
		more.Abs = free.slack
	}
	return more
}

// inferOne is infer for the first result, if some operands are not certain.
func (c *Case) inferOne(in []known, center *op.Array, d op.DType, free deviations) (known, error) {
	a := c.Attrs()
	out := known{typ: d, shape: center.Shape, data: center.Data}
	more := c.slack(free)
	wider := func(r ir.Interval) ir.Interval {
		if out.typ != op.F32 || more == (op.Tolerance{}) {
			return r
		}
		return irhook.Widen(more, r, 0, uint8(out.typ))
	}
	var err error
	if c.Op.Class() != op.Elementwise {
		if out.ranges, err = spread(c, in, center, d); err != nil {
			return known{}, err
		}
		for j, r := range out.ranges {
			out.ranges[j] = wider(r)
		}
		return out, nil
	}
	f, err := irhook.Range(c.Op, &a, c.Types())
	if err != nil {
		return known{}, err
	}
	out.ranges = make([]ir.Interval, len(out.data))
	at := make([]func(int) int, len(in))
	for i := range in {
		if at[i], err = op.Index(in[i].shape, out.shape); err != nil {
			return known{}, err
		}
	}
	x, exact := make([]ir.Interval, len(in)), c.rounded(d, free)
	for j, v := range out.data {
		certain := exact && v-v == 0
		for i := range in {
			x[i] = in[i].ranges[at[i](j)]
			certain = certain && x[i].Certain()
		}
		// If the result depends on the sign of a zero, the range contains the results for both signs.
		if out.ranges[j] = wider(f(x)); certain && out.ranges[j].Hi-out.ranges[j].Lo < math.Inf(1) {
			out.ranges[j] = ir.Point(d.Round(v))
		}
	}
	return out, nil
}

// evaluate returns the reference over operands that pick chooses from the elements
// and ranges of in.
func evaluate(c *Case, in []known, pick func(v *known, i int) float64) ([]*op.Array, error) {
	x := *c
	x.In = nil
	for k := range in {
		v := &in[k]
		t := Tensor{Type: v.typ, Shape: v.shape, Data: make([]float64, len(v.data)), Blocks: v.blocks}
		for i := range t.Data {
			t.Data[i] = pick(v, i)
		}
		x.In = append(x.In, t)
	}
	y, _, err := x.Reference()
	return y, err
}

// first is evaluate for the first result.
func first(c *Case, in []known, pick func(v *known, i int) float64) (*op.Array, error) {
	y, err := evaluate(c, in, pick)
	if err != nil {
		return nil, err
	}
	return y[0], nil
}

func least(v *known, i int) float64    { return v.ranges[i].Lo }
func greatest(v *known, i int) float64 { return v.ranges[i].Hi }

// magnitude is the greatest magnitude in the range, proximity the least.
func magnitude(v *known, i int) float64 {
	return max(math.Abs(v.ranges[i].Lo), math.Abs(v.ranges[i].Hi))
}

func proximity(v *known, i int) float64 { return max(v.ranges[i].Lo, -v.ranges[i].Hi, 0) }

// radius is how far an element may be from its float64 value.
func radius(v *known, i int) float64 {
	if x := v.data[i]; x-x == 0 {
		return max(v.ranges[i].Hi-x, x-v.ranges[i].Lo, 0)
	}
	return 0
}

// spread returns the ranges of an operation that is not elementwise. An element that depends on an inexact operand
// is unbounded unless a tighter rule applies.
func spread(c *Case, in []known, center *op.Array, d op.DType) ([]ir.Interval, error) {
	switch {
	case movers[c.Op] && !in[0].typ.Quantized() && (len(in) < 2 || in[1].certain()):
		return moved(c, in)
	case !ranged[c.Op] && rowEnds[c.Op] == nil || slices.ContainsFunc(in, func(v known) bool { return v.typ == op.InvalidType }):
		return slices.Repeat([]ir.Interval{ir.Anything()}, len(center.Data)), nil
	}
	plain, tol := *c, c.Op.Tolerance()
	var act func([]ir.Interval) ir.Interval
	if o, ok := c.Options.(op.MatMulOpts); ok && o.Act != nil {
		a := c.Attrs()
		f, attrs := a.Activation()
		var err error
		if act, err = irhook.Range(f, &attrs, []op.DType{d}); err != nil {
			return nil, err
		}
		o.Act = nil
		plain.Options = o
		if center, err = first(&plain, in, func(v *known, i int) float64 { return v.data[i] }); err != nil {
			return nil, err
		}
	}
	lo, hi, err := ends(&plain, in, center)
	if err != nil {
		return nil, err
	}
	vague, err := depends(&plain, in, len(center.Data))
	if err != nil {
		return nil, err
	}
	large, err := first(&plain, in, magnitude)
	if err != nil {
		return nil, err
	}
	out := make([]ir.Interval, len(center.Data))
	for j, v := range center.Data {
		mag := 0.0
		if center.Mag != nil {
			// Magnitudes change smoothly with the operands, whose relative error is at most a thousandth here.
			mag = 2 * max(center.Mag[j], large.Mag[j])
		}
		switch {
		case vague[j] || v-v == 0 && mag-mag != 0 || v-v != 0 && !nonFinite[c.Op]:
			out[j] = ir.Anything() // for example an infinity times a number that may be 0
			continue
		case v-v != 0:
			out[j] = ir.Point(v)
		case lo[j]-hi[j] <= 0:
			out[j] = irhook.Widen(tol, ir.Interval{Lo: min(lo[j], v), Hi: max(hi[j], v)}, mag, uint8(d))
		default:
			out[j] = ir.Anything()
		}
		if act != nil {
			out[j] = act(out[j : j+1])
		}
	}
	return out, nil
}

// movers are the operations that return elements of their first operand unchanged. ranged are the operations that
// the function ends supports.
var (
	// In these operations an infinity in an operand gives an infinity, and NaN gives NaN, because they sum no
	// products.
	nonFinite = map[*op.Operation]bool{op.NormL1: true, op.NormL2: true, op.NormLinf: true, op.Min: true, op.Max: true}

	movers = map[*op.Operation]bool{op.Transpose: true, op.Reshape: true, op.Gather: true, op.Permute: true,
		op.Slice: true, op.Flip: true, op.Expand: true, op.Diagonal: true, op.SlidingWindow: true}
	ranged = map[*op.Operation]bool{op.Sum: true, op.Mean: true, op.Min: true, op.Max: true, op.Cumsum: true,
		op.NormL1: true, op.NormL2: true, op.NormLinf: true, op.MatMul: true, op.MatVec: true}
)

// moved returns the ranges of elements in their new places.
func moved(c *Case, in []known) ([]ir.Interval, error) {
	from, err := first(c, in, func(v *known, i int) float64 {
		if v == &in[0] {
			return float64(i)
		}
		return v.data[i]
	})
	if err != nil {
		return nil, err
	}
	out := make([]ir.Interval, len(from.Data))
	for j, i := range from.Data {
		out[j] = ir.Point(i)
		if i == i { // not the NaN of an index beyond the table
			out[j] = in[0].ranges[int(i)]
		}
	}
	return out, nil
}

// depends reports for each element of the result whether it depends on an element that is not decided.
func depends(c *Case, in []known, n int) ([]bool, error) {
	vague := make([]bool, n)
	mark := func(v *known, i int) float64 {
		if v.decided(i) {
			return 0
		}
		return 1
	}
	switch {
	case c.Op.Class() == op.Shaped: // products and moves: marks of undecided elements propagate
		for k := range in {
			y, err := first(c, in, func(v *known, i int) float64 {
				if v == &in[k] {
					return mark(v, i)
				}
				return 1
			})
			if err != nil {
				return nil, err
			}
			for j, m := range y.Data {
				vague[j] = vague[j] || m > 0
			}
		}
	case n > 0:
		x := &in[0]
		cols := rowLength(c, x, n)
		for i := range x.data {
			if mark(x, i) > 0 {
				row := i / cols
				if c.Op.Class() == op.Row {
					for j := range cols {
						vague[row*cols+j] = true
					}
				} else {
					vague[row] = true
				}
			}
		}
	}
	return vague, nil
}

// rowLength is the length of the rows that a reduction or row operation with n results
// reads.
func rowLength(c *Case, x *known, n int) int {
	if c.Op.Class() == op.Reduction {
		return len(x.data) / n
	}
	return x.shape[len(x.shape)-1]
}

// ends returns the least and greatest results for operands from their ranges,
// in exact arithmetic.
func ends(c *Case, in []known, center *op.Array) (lo, hi []float64, err error) {
	from, to := least, greatest
	switch c.Op {
	case op.Sum, op.Mean, op.Min, op.Max, op.Cumsum:
		// These operations are monotonic in each element.
	case op.NormL1, op.NormL2, op.NormLinf:
		from, to = proximity, magnitude
	case op.MatMul, op.MatVec:
		return productEnds(c, in, center)
	default:
		lo, hi = make([]float64, len(center.Data)), make([]float64, len(center.Data))
		f := rowEnds[c.Op]
		if f == nil || len(in) > 1 {
			for j := range lo {
				lo[j], hi[j] = math.Inf(-1), math.Inf(1)
			}
			return lo, hi, nil
		}
		x := &in[0]
		cols := rowLength(c, x, len(center.Data))
		for i := 0; i < len(x.data); i += cols {
			r := row{*x, i, cols, c}
			if c.Op.Class() == op.Row {
				f(r, lo[i:i+cols], hi[i:i+cols])
			} else {
				f(r, lo[i/cols:], hi[i/cols:])
			}
		}
		return lo, hi, nil
	}
	l, err := first(c, in, from)
	if err != nil {
		return nil, nil, err
	}
	h, err := first(c, in, to)
	if err != nil {
		return nil, nil, err
	}
	return l.Data, h.Data, nil
}

// productEnds returns the ends of a sum of products. If the errors of a and b are at most e and f, the error of
// Σ(a±e)(b±f) is at most Σ(|a|+e)(|b|+f) - Σ|a||b|.
func productEnds(c *Case, in []known, center *op.Array) (lo, hi []float64, err error) {
	most, err := first(c, in, func(v *known, i int) float64 { return math.Abs(v.data[i]) + radius(v, i) })
	if err != nil {
		return nil, nil, err
	}
	sum, err := first(c, in, func(v *known, i int) float64 { return math.Abs(v.data[i]) })
	if err != nil {
		return nil, nil, err
	}
	for j, y := range center.Data {
		d := most.Data[j] - sum.Data[j]
		lo, hi = append(lo, y-d), append(hi, y+d)
	}
	return lo, hi, nil
}

// row is one row of an operand.
type row struct {
	x    known
	from int
	n    int
	c    *Case
}

func (r row) at(i int) ir.Interval { return r.x.ranges[r.from+i] }

// deviations returns the range of the square root of Σ(x-mean)², and the range of the mean. The root is the length of
// a vector, so it changes by at most the length of the vector of errors.
func (r row) deviations() (length, mean ir.Interval) {
	m, err, s := 0.0, 0.0, 0.0
	for i := range r.n {
		m += r.x.data[r.from+i] / float64(r.n)
		mean.Lo += r.at(i).Lo / float64(r.n)
		mean.Hi += r.at(i).Hi / float64(r.n)
		err = math.Hypot(err, radius(&r.x, r.from+i))
	}
	for i := range r.n {
		s = math.Hypot(s, r.x.data[r.from+i]-m)
	}
	return ir.Interval{Lo: max(0, s-err), Hi: s + err}, mean
}

// others returns for each element of a row the sum of f over all others.
func (r row) others(f func(i int) float64) []float64 {
	s := make([]float64, r.n)
	t := 0.0
	for i := range r.n {
		s[i] = t
		t += f(i)
	}
	t = 0.0
	for i := r.n - 1; i >= 0; i-- {
		s[i] += t
		t += f(i)
	}
	return s
}

// rowEnds returns the ends of results that are not monotonic in each element.
var rowEnds = map[*op.Operation]func(r row, lo, hi []float64){
	op.Var: func(r row, lo, hi []float64) {
		d, _ := r.deviations()
		a := r.c.Attrs()
		n := max(0, float64(r.n-op.VarOptsOf(&a).DDOF))
		lo[0], hi[0] = d.Lo*d.Lo/n, d.Hi*d.Hi/n
	},
	op.LayerNorm: func(r row, lo, hi []float64) {
		d, mean := r.deviations()
		for i := range lo {
			lo[i], hi[i] = r.scaled(r.at(i).Lo-mean.Hi, r.at(i).Hi-mean.Lo, d)
		}
	},
	op.RMSNorm: func(r row, lo, hi []float64) {
		var d ir.Interval
		for i := range r.n {
			d.Lo = math.Hypot(d.Lo, proximity(&r.x, r.from+i))
			d.Hi = math.Hypot(d.Hi, magnitude(&r.x, r.from+i))
		}
		for i := range lo {
			lo[i], hi[i] = r.scaled(r.at(i).Lo, r.at(i).Hi, d)
		}
	},
	// A result increases with its own element and decreases with the others.
	op.Softmax: func(r row, lo, hi []float64) {
		few, many, m := r.exponentials()
		for i := range lo {
			p, q := math.Exp(r.at(i).Lo-m), math.Exp(r.at(i).Hi-m)
			lo[i], hi[i] = p/(p+many[i]), q/(q+few[i])
		}
	},
	op.LogSoftmax: func(r row, lo, hi []float64) {
		few, many, m := r.exponentials()
		for i := range lo {
			p, q := r.at(i).Lo-m, r.at(i).Hi-m
			lo[i], hi[i] = p-math.Log(math.Exp(p)+many[i]), q-math.Log(math.Exp(q)+few[i])
		}
	},
}

// scaled returns the range of a number in [lo, hi] divided by the root of a mean square plus epsilon. d is the range
// of the root of the sum of squares.
func (r row) scaled(lo, hi float64, d ir.Interval) (float64, float64) {
	a := r.c.Attrs()
	by := func(d float64) float64 { return math.Sqrt(d*d/float64(r.n) + float64(op.NormOptsOf(&a).Eps)) }
	s, t := by(d.Lo), by(d.Hi)
	return min(lo/s, lo/t), max(hi/s, hi/t)
}

// exponentials returns m, the greatest element, and the least and the
// greatest sums of e**(x-m) over all other elements.
func (r row) exponentials() (few, many []float64, m float64) {
	m = math.Inf(-1)
	for i := range r.n {
		m = max(m, r.at(i).Hi)
	}
	few = r.others(func(i int) float64 { return math.Exp(r.at(i).Lo - m) })
	many = r.others(func(i int) float64 { return math.Exp(r.at(i).Hi - m) })
	return few, many, m
}
