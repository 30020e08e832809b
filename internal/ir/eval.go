package ir

import "math"

// Eval computes a flat expression in float64: the reference that every back
// end is compared with. list comes from [Flatten], whose last entry is the
// result; args and params are indexed by Arg and Param; scratch needs len(list)
// places, or nil.
//
// Integers wrap at 32 bits and Convert saturates as the codes say.
func Eval(list []*Node, args, params, scratch []float64) float64 {
	if len(scratch) < len(list) {
		scratch = make([]float64, len(list))
	}
	at := make(map[*Node]int, len(list))
	for i, n := range list {
		at[n] = i
		switch n.Code {
		case Arg:
			scratch[i] = args[n.Index]
		case Param:
			scratch[i] = params[n.Index]
		case Const:
			scratch[i] = n.Value
		default:
			var v [3]float64
			for j, a := range n.Operands() {
				v[j] = scratch[at[a]]
			}
			scratch[i] = evalNode(n, v[0], v[1], v[2])
		}
	}
	return scratch[len(list)-1]
}

// evalNode applies the code of n to values of its operands.
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
	return wrap(codes[n.Code].eval(a, b, c), n.Type)
}

// wrap brings an integer result back to 32 bits, as the hardware does.
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
		return math.Trunc(max(lo, min(hi, v)))
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
