package ptxkernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// mustFuse runs the trial without and with an epilogue, which computes y*a + b + c and y < d where
// a is broadcast from rows, b from columns, c is full and d is a scalar. It fails the test if the
// results differ from those computed from the first run's y.
func (c *trial) mustFuse(t *testing.T, dev Device) {
	t.Helper()
	if err := c.fuse(dev); err != nil {
		r, _ := c.request()
		t.Errorf("%v %v on %v with an epilogue: %v", c.o, r.In, dev.Target, err)
	}
}

func (c *trial) fuse(dev Device) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	r.Out[0].Layout = nil // an epilogue requires a contiguous result
	plain, err := For(r, dev)
	if err != nil {
		return err
	}
	g, in := &rig{device: dev}, c.memory(r)
	shape, typ := r.Out[0].Shape, r.Out[0].Type
	n := size(shape)
	y := optest.Poisoned(int64(n * typ.Size()))
	if err := g.run(plain, in, [][]byte{y}); err != nil {
		return err
	}
	columns := shape[len(shape)-1]
	post, values := fusion(n, columns)
	for i, v := range values {
		in = append(in, optest.Encode(v, post.In[i].Type))
	}
	r.Post, r.Out = post, []portable.Array{{Type: typ, Shape: shape}, {Type: op.Bool, Shape: shape}}
	p, err := For(r, dev)
	if err != nil {
		return err
	}
	out := [][]byte{optest.Poisoned(int64(n * typ.Size())), optest.Poisoned(int64(n * 4))}
	if err := g.run(p, in, out); err != nil {
		return err
	}
	at := func(i, j int) float64 { return post.In[i].Type.Round(values[i].Data[j]) }
	for i := range n {
		v, factor := typ.Float64(y, i), at(0, i/columns)
		want := v*factor + at(1, i%columns) + at(2, i)
		// The first run rounded v; the epilogue uses the unrounded value.
		bound := 4*op.F32.Eps()*(math.Abs(v*factor)+math.Abs(at(1, i%columns))+math.Abs(at(2, i))) + typ.Eps()*(math.Abs(v*factor)+math.Abs(want)) + 1e-7
		if got := typ.Float64(out[0], i); !(math.Abs(got-want) <= bound) {
			return fmt.Errorf("element %d is %v, not %v", i, got, want)
		}
		if got := op.Bool.Float64(out[1], i) != 0; got != (v < at(3, 0)) && math.Abs(v-at(3, 0)) > typ.Eps()*math.Abs(v) {
			return fmt.Errorf("element %d of the second result is %v for %v", i, got, v)
		}
	}
	return nil
}

// fusion returns the epilogue of mustFuse for n elements in rows of columns, and
// its operands.
func fusion(n, columns int) (*portable.Epilogue, []*op.Array) {
	arg := func(i int) *ir.Node { return ir.NewArg(i, ir.F32) }
	make2 := func(c ir.Code, x, y *ir.Node) *ir.Node {
		z, err := ir.New(c, x, y)
		if err != nil {
			panic(err)
		}
		return z
	}
	y := make2(ir.Add, make2(ir.Add, make2(ir.Mul, arg(0), arg(1)), arg(2)), arg(3))
	return &portable.Epilogue{
		In: []portable.Operand{{Type: op.BF16, Broadcast: op.Repeated, N: n / columns}, {Type: op.F16, Broadcast: op.Tiled, N: columns},
			{Type: op.F32, Broadcast: op.Full, N: n}, {Type: op.F32, Broadcast: op.Scalar, N: 1}},
		Exprs: []*ir.Node{y, make2(ir.Lt, arg(0), arg(4))},
	}, []*op.Array{normal(n / columns), normal(columns), normal(n), normal(1)}
}

// outer is the outer product of a column and a row, for tests of epilogues. Each thread
// computes wide adjacent elements of a row.
type outer struct {
	wide int
	rows bool // the kernel passes row and column to the epilogue
}

