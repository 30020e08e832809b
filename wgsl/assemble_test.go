package wgsl

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// assembler makes programs instruction by instruction.
type assembler struct {
	ir.Program
	open []ir.Value
}

func assemble(name string, local ...uint32) *assembler {
	a := &assembler{Program: ir.Program{Name: name, Local: [3]uint32{64, 1, 1}, Budget: 1000, Code: make([]ir.Instr, 1)}}
	copy(a.Local[:], local)
	return a
}

func (a *assembler) push(in ir.Instr) ir.Value {
	a.Code = append(a.Code, in)
	return ir.Value(len(a.Code) - 1)
}

// op appends an instruction with a value.
func (a *assembler) op(c ir.Code, t ir.Type, width uint8, args ...ir.Value) ir.Value {
	in := ir.Instr{Code: c, Type: t, Width: width}
	copy(in.Args[:], args)
	if len(args) == 4 {
		in.Imm = uint32(args[3])
	}
	return a.push(in)
}

// do appends an instruction without a value.
func (a *assembler) do(c ir.Code, imm uint32, args ...ir.Value) ir.Value {
	in := ir.Instr{Code: c, Imm: imm}
	copy(in.Args[:], args)
	return a.push(in)
}

func (a *assembler) f32(v float32) ir.Value {
	return a.push(ir.Instr{Code: ir.Const, Type: ir.F32, Width: 1, Imm: math.Float32bits(v)})
}

func (a *assembler) u32(v uint32) ir.Value {
	return a.push(ir.Instr{Code: ir.Const, Type: ir.U32, Width: 1, Imm: v})
}

func (a *assembler) i32(v int32) ir.Value {
	return a.push(ir.Instr{Code: ir.Const, Type: ir.I32, Width: 1, Imm: uint32(v)})
}

// constant returns a vector of ones of the type.
func (a *assembler) constant(t ir.Type, width uint8, bits uint32) ir.Value {
	v := a.push(ir.Instr{Code: ir.Const, Type: t, Width: 1, Imm: bits})
	if width > 1 {
		v = a.op(ir.Splat, t, width, v)
	}
	return v
}

func (a *assembler) builtIn(flag uint8) ir.Value {
	return a.push(ir.Instr{Code: ir.BuiltIn, Type: ir.U32, Width: 1, Flag: flag})
}

func (a *assembler) buffer(name string, t ir.Type, width uint8, access ir.Access) uint32 {
	a.Bindings = append(a.Bindings, ir.Binding{Name: name, Type: t, Width: width, Access: access})
	return uint32(len(a.Bindings) - 1)
}

func (a *assembler) array(name string, t ir.Type, width uint8, n uint32, atomic bool) uint32 {
	a.Shared = append(a.Shared, ir.Array{Name: name, Type: t, Width: width, Len: n, Atomic: atomic})
	return uint32(len(a.Shared) - 1)
}

func (a *assembler) variable(name string, t ir.Type, width uint8) uint32 {
	a.Vars = append(a.Vars, ir.Var{Name: name, Type: t, Width: width})
	return uint32(len(a.Vars) - 1)
}

func (a *assembler) param(name string, t ir.Type) ir.Value {
	a.Uniforms = append(a.Uniforms, ir.Uniform{Name: name, Type: t, Offset: 4 * uint32(len(a.Uniforms))})
	return a.push(ir.Instr{Code: ir.Param32, Type: t, Width: 1, Imm: uint32(len(a.Uniforms) - 1)})
}

func (a *assembler) load(b uint32, i ir.Value) ir.Value {
	x := a.Bindings[b]
	return a.push(ir.Instr{Code: ir.Load, Type: x.Type, Width: x.Width, Imm: b, Args: [3]ir.Value{i}})
}

func (a *assembler) loadShared(b uint32, i ir.Value) ir.Value {
	x := a.Shared[b]
	return a.push(ir.Instr{Code: ir.LoadShared, Type: x.Type, Width: x.Width, Imm: b, Args: [3]ir.Value{i}})
}

func (a *assembler) get(v uint32) ir.Value {
	return a.push(ir.Instr{Code: ir.LoadVar, Type: a.Vars[v].Type, Width: a.Vars[v].Width, Imm: v})
}

func (a *assembler) set(v uint32, x ir.Value) { a.do(ir.StoreVar, v, x) }

func (a *assembler) store(b uint32, i, x ir.Value)       { a.do(ir.Store, b, i, x) }
func (a *assembler) storeShared(b uint32, i, x ir.Value) { a.do(ir.StoreShared, b, i, x) }
func (a *assembler) barrier()                            { a.do(ir.Barrier, 0) }

func (a *assembler) iff(c ir.Value) { a.open = append(a.open, a.do(ir.If, 0, c)) }

func (a *assembler) els() {
	at := a.open[len(a.open)-1]
	e := a.do(ir.Else, 0)
	a.Code[at].Imm = uint32(e)
	a.open[len(a.open)-1] = e
}

func (a *assembler) forr(flag uint8, lo, hi, step ir.Value) ir.Value {
	v := a.push(ir.Instr{Code: ir.For, Type: a.Code[lo].Type, Width: 1, Flag: flag, Args: [3]ir.Value{lo, hi, step}})
	a.open = append(a.open, v)
	return v
}

func (a *assembler) loop(flag uint8) ir.Value {
	v := a.push(ir.Instr{Code: ir.Loop, Flag: flag})
	a.open = append(a.open, v)
	return v
}

func (a *assembler) end() {
	at := a.open[len(a.open)-1]
	a.open = a.open[:len(a.open)-1]
	head := at
	if a.Code[at].Code == ir.Else {
		for i := range a.Code {
			if a.Code[i].Code == ir.If && a.Code[i].Imm == uint32(at) {
				head = ir.Value(i)
			}
		}
	}
	a.Code[at].Imm = uint32(a.do(ir.End, uint32(head)))
}

func (a *assembler) leave(c ir.Code) {
	if c == ir.Return {
		a.do(c, 0)
		return
	}
	for i := len(a.open) - 1; ; i-- {
		if l := a.Code[a.open[i]].Code; l == ir.For || l == ir.Loop {
			a.do(c, uint32(a.open[i]))
			return
		}
	}
}

func (a *assembler) add(x, y ir.Value) ir.Value { return a.same(ir.Add, x, y) }
func (a *assembler) sub(x, y ir.Value) ir.Value { return a.same(ir.Sub, x, y) }
func (a *assembler) mul(x, y ir.Value) ir.Value { return a.same(ir.Mul, x, y) }

func (a *assembler) lt(x, y ir.Value) ir.Value {
	return a.op(ir.Lt, ir.Bool, a.Code[x].Width, x, y)
}

// same applies a code whose result has the type of its first operand.
func (a *assembler) same(c ir.Code, args ...ir.Value) ir.Value {
	return a.op(c, a.Code[args[0]].Type, a.Code[args[0]].Width, args...)
}
