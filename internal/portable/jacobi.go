//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
)

// Jacobi's method finds eigenvalues, and Kogbetliantz's method finds singular values of matrices
// that are not symmetric: here the factor R of a QR factorisation. Each rotation changes two rows
// and two columns, so that the two off-diagonal elements of the pair become zero. A round rotates
// n/2 disjoint pairs at once, and a sweep visits every pair.

var jacobiSchedules = table[factorOf, factorSchedule]{
	{"order16", func(m factorOf, _ *Target) bool { return m.Order <= 16 }, factorSchedule{Order: 16, Lanes: 64}},
	{"order32", func(m factorOf, _ *Target) bool { return m.Order <= 32 }, factorSchedule{Order: 32, Lanes: 128}},
	{"order48", func(m factorOf, _ *Target) bool { return m.Order <= 48 }, factorSchedule{Order: 48, Lanes: 256}},
	{"order60", func(m factorOf, _ *Target) bool { return m.Order <= 60 }, factorSchedule{Order: 60, Lanes: 256}},
}

const (
	jacobiSweeps = 40
	// jacobiSmall is the size below which an off-diagonal element counts as zero, if the greatest
	// element of the matrix is about 1. It leaves a residual of n·2⁻²²; the tolerance is 30·n·2⁻²⁴.
	jacobiSmall = 0x1p-22
)

type jacobiSpec struct {
	factorSchedule
	Symmetric bool // one matrix of eigenvectors, and values in ascending order
	Trans     bool // the matrix is the transpose of the one that is decomposed
}

// jacobi makes a matrix A diagonal: it computes left·A·rightᵀ.
type jacobi struct {
	*dense
	s           jacobiSpec
	n           kernel.U32
	half        kernel.U32 // pairs of a round
	a           sharedMatrix
	left, right sharedMatrix // one matrix if A is symmetric
	turn        [4]kernel.Array[kernel.F32]
	first       kernel.Array[kernel.U32]
	second      kernel.Array[kernel.U32]
	flag        kernel.Array[kernel.U32]
}

func newJacobi(d *dense, s jacobiSpec) *jacobi {
	pairs := s.Order / 2
	j := &jacobi{dense: d, s: s, n: d.rows, half: d.rows.Add(kernel.U(1)).Shr(kernel.U(1)), a: d.block("rotated", s.Order, s.Order), left: d.block("left", s.Order, s.Order)}
	j.right = j.left
	if !s.Symmetric {
		j.right = d.block("right", s.Order, s.Order)
	}
	for i, name := range []string{"left_cos", "left_sin", "right_cos", "right_sin"} {
		j.turn[i] = kernel.Shared[kernel.F32](d.b, name, pairs)
	}
	j.first, j.second = kernel.Shared[kernel.U32](d.b, "first", pairs), kernel.Shared[kernel.U32](d.b, "second", pairs)
	j.flag = kernel.Shared[kernel.U32](d.b, "flag", s.Order)
	return j
}

// pair returns the two rows of pair t in a round. The last of an even number of places stays in
// every round, and the rows in the other places move on by one. For an odd number of rows, the
// second row is n in the pair whose first row has no partner.
func (j *jacobi) pair(t, round kernel.U32) (p, q kernel.U32) {
	moving := j.half.Add(j.half).Sub(kernel.U(1))
	wrap := func(i kernel.U32) kernel.U32 { return kernel.Select(i.Ge(moving), i.Sub(moving), i) }
	x, y := wrap(round.Add(t)), wrap(round.Add(moving).Sub(t))
	x = kernel.Select(t.Eq(kernel.U(0)), moving, x)
	return x.Min(y), x.Max(y)
}

