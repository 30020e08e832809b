package ir

import "math"

// Evaluator computes expressions in float64, as the reference for all back ends. Integers wrap at
// 32 bits and Convert saturates, as the codes define. It is not safe for concurrent use.
type Evaluator struct {
	list   []*Node
	places [][3]int // indices in list of the operands of each node
	values []float64
}

// NewEvaluator prepares the evaluation of root.
func NewEvaluator(root *Node) *Evaluator {
	list, _ := Flatten(root)
	e := &Evaluator{list, make([][3]int, len(list)), make([]float64, len(list))}
	at := make(map[*Node]int, len(list))
	for i, n := range list {
		at[n] = i
		for j, a := range n.Operands() {
			e.places[i][j] = at[a]
		}
	}
	return e
}

// Eval returns the value of the expression. args and params are the values of its operands and
// parameters.
func (e *Evaluator) Eval(args, params []float64) float64 {
	for i, n := range e.list {
		switch n.Code {
		case Arg:
			e.values[i] = args[n.Index]
		case Param:
			e.values[i] = params[n.Index]
		case Const:
			e.values[i] = n.Value
		default:
			p := &e.places[i]
			e.values[i] = evalNode(n, e.values[p[0]], e.values[p[1]], e.values[p[2]])
		}
	}
	return e.values[len(e.values)-1]
}

// evalNode applies the code of n to the values of its operands.
func evalNode(n *Node, a, b, c float64) float64 {
	switch n.Code {
	case Not:
		if n.Type == Bool {
			return 1 - a
		}
		return wrap(float64(^int64(a)), n.Type)
	case Convert:
		return convert(a, n.Args[0].Type, n.Type)
	case Bitcast:
		return bitcast(a, n.Args[0].Type, n.Type)
	}
	if n.Type.Integer() && (n.Code == Mul || n.Code == Shl) {
		// The whole product may need more bits than a float64 has.
		v := int64(a) * int64(b)
		if n.Code == Shl {
			v = int64(a) << (uint64(b) & 31)
		}
		return wrap(float64(uint32(v)), n.Type)
	}
	return wrap(evalOf(n.Code)(a, b, c), n.Type)
}

// wrap reduces an integer result to 32 bits.
func wrap(v float64, t Type) float64 {
	switch t {
	case I32:
		if v >= -1<<62 && v < 1<<62 {
			return float64(int32(int64(v)))
		}
	case U32:
		if v >= -1<<62 && v < 1<<62 {
			return float64(uint32(int64(v)))
		}
	}
	return v
}

func convert(v float64, from, to Type) float64 {
	switch to {
	case Bool:
		return truth(v != 0)
	case F32:
		return v
	}
	if from == F32 {
		if v != v {
			return 0
		}
		lo, hi := float64(math.MinInt32), float64(math.MaxInt32)
		if to == U32 {
			lo, hi = 0, math.MaxUint32
		}
		return math.Trunc(max(lo, min(hi, v))) + 0 // no -0
	}
	return wrap(v, to)
}

func bitcast(v float64, from, to Type) float64 {
	var bits uint32
	switch from {
	case F32:
		bits = math.Float32bits(float32(v))
	default:
		bits = uint32(int64(v))
	}
	switch to {
	case F32:
		return float64(math.Float32frombits(bits))
	case I32:
		return float64(int32(bits))
	}
	return float64(bits)
}
