package portable

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// epilogueTrials are uses of operations with one result of float32.
func epilogueTrials(rnd *rand.Rand) []*trial {
	ids := op.NewArray(op.Shape{6})
	for i := range ids.Data {
		ids.Data[i] = float64(rnd.IntN(4))
	}
	floats := func(o *op.Operation, a op.Attrs, values ...*op.Array) *trial {
		c := &trial{o: o, attrs: a, values: values}
		for range values {
			c.types = append(c.types, op.F32)
		}
		return c
	}
	reshape, _ := op.ReshapeTo(6, 8)
	gather := floats(op.Gather, op.Attrs{}, normal(rnd, 4, 8), ids)
	gather.types[1] = op.I32
	return []*trial{
		floats(op.Sub, op.Attrs{}, normal(rnd, 6, 8), normal(rnd, 8)),
		floats(op.Softmax, op.Attrs{}, normal(rnd, 6, 8)),
		floats(op.RMSNorm, op.RMSNorm.Defaults(), normal(rnd, 6, 8)),
		floats(op.Cumsum, op.Attrs{}, normal(rnd, 6, 8)),
		floats(op.Sum, op.Attrs{}.Rows(), normal(rnd, 6, 8, 5)),
		floats(op.Var, op.Attrs{}.Rows(), normal(rnd, 6, 8, 5)),
		floats(op.Max, op.Attrs{}.Rows(), normal(rnd, 6, 8, 5)),
		floats(op.Sum, op.Attrs{}.Rows(), normal(rnd, 6, 8, 0)),
		floats(op.Transpose, op.Attrs{}, normal(rnd, 8, 6)),
		floats(op.Reshape, reshape, normal(rnd, 48)),
		floats(op.Rope, op.RopeOpts{}.Attrs(), normal(rnd, 2, 3, 8)),
		gather,
	}
}

// TestEpilogues applies y*a + b and y < c, with one a for each row, one b for each column, and a
// single c.
func TestEpilogues(t *testing.T) {
	rnd := rand.New(rand.NewPCG(25, 26))
	arg := func(i int) *ir.Node { return ir.NewArg(i, ir.F32) }
	product, _ := ir.New(ir.Mul, arg(0), arg(1))
	sum, _ := ir.New(ir.Add, product, arg(2))
	less, _ := ir.New(ir.Lt, arg(0), arg(3))
	a, b, c := normal(rnd, 6), normal(rnd, 8), normal(rnd, 1)
	post := &Epilogue{In: []Operand{{Type: op.F32, Broadcast: op.Repeated, N: 6}, {Type: op.F32, Broadcast: op.Tiled, N: 8}, {Type: op.F32, Broadcast: op.Scalar, N: 1}}, Exprs: []*ir.Node{sum, less}}
	for _, x := range epilogueTrials(rnd) {
		names := Variants(x.o)
		if names == nil {
			names = []string{""}
		}
		ran := false
		for _, name := range names {
			r, err := x.request(Target{})
			if err != nil {
				t.Fatal(err)
			}
			r.Variant = name
			plain, err := For(r)
			if errors.Is(err, op.ErrUnsupported) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			var in [][]byte
			for i, v := range x.values {
				in = append(in, optest.Encode(v, x.types[i]))
			}
			y := [][]byte{optest.Poisoned(4 * 48)}
			g := &rig{check: true, subgroup: 32}
			if err := g.run(plain, in, y); err != nil {
				t.Fatal(err)
			}
			r.Post = post
			r.Out = []Array{r.Out[0], {Type: op.Bool, Shape: r.Out[0].Shape}}
			p, err := For(r)
			if errors.Is(err, op.ErrUnsupported) {
				continue // the variant supports no epilogues
			} else if err != nil {
				t.Errorf("%v: %v", x.o, err)
				continue
			}
			ran = true
			for _, v := range []*op.Array{a, b, c} {
				in = append(in, optest.Encode(v, op.F32))
			}
			out := [][]byte{optest.Poisoned(4 * 48), optest.Poisoned(4 * 48)}
			if err := g.run(p, in, out); err != nil {
				t.Errorf("%v: %v", x.o, err)
				continue
			}
			for i := range 48 {
				v := float32(op.F32.Float64(y[0], i))
				want := float32(v*float32(a.Data[i/8])) + float32(b.Data[i%8])
				if got := float32(op.F32.Float64(out[0], i)); math.Abs(float64(got-want)) > 1e-6 {
					t.Errorf("%v, variant %q: element %d is %v, not %v", x.o, name, i, got, want)
				}
				if got := op.Bool.Float64(out[1], i) != 0; got != (v < float32(c.Data[0])) {
					t.Errorf("%v, variant %q: element %d is %v for %v", x.o, name, i, got, v)
				}
			}
		}
		if !ran {
			t.Errorf("%v: no variant takes an epilogue", x.o)
		}
	}
}

func TestKernelsAreShared(t *testing.T) {
	rnd := rand.New(rand.NewPCG(27, 28))
	for _, x := range epilogueTrials(rnd) {
		r, err := x.request(Target{})
		if err != nil {
			t.Fatal(err)
		}
		for _, post := range []*Epilogue{nil, {Exprs: []*ir.Node{ir.NewArg(0, ir.F32)}}} {
			r.Post = post
			p, err := For(r)
			if err != nil {
				t.Fatal(err)
			}
			q, err := For(r)
			if err != nil {
				t.Fatal(err)
			}
			for i := range p.Stages {
				if p.Stages[i].Kernel != q.Stages[i].Kernel {
					t.Errorf("%v: stage %d is another kernel the second time", x.o, i)
				}
			}
		}
	}
}

// TestFusedAreBounded checks that a maker drops kernels with epilogues, except those that are
// requested often.
func TestFusedAreBounded(t *testing.T) {
	m := maker[struct{}, int]{name: "bounded", build: func(b *kernel.Builder, _ *struct{}, n int, _ *epilogue) { b.LocalSize(n, 1, 1) }}
	e := &epilogue{}
	e.setKey()
	first := m.of(1, e)
	for n := 2; n < 3*maxFused; n++ {
		m.of(n, e)
		if m.of(1, e) != first {
			t.Fatalf("after %d others the kernel is another one", n)
		}
		if have := len(m.fused) + len(m.older); have > maxFused {
			t.Fatalf("%d kernels are kept", have)
		}
	}
	if second := m.of(2, e); m.of(2, e) != second || second == first {
		t.Error("kernels are mistaken for others")
	}
}
