package wgsl

import (
	"slices"

	"github.com/rayo-go/rayo/internal/ir"
)

// Max and Min must return NaN if an operand is NaN. WGSL's built-in functions do not guarantee
// this, and a test for NaN takes longer than the functions. Most results of a chain of Max and Min
// are used by operations that propagate NaN. In such a chain the printer uses the built-in
// functions, and adds the magnitudes of their operands in a separate sum. The sum is NaN exactly if
// an operand is NaN. The end of the chain then becomes NaN.

// carried is the role of a value in such a chain.
type carried uint8

const (
	loses  carried = 1 << iota // computed by a built-in function that may lose a NaN
	ends                       // the end of a chain, which restores a NaN
	begun                      // the sum has been declared
	longer                     // the end of a chain with a Max or Min before the end
)

// sizeOf names an operand whose magnitude is added to the sum for the end of a chain.
type sizeOf struct{ end, operand ir.Value }

// keepsNaN reports whether each NaN among the operands of a code makes the result NaN.
func keepsNaN(c ir.Code) bool {
	switch c {
	case ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Neg, ir.Abs, ir.Min, ir.Max, ir.Fma, ir.Sqrt, ir.Floor, ir.Ceil, ir.Trunc, ir.Round,
		ir.Exp, ir.Exp2, ir.Expm1, ir.Log, ir.Log2, ir.Log1p, ir.Tanh, ir.Sigmoid, ir.Erf, ir.Erfc, ir.NormCDF, ir.Sin, ir.Cos, ir.Atan, ir.Recip, ir.Rsqrt:
		return true
	}
	return false
}

// extreme reports whether an instruction is a Max or Min of float32 numbers that may be NaN.
func extreme(in *ir.Instr) bool {
	return (in.Code == ir.Min || in.Code == ir.Max) && in.Type == ir.F32 && in.Flag != ir.Loose
}

// carry finds the chains that have at least two operands to check. It runs after uses are counted,
// and counts one more use for each of these operands.
func (w *printer) carry() {
	w.ending, w.carries = w.ending[:0], w.carries[:0]
	code := w.p.Code
	n := 0
	for i := range code {
		if extreme(&code[i]) && w.values[i].uses > 0 {
			n++
		}
	}
	if n < 2 {
		return
	}
	w.findEnds()
	if !w.findCarries() {
		w.carries = w.carries[:0]
		return
	}
	w.sources = w.sources[:0]
	for i := range code {
		if !extreme(&code[i]) || w.values[i].uses == 0 || w.carries[w.ending[i]]&ends == 0 {
			continue
		}
		w.carries[i] |= loses
		w.eachSource(ir.Value(i), func(a ir.Value) { w.values[a].uses++ })
	}
	w.sources = w.sources[:0]
}

// findEnds finds the end of each value: the value itself, unless all instructions that use it
// propagate NaN and have the same end.
func (w *printer) findEnds() {
	code := w.p.Code
	w.ending = append(w.ending, make([]ir.Value, len(code))...)
	for i := len(code) - 1; i > 0; i-- {
		in := &code[i]
		if w.values[i].uses == 0 && traits[in.Code]&(isFixed|droppable) != isFixed {
			continue
		}
		args, n := in.Operands()
		for _, a := range args[:n] {
			end := a
			if keepsNaN(in.Code) && in.Type == ir.F32 && w.values[a].block == w.values[i].block {
				end = w.ending[i]
			}
			if w.ending[a] == 0 {
				w.ending[a] = end
			} else if w.ending[a] != end {
				w.ending[a] = a
			}
		}
	}
}

// findCarries marks the ends of the chains with at least two operands to check, and reports whether
// there is one.
func (w *printer) findCarries() (any bool) {
	code := w.p.Code
	w.carries = append(w.carries, make([]carried, len(code))...)
	first := make([]ir.Value, len(code))
	for i := range code {
		if !extreme(&code[i]) || w.values[i].uses == 0 {
			continue
		}
		end := w.ending[i]
		for _, a := range code[i].Args[:2] {
			switch a = w.sized(a, end); {
			case a == 0:
			case first[end] == 0:
				first[end] = a
			case first[end] != a && (w.carries[end]&longer != 0 || int(end) != i):
				w.carries[end] |= ends
				any = true
			}
		}
		if int(end) != i {
			w.carries[end] |= longer
		}
	}
	return any
}

// sized returns the value whose magnitude must be added for operand a of a chain with this end. It
// returns 0 if a cannot be NaN unless another added magnitude is.
func (w *printer) sized(a, end ir.Value) ir.Value {
	for in := &w.p.Code[a]; (in.Code == ir.Neg || in.Code == ir.Abs) && w.ending[a] == end; in = &w.p.Code[a] {
		a = in.Args[0]
	}
	if w.sound(a, end, 8) {
		return 0
	}
	return a
}

// sound reports whether v is known to be NaN only if a magnitude that is already added for end is
// NaN. It follows the operands of v up to the given depth.
func (w *printer) sound(v, end ir.Value, depth int) bool {
	in := &w.p.Code[v]
	switch {
	case w.number(v) || extreme(in) && w.ending[v] == end:
		return true
	case depth == 0 || in.Type != ir.F32:
		return false
	}
	a, b := in.Args[0], in.Args[1]
	switch in.Code {
	case ir.Add, ir.Sub, ir.Mul:
		if w.number(a) {
			a, b = b, a
		}
		// b must not be infinite, and a factor must not be subnormal, because devices may replace
		// it by 0.
		n := w.size(b)
		return n < 0x7f800000 && (in.Code != ir.Mul || n >= 0x00800000) && w.sound(a, end, depth-1)
	case ir.Neg, ir.Abs, ir.Floor, ir.Ceil, ir.Trunc, ir.Round, ir.Exp, ir.Exp2, ir.Expm1, ir.Tanh, ir.Sigmoid, ir.Erf, ir.Erfc, ir.NormCDF, ir.Atan:
		return w.sound(a, end, depth-1)
	}
	return false
}

// eachSource calls f for each operand of v whose magnitude has not been added yet.
func (w *printer) eachSource(v ir.Value, f func(a ir.Value)) {
	end := w.ending[v]
	for _, a := range w.p.Code[v].Args[:2] {
		if a = w.sized(a, end); a == 0 {
			continue
		}
		// Adding a magnitude twice is harmless, so only the last sources are searched: a search of
		// all of them might take long.
		if slices.Contains(w.sources[max(0, len(w.sources)-32):], sizeOf{end, a}) {
			continue
		}
		w.sources = append(w.sources, sizeOf{end, a})
		f(a)
	}
}

// carriesAs returns the role of v in a chain.
func (w *printer) carriesAs(v ir.Value) carried {
	if len(w.carries) == 0 {
		return 0
	}
	return w.carries[v]
}

// addSizes prints the addition of the magnitudes of the operands of v, a Max or Min that may lose a
// NaN.
func (w *printer) addSizes(v ir.Value) {
	end := w.ending[v]
	w.eachSource(v, func(a ir.Value) {
		w.begin(w.indent)
		if w.carries[end]&begun == 0 {
			w.carries[end] |= begun
			w.s("var ")
			w.sizes(end)
			w.s(" = abs(")
		} else {
			w.sizes(end)
			w.s(" += abs(")
		}
		w.expr(a, operand)
		w.s(");")
		w.end(v)
	})
}

// sizes prints the name of the sum for the end of a chain.
func (w *printer) sizes(end ir.Value) {
	w.s("sizes")
	w.u(uint32(end))
}
