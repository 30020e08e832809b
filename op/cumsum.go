package op

import "math"

// Cumsum adds up along rows.
var Cumsum = row(&Operation{name: "cumsum", doc: "the running sums: of each element and those before it",
	formula: "Σ_{i ≤ j} x[i]", inputs: []string{"x"}, tol: blocked(),
	special: "IEEE 754: from a NaN on NaN. Sums are made in blocks: from where the magnitudes add up to more than the range on, they are not defined."},
	cumsumRow, 1)

func cumsumRow(_ *Attrs, x, _, _, y, mag []float64) {
	s, terms, infinite := 0.0, 0.0, false
	for i, v := range x {
		s += v
		infinite = infinite || math.IsInf(v, 0)
		if !infinite {
			terms += math.Abs(v)
		}
		y[i], mag[i] = s, terms*Depth(i+1)
		if terms >= overflow {
			mag[i] = math.Inf(1)
		}
	}
}
