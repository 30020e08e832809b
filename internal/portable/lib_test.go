package portable

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// TestHalves runs operations on half floats.
func TestHalves(t *testing.T) {
	rnd := rand.New(rand.NewPCG(29, 30))
	for _, c := range epilogueTrials(rnd) {
		for i := range c.types {
			if c.types[i] == op.F32 {
				c.types[i] = op.F16
			}
		}
		names := Variants(c.o)
		if names == nil {
			names = []string{""}
		}
		ran := false
		for _, name := range names {
			r, err := c.request(Target{F16: true})
			if err != nil {
				t.Fatal(err)
			}
			r.Variant = name
			if err := c.run(&rig{check: true, subgroup: 32}, r); err == nil {
				ran = true
			} else if !errors.Is(err, op.ErrUnsupported) {
				t.Errorf("%v, variant %q: %v", c.o, name, err)
			}
			r.Target.F16 = false
			if _, err := For(r); !errors.Is(err, op.ErrUnsupported) {
				t.Errorf("%v on a target without half floats: %v", c.o, err)
			}
		}
		if !ran {
			t.Errorf("%v: no variant takes half floats", c.o)
		}
	}
}

// TestFoldedGrids runs more workgroups than one dimension of a grid can have.
func TestFoldedGrids(t *testing.T) {
	testutil.Need(t, "long") // takes seconds
	const n = kernel.MaxGroups + 2
	rnd := rand.New(rand.NewPCG(31, 32))
	ids := op.NewArray(op.Shape{n})
	for i := range ids.Data {
		ids.Data[i] = float64(rnd.IntN(3))
	}
	for _, c := range []struct {
		trial
		variant string
	}{
		{trial{o: op.Sum, attrs: op.Attrs{}.Rows(), types: []op.DType{op.F32}, values: []*op.Array{normal(rnd, n, 2)}}, "group"},
		{trial{o: op.Softmax, types: []op.DType{op.F32}, values: []*op.Array{normal(rnd, n, 2)}}, "team128"},
		{trial{o: op.Transpose, types: []op.DType{op.F32}, values: []*op.Array{normal(rnd, n, 1, 2)}}, ""},
		{trial{o: op.Neg, types: []op.DType{op.F32}, values: []*op.Array{normal(rnd, n*Target{}.withDefaults().MapLanes-3)}}, "scalar"},
		{trial{o: op.Gather, types: []op.DType{op.F32, op.I32}, values: []*op.Array{normal(rnd, 3, gatherLanes), ids}}, "scalar"},
	} {
		r, err := c.request(Target{})
		if err != nil {
			t.Fatal(err)
		}
		r.Variant = c.variant
		p, err := For(r)
		if err != nil {
			t.Fatal(err)
		}
		if g := p.Stages[0].Grid; g[1] != 2 {
			t.Errorf("%v: grid %v is not folded", c.o, g)
		}
		if err := c.run(&rig{subgroup: 32}, r); err != nil {
			t.Errorf("%v: %v", c.o, err)
		}
	}
}