// rotation returns the cosines and sines of the rotations that make [w x; y z] diagonal. A rotation
// replaces rows p and q by c·p - s·q and s·p + c·q: cl and sl are for the rows of the left matrix,
// cr and sr for the columns of the right.
func rotation(w, x, y, z kernel.F32) (cl, sl, cr, sr kernel.F32) {
	one, zero := kernel.F(1), kernel.F(0)
	// First rotate by at most a right angle, so that the matrix becomes symmetric.
	c, s := w.Add(z), y.Sub(x)
	length := c.Mul(c).Add(s.Mul(s)).Sqrt()
	none := length.Lt(kernel.F(0x1p-60))
	sign := kernel.Select(c.Lt(zero), one.Neg(), one)
	c = kernel.Select(none, one, c.Mul(sign).Div(length))
	s = kernel.Select(none, zero, s.Mul(sign).Div(length))
	first, last := c.Mul(w).Add(s.Mul(y)), c.Mul(z).Sub(s.Mul(x))
	off := c.Mul(x).Add(s.Mul(z))
	theta := last.Sub(first).Div(off.Add(off))
	t := one.CopySign(theta).Div(theta.Abs().Add(theta.Mul(theta).Add(one).Sqrt()))
	t = kernel.Select(off.Abs().Lt(kernel.F(0x1p-60)), zero, t)
	cr = one.Div(t.Mul(t).Add(one).Sqrt())
	sr = t.Mul(cr)
	return cr.Mul(c).Add(sr.Mul(s)), sr.Mul(c).Sub(cr.Mul(s)), cr, sr
}

// rotate computes the rotations of a round. It sets changed if the lane has a pair that needs a
// rotation.
func (j *jacobi) rotate(round kernel.U32, changed kernel.Var[kernel.U32]) {
	b := j.b
	j.line(kernel.U(0), j.half, func(t kernel.U32) {
		p, q := j.pair(t, round)
		turn := kernel.NewVars(b, "turn", 4, kernel.F(0))
		turn[0].Set(kernel.F(1))
		turn[2].Set(kernel.F(1))
		b.If(q.Lt(j.n), func() {
			x, y := j.a.at(p, q), j.a.at(q, p)
			if j.s.Symmetric {
				y = x // rounding errors may have made the two elements differ
			}
			b.If(x.Abs().Max(y.Abs()).Gt(kernel.F(jacobiSmall)), func() {
				cl, sl, cr, sr := rotation(j.a.at(p, p), x, y, j.a.at(q, q))
				if j.s.Symmetric {
					cl, sl = cr, sr
				}
				for i, v := range []kernel.F32{cl, sl, cr, sr} {
					turn[i].Set(v)
				}
				changed.Set(kernel.U(1))
			})
		})
		for i := range turn {
			j.turn[i].Set(t, turn[i].Get())
		}
		j.first.Set(t, p)
		j.second.Set(t, q)
	})
}

// turnRows rotates the pairs of rows of m. side selects the left or the right rotations.
func (j *jacobi) turnRows(m sharedMatrix, side int) {
	j.each(kernel.U(0), j.half, kernel.U(0), j.n, func(t, i kernel.U32) {
		p, q := j.first.At(t), j.second.At(t)
		s := j.turn[2*side+1].At(t)
		j.b.If(q.Lt(j.n).And(s.Ne(kernel.F(0))), func() {
			u, v := turned(j.turn[2*side].At(t), s, m.at(p, i), m.at(q, i))
			m.set(p, i, u)
			m.set(q, i, v)
		})
	})
}

// turned returns the elements x and y of two rows or columns after a rotation.
func turned(c, s, x, y kernel.F32) (u, v kernel.F32) {
	return c.Mul(x).Sub(s.Mul(y)), s.Mul(x).Add(c.Mul(y))
}

// turnBlocks rotates the rows and the columns of A. The four elements in the rows of one pair and the
// columns of another depend only on each other, so that a lane rotates them from both sides at once.
func (j *jacobi) turnBlocks() {
	b := j.b
	j.each(kernel.U(0), j.half, kernel.U(0), j.half, func(t, u kernel.U32) {
		left, right := j.turn[1].At(t), j.turn[3].At(u)
		b.If(left.Ne(kernel.F(0)).Or(right.Ne(kernel.F(0))), func() {
			p, q, r, s := j.first.At(t), j.second.At(t), j.first.At(u), j.second.At(u)
			below, beside := q.Lt(j.n), s.Lt(j.n)
			// A row or column without a partner has no rotation: its partner may have any numbers.
			y, z := kernel.Select(below, q, p), kernel.Select(beside, s, r)
			pr, yr := turned(j.turn[0].At(t), left, j.a.at(p, r), j.a.at(y, r))
			pz, yz := turned(j.turn[0].At(t), left, j.a.at(p, z), j.a.at(y, z))
			cos := j.turn[2].At(u)
			pr, pz = turned(cos, right, pr, pz)
			yr, yz = turned(cos, right, yr, yz)
			j.a.set(p, r, pr)
			b.If(beside, func() { j.a.set(p, s, pz) })
			b.If(below, func() {
				j.a.set(q, r, yr)
				b.If(beside, func() { j.a.set(q, s, yz) })
			})
		})
	})
}

