package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// Scans reduce each element together with the elements before it in its row.
var (
	defCumsum = Operation{define: func() *definition {
		return scan(&definition{name: "cumsum", doc: "the running sums: each element plus all elements before it",
			formula: "Σ_{i ≤ j} x[i]", types: numbers, fold: foldSum, tol: blocked(),
			special: "IEEE 754: a NaN makes all later results NaN. Sums are computed in blocks: results are not defined from the first element at which the sum of the magnitudes overflows. Integers wrap around."},
			cumsumRow, 1)
	}}
	defCumprod = Operation{define: func() *definition {
		return scan(&definition{name: "cumprod", doc: "the running products: each element times all elements before it",
			formula: "Π_{i ≤ j} x[i]", types: numbers, fold: foldProd, tol: blocked(),
			special: "IEEE 754: a NaN makes all later results NaN. Products are computed in blocks: results are not defined from the first element at which the product of all factors with magnitudes above 1, or of all with magnitudes below 1, leaves the range of normal numbers. Integers wrap around."},
			cumprodRow, 1)
	}}
	defCummax = Operation{define: func() *definition {
		return scan(&definition{name: "cummax", doc: "the running maximum: the greatest of each element and all elements before it",
			formula: "max_{i ≤ j} x[i]", types: numbers, fold: foldMax,
			special: "A NaN makes all later results NaN; -0 and +0 count as equal, and either may result."},
			nil, 1)
	}}
	defCummin = Operation{define: func() *definition {
		return scan(&definition{name: "cummin", doc: "the running minimum: the least of each element and all elements before it",
			formula: "min_{i ≤ j} x[i]", types: numbers, fold: foldMin,
			special: "A NaN makes all later results NaN; -0 and +0 count as equal, and either may result."},
			nil, 1)
	}}
	defLogCumsumExp = Operation{define: func() *definition {
		return scan(&definition{name: "logcumsumexp", doc: "the logarithms of the running sums of exponentials, without overflow",
			formula: "log(Σ_{i ≤ j} e**x[i])", fold: foldLogSumExp, tol: Tolerance{ULP: 4, Mag: 1},
			special: "A NaN makes all later results NaN; otherwise +Inf makes all later results +Inf. Results are -Inf up to the first element that is not -Inf."},
			logCumsumExpRow, 4)
	}}
)

// scan returns the operation of a scan. f computes rows of floats; nil for a scan without rounding.
func scan(o *definition, f rowFunction, flops float64) *definition {
	o.inputs = operandNames[:1]
	row(o, f, flops)
	floating := o.ref
	o.ref = func(a *Attrs, in, out []*Array) {
		if f == nil || !in[0].typ.Float() {
			scanByFold(o.fold(register(in[0].typ)), in[0], out[0])
			return
		}
		floating(a, in, out)
	}
	return o
}

// Scans reports whether the operation is a scan: a row operation by a fold.
func (o *Operation) Scans() bool { d := o.def(); return d.class == Row && d.fold != nil }

// scanByFold is the reference of a scan with exact results.
func scanByFold(f *ir.Reducer, x, out *Array) {
	_, cols := x.Shape.Rows()
	e := f.Evaluator()
	for i, v := range x.Data {
		if i%cols == 0 {
			e.Begin()
		}
		e.Take(v, i%cols)
		out.Data[i] = e.Result(i%cols + 1)
	}
}

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

func cumprodRow(_ *Attrs, x, _, _, y, mag []float64) {
	p := newProduct()
	for i, v := range x {
		p.take(v)
		y[i], mag[i] = p.v, p.mag(i+1)
	}
}

// logCumsumExpRow keeps the sum and share of [shifted] relative to the greatest element so far. (Here
// share is not yet divided by the sum.)
func logCumsumExpRow(_ *Attrs, x, _, _, y, mag []float64) {
	m, sum, share := math.Inf(-1), 0.0, 0.0
	for i, v := range x {
		switch {
		case m-m != 0 && !math.IsInf(m, -1): // +Inf or NaN
			m = max(m, v)
		case v > m || v != v:
			if d := v - m; d-d == 0 {
				share = (share + sum*d/2) * math.Exp(-d)
				sum *= math.Exp(-d)
			}
			m, sum, share = v, sum+1, share+2
		case v-v == 0:
			sum += math.Exp(v - m)
			share += math.Exp(v-m) * ((m-v)/2 + 2)
		}
		y[i] = m
		if m-m == 0 {
			y[i] += math.Log(sum)
			mag[i] = math.Abs(m) + 2*math.Log(sum) + share/sum + 6*Depth(i+1)
		}
	}
}
