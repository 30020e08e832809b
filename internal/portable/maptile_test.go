package portable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// permuted is a view of an array: its axes in another order, and some of them flipped.
type permuted struct {
	shape op.Shape
	order []int
	flip  []int // axes of the result
}

// layout returns the layout of the view, and its shape.
func (p *permuted) layout(t testing.TB) (*op.Layout, op.Shape) {
	t.Helper()
	n := size(p.shape)
	attrs, err := op.PermuteTo(p.order...)
	if err != nil {
		t.Fatal(err)
	}
	out := make(op.Shape, len(p.shape))
	for i, k := range p.order {
		out[i] = p.shape[k]
	}
	l, ok := op.Permute.Layout(&attrs, op.RowMajor(n), p.shape, out, op.F32)
	if ok && len(p.flip) > 0 {
		if attrs, err = op.FlipOf(p.flip...); err != nil {
			t.Fatal(err)
		}
		l, ok = op.Flip.Layout(&attrs, l, out, out, op.F32)
	}
	if !ok {
		t.Fatalf("%+v has no layout", p)
	}
	return &l, out
}

// tiledViews are views that kernels read by tiles: few and many axes, extents that tiles do not
// divide, axes that belong to both runs, and negative strides.
var tiledViews = []permuted{
	{op.Shape{64, 96}, []int{1, 0}, nil},
	{op.Shape{70, 45}, []int{1, 0}, []int{1}},
	{op.Shape{9, 7}, []int{1, 0}, []int{0}},
	{op.Shape{3, 500, 3}, []int{0, 2, 1}, nil},
	{op.Shape{2, 3, 700}, []int{0, 2, 1}, []int{0, 2}},
	{op.Shape{2, 40, 256}, []int{2, 0, 1}, nil},
	{op.Shape{33, 5, 67}, []int{2, 1, 0}, nil},
	{op.Shape{40, 3, 50}, []int{2, 1, 0}, []int{0, 1, 2}},
	{op.Shape{6, 7, 8, 50}, []int{2, 0, 3, 1}, []int{2}},
	{op.Shape{8, 9, 7, 10}, []int{3, 2, 1, 0}, nil},
	{op.Shape{5, 4, 6, 3, 7}, []int{4, 3, 2, 1, 0}, []int{1, 4}},
	{op.Shape{4, 4, 4, 4, 4}, []int{4, 3, 2, 1, 0}, nil},
	{op.Shape{40, 50, 2}, []int{1, 0, 2}, nil},
}

// TestTiles runs programs that read one operand in another order, with every variant: copies of each
// type, and x + y with another operand of each broadcast kind.
func TestTiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(testutil.Seed(t), 2))
	types := []op.DType{op.F32, op.F16, op.I32, op.U32, op.Bool}
	for i, v := range tiledViews {
		l, out := v.layout(t)
		n := size(out)
		for j, typ := range types {
			if !sampled() && j != i%len(types) {
				continue
			}
			sums := typ != op.Bool
			with := Operand{Type: types[rnd.IntN(len(types)-1)], Broadcast: op.BroadcastKind(rnd.IntN(4))}
			with.N = map[op.BroadcastKind]int{op.Full: n, op.Scalar: 1, op.Tiled: out[len(out)-1], op.Repeated: out[0]}[with.Broadcast]
			post := &Epilogue{In: []Operand{{Type: typ, Broadcast: op.Strided, N: n, Layout: l}}, Exprs: []*ir.Node{ir.NewArg(0, irhook.Register(uint8(typ)))}}
			if sums && rnd.IntN(3) > 0 {
				y := ir.NewConvert(ir.NewArg(1, irhook.Register(uint8(with.Type))), post.Exprs[0].Type)
				for range 1 + 30*rnd.IntN(2) { // long programs have no unrolled loop
					post.Exprs[0], _ = ir.New(ir.Add, post.Exprs[0], y)
				}
				post.In = append(post.In, with)
			}
			ran := false
			for _, variant := range Variants(nil) {
				r := &Request{Post: post, Out: []Array{{Type: typ, Shape: out}}, Variant: variant, Target: Target{F16: true}}
				tiled := variant == "tile"
				// The other kernels compute positions with negative strides modulo 2^32, which the checks of the interpreter report.
				err := runProgram(r, rnd, tiled || v.flip == nil)
				switch {
				case errors.Is(err, op.ErrUnsupported):
					continue
				case err != nil:
					t.Fatalf("%+v of %v and %+v, variant %s: %v", v, typ, post.In[1:], variant, err)
				}
				ran = ran || tiled
			}
			if !ran {
				t.Errorf("%+v of %v has no variant with tiles", v, typ)
			}
		}
	}
}

// runProgram runs an elementwise program over random small numbers in the interpreter, and compares the
// result with the values of its expression.
func runProgram(r *Request, rnd *rand.Rand, check bool) error {
	p, err := For(r)
	if err != nil {
		return err
	}
	n := size(r.Out[0].Shape)
	var in [][]byte
	for _, o := range r.Post.In {
		x := optest.Poisoned(int64(o.N * o.Type.Size()))
		for k := range o.N {
			o.Type.PutFloat64(x, k, float64(rnd.IntN(map[bool]int{true: 2, false: 32}[o.Type == op.Bool])))
		}
		in = append(in, x)
	}
	out := optest.Poisoned(int64(n * r.Out[0].Type.Size()))
	// Folded grids have workgroups without a tile.
	if err := (&rig{check: check, subgroup: 32, extra: uint32(rnd.IntN(2))}).run(p, in, [][]byte{out}); err != nil {
		return err
	}
	e, args := ir.NewEvaluator(r.Post.Exprs[0]), make([]float64, len(in))
	for i := range n {
		for k, o := range r.Post.In {
			at := i
			switch o.Broadcast {
			case op.Scalar:
				at = 0
			case op.Tiled:
				at = i % o.N
			case op.Repeated:
				at = i / (n / o.N)
			case op.Strided:
				at, _ = o.Layout.At(i)
			}
			args[k] = o.Type.Float64(in[k], at)
		}
		if got, want := r.Out[0].Type.Float64(out, i), e.Eval(args, nil); got != want {
			return fmt.Errorf("element %d is %v, not %v", i, got, want)
		}
	}
	return nil
}

