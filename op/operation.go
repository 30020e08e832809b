// Package op defines the operations of rayo. An [Operation] has a name, operands,
// parameters, rules for shapes and element types, an expression or a float64 reference, a
// statement about NaN, infinities and signed zeros, and a tolerance. The kernels of each
// device, the methods of packages device and batch, docs/OPS.md and the conformance tests
// are generated from these entries.
//
// Use [Unary], [Binary] and [Ternary] to define elementwise operations of your own.
// docs/OPS.md lists all operations with one entry each.
package op

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
)

// Class says how an operation's result depends on its operands.
type Class uint8

const (
	// Elementwise: each element of the result depends on the elements of the
	// operands at the same place.
	Elementwise Class = iota
	// Reduction: many elements become one, over the whole array or along rows.
	Reduction
	// Row: each row of the result depends on the same row of the operand.
	Row
	// Shaped: all others; see their shape rules.
	Shaped
)

// String names the class.
func (c Class) String() string {
	return [...]string{"elementwise", "reduction", "row", "shaped"}[c&3]
}

// MaxInputs is the largest number of operands of an operation.
const MaxInputs = 8

// MaxRank is the largest number of extents of an operand or result.
const MaxRank = 8

// Operation is one entry of the catalogue, or a user's own elementwise
// operation. It is immutable and safe for concurrent use.
type Operation struct {
	// define makes the definition of an entry of the catalogue at its first use. So entries are constant
	// data, and the linker leaves out the entries that a program does not mention.
	define func() *definition
	once   sync.Once
	made   atomic.Bool
	d      definition // valid once made is true

	inOperands sync.Once
	parametric *Operation // see Parametric; valid once inOperands is done
}

// def returns the definition.
func (o *Operation) def() *definition {
	if !o.made.Load() {
		o.first()
	}
	return &o.d
}

// first makes the definition.
func (o *Operation) first() {
	o.once.Do(func() {
		if o.define == nil {
			o.d.err = errZero
		} else {
			o.d = *o.define()
			o.d.id = int(lastID.Add(1) - 1)
		}
		o.made.Store(true)
	})
}

// MaxID is greater than every [Operation.ID].
const MaxID = 256

// lastID is the number of operations of the catalogue that have been used.
var lastID atomic.Int32

// operationOf returns the operation of a definition that is not in the catalogue.
func operationOf(d *definition) *Operation {
	o := &Operation{d: *d}
	o.made.Store(true)
	return o
}

// definition holds the properties of an [Operation].
type definition struct {
	name    string
	aliases []string
	class   Class
	doc     string // one sentence about the result
	formula string
	special string // what happens at NaN, infinities, signed zero, and outside the domain
	arity   [2]int // fewest and most operands
	inputs  []string
	outs    int
	params  []Param
	options string // name of the option struct, "" if the operation has no options
	shapes  string // the shape rule in words, "" where it follows from the class
	key     string // identifies the computation in caches
	id      int    // see ID
	plain   bool   // see Plain
	err     error

	fixed *Operation // see Fixed

	expr *ir.Node // elementwise: the expression of operands Arg, of type F32 except for conditions
	// typed has expressions for operands of particular types, which replace expr for these types.
	typed [ir.Bool + 1]*ir.Node
	mag   *ir.Node    // elementwise: the magnitude that Tolerance.Mag refers to, or nil
	types typeRule    // the element types of operands and results
	shape shapeRule   // nil for elementwise: Broadcast
	ref   reference   // nil for elementwise: the expression in float64; nil for views: see look
	view  viewOf      // of a view, else nil
	check resultCheck // compares whole results with the operands, or nil: see CheckResults
	fold  foldOf      // of a reduction or scan that has one, else nil
	tol   Tolerance
	// selfTest is the case with which a device tests its kernels before their first use, nil for none.
	selfTest *irhook.SelfTest
	flops    func(a *Attrs, in, out []Shape) float64 // nil: one for each element of the result and operation of the expression
}

// Param is a scalar parameter of an operation. The value of parameter i of an
// operation is Attrs.F[i].
type Param struct {
	Name     string  // as in the formula and in Go, lower case: alpha, slope
	Doc      string  // its meaning
	Default  float32 // the meaning of the zero option struct
	Required bool    // it has no default and is an argument of the method
}

