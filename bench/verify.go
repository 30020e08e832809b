package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/rayo-go/rayo/internal/opcase"
)

// verify compares the elements that a server sent with a float64 reference, so
// that no system gains time by wrong results. The tolerance is loose, because
// rayo's own tests check its accuracy.
func verify(c cell, got []float64) error {
	if strings.HasPrefix(c.Op, "roof-") || len(got) == 0 && c.N <= rowSize {
		return nil // nothing to compare
	}
	if axisCaseOf(c) != nil {
		return nil // the driver compares the systems with each other
	}
	if k, ok := caseOf(c); ok {
		return verifyCase(c, &k, got)
	}
	want, scale := reference(c)
	if want == nil {
		return nil
	}
	if len(got) != len(want) {
		return fmt.Errorf("%s: the reply has %d elements to check, expected %d", c.key(), len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(got[i] - want[i]); !(d <= 1e-5*scale+1e-5*math.Abs(want[i])) {
			return fmt.Errorf("%s: element %d is %g, expected %g", c.key(), i, got[i], want[i])
		}
	}
	return nil
}

// verifyCase is verify for an operation of the catalogue group.
func verifyCase(c cell, k *opcase.Case, got []float64) error {
	want, scale := caseReference(k)
	if len(got) != len(want) || want == nil {
		return fmt.Errorf("%s: the reply has %d elements to check, expected %d", c.key(), len(got), len(want))
	}
	for i := range want {
		// Casts round to half floats, and a sum may have lost a few terms' last bits.
		bound := 1e-5*scale[i] + 1e-3*math.Abs(want[i])
		if d := math.Abs(got[i] - want[i]); !(d <= bound) && got[i] != want[i] {
			return fmt.Errorf("%s: element %d is %g, expected %g", c.key(), i, got[i], want[i])
		}
	}
	return nil
}

func input(i, seed int) float64 {
	var x [1]float32
	x[0] = float32(float64(hash(i, seed))/(1<<32)*8 - 4)
	return float64(x[0])
}

// reference returns the first, middle and last element of the result, and the
// magnitude to which rounding errors are relative.
func reference(c cell) (want []float64, scale float64) {
	size := c.N
	at := func(f func(i int) float64) ([]float64, float64) {
		return []float64{f(0), f(size / 2), f(size - 1)}, 1
	}
	x := func(i int) float64 { return input(i, 1) }
	switch c.Op {
	case "relu":
		return at(func(i int) float64 { return max(x(i), 0) })
	case "tanh":
		return at(func(i int) float64 { return math.Tanh(x(i)) })
	case "exp":
		return at(func(i int) float64 { return math.Exp(x(i)) })
	case "sigmoid":
		return at(func(i int) float64 { return 1 / (1 + math.Exp(-x(i))) })
	case "gelu":
		return at(func(i int) float64 { return x(i) / 2 * (1 + math.Erf(x(i)/math.Sqrt2)) })
	case "add":
		return at(func(i int) float64 { return x(i) + input(i, 2) })
	case "fused", "unfused":
		return at(func(i int) float64 { return max(x(i), 0)*0.5 + input(i, 2) })
	case "sum", "dot":
		sum, abs := 0.0, 0.0
		for i := range c.N {
			v := x(i)
			if c.Op == "dot" {
				v *= input(i, 2)
			}
			sum += v
			abs += math.Abs(v)
		}
		return []float64{sum, sum, sum}, abs
	case "softmax":
		row := min(rowSize, c.N)
		return at(func(i int) float64 {
			sum := 0.0
			for j := range row {
				sum += math.Exp(x(i/row*row + j))
			}
			return math.Exp(x(i)) / sum
		})
	case "matmul":
		size = c.M * c.N
		want, _ = at(func(i int) float64 {
			sum := 0.0
			for k := range c.K {
				sum += x(i/c.N*c.K+k) * input(k*c.N+i%c.N, 2)
			}
			return sum
		})
		return want, 16 * math.Sqrt(float64(c.K))
	}
	return nil, 0
}
