package portable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wgsl"
)

// TestShadersWithEpilogues compiles the WGSL of kernels with epilogues and of kernels with
// special kinds of operands. The tests of package wgsl compile the kernels of plain
// operations.
func TestShadersWithEpilogues(t *testing.T) {
	rnd := rand.New(rand.NewPCG(37, 38))
	half, _ := ir.New(ir.Mul, ir.NewArg(0, ir.F32), ir.NewConst(0.5, ir.F32))
	sum, _ := ir.New(ir.Add, half, ir.NewArg(1, ir.F32))
	post := &Epilogue{In: []Operand{{Type: op.F32, Broadcast: op.Scalar, N: 1}}, Exprs: []*ir.Node{sum}}
	rope := &trial{o: op.Rope, attrs: op.RopeOpts{}.Attrs(), values: []*op.Array{normal(rnd, 2, 3, 8), op.NewArray(op.Shape{2})}, types: []op.DType{op.F32, op.I32}}
	kernels := map[*kernel.Kernel]string{}
	for _, c := range append(mutantTrials(rnd), rope) {
		for _, name := range append([]string{""}, Variants(c.o)...) {
			for _, post := range []*Epilogue{nil, post} {
				r, err := c.request(Target{Lanes: 1024, Subgroups: true})
				if err != nil {
					t.Fatal(err)
				}
				r.Variant = name
				if r.Post = post; post != nil && (len(r.Out) != 1 || r.Out[0].Type != op.F32) {
					continue
				}
				p, err := For(r)
				if errors.Is(err, op.ErrUnsupported) {
					continue
				} else if err != nil {
					t.Fatal(err)
				}
				for _, s := range p.Stages {
					kernels[s.Kernel] = fmt.Sprintf("%v-%s-%d", c.o, p.Variant, len(kernels))
				}
			}
		}
	}
	limits := wgsl.Limits{Invocations: 1024, Size: [3]uint32{1024, 1024, 64}}
	for _, c := range []wgsl.Consumer{wgsl.Naga, wgsl.Tint} {
		t.Run(c.String(), func(t *testing.T) {
			texts, seen := map[string]string{}, map[string]bool{}
			for k, name := range kernels {
				if !sampled() {
					continue
				}
				s, err := wgsl.Kernel(k, wgsl.Target{Consumer: c, Features: wgsl.Subgroups, Limits: limits})
				if err != nil {
					t.Errorf("%s: %v", name, err)
				} else if !seen[s.Text] {
					seen[s.Text], texts[name] = true, s.Text
				}
			}
			t.Logf("%d texts", len(texts))
			testutil.Judge(t, c.String(), texts)
		})
	}
}
