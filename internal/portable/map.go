//go:build !js || !nowebgpu

package portable

import (
	"math"
	"slices"
	"strconv"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

func init() {
	register(&family{plan: planMap, variants: mapSchedules.names()}, nil)
	register(&family{plan: planReshape, variants: mapSchedules.names()}, op.Reshape)
}

// mapOf has the properties that decide the schedule of an elementwise program: N is the number of
// elements of the result.
type mapOf struct {
	N       int
	Aligned bool // all operands can be read in vectors of four
	Tiled   bool // one operand should be read by tiles: see tiledOperand
}

// mapSchedule is the schedule of an elementwise kernel: elements in a vector, vectors for each
// lane, lanes of a workgroup, whether each vector has its own branch, and whether there is a branch
// for vectors of moderate elements: see moderate. Near means that the vectors of a lane are neighbours, and that the
// lane computes them one after the other. A kernel with tiles reads one operand by tiles: see maptile.go.
type mapSchedule struct {
	Width, Each, Lanes int
	Branches, Guarded  bool
	Near, Tiled        bool
}

var mapSchedules = table[mapOf, mapSchedule]{
	{"tile", tiled, mapSchedule{Width: 1, Tiled: true}},
	{"near-vectors", func(m mapOf, _ *Target) bool { return m.Aligned }, mapSchedule{Width: 4, Each: 4, Near: true}},
	{"near-scalars", always, mapSchedule{Width: 1, Each: 16, Near: true}},
	{"vector", func(m mapOf, _ *Target) bool { return m.Aligned }, mapSchedule{Width: 4, Each: 1}},
	{"vectors", func(m mapOf, _ *Target) bool { return m.Aligned }, mapSchedule{Width: 4, Each: 2}},
	{"scalar", always, mapSchedule{Width: 1, Each: 1}},
	{"scalars", always, mapSchedule{Width: 1, Each: 8}},
	{"few-scalars", always, mapSchedule{Width: 1, Each: 4}},
}

func always(mapOf, *Target) bool { return true }

func tiled(m mapOf, _ *Target) bool { return m.Tiled }

// good reports whether the schedule suits programs with many elements or not, heavy programs or not, and serial
// targets or not. If there are many single elements, a lane reads several, because otherwise too few bytes are
// in flight.
func (w *mapSchedule) good(many, heavy, serial bool) bool {
	switch {
	case w.Tiled:
		return true
	case w.Near:
		// To start a lane is cheap beside a heavy program, and less code is compiled faster.
		return serial && !heavy
	case w.Width > 1:
		return (w.Each > 1) == (many && heavy)
	case !many:
		return w.Each == 1
	case heavy: // fewer elements keep the kernel short
		return w.Each == 4
	}
	return w.Each == 8
}

type mapParams struct {
	N uint32 // vectors of the result
	// Float parameters of the operation.
	F0, F1, F2, F3 float32
}

// manyElements is a number of elements that keeps a large device busy even if each lane has several
// vectors.
const manyElements = 1 << 22

// heavy reports whether a lane should compute several vectors, to share the cost of finding their
// positions. This pays off for expressions with functions that take at least much instructions.
func heavy(exprs []*ir.Node, much int) bool {
	const function, extreme = 12, 4 // approximate number of additional GPU instructions
	list, _ := ir.Flatten(exprs...)
	takes, functions := len(list), 0
	for _, n := range list {
		switch {
		case n.Code == ir.Min || n.Code == ir.Max:
			takes += extreme
		case n.Code.Composite() && n.Code != ir.Recip && n.Code != ir.Rsqrt:
			functions++
		}
	}
	return functions > 0 && takes+function*functions >= much
}

// maps computes an elementwise program. A lane computes one vector or several.
var maps = maker[mapParams, mapSchedule]{name: "map", build: func(b *kernel.Builder, p *mapParams, w mapSchedule, e *epilogue) {
	b.LocalSize(w.Lanes, 1, 1)
	xs := make([]source, len(e.in))
	for i, in := range e.in {
		xs[i] = vectorInput(b, "x"+strconv.Itoa(i), in, w.Width, b.U32(&p.N))
	}
	ys := make([]sink, len(e.out))
	for i, t := range e.out {
		ys[i] = vectorOutput(b, "y"+strconv.Itoa(i), t, w.Width)
	}
	read := func(i kernel.U32) []kernel.Dynamic {
		args := make([]kernel.Dynamic, len(xs))
		for k, x := range xs {
			args[k] = x.at(i)
		}
		return args
	}
	writeWithin := func(i kernel.U32, args []kernel.Dynamic, size float64) {
		params := []kernel.F32{b.F32(&p.F0), b.F32(&p.F1), b.F32(&p.F2), b.F32(&p.F3)}
		for k, v := range inlineWithin(b, e.exprs, args, params, size) {
			ys[k].set(i, v)
		}
	}
	write := func(i kernel.U32, args []kernel.Dynamic) { writeWithin(i, args, math.NaN()) }
	n := b.U32(&p.N)
	if w.Each == 1 {
		i := b.Index()
		b.If(i.Lt(n), func() { write(i, read(i)) })
		return
	}
	if w.Near {
		nearVectors(b, w.Each, n, func(i kernel.U32) { write(i, read(i)) })
		return
	}
	// If all vectors of the workgroup exist, the lane reads them before it computes the first one.
	// The loads are outside of the branch, so that shader compilers do not move them into it.
	first := b.Group().Mul(kernel.U(uint32(w.Each * w.Lanes))).Add(b.LocalX())
	at, args := make([]kernel.U32, w.Each), make([][]kernel.Dynamic, w.Each)
	for k := range at {
		at[k] = first.Add(kernel.U(uint32(k * w.Lanes)))
	}
	if w.Branches {
		is := make([]kernel.Bool, w.Each)
		for k := range at {
			is[k] = at[k].Lt(n)
			args[k] = read(kernel.Select(is[k], at[k], kernel.U(0)))
		}
		for k := range at {
			b.If(is[k], func() { write(at[k], args[k]) })
		}
		return
	}
	all := at[w.Each-1].Lt(n)
	for k := range at {
		args[k] = read(kernel.Select(all, at[k], kernel.U(0)))
	}
	each := func(size float64) {
		for k := range at {
			writeWithin(at[k], args[k], size)
		}
	}
	b.If(all, func() {
		if !w.Guarded {
			each(math.NaN())
			return
		}
		// The bits of NaN exceed those of any number, so a NaN is not small.
		small := moderate(b, e, w.Width, args).AsU32().Lt(kernel.U(math.Float32bits(moderateSize)))
		b.If(small, func() { each(moderateSize) }).Else(func() { each(math.NaN()) })
	}).Else(func() {
		b.ForStep(first, n, kernel.U(uint32(w.Lanes)), func(i kernel.U32) { write(i, read(i)) })
	})
}}

// nearVectors calls compute for each neighbouring vectors of each lane, as far as there are n vectors. The branches are
// nested, because software computes other branches and loops slowly even if no lane takes them.
func nearVectors(b *kernel.Builder, each int, n kernel.U32, compute func(i kernel.U32)) {
	first := b.Index().Mul(kernel.U(uint32(each)))
	var from func(k int)
	from = func(k int) {
		if k == each {
			return
		}
		i := first.Add(kernel.U(uint32(k)))
		b.If(i.Lt(n), func() {
			compute(i)
			from(k + 1)
		})
	}
	from(0)
}

// From these numbers of elements on, the cost of an additional launch is small: minRaggedHeavy is
// for heavy programs, and minRagged for other programs with functions.
const (
	minRaggedHeavy = 1 << 24
	minRagged      = 1 << 26
)

// Ragged reports whether an elementwise program over n elements is faster on a target if one launch
// computes whole vectors and another launch computes the remaining elements. Programs without
// functions are as fast with single elements.
func Ragged(p *Epilogue, n int, t Target) bool {
	if n%4 == 0 || n < minRaggedHeavy {
		return false
	}
	if n < minRagged && !heavy(p.Exprs, t.withDefaults().MapMuch) {
		return false
	}
	for _, in := range p.In {
		if in.Broadcast != op.Full && in.Broadcast != op.Scalar {
			return false
		}
	}
	list, _ := ir.Flatten(p.Exprs...)
	return slices.ContainsFunc(list, func(n *ir.Node) bool { return n.Code.Composite() })
}

// moderateSize limits moderate elements: products of several of them are finite.
const moderateSize = 1 << 30

// guards reports whether it pays off to test whether all operands are moderate. If they are, the
// operands of some Min and Max cannot be NaN, which saves at least one instruction for each of
// these; the test costs about one instruction for each floating-point operand.
func guards(e *epilogue) bool {
	list, _ := ir.Flatten(e.exprs...)
	sound := ir.Sound(list, moderateSize)
	saves := 0
	for n := range sound {
		if n.Args[0].Code != ir.Const && n.Args[1].Code != ir.Const {
			saves++
		}
	}
	floats := 0
	for _, in := range e.in {
		if irhook.Register(uint8(in.Type)) == ir.F32 {
			floats++
		}
	}
	return floats > 0 && saves > floats+1
}

// moderate returns the sum of the magnitudes of all floating-point operands. It is less than
// moderateSize only if each operand is.
func moderate(b *kernel.Builder, e *epilogue, width int, args [][]kernel.Dynamic) kernel.F32 {
	var vectors []kernel.Vec4F
	var singles []kernel.F32
	for _, of := range args {
		for i, in := range e.in {
			switch {
			case irhook.Register(uint8(in.Type)) != ir.F32:
			case width == 1:
				singles = append(singles, kernel.As[kernel.F32](b, of[i]).Abs())
			default:
				vectors = append(vectors, kernel.As[kernel.Vec4F](b, of[i]).Abs())
			}
		}
	}
	if width == 1 {
		return tree(singles)
	}
	sum := vectors[0]
	for _, v := range vectors[1:] {
		sum = sum.Add(v)
	}
	return sum.Sum()
}

// planMap plans an elementwise program, or an elementwise operation with an epilogue.
func planMap(q *request) (*Plan, error) {
	if q.Op == nil {
		args := make([]*ir.Node, len(q.Post.In))
		for i, in := range q.Post.In {
			args[i] = ir.NewArg(i, irhook.Register(uint8(in.Type)))
		}
		for _, x := range q.Post.Exprs {
			if err := checkExpr(x, args); err != nil {
				return nil, err
			}
		}
		return launchMap(q, q.Post.In, q.Post.Exprs)
	}
	types := make([]op.DType, len(q.In))
	operands := make([]Operand, len(q.In))
	for i, a := range q.In {
		l, err := op.Over(a.Shape, q.shapes[0])
		if err != nil {
			return nil, err
		}
		n := size(a.Shape)
		types[i], operands[i] = a.Type, Operand{a.Type, l.BroadcastKind(n), n, &l}
	}
	x, err := irhook.Expression(q.Op, &q.Attrs, types)
	if err != nil {
		return nil, err
	}
	return launchMap(q, operands, []*ir.Node{x})
}

// planReshape plans a copy.
func planReshape(q *request) (*Plan, error) {
	return planCopy(q, Operand{Type: q.In[0].Type, N: size(q.shapes[0])})
}

// planCopy plans a copy of x.
func planCopy(q *request, x Operand) (*Plan, error) {
	if q.epilogue == nil && x.Type != op.F16 {
		// Bits are copied as integers, so that NaN payloads do not change.
		x.Type = op.U32
		q.Out = []Array{{Type: op.U32, Shape: q.Out[0].Shape}}
	}
	return launchMap(q, []Operand{x}, []*ir.Node{ir.NewArg(0, irhook.Register(uint8(x.Type)))})
}

// launchMap plans the expressions exprs over operands, followed by the epilogue of q, which takes
// the single result of exprs.
func launchMap(q *request, operands []Operand, exprs []*ir.Node) (*Plan, error) {
	e := &epilogue{in: operands, exprs: exprs}
	if f := q.epilogue; f != nil {
		// The operands of the epilogue come after the operands of the operation.
		args := append([]*ir.Node(nil), exprs...)
		for i, in := range f.in {
			args = append(args, ir.NewArg(len(operands)+i, irhook.Register(uint8(in.Type))))
		}
		e.in, e.exprs = append(operands[:len(operands):len(operands)], f.in...), nil
		for _, y := range f.exprs {
			e.exprs = append(e.exprs, ir.Substitute(y, args, nil))
		}
	}
	for _, o := range q.Out {
		e.out = append(e.out, o.Type)
	}
	e.setKey()
	n := size(q.Out[0].Shape)
	bind := make([]Ref, len(e.in))
	for i, in := range e.in {
		if err := CheckBroadcast(in, n); err != nil {
			return nil, err
		}
		bind[i] = Ref{InputRef, i}
	}
	for i := range q.Out {
		bind = append(bind, Ref{OutputRef, i})
	}
	many, much := n >= manyElements, heavy(e.exprs, q.Target.MapMuch)
	m := mapOf{n, alignedOperands(e.in, n), mapTiles.plan != nil && mapTiles.operand(e.in) >= 0}
	w, name, err := mapSchedules.prefer(q, m, func(w *mapSchedule) bool { return w.good(many, much, q.Target.Serial) && (n >= minTiled || !w.Tiled) })
	if err != nil {
		return nil, err
	}
	f := q.Attrs.Float
	params := mapParams{uint32(n / w.Width), f(0), f(1), f(2), f(3)}
	if w.Tiled {
		return mapTiles.plan(e, name, params, bind)
	}
	w.Lanes, w.Branches = q.Target.MapLanes, w.Each > 1 && q.Target.MapBranches
	w.Guarded = w.Each > 1 && !w.Branches && q.Target.MapGuarded && guards(e)
	var p planner
	p.stage(maps.of(w, e), kernel.GridFor(n/w.Width, w.Each*w.Lanes), params, bind...)
	return p.done(name)
}

// CheckBroadcast returns an error if the broadcast kind of an operand does not fit its number of
// elements and a result of n elements.
func CheckBroadcast(in Operand, n int) error {
	ok := in.N == n
	switch in.Broadcast {
	case op.Scalar:
		ok = in.N == 1
	case op.Tiled, op.Repeated:
		ok = in.N > 0 && n%in.N == 0
	case op.Strided:
		return checkLayout(in, n)
	}
	if !ok {
		return unsupported("%d elements cannot be broadcast over %d elements as %v", in.N, n, in.Broadcast)
	}
	return nil
}

// vectorInput declares an operand that is broadcast over n vectors of the given width.
func vectorInput(b *kernel.Builder, name string, in Operand, width int, n kernel.U32) source {
	switch {
	case in.Broadcast == op.Strided && width == 1:
		return inputValue(b, name, in.Type).strided(b, in.Layout, in.Type, n)
	case in.Broadcast == op.Strided:
		return stridedVectors(b, name, in, n)
	case width == 1:
		return inputValue(b, name, in.Type).spread(in.Broadcast, n)
	}
	switch in.Broadcast {
	case op.Scalar, op.Repeated:
		// All four components of a vector are the same element.
		x := inputValue(b, name, in.Type).spread(in.Broadcast, n)
		at := x.at
		x.at = func(i kernel.U32) kernel.Dynamic { return splat(b, at(i), in.Type) }
		return x
	}
	switch in.Type {
	case op.I32:
		return sourceOf(kernel.Input[kernel.Vec4I](b, name)).spread(in.Broadcast, n)
	case op.U32:
		return sourceOf(kernel.Input[kernel.Vec4U](b, name)).spread(in.Broadcast, n)
	case op.Bool:
		x := kernel.Input[kernel.Vec4U](b, name)
		return source{func(i kernel.U32) kernel.Dynamic { return kernel.Dyn(x.At(i).Ne(kernel.Vec4U{})) }, x.Len()}.spread(in.Broadcast, n)
	case op.F16:
		x := kernel.Input[kernel.Vec4H](b, name)
		return source{func(i kernel.U32) kernel.Dynamic { return kernel.Dyn(x.At(i).Vec4F()) }, x.Len()}.spread(in.Broadcast, n)
	}
	return sourceOf(kernel.Input[kernel.Vec4F](b, name)).spread(in.Broadcast, n)
}

// splat returns a vector of four equal components.
func splat(b *kernel.Builder, v kernel.Dynamic, t op.DType) kernel.Dynamic {
	switch irhook.Register(uint8(t)) {
	case ir.I32:
		return kernel.Dyn(kernel.As[kernel.I32](b, v).Splat4())
	case ir.U32:
		return kernel.Dyn(kernel.As[kernel.U32](b, v).Splat4())
	case ir.Bool:
		return kernel.Dyn(kernel.As[kernel.Bool](b, v).Splat4())
	}
	return kernel.Dyn(kernel.As[kernel.F32](b, v).Splat4())
}

// vectorOutput declares a result that is written in vectors of the given width.
func vectorOutput(b *kernel.Builder, name string, t op.DType, width int) sink {
	if width == 1 {
		return outputValue(b, name, t)
	}
	switch t {
	case op.I32:
		return sinkOf(b, name, same[kernel.Vec4I])
	case op.U32:
		return sinkOf(b, name, same[kernel.Vec4U])
	case op.Bool:
		return sinkOf(b, name, kernel.Vec4B.Vec4U)
	case op.F16:
		return sinkOf(b, name, kernel.Vec4F.Vec4H)
	}
	return sinkOf(b, name, same[kernel.Vec4F])
}
