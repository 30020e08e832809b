package wgsl

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// shapes are operands that some of the operations accept.
var shapes = [][]op.Shape{
	{{5, 33}}, {{5, 64}}, {{3, 5000}}, {{70000}}, {{1}}, {{2, 3, 4, 8}},
	{{5, 33}, {5, 33}}, {{5, 33}, {33}}, {{5, 64}, {64}}, {{5, 33}, {33}, {33}},
	{{17, 19}, {19, 23}}, {{64, 128}, {128, 192}}, {{1, 128}, {128, 64}}, {{3, 17, 19}, {3, 19, 23}}, {{17, 19}, {19, 23}, {23}},
	{{64, 128}, {128, 192}, {192}}, {{19, 23}, {23}}, {{128, 64}, {64}}, {{10, 8}, {5}},
	{{1, 3, 9, 9}, {4, 3, 3, 3}}, {{1, 3, 9, 9}, {4, 3, 3, 3}, {4}}, {{6, 2, 8}}, {{2, 6, 8}, {2, 6, 8}, {2, 6, 8}}, {{1, 2, 6, 8}, {1, 2, 6, 8}, {1, 2, 6, 8}},
	{{6, 2, 8}, {6, 2, 8}, {6, 2, 8}}, {{33}, {33}, {33}}, {{33}, {33}},
}

// TestLibrary prints every kernel of the portable library for these shapes, with each variant and
// for every target, and compiles the texts.
func TestLibrary(t *testing.T) {
	kernels := make(map[string]*kernel.Kernel)
	for _, o := range op.Catalogue() {
		if !portable.Has(o) || o.Class() == op.Elementwise && o != op.Gelu && o != op.Add {
			continue // elementwise operations have a separate test
		}
		before := len(kernels)
		for _, in := range shapes {
			for _, d := range []op.DType{op.F32, op.F16, op.I32} {
				request(t, o, in, d, kernels)
			}
		}
		if len(kernels) == before {
			t.Logf("no kernel of %v for these shapes", o)
		}
	}
	if len(kernels) < 20 {
		t.Fatalf("%d kernels", len(kernels))
	}
	t.Logf("%d kernels", len(kernels))
	for _, name := range chosen(t) {
		target := targets[name]
		t.Run(name, func(t *testing.T) {
			texts, seen := make(map[string]string), make(map[string]bool)
			for name, k := range kernels {
				s, err := Kernel(k, target)
				if errors.Is(err, op.ErrUnsupported) && !target.has(Half) {
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				// Many requests have the same kernel
				if !seen[s.Text] {
					seen[s.Text], texts[name] = true, s.Text
				}
			}
			t.Logf("%d texts", len(texts))
			compileText(t, compiler(target.Consumer), texts)
		})
	}
}

// request adds the kernels that compute o on operands of the shapes. The last operand may be
// indices instead of elements of the type.
func request(t *testing.T, o *op.Operation, in []op.Shape, d op.DType, kernels map[string]*kernel.Kernel) {
	attrs := o.Defaults()
	least, most := o.Arity()
	if len(in) < least || len(in) > most {
		return
	}
	for _, last := range []op.DType{d, op.I32} {
		types := make([]op.DType, len(in))
		for i := range types {
			types[i] = d
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
		for _, variant := range append([]string{""}, portable.Variants(o)...) {
			for _, subgroups := range []bool{false, true} {
				r := &portable.Request{Op: o, Attrs: attrs, Variant: variant, Target: portable.Target{Subgroups: subgroups, F16: d == op.F16}}
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
					kernels[fmt.Sprintf("%v %v %v %s %v stage %d", o, in, types, p.Variant, subgroups, i)] = p.Stages[i].Kernel
				}
			}
		}
	}
}
