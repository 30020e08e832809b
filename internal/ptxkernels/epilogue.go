package ptxkernels

import (
	"fmt"
	"strings"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/ptxgen"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// epilogue is the computation on the float32 values of a kernel's first result: the activation of
// the operation, then the program of the request, then the stores. Kernels are specialised by its
// key; its arrays and sizes are parameters:
//
//	e, err := finish(r, n)                        // when planning, rows of n elements
//	spec.key = e.key                              // the kernel depends on the key
//	Args: append(args, e.args()...)
//	s := e.sink(k)                                // when building, after the other parameters
//	s.set(i, v)                                   // element i of the result, or i, i+1 ... of several values
//	s.setRow(row, column, i, v)                   // likewise with known row and column, which needs no division
type epilogue struct {
	key   string // equal keys, equal code
	out   []op.DType
	in    []extra
	exprs *ptxgen.Expressions // nil if the value is stored unchanged
	first int                 // index of its operands among those of the request
	alone bool                // the request has no operation: the operands are the only input
}

// extra is an operand of an epilogue.
type extra struct {
	portable.Operand
	lie  lie
	size int // see lie
	wide int // elements that one access loads: 1, 2, 4 or 8; the first is at a multiple of wide
}

// lie is the broadcast kind of an operand.
type lie uint8

const (
	lieFull      lie = iota
	lieScalar        // one element for all
	liePeriodic      // repeated: size is its period
	lieColumn        // periodic, and the period is a row: one element for each column
	lieStretched     // each element applies to a run of this size
	lieRow           // stretched, and the run is a row: one element for each row
)

// finish returns the epilogue of a request for a kernel that computes the first result in float32.
// Rows of the result have columns elements; columns is 0 if the kernel does not need rows.
func finish(r *portable.Request, columns int) (*epilogue, error) {
	p, err := portable.Finish(r)
	if err != nil {
		return nil, err
	}
	return newEpilogue(r, p, columns)
}

// newEpilogue returns the epilogue that stores the results of p, computed from the first result,
// or, for a request without an operation, from its operands only. A nil p stores the result
// unchanged.
func newEpilogue(r *portable.Request, p *portable.Epilogue, columns int) (*epilogue, error) {
	e := &epilogue{first: len(r.In), alone: r.Op == nil}
	var key strings.Builder
	for _, o := range r.Out {
		if irhook.Register(uint8(o.Type)) == ir.Invalid {
			return nil, unsupported("results of type %v", o.Type)
		}
		e.out = append(e.out, o.Type)
		fmt.Fprintf(&key, "%v ", o.Type)
		if p == nil {
			break // further results are the kernel's own
		}
	}
	if p != nil {
		for i, x := range p.Exprs {
			if x.Type != irhook.Register(uint8(e.out[i])) {
				return nil, unsupported("a result of type %v in an array of %v", x.Type, e.out[i])
			}
		}
		n := size(r.Out[0].Shape)
		for _, in := range p.In {
			if irhook.Register(uint8(in.Type)) == ir.Invalid {
				return nil, unsupported("operands of type %v", in.Type)
			}
			if in.Broadcast == op.Strided {
				return nil, unsupported("a strided operand")
			}
			x := extraOf(in, n, columns)
			e.in = append(e.in, x)
			fmt.Fprintf(&key, "%v.%d.%d ", in.Type, x.lie, x.wide)
		}
		e.exprs = ptxgen.NewExpressions(p.Exprs...)
		key.WriteString(ir.Key(p.Exprs...))
	}
	e.key = key.String()
	return e, nil
}

// extraOf returns the broadcast kind of an operand over a result of n elements, with columns elements in a row.
func extraOf(in portable.Operand, n, columns int) extra {
	x := extra{Operand: in, wide: 8}
	switch in.Broadcast {
	case op.Scalar:
		x.lie = lieScalar
	case op.Tiled:
		x.lie, x.size = liePeriodic, in.N
		if in.N == columns {
			x.lie = lieColumn
		}
	case op.Repeated:
		x.lie, x.size = lieStretched, n/in.N
		if x.size == columns {
			x.lie = lieRow
		}
	}
	for x.size%x.wide != 0 {
		x.wide /= 2
	}
	return x
}

// args returns the arguments for the parameters that [epilogue.sink] declares.
func (e *epilogue) args() []Arg {
	var args []Arg
	for i := range e.out {
		args = append(args, output(i))
	}
	for i, x := range e.in {
		args = append(args, input(e.first+i))
		if x.lie > lieScalar {
			args = append(args, word(uint32(x.size)))
		}
	}
	return args
}

// sink writes the result of a kernel.
type sink struct {
	*epilogue
	k     *ptx.Kernel
	to    []ptx.Global[ptx.U32]
	from  []ptx.Global[ptx.U32]
	sizes []ptx.U32
}

// sink declares the results, and the operands of the epilogue, as the next parameters of the
// kernel.
func (e *epilogue) sink(k *ptx.Kernel) *sink {
	s := &sink{epilogue: e, k: k}
	for i := range e.out {
		s.to = append(s.to, ptx.GlobalParam[ptx.U32](k, fmt.Sprintf("out%d", i)))
	}
	for i, x := range e.in {
		p := ptx.GlobalParam[ptx.U32](k, fmt.Sprintf("with%d", i))
		if x.lie != lieFull {
			// A full operand may be the memory of the result, so it is not read-only.
			p = p.Hint(ptx.ReadOnly)
		}
		s.from = append(s.from, p)
		var n ptx.U32
		if x.lie > lieScalar {
			n = ptx.Param[ptx.U32](k, fmt.Sprintf("size%d", i))
		}
		s.sizes = append(s.sizes, n)
	}
	return s
}

// spot is a place in the result.
type spot struct {
	i, row, column ptx.U32
	located        bool // row and column are set
	plus           int  // added to i as a constant offset, which costs nothing for full operands; 0 if located
}

// set stores the result of v[0] as element i, of v[1] as element i+1, and so on. If there are 2, 4
// or 8 values, i must be a multiple of their number; they are stored with one access, or two.
func (s *sink) set(i ptx.U32, v ...ptx.F32) { s.put(spot{i: i}, v) }

// setRow is set for element i with the given row and column. All values are in one row.
func (s *sink) setRow(row, column, i ptx.U32, v ...ptx.F32) {
	s.put(spot{i: i, row: row, column: column, located: true}, v)
}

// floats returns the results that setRow would store, for kernels that store them themselves. The
// epilogue must have one result of a floating-point type, and all values must be in one row. i is
// used only for full operands, and must be a multiple of the number of values.
func (s *sink) floats(row, column, i ptx.U32, v ...ptx.F32) []ptx.F32 {
	y := make([]ptx.F32, len(v))
	for j, x := range s.values(spot{i: i, row: row, column: column, located: true}, v) {
		y[j] = ptx.F32(x[0])
	}
	return y
}

func (s *sink) put(at spot, v []ptx.F32) { s.keep(at, s.values(at, v)) }

// keep stores the results of each value.
func (s *sink) keep(at spot, results [][]ptx.U32) {
	for j, t := range s.out {
		x := make([]ptx.U32, len(results))
		for e := range x {
			x[e] = results[e][j]
		}
		s.store(t, s.to[j], at, x)
	}
}

// values returns the results of each value.
func (s *sink) values(at spot, v []ptx.F32) [][]ptx.U32 { return s.results(s.operands(at, v)) }

// operands returns the operands of each value.
func (s *sink) operands(at spot, v []ptx.F32) [][]ptx.U32 {
	args := make([][]ptx.U32, len(v))
	for e := range args {
		if !s.alone {
			args[e] = []ptx.U32{ptx.U32(v[e])}
		}
	}
	for j := range s.in {
		for e, x := range s.load(j, at, len(v)) {
			args[e] = append(args[e], x)
		}
	}
	return args
}

// results computes the results of each value. An expression may be a constant; a constant of a
// 16-bit type is moved to a register, because PTX cannot convert an immediate.
func (s *sink) results(args [][]ptx.U32) [][]ptx.U32 {
	if s.exprs == nil {
		return args
	}
	for e := range args {
		args[e] = s.exprs.Inline(s.k, args[e]...)
		for j, v := range args[e] {
			if _, ok := v.Constant(); ok && s.out[j].Size() == 2 {
				args[e][j] = ptx.U32(ptx.Reg(s.k, ptx.F32(v)))
			}
		}
	}
	return args
}

// load returns the elements of operand j that are broadcast to n elements of the result.
func (s *sink) load(j int, at spot, n int) []ptx.U32 {
	x, p, size := &s.in[j], s.from[j], s.sizes[j]
	if x.lie == lieFull {
		return loadFurther(x.Type, p, at.i, at.plus, n)
	}
	together := min(n, x.wide)
	if x.lie == lieScalar || x.lie == lieRow && at.located {
		together = n
	}
	var y []ptx.U32
	for e := 0; e < n; e += together {
		i := at.i.Add(ptx.N(e + at.plus))
		one := true // one element for all n
		switch {
		case x.lie == lieScalar:
			i = ptx.U(0)
		case x.lie == lieRow && at.located:
			i = at.row
		case x.lie == lieRow || x.lie == lieStretched:
			i = i.Div(size)
		case x.lie == lieColumn && at.located:
			i, one = at.column.Add(ptx.N(e)), false
		default:
			i, one = i.Rem(size), false
		}
		if !one {
			y = append(y, loadElements(x.Type, p, i, together)...)
			continue
		}
		v := loadElements(x.Type, p, i, 1)[0]
		for range together {
			y = append(y, v)
		}
	}
	return y
}

// loadElements loads n elements of type t, in one access if n is 2, 4 or 8, and converts them.
func loadElements(t op.DType, p ptx.Global[ptx.U32], i ptx.U32, n int) []ptx.U32 {
	return loadFurther(t, p, i, 0, n)
}

// loadFurther is loadElements from element i + plus on.
func loadFurther(t op.DType, p ptx.Global[ptx.U32], i ptx.U32, plus, n int) []ptx.U32 {
	var y []ptx.U32
	switch t {
	case op.F16:
		if n == 8 {
			for _, w := range ptx.Cast[ptx.F16x2](ptx.Cast[ptx.F16](p).At(i).Offset(plus)).Load4() {
				low, high := w.Halves()
				y = append(y, ptx.U32(low.F32()), ptx.U32(high.F32()))
			}
			return y
		}
		for _, v := range loads(ptx.Cast[ptx.F16](p).At(i).Offset(plus), n) {
			y = append(y, ptx.U32(v.F32()))
		}
	case op.BF16:
		if n == 8 {
			for _, w := range ptx.Cast[ptx.U32](ptx.Cast[ptx.BF16](p).At(i).Offset(plus)).Load4() {
				y = append(y, ptx.U32(w.Shl(ptx.U(16)).B32().Float()), ptx.U32(w.And(ptx.U(0xffff0000)).B32().Float()))
			}
			return y
		}
		for _, v := range loads(ptx.Cast[ptx.BF16](p).At(i).Offset(plus), n) {
			y = append(y, ptx.U32(v.F32()))
		}
	case op.F32:
		for _, v := range loads(ptx.Cast[ptx.F32](p).At(i).Offset(plus), n) {
			y = append(y, ptx.U32(v))
		}
	default:
		for _, v := range loads(p.At(i).Offset(plus), n) {
			if t == op.Bool {
				v = ptx.U32(v.Ne(ptx.U(0)))
			}
			y = append(y, v)
		}
	}
	return y
}

// loads loads n elements: with one access if n is 2, 4 or 8, otherwise one by one.
func loads[T ptx.Element](p ptx.Global[T], n int) []T {
	switch n {
	case 2:
		v := p.Load2()
		return v[:]
	case 4:
		v := p.Load4()
		return v[:]
	case 8:
		low, high := p.Load4(), p.Offset(4).Load4()
		return append(low[:], high[:]...)
	}
	y := make([]T, n)
	for e := range y {
		y[e] = p.Offset(e).Load()
	}
	return y
}

// store stores values as elements of type t.
func (s *sink) store(t op.DType, p ptx.Global[ptx.U32], at spot, x []ptx.U32) {
	k := s.k
	switch t {
	case op.F16:
		to, y := ptx.Cast[ptx.F16](p).At(at.i).Offset(at.plus), make([]ptx.F16, len(x))
		if len(x)%2 == 0 && k.Target() >= ptx.SM80 {
			w := make([]ptx.F16x2, len(x)/2)
			for e := range w {
				w[e] = ptx.F32(x[2*e+1]).PackF16(ptx.F32(x[2*e]))
			}
			stores(ptx.Cast[ptx.F16x2](to), w)
			return
		}
		for e, v := range x {
			y[e] = ptx.F32(v).F16()
		}
		stores(to, y)
	case op.BF16:
		to, y := ptx.Cast[ptx.BF16](p).At(at.i).Offset(at.plus), make([]ptx.BF16, len(x))
		if len(x)%2 == 0 && k.Target() >= ptx.SM80 {
			w := make([]ptx.BF16x2, len(x)/2)
			for e := range w {
				w[e] = ptx.F32(x[2*e+1]).PackBF16(ptx.F32(x[2*e]))
			}
			stores(ptx.Cast[ptx.BF16x2](to), w)
			return
		}
		for e, v := range x {
			y[e] = ptxgen.Narrow(k, ptx.F32(v))
		}
		stores(to, y)
	case op.F32:
		y := make([]ptx.F32, len(x))
		for e, v := range x {
			y[e] = ptx.F32(v)
		}
		stores(ptx.Cast[ptx.F32](p).At(at.i).Offset(at.plus), y)
	default:
		if t == op.Bool {
			for e, v := range x {
				x[e] = ptx.Select(ptx.Pred(v), ptx.U(1), ptx.U(0))
			}
		}
		stores(p.At(at.i).Offset(at.plus), x)
	}
}

// stores stores the elements of v: with one access if there are 2, 4 or 8, otherwise one by one.
func stores[T ptx.Element](p ptx.Global[T], v []T) {
	switch len(v) {
	case 2:
		p.Store2([2]T(v))
	case 4:
		p.Store4([4]T(v))
	case 8:
		p.Store4([4]T(v[:4]))
		p.Offset(4).Store4([4]T(v[4:]))
	default:
		for e, x := range v {
			p.Offset(e).Store(x)
		}
	}
}
