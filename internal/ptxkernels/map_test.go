package ptxkernels

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// TestMap computes y = a·b + c and y < d with operands of all types and all broadcast kinds.
func TestMap(t *testing.T) {
	for _, n := range []int{1, 7, 8, 12, 2047, 2048, 2049, 4104, 6144} {
		for _, types := range [][4]op.DType{{op.BF16, op.BF16, op.BF16, op.BF16}, {op.F16, op.F32, op.F16, op.BF16}, {op.F32, op.F16, op.BF16, op.F32}} {
			if !sampled() {
				continue
			}
			for range 2 {
				if err := mapTrial(n, types, []Device{h200, v100}[rand.IntN(2)]); err != nil {
					t.Errorf("%d elements, %v: %v", n, types, err)
				}
			}
		}
	}
}

func mapTrial(n int, types [4]op.DType, dev Device) error {
	arg := func(i int) *ir.Node { return ir.NewArg(i, ir.F32) }
	y, _ := ir.New(ir.Fma, arg(0), arg(1), arg(2))
	less, _ := ir.New(ir.Lt, y, arg(3))
	r := &portable.Request{Post: &portable.Epilogue{Exprs: []*ir.Node{y, less}}}
	var in [][]byte
	var values []*op.Array
	var spreads []string
	for i, typ := range types {
		o := portable.Operand{Type: typ, Broadcast: op.BroadcastKind(rand.IntN(4)), N: n}
		if i == 0 {
			o.Broadcast = op.Full
		}
		switch o.Broadcast {
		case op.Scalar:
			o.N = 1
		case op.Tiled, op.Repeated:
			for o.N = 1 + rand.IntN(min(n, 100)); n%o.N != 0; o.N-- {
			}
		}
		spreads = append(spreads, fmt.Sprintf("%v %d", o.Broadcast, o.N))
		v := normal(o.N)
		r.Post.In, values, in = append(r.Post.In, o), append(values, v), append(in, optest.Encode(v, typ))
	}
	r.Out = []portable.Array{{Type: types[3], Shape: op.Shape{n}}, {Type: op.Bool, Shape: op.Shape{n}}}
	p, err := For(r, dev)
	if err != nil {
		return err
	}
	out := [][]byte{optest.Poisoned(int64(n * types[3].Size())), optest.Poisoned(int64(4 * n))}
	if rand.IntN(3) == 0 {
		p = p.Anywhere
	}
	if err := (&rig{device: dev}).run(p, in, out); err != nil {
		return err
	}
	at := func(k, i int) float64 {
		o := &r.Post.In[k]
		switch o.Broadcast {
		case op.Scalar:
			i = 0
		case op.Tiled:
			i %= o.N
		case op.Repeated:
			i /= n / o.N
		}
		return o.Type.Round(values[k].Data[i])
	}
	for i := range n {
		want := math.FMA(at(0, i), at(1, i), at(2, i))
		if got := types[3].Float64(out[0], i); !(math.Abs(got-want) <= types[3].Eps()*math.Abs(want)+1e-6) {
			return fmt.Errorf("%v: element %d is %v, not %v", spreads, i, got, want)
		}
		if got := op.Bool.Float64(out[1], i) != 0; got != (want < at(3, i)) && math.Abs(want-at(3, i)) > 1e-5 {
			return fmt.Errorf("%v: element %d of the second result is %v", spreads, i, got)
		}
	}
	return nil
}

