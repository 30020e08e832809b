package driver

import (
	"math"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
)

// Program is a list of steps over slots of memory, which a device runs in one submission.
type Program struct {
	Steps []Step
	Slots []Slot
	// Arena is the size of the temporary memory in bytes; temporary slots are offsets in it, and
	// slots whose lifetimes do not overlap share memory.
	Arena int64
	// Cuts are the offsets, rising and without 0, at which the arena is cut
	// into several buffers: see Limits.SeparateBindings. No slot lies across one.
	Cuts []int64
	// Ext is the number of external slots.
	Ext int
}

// Slot is one array that steps read and write.
type Slot struct {
	Type  op.DType
	Shape op.Shape
	// Bytes is the size in memory.
	Bytes int64
	// Ext is the index in Submission.Ext, or -1 for a temporary.
	Ext int
	// Off is the place of a temporary in the arena, in bytes: a multiple of 256.
	Off int64
	// Data is the value of a constant slot (Ext and Off are unused then).
	Data []byte
	// Written reports whether a step writes the slot.
	Written bool
}

// Step is one kernel: an elementwise program alone, or an operation of another
// class with elementwise programs before and after it.
type Step struct {
	// Op is nil for a step that is elementwise alone: then Post holds its
	// program and In are the operands of that.
	Op    *op.Operation
	Attrs op.Attrs
	// In are the operands of Op, in its order; an absent optional operand has
	// Slot -1. If Pre[i] is not nil, operand i is the result of that program.
	In  []Operand
	Pre []*Fused // nil, or one entry for each of In
	// Post, if not nil, computes the outputs from the first result of Op,
	// which is its operand 0 (spread Full), and from further operands.
	Post *Fused
	Out  []Operand
	// Kernel, if not nil, is the kernel that the step runs; Op, Pre and Post are nil then. In are
	// the arrays that it reads or updates and the block of its parameters, Out the arrays that it
	// writes or updates.
	Kernel *Kernel
	// Dims are the shapes that Op sees: of its operands, then of its results.
	Dims []op.Shape
}

// Kernel is a program over a grid of workgroups, with a slot bound to each of
// its buffers. A slot that it writes is bound once.
type Kernel struct {
	Program *ir.Program
	Grid    [3]uint32
	Bind    []int // slot of each of Program.Bindings
	// Params is the slot of the parameter block, host memory that is bound to
	// the submission, or -1 if the program has no uniforms.
	Params int
	// Positions returns the program with positions in the author's source, for
	// the report of a fault.
	Positions func() (*ir.Program, error)
}

// Operand is a slot as a step uses it.
type Operand struct {
	Slot      int
	Type      op.DType
	Broadcast op.BroadcastKind // over the result of an elementwise program
	N         int              // elements in memory
	// Layout is the layout of the elements if Broadcast is Strided: of an operand of an elementwise
	// program over the shape of its result, of an operand of an operation, or of its result. It is
	// immutable.
	Layout *op.Layout
	// Unwanted says that nothing reads a result: a device need not compute it.
	Unwanted bool
}

// Fused is an elementwise program: instructions in order, each computing one
// value for each element of the result.
type Fused struct {
	// In are the operands; in a Post program of a step with an Op the first
	// is the operation's result and its Slot is -1.
	In   []Operand
	Body []Instr
	// Out says which values are stored, one for each output of the step (or
	// the one value that a Pre program yields): a number below len(In) is an
	// operand, others are Body[v-len(In)].
	Out []int
	// Shape is the shape of the result.
	Shape op.Shape
	// Round, unless it is InvalidType, is the type of 16 bits to which operand 0 is
	// rounded before anything reads it: the result of an operation that computes in
	// float32.
	Round op.DType
}

// Instr applies an elementwise operation.
type Instr struct {
	Op    *op.Operation
	Attrs op.Attrs
	// Args number the values: below len(In) an operand, then Body in order.
	Args []int
	// Type is the type of the value. A 16-bit value is rounded even if it is not stored: see
	// Rounds.
	Type op.DType
}

// Rounds reports whether the value, computed in float32 from operands of the given
// types, is to be rounded to its type before another instruction reads it.
func (in *Instr) Rounds(types []op.DType) (bool, error) {
	return in.Op.Rounds(&in.Attrs, types, in.Type)
}

// Expressions returns the program as one expression for each output, with parameters replaced by
// constants: from which GPU kernels are printed. Arg i is operand i. The value of an output is not
// rounded to its type yet: the store rounds it.
func (f *Fused) Expressions() ([]*ir.Node, error) {
	return f.expressions(func(v float32) *ir.Node { return ir.NewConst(float64(v), ir.F32) })
}

