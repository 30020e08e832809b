package interp

import (
	"math"
	"runtime"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/ir"
)

// asm writes programs by hand.
type asm struct {
	p    ir.Program
	open []ir.Value
}

func newAsm(name string, x, y, z uint32) *asm {
	return &asm{p: ir.Program{Name: name, Local: [3]uint32{x, y, z}, Code: make([]ir.Instr, 1), Pos: make([]uintptr, 1), Budget: 1 << 16}}
}

func (a *asm) add(in ir.Instr) ir.Value {
	a.p.Code = append(a.p.Code, in)
	var pc [1]uintptr
	runtime.Callers(3, pc[:])
	a.p.Pos = append(a.p.Pos, pc[0])
	return ir.Value(len(a.p.Code) - 1)
}

func (a *asm) buffer(name string, t ir.Type, w uint8, acc ir.Access) uint32 {
	a.p.Bindings = append(a.p.Bindings, ir.Binding{Name: name, Type: t, Width: w, Access: acc})
	return uint32(len(a.p.Bindings) - 1)
}

func (a *asm) shared(name string, t ir.Type, w uint8, n uint32, atomic bool) uint32 {
	a.p.Shared = append(a.p.Shared, ir.Array{Name: name, Type: t, Width: w, Len: n, Atomic: atomic})
	return uint32(len(a.p.Shared) - 1)
}

func (a *asm) variable(name string, t ir.Type, w uint8) uint32 {
	a.p.Vars = append(a.p.Vars, ir.Var{Name: name, Type: t, Width: w})
	return uint32(len(a.p.Vars) - 1)
}

func (a *asm) param(name string, t ir.Type) ir.Value {
	a.p.Uniforms = append(a.p.Uniforms, ir.Uniform{Name: name, Type: t, Offset: uint32(4 * len(a.p.Uniforms))})
	return a.add(ir.Instr{Code: ir.Param32, Type: t, Width: 1, Imm: uint32(len(a.p.Uniforms) - 1)})
}

func (a *asm) bits(t ir.Type, b uint32) ir.Value {
	return a.add(ir.Instr{Code: ir.Const, Type: t, Width: 1, Imm: b})
}
func (a *asm) u(v uint32) ir.Value  { return a.bits(ir.U32, v) }
func (a *asm) i(v int32) ir.Value   { return a.bits(ir.I32, uint32(v)) }
func (a *asm) f(v float32) ir.Value { return a.bits(ir.F32, math.Float32bits(v)) }

func (a *asm) builtIn(flag uint8) ir.Value {
	return a.add(ir.Instr{Code: ir.BuiltIn, Type: ir.U32, Width: 1, Flag: flag})
}

// op applies a code to operands; the type is that of the last.
func (a *asm) op(c ir.Code, args ...ir.Value) ir.Value {
	last := a.p.Code[args[len(args)-1]]
	return a.opT(c, last.Type, last.Width, args...)
}

func (a *asm) opT(c ir.Code, t ir.Type, w uint8, args ...ir.Value) ir.Value {
	in := ir.Instr{Code: c, Type: t, Width: w}
	if c == ir.Compose && w == 4 {
		in.Imm = uint32(args[3])
	}
	copy(in.Args[:], args)
	return a.add(in)
}

func (a *asm) cmp(c ir.Code, x, y ir.Value) ir.Value {
	return a.opT(c, ir.Bool, a.p.Code[x].Width, x, y)
}