// TestMapHeavy computes long programs over more elements than a block processes: a multiple of the
// vector width, or up to three more.
func TestMapHeavy(t *testing.T) {
	for i := range 8 {
		c := []struct {
			o       *op.Operation
			variant string
			turns   int
		}{{op.Gelu, "heavy", mapVectors}, {op.Softplus, "heaviest", 2 * mapVectors}}[i/4]
		e, err := irhook.Expression(c.o, &op.Attrs{}, []op.DType{op.F32})
		if err != nil {
			t.Fatal(err)
		}
		each := mapThreads * c.turns * 4
		n := mapBusy + 4*rand.IntN(each) + i%4
		x := normal(n)
		r := &portable.Request{Post: &portable.Epilogue{In: []portable.Operand{{Type: op.F32, N: n}}, Exprs: []*ir.Node{e}}, Out: []portable.Array{{Type: op.F32, Shape: op.Shape{n}}}}
		p, err := For(r, h200)
		if err != nil {
			t.Fatal(err)
		}
		if p.Variant != c.variant {
			t.Fatal(p.Variant)
		}
		// Leave out most of the whole blocks, because the emulator is slow.
		s := &p.Stages[0]
		without := n/each - 2
		from := without * each
		s.Grid[0] -= uint32(without)
		s.Args[0].Bits -= uint64(from)
		part := &op.Array{Shape: op.Shape{n - from}, Data: x.Data[from:]}
		out := [][]byte{optest.Poisoned(int64(4 * (n - from)))}
		if err := (&rig{device: h200}).run(p, [][]byte{optest.Encode(part, op.F32)}, out); err != nil {
			t.Fatal(n, err)
		}
		eval := ir.NewEvaluator(e)
		for i, v := range part.Data {
			if err := c.o.Check(op.F32.Float64(out[0], i), eval.Eval([]float64{v}, nil), 0, op.F32); err != nil {
				t.Fatalf("element %d of %d: %v(%v): %v", i, n-from, c.o, v, err)
			}
		}
	}
}

// TestMapOdd runs short programs whose last elements do not fill a vector.
func TestMapOdd(t *testing.T) {
	e, err := irhook.Expression(op.Relu, &op.Attrs{}, []op.DType{op.F32})
	if err != nil {
		t.Fatal(err)
	}
	n := mapOdd + 4*rand.IntN(1000)
	for i := range 4 {
		r := &portable.Request{Post: &portable.Epilogue{In: []portable.Operand{{Type: op.F32, N: n + i}}, Exprs: []*ir.Node{e}}, Out: []portable.Array{{Type: op.F32, Shape: op.Shape{n + i}}}}
		p, err := For(r, h200)
		if i == 0 {
			if !errors.Is(err, op.ErrUnsupported) {
				t.Error(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		x := normal(n + i)
		out := [][]byte{optest.Poisoned(int64(4 * (n + i)))}
		if err := (&rig{device: h200}).run(p, [][]byte{optest.Encode(x, op.F32)}, out); err != nil {
			t.Fatal(n, err)
		}
		for j, v := range x.Data {
			if y := op.F32.Float64(out[0], j); y != max(v, 0) {
				t.Fatalf("element %d of %d: %v of %v", j, n+i, y, v)
			}
		}
	}
}

// TestMapRefuses checks that For refuses invalid requests, and those for which the portable
// kernels are as fast.
func TestMapRefuses(t *testing.T) {
	x := ir.NewArg(0, ir.F32)
	out := []portable.Array{{Type: op.BF16, Shape: op.Shape{8}}}
	for name, r := range map[string]*portable.Request{
		"nothing":   {},
		"little":    {Post: &portable.Epilogue{In: []portable.Operand{{Type: op.F32, N: 8}}, Exprs: []*ir.Node{x}}, Out: []portable.Array{{Type: op.F32, Shape: op.Shape{8}}}},
		"parameter": {Post: &portable.Epilogue{Exprs: []*ir.Node{ir.NewParam(0)}}, Out: out},
		"operand":   {Post: &portable.Epilogue{Exprs: []*ir.Node{x}}, Out: out},
		"size":      {Post: &portable.Epilogue{In: []portable.Operand{{Type: op.BF16, N: 7}}, Exprs: []*ir.Node{x}}, Out: out},
		"type":      {Post: &portable.Epilogue{In: []portable.Operand{{Type: op.I32, N: 8}}, Exprs: []*ir.Node{x}}, Out: out},
	} {
		if _, err := For(r, h200); !errors.Is(err, op.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
