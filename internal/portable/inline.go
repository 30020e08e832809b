package portable

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/kernel"
)

// Inline computes expressions in a kernel. args holds the operands of the expressions, and params
// their parameters. See [irhook.Inline].
func Inline(b *kernel.Builder, roots []*ir.Node, args []kernel.Dynamic, params []kernel.F32) []kernel.Dynamic {
	return inlineWithin(b, roots, args, params, math.NaN())
}

// inlineWithin is Inline for operands that are not NaN and whose magnitudes are at most size.
func inlineWithin(b *kernel.Builder, roots []*ir.Node, args []kernel.Dynamic, params []kernel.F32, size float64) []kernel.Dynamic {
	return irhook.Inline(b, roots, args, params, size).([]kernel.Dynamic)
}