// round computes the rotations of a round and applies them.
func (j *jacobi) round(round kernel.U32, changed kernel.Var[kernel.U32]) {
	j.b.Barrier()
	j.rotate(round, changed)
	j.b.Barrier()
	j.turnBlocks()
	j.turnRows(j.left, 0)
	if !j.s.Symmetric {
		j.turnRows(j.right, 1)
	}
}

// diagonalise runs sweeps until no pair needs a rotation.
func (j *jacobi) diagonalise() {
	b := j.b
	for _, m := range []sharedMatrix{j.left, j.right}[:1+(1-integer(j.s.Symmetric))] {
		j.each(kernel.U(0), j.n, kernel.U(0), j.n, func(i, k kernel.U32) {
			m.set(i, k, kernel.Select(i.Eq(k), kernel.F(1), kernel.F(0)))
		})
	}
	b.For(kernel.U(0), kernel.U(jacobiSweeps), func(kernel.U32) {
		j.t.again()
		changed := kernel.NewVar(b, "changed", kernel.U(0))
		b.For(kernel.U(0), j.half.Add(j.half).Sub(kernel.U(1)), func(round kernel.U32) { j.round(round, changed) })
		any := j.t.max(changed.Get())
		b.If(b.LocalX().Eq(kernel.U(0)), func() { j.flag.Set(kernel.U(0), any) })
		b.Barrier()
		more := j.flag.Uniform(kernel.U(0))
		b.Barrier()
		b.If(more.Eq(kernel.U(0)), b.Break)
	})
	b.Barrier()
}

func integer(is bool) int {
	if is {
		return 1
	}
	return 0
}

// ranks writes the rank of each value to flag.
func (j *jacobi) ranks(finite kernel.Bool, value func(i kernel.U32) kernel.F32) {
	b := j.b
	j.line(kernel.U(0), j.n, func(i kernel.U32) {
		mine, before := value(i), kernel.NewVar(b, "before", kernel.U(0))
		b.For(kernel.U(0), j.n, func(k kernel.U32) {
			other := value(k)
			before.Set(before.Get().Add(other.Lt(mine).Or(other.Eq(mine).And(k.Lt(i))).U32()))
		})
		j.flag.Set(i, kernel.Select(finite, before.Get(), i)) // NaN has no rank
	})
	b.Barrier()
}

// jacobis computes eigenvalues and eigenvectors of a symmetric matrix, or the singular values of R
// with its left and right singular vectors as rows.
var jacobis = maker[factorParams, jacobiSpec]{name: "jacobi", build: func(b *kernel.Builder, p *factorParams, s jacobiSpec, _ *epilogue) {
	j := newJacobi(newDense(b, p, s.factorSchedule), s)
	n := j.n
	x := kernel.Input[kernel.F32](b, "a")
	values, vectors := kernel.Output[kernel.F32](b, "values"), kernel.Output[kernel.F32](b, "vectors")
	load := func(_, _, at kernel.U32) kernel.F32 { return x.At(at) }
	if s.Symmetric {
		load = func(i, k, at kernel.U32) kernel.F32 { // reads the lower triangle
			return x.At(at.Sub(i.Mul(n).Add(k)).Add(i.Max(k).Mul(n)).Add(i.Min(k)))
		}
	}
	back, finite := j.load(j.a, n, n, false, load)
	j.diagonalise()
	value := func(i kernel.U32) kernel.F32 { return j.a.at(i, i) }
	key := value
	if !s.Symmetric {
		key = func(i kernel.U32) kernel.F32 { return value(i).Abs().Neg() }
	}
	j.ranks(finite, key)
	or := func(v kernel.F32) kernel.F32 { return kernel.Select(finite, v, nan()) }
	b.If(j.is, func() {
		j.line(kernel.U(0), n, func(i kernel.U32) {
			v := value(i)
			if !s.Symmetric {
				v = v.Abs()
			}
			values.Set(j.matrix.Mul(n).Add(j.flag.At(i)), or(v.Mul(back)))
		})
	})
	first := j.matrix.Mul(n).Mul(n)
	byColumn := func(i, k kernel.U32) kernel.U32 { return first.Add(k.Mul(n)).Add(j.flag.At(i)) }
	byRow := func(i, k kernel.U32) kernel.U32 { return first.Add(j.flag.At(i).Mul(n)).Add(k) }
	j.write(n, n, func(i, k, _ kernel.U32) { vectors.Set(byColumn(i, k), or(j.left.at(i, k))) })
	if s.Symmetric {
		return
	}
	right, place := kernel.Output[kernel.F32](b, "right_vectors"), byRow
	if s.Trans {
		place = byColumn
	}
	j.write(n, n, func(i, k, _ kernel.U32) {
		v := j.right.at(i, k)
		right.Set(place(i, k), or(kernel.Select(value(i).Lt(kernel.F(0)), v.Neg(), v)))
	})
}}

