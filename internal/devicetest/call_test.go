package devicetest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// The tests find the methods of devices and batches by the names in the catalogue, so that they call every
// generated method.

// method returns the method of v whose name, in lower case, is name.
func method(v any, name string) (reflect.Value, bool) {
	r := reflect.ValueOf(v)
	table, ok := methods.Load(r.Type())
	if !ok {
		m := make(map[string]int)
		for i := range r.NumMethod() {
			m[strings.ToLower(r.Type().Method(i).Name)] = i
		}
		table, _ = methods.LoadOrStore(r.Type(), m)
	}
	i, ok := table.(map[string]int)[strings.ToLower(strings.ReplaceAll(name, "_", ""))]
	if !ok {
		return reflect.Value{}, false
	}
	return r.Method(i), true
}

// methods caches the indices of the methods of each type by their names in lower case, because looking a
// method up by name makes a new function type.
var methods sync.Map // reflect.Type -> map[string]int

// arguments returns the arguments for the parameters, which are the last of a call. With along it adds the
// axis of a reduction for methods of batches.
func (c *Case) arguments(along bool) []reflect.Value {
	var args []reflect.Value
	for _, p := range c.Params {
		args = append(args, reflect.ValueOf(p))
	}
	switch o, isVar := c.Options.(op.VarOpts); {
	case along && (isVar || c.Op == op.Var):
		o.Along = op.Axes(-1)
		args = append(args, reflect.ValueOf(o))
	case along:
		args = append(args, reflect.ValueOf(op.Axes(-1)))
	case c.Options != nil:
		args = append(args, reflect.ValueOf(c.Options))
	}
	if c.Op == op.Cast {
		args = append(args, reflect.ValueOf(c.To))
	}
	return args
}

// record records the case and returns its results.
func (c *Case) record(b *batch.Batch, in []batch.Value) ([]batch.Value, error) {
	if list, ok := lists[c.Op]; ok {
		return []batch.Value{list.record(b, c, in)}, nil
	}
	if f, ok := factorings[c.Op]; ok {
		return f.record(b, c, in), nil
	}
	switch c.Op {
	case op.TopK:
		v, i := b.TopK(in[0], c.Options.(op.TopKOpts).K)
		return []batch.Value{v, i}, nil
	case op.Sort:
		v, i := b.Sort(in[0], c.Options.(op.SortOpts))
		return []batch.Value{v, i}, nil
	case op.BitcastF32:
		return []batch.Value{b.Bitcast(in[0], op.F32)}, nil
	case op.BitcastI32:
		return []batch.Value{b.Bitcast(in[0], op.I32)}, nil
	case op.BitcastU32:
		return []batch.Value{b.Bitcast(in[0], op.U32)}, nil
	}
	full := slices.Grow(slices.Clone(in), op.MaxInputs)[:op.MaxInputs] // with absent operands at the end
	clear(full[len(in):])
	switch c.Op {
	case op.Attention:
		o, _ := c.Options.(op.AttentionOpts)
		return []batch.Value{b.Attention(in[0], in[1], in[2], batch.AttentionInputs{Lengths: full[op.AttentionLengths], Mask: full[op.AttentionMask],
			Table: full[op.AttentionTable]}, o)}, nil
	case op.Rope:
		o, _ := c.Options.(op.RopeOpts)
		return []batch.Value{b.Rope(in[0], batch.RopeInputs{Positions: full[op.RopeByPositions], Frequencies: full[op.RopeByFrequencies]}, o)}, nil
	}
	if c.Op.ID() < 0 {
		return []batch.Value{b.Map(c.Op, in...)}, nil
	}
	name := c.Op.Name()
	m, ok := method(b, name)
	if !ok {
		return nil, fmt.Errorf("a batch has no method %s", name)
	}
	var args []reflect.Value
	for _, v := range full[:len(c.Op.Inputs())] {
		args = append(args, reflect.ValueOf(v))
	}
	return []batch.Value{m.Call(append(args, c.arguments(c.Rows && len(in[0].Shape()) > 0)...))[0].Interface().(batch.Value)}, nil
}

