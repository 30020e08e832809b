//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wgsl"
)

// shapes are the shapes of operands. Each operation accepts some of them.
var shapes = [][]op.Shape{
	{{5, 64}}, {{70000}}, {{5, 33}, {5, 33}}, {{5, 33}, {33}}, {{5, 33}, {33}, {33}},
	{{64, 128}, {128, 192}}, {{1, 128}, {128, 64}}, {{64, 128}, {128, 192}, {192}}, {{19, 23}, {23}}, {{10, 8}, {5}},
	{{1, 3, 9, 9}, {4, 3, 3, 3}}, {{6, 2, 8}}, {{2, 6, 8}, {2, 6, 8}, {2, 6, 8}}, {{6, 2, 8}, {6, 2, 8}, {6, 2, 8}},
}

// TestLibrary compiles the kernels of the portable library, as trusted and as untrusted texts. Their
// texts must pass every check.
func TestLibrary(t *testing.T) {
	target := wgsl.Target{Consumer: wgsl.NagaGo, Limits: wgsl.Limits{Invocations: 1024, Size: [3]uint32{1024, 1024, 64}, WorkgroupBytes: 32 << 10, Bindings: 16, Grid: 65535}}
	seen := map[string]bool{}
	for _, o := range op.Catalogue() {
		if !portable.Has(o) {
			continue
		}
		for _, in := range shapes {
			for _, variant := range append([]string{""}, portable.Variants(o)...) {
				for name, s := range printed(o, in, variant, &target) {
					if seen[s.Text] {
						continue
					}
					seen[s.Text] = true
					shader := &webgpu.Shader{Label: name, Text: s.Text, Entry: s.Entry}
					for _, a := range s.Bindings {
						shader.Bindings = append(shader.Bindings, map[wgsl.Access]webgpu.BindingKind{wgsl.Read: webgpu.ReadOnly, wgsl.ReadWrite: webgpu.ReadWrite}[a])
					}
					for range s.Blocks {
						shader.Bindings = append(shader.Bindings, webgpu.Block)
					}
					for _, shader.Trusted = range []bool{true, false} {
						if _, err := compile(shader); err != nil {
							t.Errorf("%v, trusted: %v: %v", name, shader.Trusted, err)
						}
					}
				}
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("%d texts", len(seen))
	}
	t.Logf("%d texts", len(seen))
}

// printed returns the texts of the kernels that compute o on operands of the shapes.
func printed(o *op.Operation, in []op.Shape, variant string, target *wgsl.Target) map[string]wgsl.Shader {
	list := map[string]wgsl.Shader{}
	attrs := o.Defaults()
	least, most := o.Arity()
	if len(in) < least || len(in) > most {
		return nil
	}
	for _, last := range []op.DType{op.F32, op.I32} {
		types := make([]op.DType, len(in))
		for i := range types {
			types[i] = op.F32
		}
		types[len(types)-1] = last
		outTypes, err := o.Types(&attrs, types)
		if err != nil {
			continue
		}
		outShapes, err := o.Shapes(&attrs, in)
		if err != nil || len(outShapes) > len(outTypes) {
			continue
		}
		r := &portable.Request{Op: o, Attrs: attrs, Variant: variant}
		for i := range in {
			r.In = append(r.In, portable.Array{Type: types[i], Shape: in[i]})
		}
		for i := range outShapes {
			r.Out = append(r.Out, portable.Array{Type: outTypes[i], Shape: outShapes[i]})
		}
		p, err := portable.For(r)
		if err != nil {
			continue
		}
		for i := range p.Stages {
			if s, err := wgsl.Kernel(p.Stages[i].Kernel, *target); err == nil {
				list[fmt.Sprintf("%v %v %s stage %d", o, in, p.Variant, i)] = s
			}
		}
	}
	return list
}
