package onnxtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/rayo-go/rayo/op"
)

// Model is the part of a ModelProto that the tests need: its graph.
type Model struct {
	Nodes           []Node
	Inputs, Outputs []string // names
}

// Node is a NodeProto: one use of an operator.
type Node struct {
	Operator   string
	In, Out    []string // names, "" for an absent operand or result
	Attributes map[string]Attribute
}

// Attribute is an AttributeProto; one of the values is set.
type Attribute struct {
	Float  float32
	Int    int64
	Text   string
	Tensor *Tensor
	Floats []float32
	Ints   []int64
	Texts  []string
}

// Tensor is a TensorProto whose elements are numbers of at most 64 bits.
type Tensor struct {
	Name  string
	Type  Type
	Shape op.Shape
	// Data holds the elements. Integers beyond 2^53 are rounded, which leaves
	// them beyond what 32 bits hold.
	Data []float64
}

// Type is an element type of ONNX, by the number of TensorProto.DataType.
type Type int64

// The types that are read.
const (
	Float32  Type = 1
	Uint8    Type = 2
	Int8     Type = 3
	Int32    Type = 6
	Int64    Type = 7
	Bool     Type = 9
	Float16  Type = 10
	Uint32   Type = 12
	BFloat16 Type = 16
)

// typeInfo says how elements of a type are stored and what they become.
type typeInfo struct {
	name string
	size int
	as   op.DType // of rayo, wide enough for every value but int64's
	get  func(b []byte) float64
}

var types = map[Type]typeInfo{
	Float32:  {"f32", 4, op.F32, func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }},
	Uint8:    {"u8", 1, op.I32, func(b []byte) float64 { return float64(b[0]) }},
	Int8:     {"i8", 1, op.I32, func(b []byte) float64 { return float64(int8(b[0])) }},
	Int32:    {"i32", 4, op.I32, func(b []byte) float64 { return float64(int32(binary.LittleEndian.Uint32(b))) }},
	Int64:    {"i64", 8, op.I32, func(b []byte) float64 { return float64(int64(binary.LittleEndian.Uint64(b))) }},
	Bool:     {"bool", 1, op.Bool, func(b []byte) float64 { return float64(b[0]) }},
	Float16:  {"f16", 2, op.F16, func(b []byte) float64 { return float64(op.F16ToFloat32(binary.LittleEndian.Uint16(b))) }},
	Uint32:   {"u32", 4, op.U32, func(b []byte) float64 { return float64(binary.LittleEndian.Uint32(b)) }},
	BFloat16: {"bf16", 2, op.BF16, func(b []byte) float64 { return float64(op.BF16ToFloat32(binary.LittleEndian.Uint16(b))) }},
}

// String names the type as rayo does.
func (t Type) String() string {
	if i, ok := types[t]; ok {
		return i.name
	}
	return fmt.Sprintf("type %d", int64(t))
}

// DType returns the element type of rayo in which elements of type t are
// computed: the same, or i32 for other integers.
func (t Type) DType() op.DType { return types[t].as }

var (
	errText   = errors.New("a text is no UTF-8")
	errExtent = errors.New("negative or huge extent")
)

// ParseModel reads a ModelProto.
func ParseModel(b []byte) (*Model, error) {
	var graph []byte
	if err := visit(b, map[uint64]func(field) error{7: raw(&graph)}); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	m := &Model{}
	err := visit(graph, map[uint64]func(field) error{
		1: func(f field) error {
			n, err := parseNode(f.bytes)
			m.Nodes = append(m.Nodes, n)
			return errors.Join(err, f.want(bytesWire))
		},
		11: valueName(&m.Inputs),
		12: valueName(&m.Outputs),
	})
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	return m, nil
}

// valueName appends the name of a ValueInfoProto.
func valueName(list *[]string) func(field) error {
	return func(f field) error {
		var name string
		err := visit(f.bytes, map[uint64]func(field) error{1: text(&name)})
		*list = append(*list, name)
		return errors.Join(err, f.want(bytesWire))
	}
}

func parseNode(b []byte) (Node, error) {
	n := Node{Attributes: map[string]Attribute{}}
	err := visit(b, map[uint64]func(field) error{
		1: texts(&n.In), 2: texts(&n.Out), 4: text(&n.Operator),
		5: func(f field) error {
			name, a, err := parseAttribute(f.bytes)
			n.Attributes[name] = a
			return errors.Join(err, f.want(bytesWire))
		},
	})
	if err == nil && !utf8.ValidString(n.Operator) {
		err = errText
	}
	if err != nil {
		return n, fmt.Errorf("node: %w", err)
	}
	return n, nil
}

func parseAttribute(b []byte) (name string, a Attribute, err error) {
	err = visit(b, map[uint64]func(field) error{
		1: text(&name), 2: float(&a.Float), 3: number(&a.Int), 4: text(&a.Text),
		5: func(f field) (err error) {
			a.Tensor, err = ParseTensor(f.bytes)
			return errors.Join(err, f.want(bytesWire))
		},
		7: floats(&a.Floats), 8: numbers(&a.Ints), 9: texts(&a.Texts),
	})
	if err == nil && !utf8.ValidString(name) {
		err = errText
	}
	if err != nil {
		err = fmt.Errorf("attribute: %w", err)
	}
	return name, a, err
}

// stored are the lists of a TensorProto in which its elements may stand.
type stored struct {
	raw    []byte
	hasRaw bool
	floats []float32
	ints   []int64 // of int32_data, int64_data and uint64_data
}

// ParseTensor reads a TensorProto.
func ParseTensor(b []byte) (*Tensor, error) {
	t := &Tensor{}
	var s stored
	var dims []int64
	var typ, where int64
	err := visit(b, map[uint64]func(field) error{
		1: numbers(&dims), 2: number(&typ), 4: floats(&s.floats), 5: numbers(&s.ints), 7: numbers(&s.ints),
		8: text(&t.Name), 11: numbers(&s.ints), 14: number(&where),
		9: func(f field) error {
			s.raw, s.hasRaw = f.bytes, true
			return f.want(bytesWire)
		},
	})
	t.Type = Type(typ)
	if err == nil && where != 0 {
		err = errors.New("its elements are in another file")
	}
	if err == nil {
		err = t.fill(dims, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("tensor: %w", err)
	}
	return t, nil
}

// fill sets shape and elements.
func (t *Tensor) fill(dims []int64, s *stored) error {
	info, ok := types[t.Type]
	if !ok {
		return fmt.Errorf("elements of %v, which is not supported", t.Type)
	}
	t.Shape = op.Shape{}
	for _, d := range dims {
		if d < 0 || d > math.MaxInt32 {
			return errExtent
		}
		t.Shape = append(t.Shape, int(d))
	}
	n, err := t.Shape.Size()
	if err != nil {
		return errExtent
	}
	have := len(s.ints)
	switch {
	case s.hasRaw:
		have = len(s.raw) / info.size
		if len(s.raw)%info.size != 0 {
			return errTruncated
		}
	case t.Type == Float32:
		have = len(s.floats)
	}
	if have != n {
		return fmt.Errorf("%d elements for %v", have, t.Shape)
	}
	t.Data = make([]float64, n)
	var element [8]byte
	for i := range t.Data {
		switch {
		case s.hasRaw:
			t.Data[i] = info.get(s.raw[i*info.size:])
		case t.Type == Float32:
			t.Data[i] = float64(s.floats[i])
		default: // the low bytes are the element
			binary.LittleEndian.PutUint64(element[:], uint64(s.ints[i]))
			t.Data[i] = info.get(element[:])
		}
	}
	return nil
}
