package ir

import "math"

// Ranges returns what is known of each float32 number of a program, of the components
// of a vector together, as the arithmetic of any device gives it. p is well formed.
func Ranges(p *Program) []Interval {
	known := make([]Interval, len(p.Code))
	for i := range p.Code {
		in := &p.Code[i]
		v := Anything()
		args, n := in.Operands()
		switch {
		case in.Type != F32 && in.Type != Bool:
		case in.Code == Const && in.Type == F32:
			v = Point(float64(math.Float32frombits(in.Imm)))
		case in.Code == Splat || in.Code == Extract:
			v = known[args[0]]
		case in.Code == Compose:
			v = nothing()
			for _, a := range args[:n] {
				v = v.join(known[a])
			}
		case in.Code >= Add && in.Code <= lastCode && in.Code != Bitcast:
			// What operands are is as in an expression.
			node := Node{Code: in.Code, Type: in.Type}
			var of [3]Interval
			for k, a := range args[:n] {
				node.Args[k], of[k] = &Node{Type: p.Code[a].Type}, known[a]
			}
			if v = encloseNode(&node, of[:n]); in.Type == F32 {
				v = rounding(v)
			}
		}
		known[i] = v
	}
	return known
}
