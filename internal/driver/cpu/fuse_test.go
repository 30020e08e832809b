package cpu

import (
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
)

// tame has the operations whose errors do not grow along a chain, for numbers of moderate size.
var tame = []*op.Operation{
	op.Relu, op.Tanh, op.Sigmoid, op.Abs, op.Neg, op.Sin, op.Clip, op.Scale, op.AddScalar,
	op.Minimum, op.Maximum, op.Axpy, op.Lerp, op.Gelu,
	op.Unary("softsign", func(x op.Expr) op.Expr { return x.Div(x.Abs().Add(op.Const(1))) }),
	op.Binary("mixed", func(x, y op.Expr) op.Expr {
		return op.Select(x.Lt(y), y.Sub(x), x.Sub(y)).Mul(op.Const(0.75)).Tanh().Add(op.Const(0.5).Sub(x))
	}),
	op.Ternary("middle", func(x, y, z op.Expr) op.Expr { return x.Max(y).Min(z.Neg().Max(op.Const(-1))) }),
	op.Unary("answer", func(x op.Expr) op.Expr { return op.Const(0.42) }),
}

// grow adds random instructions to f and their values in float64 to vals, and
// returns both with the types of all values.
func (r *rig) grow(f *driver.Fused, vals []*op.Array, n int) []*op.Array {
	r.t.Helper()
	var types []op.DType
	for _, in := range f.In {
		types = append(types, in.Type)
	}
	for _, b := range f.Body {
		types = append(types, b.Type)
	}
	for len(f.Body) < n {
		o := tame[r.rand.IntN(len(tame))]
		if r.casts && r.rand.IntN(8) == 0 {
			o = op.Cast
		}
		_, arity := o.Arity()
		a := attrsOf(o)
		if o == op.Cast {
			a = op.CastTo([]op.DType{op.F32, op.F16, op.BF16}[r.rand.IntN(3)])
		}
		var args []int
		var in []*op.Array
		var ts []op.DType
		for range arity {
			v := r.rand.IntN(len(vals))
			if r.rand.IntN(2) == 0 && len(vals) > 3 {
				v = len(vals) - 1 - r.rand.IntN(3)
			}
			args, in, ts = append(args, v), append(in, vals[v]), append(ts, types[v])
		}
		same := true
		for _, t := range ts {
			same = same && t == ts[0]
		}
		if !same {
			continue
		}
		made, err := o.Types(&a, ts)
		if err != nil {
			r.t.Fatal(err)
		}
		y, err := o.Reference(&a, in, ts)
		if err != nil {
			continue // the operands do not broadcast
		}
		f.Body = append(f.Body, driver.Instr{Op: o, Attrs: a, Args: args, Type: made[0]})
		vals, types = append(vals, roundedTo(made[0], y[0])), append(types, made[0])
	}
	return vals
}

// roundedTo returns an array with its values rounded to type t.
func roundedTo(t op.DType, a *op.Array) *op.Array {
	y := op.NewArray(a.Shape)
	for i, v := range a.Data {
		y.Data[i] = t.Round(v)
	}
	return y
}

// spreadOver returns a broadcast to shape.
func spreadOver(t testing.TB, a *op.Array, shape op.Shape) *op.Array {
	t.Helper()
	at, err := op.Index(a.Shape, shape)
	if err != nil {
		t.Fatal(err)
	}
	y := op.NewArray(shape)
	for i := range y.Data {
		y.Data[i] = a.Data[at(i)]
	}
	return y
}

// random adds a step of a random elementwise program.
func (r *rig) random(set []op.Shape, n int) {
	r.t.Helper()
	full := set[0]
	f := &driver.Fused{Shape: full}
	var vals []*op.Array
	t := []op.DType{op.F32, op.F32, op.F16, op.BF16}[r.rand.IntN(4)]
	for k := range 1 + r.rand.IntN(4) {
		shape := full
		if k > 0 {
			shape = set[r.rand.IntN(len(set))]
		}
		s, v := r.input(t, shape)
		f.In = append(f.In, r.operand(s, full))
		vals = append(vals, v)
	}
	vals = r.grow(f, vals, n)
	st := driver.Step{Post: f}
	for k := range 1 + r.rand.IntN(3) {
		v := len(vals) - 1
		if k > 0 {
			v = r.rand.IntN(len(vals))
		}
		f.Out = append(f.Out, v)
		typ := typeOf(f, v)
		s := r.output(typ, spreadOver(r.t, vals[v], full), bound(f))
		st.Out = append(st.Out, r.operand(s, nil))
	}
	r.p.Steps = append(r.p.Steps, st)
}

