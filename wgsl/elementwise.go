package wgsl

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Elementwise is a kernel that computes expressions for each element of the
// result: a chain of fused operations.
//
// Its buffers are the operands, then the results. Its parameters are, four bytes
// each: the number of elements of the result; for each operand of spread Periodic
// or Stretched its extent; the scalar parameters of the expressions.
type Elementwise struct {
	Name string
	// Exprs has an expression for each result. Arg i is operand i, of the type
	// that op.Register gives for it, and Param j scalar parameter j.
	Exprs []*ir.Node
	In    []Operand
	Out   []op.DType
	// Vector has each lane compute four elements. Operands that are Full or
	// Periodic and Even, and all results, are then read and written by four:
	// they must be bound with room for a multiple of four elements, and what is
	// there beyond the last element of a result is overwritten. Results of two
	// bytes an element need it, unless the target has half floats.
	Vector bool
}

// Operand is an array that an elementwise kernel reads.
type Operand struct {
	Type   op.DType
	Spread op.Spread
	// Even says that the extent is a multiple of four.
	Even bool
}

// extended reports whether the operand has an extent: the number of elements
// after which a Periodic one repeats, and for which each element of a Stretched
// one stands.
func (o *Operand) extended() bool { return o.Spread == op.Periodic || o.Spread == op.Stretched }

// elementwiseLanes is how many lanes a workgroup of an elementwise kernel has.
const elementwiseLanes = 256

// Grid returns the workgroups that a result of n elements needs.
func (e *Elementwise) Grid(n int) kernel.Size {
	if e.Vector && n > 0 {
		n = (n-1)/4 + 1
	}
	return kernel.GridFor(n, elementwiseLanes)
}

// AppendParams appends the parameters: the number of elements, an extent for
// each operand that has one, and the scalar parameters.
func (e *Elementwise) AppendParams(dst []byte, n int, extents []int, params []float32) ([]byte, error) {
	count := 0
	for i := range e.In {
		if e.In[i].extended() {
			count++
		}
	}
	if len(extents) != count || len(params) != e.params() {
		return dst, fmt.Errorf("wgsl: %s takes %d extents and %d parameters, not %d and %d", e.Name, count, e.params(), len(extents), len(params))
	}
	for _, v := range append([]int{n}, extents...) {
		if v < 1 || int64(v) > math.MaxUint32 {
			return dst, fmt.Errorf("wgsl: %s: an extent of %d", e.Name, v)
		}
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	for _, v := range params {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst, nil
}

// params returns how many scalar parameters the expressions have.
func (e *Elementwise) params() int {
	n := 0
	for _, x := range e.list() {
		if x.Code == ir.Param {
			n = max(n, x.Index+1)
		}
	}
	return n
}

func (e *Elementwise) list() []*ir.Node {
	list, _ := ir.Flatten(e.Exprs...)
	return list
}

// Print returns the kernel as WGSL for t.
func (e *Elementwise) Print(t Target) (Shader, error) {
	p, err := e.Program(t)
	if err != nil {
		return Shader{}, err
	}
	return printVerified(p, t)
}

// Program returns the kernel for t: whether that has half floats decides how
// they are read.
func (e *Elementwise) Program(t Target) (*ir.Program, error) {
	if err := e.check(&t); err != nil {
		return nil, err
	}
	m := &mapper{e: e, half: t.has(Half), width: 1}
	if e.Vector {
		m.width = 4
	}
	return m.program(), nil
}

func (e *Elementwise) check(t *Target) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("wgsl: elementwise %s: "+format, append([]any{e.Name}, args...)...)
	}
	if len(e.Exprs) == 0 || len(e.Exprs) != len(e.Out) {
		return fail("%d expressions for %d results", len(e.Exprs), len(e.Out))
	}
	for i := range e.In {
		if o := &e.In[i]; op.Register(o.Type) == ir.Invalid || o.Spread > op.Stretched {
			return fail("operand %d of %v, spread %d: %w", i, o.Type, o.Spread, op.ErrUnsupported)
		}
	}
	for i, x := range e.Exprs {
		switch {
		case x == nil:
			return fail("no expression %d", i)
		case op.Register(e.Out[i]) != x.Type || x.Type == ir.Invalid:
			return fail("result %d of %v from an expression of %v: %w", i, e.Out[i], x.Type, op.ErrUnsupported)
		case e.Out[i].Size() == 2 && !e.Vector && !(e.Out[i] == op.F16 && t.has(Half)):
			return fail("result %d of %v without Vector: %w", i, e.Out[i], op.ErrUnsupported)
		}
	}
	for _, x := range e.list() {
		if x.Code == ir.Arg && (x.Index < 0 || x.Index >= len(e.In) || op.Register(e.In[x.Index].Type) != x.Type) {
			return fail("operand %d of %v is not there", x.Index, x.Type)
		}
		if x.Code == ir.Param && (x.Index < 0 || x.Index > 1000) {
			return fail("parameter %d", x.Index)
		}
	}
	return nil
}

