package kernel_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/interp"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
)

// wanderer builds a kernel of random structure: blocks that lanes take together
// or not, jumps, variables and barriers.
type wanderer struct {
	r     *rand.Rand
	b     *kernel.Builder
	vars  []kernel.Var[kernel.U32]
	in    kernel.Buffer[kernel.U32]
	out   kernel.Buffer[kernel.U32]
	left  int // statements that may still be made
	depth int
	loops int
}

func (w *wanderer) value() kernel.U32 {
	switch w.r.IntN(8) {
	case 0:
		return w.b.Lane()
	case 1:
		return w.b.GroupX()
	case 2, 3:
		return w.vars[w.r.IntN(len(w.vars))].Get()
	case 4:
		return w.in.At(w.b.GroupX())
	case 5:
		return w.value().Add(w.value())
	}
	return kernel.U(w.r.Uint32N(3))
}

func (w *wanderer) block() {
	if w.depth++; w.depth < 6 {
		for range w.r.IntN(5) {
			w.statement()
		}
	}
	w.depth--
}

func (w *wanderer) statement() {
	if w.left--; w.left < 0 {
		return
	}
	b, r := w.b, w.r
	switch r.IntN(12) {
	case 0, 1:
		branch := b.If(w.value().Lt(w.value()), w.block)
		if r.IntN(2) == 0 {
			branch.Else(w.block)
		}
	case 2:
		w.loops++
		b.For(kernel.U(0), w.value().Mod(kernel.U(4)), func(i kernel.U32) {
			w.vars[r.IntN(len(w.vars))].Set(i)
			w.block()
		})
		w.loops--
	case 3:
		w.loops++
		b.Loop(func() {
			w.block()
			b.If(w.value().Lt(kernel.U(2)), b.Break)
			if r.IntN(2) == 0 {
				b.Break()
			}
		})
		w.loops--
	case 4:
		if w.loops > 0 {
			b.If(w.value().Eq(w.value()), b.Break)
		}
	case 5:
		if w.loops > 0 && r.IntN(2) == 0 {
			b.If(w.value().Eq(w.value()), b.Continue)
		}
	case 6:
		if r.IntN(6) == 0 {
			b.If(w.value().Eq(w.value()), b.Return)
		}
	case 7, 8:
		b.Barrier()
	case 9:
		w.out.Set(b.Lane(), w.value())
	default:
		w.vars[r.IntN(len(w.vars))].Set(w.value())
	}
}

func wander(seed uint64) *kernel.Kernel {
	return kernel.New("wander", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(8, 1, 1)
		b.Budget(20)
		w := wanderer{r: rand.New(rand.NewPCG(seed, 1)), b: b, left: 40}
		w.in, w.out = kernel.Input[kernel.U32](b, "in"), kernel.Output[kernel.U32](b, "out")
		w.vars = kernel.NewVars(b, "v", 3, kernel.U(0))
		w.block()
		w.block()
		w.block()
		b.Barrier()
	})
}

// TestBarriersOfAcceptedKernels builds kernels of random structure. The builder must report a mistake, or the kernel
// must be well formed and have no divergent barriers in any order of lanes. If the builder used the short proof of
// that, the complete proof must accept the kernel too.
func TestBarriersOfAcceptedKernels(t *testing.T) {
	r := testutil.Rand(t)
	accepted, refused, several := 0, 0, 0
	n := 400
	if testing.Short() {
		n = 50
	}
	for range n {
		seed := r.Uint64()
		k := wander(seed)
		p, err := k.Program()
		if err != nil {
			var e *kernel.Error
			if !errors.As(err, &e) || e.Pos.Line == 0 {
				t.Fatalf("seed %d: error %v", seed, err)
			}
			refused++
			continue
		}
		accepted++
		if err := ir.Verify(p); err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, p.Listing())
		}
		if d := ir.Divergent(p); d != (ir.Divergence{}) {
			t.Fatalf("seed %d: %v is accepted\n%v", seed, d, p.Listing())
		}
		barriers := 0
		for _, in := range p.Code {
			if in.Code == ir.Barrier {
				barriers++
			}
		}
		if barriers > 2 {
			several++
		}
		c, err := interp.Compile(p, interp.Limits{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		l := interp.Launch{Grid: [3]uint32{2, 1, 1}, Buffers: [][]byte{{1, 0, 0, 0, 2, 0, 0, 0}, make([]byte, 32)}}
		found, err := c.Check(context.Background(), l, interp.Checks{Subgroups: []int{4}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, f := range found {
			if f.Kind == interp.DivergentBarrier {
				t.Fatalf("seed %d: %v\n%v", seed, f, p.Listing())
			}
		}
	}
	if accepted < n/10 || refused < n/10 || several < n/20 {
		t.Errorf("%d accepted, %d refused, %d with several barriers: not a fair mix", accepted, refused, several)
	}
}

// TestUniformControlFlow checks that a barrier may stand inside control flow that is
// uniform across the lanes.
func TestUniformControlFlow(t *testing.T) {
	for name, build := range map[string]func(b b, x kernel.Buffer[kernel.U32], s kernel.Array[kernel.U32]){
		"parameters": func(b b, x kernel.Buffer[kernel.U32], _ kernel.Array[kernel.U32]) {
			b.If(x.Len().Lt(kernel.U(9)), b.Barrier)
		},
		"inputs": func(b b, x kernel.Buffer[kernel.U32], _ kernel.Array[kernel.U32]) {
			b.If(x.At(b.GroupX()).Lt(kernel.U(9)), b.Barrier).Else(b.Barrier)
		},
		"counters": func(b b, x kernel.Buffer[kernel.U32], _ kernel.Array[kernel.U32]) {
			b.For(kernel.U(0), x.Len(), func(i kernel.U32) { b.If(i.Gt(kernel.U(3)), b.Barrier) })
		},
		"variables": func(b b, x kernel.Buffer[kernel.U32], _ kernel.Array[kernel.U32]) {
			v := kernel.NewVar(b, "v", kernel.U(8))
			b.While(func() kernel.Bool { return v.Get().Gt(kernel.U(0)) }, func() {
				b.If(b.Lane().Lt(v.Get()), func() {})
				b.Barrier()
				v.Set(v.Get().Shr(kernel.U(1)))
			})
		},
		"shared memory": func(b b, x kernel.Buffer[kernel.U32], s kernel.Array[kernel.U32]) {
			b.If(s.Uniform(kernel.U(0)).Lt(kernel.U(9)), b.Barrier)
		},
		"returns together": func(b b, x kernel.Buffer[kernel.U32], _ kernel.Array[kernel.U32]) {
			b.If(b.GroupX().Gt(kernel.U(9)), b.Return)
			b.Barrier()
		},
		"breaks inside": func(b b, x kernel.Buffer[kernel.U32], _ kernel.Array[kernel.U32]) {
			b.Loop(func() { b.If(b.Lane().Gt(kernel.U(1)), b.Break).Else(b.Break) })
			b.Barrier()
		},
	} {
		k := kernel.New("uniform", func(b b, _ none) {
			b.LocalSize(8, 1, 1)
			build(b, kernel.Input[kernel.U32](b, "x"), kernel.Shared[kernel.U32](b, "s", 1))
		})
		if err := k.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