type (
	// shapeRule returns the shapes of the results.
	shapeRule func(a *Attrs, in []Shape) ([]Shape, error)
	// typeRule returns the element types of the results.
	typeRule func(a *Attrs, in []DType) ([]DType, error)
	// reference computes the results in float64, without the activation. in has
	// MaxInputs operands of checked shapes, nil for absent ones. out has arrays of
	// zeros of the results' shapes.
	reference func(a *Attrs, in, out []*Array)
)

// Array is a dense row-major array in float64: an operand or result of the
// reference.
type Array struct {
	Shape Shape
	Data  []float64
	// Mag, if not nil, is the scale of the error of each element of a sum: the magnitudes of its
	// terms, each multiplied by the number of roundings that may affect it. An infinite Mag means
	// that the element is undefined.
	Mag []float64
	// typ is the element type of an operand while a reference is computed.
	typ DType
	// half, if not nil, is for each element the sum of the magnitudes of the intermediate
	// results that a device may round to the operands' type, if that has 16 bits.
	half []float64
}

// Attrs are the parameters of one use of an operation in a form that can be
// compared with == and hashed. The option structs convert to it.
type Attrs struct {
	F    [4]uint32  // float parameters, as bits: NaN must equal itself
	I    [8]int     // integer parameters
	Act  *Operation // activation applied to each element of the result, or nil
	ActF [2]uint32  // its float parameters

	given int // the number of option structs of a call with more than one, else 0: see AttrsOf
}

// Float returns float parameter i.
func (a *Attrs) Float(i int) float32 { return math.Float32frombits(a.F[i]) }

// Floats returns Attrs with the given float parameters.
func Floats(v ...float32) Attrs {
	var a Attrs
	for i, f := range v {
		a.F[i] = math.Float32bits(f)
	}
	return a
}

// Name returns the name: lower case, words joined by underscores.
func (o *Operation) Name() string { return o.def().name }

// Aliases returns other names of the operation.
func (o *Operation) Aliases() []string { return o.def().aliases }

// String returns the name.
func (o *Operation) String() string { return o.def().name }

// Class returns how the result depends on the operands.
func (o *Operation) Class() Class { return o.def().class }

// Doc returns one sentence that describes the operation.
func (o *Operation) Doc() string { return o.def().doc }

// Formula returns the definition.
func (o *Operation) Formula() string {
	d := o.def()
	if d.expr == nil || d.formula != "" {
		return d.formula
	}
	var names []string
	for _, p := range d.params {
		names = append(names, p.Name)
	}
	return ir.Format(d.expr, d.inputs, names)
}

// Special describes the results for NaN, infinities and signed zeros.
func (o *Operation) Special() string { return o.def().special }

// ShapeDoc returns the shape rule in words.
func (o *Operation) ShapeDoc() string {
	switch {
	case o.def().shapes != "":
		return o.def().shapes
	case o.def().class == Reduction:
		return "all elements reduce to shape []; along rows [... n] gives [...]"
	case o.def().class == Row && len(o.def().inputs) > 1:
		return "x [... n], " + strings.Join(o.def().inputs[1:], " and ") + " [n]; gives the shape of x"
	case o.def().class == Row:
		return "x [... n]; gives the shape of x"
	case o.def().arity[1] > 1:
		return "operands broadcast; gives the common shape"
	}
	return "any; gives the shape of x"
}

// Arity returns the fewest and the most operands.
func (o *Operation) Arity() (fewest, most int) {
	a := &o.def().arity
	return a[0], a[1]
}

// Inputs returns the names of the operands.
func (o *Operation) Inputs() []string { return o.def().inputs }

// Results returns the number of results.
func (o *Operation) Results() int { return o.def().outs }

// Params returns the float parameters, in the order of Attrs.F.
func (o *Operation) Params() []Param { return o.def().params }

// Options returns the name of the option struct, or "".
func (o *Operation) Options() string { return o.def().options }

// ID returns a number below [MaxID] that identifies an operation of the catalogue in this process, or
// -1 for a user's operation. Operations are numbered in the order of their first use.
func (o *Operation) ID() int { return o.def().id }

// Key returns a text that identifies the computation: two operations have the same
// key exactly if they compute the same.
func (o *Operation) Key() string {
	if o.def().key != "" {
		return o.def().key
	}
	return o.def().name
}

// Err returns the mistake in a user's operation, or nil. The zero Operation has an error too.
func (o *Operation) Err() error {
	return o.def().err
}

