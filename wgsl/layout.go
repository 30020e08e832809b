package wgsl

import (
	"fmt"
	"slices"
	"strings"
)

// Type is a type of a text that memory can hold, laid out by the rules of the
// language.
type Type struct {
	Kind   TypeKind
	Elem   *Type   // of vectors, matrices (a column), arrays and atomics
	Len    uint32  // components, columns, elements; 0 for an array as long as its buffer
	Name   string  // of a structure or a scalar
	Fields []Field // of a structure

	Size   uint64 // bytes; for a runtime-sized array the bytes without elements
	Align  uint64
	Stride uint64 // bytes from one element of an array, or column, to the next

	// set is the types of the scalars that t is made of.
	set uint8
	// raised is set for a structure that an attribute aligns more than its
	// members are.
	raised bool
}

// TypeKind is the kind of a [Type].
type TypeKind uint8

// The kinds of types.
const (
	Scalar TypeKind = iota + 1 // f32, i32, u32, f16, bool, i64, u64, f64: see Name
	Vector
	Matrix
	AtomicType
	ArrayType
	Struct
)

// Field is a member of a structure.
type Field struct {
	Name   string
	Type   *Type
	Offset uint64
}

// String returns the type as the language writes it.
func (t *Type) String() string {
	switch t.Kind {
	case Vector:
		return fmt.Sprintf("vec%d<%v>", t.Len, t.Elem)
	case Matrix:
		return fmt.Sprintf("mat%dx%d<%v>", t.Len, t.Elem.Len, t.Elem.Elem)
	case AtomicType:
		return fmt.Sprintf("atomic<%v>", t.Elem)
	case ArrayType:
		if t.Len == 0 {
			return fmt.Sprintf("array<%v>", t.Elem)
		}
		return fmt.Sprintf("array<%v, %d>", t.Elem, t.Len)
	}
	return t.Name
}

// runtime reports whether the type is as long as its buffer.
func (t *Type) runtime() bool {
	switch t.Kind {
	case ArrayType:
		return t.Len == 0
	case Struct:
		return t.Fields[len(t.Fields)-1].Type.runtime()
	}
	return false
}

// scalarNames are the types of scalars; sets of them are bits in this order.
var scalarNames = [...]string{"f32", "i32", "u32", "f16", "bool", "i64", "u64", "f64"}

const (
	setF32 = 1 << iota
	setI32
	setU32
	setF16
	setBool
	setI64
	setU64
	setF64
)

// maxSize bounds the sizes of types: no buffer is larger, and no sum of two
// overflows.
const maxSize = 1 << 40

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

func scalar(name string) *Type {
	size := uint64(4)
	switch name {
	case "f16":
		size = 2
	case "i64", "u64", "f64":
		size = 8
	}
	return &Type{Kind: Scalar, Name: name, Size: size, Align: size, set: 1 << slices.Index(scalarNames[:], name)}
}

func vectorOf(n uint32, elem *Type) *Type {
	padded := uint64(n)
	if n == 3 {
		padded = 4
	}
	return &Type{Kind: Vector, Elem: elem, Len: n, Size: uint64(n) * elem.Size, Align: padded * elem.Size, set: elem.set}
}

func matrixOf(columns, rows uint32, elem *Type) *Type {
	c := vectorOf(rows, elem)
	stride := roundUp(c.Size, c.Align)
	return &Type{Kind: Matrix, Elem: c, Len: columns, Size: uint64(columns) * stride, Align: c.Align, Stride: stride, set: elem.set}
}

func atomicOf(elem *Type) *Type {
	return &Type{Kind: AtomicType, Elem: elem, Size: elem.Size, Align: elem.Align, set: elem.set}
}