func planEigh(q *request) (*Plan, error) {
	batch, n, _ := matricesIn(q.In[0].Shape)
	w, name, err := chooseFactor(jacobiSchedules, q, n)
	if err != nil {
		return nil, err
	}
	var p planner
	params := factorParams{Batch: uint32(batch), Rows: uint32(n), Cols: uint32(n), Parts: 1}
	p.stage(jacobis.of(jacobiSpec{factorSchedule: w, Symmetric: true}, nil), kernel.GridOf(batch), params, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}

// smallProducts multiplies matrices of rows·inner and inner·inner. A lane computes one element of
// the result, or of its transpose.
var smallProducts = maker[factorParams, bool]{name: "small_product", build: func(b *kernel.Builder, p *factorParams, trans bool, _ *epilogue) {
	b.LocalSize(radixLanes, 1, 1)
	x, y, out := kernel.Input[kernel.F32](b, "x"), kernel.Input[kernel.F32](b, "y"), kernel.Output[kernel.F32](b, "out")
	rows, k := b.U32(&p.Rows), b.U32(&p.Cols)
	e, each := b.Index(), rows.Mul(k)
	b.If(e.Lt(b.U32(&p.Batch).Mul(each)), func() {
		matrix := e.Div(each)
		i, j := e.Mod(each).Div(k), e.Mod(k)
		sum := kernel.NewVar(b, "sum", kernel.F(0))
		b.For(kernel.U(0), k, func(l kernel.U32) {
			sum.Set(x.At(matrix.Mul(each).Add(i.Mul(k)).Add(l)).MulAdd(y.At(matrix.Mul(k).Add(l).Mul(k).Add(j)), sum.Get()))
		})
		to := e
		if trans {
			to = matrix.Mul(each).Add(j.Mul(rows)).Add(i)
		}
		out.Set(to, sum.Get())
	})
}}

// planSVD decomposes A, or Aᵀ if Aᵀ has more rows, into Q·R, and R into U·diag(s)·Vᵀ.
func planSVD(q *request) (*Plan, error) {
	batch, m, n := matricesIn(q.In[0].Shape)
	k, long, trans := min(m, n), max(m, n), m < n
	w, name, err := chooseFactor(jacobiSchedules, q, k)
	if err != nil {
		return nil, err
	}
	alone := *q
	alone.Variant = ""
	factor, _, err := chooseFactor(factorSchedules, &alone, long)
	if err != nil {
		return nil, err
	}
	var p planner
	x, out := q.inputs()[0], q.outputs()
	u, s, vt := out[0], out[1], out[2]
	if trans {
		u, vt = vt, u
	}
	qs, rs, left := p.scratch(batch*long*k), p.scratch(batch*k*k), p.scratch(batch*k*k)
	p.stage(qrs.of(qrSpec{factor, trans}, nil), kernel.GridOf(batch), factorParams{Batch: uint32(batch), Rows: uint32(m), Cols: uint32(n), Parts: 1}, x, qs, rs)
	p.stage(jacobis.of(jacobiSpec{factorSchedule: w, Trans: trans}, nil), kernel.GridOf(batch), factorParams{Batch: uint32(batch), Rows: uint32(k), Cols: uint32(k), Parts: 1}, rs, s, left, vt)
	p.stage(smallProducts.of(trans, nil), kernel.GridFor(batch*long*k, radixLanes), factorParams{Batch: uint32(batch), Rows: uint32(long), Cols: uint32(k)}, qs, left, u)
	return p.done(name)
}
