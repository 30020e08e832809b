// Package wasm writes modules of WebAssembly: the binary format, functions of
// instructions, vectors of 128 bits included, and scalar expressions of
// package ir as instructions on vectors.
//
// A module of this package works on an imported memory. It has only functions and a
// table of functions: no data, no globals, and no instruction that grows the memory.
// So it can share the memory of a program that was compiled without it.
package wasm

import "math"

// Type is the type of a value.
type Type byte

// The types.
const (
	I32  Type = 0x7f
	I64  Type = 0x7e
	F32  Type = 0x7d
	F64  Type = 0x7c
	V128 Type = 0x7b
)

// Signature is the type of a function.
type Signature struct{ Params, Results []Type }

// Module collects functions. The zero Module is empty.
type Module struct {
	signatures [][]byte
	functions  []*Func
	exports    []export
	table      []int // the functions in the table
}

type export struct {
	name string
	f    *Func
}

// signature returns the index of s in the module, and adds s if it is not there.
func (m *Module) signature(s Signature) int {
	b := []byte{0x60}
	for _, ts := range [][]Type{s.Params, s.Results} {
		b = appendUint(b, uint64(len(ts)))
		for _, t := range ts {
			b = append(b, byte(t))
		}
	}
	for i, have := range m.signatures {
		if string(have) == string(b) {
			return i
		}
	}
	m.signatures = append(m.signatures, b)
	return len(m.signatures) - 1
}

// Func adds an empty function and returns it.
func (m *Module) Func(s Signature) *Func {
	f := &Func{m: m, index: len(m.functions), signature: m.signature(s), params: len(s.Params)}
	f.types = append(f.types, s.Params...)
	m.functions = append(m.functions, f)
	return f
}

// Export makes f callable from outside under a name.
func (m *Module) Export(name string, f *Func) { m.exports = append(m.exports, export{name, f}) }

// Enter adds f to the table and returns its index there, for [Func.CallIndirect].
func (m *Module) Enter(f *Func) int {
	m.table = append(m.table, f.index)
	return len(m.table) - 1
}

// Bytes returns the module in the binary format. Its only import is the memory
// "memory" of "env".
func (m *Module) Bytes() []byte {
	b := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	section := func(id byte, count int, content []byte) {
		if count == 0 {
			return
		}
		content = append(appendUint(nil, uint64(count)), content...)
		b = append(b, id)
		b = append(appendUint(b, uint64(len(content))), content...)
	}
	var types, funcs, exports, code []byte
	for _, s := range m.signatures {
		types = append(types, s...)
	}
	section(1, len(m.signatures), types)
	imports := appendName(appendName(nil, "env"), "memory")
	section(2, 1, append(imports, 2, 0, 1)) // a memory of at least one page
	for _, f := range m.functions {
		funcs = appendUint(funcs, uint64(f.signature))
		body := f.bytes()
		code = append(appendUint(code, uint64(len(body))), body...)
	}
	section(3, len(m.functions), funcs)
	if n := uint64(len(m.table)); n > 0 {
		section(4, 1, appendUint(appendUint([]byte{0x70, 1}, n), n))
	}
	for _, e := range m.exports {
		exports = append(appendName(exports, e.name), 0)
		exports = appendUint(exports, uint64(e.f.index))
	}
	section(7, len(m.exports), exports)
	if len(m.table) > 0 {
		elements := []byte{0, 0x41, 0, 0x0b} // elements of table 0 from index 0 on
		elements = appendUint(elements, uint64(len(m.table)))
		for _, f := range m.table {
			elements = appendUint(elements, uint64(f))
		}
		section(9, 1, elements)
	}
	section(10, len(m.functions), code)
	return b
}

func appendName(b []byte, s string) []byte { return append(appendUint(b, uint64(len(s))), s...) }

// appendUint appends v as LEB128.
func appendUint(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// appendInt appends v as signed LEB128.
func appendInt(b []byte, v int64) []byte {
	for v < -0x40 || v >= 0x40 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v)&0x7f)
}

func appendF32(b []byte, v float32) []byte {
	w := math.Float32bits(v)
	return append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
}