func (o outer) plan(r *portable.Request, _ *Device) (*Plan, error) {
	m, n := r.In[0].Shape[0], r.In[1].Shape[1]
	columns := 0
	if o.rows {
		columns = n
	}
	e, err := finish(r, columns)
	if err != nil {
		return nil, err
	}
	kernel := &Kernel{Name: "outer", Target: ptx.SM70, Block: [3]uint32{32, 1, 1}, Build: func(k *ptx.Kernel) {
		k.Block(32, 1, 1)
		a, b := ptx.GlobalParam[ptx.U32](k, "a"), ptx.GlobalParam[ptx.U32](k, "b")
		rows, columns := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n")
		s := e.sink(k)
		i := k.Special(ptx.CtaidX).MulAdd(ptx.U(32), k.Special(ptx.TidX)).Mul(ptx.N(o.wide))
		k.If(i.Lt(rows.Mul(columns)), func() {
			row, column := i.Div(columns), i.Rem(columns)
			v := make([]ptx.F32, o.wide)
			for j := range v {
				at := i.Add(ptx.N(j))
				x, y := loadElements(r.In[0].Type, a, at.Div(columns), 1)[0], loadElements(r.In[1].Type, b, at.Rem(columns), 1)[0]
				v[j] = ptx.F32(x).Mul(ptx.F32(y))
			}
			if o.rows {
				s.setRow(row, column, i, v...)
			} else {
				s.set(i, v...)
			}
		})
	}}
	blocks := (m*n/o.wide + 31) / 32
	args := append([]Arg{input(0), input(1), word(uint32(m)), word(uint32(n))}, e.args()...)
	return &Plan{Stages: []Stage{{Kernel: kernel, Grid: [3]uint32{uint32(blocks), 1, 1}, Args: args, Zero: -1}}}, nil
}

// TestEpilogue computes outer products with every variant of outer.
func TestEpilogue(t *testing.T) {
	defer func(p []planner) { families[op.MatMul] = p }(families[op.MatMul])
	targets := []Device{h200, v100}
	for _, typ := range []op.DType{op.F32, op.F16, op.BF16} {
		for _, wide := range []int{1, 2, 4} {
			for _, rows := range []bool{false, true} {
				families[op.MatMul] = []planner{outer{wide: wide, rows: rows}.plan}
				for _, n := range []int{wide, 3 * wide, 4 * wide, 7} {
					if rows && n%wide != 0 || !sampled() {
						continue
					}
					for _, act := range []*op.Operation{nil, op.Gelu} {
						c := newTrial(op.MatMul, op.MatMulOpts{Act: act}.Attrs(), typ, normal(4, 1), normal(1, n))
						c.must(t, targets[rand.IntN(2)])
						c.mustFuse(t, targets[rand.IntN(2)])
					}
				}
			}
		}
	}
}

// TestEpilogueKey requires that two epilogues have the same key if and only if they have the same
// code.
func TestEpilogueKey(t *testing.T) {
	key := func(m, n, columns int, act *op.Operation, fused bool) string {
		c := newTrial(op.MatMul, op.MatMulOpts{Act: act}.Attrs(), op.F32, normal(m, 1), normal(1, n))
		r, err := c.request()
		if err != nil {
			t.Fatal(err)
		}
		if fused {
			r.Post, _ = fusion(m*n, n)
			r.Out = append(r.Out, portable.Array{Type: op.Bool, Shape: r.Out[0].Shape})
		}
		e, err := finish(r, columns)
		if err != nil {
			t.Fatal(err)
		}
		return e.key
	}
	if key(3, 8, 8, nil, true) != key(5, 16, 16, nil, true) {
		t.Error("sizes are in the key")
	}
	seen := map[string]bool{}
	for _, k := range []string{key(3, 8, 8, nil, false), key(3, 8, 8, op.Relu, false), key(3, 8, 8, nil, true), key(3, 8, 0, nil, true),
		key(3, 7, 7, nil, true), key(3, 8, 8, op.Gelu, true)} {
		if seen[k] {
			t.Errorf("two epilogues have the key %q", k)
		}
		seen[k] = true
	}
}