// mapper builds the program of an elementwise kernel.
type mapper struct {
	e     *Elementwise
	half  bool
	width uint8 // elements of a lane
	p     *ir.Program
	// extents are the parameters of the operands that have one.
	extents []ir.Value
	n       ir.Value // elements
	at      ir.Value // the lane's place, in steps of width
	first   ir.Value // its first element
	words   map[uint32]ir.Value
}

func (m *mapper) push(c ir.Code, t ir.Type, width uint8, args ...ir.Value) ir.Value {
	in := ir.Instr{Code: c, Type: t, Width: width}
	if len(args) == 4 {
		in.Imm = uint32(args[3])
		args = args[:3]
	}
	copy(in.Args[:], args)
	m.p.Code = append(m.p.Code, in)
	return ir.Value(len(m.p.Code) - 1)
}

// u returns a constant, wide one in each of four components.
func (m *mapper) u(n uint32) ir.Value {
	v, ok := m.words[n]
	if !ok {
		v = m.push(ir.Const, ir.U32, 1)
		m.p.Code[v].Imm = n
		m.words[n] = v
	}
	return v
}

func (m *mapper) wide(n uint32) ir.Value { return m.push(ir.Splat, ir.U32, 4, m.u(n)) }

// u32 applies a code to numbers of U32.
func (m *mapper) u32(c ir.Code, args ...ir.Value) ir.Value { return m.push(c, ir.U32, 1, args...) }

func (m *mapper) extract(v ir.Value, i int) ir.Value {
	x := m.push(ir.Extract, m.p.Code[v].Type, 1, v)
	m.p.Code[x].Flag = uint8(i)
	return x
}

func (m *mapper) param(name string, t ir.Type) ir.Value {
	n := uint32(len(m.p.Uniforms))
	m.p.Uniforms = append(m.p.Uniforms, ir.Uniform{Name: name, Type: t, Offset: 4 * n})
	v := m.push(ir.Param32, t, 1)
	m.p.Code[v].Imm = n
	return v
}

// byFour reports whether the operand is read in vectors of four elements.
func (m *mapper) byFour(o *Operand) bool {
	return m.width == 4 && (o.Spread == op.Full || o.Spread == op.Periodic && o.Even)
}

// element returns how elements of a type lie in a buffer that is accessed by
// one or four of them, and how many elements there are to one of the buffer's.
func (m *mapper) element(d op.DType, byFour bool) (t ir.Type, width uint8) {
	width = 1
	if byFour {
		width = 4
	}
	switch {
	case d == op.F16 && m.half:
		return ir.F16, width
	case d.Size() == 2:
		return ir.U32, max(1, width/2)
	case d == op.Bool:
		return ir.U32, width
	}
	return op.Register(d), width
}

