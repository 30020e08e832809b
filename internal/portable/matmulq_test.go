package portable

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/op"
)

// TestMatMulQ multiplies by blocks of each format with every variant that fits.
func TestMatMulQ(t *testing.T) {
	rnd := rand.New(rand.NewPCG(61, 62))
	for _, d := range op.QuantTypes() {
		f := d.Block()
		for _, s := range [][3]int{{1, 1, 1}, {1, 3, 5}, {2, 5, 3}, {4, 2, 9}, {7, 3, 2}, {9, 2, 33}, {40, 3, 37}, {33, 1, 36}, {1, 40, 2*busyLaneGroups + 1}} {
			m, k, n := s[0], s[1]*f.Elements(), s[2]
			if foursOf()[f] == nil && m > 1 && (m+int(d))%4 > 0 {
				continue // formats share one decoder, so a sample is enough
			}
			if n > busyLaneGroups && (d != op.Q4_0 || testing.Short()) {
				continue
			}
			if n > busyLaneGroups {
				k = f.Elements()
			}
			values := make([]float32, n*k)
			for i := range values {
				values[i] = float32(rnd.NormFloat64())
			}
			bytes := len(values) / f.Elements() * f.Bytes()
			padded := optest.Poisoned(int64(bytes+3) / 4 * 4) // drivers bind whole words
			blocks := padded[:bytes]
			even := make([]float32, k)
			for i := range even {
				even[i] = 1
			}
			if err := f.QuantizeWeighted(blocks, values, even); err != nil {
				t.Fatal(err)
			}
			if err := f.Dequantize(values, blocks); err != nil {
				t.Fatal(err)
			}
			a, bias := normal(rnd, m, k), normal(rnd, n)
			ran := false
			for _, name := range Variants(op.MatMulQ) {
				r := &Request{Op: op.MatMulQ, In: []Array{{Type: op.F32, Shape: a.Shape}, {Type: d, Shape: op.Shape{n, k}}, {Type: op.F32, Shape: bias.Shape}},
					Out: []Array{{Type: op.F32, Shape: op.Shape{m, n}}}, Variant: name}
				p, err := For(r)
				if errors.Is(err, op.ErrUnsupported) {
					continue
				} else if err != nil {
					t.Fatal(err)
				}
				ran = true
				if !sampled() {
					continue
				}
				out := optest.Poisoned(int64(4 * m * n))
				in := [][]byte{optest.Encode(a, op.F32), padded, optest.Encode(bias, op.F32)}
				if err := (&rig{check: m*n*k < 20_000, subgroup: 32, extra: 1}).run(p, in, [][]byte{out}); err != nil {
					t.Errorf("%v %v, variant %s: %v", d, s, name, err)
					continue
				}
				if err := productOfBlocks(a, values, bias, out, m, k, n); err != nil {
					t.Errorf("%v %v, variant %s: %v", d, s, name, err)
				}
			}
			if !ran {
				t.Errorf("%v %v: no variant fits", d, s)
			}
		}
	}
}

// productOfBlocks compares out with the product of a and the rows of w, plus bias. The error of a
// sum may be 2^-23 of its magnitude for each term, where the magnitude of blocks is at least that
// of the numbers that they represent.
func productOfBlocks(a *op.Array, w []float32, bias *op.Array, out []byte, m, k, n int) error {
	for i := range m {
		for j := range n {
			want, mag := bias.Data[j], math.Abs(bias.Data[j])
			for l := range k {
				x := a.Data[i*k+l] * float64(w[j*k+l])
				want, mag = want+x, mag+math.Abs(x)+math.Abs(a.Data[i*k+l])
			}
			got := op.F32.Float64(out, i*n+j)
			if bound := mag * 0x1p-23 * op.Depth(k); !(math.Abs(got-want) <= bound) {
				return fmt.Errorf("element %d, %d: got %v, want %v: off by %.3g, the bound is %.3g", i, j, got, want, math.Abs(got-want), bound)
			}
		}
	}
	return nil
}