// TestRequests checks that invalid requests return an error and not a wrong plan.
func TestRequests(t *testing.T) {
	f := func(s ...int) Array { return Array{Type: op.F32, Shape: s} }
	result := ir.NewArg(0, ir.F32)
	for name, c := range map[string]struct {
		r    *Request
		want error
	}{
		"nothing":              {&Request{}, op.ErrUnsupported},
		"no result":            {&Request{Op: op.Neg, In: []Array{f(3)}}, op.ErrShape},
		"too few operands":     {&Request{Op: op.Add, In: []Array{f(3)}, Out: []Array{f(3)}}, op.ErrShape},
		"other shape":          {&Request{Op: op.Neg, In: []Array{f(3)}, Out: []Array{f(4)}}, op.ErrShape},
		"other type":           {&Request{Op: op.Neg, In: []Array{f(3)}, Out: []Array{{Type: op.I32, Shape: op.Shape{3}}}}, op.ErrUnsupported},
		"narrow type":          {&Request{Op: op.Neg, In: []Array{{Type: op.BF16, Shape: op.Shape{3}}}, Out: []Array{{Type: op.BF16, Shape: op.Shape{3}}}}, op.ErrUnsupported},
		"too large":            {&Request{Op: op.Neg, In: []Array{f(1<<16, 1<<15)}, Out: []Array{f(1<<16, 1<<15)}}, op.ErrUnsupported},
		"negative":             {&Request{Op: op.Neg, In: []Array{f(-1)}, Out: []Array{f(-1)}}, op.ErrShape},
		"no such variant":      {&Request{Op: op.Softmax, In: []Array{f(3)}, Out: []Array{f(3)}, Variant: "x"}, op.ErrUnsupported},
		"variant too small":    {&Request{Op: op.Softmax, In: []Array{f(300)}, Out: []Array{f(300)}, Variant: "team4"}, op.ErrUnsupported},
		"small workgroups":     {&Request{Op: op.Softmax, In: []Array{f(300)}, Out: []Array{f(300)}, Target: Target{Lanes: 2}}, op.ErrUnsupported},
		"nil expression":       {&Request{Op: op.Neg, In: []Array{f(3)}, Out: []Array{f(3)}, Post: &Epilogue{Exprs: []*ir.Node{nil}}}, op.ErrUnsupported},
		"parameter":            {&Request{Op: op.Neg, In: []Array{f(3)}, Out: []Array{f(3)}, Post: &Epilogue{Exprs: []*ir.Node{ir.NewParam(0)}}}, op.ErrUnsupported},
		"operand out of range": {&Request{Op: op.Neg, In: []Array{f(3)}, Out: []Array{f(3)}, Post: &Epilogue{Exprs: []*ir.Node{ir.NewArg(1, ir.F32)}}}, op.ErrUnsupported},
		"no expressions":       {&Request{Op: op.Neg, In: []Array{f(3)}, Out: []Array{f(3)}, Post: &Epilogue{}}, op.ErrShape},
		"wrong spread":         {&Request{Op: op.Neg, In: []Array{f(3)}, Out: []Array{f(3)}, Post: &Epilogue{In: []Operand{{Type: op.F32, Broadcast: op.Tiled, N: 2}}, Exprs: []*ir.Node{result}}}, op.ErrUnsupported},
		"wrong spread of rows": {&Request{Op: op.Softmax, In: []Array{f(3)}, Out: []Array{f(3)}, Post: &Epilogue{In: []Operand{{Type: op.F32, Broadcast: op.Repeated, N: 0}}, Exprs: []*ir.Node{result}}}, op.ErrUnsupported},
		"two results":          {&Request{Op: op.TopK, Attrs: op.TopKOpts{K: 1}.Attrs(), In: []Array{f(3)}, Out: []Array{f(1)}, Post: &Epilogue{Exprs: []*ir.Node{result}}}, op.ErrUnsupported},
		"no operand of a name": {&Request{Post: &Epilogue{Exprs: []*ir.Node{result}}, Out: []Array{f(3)}}, op.ErrUnsupported},
	} {
		if _, err := For(c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", name, err, c.want)
		}
	}
	for _, c := range []*Request{
		{Op: op.Neg, In: []Array{f(0)}, Out: []Array{f(0)}},
		{Op: op.Softmax, In: []Array{f(0, 5)}, Out: []Array{f(0, 5)}},
		{Op: op.Softmax, In: []Array{f(5, 0)}, Out: []Array{f(5, 0)}},
		{Op: op.Max, Attrs: op.Attrs{}.Rows(), In: []Array{f(0, 5)}, Out: []Array{f(0)}},
		{Op: op.Transpose, In: []Array{f(0, 5)}, Out: []Array{f(5, 0)}},
	} {
		if p, err := For(c); err != nil || len(p.Stages) != 0 {
			t.Errorf("%v of nothing: %v, %v", c.Op, p, err)
		}
	}
}

func TestTuning(t *testing.T) {
	r := &Request{Op: op.Softmax, In: []Array{{Type: op.F32, Shape: op.Shape{3, 100}}}, Out: []Array{{Type: op.F32, Shape: op.Shape{3, 100}}}}
	p, err := For(r)
	if err != nil || p.Variant != "team16" {
		t.Fatalf("%v, %v", p, err)
	}
	r.Tuning = Tuning{Key(r): "loop"}
	if p, err = For(r); err != nil || p.Variant != "loop" {
		t.Errorf("tuned: %q, %v", p.Variant, err)
	}
	r.Tuning = Tuning{Key(r): "team1"}
	if p, err = For(r); err != nil || p.Variant != "team16" {
		t.Errorf("tuned to a variant that does not fit: %q, %v", p.Variant, err)
	}
	if r.Variant = "team256"; !slices.Contains(Variants(op.Softmax), r.Variant) {
		t.Errorf("%s is not among the variants %v", r.Variant, Variants(op.Softmax))
	}
	if p, err = For(r); err != nil || p.Variant != "team256" {
		t.Errorf("by name: %q, %v", p.Variant, err)
	}
	near, far := *r, *r
	near.In = []Array{{Type: op.F32, Shape: op.Shape{4, 127}}}
	far.In = []Array{{Type: op.F32, Shape: op.Shape{5, 100}}}
	if Key(r) != Key(&near) || Key(r) == Key(&far) {
		t.Errorf("keys %s, %s, %s", Key(r), Key(&near), Key(&far))
	}
}
