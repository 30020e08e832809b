package wgsl

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
)

// Shader is the text of a kernel with the information that a host needs to run it.
//
// The storage buffers are bindings 0, 1 ... of group 0, in the order in which the kernel
// declares them. The parameter block, if there is one, is the uniform buffer at binding
// Params, or several uniform buffers from binding Params on.
type Shader struct {
	Text  string
	Entry string // name of the entry point

	Bindings    []Access // access to each storage buffer
	Params      int      // binding of the parameter block; -1 without parameters
	ParamBytes  int      // size of the parameter block, a multiple of 16
	Blocks      []Block  // the uniform buffers that contain the parameter block: one or several
	Local       [3]uint32
	SharedBytes uint32
	Needs       Feature // optional features of the target that the text uses

	lines []ir.Value // the instruction that each line of Text prints, or 0
	pos   []uintptr
	// kernel is built again to get pos.
	kernel *kernel.Kernel
}

// A Block is a uniform buffer with a part of the parameters: Bytes bytes from Offset on. Offset is
// a multiple of 256.
type Block struct{ Offset, Bytes uint32 }

// Access is how a storage buffer is bound.
type Access uint8

// The ways to bind a storage buffer.
const (
	Read      Access = iota // var<storage, read>
	ReadWrite               // var<storage, read_write>
)

// instruction returns the instruction that line n of the text prints, or 0. Lines are counted from
// 1.
func (s *Shader) instruction(line int) ir.Value {
	if line < 1 || line > len(s.lines) {
		return 0
	}
	return s.lines[line-1]
}
