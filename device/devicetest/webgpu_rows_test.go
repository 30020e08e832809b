//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package devicetest

import (
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestWebGPULongRows has rows that are so many, and so long, that plans choose other
// kernels for them than for the rows of TestWebGPU.
func TestWebGPULongRows(t *testing.T) {
	testutil.Need(t, "long")
	dev := start(t, webGPU(t, "lavapipe"))
	free := libertiesOf(t.Context(), dev)
	g := newGenerator(freshSeed(t))
	for _, x := range []struct {
		o     *op.Operation
		shape op.Shape
	}{
		{op.Softmax, op.Shape{129, 32801}},
		{op.LogSoftmax, op.Shape{128, 40002}},
		{op.LayerNorm, op.Shape{130, 32803}},
		{op.RMSNorm, op.Shape{129, 32802}},
		{op.LayerNorm, op.Shape{2731, 6145}},
		{op.LayerNorm, op.Shape{129, 65543}},
		{op.Softmax, op.Shape{128, 65537}},
		{op.LogSoftmax, op.Shape{44, 98309}},
		{op.LayerNorm, op.Shape{29, 147459}},
	} {
		t.Run(fmt.Sprintf("%v/%v", x.o, x.shape), func(t *testing.T) {
			c := Case{Op: x.o, In: []Tensor{g.tensor(op.F32, x.shape, g.tame)}}
			for range len(x.o.Inputs()) - 1 {
				c.In = append(c.In, g.tensor(op.F32, x.shape[1:], g.tame))
			}
			// One call alone is a batch too: what is new here are the kernels.
			if err := c.runBatch(t.Context(), dev, free); err != nil {
				t.Error(err)
			}
		})
	}
}
