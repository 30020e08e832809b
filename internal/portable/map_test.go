package portable

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/op"
)

// elementwiseTrials returns trials of an elementwise operation for its element types.
func elementwiseTrials(rnd *rand.Rand, o *op.Operation, shapes ...[]int) []*trial {
	var cs []*trial
	for _, d := range []op.DType{op.F32, op.I32, op.U32} {
		c := &trial{o: o, attrs: o.Defaults()}
		for i, p := range o.Params() {
			if p.Required {
				c.attrs.F[i] = op.Floats(float32(i) + 0.5).F[0]
			}
		}
		for i := range o.Inputs() {
			t := d
			if o == op.Where && i == 0 {
				t = op.Bool
			}
			x := normal(rnd, shapes[min(i, len(shapes)-1)]...)
			for j := range x.Data {
				x.Data[j] = t.Round(3 * x.Data[j])
			}
			c.values, c.types = append(c.values, x), append(c.types, t)
		}
		if o == op.Cast {
			c.attrs = op.CastTo(op.I32)
		}
		if _, err := o.Types(&c.attrs, c.types); err == nil {
			cs = append(cs, c)
		}
	}
	return cs
}

func TestElementwise(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, o := range op.Catalogue() {
		if o.Class() != op.Elementwise {
			continue
		}
		t.Run(o.Name(), func(t *testing.T) {
			for _, shape := range [][]int{{1}, {8}, {3, 7, 13}, {1028}} {
				for _, c := range elementwiseTrials(rnd, o, shape) {
					if c.types[0] == op.F32 {
						with(rnd, c.values[0], inf, -inf, missing)
					}
					c.everyVariant(t, len(shape) == 1)
				}
			}
		})
	}
}

func TestSpreads(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, shapes := range [][][]int{{{4, 8}, {8}}, {{4, 8}, {4, 1}}, {{4, 8}, {1}}, {{3, 5}, {5}}, {{3, 5}, {3, 1}}, {{}, {3, 5}}, {{6, 5}, {6, 5}}, {{3, 1, 1}, {3, 2, 2}}} {
		for _, o := range []*op.Operation{op.Sub, op.Less, op.Where} {
			for _, c := range elementwiseTrials(rnd, o, shapes...) {
				c.everyVariant(t, true)
			}
		}
	}
}

// TestProgram runs an elementwise program of several results.
func TestProgram(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	x, y := normal(rnd, 6, 4), normal(rnd, 4)
	a, b := ir.NewArg(0, ir.F32), ir.NewArg(1, ir.F32)
	sum, _ := ir.New(ir.Add, a, b)
	less, _ := ir.New(ir.Lt, a, b)
	r := &Request{Post: &Epilogue{In: []Operand{{Type: op.F32, Broadcast: op.Full, N: 24}, {Type: op.F32, Broadcast: op.Tiled, N: 4}}, Exprs: []*ir.Node{sum, less}},
		Out: []Array{{Type: op.F32, Shape: op.Shape{6, 4}}, {Type: op.Bool, Shape: op.Shape{6, 4}}}}
	p, err := For(r)
	if err != nil {
		t.Fatal(err)
	}
	in, out := [][]byte{optest.Encode(x, op.F32), optest.Encode(y, op.F32)}, [][]byte{optest.Poisoned(96), optest.Poisoned(96)}
	if err := (&rig{check: true, subgroup: 32}).run(p, in, out); err != nil {
		t.Fatal(err)
	}
	for i, v := range x.Data {
		w := y.Data[i%4]
		if got := op.F32.Float64(out[0], i); got != float64(float32(v+w)) {
			t.Errorf("sum %d: %v, not %v", i, got, v+w)
		}
		if got := op.Bool.Float64(out[1], i); got != 0 != (v < w) {
			t.Errorf("less %d: %v of %v and %v", i, got, v, w)
		}
	}
}

