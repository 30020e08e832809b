// Package opcase has one case of every operation of the catalogue for benchmarks:
// operands of a usual size, and the parameters. The command and the comparison with
// other systems measure the same.
package opcase

import (
	"fmt"
	"reflect"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// Case is an operation over operands of these types and shapes.
type Case struct {
	Op     *op.Operation
	Size   string
	Types  []op.DType
	Shapes []op.Shape
	Args   []any // of the method of a batch, behind the operands

	view *view // of an operation whose arguments do not follow its operands
}

// view is how a batch records an operation on places, and its parameters.
type view struct {
	attrs  op.Attrs
	record func(b *batch.Batch, in []batch.Value) batch.Value
}

// square is the shape of the operands of views.
var square = op.Shape{1000, 1000}

// checked returns the parameters, which are valid in this package.
func checked(a op.Attrs, err error) op.Attrs {
	if err != nil {
		panic(err)
	}
	return a
}

// views are the cases of operations that move elements, or find them at run time.
var views = map[*op.Operation]Case{
	op.Permute: {Size: "100×100×100", Shapes: []op.Shape{{100, 100, 100}}, view: &view{checked(op.PermuteTo(2, 0, 1)),
		func(b *batch.Batch, in []batch.Value) batch.Value { return b.Permute(in[0], 2, 0, 1) }}},
	op.Slice: {Size: "every second of 1M", Shapes: []op.Shape{square}, view: &view{op.SliceTo(1, 0, op.End, 2),
		func(b *batch.Batch, in []batch.Value) batch.Value { return b.Slice(in[0], 1, 0, op.End, 2) }}},
	op.Flip: {Size: "1000×1000", Shapes: []op.Shape{square}, view: &view{checked(op.FlipOf(1)),
		func(b *batch.Batch, in []batch.Value) batch.Value { return b.Flip(in[0], 1) }}},
	op.Expand: {Size: "1000 to 1000×1000", Shapes: []op.Shape{{1000, 1}}, view: &view{checked(op.ExpandTo(square...)),
		func(b *batch.Batch, in []batch.Value) batch.Value { return b.Expand(in[0], square...) }}},
	op.Pad: {Size: "1000×1000 by 8", Shapes: []op.Shape{square}, view: &view{op.PadOf(1, 4, 4, 0),
		func(b *batch.Batch, in []batch.Value) batch.Value { return b.Pad(in[0], 1, 4, 4, 0) }}},
	op.Diagonal: {Size: "of 1000×1000", Shapes: []op.Shape{square}, view: &view{op.DiagonalOf(0, 0, 1),
		func(b *batch.Batch, in []batch.Value) batch.Value { return b.Diagonal(in[0], 0, 0, 1) }}},
	op.SlidingWindow: {Size: "8 of 1000×1000", Shapes: []op.Shape{square}, view: &view{op.SlidingWindowOf(1, 8, 1, 1),
		func(b *batch.Batch, in []batch.Value) batch.Value { return b.SlidingWindow(in[0], 1, 8, 1, 1) }}},
	op.Concat: {Size: "2 of 1000×1000", Shapes: []op.Shape{square, square}, view: &view{op.ConcatAlong(1),
		func(b *batch.Batch, in []batch.Value) batch.Value { return b.Concat(1, in...) }}},
	op.SliceAt: {Size: "100 of 1000 rows", Types: []op.DType{op.F32, op.I32}, Shapes: []op.Shape{square, {1}}, view: &view{op.SliceAtOf(0, 100),
		func(b *batch.Batch, in []batch.Value) batch.Value { return b.SliceAt(in[0], 0, in[1], 100) }}},
	op.Update: {Size: "100 of 1000 rows", Types: []op.DType{op.F32, op.I32}, Shapes: []op.Shape{square, {1}, {100, 1000}}, view: &view{op.UpdateOf(0),
		func(b *batch.Batch, in []batch.Value) batch.Value { return b.Update(in[0], 0, in[1], in[2]) }}},
}

// whole are the elementwise operations that take no numbers with a fraction.
var whole = map[*op.Operation]op.DType{
	op.And: op.I32, op.Or: op.I32, op.Xor: op.I32, op.Not: op.I32, op.ShiftLeft: op.I32, op.ShiftRight: op.I32, op.Threefry: op.U32,
	op.BitcastF32: op.U32, op.BitcastI32: op.F32, op.BitcastU32: op.F32,
}

// shaped are the cases of the operations that have shapes of their own. The operands
// are float32 unless Types says otherwise.
var shaped = map[*op.Operation]Case{
	op.MatMul:          {Size: "1024³", Shapes: []op.Shape{{1024, 1024}, {1024, 1024}}},
	op.MatVec:          {Size: "4096×4096", Shapes: []op.Shape{{4096, 4096}, {4096}}},
	op.MatMulQ:         {Size: "8×4096×4096", Types: []op.DType{op.F32, op.Q4_0}, Shapes: []op.Shape{{8, 4096}, {4096, 4096}}},
	op.MatMulExperts:   {Size: "8 of 32 experts 1024×1024", Types: []op.DType{op.F32, op.Q4_0, op.I32}, Shapes: []op.Shape{{1, 1024}, {32, 1024, 1024}, {1, 8}}},
	op.Transpose:       {Size: "2048×2048", Shapes: []op.Shape{{2048, 2048}}},
	op.Conv2D:          {Size: "64×56×56, 64 of 3×3", Shapes: []op.Shape{{1, 64, 56, 56}, {64, 64, 3, 3}}},
	op.Attention:       {Size: "8 heads 512×64", Shapes: []op.Shape{{8, 512, 64}, {8, 512, 64}, {8, 512, 64}}},
	op.Rope:            {Size: "512×8×64", Shapes: []op.Shape{{512, 8, 64}}},
	op.Gather:          {Size: "4096 of 10000×256", Types: []op.DType{op.F32, op.I32}, Shapes: []op.Shape{{10_000, 256}, {4096}}},
	op.TopK:            {Size: "1000×1000, k=10", Shapes: []op.Shape{{1000, 1000}}, Args: []any{10}},
	op.SolveTriangular: {Size: "256×256, 16", Shapes: []op.Shape{{256, 256}, {256, 16}}},
	op.Iota:            {Size: "1M", Types: []op.DType{op.U32}, Shapes: []op.Shape{{1}}, Args: []any{1_000_000}},
	op.Sort:            {Size: "1M", Shapes: []op.Shape{{1_000_000}}},
	op.Cholesky:        {Size: "256×256", Shapes: []op.Shape{{256, 256}}},
	op.LU:              {Size: "256×256", Shapes: []op.Shape{{256, 256}}},
	op.Solve:           {Size: "256×256, 16", Shapes: []op.Shape{{256, 256}, {256, 16}}},
	op.QR:              {Size: "256×256", Shapes: []op.Shape{{256, 256}}},
	op.Eigh:            {Size: "128×128", Shapes: []op.Shape{{128, 128}}},
	op.SVD:             {Size: "128×128", Shapes: []op.Shape{{128, 128}}},
	op.Reshape:         {Size: "1M", Shapes: []op.Shape{{1000, 1000}}, Args: []any{1_000_000}},
	op.Scatter: {Size: "1M into 1M, add", Types: []op.DType{op.F32, op.I32}, Shapes: []op.Shape{{1_000_000}, {1_000_000}, {1_000_000}}, view: &view{op.ScatterOf(0, op.ScatterAdd),
		func(b *batch.Batch, in []batch.Value) batch.Value {
			return b.Scatter(in[0], in[1], in[2], op.ScatterOpts{Reduce: op.ScatterAdd})
		}}},
}

// Of returns the case of an operation for arrays of about n elements, and whether there
// is one. Cases of operations of class Shaped have a fixed size.
func Of(o *op.Operation, n int) (Case, bool) {
	c := Case{Size: count(n)}
	switch o.Class() {
	case op.Elementwise, op.Reduction:
		for range o.Inputs() {
			c.Shapes = append(c.Shapes, op.Shape{n})
			if d, ok := whole[o]; ok {
				c.Types = append(c.Types, d)
			}
		}
		if o == op.Where {
			c.Types = []op.DType{op.Bool}
		}
	case op.Row:
		c.Size = fmt.Sprintf("%d×1000", n/1000)
		c.Shapes = []op.Shape{{n / 1000, 1000}}
		for range o.Inputs()[1:] {
			c.Shapes = append(c.Shapes, op.Shape{1000})
		}
	default:
		var ok bool
		if c, ok = shaped[o]; !ok {
			if c, ok = views[o]; !ok {
				return c, false
			}
		}
	}
	c.Op = o
	switch {
	case c.view != nil:
	case o == op.Cast:
		c.Args = []any{op.F16}
	case o.Options() == "":
		for i := range o.Params() {
			c.Args = append(c.Args, float32(i)-0.5) // the limits of clip rise
		}
	}
	for i := len(c.Types); i < len(c.Shapes); i++ {
		c.Types = append(c.Types[:i:i], op.F32)
	}
	return c, true
}

// count writes a number of elements as 10K or 1M.
func count(n int) string {
	switch {
	case n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n%1000 == 0:
		return fmt.Sprintf("%dK", n/1000)
	}
	return fmt.Sprint(n)
}

// Attrs returns the parameters as the operation takes them.
func (c *Case) Attrs() op.Attrs {
	if c.view != nil {
		return c.view.attrs
	}
	switch c.Op {
	case op.Cast:
		return op.CastTo(c.Args[0].(op.DType))
	case op.TopK:
		return op.TopKOpts{K: c.Args[0].(int)}.Attrs()
	case op.Iota:
		return op.IotaOf(c.Args[0].(int))
	case op.Reshape:
		a, _ := op.ReshapeTo(c.Args[0].(int)) // one extent
		return a
	}
	if len(c.Args) == 0 {
		return c.Op.Defaults()
	}
	var params []float32
	for _, a := range c.Args {
		params = append(params, a.(float32))
	}
	return op.Floats(params...)
}

// Record records the operation and returns its first result.
func (c *Case) Record(b *batch.Batch, in []batch.Value) batch.Value {
	if c.view != nil {
		return c.view.record(b, in)
	}
	var args []reflect.Value
	for _, v := range in {
		args = append(args, reflect.ValueOf(v))
	}
	m := reflect.ValueOf(b).MethodByName(c.Op.GoName())
	if !m.IsValid() {
		return b.Map(c.Op, in...) // one of a family that has one method
	}
	for t := m.Type(); len(args) < t.NumIn() && t.In(len(args)).Kind() == reflect.Struct; {
		args = append(args, reflect.Zero(t.In(len(args)))) // absent operands
	}
	for _, a := range c.Args {
		args = append(args, reflect.ValueOf(a))
	}
	return m.Call(args)[0].Interface().(batch.Value)
}
