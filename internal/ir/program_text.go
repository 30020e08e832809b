package ir

import "github.com/rayo-go/rayo/internal/fmt"

// Text is a kernel that its author wrote in the language of one kind of device.
// A program with a text has no Code; its Bindings, Local and Name were parsed from
// the text. Only devices that accept the language run it, and they treat the text as
// untrusted input.
type Text struct {
	Language Language
	// Source is the text. The storage buffers are in it the bindings 0, 1 ... of
	// group 0, in the order of Program.Bindings; the uniform buffers, the Blocks,
	// follow them. (The text says so whatever numbers its author gave.)
	Source string
	Entry  string
	// ParamBytes is the size of the block of parameters, 0 if there is none.
	// Program.Uniforms is then one entry that stands for all of it.
	ParamBytes uint32
	// Blocks are the parts of the block of parameters that are uniform buffers.
	Blocks []Block
	// SharedBytes is the workgroup memory that the text declares.
	SharedBytes uint64
	// Features are those that the text uses, as its language numbers them.
	Features uint32
	// Layouts say how large the Bindings are.
	Layouts []Layout
}

// Block is a part of the block of parameters: Bytes at Offset, a multiple of [BlockAlign].
type Block struct{ Offset, Bytes uint32 }

// BlockAlign is an offset alignment of uniform buffers that every WebGPU device supports.
const BlockAlign = 256

// Layout is the size of a buffer that a text declares: at least Head bytes,
// followed by a whole number of elements of Stride bytes if Stride is not 0. A buffer of Mixed elements takes any type of four bytes: the text
// reads structures in it.
type Layout struct {
	Head, Stride uint32
	Mixed        bool
}

// Language is a language of texts.
type Language uint8

// The languages of texts.
const (
	WGSL Language = iota + 1
	PTX
)

// String returns the name of the language.
func (l Language) String() string {
	switch l {
	case WGSL:
		return "WGSL"
	case PTX:
		return "PTX"
	}
	return fmt.Sprintf("Language(%d)", uint8(l))
}