// uploads records the operands.
func uploads(b *batch.Batch, in []*array, c *Case) []batch.Value {
	values := make([]batch.Value, len(in))
	for i, a := range in {
		if a != nil {
			values[i] = a.upload(b, c.In[i].Shape)
		}
	}
	return values
}

// operands returns the operands in memory, nil for absent ones.
func (c *Case) operands() []*array {
	in := make([]*array, len(c.In))
	for i, x := range c.In {
		if x.Type != op.InvalidType {
			in[i] = arrayOf(x)
		}
	}
	return in
}

// inBatch computes the case in a batch.
func (c *Case) inBatch(ctx context.Context, dev *device.Device, in, out []*array) error {
	b := batch.New(dev)
	values, err := c.record(b, uploads(b, in, c))
	if err != nil {
		return err
	}
	for i, v := range values {
		out[i].get(b, v)
	}
	return b.Execute(ctx)
}

// slicesOf returns the operands as arguments of a one-shot call.
func slicesOf(in []*array, n int) []reflect.Value {
	var args []reflect.Value
	for i := range n {
		switch {
		case i >= len(in) || in[i] == nil:
			args = append(args, reflect.ValueOf([]float32(nil)))
		case in[i].typ == op.I32:
			args = append(args, reflect.ValueOf(view[int32](in[i])))
		default:
			args = append(args, reflect.ValueOf(in[i].float32s()))
		}
	}
	return args
}

// errNoCall is the error of a case for which devices have no one-shot method.
var errNoCall = fmt.Errorf("no one-shot method")

// oneShot computes the case by a method of the device: in is float32. It
// returns errNoCall if there is none.
func (c *Case) oneShot(ctx context.Context, dev *device.Device, async bool, in, out []*array) error {
	suffix := ""
	if async {
		suffix = "async"
	}
	types := c.Types()
	for i, t := range types {
		if t != op.F32 && t != op.InvalidType && !(t == op.I32 && i == 1 && c.Op == op.Gather) || c.Op == op.Rope && i > 0 {
			return errNoCall
		}
	}
	for _, o := range out {
		if o.typ != op.F32 && o.typ != op.I32 || c.Op == op.Cast {
			return errNoCall
		}
	}
	args := []reflect.Value{reflect.ValueOf(ctx)}
	name := c.Op.Name()
	ints := func(v ...int) {
		for _, n := range v {
			args = append(args, reflect.ValueOf(n))
		}
	}
	dst := func() { args = append(args, slicesOf(out, len(out))...) }
	x := c.In[0].Shape
	switch c.Op.Class() {
	case op.Elementwise:
		for _, y := range c.In {
			if !y.Shape.Equal(x) || len(x) != 1 {
				return errNoCall
			}
		}
		if c.Op.ID() < 0 {
			return errNoCall
		}
		dst()
		args = append(args, slicesOf(in, len(in))...)
	case op.Reduction:
		if c.Rows {
			return c.reduceRows(ctx, dev, async, in, out)
		}
		args = append(args, slicesOf(in, len(in))...)
	case op.Row:
		dst()
		args = append(args, slicesOf(in, len(c.Op.Inputs()))...)
		ints(x.Rows())
	default:
		return c.shapedCall(ctx, dev, suffix, in, out)
	}
	m, ok := method(dev, name+suffix)
	if !ok {
		return errNoCall
	}
	return outcome(ctx, m.Call(append(args, c.arguments(false)...)), out)
}

// reduceRows reduces the rows of the operands by a one-shot call.
func (c *Case) reduceRows(ctx context.Context, dev *device.Device, async bool, in, out []*array) error {
	if out[0].typ == op.I32 {
		return reduceRows(ctx, dev, async, c, view[int32](out[0]), in)
	}
	return reduceRows(ctx, dev, async, c, out[0].float32s(), in)
}