// Parametric is Expressions with the parameters as further operands of one
// float32 each, those behind In, in the place of constants: programs that differ
// in them alone have the same expressions then. Where there are more than most,
// equal or not, it is Expressions.
func (f *Fused) Parametric(most int) (exprs []*ir.Node, params []float32, err error) {
	all := 0
	exprs, err = f.expressions(func(v float32) *ir.Node {
		all++
		i := slices.IndexFunc(params, func(p float32) bool { return math.Float32bits(p) == math.Float32bits(v) })
		if i < 0 {
			i = len(params)
			params = append(params, v)
		}
		return ir.NewArg(len(f.In)+i, ir.F32)
	})
	if err == nil && all > most {
		exprs, err = f.Expressions()
		return exprs, nil, err
	}
	return exprs, params, err
}

// expressions is Expressions with what param makes of each parameter that counts.
func (f *Fused) expressions(param func(v float32) *ir.Node) ([]*ir.Node, error) {
	// The values before rounding, and the values that instructions read.
	made, vals := make([]*ir.Node, 0, len(f.In)+len(f.Body)), make([]*ir.Node, 0, len(f.In)+len(f.Body))
	types := make([]op.DType, 0, cap(vals))
	for i, in := range f.In {
		x, t := ir.NewArg(i, irhook.Register(uint8(in.Type))), in.Type
		made = append(made, x)
		if i == 0 && f.Round != op.InvalidType {
			x, t = rounded(x, f.Round), f.Round
		}
		vals, types = append(vals, x), append(types, t)
	}
	for i := range f.Body {
		b := &f.Body[i]
		args := make([]*ir.Node, len(b.Args))
		in := make([]op.DType, len(b.Args))
		for j, a := range b.Args {
			args[j], in[j] = vals[a], types[a]
		}
		x, err := b.expression(args, in, param)
		if err != nil {
			return nil, err
		}
		made = append(made, x)
		rounds, err := b.Rounds(in)
		if err != nil {
			return nil, err
		}
		if rounds {
			x = rounded(x, b.Type)
		}
		vals, types = append(vals, x), append(types, b.Type)
	}
	out := make([]*ir.Node, len(f.Out))
	for i, v := range f.Out {
		out[i] = made[v]
	}
	return out, nil
}

// expression returns what an instruction computes from args, of the types in, with
// what param makes of each parameter that counts.
func (in *Instr) expression(args []*ir.Node, types []op.DType, param func(v float32) *ir.Node) (*ir.Node, error) {
	wide := make([]op.DType, len(types))
	for i, t := range types {
		wide[i] = computed(t)
	}
	e, err := irhook.Expression(in.Op, &in.Attrs, wide)
	if err != nil {
		return nil, err
	}
	params := make([]*ir.Node, len(in.Attrs.F))
	list, _ := ir.Flatten(e)
	for _, n := range list {
		if n.Code == ir.Param && n.Index < len(params) && params[n.Index] == nil {
			params[n.Index] = param(in.Attrs.Float(n.Index))
		}
	}
	return ir.Substitute(e, args, params), nil
}

// rounded returns x, of float32, rounded to a type of 16 bits.
func rounded(x *ir.Node, t op.DType) *ir.Node {
	if t == op.BF16 {
		return ir.NewRound(ir.RoundBF16, x)
	}
	return ir.NewRound(ir.RoundF16, x)
}

// computed returns the type that expressions have elements of type t in. An operand
// may be wider than the others are, which are computed in float32 like it: see
// [Request.Unfused].
func computed(t op.DType) op.DType {
	if irhook.Register(uint8(t)) == ir.F32 {
		return op.F32
	}
	return t
}

// Formulas writes the program as formulas over x0, x1 …
func (f *Fused) Formulas() string {
	es, err := f.Expressions()
	if err != nil {
		return err.Error()
	}
	var s []string
	for _, e := range es {
		s = append(s, ir.Format(e, nil, nil))
	}
	return strings.Join(s, "; ")
}

// Name returns a short name of the step: the operation, or the fused ones
// joined by plus signs.
func (s *Step) Name() string {
	if s.Kernel != nil {
		return s.Kernel.Program.Name
	}
	var names []string
	for _, p := range s.Pre {
		names = append(names, p.names()...)
	}
	if s.Op != nil {
		names = append(names, s.Op.Name())
	}
	names = append(names, s.Post.names()...)
	if len(names) > 8 {
		names = append(names[:7], fmt.Sprintf("%d more", len(names)-7))
	}
	return strings.Join(names, "+")
}

func (f *Fused) names() []string {
	if f == nil {
		return nil
	}
	var s []string
	for _, b := range f.Body {
		s = append(s, b.Op.Name())
	}
	return s
}
