package webgpu

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/rayo-go/rayo/internal/ir"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/wgsl"
)

// measurement says whether a device has a property that WGSL allows but does not guarantee. It is
// measured once for an open device, when the text of a kernel first depends on it.
type measurement struct {
	mu           sync.Mutex
	known, holds bool
}

// ask returns the result of a measurement: true if measure returned nil.
func (m *measurement) ask(ctx context.Context, measure func(context.Context) error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known {
		err := measure(ctx)
		// A cancelled call has not measured anything: the next call measures.
		m.known, m.holds = ctx.Err() == nil, err == nil
	}
	return m.known && m.holds
}

// textTarget returns the target for which p is printed. It does not measure software adapters,
// because they take long to compile.
func (d *device) textTarget(ctx context.Context, p *ir.Program) wgsl.Target {
	t := d.target
	if t.Unfused || p.Text != nil {
		return t
	}
	if !t.Approximate && shortens(p) {
		ir.IfFunctions(approximately{d, ctx, &t.Approximate})
	}
	if !t.Narrows && t.Features&wgsl.Half != 0 && graphs.narrows != nil && rounds(p) {
		t.Narrows = d.narrows.ask(ctx, func(ctx context.Context) error { return graphs.narrows(d, ctx) })
	}
	return t
}

// approximately has the method that sets a target's Approximate. Programs without functions leave it out.
type approximately struct {
	d   *device
	ctx context.Context
	to  *bool
}

func (a approximately) WithFunctions() { *a.to = a.d.approx.ask(a.ctx, a.d.measureApprox) }

// measure runs a kernel over x, printed for t, and returns the bytes of its results: a fixed number
// of float32 for each element. The kernel has workgroups of approxLanes lanes, and len(x) must be a
// multiple of this.
func (d *device) measure(ctx context.Context, k *kernel.Kernel, t wgsl.Target, x []float32, results int) ([]byte, error) {
	p, err := k.Program()
	if err != nil {
		return nil, err
	}
	text, err := wgsl.Kernel(k, t)
	if err != nil {
		return nil, err
	}
	pipeline, err := d.gpu.Compile(ctx, shaderOf(p, &text, true))
	if err != nil {
		return nil, err
	}
	defer pipeline.Free()
	var in []byte
	for _, v := range x {
		in = binary.NativeEndian.AppendUint32(in, math.Float32bits(v))
	}
	out := make([]byte, len(in)*results)
	var ranges []gpu.Range
	for _, data := range [][]byte{in, out} {
		b, err := d.gpu.NewBuffer(int64(len(data)), gpu.Storage)
		if err != nil {
			return nil, err
		}
		defer b.Free()
		ranges = append(ranges, gpu.Range{Buffer: b, Bytes: int64(len(data))})
	}
	g, err := d.gpu.Bind(pipeline, ranges)
	if err != nil {
		return nil, err
	}
	defer g.Free()
	return out, d.gpu.Run(ctx, &gpu.Submission{
		Uploads:   []gpu.Transfer{{Host: in, Buffer: ranges[0].Buffer}},
		Commands:  []gpu.Command{{Group: g, Grid: [3]uint32{uint32(len(x) / approxLanes), 1, 1}}},
		Downloads: []gpu.Transfer{{Host: out, Buffer: ranges[1].Buffer}},
	})
}

// shortens reports whether the text of p depends on Target.Approximate.
func shortens(p *ir.Program) bool {
	return slices.ContainsFunc(p.Code, func(in ir.Instr) bool { return ir.ApproxUnits(in.Code) > 0 })
}

// rounds reports whether the text of p depends on Target.Narrows.
func rounds(p *ir.Program) bool {
	return slices.ContainsFunc(p.Code, func(in ir.Instr) bool { return in.Code == ir.RoundF16 })
}
