package graph

import (
	"testing"

	"github.com/rayo-go/rayo/op"
)

// builder makes graphs tersely.
type builder struct {
	*Graph
	t *testing.T
}

func build(t *testing.T) builder { return builder{new(Graph), t} }

func (b builder) input(ref int, shape ...int) ID {
	return b.Add(Node{Kind: Input, Type: op.F32, Shape: shape, Ref: int32(ref)})
}

func (b builder) resident(ref int, shape ...int) ID {
	return b.Add(Node{Kind: Resident, Type: op.F32, Shape: shape, Ref: int32(ref)})
}

func (b builder) store(ref int, v ID) ID {
	n := Node{Kind: Store, Type: op.F32, Shape: b.Nodes[v].Shape, Ref: int32(ref), NIn: 1}
	n.In[0] = v
	return b.Add(n)
}

func (b builder) constant(v float64) ID {
	data := make([]byte, 4)
	op.F32.PutFloat64(data, 0, v)
	b.Data = append(b.Data, data)
	return b.Add(Node{Kind: Constant, Type: op.F32, Shape: op.Shape{}, Ref: int32(len(b.Data) - 1)})
}

func (b builder) op(o *op.Operation, a op.Attrs, in ...ID) ID {
	b.t.Helper()
	n := Node{Kind: Compute, Op: o, Attrs: a, NIn: uint8(len(in))}
	copy(n.In[:], in)
	var shapes []op.Shape
	var types []op.DType
	for _, i := range in {
		shapes = append(shapes, b.Nodes[i].Shape)
		types = append(types, b.Nodes[i].Type)
	}
	s, err := o.Shapes(&a, shapes)
	if err != nil {
		b.t.Fatal(err)
	}
	d, err := o.Types(&a, types)
	if err != nil {
		b.t.Fatal(err)
	}
	n.Shape, n.Type = s[0], d[0]
	return b.Add(n)
}