func (m *mapper) program() *ir.Program {
	e := m.e
	m.p = &ir.Program{Name: e.Name, Local: [3]uint32{elementwiseLanes, 1, 1}, Code: make([]ir.Instr, 1, 64)}
	m.words = make(map[uint32]ir.Value)
	p := m.p
	for i := range e.In {
		t, w := m.element(e.In[i].Type, m.byFour(&e.In[i]))
		p.Bindings = append(p.Bindings, ir.Binding{Name: numbered("x", i), Type: t, Width: w, Access: ir.ReadOnly})
	}
	for i, d := range e.Out {
		t, w := m.element(d, m.width == 4)
		p.Bindings = append(p.Bindings, ir.Binding{Name: numbered("y", i), Type: t, Width: w, Access: ir.WriteOnly})
	}
	m.n = m.param("n", ir.U32)
	m.extents = make([]ir.Value, len(e.In))
	for i := range e.In {
		if e.In[i].extended() {
			m.extents[i] = m.param(numbered("extent", i), ir.U32)
		}
	}
	params := make([]ir.Value, e.params())
	for i := range params {
		params[i] = m.param(numbered("p", i), ir.F32)
	}
	group := m.builtIn(ir.BuiltInGroupY)
	group = m.u32(ir.Add, m.u32(ir.Mul, group, m.builtIn(ir.BuiltInGroupsX)), m.builtIn(ir.BuiltInGroupX))
	m.at = m.u32(ir.Add, m.u32(ir.Mul, group, m.u(elementwiseLanes)), m.builtIn(ir.BuiltInLane))
	m.first = m.at
	if m.width == 4 {
		m.first = m.u32(ir.Shl, m.at, m.u(2))
	}
	m.u(0) // constants of the block before the block
	block := m.push(ir.If, ir.Invalid, 0, m.push(ir.Lt, ir.Bool, 1, m.first, m.n))
	m.body(params)
	p.Code[block].Imm = uint32(len(p.Code))
	end := m.push(ir.End, ir.Invalid, 0)
	p.Code[end].Imm = uint32(block)
	return p
}

func numbered(s string, i int) string { return s + string(appendUint(nil, uint32(i))) }

func (m *mapper) builtIn(flag uint8) ir.Value {
	v := m.push(ir.BuiltIn, ir.U32, 1)
	m.p.Code[v].Flag = flag
	return v
}

// body computes the expressions and stores them.
func (m *mapper) body(params []ir.Value) {
	list, roots := ir.Flatten(m.e.Exprs...)
	at := make(map[*ir.Node]ir.Value, len(list))
	for _, x := range list {
		switch x.Code {
		case ir.Arg:
			at[x] = m.operand(x.Index)
			continue
		case ir.Param:
			at[x] = m.spread(params[x.Index])
			continue
		case ir.Const:
			v := m.push(ir.Const, x.Type, 1)
			m.p.Code[v].Imm = x.Bits()
			at[x] = m.spread(v)
			continue
		}
		var args [3]ir.Value
		for i, a := range x.Operands() {
			args[i] = at[a]
		}
		at[x] = m.push(x.Code, x.Type, m.width, args[:x.Code.Arity()]...)
	}
	for i, r := range roots {
		m.store(i, at[list[r]])
	}
}

// spread returns a vector of a number, if lanes compute vectors.
func (m *mapper) spread(v ir.Value) ir.Value {
	if m.width == 1 {
		return v
	}
	return m.push(ir.Splat, m.p.Code[v].Type, m.width, v)
}

// operand loads what a lane needs of operand i.
func (m *mapper) operand(i int) ir.Value {
	o := &m.e.In[i]
	index := m.at
	switch {
	case o.Spread == op.Scalar:
		return m.spread(m.one(i, m.u(0)))
	case m.byFour(o):
		if o.Spread == op.Periodic {
			index = m.u32(ir.IMod, index, m.u32(ir.Shr, m.extents[i], m.u(2)))
		}
		return m.four(i, index)
	case m.width == 1:
		if o.extended() {
			index = m.u32(spreads[o.Spread], index, m.extents[i])
		}
		return m.one(i, index)
	case o.Spread == op.Stretched && o.Even:
		return m.spread(m.one(i, m.u32(ir.IDiv, m.first, m.extents[i])))
	}
	// Four elements that do not lie together: those beyond the last element
	// of the result stay with that, so that none is beyond the operand's.
	last := m.u32(ir.Sub, m.n, m.u(1))
	var v [4]ir.Value
	for k := range v {
		index := m.u32(ir.Min, m.u32(ir.Add, m.first, m.u(uint32(k))), last)
		v[k] = m.one(i, m.u32(spreads[o.Spread], index, m.extents[i]))
	}
	return m.push(ir.Compose, op.Register(o.Type), 4, v[:]...)
}

// spreads is what makes the index of an operand from that of the result.
var spreads = map[op.Spread]ir.Code{op.Periodic: ir.IMod, op.Stretched: ir.IDiv}

func (m *mapper) load(i int, index ir.Value) ir.Value {
	b := &m.p.Bindings[i]
	v := m.push(ir.Load, b.Type, b.Width, index)
	m.p.Code[v].Imm = uint32(i)
	return v
}