// arrayOf returns an array of n elements, or as many as there are for 0.
func arrayOf(elem *Type, n uint32) (*Type, error) {
	stride := roundUp(elem.Size, elem.Align)
	if elem.raised {
		return nil, errRaised(elem)
	}
	if uint64(n)*stride > maxSize {
		return nil, fmt.Errorf("an array of %d elements of %d bytes is too large", n, stride)
	}
	return &Type{Kind: ArrayType, Elem: elem, Len: n, Size: uint64(n) * stride, Align: elem.Align, Stride: stride, set: elem.set}, nil
}

// errRaised refuses a structure within another type where naga forgets what @align
// says of its members: it would be laid out differently for different compilers.
func errRaised(t *Type) error {
	return fmt.Errorf("compilers disagree where %s lies within another type, as @align aligns it more than its members are: use @size", t.Name)
}

// member is a member of a structure with its attributes; 0 means that an attribute is absent.
type member struct {
	name        string
	typ         *Type
	align, size uint64
}

// structure lays out the members.
func structure(name string, ms []member) (*Type, error) {
	t := &Type{Kind: Struct, Name: name, Align: 1}
	at, natural := uint64(0), uint64(1)
	for i, m := range ms {
		if m.typ.raised {
			return nil, errRaised(m.typ)
		}
		align, size := m.typ.Align, m.typ.Size
		natural = max(natural, align)
		if m.align != 0 {
			if m.align%align != 0 || m.align&(m.align-1) != 0 || m.align > maxSize {
				return nil, fmt.Errorf("@align(%d) of %s must be a power of two and a multiple of %d", m.align, m.name, align)
			}
			align = m.align
		}
		if m.size != 0 {
			if m.size < size || m.size > maxSize {
				return nil, fmt.Errorf("@size(%d) of %s: its type has %d bytes", m.size, m.name, size)
			}
			size = m.size
		}
		if m.typ.runtime() && i+1 < len(ms) {
			return nil, fmt.Errorf("%s has no size and is not the last member", m.name)
		}
		at = roundUp(at, align)
		t.Fields = append(t.Fields, Field{m.name, m.typ, at})
		if at += size; at > maxSize {
			return nil, fmt.Errorf("the structure is too large at %s", m.name)
		}
		t.Align = max(t.Align, align)
		t.set |= m.typ.set
	}
	if len(ms) == 0 {
		return nil, fmt.Errorf("the structure has no members")
	}
	t.raised = t.Align > natural
	t.Size = at
	if !t.runtime() {
		t.Size = roundUp(at, t.Align)
	}
	return t, nil
}

// builtInType returns the type of a name that the language knows without a list
// of types, or nil.
func builtInType(name string) *Type {
	switch name {
	case "f32", "i32", "u32", "f16", "bool", "i64", "u64", "f64":
		return scalar(name)
	}
	if len(name) < 5 {
		return nil
	}
	elem := map[byte]string{'f': "f32", 'i': "i32", 'u': "u32", 'h': "f16"}[name[len(name)-1]]
	if elem == "" {
		return nil
	}
	shape := name[:len(name)-1]
	if n := vectorLen(shape); n != 0 {
		return vectorOf(n, scalar(elem))
	}
	if c, r := matrixShape(shape); c != 0 && (elem == "f32" || elem == "f16") {
		return matrixOf(c, r, scalar(elem))
	}
	return nil
}

// vectorLen returns 2, 3 or 4 for vec2, vec3 and vec4, else 0.
func vectorLen(name string) uint32 {
	if strings.HasPrefix(name, "vec") && len(name) == 4 && name[3] >= '2' && name[3] <= '4' {
		return uint32(name[3] - '0')
	}
	return 0
}

// matrixShape returns columns and rows for mat2x2 ... mat4x4, else 0.
func matrixShape(name string) (columns, rows uint32) {
	if strings.HasPrefix(name, "mat") && len(name) == 6 && name[4] == 'x' &&
		name[3] >= '2' && name[3] <= '4' && name[5] >= '2' && name[5] <= '4' {
		return uint32(name[3] - '0'), uint32(name[5] - '0')
	}
	return 0, 0
}