func apply(t *testing.T, g *Graph, p ...Pass) *Graph {
	t.Helper()
	g, err := Apply(g, p...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func count(g *Graph, o *op.Operation) int {
	k := 0
	for i := range g.Nodes {
		if g.Nodes[i].Kind == Compute && g.Nodes[i].Op == o {
			k++
		}
	}
	return k
}

func TestCSEKeepsTheOrderOfOperands(t *testing.T) {
	b := build(t)
	x, y := b.input(0, 4), b.input(1, 4)
	d1, d2 := b.op(op.Sub, op.Attrs{}, x, y), b.op(op.Sub, op.Attrs{}, y, x)
	s1, s2 := b.op(op.Add, op.Attrs{}, x, y), b.op(op.Add, op.Attrs{}, y, x)
	m1, m2 := b.op(op.Scale, op.Floats(2), x), b.op(op.Scale, op.Floats(3), x)
	b.Outputs = []ID{d1, d2, s1, s2, m1, m2}
	g := apply(t, b.Graph, CSE, DCE)
	if n := count(g, op.Sub); n != 2 {
		t.Errorf("%d subtractions of x-y and y-x, want 2", n)
	}
	if n := count(g, op.Add); n != 1 {
		t.Errorf("%d additions of x+y and y+x, want 1", n)
	}
	if n := count(g, op.Scale); n != 2 {
		t.Errorf("%d scalings by 2 and 3, want 2", n)
	}
}

func TestDCEStartsFromOutputsAndStores(t *testing.T) {
	b := build(t)
	x := b.input(0, 4)
	b.op(op.Exp, op.Attrs{}, x)
	b.store(1, b.op(op.Neg, op.Attrs{}, x))
	b.Outputs = []ID{b.op(op.Abs, op.Attrs{}, x)}
	g := apply(t, b.Graph, DCE)
	if count(g, op.Exp) != 0 || count(g, op.Neg) != 1 || count(g, op.Abs) != 1 {
		t.Errorf("left: exp %d neg %d abs %d", count(g, op.Exp), count(g, op.Neg), count(g, op.Abs))
	}
}

func TestFoldComputesConstants(t *testing.T) {
	b := build(t)
	c := b.op(op.Exp, op.Attrs{}, b.op(op.Sub, op.Attrs{}, b.constant(3), b.constant(3)))
	b.Outputs = []ID{b.op(op.Add, op.Attrs{}, b.input(0, 2), c)}
	g := apply(t, b.Graph, Passes()...)
	if len(g.Nodes) != 3 {
		t.Fatalf("%d nodes, want input, constant, add", len(g.Nodes))
	}
	for _, n := range g.Nodes {
		if n.Kind == Constant {
			if v := op.F32.Float64(g.Data[n.Ref], 0); v != 1 {
				t.Errorf("exp(3-3) folded to %v", v)
			}
		}
	}
}

func TestSimplifyKeepsWhatChangesAValue(t *testing.T) {
	b := build(t)
	x := b.input(0, 2, 3)
	same := b.op(op.Transpose, op.Attrs{}, b.op(op.Transpose, op.Attrs{}, b.op(op.Scale, op.Floats(1), x)))
	zero := b.op(op.AddScalar, op.Floats(0), x) // -0 + 0 is +0
	b.Outputs = []ID{same, zero}
	g := apply(t, b.Graph, Simplify, DCE)
	if count(g, op.Transpose)+count(g, op.Scale) != 0 || count(g, op.AddScalar) != 1 {
		t.Errorf("%d nodes left", len(g.Nodes))
	}
}

func all(*op.Operation) bool  { return true }
func none(*op.Operation) bool { return false }

func TestChainsAndTreesBecomeOneKernel(t *testing.T) {
	b := build(t)
	x, y, bias := b.input(0, 4, 8), b.input(1, 4, 8), b.input(2, 8)
	e := b.op(op.Exp, op.Attrs{}, x)
	v := b.op(op.Add, op.Attrs{}, b.op(op.Mul, op.Attrs{}, e, y), b.op(op.Add, op.Attrs{}, e, bias))
	b.Outputs = []ID{v}
	if r := Fuse(b.Graph, all, all, 0); len(r) != 1 || len(r[0].Post) != 4 {
		t.Errorf("groups: %+v", r)
	}
	// A value that is also an output is used within the kernel and stored too.
	b.Outputs = []ID{v, e}
	if r := Fuse(b.Graph, all, all, 0); len(r) != 1 || len(r[0].Outs) != 2 {
		t.Errorf("groups: %+v", r)
	}
}

func TestCoreTakesPrologueAndEpilogue(t *testing.T) {
	b := build(t)
	x := b.input(0, 4, 8)
	s := b.op(op.Sum, op.Attrs{}.Rows(), b.op(op.Square, op.Attrs{}, x))
	b.Outputs = []ID{b.op(op.Sqrt, op.Attrs{}, s)}
	r := Fuse(b.Graph, all, all, 0)
	if len(r) != 1 || r[0].Core != s || len(r[0].Pre[0]) != 1 || len(r[0].Post) != 1 {
		t.Errorf("groups: %+v", r)
	}
	if r := Fuse(b.Graph, none, none, 0); len(r) != 3 {
		t.Errorf("%d groups on a device that fuses nothing, want 3", len(r))
	}
}

func TestNormalisationDoesNotFuseIntoACycle(t *testing.T) {
	// e is an operand of nodes before and after the sum, so it must remain a separate kernel.
	b := build(t)
	e := b.op(op.Exp, op.Attrs{}, b.input(0, 4, 8))
	s := b.op(op.Sum, op.Attrs{}, e)
	b.Outputs = []ID{b.op(op.Div, op.Attrs{}, e, s)}
	r := Fuse(b.Graph, all, all, 0)
	if len(r) != 3 || r[0].Root != e || r[1].Root != s {
		t.Errorf("groups: %+v", r)
	}
}

func TestReadersDoNotMoveAcrossStores(t *testing.T) {
	b := build(t)
	u := b.resident(0, 4)
	early := b.op(op.Neg, op.Attrs{}, u) // reads the contents before the store
	b.store(0, b.input(1, 4))
	b.Outputs = []ID{b.op(op.Abs, op.Attrs{}, early)}
	g := apply(t, b.Graph, Passes()...)
	r := Fuse(g, all, all, 0)
	if len(r) != 3 || g.Nodes[r[0].Root].Op != op.Neg || g.Nodes[r[1].Root].Kind != Store {
		t.Errorf("groups: %+v", r)
	}
	// A value that is used only after the store must be copied before it.
	b = build(t)
	u = b.resident(0, 4)
	b.store(0, b.input(1, 4))
	b.Outputs = []ID{b.op(op.Abs, op.Attrs{}, u)}
	g = apply(t, b.Graph, Passes()...)
	r = Fuse(g, all, all, 0)
	if len(r) != 3 || g.Nodes[r[0].Root].Op != op.Cast || g.Nodes[r[1].Root].Kind != Store {
		t.Errorf("groups: %+v", r)
	}
}

func TestKernelsStayWithinTheOperandLimit(t *testing.T) {
	b := build(t)
	v := b.input(0, 4)
	for i := 1; i < 40; i++ {
		v = b.op(op.Add, op.Attrs{}, v, b.input(i, 4))
	}
	b.Outputs = []ID{v}
	for _, r := range Fuse(b.Graph, all, all, 0) {
		in := map[ID]bool{}
		for _, id := range r.Post {
			for _, a := range b.Nodes[id].Inputs() {
				in[a] = true
			}
		}
		for _, id := range r.Post {
			delete(in, id)
		}
		if len(in) > maxOperands {
			t.Errorf("%d operands in one kernel", len(in))
		}
	}
}

func TestEqualAndHash(t *testing.T) {
	make := func(s float32, n int) *Graph {
		b := build(t)
		b.Outputs = []ID{b.op(op.Scale, op.Floats(s), b.input(0, n))}
		return b.Graph
	}
	a := make(2, 4)
	for _, c := range []struct {
		g    *Graph
		same bool
	}{{make(2, 4), true}, {make(3, 4), false}, {make(2, 5), false}, {a.Clone(), true}} {
		if got := a.Equal(c.g); got != c.same {
			t.Errorf("Equal = %v", got)
		}
		if c.same && a.Hash() != c.g.Hash() {
			t.Error("equal graphs with different hashes")
		}
	}
}

func TestCSEDistinguishesOptionalOperands(t *testing.T) {
	for _, order := range [][2]bool{{true, false}, {false, true}} {
		b := build(t)
		bias, x, w := b.input(0, 2), b.input(1, 1, 3), b.input(2, 3, 2)
		for _, with := range order {
			in := []ID{x, w}
			if with {
				in = append(in, bias)
			}
			b.Outputs = append(b.Outputs, b.op(op.MatMul, op.MatMulOpts{}.Attrs(), in...))
		}
		g := apply(t, b.Graph, CSE)
		if n := count(g, op.MatMul); n != 2 {
			t.Errorf("%d products of one with a bias and one without, want 2", n)
		}
	}
}

// TestColumns moves elementwise operations behind the views through which a sum reads columns, and leaves them where
// another node reads them, where memory changes, and where the device fuses nothing.
func TestColumns(t *testing.T) {
	swap, _ := op.PermuteTo(1, 0)
	along := op.Sum.Defaults()
	along.I[0] = op.AlongRows
	always := func(*op.Operation) bool { return true }
	columns := func(b builder, v ID) ID { return b.op(op.Sum, along, b.op(op.Permute, swap, v)) }
	parts := func(g *Graph) (n int) {
		opt := apply(t, g, Columns(always), Views(func(*op.Operation, int, op.Shape, *op.Layout) bool { return true }))
		return len(Fuse(opt, always, always, 0))
	}
	made := func(b builder) ID {
		x := b.op(op.Mul, op.Attrs{}, b.input(0, 30, 20), b.constant(2))
		return b.op(op.Add, op.Attrs{}, x, b.input(1, 20))
	}
	b := build(t)
	b.Outputs = []ID{columns(b, made(b))}
	if n := parts(b.Graph); n != 1 {
		t.Errorf("the sum of columns of a program takes %d kernels, want 1", n)
	}
	b = build(t)
	v := made(b)
	b.Outputs = []ID{columns(b, v), v}
	if n := parts(b.Graph); n != 2 {
		t.Errorf("a program and the sum of its columns take %d kernels, want 2", n)
	}
	b = build(t)
	v = b.op(op.Neg, op.Attrs{}, b.resident(0, 30, 20))
	b.store(0, b.input(0, 30, 20))
	b.Outputs = []ID{columns(b, v)}
	if n := parts(b.Graph); n != 3 {
		t.Errorf("the sum of columns of memory that changes takes %d kernels, want 3 with the store", n)
	}
	b = build(t)
	b.Outputs = []ID{columns(b, made(b))}
	if g := apply(t, b.Graph, Columns(func(*op.Operation) bool { return false })); g.Nodes[g.Nodes[g.Outputs[0]].In[0]].Op != op.Permute {
		t.Error("a device that fuses no program gets one")
	}
}

// TestProducts checks that sums of products become dot products, unless the product has other uses, broadcasts its
// operands, or has integer elements.
func TestProducts(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(b builder) []ID
		want int
	}{
		{"two arrays", func(b builder) []ID {
			return []ID{b.op(op.Sum, op.Sum.Defaults().Rows(), b.op(op.Mul, op.Attrs{}, b.input(0, 3, 4), b.input(1, 3, 4)))}
		}, 1},
		{"squares", func(b builder) []ID {
			x := b.input(0, 12)
			return []ID{b.op(op.Sum, op.Sum.Defaults(), b.op(op.Mul, op.Attrs{}, x, x))}
		}, 1},
		{"the product too", func(b builder) []ID {
			y := b.op(op.Mul, op.Attrs{}, b.input(0, 12), b.input(1, 12))
			return []ID{b.op(op.Sum, op.Sum.Defaults(), y), y}
		}, 0},
		{"a broadcast", func(b builder) []ID {
			return []ID{b.op(op.Sum, op.Sum.Defaults(), b.op(op.Mul, op.Attrs{}, b.input(0, 3, 4), b.input(1, 4)))}
		}, 0},
		{"a sum", func(b builder) []ID {
			return []ID{b.op(op.Sum, op.Sum.Defaults(), b.op(op.Add, op.Attrs{}, b.input(0, 12), b.input(1, 12)))}
		}, 0},
	} {
		b := build(t)
		b.Outputs = c.make(b)
		if n := count(apply(t, b.Graph, Passes()...), op.Dot); n != c.want {
			t.Errorf("%s: %d dot products, want %d", c.name, n, c.want)
		}
	}
}
