package device

import (
	"context"

	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// A group is a set of operations. A page links their kernels only if it calls a method of one of
// them, because only these methods refer to the group's variable, and only the variable refers to
// the kernels.
type group struct {
	link   func()
	linked bool
}

// use registers the kernels of the group. JavaScript has one thread, so no lock is necessary.
func (g *group) use() {
	if !g.linked {
		g.linked = true
		g.link()
	}
}

var (
	reductions = group{link: func() { useOperations(); portable.UseReductions(); cpu.UseReductions() }}
	rowwises   = group{link: func() { useOperations(); portable.UseRows(); cpu.UseRows() }}
	products   = group{link: func() { useOperations(); portable.UseProducts(); cpu.UseProducts() }}
	conv2Ds    = group{link: func() { useOperations(); portable.UseConv2D(); cpu.UseConv2D() }}
	attentions = group{link: func() { useOperations(); portable.UseAttention(); cpu.UseAttention() }}
	orders     = group{link: func() { useOperations(); portable.UseOrder(); cpu.UseOrder() }}
	moves      = group{link: func() { useOperations(); portable.UseMoves(); cpu.UseMoves() }}
	launches   = group{link: useGraphs}
	programs   = group{link: func() { useGraphs(); cpu.UsePrograms() }}
	everything = group{link: func() { useOperations(); portable.UseAll(); cpu.UseAll() }}
)

// openTests are the tests of a device before Open returns it. Sums and products are tested before
// their first use, like other operations, because a page may not have their kernels.
var openTests = []func(context.Context, *engine.Engine) error{func(ctx context.Context, e *engine.Engine) error {
	if e.Info().Kind == CPU {
		return knownMaxima(ctx, e)
	}
	return knownElements(ctx, e)
}}

// knownMaxima tests an operation of the CPU. A page may not have the kernels for other operations.
func knownMaxima(ctx context.Context, e *engine.Engine) error {
	x := small(13)
	got := make([]float32, len(x))
	if err := e.Elementwise(ctx, op.Relu, &op.Attrs{}, got, x, nil, nil); err != nil {
		return err
	}
	for i, v := range got {
		if want := max(x[i], 0); v != want {
			return fmt.Errorf("the positive part of %v is %v, not %v", x[i], want, v)
		}
	}
	return nil
}