func reduceRows[T float32 | int32](ctx context.Context, dev *device.Device, async bool, c *Case, dst []T, in []*array) error {
	var operands [][]float32
	for _, a := range in {
		operands = append(operands, a.float32s())
	}
	rows, cols := c.In[0].Shape.Rows()
	if async {
		return device.ReduceAsync(ctx, dev, dst, c.Op, c.Attrs(), rows, cols, operands...).Wait(ctx)
	}
	return device.Reduce(ctx, dev, dst, c.Op, c.Attrs(), rows, cols, operands...)
}

// outcome waits for the results of a method: an error, a value and an error, a Pending, or a Future.
func outcome(ctx context.Context, results []reflect.Value, out []*array) error {
	if f := results[0].MethodByName("Value"); f.IsValid() {
		results = f.Call([]reflect.Value{reflect.ValueOf(ctx)})
	} else if w := results[0].MethodByName("Wait"); w.IsValid() {
		results = w.Call([]reflect.Value{reflect.ValueOf(ctx)})
	}
	err, _ := results[len(results)-1].Interface().(error)
	if len(results) == 2 && err == nil {
		switch v := results[0].Interface().(type) {
		case float32:
			out[0].typ.PutFloat64(out[0].data, 0, float64(v))
		case int:
			out[0].typ.PutFloat64(out[0].data, 0, float64(v))
		}
	}
	return err
}

// shapedCall calls the method of a shaped operation. Each of these methods has its own parameters for sizes.
func (c *Case) shapedCall(ctx context.Context, dev *device.Device, suffix string, in, out []*array) error {
	var shapes []op.Shape
	for _, x := range c.In {
		shapes = append(shapes, x.Shape)
	}
	a := c.Attrs()
	args := append([]reflect.Value{reflect.ValueOf(ctx)}, slicesOf(out, len(out))...)
	ints := func(v ...int) {
		for _, n := range v {
			args = append(args, reflect.ValueOf(n))
		}
	}
	name := c.Op.Name()
	operands := slicesOf(in, len(in))
	switch c.Op {
	case op.MatMul:
		p, err := op.MatMulOf(&a, shapes)
		if err != nil {
			return err
		}
		if len(shapes[0]) > 2 {
			return errNoCall
		}
		args = append(args, slicesOf(in, 3)...)
		ints(p.M, p.K, p.N)
	case op.MatVec:
		m, k := shapes[0][0], shapes[0][1]
		if op.MatVecOptsOf(&a).Trans {
			m, k = k, m
		}
		args = append(args, operands...)
		ints(m, k)
	case op.Transpose:
		if len(shapes[0]) != 2 {
			return errNoCall
		}
		args = append(args, operands...)
		ints(shapes[0]...)
	case op.Conv2D:
		args = append(args, slicesOf(in, 3)...)
		args = append(args, reflect.ValueOf([4]int(shapes[0])), reflect.ValueOf([4]int(shapes[1])))
	case op.Gather:
		if len(shapes[0]) != 2 || len(shapes[1]) != 1 || c.axis() != 0 {
			return errNoCall
		}
		args = append(args, operands...)
		ints(shapes[0]...)
	case op.TopK:
		args = append(args, operands...)
		ints(shapes[0].Rows())
		ints(op.TopKOptsOf(&a).K)
		m, _ := method(dev, name+suffix)
		return outcome(ctx, m.Call(args), out)
	case op.Sort:
		args = append(args, operands...)
		ints(shapes[0].Rows())
	case op.Attention:
		if len(shapes[0]) != 3 {
			return errNoCall
		}
		s, err := op.AttentionOf(&a, shapes)
		if err != nil {
			return err
		}
		args = append(args, operands...)
		args = append(args, reflect.ValueOf(device.AttentionSize{Heads: s.Heads, KVHeads: s.KVHeads, Tq: s.Tq, Tk: s.Tk, Dim: s.D}))
	case op.Rope:
		args = append(args, operands...)
		ints(shapes[0]...)
	default:
		return errNoCall
	}
	m, ok := method(dev, name+suffix)
	if !ok {
		return errNoCall
	}
	return outcome(ctx, m.Call(append(args, c.arguments(false)...)), out)
}
