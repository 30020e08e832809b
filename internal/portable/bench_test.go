package portable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/op"
)

// BenchmarkFor plans requests that were planned before.
func BenchmarkFor(b *testing.B) {
	rnd := rand.New(rand.NewPCG(39, 40))
	for _, c := range epilogueTrials(rnd) {
		b.Run(fmt.Sprint(c.o, c.values[0].Shape, c.attrs.I[0]), func(b *testing.B) {
			r, err := c.request(Target{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := For(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkInterpreted runs plans of a million elements as a CPU without native kernels would.
func BenchmarkInterpreted(b *testing.B) {
	rnd := rand.New(rand.NewPCG(41, 42))
	x := normal(rnd, 1000, 1000)
	cs := []*trial{reductionTrial(op.Sum, false, x), reductionTrial(op.Sum, true, x), reductionTrial(op.ArgMax, true, x),
		rowTrial(rnd, op.Softmax, x, 0), rowTrial(rnd, op.LayerNorm, x, 3), rowTrial(rnd, op.Cumsum, x, 0),
		{o: op.Transpose, types: []op.DType{op.F32}, values: []*op.Array{x}},
		{o: op.Gelu, types: []op.DType{op.F32}, values: []*op.Array{x}}}
	for _, c := range cs {
		b.Run(fmt.Sprint(c.o, c.values[0].Shape, c.attrs.I[0]), func(b *testing.B) {
			r, err := c.request(Target{Lanes: 1024, Subgroups: true})
			if err != nil {
				b.Fatal(err)
			}
			p, err := For(r)
			if err != nil {
				b.Fatal(err)
			}
			in, out := [][]byte{}, [][]byte{}
			for i, v := range c.values {
				if v == nil {
					in = append(in, nil)
					continue
				}
				in = append(in, optest.Encode(v, c.types[i]))
			}
			for _, y := range r.Out {
				out = append(out, optest.Poisoned(int64(size(y.Shape)*y.Type.Size())))
			}
			b.SetBytes(int64(4 * len(x.Data)))
			for b.Loop() {
				if err := (&rig{subgroup: 32}).run(p, in, out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
