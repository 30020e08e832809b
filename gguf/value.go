package gguf

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
)

// Kind is the type of a metadata value.
type Kind uint32

// The kinds, with their numbers in files.
const (
	Uint8 Kind = iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Float32
	Bool
	String
	Array
	Uint64
	Int64
	Float64
)

// kinds has for each kind the name, the number of bytes of a value (0 if it varies), and the
// interpretation of its bits.
var kinds = [...]struct {
	name   string
	size   int
	signed bool
	float  bool
}{
	Uint8: {name: "u8", size: 1}, Int8: {name: "i8", size: 1, signed: true},
	Uint16: {name: "u16", size: 2}, Int16: {name: "i16", size: 2, signed: true},
	Uint32: {name: "u32", size: 4}, Int32: {name: "i32", size: 4, signed: true},
	Float32: {name: "f32", size: 4, float: true}, Bool: {name: "bool", size: 1},
	String: {name: "string"}, Array: {name: "array"},
	Uint64: {name: "u64", size: 8}, Int64: {name: "i64", size: 8, signed: true},
	Float64: {name: "f64", size: 8, float: true},
}

// String returns a short name: u32.
func (k Kind) String() string {
	if k.valid() {
		return kinds[k].name
	}
	return fmt.Sprintf("Kind(%d)", uint32(k))
}

func (k Kind) valid() bool { return int(k) < len(kinds) }

// Value is a metadata value. Values do not change. The zero Value is the u8 0.
type Value struct {
	kind, elem Kind
	n          int    // the number of elements of an array
	bits       uint64 // the bits of a number; a float32 has its own bits
	data       string // a string, or the elements of an array in the encoding of files
}

// Scalar are the Go types of values that are not arrays.
type Scalar interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64 | bool | string
}

// NewValue returns the value of the kind that corresponds to the Go type.
func NewValue[T Scalar](x T) Value {
	switch x := any(x).(type) {
	case uint8:
		return Value{kind: Uint8, bits: uint64(x)}
	case int8:
		return Value{kind: Int8, bits: uint64(x)}
	case uint16:
		return Value{kind: Uint16, bits: uint64(x)}
	case int16:
		return Value{kind: Int16, bits: uint64(x)}
	case uint32:
		return Value{kind: Uint32, bits: uint64(x)}
	case int32:
		return Value{kind: Int32, bits: uint64(x)}
	case uint64:
		return Value{kind: Uint64, bits: x}
	case int64:
		return Value{kind: Int64, bits: uint64(x)}
	case float32:
		return Value{kind: Float32, bits: uint64(math.Float32bits(x))}
	case float64:
		return Value{kind: Float64, bits: math.Float64bits(x)}
	case bool:
		if x {
			return Value{kind: Bool, bits: 1}
		}
		return Value{kind: Bool}
	case string:
		return Value{kind: String, data: x}
	}
	panic("unreachable: Scalar lists the types above")
}

// NewArray returns an array of values of one kind.
func NewArray[T Scalar](xs []T) Value {
	var zero T
	v := Value{kind: Array, elem: NewValue(zero).kind, n: len(xs)}
	var b []byte
	for _, x := range xs {
		b = NewValue(x).append(b)
	}
	v.data = string(b)
	return v
}

// append appends the value in the encoding of the file.
func (v Value) append(b []byte) []byte {
	switch v.kind {
	case String:
		return append(binary.LittleEndian.AppendUint64(b, uint64(len(v.data))), v.data...)
	case Array:
		b = binary.LittleEndian.AppendUint32(b, uint32(v.elem))
		return append(binary.LittleEndian.AppendUint64(b, uint64(v.n)), v.data...)
	}
	var all [8]byte
	binary.LittleEndian.PutUint64(all[:], v.bits)
	return append(b, all[:kinds[v.kind].size]...)
}