// TestSums runs programs that add operands of every type and broadcast kind, into results of every
// type, with each variant.
func TestSums(t *testing.T) {
	types := []op.DType{op.F32, op.F16, op.I32, op.U32, op.Bool}
	seen := make(map[[2]int]bool)
	for trial := range 400 {
		rows, cols := 1+rand.IntN(9), 1+rand.IntN(40)
		if trial%2 == 0 {
			cols = (cols + 3) / 4 * 4
		}
		if trial == 1 {
			rows, cols = 3, 1001
		}
		n := rows * cols
		out := types[rand.IntN(len(types))]
		post := &Epilogue{}
		var in [][]byte
		sum := ir.NewConst(3, ir.F32)
		for i := range 1 + rand.IntN(4) {
			d, spread := types[rand.IntN(len(types))], op.BroadcastKind(rand.IntN(4))
			size := map[op.BroadcastKind]int{op.Full: n, op.Scalar: 1, op.Tiled: cols, op.Repeated: rows}[spread]
			values := 8
			if d == op.Bool {
				values = 2
			}
			// The buffer has exactly the necessary elements: an access beyond them is a finding
			x := optest.Poisoned(int64(size * d.Size()))
			for k := range size {
				d.PutFloat64(x, k, float64(rand.IntN(values)))
			}
			seen[[2]int{int(d), int(spread)}] = true
			post.In, in = append(post.In, Operand{Type: d, Broadcast: spread, N: size}), append(in, x)
			sum, _ = ir.New(ir.Add, sum, ir.NewConvert(ir.NewArg(i, irhook.Register(uint8(d))), ir.F32))
		}
		post.Exprs = []*ir.Node{ir.NewConvert(sum, irhook.Register(uint8(out)))}
		ran := 0
		for _, variant := range Variants(nil) {
			r := &Request{Post: post, Out: []Array{{Type: out, Shape: op.Shape{rows, cols}}}, Variant: variant, Target: Target{F16: true}}
			p, err := For(r)
			if errors.Is(err, op.ErrUnsupported) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			ran++
			y := optest.Poisoned(int64(n * out.Size()))
			if err := (&rig{check: true, subgroup: 32}).run(p, in, [][]byte{y}); err != nil {
				t.Fatalf("%+v of %d×%d, variant %s: %v", post.In, rows, cols, variant, err)
			}
			for k := range n {
				want := 3.0
				for i, o := range post.In {
					at := map[op.BroadcastKind]int{op.Full: k, op.Scalar: 0, op.Tiled: k % cols, op.Repeated: k / cols}[o.Broadcast]
					want += o.Type.Float64(in[i], at)
				}
				if out == op.Bool {
					want = 1
				}
				if got := out.Float64(y, k); got != want {
					t.Fatalf("%+v of %d×%d, variant %s: element %d is %v, not %v", post.In, rows, cols, variant, k, got, want)
				}
			}
		}
		if ran == 0 {
			t.Fatalf("no variant for %+v of %d×%d", post.In, rows, cols)
		}
	}
	if len(seen) < 4*len(types) {
		t.Errorf("%d of %d operands seen", len(seen), 4*len(types))
	}
}

// TestMapSchedules checks the default schedule for different numbers of elements.
func TestMapSchedules(t *testing.T) {
	const many = manyElements
	for _, c := range []struct {
		n      int
		o      *op.Operation
		want   string
		serial string // by software
	}{
		{4, op.Neg, "vector", "near-vectors"}, {5, op.Neg, "scalar", "near-scalars"}, {many - 1, op.Neg, "scalar", "near-scalars"},
		{many, op.Neg, "vector", "near-vectors"}, {many + 1, op.Neg, "scalars", "near-scalars"},
		{many - 4, op.Exp, "vector", "vector"}, {many, op.Exp, "vectors", "vectors"}, {many + 3, op.Exp, "few-scalars", "few-scalars"},
	} {
		for i, want := range []string{c.want, c.serial} {
			serial := i > 0
			a := []Array{{Type: op.F32, Shape: op.Shape{c.n}}}
			p, err := For(&Request{Op: c.o, In: a, Out: a, Target: Target{MapMuch: 1, Serial: serial}}) // functions make the program heavy
			if err != nil {
				t.Fatal(err)
			}
			if p.Variant != want {
				t.Errorf("%v of %d, serial %v: %s, want %s", c.o, c.n, serial, p.Variant, want)
			}
		}
	}
}

// TestRagged checks which programs have separate launches for the whole vectors and for the rest.
func TestRagged(t *testing.T) {
	x := ir.NewArg(0, ir.F32)
	exp, _ := ir.New(ir.Exp, x)
	sum, _ := ir.New(ir.Add, x, x)
	for _, c := range []struct {
		expr   *ir.Node
		spread op.BroadcastKind
		n      int
		want   bool
	}{
		{exp, op.Full, minRagged + 3, true},
		{exp, op.Scalar, minRagged + 3, true},
		{exp, op.Full, minRagged, false},
		{exp, op.Full, minRagged - 1, false},
		{exp, op.Tiled, minRagged + 3, false},
		{sum, op.Full, minRagged + 3, false},
	} {
		p := &Epilogue{In: []Operand{{Type: op.F32, Broadcast: c.spread, N: c.n}}, Exprs: []*ir.Node{c.expr}}
		if got := Ragged(p, c.n, Target{}); got != c.want {
			t.Errorf("%s of %d, %v: %v", ir.Format(c.expr, nil, nil), c.n, c.spread, got)
		}
		if got := Ragged(p, c.n/2, Target{MapMuch: 1}); c.want && !got {
			t.Errorf("%s of %d is not much", ir.Format(c.expr, nil, nil), c.n/2)
		}
	}
}