func (a *asm) load(b uint32, i ir.Value) ir.Value {
	d := a.p.Bindings[b]
	return a.add(ir.Instr{Code: ir.Load, Type: d.Type, Width: d.Width, Imm: b, Args: [3]ir.Value{i}})
}
func (a *asm) store(b uint32, i, v ir.Value) {
	a.add(ir.Instr{Code: ir.Store, Imm: b, Args: [3]ir.Value{i, v}})
}
func (a *asm) loadShared(s uint32, i ir.Value) ir.Value {
	d := a.p.Shared[s]
	return a.add(ir.Instr{Code: ir.LoadShared, Type: d.Type, Width: d.Width, Imm: s, Args: [3]ir.Value{i}})
}
func (a *asm) storeShared(s uint32, i, v ir.Value) {
	a.add(ir.Instr{Code: ir.StoreShared, Imm: s, Args: [3]ir.Value{i, v}})
}
func (a *asm) get(x uint32) ir.Value {
	d := a.p.Vars[x]
	return a.add(ir.Instr{Code: ir.LoadVar, Type: d.Type, Width: d.Width, Imm: x})
}
func (a *asm) set(x uint32, v ir.Value) {
	a.add(ir.Instr{Code: ir.StoreVar, Imm: x, Args: [3]ir.Value{v}})
}
func (a *asm) atomic(op uint8, b uint32, args ...ir.Value) ir.Value {
	in := ir.Instr{Code: ir.AtomicOp, Type: a.p.Bindings[b].Type, Width: 1, Flag: op, Imm: b}
	if op == ir.AtomicStore {
		in.Type, in.Width = ir.Invalid, 0
	}
	copy(in.Args[:], args)
	return a.add(in)
}
func (a *asm) atomicShared(op uint8, s uint32, args ...ir.Value) ir.Value {
	in := ir.Instr{Code: ir.AtomicOpShared, Type: a.p.Shared[s].Type, Width: 1, Flag: op, Imm: s}
	if op == ir.AtomicStore {
		in.Type, in.Width = ir.Invalid, 0
	}
	copy(in.Args[:], args)
	return a.add(in)
}
func (a *asm) uniformLoad(s uint32, i ir.Value) ir.Value {
	d := a.p.Shared[s]
	return a.add(ir.Instr{Code: ir.UniformLoad, Type: d.Type, Width: d.Width, Imm: s, Args: [3]ir.Value{i}})
}
func (a *asm) barrier() { a.add(ir.Instr{Code: ir.Barrier}) }

func (a *asm) begin(in ir.Instr) ir.Value {
	v := a.add(in)
	a.open = append(a.open, v)
	return v
}
func (a *asm) ifThen(c ir.Value) { a.begin(ir.Instr{Code: ir.If, Args: [3]ir.Value{c}}) }
func (a *asm) otherwise() {
	e := a.add(ir.Instr{Code: ir.Else})
	a.p.Code[a.open[len(a.open)-1]].Imm = uint32(e)
	// The End names the If, which the Else hides.
	a.open = append(a.open, e)
}
func (a *asm) loop(flag uint8) ir.Value { return a.begin(ir.Instr{Code: ir.Loop, Flag: flag}) }
func (a *asm) forRange(start, limit, step ir.Value, flag uint8) ir.Value {
	return a.begin(ir.Instr{Code: ir.For, Type: a.p.Code[start].Type, Width: 1, Flag: flag, Args: [3]ir.Value{start, limit, step}})
}
func (a *asm) end() {
	top := a.open[len(a.open)-1]
	a.open = a.open[:len(a.open)-1]
	head := top
	if a.p.Code[top].Code == ir.Else {
		head = a.open[len(a.open)-1]
		a.open = a.open[:len(a.open)-1]
	}
	e := a.add(ir.Instr{Code: ir.End, Imm: uint32(head)})
	a.p.Code[top].Imm = uint32(e)
}
func (a *asm) exit(c ir.Code) {
	in := ir.Instr{Code: c}
	if c != ir.Return {
		for k := len(a.open) - 1; k >= 0; k-- {
			if h := a.p.Code[a.open[k]].Code; h == ir.For || h == ir.Loop {
				in.Imm = uint32(a.open[k])
				break
			}
		}
	}
	a.add(in)
}

// global is the lane's place in the grid along x.
func (a *asm) global() ir.Value {
	g := a.op(ir.Mul, a.builtIn(ir.BuiltInGroupX), a.u(a.p.Local[0]))
	return a.op(ir.Add, g, a.builtIn(ir.BuiltInLocalX))
}

func (a *asm) compile(t testing.TB) *Kernel {
	t.Helper()
	k, err := Compile(&a.p, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// bytesOf is the memory of a slice.
func bytesOf[T float32 | int32 | uint32 | uint16](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

func paramBytes(vs ...uint32) []byte { return append([]byte(nil), bytesOf(vs)...) }