func TestRandomPrograms(t *testing.T) {
	for _, threads := range callerThreads {
		d := open(t, threads)
		for seed := range uint64(300) {
			if !chosen(12) {
				continue
			}
			r := newRig(t, seed)
			r.casts = true
			set := spreads[r.rand.IntN(len(spreads))]
			if seed%40 == 0 {
				set = []op.Shape{{200, 700}, {700}, {200, 1}, {1}}
			}
			r.random(set, r.rand.IntN(20))
			r.run(d, fmt.Sprintf("seed %d: %v", seed, r.p.Steps[0].Post.Formulas()))
		}
	}
}

// TestInPlace checks that the result of a step with one output may overlap an operand of the same
// size, even if the program reads the operand several times.
func TestInPlace(t *testing.T) {
	for _, threads := range callerThreads {
		d := open(t, threads)
		for seed := range uint64(100) {
			if !chosen(4) {
				continue
			}
			r := newRig(t, seed)
			r.casts = true
			set := spreads[r.rand.IntN(len(spreads))]
			r.random(set, 1+r.rand.IntN(12))
			st := &r.p.Steps[0]
			st.Out, st.Post.Out, r.want = st.Out[:1], st.Post.Out[:1], r.want[:1]
			in, out := &r.p.Slots[st.Post.In[0].Slot], &r.p.Slots[st.Out[0].Slot]
			if in.Type.Size() != out.Type.Size() {
				continue
			}
			r.data[out.Ext] = r.data[in.Ext]
			e, err := d.Prepare(t.Context(), &r.p)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Submit(t.Context(), &driver.Submission{Ext: r.bindings(), Wait: true}); err != nil {
				t.Fatal(err)
			}
			r.verify(fmt.Sprintf("seed %d in place: %v", seed, st.Post.Formulas()))
			e.Close()
		}
	}
}

// typeOf returns the type of value v of f.
func typeOf(f *driver.Fused, v int) op.DType {
	if v < len(f.In) {
		return f.In[v].Type
	}
	return f.Body[v-len(f.In)].Type
}

// bound returns a comparison for the results of f: a cast of a value with a small error may round
// to the other adjacent number.
func bound(f *driver.Fused) func(got, want, mag float64, d op.DType) error {
	for _, b := range f.Body {
		if b.Op == op.Cast {
			return func(got, want, mag float64, d op.DType) error { return loose(got, want, mag, op.BF16) }
		}
	}
	return loose
}

// TestStreamed tests non-temporal stores to aligned and unaligned results.
func TestStreamed(t *testing.T) {
	from, near := streamFrom, privateCacheBytes
	defer func() { streamFrom, privateCacheBytes = from, near }()
	streamFrom, privateCacheBytes = 4000, 0
	for _, threads := range callerThreads {
		d := open(t, threads)
		for seed := range uint64(10) {
			if !chosen(4) {
				continue
			}
			r := newRig(t, seed)
			r.random([]op.Shape{{60, 700}, {700}, {60, 1}, {1}}, r.rand.IntN(8))
			r.run(d, fmt.Sprintf("seed %d: %v", seed, r.p.Steps[0].Post.Formulas()))
		}
		for _, n := range []int{1001, 70001} {
			r := newRig(t, 1)
			r.single(op.Add, op.Attrs{}, []op.DType{op.F32, op.F32}, []op.Shape{{n}, {n}})
			for i, b := range r.data {
				// Aligned to a cache line, or not.
				m, err := memory.Slice[uint8](len(b) + 2*guard + 64)
				if err != nil {
					t.Fatal(err)
				}
				for i := range m {
					m[i] = 0xa5
				}
				at := guard + 4*(n%2)*i
				copy(m[at:], b)
				r.data[i] = m[at : at+len(b)]
			}
			r.run(d, fmt.Sprintf("add of %d", n))
			r.immediate(d, fmt.Sprintf("add of %d", n))
		}
	}
}