// Tolerance returns the error bound of float32 results.
func (o *Operation) Tolerance() Tolerance { return o.def().tol }

// Defaults returns the parameters for a call without an option struct.
func (o *Operation) Defaults() Attrs { return o.def().defaults() }

func (o *definition) defaults() Attrs {
	var a Attrs
	for i, p := range o.params {
		a.F[i] = math.Float32bits(p.Default)
	}
	return a
}

// CheckDefaults returns an error if a parameter has no default, so that the
// operation cannot be used without parameters. The error names the method to use.
func (o *Operation) CheckDefaults() error {
	var names []string
	for _, p := range o.def().params {
		if p.Required {
			names = append(names, p.Name)
		}
	}
	if names == nil {
		return nil
	}
	return unsupported("%s needs %s, which Map cannot pass: call the method %s", o.def().name, strings.Join(names, " and "), o.GoName())
}

// Types returns the element types of the results for operands of the given
// types, InvalidType standing for an absent operand, or an ErrUnsupported.
func (o *Operation) Types(a *Attrs, in []DType) ([]DType, error) {
	if err := o.Err(); err != nil {
		return nil, err
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	if err := o.count(len(in)); err != nil {
		return nil, err
	}
	rule := o.def().types
	if rule == nil {
		rule = floats
	}
	return rule(a, in)
}

// Shapes returns the shapes of the results for operands of the given shapes,
// nil standing for an absent operand (a scalar is the empty shape, not nil),
// or an ErrShape.
func (o *Operation) Shapes(a *Attrs, in []Shape) ([]Shape, error) {
	if err := o.Err(); err != nil {
		return nil, err
	}
	if err := o.count(len(in)); err != nil {
		return nil, err
	}
	for i, s := range in {
		if s == nil && i < o.def().arity[0] {
			return nil, mismatch("operand %s is missing", o.def().inputs[i])
		}
		if err := s.check(); err != nil {
			return nil, err
		}
	}
	rule := o.def().shape
	if rule == nil {
		rule = broadcasts
	}
	out, err := rule(a, in)
	if err != nil {
		return nil, err
	}
	for _, s := range out {
		if err := s.check(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func broadcasts(_ *Attrs, in []Shape) ([]Shape, error) {
	out, err := Broadcast(in...)
	return []Shape{out}, err
}

func (o *Operation) count(n int) error {
	if n < o.def().arity[0] || n > o.def().arity[1] {
		if o.def().arity[0] == o.def().arity[1] {
			return mismatch("%d operands: expected %d", n, o.def().arity[0])
		}
		return mismatch("%d operands: expected %d to %d", n, o.def().arity[0], o.def().arity[1])
	}
	return nil
}

// Flops returns the number of arithmetic operations of one use, by the usual
// count: a multiply-add is two, an elementwise function is one.
func (o *Operation) Flops(a *Attrs, in, out []Shape) float64 {
	if o.def().flops != nil {
		return o.def().flops(a, in, out)
	}
	n := 0.0
	for _, s := range in {
		if k, err := s.Size(); err == nil {
			n = max(n, float64(k))
		}
	}
	return n
}

// expression implements [irhook.Expression].
func (o *Operation) expression(a *Attrs, in []DType) (*ir.Node, error) {
	if o.def().class != Elementwise {
		return nil, fmt.Errorf("%s has no expression: %w", o.def().name, ErrUnsupported)
	}
	out, err := o.Types(a, in)
	if err != nil {
		return nil, err
	}
	// The last operand is never a condition: its type is the type of the
	// arithmetic.
	t := register(in[len(in)-1])
	n := o.def().typed[t]
	if n == nil {
		if n, err = ir.Retype(o.def().expr, t); err != nil {
			return nil, fmt.Errorf("%s of %s: %v: %w", o.def().name, typeNames(in), err, ErrUnsupported)
		}
	}
	// Only cast has a result of another type than its expression.
	if out[0].Storage() && out[0] != in[len(in)-1] {
		return Expr{n}.narrow(out[0]).n, nil
	}
	return ir.NewConvert(n, register(out[0])), nil
}

// register returns the type in which elements of type d are computed. For a storage type
// it is the type that holds an element between a load and a conversion.
func register(d DType) ir.Type {
	switch d {
	case F32, F16, BF16:
		return ir.F32
	case I32, I8:
		return ir.I32
	case U32, U8:
		return ir.U32
	case Bool:
		return ir.Bool
	}
	return ir.Invalid
}