// number decodes a number of a kind with a fixed size.
func number(k Kind, b string) Value {
	var bits uint64
	for i := len(b) - 1; i >= 0; i-- {
		bits = bits<<8 | uint64(b[i])
	}
	if kinds[k].signed {
		unused := 64 - 8*len(b)
		bits = uint64(int64(bits<<unused) >> unused)
	}
	if k == Bool && bits != 0 {
		bits = 1
	}
	return Value{kind: k, bits: bits}
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind { return v.kind }

// Elem returns the kind of the elements of an array.
func (v Value) Elem() Kind { return v.elem }

// Len returns the number of elements of an array.
func (v Value) Len() int { return v.n }

// Text returns the value if it is a string.
func (v Value) Text() (s string, ok bool) { return v.data, v.kind == String }

// Bool returns the value if it is a boolean.
func (v Value) Bool() (b, ok bool) { return v.bits != 0, v.kind == Bool }

// Uint returns the value if it is an integer of any kind and not negative.
func (v Value) Uint() (n uint64, ok bool) {
	if !v.integer() || kinds[v.kind].signed && int64(v.bits) < 0 {
		return 0, false
	}
	return v.bits, true
}

// Int returns the value if it is an integer of any kind that fits an int64.
func (v Value) Int() (n int64, ok bool) {
	if !v.integer() || !kinds[v.kind].signed && v.bits > math.MaxInt64 {
		return 0, false
	}
	return int64(v.bits), true
}

func (v Value) integer() bool {
	k := kinds[v.kind]
	return k.size > 0 && !k.float && v.kind != Bool
}

// Float returns the value if it is a number of any kind. Integers are rounded to float64.
func (v Value) Float() (x float64, ok bool) {
	switch {
	case v.kind == Float32:
		return float64(math.Float32frombits(uint32(v.bits))), true
	case v.kind == Float64:
		return math.Float64frombits(v.bits), true
	case v.integer() && kinds[v.kind].signed:
		return float64(int64(v.bits)), true
	}
	return float64(v.bits), v.integer()
}

// All returns the elements of an array in order; it yields nothing for other kinds.
func (v Value) All() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		data, size := v.data, kinds[v.elem].size
		for i := range v.n {
			var e Value
			if v.elem == String {
				n := 8 + int(number(Uint64, data[:8]).bits)
				e = Value{kind: String, data: data[8:n]}
				data = data[n:]
			} else {
				e = number(v.elem, data[:size])
				data = data[size:]
			}
			if !yield(i, e) {
				return
			}
		}
	}
}

// Slice returns the elements of an array as Go values of type T. If T is an integer type,
// the elements may be integers of any kind that fit T. If T is a floating-point type, they
// may be numbers of any kind. Otherwise the error is ErrValue.
func Slice[T Scalar](v Value) ([]T, error) {
	if v.kind != Array {
		return nil, fmt.Errorf("gguf: %w: %v is not an array", ErrValue, v.kind)
	}
	xs := make([]T, 0, v.n)
	for i, e := range v.All() {
		x, ok := as[T](e)
		if !ok {
			return nil, fmt.Errorf("gguf: %w: element %d is %v of type %v, which is not a valid %T", ErrValue, i, e, e.kind, x)
		}
		xs = append(xs, x)
	}
	return xs, nil
}

// as converts a value that is not an array.
func as[T Scalar](v Value) (x T, ok bool) {
	var y any
	switch any(x).(type) {
	case string:
		y, ok = v.Text()
	case bool:
		y, ok = v.Bool()
	case float32:
		var f float64
		f, ok = v.Float()
		y = float32(f)
	case float64:
		y, ok = v.Float()
	default:
		return asInteger[T](v)
	}
	return y.(T), ok
}

func asInteger[T Scalar](v Value) (x T, ok bool) {
	k := NewValue(x).kind
	size := 8 * kinds[k].size
	if kinds[k].signed {
		n, ok := v.Int()
		if !ok || n<<(64-size)>>(64-size) != n {
			return x, false
		}
		v.bits = uint64(n)
	} else if n, ok := v.Uint(); !ok || n<<(64-size)>>(64-size) != n {
		return x, false
	}
	var y any
	switch any(x).(type) {
	case uint8:
		y = uint8(v.bits)
	case int8:
		y = int8(v.bits)
	case uint16:
		y = uint16(v.bits)
	case int16:
		y = int16(v.bits)
	case uint32:
		y = uint32(v.bits)
	case int32:
		y = int32(v.bits)
	case uint64:
		y = v.bits
	case int64:
		y = int64(v.bits)
	}
	return y.(T), true
}

// String returns the value as text: a string unchanged, and the first eight elements of an array.
func (v Value) String() string {
	switch {
	case v.kind == String:
		return v.data
	case v.kind == Bool:
		return strconv.FormatBool(v.bits != 0)
	case v.kind == Float32:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(v.bits))), 'g', -1, 32)
	case v.kind == Float64:
		return strconv.FormatFloat(math.Float64frombits(v.bits), 'g', -1, 64)
	case v.kind != Array && kinds[v.kind].signed:
		return strconv.FormatInt(int64(v.bits), 10)
	case v.kind != Array:
		return strconv.FormatUint(v.bits, 10)
	}
	var b strings.Builder
	b.WriteByte('[')
	for i, e := range v.All() {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == 8 {
			fmt.Fprintf(&b, "… %d in all", v.n)
			break
		}
		if e.kind == String {
			b.WriteString(strconv.Quote(e.data))
		} else {
			b.WriteString(e.String())
		}
	}
	b.WriteByte(']')
	return b.String()
}

// Equal reports whether two values have the same kind and the same bits.
func (v Value) Equal(o Value) bool { return v == o }
