package wgsl

import (
	"slices"
	"strings"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Type is a type of a text that can be in memory, with its layout by the rules of the language.
type Type struct {
	Kind   TypeKind
	Elem   *Type   // element type of vectors, arrays and atomics; column type of matrices
	Len    uint32  // number of components, columns or elements; 0 for a runtime-sized array
	Name   string  // name of a structure or a scalar
	Fields []Field // members of a structure

	Size   uint64 // bytes; without the elements of a runtime-sized array
	Align  uint64
	Stride uint64 // stride of the elements of an array, or of the columns of a matrix, in bytes

	// set has the types of the scalars in t.
	set uint8
	// raised is set if an attribute aligns a member of a structure more than the types of the
	// members require.
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

// String returns the type in WGSL.
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

// runtime reports whether the type contains a runtime-sized array.
func (t *Type) runtime() bool {
	switch t.Kind {
	case ArrayType:
		return t.Len == 0
	case Struct:
		return t.Fields[len(t.Fields)-1].Type.runtime()
	}
	return false
}

// scalarNames are the names of the scalar types. A set of them has one bit for each, in this order.
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

// maxSize limits the sizes of types. No buffer is larger, and sums of two sizes do not overflow.
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

// arrayOf returns an array of n elements, or a runtime-sized array for n = 0.
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

// errRaised rejects a structure within another type if @align raises its alignment: naga ignores
// the attribute there, so compilers would disagree about the layout.
func errRaised(t *Type) error {
	return fmt.Errorf("%s has a member with @align and is used within another type, for which compilers compute different layouts: use @size instead", t.Name)
}

// member is a member of a structure with its attributes. A value of 0 means that the attribute is
// absent.
type member struct {
	name        string
	typ         *Type
	align, size uint64
}

// structure computes the layout of a structure.
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
				return nil, fmt.Errorf("@size(%d) of %s is too small: its type has %d bytes", m.size, m.name, size)
			}
			size = m.size
		}
		if m.typ.runtime() && i+1 < len(ms) {
			return nil, fmt.Errorf("%s has no fixed size and is not the last member", m.name)
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

// builtInType returns the type of a predeclared name without a template list, or nil.
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

// vectorLen returns 2, 3 or 4 for vec2, vec3 and vec4, and 0 for other names.
func vectorLen(name string) uint32 {
	if strings.HasPrefix(name, "vec") && len(name) == 4 && name[3] >= '2' && name[3] <= '4' {
		return uint32(name[3] - '0')
	}
	return 0
}

// matrixShape returns the numbers of columns and rows for mat2x2 to mat4x4, and 0 for other names.
func matrixShape(name string) (columns, rows uint32) {
	if strings.HasPrefix(name, "mat") && len(name) == 6 && name[4] == 'x' &&
		name[3] >= '2' && name[3] <= '4' && name[5] >= '2' && name[5] <= '4' {
		return uint32(name[3] - '0'), uint32(name[5] - '0')
	}
	return 0, 0
}