// one loads the element of operand i at an index.
func (m *mapper) one(i int, index ir.Value) ir.Value {
	d := m.e.In[i].Type
	if d.Size() != 2 || d == op.F16 && m.half {
		return m.value(m.load(i, index), d)
	}
	word := m.load(i, m.u32(ir.Shr, index, m.u(1)))
	word = m.u32(ir.Shr, word, m.u32(ir.Shl, m.u32(ir.And, index, m.u(1)), m.u(4)))
	if d == op.F16 {
		return m.extract(m.push(ir.UnpackHalf, ir.F32, 2, word), 0)
	}
	return m.push(ir.Bitcast, ir.F32, 1, m.u32(ir.Shl, word, m.u(16)))
}

// value brings what was loaded, one or four elements that are not packed, to
// the type that it is computed in.
func (m *mapper) value(v ir.Value, d op.DType) ir.Value {
	if t := op.Register(d); t != m.p.Code[v].Type {
		return m.push(ir.Convert, t, m.p.Code[v].Width, v)
	}
	return v
}

// four loads four elements of operand i that lie together.
func (m *mapper) four(i int, index ir.Value) ir.Value {
	d := m.e.In[i].Type
	v := m.load(i, index)
	if d.Size() != 2 || d == op.F16 && m.half {
		return m.value(v, d)
	}
	low, high := m.extract(v, 0), m.extract(v, 1)
	if d == op.F16 {
		low, high = m.push(ir.UnpackHalf, ir.F32, 2, low), m.push(ir.UnpackHalf, ir.F32, 2, high)
		return m.push(ir.Compose, ir.F32, 4, m.extract(low, 0), m.extract(low, 1), m.extract(high, 0), m.extract(high, 1))
	}
	upper := m.u(0xffff0000)
	v = m.push(ir.Compose, ir.U32, 4, m.u32(ir.Shl, low, m.u(16)), m.u32(ir.And, low, upper),
		m.u32(ir.Shl, high, m.u(16)), m.u32(ir.And, high, upper))
	return m.push(ir.Bitcast, ir.F32, 4, v)
}

// store writes result i.
func (m *mapper) store(i int, v ir.Value) {
	slot := len(m.e.In) + i
	b := &m.p.Bindings[slot]
	switch d := m.e.Out[i]; {
	case d == op.F16 && !m.half:
		low := m.push(ir.Compose, ir.F32, 2, m.extract(v, 0), m.extract(v, 1))
		high := m.push(ir.Compose, ir.F32, 2, m.extract(v, 2), m.extract(v, 3))
		v = m.push(ir.Compose, ir.U32, 2, m.push(ir.PackHalf, ir.U32, 1, low), m.push(ir.PackHalf, ir.U32, 1, high))
	case d == op.BF16:
		v = m.roundBF16(v)
		v = m.push(ir.Compose, ir.U32, 2,
			m.u32(ir.Or, m.extract(v, 0), m.u32(ir.Shl, m.extract(v, 1), m.u(16))),
			m.u32(ir.Or, m.extract(v, 2), m.u32(ir.Shl, m.extract(v, 3), m.u(16))))
	case b.Type != m.p.Code[v].Type:
		v = m.push(ir.Convert, b.Type, b.Width, v)
	}
	s := m.push(ir.Store, ir.Invalid, 0, m.at, v)
	m.p.Code[s].Imm = uint32(slot)
}

// roundBF16 returns the upper halves of four float32, rounded to nearest even;
// NaN stays one.
func (m *mapper) roundBF16(v ir.Value) ir.Value {
	v4 := func(c ir.Code, a, b ir.Value) ir.Value { return m.push(c, ir.U32, 4, a, b) }
	bits := m.push(ir.Bitcast, ir.U32, 4, v)
	upper := v4(ir.Shr, bits, m.wide(16))
	even := v4(ir.Add, m.wide(0x7fff), v4(ir.And, upper, m.wide(1)))
	rounded := v4(ir.Shr, v4(ir.Add, bits, even), m.wide(16))
	number := m.push(ir.Le, ir.Bool, 4, v4(ir.And, bits, m.wide(0x7fffffff)), m.wide(0x7f800000))
	return m.push(ir.Select, ir.U32, 4, number, rounded, v4(ir.Or, upper, m.wide(0x40)))
}
