package wgsl

import (
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// encoder copies Go values to their positions in a WGSL type.
type encoder struct {
	name string
	typ  *Type    // nil if the kernel has no parameters
	made sync.Map // reflect.Type -> *encoding
}

// encoding says how to copy the values of one Go type.
type encoding struct {
	moves []move
	err   error
	// inPlace means that values are not copied: each field must already have the offset of WGSL.
	inPlace bool
}

// move copies n bytes from one offset to another.
type move struct{ from, to, n uintptr }

// encode appends params, a value or a pointer to one, in the layout of WGSL.
func (e *encoder) encode(dst []byte, params any) ([]byte, error) {
	v := reflect.ValueOf(params)
	if e.typ == nil {
		if params == nil || v.Kind() == reflect.Struct && v.NumField() == 0 {
			return dst, nil
		}
		return dst, e.fail("the kernel has no parameters, but got a %T", params)
	}
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	} else if params != nil && v.Kind() != reflect.Pointer {
		p := reflect.New(v.Type()).Elem()
		p.Set(v)
		v = p
	}
	if !v.IsValid() || !v.CanAddr() {
		return dst, e.fail("the kernel expects parameters for %v, but got %T", e.typ, params)
	}
	c := e.of(v.Type())
	if c.err != nil {
		return dst, c.err
	}
	n := len(dst)
	dst = append(dst, make([]byte, roundUp(e.typ.Size, 16))...)
	from := unsafe.Slice((*byte)(v.Addr().UnsafePointer()), v.Type().Size())
	for _, m := range c.moves {
		copy(dst[n:][m.to:m.to+m.n], from[m.from:m.from+m.n])
	}
	return dst, nil
}

func (e *encoder) fail(format string, args ...any) error {
	return fmt.Errorf("wgsl: %s: %s: %w", e.name, fmt.Sprintf(format, args...), kernel.ErrParams)
}

// of returns the encoding of a Go type.
func (e *encoder) of(t reflect.Type) *encoding {
	if c, ok := e.made.Load(t); ok {
		return c.(*encoding)
	}
	c := new(encoding)
	if why := c.plan(t, 0, e.typ, 0, ""); why != "" {
		c.err = e.fail("%s", why)
	}
	e.made.Store(t, c)
	return c
}

// plan adds the moves for a value of type t at offset from to a value of type w at offset to. path
// is the name of the value in messages. plan returns a description of a mismatch, or "".
func (c *encoding) plan(t reflect.Type, from uintptr, w *Type, to uintptr, path string) string {
	mismatch := func() string {
		if c.inPlace && fits(t, w.Name) {
			return fmt.Sprintf("%s is at offset %d in Go, and at offset %d in WGSL: add padding before it, for example _ [%d]byte", c.place(path), from, to, to-from)
		}
		return fmt.Sprintf("%s is %v at offset %d in Go, and %v at offset %d in WGSL", c.place(path), t, from, w, to)
	}
	elements := func(n uint32, elem *Type, stride uintptr) string {
		if t.Kind() != reflect.Array || t.Len() != int(n) {
			return mismatch()
		}
		for i := range uintptr(n) {
			if why := c.plan(t.Elem(), from+i*t.Elem().Size(), elem, to+i*stride, fmt.Sprintf("%s[%d]", path, i)); why != "" {
				return why
			}
		}
		return ""
	}
	switch w.Kind {
	case Vector:
		return elements(w.Len, w.Elem, uintptr(w.Elem.Size))
	case Matrix, ArrayType:
		return elements(w.Len, w.Elem, uintptr(w.Stride))
	case Struct:
		if t.Kind() != reflect.Struct {
			return mismatch()
		}
		return c.fields(t, from, w, to, path)
	case AtomicType:
		return c.plan(t, from, w.Elem, to, path)
	case Scalar:
		if !fits(t, w.Name) || c.inPlace && from != to {
			return mismatch()
		}
		if n := len(c.moves); n > 0 {
			if last := &c.moves[n-1]; last.from+last.n == from && last.to+last.n == to {
				last.n += uintptr(w.Size)
				return ""
			}
		}
		c.moves = append(c.moves, move{from, to, uintptr(w.Size)})
		return ""
	}
	return mismatch()
}

// fields adds the moves for the fields of a struct.
func (c *encoding) fields(t reflect.Type, from uintptr, w *Type, to uintptr, path string) string {
	byName := make(map[string]int, t.NumField())
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("wgsl")
		if name == "" {
			name = f.Name
		}
		if name == "_" {
			continue
		}
		key := folded(name)
		if _, twice := byName[key]; twice {
			return fmt.Sprintf("%s has two fields for %s", c.place(path), name)
		}
		byName[key] = i
		names = append(names, f.Name)
	}
	for i := range w.Fields {
		m := &w.Fields[i]
		at, ok := byName[folded(m.Name)]
		if !ok {
			if strings.HasPrefix(m.Name, "_") {
				continue
			}
			return fmt.Sprintf("%s has no field for member %s of %s: its fields are %s", c.place(path), m.Name, w.Name, strings.Join(names, ", "))
		}
		delete(byName, folded(m.Name))
		f := t.Field(at)
		name := f.Name
		if path != "" {
			name = path + "." + name
		}
		if why := c.plan(f.Type, from+f.Offset, m.Type, to+uintptr(m.Offset), name); why != "" {
			return why
		}
	}
	for i := range t.NumField() {
		left := false
		for _, at := range byName {
			left = left || at == i
		}
		if !left {
			continue
		}
		return fmt.Sprintf("%s has a field %s, for which %s has no member", c.place(path), t.Field(i).Name, w.Name)
	}
	return ""
}

// place returns the name of the value at path in messages.
func (c *encoding) place(path string) string {
	switch {
	case path != "":
		return path
	case c.inPlace:
		return "the struct"
	}
	return "the struct of parameters"
}

// elements returns an error if values of a Go type cannot be the elements of a buffer.
func elements(v *Variable, t reflect.Type) error {
	if v.Type.Kind != ArrayType {
		return fmt.Errorf("the buffer has type %v; it must be an array of structures: %w", v.Type, op.ErrUnsupported)
	}
	elem := v.Type.Elem
	c := &encoding{inPlace: true}
	why := c.plan(t, 0, elem, 0, "")
	if why == "" && uint64(t.Size()) != v.Type.Stride {
		why = fmt.Sprintf("the struct has %d bytes in Go, and %d in WGSL: add padding at its end, as a field _", t.Size(), v.Type.Stride)
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%v cannot be an element of type %v: %s: %w", t, elem, why, op.ErrUnsupported)
}

// folded returns a name in lower case and without underscores.
func folded(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// fits reports whether values of a Go type have the representation of a WGSL scalar type.
func fits(t reflect.Type, scalar string) bool {
	switch scalar {
	case "f32":
		return t.Kind() == reflect.Float32
	case "i32":
		return t.Kind() == reflect.Int32
	case "u32":
		return t.Kind() == reflect.Uint32
	case "f16":
		return t == reflect.TypeFor[op.Float16]()
	case "i64":
		return t.Kind() == reflect.Int64
	case "u64":
		return t.Kind() == reflect.Uint64
	case "f64":
		return t.Kind() == reflect.Float64
	}
	return false
}
