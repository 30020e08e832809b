package kernel

import (
	"reflect"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// uniformsOf lists the fields of a parameter struct.
func uniformsOf(t reflect.Type) ([]ir.Uniform, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("the parameters have type %v; they must be a struct of float32, int32 and uint32 fields", t)
	}
	var us []ir.Uniform
	for i := range t.NumField() {
		f := t.Field(i)
		u := ir.Uniform{Name: f.Name, Offset: uint32(f.Offset)}
		switch f.Type.Kind() {
		case reflect.Float32:
			u.Type = ir.F32
		case reflect.Int32:
			u.Type = ir.I32
		case reflect.Uint32:
			u.Type = ir.U32
		default:
			return nil, fmt.Errorf("parameter %s has type %v; it must be float32, int32 or uint32", f.Name, f.Type)
		}
		if !identifier(f.Name) {
			return nil, fmt.Errorf("parameter %q has an invalid name: use letters, digits and underscores", f.Name)
		}
		us = append(us, u)
	}
	if len(us) > maxParams {
		return nil, fmt.Errorf("there are %d parameters; at most %d are supported", len(us), maxParams)
	}
	return us, nil
}

// maxParams limits the block of parameters to a size that every device can bind as one buffer.
const maxParams = 1024

// F32 returns a parameter, named by the address of its field: b.F32(&p.Scale).
func (b *Builder) F32(field *float32) F32 { return F32(b.param(unsafe.Pointer(field), kF32)) }

// I32 returns a parameter, named by the address of its field.
func (b *Builder) I32(field *int32) I32 { return I32(b.param(unsafe.Pointer(field), kI32)) }

// U32 returns a parameter, named by the address of its field.
func (b *Builder) U32(field *uint32) U32 { return U32(b.param(unsafe.Pointer(field), kU32)) }

func (b *Builder) param(field unsafe.Pointer, k kind) handle {
	if !b.ready() {
		return handle{b: b.owner()}
	}
	off := uintptr(field) - uintptr(b.params)
	if field == nil || off >= b.paramLen {
		return b.fail("the pointer is not the address of a field of the kernel's parameters")
	}
	// Fields have four bytes each.
	return handle{b: b, id: b.pure(head(ir.Param32, k, 0), 0, 0, 0, uint32(off/4))}
}
