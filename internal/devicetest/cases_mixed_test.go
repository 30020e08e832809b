package devicetest

import "github.com/rayo-go/rayo/op"

// mixedProducts returns products of float32 operands with weights of 16 bits: of matrices, or of a matrix and
// a vector. It returns none for types other than float32.
func (g *generator) mixedProducts(o *op.Operation, d op.DType) []Case {
	if d != op.F32 {
		return nil
	}
	var cases []Case
	for i, s := range [][3]int{{1, 1, 1}, {1, 70, 33}, {3, 65, 40}, {40, 33, 17}, {1, 0, 4}, {9, 260, 200}} {
		for _, half := range []op.DType{op.F16, op.BF16} {
			m, k, n := s[0], s[1], s[2]
			if o == op.MatVec {
				w := op.Shape{n, k}
				if i%2 == 1 {
					w = op.Shape{k, n}
				}
				cases = append(cases, Case{Op: o, Options: op.MatVecOpts{Trans: i%2 == 1}, In: []Tensor{g.tensor(half, w, g.tame), g.tensor(d, op.Shape{k}, g.tame)}})
				continue
			}
			w := op.Shape{k, n}
			if i%2 == 1 {
				w = op.Shape{n, k}
			}
			c := Case{Op: o, Options: op.MatMulOpts{TransB: i%2 == 1, Act: activations[i%len(activations)].o, ActParams: activations[i%len(activations)].params},
				In: []Tensor{g.tensor(d, op.Shape{2, m, k}, g.tame), g.tensor(half, w, g.tame)}}
			if half == op.F16 {
				c.In = append(c.In, g.tensor(d, op.Shape{n}, g.tame))
			}
			cases = append(cases, c)
		}
	}
	return cases
}