// TestTileChoice checks that tiles fill their lanes and fit in workgroup memory, for random layouts.
func TestTileChoice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(testutil.Seed(t), 3))
	for range 300 {
		p := permuted{order: rnd.Perm(2 + rnd.IntN(4))}
		for n := 1; len(p.shape) < len(p.order); n *= p.shape[len(p.shape)-1] {
			p.shape = append(p.shape, 1+rnd.IntN(max(2, min(300, 1<<24/n))))
		}
		l, _ := p.layout(t)
		in := Operand{Type: op.F32, Broadcast: op.Strided, N: size(p.shape), Layout: l}
		if tiledOperand([]Operand{in}) < 0 {
			continue
		}
		for _, s := range []tileRuns{{64, 32}, {32, 32}, {32, 64}} {
			for _, bytes := range []int{2, 4} {
				m := chooseTile(l, bytes, s)
				w := tileWalk{t: &m, n: m.elements(), cols: memoryOrder(l.Factors()), rows: resultOrder(l.Factors())}
				_, words := w.pad(int(l.Rank))
				if m.Lanes < 1 || m.Lanes > tileLanes || words > tileWords || m.elements() < min(in.N, 256) {
					t.Errorf("%+v: %v: the tile %+v has %d words", p, l, m, words)
				}
			}
		}
	}
}

// TestTileUses checks which programs and transpositions use tiles.
func TestTileUses(t *testing.T) {
	chosen := func(r *Request) string {
		t.Helper()
		p, err := For(r)
		if err != nil {
			t.Fatal(err)
		}
		return p.Variant
	}
	pad, ok := op.Pad.Layout(&[]op.Attrs{op.PadOf(0, 1, 1, 0)}[0], layoutOf(t, permuted{op.Shape{64, 64}, []int{1, 0}, nil}), op.Shape{64, 64}, op.Shape{66, 64}, op.F32)
	if !ok {
		t.Fatal("no layout")
	}
	for _, c := range []struct {
		in   []op.Layout
		n    int // elements of the operands
		want string
	}{
		{[]op.Layout{layoutOf(t, permuted{op.Shape{31, 33}, []int{1, 0}, nil})}, 31 * 33, "scalar"},
		{[]op.Layout{layoutOf(t, permuted{op.Shape{32, 32}, []int{1, 0}, nil})}, 32 * 32, "tile"},
		{[]op.Layout{layoutOf(t, permuted{op.Shape{2048, 2, 1024}, []int{2, 0, 1}, nil})}, 1 << 22, "tile"},
		{[]op.Layout{layoutOf(t, permuted{op.Shape{32, 32, 4}, []int{1, 0, 2}, nil})}, 32 * 32 * 4, "tile"},
		{[]op.Layout{layoutOf(t, permuted{op.Shape{32, 32, 8}, []int{1, 0, 2}, nil})}, 32 * 32 * 8, "vector"}, // runs of whole sectors
		{[]op.Layout{layoutOf(t, permuted{op.Shape{64, 64}, []int{0, 1}, []int{1}})}, 64 * 64, "vector"},      // backwards
		{[]op.Layout{layoutOf(t, permuted{op.Shape{64, 64}, []int{1, 0}, nil}), layoutOf(t, permuted{op.Shape{64, 64}, []int{1, 0}, []int{0}})}, 64 * 64, "vector"},
		{[]op.Layout{pad}, 64 * 64, "vector"},
	} {
		post := &Epilogue{Exprs: []*ir.Node{ir.NewArg(len(c.in)-1, ir.F32)}}
		for i := range c.in {
			post.In = append(post.In, Operand{Type: op.F32, Broadcast: op.Strided, N: c.n, Layout: &c.in[i]})
		}
		if got := chosen(&Request{Post: post, Out: []Array{{Type: op.F32, Shape: op.Shape{c.in[0].Size()}}}}); got != c.want {
			t.Errorf("%v: %s, want %s", &c.in[0], got, c.want)
		}
	}
	for _, c := range []struct {
		s    op.Shape
		want string
	}{{op.Shape{300, 300}, "squares"}, {op.Shape{30000, 3}, "tile"}, {op.Shape{64, 3, 30000}, "tile"}, {op.Shape{300, 3}, "squares"}, {op.Shape{100000, 1}, "squares"}} {
		n := len(c.s)
		out := slices.Clone(c.s)
		out[n-2], out[n-1] = out[n-1], out[n-2]
		if got := chosen(&Request{Op: op.Transpose, In: []Array{{Type: op.F32, Shape: c.s}}, Out: []Array{{Type: op.F32, Shape: out}}}); got != c.want {
			t.Errorf("transpose of %v: %s, want %s", c.s, got, c.want)
		}
	}
}

// layoutOf returns the layout of a view.
func layoutOf(t testing.TB, p permuted) op.Layout {
	l, _ := p.layout(t)
	return *l
}
