package ptxkernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/op"
)

func TestGPUTF32NaN(t *testing.T) {
	g := openGPU(t)
	tf32NaN(t, g.desc, g.run)
}

// TestGPUTF32Epilogue adds a bias and applies a function, in all layouts.
func TestGPUTF32Epilogue(t *testing.T) {
	g := openGPU(t)
	for i, o := range layouts {
		for _, n := range []int{132, 131} {
			o.Act = []*op.Operation{op.Gelu, op.Relu}[i%2]
			c := halfTrial(op.F32, o, 2, 148, 100, n, i > 1)
			o.TF32 = true
			g.check(t, newTrial(op.MatMul, o.Attrs(), op.F32, append(c.values, normal(n))...))
		}
	}
}

// TestGPUTF32Long computes the longest sums, of numbers that are exact in TF32 and have the same
// sign. Then all truncation errors have the same sign too.
func TestGPUTF32Long(t *testing.T) {
	g := openGPU(t)
	const m, k, n = 64, maxTF32, 72
	p := &halfProduct{Product: op.Product{Batch: 1, M: m, K: k, N: n}, Type: op.F32}
	var in [2]*op.Array
	var bytes [][]byte
	for i, s := range []op.Shape{{m, k}, {k, n}} {
		in[i] = op.NewArray(s)
		for e := range in[i].Data {
			in[i].Data[e] = 1 + float64(rand.IntN(1<<10))/(1<<10)
		}
		bytes = append(bytes, optest.Encode(in[i], op.F32))
	}
	attrs := op.MatMulOpts{TF32: true}.Attrs()
	for _, f := range []func() (*Plan, error){
		func() (*Plan, error) {
			return p.warpgroupsOf(wgmmaSchedule{wgmmaSpec: wgmmaTiles[4].wgmmaSpec, parts: 1}, &g.desc)
		},
		func() (*Plan, error) {
			return p.warpgroupsOf(wgmmaSchedule{wgmmaSpec: wgmmaTiles[6].wgmmaSpec, parts: 1, copyB: true}, &g.desc)
		},
		func() (*Plan, error) { return p.warps(&g.desc) },
	} {
		plan, err := f()
		if err != nil {
			t.Fatal(err)
		}
		out := [][]byte{optest.Poisoned(4 * m * n)}
		if err := g.run(plan, bytes, out); err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for e := 0; e < m*n; e += 97 {
			x, y := op.NewArray(op.Shape{1, k}), op.NewArray(op.Shape{k, 1})
			for z := range k {
				x.Data[z], y.Data[z] = in[0].Data[e/n*k+z], in[1].Data[z*n+e%n]
			}
			want, err := op.MatMul.Reference(&attrs, []*op.Array{x, y}, []op.DType{op.F32, op.F32})
			if err != nil {
				t.Fatal(err)
			}
			w, got := want[0].Data[0], op.F32.Float64(out[0], e)
			worst = max(worst, math.Abs(got-w)/w)
			if err := op.MatMul.Check(got, w, want[0].Mag[0], op.F32); err != nil {
				t.Fatalf("%s, element %d: %v", plan.Variant, e, err)
			}
		}
		t.Logf("%s: %.2g of the sum", plan.Variant, worst)
	}
}
