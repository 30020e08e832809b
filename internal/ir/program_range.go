package ir

import "math"

// Ranges returns an interval for each float32 value of a program, valid for the arithmetic of
// any device. The components of a vector share one interval. p must be well formed.
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