// TestMapGuarded checks which programs have a branch for vectors of moderate elements.
func TestMapGuarded(t *testing.T) {
	x, y := ir.NewArg(0, ir.F32), ir.NewArg(1, ir.F32)
	of := func(c ir.Code, args ...*ir.Node) *ir.Node {
		n, err := ir.New(c, args...)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	step := func(v *ir.Node) *ir.Node { return of(ir.Max, of(ir.Sub, v, y), of(ir.Neg, x)) }
	for _, c := range []struct {
		expr *ir.Node
		want bool
	}{
		{step(step(step(x))), false},      // the branch saves nearly as many additions as it costs
		{step(step(step(step(x)))), true}, // it saves four additions and costs two
		{step(step(of(ir.Tanh, step(step(x))))), true},
		{step(step(step(step(of(ir.Log, x))))), false}, // the logarithm is NaN if x is negative
	} {
		e := &epilogue{in: []Operand{{Type: op.F32, Broadcast: op.Full, N: 8}, {Type: op.F32, Broadcast: op.Full, N: 8}}, exprs: []*ir.Node{c.expr}}
		if got := guards(e); got != c.want {
			t.Errorf("%s: %v", ir.Format(c.expr, nil, nil), got)
		}
	}
	// Without a floating-point operand there is nothing to test.
	pick := func(i int, v float64) *ir.Node {
		return of(ir.Select, ir.NewArg(i, ir.Bool), ir.NewConst(v, ir.F32), ir.NewConst(-1, ir.F32))
	}
	flags := of(ir.Max, of(ir.Max, pick(0, 1), pick(1, 2)), of(ir.Max, pick(0, 3), pick(1, 4)))
	if e := (&epilogue{in: []Operand{{Type: op.Bool, Broadcast: op.Full, N: 8}, {Type: op.Bool, Broadcast: op.Full, N: 8}}, exprs: []*ir.Node{flags}}); guards(e) {
		t.Errorf("%s has a branch", ir.Format(flags, nil, nil))
	}
	// Vectors of moderate elements, other vectors, and a remainder.
	expr := step(step(step(step(of(ir.Exp, x)))))
	n := 4 * (2*128*3 + 5)
	in := [2][]float32{make([]float32, n), make([]float32, n)}
	for i := range n {
		in[0][i], in[1][i] = rand.Float32(), 4*rand.Float32()
		if rand.IntN(50) == 0 {
			in[rand.IntN(2)][i] = []float32{0x1p31, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}[rand.IntN(4)]
		}
	}
	for i, d := range []op.DType{op.F32, op.F16, op.F32} {
		p, err := For(&Request{Post: &Epilogue{In: []Operand{{Type: op.F32, Broadcast: op.Full, N: n}, {Type: d, Broadcast: op.Full, N: n}}, Exprs: []*ir.Node{expr}}, Out: []Array{{Type: op.F32, Shape: op.Shape{n}}},
			Variant: []string{"vectors", "vectors", "few-scalars"}[i], Target: Target{F16: true, MapGuarded: true}})
		if err != nil {
			t.Fatal(err)
		}
		program, err := p.Stages[0].Kernel.Program()
		if err != nil {
			t.Fatal(err)
		}
		loose := slices.ContainsFunc(program.Code, func(in ir.Instr) bool { return in.Code == ir.Max && in.Flag == ir.Loose })
		if !loose {
			t.Error("no branch for moderate vectors")
		}
		bytes, second, got := optest.Poisoned(int64(4*n)), optest.Poisoned(int64(n*d.Size())), optest.Poisoned(int64(4*n))
		for i := range n {
			op.F32.PutFloat64(bytes, i, float64(in[0][i]))
			d.PutFloat64(second, i, float64(in[1][i]))
		}
		if err := (&rig{check: true, subgroup: 32}).run(p, [][]byte{bytes, second}, [][]byte{got}); err != nil {
			t.Fatal(err)
		}
		e := ir.NewEvaluator(expr)
		for i := range n {
			want, is := e.Eval([]float64{float64(in[0][i]), d.Float64(second, i)}, nil), op.F32.Float64(got, i)
			if want != is && (want == want || is == is) && !(math.Abs(want-is) <= 1e-5*(1+math.Abs(want))) {
				t.Fatalf("%v: element %d, of %v and %v, is %v, not %v", d, i, in[0][i], in[1][i], is, want)
			}
		}
	}
}
