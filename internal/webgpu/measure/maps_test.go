//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64)

package measure

import (
	"fmt"
	"math"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
)

// chain is an elementwise program over operands that are laid over n elements as
// spread says; periods are of 1024.
type chain struct {
	name   string
	expr   *ir.Node
	spread []op.Spread
}

// of returns an operation of expressions.
func of(o *op.Operation, args ...*ir.Node) *ir.Node {
	types := make([]op.DType, len(args))
	for i := range types {
		types[i] = op.F32
	}
	a := o.Defaults()
	x, err := o.Expression(&a, types)
	if err != nil {
		panic(err)
	}
	var params []*ir.Node
	for i := range a.F {
		params = append(params, ir.NewConst(float64(a.Float(i)), ir.F32))
	}
	return ir.Substitute(x, args, params)
}

func TestMaps(t *testing.T) {
	g := open(t)
	x, y, z := ir.NewArg(0, ir.F32), ir.NewArg(1, ir.F32), ir.NewArg(2, ir.F32)
	one, two, three := []op.Spread{op.Full}, []op.Spread{op.Full, op.Full}, []op.Spread{op.Full, op.Periodic, op.Stretched}
	for _, c := range []chain{
		{"relu", of(op.Relu, x), one},
		{"exp", of(op.Exp, x), one},
		{"gelu", of(op.Gelu, x), one},
		{"tanh(sigmoid)", of(op.Tanh, of(op.Sigmoid, x)), one},
		{"add", of(op.Add, x, y), two},
		{"gelu(x*y+x)*y", of(op.Mul, of(op.Gelu, of(op.Add, of(op.Mul, x, y), x)), y), two},
		{"relu(x*z+y)", of(op.Relu, of(op.Add, of(op.Mul, x, z), y)), three},
		{"sin(x)*exp(-x*x)", of(op.Mul, of(op.Sin, x), of(op.Exp, of(op.Neg, of(op.Mul, x, x)))), one},
	} {
		for _, v := range lib.Variants(nil) {
			g.chain(&c, v, *megabytes<<18)
		}
	}
}

// chain compares results at 2^17 elements with the values of the expression and
// measures at n.
func (g *rig) chain(c *chain, variant string, n int) {
	if !selected(c.name) {
		return
	}
	name := fmt.Sprintf("%-24s %-18s", c.name, variant)
	var w *work
	var bytes float64
	for _, n := range []int{1 << 17, n} {
		if w != nil {
			w.release()
		}
		r := &lib.Request{Post: &lib.Epilogue{Exprs: []*ir.Node{c.expr}}, Target: g.target, Variant: variant,
			Out: []lib.Array{{Type: op.F32, Shape: op.Shape{n}}}}
		var in [][]byte
		var bufs []webgpu.HostBuffer
		for _, s := range c.spread {
			k := map[op.Spread]int{op.Full: n, op.Periodic: 1024, op.Stretched: n / 1024}[s]
			r.Post.In = append(r.Post.In, lib.Operand{Type: op.F32, Spread: s, N: k})
			m := normal(min(k, 1<<20), op.F32)
			in, bufs = append(in, m), append(bufs, g.upload(m, int64(4*k)))
			defer bufs[len(bufs)-1].Release()
		}
		p, err := lib.For(r)
		if err != nil {
			return
		}
		w, bytes = g.prepare(r, p, bufs), 4*float64(n)
		for i := range in {
			bytes += 4 * float64(r.Post.In[i].N)
		}
		if n != 1<<17 {
			break
		}
		g.run(w.list)
		out, e := g.download(w.out[0], 0, int64(4*n)), ir.NewEvaluator(c.expr)
		for i := range n {
			var args []float64
			for k, s := range c.spread {
				j := map[op.Spread]int{op.Full: i, op.Periodic: i % 1024, op.Stretched: i / 1024}[s]
				args = append(args, op.F32.Float64(in[k], j))
			}
			want, got := e.Eval(args, nil), op.F32.Float64(out, i)
			if d := math.Abs(got - want); !(d <= 1e-5*(1+math.Abs(want))) {
				fmt.Printf("%s WRONG: element %d is %v, not %v\n", name, i, got, want)
				return
			}
		}
	}
	d := g.time(w)
	w.release()
	fmt.Printf("%s %9.1f us %6.0f GB/s %5.1f%%\n", name, float64(d)/1e3, bytes/d.Seconds()/1e9, 100*bytes/d.Seconds()/copyRate)
}
