package webgpu

import (
	"slices"

	"github.com/rayo-go/rayo/internal/ir"
)

// The size of a binding is a positive number of words: the length of an empty array would be one
// element, and an odd number of half floats would have one too many. In these cases the length is a
// parameter.

// asks reports whether p uses the length of a binding.
func asks(p *ir.Program, binding int) bool {
	return slices.ContainsFunc(p.Code, func(in ir.Instr) bool { return in.Code == ir.Len && int(in.Imm) == binding })
}

// withLengths returns p with additional parameters after its own parameters. They replace the
// lengths of the bindings whose bits are set.
func withLengths(p *ir.Program, bindings uint64) *ir.Program {
	q := *p
	q.Code, q.Uniforms = slices.Clone(p.Code), slices.Clone(p.Uniforms)
	for i := range p.Bindings {
		if bindings>>i&1 == 0 {
			continue
		}
		at := uint32(0)
		if n := len(q.Uniforms); n > 0 {
			at = q.Uniforms[n-1].Offset + 4
		}
		number := uint32(len(q.Uniforms))
		q.Uniforms = append(q.Uniforms, ir.Uniform{Name: "length_of_" + p.Bindings[i].Name, Type: ir.U32, Offset: at})
		for k := range q.Code {
			if in := &q.Code[k]; in.Code == ir.Len && int(in.Imm) == i {
				in.Code, in.Imm = ir.Param32, number
			}
		}
	}
	return &q
}

// paramBytes returns the bytes of the parameters of p.
func paramBytes(p *ir.Program) int64 {
	if p.Text != nil {
		return int64(p.Text.ParamBytes)
	}
	if n := len(p.Uniforms); n > 0 {
		return int64(p.Uniforms[n-1].Offset) + 4
	}
	return 0
}
