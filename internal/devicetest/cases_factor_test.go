package devicetest

import (
	"math"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// factorings has the operations of linear algebra. [op.Operation.CheckResults] checks all results of a case
// together.
var factorings = map[*op.Operation]struct {
	record func(b *batch.Batch, c *Case, in []batch.Value) []batch.Value
	cases  func(g *generator, short bool) []Case
}{
	op.Cholesky: {
		func(b *batch.Batch, _ *Case, in []batch.Value) []batch.Value { return []batch.Value{b.Cholesky(in[0])} },
		(*generator).cholesky,
	},
	op.SolveTriangular: {
		func(b *batch.Batch, c *Case, in []batch.Value) []batch.Value {
			return []batch.Value{b.SolveTriangular(in[0], in[1], c.Options.(op.SolveTriangularOpts))}
		},
		(*generator).triangular,
	},
	op.LU: {
		func(b *batch.Batch, _ *Case, in []batch.Value) []batch.Value {
			lu, pivots := b.LU(in[0])
			return []batch.Value{lu, pivots}
		},
		func(g *generator, short bool) []Case { return g.factored(op.LU, short) },
	},
	op.Solve: {
		func(b *batch.Batch, _ *Case, in []batch.Value) []batch.Value {
			return []batch.Value{b.Solve(in[0], in[1])}
		},
		(*generator).systems,
	},
	op.QR: {
		func(b *batch.Batch, _ *Case, in []batch.Value) []batch.Value {
			q, r := b.QR(in[0])
			return []batch.Value{q, r}
		},
		func(g *generator, short bool) []Case { return g.factored(op.QR, short) },
	},
	op.Eigh: {
		func(b *batch.Batch, _ *Case, in []batch.Value) []batch.Value {
			w, v := b.Eigh(in[0])
			return []batch.Value{w, v}
		},
		(*generator).symmetric,
	},
	op.SVD: {
		func(b *batch.Batch, _ *Case, in []batch.Value) []batch.Value {
			u, s, vt := b.SVD(in[0])
			return []batch.Value{u, s, vt}
		},
		func(g *generator, short bool) []Case { return g.factored(op.SVD, short) },
	},
}

// asWhole checks all results of a case together, if the operation has such a check.
func (c *Case) asWhole(out []*array, want []*op.Array) error {
	if !c.Op.CheckedAsWhole() {
		return nil
	}
	a := c.Attrs()
	in, results := make([]*op.Array, len(c.In)), make([]*op.Array, len(out))
	for i, x := range c.In {
		in[i] = &op.Array{Shape: x.Shape, Data: x.Data}
	}
	for i, x := range out {
		results[i] = &op.Array{Shape: want[i].Shape, Data: x.tensor(want[i].Shape).Data}
	}
	return c.Op.CheckResults(&a, in, results)
}

// normal returns a number of the normal distribution that float32 holds.
func (g *generator) normal(op.DType) float64 { return op.F32.Round(g.NormFloat64()) }

// lead returns leading extents: of a single matrix or of a batch.
var lead = []op.Shape{nil, nil, {3}, {2, 5}, {1}, {0}}

// ordersOf returns orders of matrices: numbers around the sizes of blocks and of vectors.
func ordersOf(short bool) []int {
	orders := []int{0, 1, 2, 3, 5, 8, 13, 16, 17, 31, 32, 33, 48, 63, 64, 65}
	if !short {
		orders = append(orders, 96, 97, 130)
	}
	return orders
}

// operandsOf returns matrices of m rows and n columns of many kinds: random, of low rank, zeros, diagonal,
// with rows of very different magnitudes.
func (g *generator) matrixOf(lead op.Shape, m, n, kind int) Tensor {
	x := g.tensor(op.F32, append(append(op.Shape{}, lead...), m, n), g.normal)
	for i := range x.Data {
		row, col := i/max(n, 1)%max(m, 1), i%max(n, 1)
		switch kind {
		case 1: // two columns alike
			if col == n-1 {
				x.Data[i] = x.Data[i-col]
			}
		case 2:
			x.Data[i] = 0
		case 3:
			if row != col {
				x.Data[i] = 0
			}
		case 4:
			x.Data[i] = op.F32.Round(math.Ldexp(x.Data[i], -col%20))
		case 5:
			x.Data[i] = 1
		}
	}
	return x
}

// kinds is the number of kinds of matrices.
const kinds = 6

// factored returns the cases of operations on matrices of any extents.
func (g *generator) factored(o *op.Operation, short bool) []Case {
	var cases []Case
	orders := ordersOf(short)
	for i, m := range orders {
		for k, n := range []int{m, orders[(i+3)%len(orders)]} {
			for kind := range kinds {
				if kind > 0 && (m > 40 || n > 40) && kind != 1+(i+k)%(kinds-1) {
					continue
				}
				cases = append(cases, Case{Op: o, In: []Tensor{g.matrixOf(lead[(i+kind)%len(lead)], m, n, kind)}})
			}
		}
	}
	return append(cases, g.wrong(o)...)
}

// wrong returns cases in which one of eleven matrices has NaN or infinities.
func (g *generator) wrong(o *op.Operation) []Case {
	var cases []Case
	for _, v := range []float64{math.NaN(), math.Inf(-1)} {
		c := Case{Op: o, In: []Tensor{g.matrixOf(op.Shape{11}, 9, 9, 0)}}
		if o == op.Cholesky || o == op.Eigh {
			c.In[0] = g.definite(op.Shape{11}, 9)
		}
		c.In[0].Data[81+5*9+2] = v
		cases = append(cases, c)
	}
	return cases
}

// definite returns symmetric positive definite matrices.
func (g *generator) definite(lead op.Shape, n int) Tensor {
	x := g.matrixOf(lead, n, n, 0)
	y := g.tensor(op.F32, x.Shape, g.normal)
	for i := range x.Data {
		m, r, c := i/(n*n)*n*n, i/n%n, i%n
		s := 0.0
		for k := range n {
			s += x.Data[m+r*n+k] * x.Data[m+c*n+k]
		}
		if r == c {
			s += float64(n)
		}
		y.Data[i] = op.F32.Round(s)
	}
	return y
}

func (g *generator) cholesky(short bool) []Case {
	var cases []Case
	for i, n := range ordersOf(short) {
		c := Case{Op: op.Cholesky, In: []Tensor{g.definite(lead[i%len(lead)], n)}}
		cases = append(cases, c)
		if n == 0 || len(c.In[0].Data) == 0 {
			continue
		}
		// Elements above the diagonal must not be read, and a matrix that is not definite must give NaN.
		upper, bad := c, c
		upper.In, bad.In = []Tensor{g.definite(nil, n)}, []Tensor{g.definite(op.Shape{2}, n)}
		for k := range upper.In[0].Data {
			if k%n > k/n {
				upper.In[0].Data[k] = math.NaN()
			}
		}
		k := g.IntN(n)
		bad.In[0].Data[n*n+k*n+k] = -1
		cases = append(cases, upper, bad)
	}
	return append(cases, g.wrong(op.Cholesky)...)
}

func (g *generator) symmetric(short bool) []Case {
	cases := g.wrong(op.Eigh)
	for i, n := range ordersOf(short) {
		for kind := range kinds {
			if n > 40 && kind > 0 && kind != 1+i%(kinds-1) {
				continue
			}
			x := g.matrixOf(lead[(i+kind)%len(lead)], n, n, kind)
			for k := range x.Data { // elements above the diagonal are not read
				if k%n > k/n%n {
					x.Data[k] = math.NaN()
				}
			}
			cases = append(cases, Case{Op: op.Eigh, In: []Tensor{x}})
		}
	}
	return cases
}

// triangle returns well conditioned triangular matrices, with NaN in the other triangle.
func (g *generator) triangle(lead op.Shape, n int, o op.SolveTriangularOpts) Tensor {
	x := g.matrixOf(lead, n, n, 0)
	for i := range x.Data {
		switch r, c := i/n%n, i%n; {
		case r == c && o.Unit:
			x.Data[i] = math.NaN()
		case r == c:
			x.Data[i] += math.Copysign(2, x.Data[i])
		case (c > r) != o.Upper:
			x.Data[i] = math.NaN()
		default:
			x.Data[i] /= float64(n)
		}
		x.Data[i] = op.F32.Round(x.Data[i])
	}
	return x
}

func (g *generator) triangular(short bool) []Case {
	var cases []Case
	for i, n := range ordersOf(short) {
		for k := range 8 {
			if n > 40 && k != i%8 {
				continue
			}
			o := op.SolveTriangularOpts{Upper: k&1 != 0, Trans: k&2 != 0, Unit: k&4 != 0}
			l := lead[(i+k)%len(lead)]
			cols := []int{1, 3, 17, 64, 0}[(i+k)%5]
			cases = append(cases, Case{Op: op.SolveTriangular, Options: o, In: []Tensor{g.triangle(l, n, o), g.matrixOf(l, n, cols, 0)}})
		}
	}
	return cases
}

func (g *generator) systems(short bool) []Case {
	var cases []Case
	for i, n := range ordersOf(short) {
		for k, kind := range []int{0, 2, 3, 4} {
			l := lead[(i+k)%len(lead)]
			cols := []int{1, 3, 17, 64, 0}[(i+k)%5]
			cases = append(cases, Case{Op: op.Solve, In: []Tensor{g.matrixOf(l, n, n, kind), g.matrixOf(l, n, cols, 0)}})
		}
	}
	return cases
}
