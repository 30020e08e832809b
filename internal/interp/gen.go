//go:build ignore

// Gen writes elementwise_gen.go: for every code that works on lanes one by one, a
// function of one lane and a loop over a plane, from one expression.
//
//	go run gen.go
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"strings"

	"github.com/rayo-go/rayo/internal/genfile"
)

// entry is one code for one type of operands. The expression is over a, b, c
// and imm.
type entry struct {
	code, typ string
	arity     int
	expr      string
	in, out   string // Go types of operands and result; in defaults to that of typ, out to in
	wide      bool   // the expression is over float64
}

var goType = map[string]string{"F32": "float32", "I32": "int32", "U32": "uint32", "Bool": "uint32"}

func table() []entry {
	var es []entry
	add := func(typ string, arity int, out string, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			es = append(es, entry{code: pairs[i], typ: typ, arity: arity, expr: pairs[i+1], out: out})
		}
	}
	bits := func(typ string, arity int, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			es = append(es, entry{code: pairs[i], typ: typ, arity: arity, expr: pairs[i+1], in: "uint32", out: "uint32"})
		}
	}
	// In float64, rounded at the end.
	wide := func(arity int, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			es = append(es, entry{code: pairs[i], typ: "F32", arity: arity, expr: pairs[i+1], wide: true})
		}
	}
	add("F32", 2, "", "Add", "a + b", "Sub", "a - b", "Mul", "a * b", "Div", "a / b",
		"Min", "min(a, b)", "Max", "max(a, b)")
	bits("F32", 1, "Neg", "a ^ 1<<31", "Abs", "a &^ (1 << 31)")
	bits("F32", 2, "CopySign", "a&^(1<<31) | b&(1<<31)")
	add("F32", 3, "", "Fma", "fma(a, b, c)")
	add("F32", 1, "", "Sqrt", "float32(math.Sqrt(float64(a)))", "Floor", "float32(math.Floor(float64(a)))",
		"Ceil", "float32(math.Ceil(float64(a)))", "Trunc", "float32(math.Trunc(float64(a)))",
		"Round", "float32(math.RoundToEven(float64(a)))",
		"RoundF16", "roundHalf(a)", "RoundBF16", "roundBrain(a)", "Recip", "1 / a")
	wide(1, "Exp", "exp(a)", "Exp2", "exp(a * math.Ln2)", "Expm1", "expm1(a)", "Log", "log(a)", "Log2", "log(a) * math.Log2E",
		"Log1p", "log1p(a)", "Tanh", "tanh(a)", "Sigmoid", "1 / (1 + exp(-a))", "Erf", "math.Erf(a)", "Erfc", "math.Erfc(a)",
		"NormCDF", "0.5 * math.Erfc(a*(-1/math.Sqrt2))", "Sin", "math.Sin(a)", "Cos", "math.Cos(a)", "Atan", "math.Atan(a)", "Rsqrt", "1 / math.Sqrt(a)")
	wide(2, "Ldexp", "ldexp(a, b)", "Pow", "pow(a, b)")
	for _, t := range []string{"I32", "U32"} {
		add(t, 2, "", "Add", "a + b", "Sub", "a - b", "Mul", "a * b", "Min", "min(a, b)", "Max", "max(a, b)",
			"And", "a & b", "Or", "a | b", "Xor", "a ^ b", "Shl", "a << (uint32(b) & 31)", "Shr", "a >> (uint32(b) & 31)")
		add(t, 1, "", "Neg", "-a", "Not", "^a")
		bits(t, 1, "CountOnes", "uint32(bits.OnesCount32(a))", "LeadingZeros", "uint32(bits.LeadingZeros32(a))",
			"TrailingZeros", "uint32(bits.TrailingZeros32(a))", "ReverseBits", "bits.Reverse32(a)")
	}
	add("I32", 1, "", "Abs", "max(a, -a)")
	add("U32", 1, "", "Abs", "a")
	add("I32", 2, "", "IDiv", "divI32(a, b)", "IMod", "modI32(a, b)")
	add("U32", 2, "", "IDiv", "divU32(a, b)", "IMod", "modU32(a, b)", "MulHigh", "uint32(uint64(a) * uint64(b) >> 32)")
	add("U32", 3, "", "Dot4I8", "dot4I8(a, b, c)", "Dot4U8", "dot4U8(a, b, c)")
	for _, t := range []string{"F32", "I32", "U32"} {
		add(t, 2, "uint32", "Eq", "truth(a == b)", "Ne", "truth(a != b)", "Lt", "truth(a < b)", "Le", "truth(a <= b)")
	}
	add("Bool", 2, "", "And", "a & b", "Or", "a | b", "Xor", "a ^ b")
	add("Bool", 1, "", "Not", "a ^ 1")
	bits("U32", 3, "Select", "c ^ (b^c)&-a")
	return es
}

// loose are functions that no code of package ir names alone.
var loose = []entry{
	{"convertF32", "I32", 1, "toI32(a)", "float32", "int32", false},
	{"convertF32", "U32", 1, "toU32(a)", "float32", "uint32", false},
	{"convertF32", "Bool", 1, "truth(a != 0)", "float32", "uint32", false},
	{"convertF32", "F16", 1, "roundHalf(a)", "float32", "float32", false},
	{"convertI32", "F32", 1, "float32(a)", "int32", "float32", false},
	{"convertU32", "F32", 1, "float32(a)", "uint32", "float32", false},
	{"convertU32", "Bool", 1, "truth(a != 0)", "uint32", "uint32", false},
	{"fma", "F16", 3, "fmaHalf(a, b, c)", "float32", "float32", false},
	{"packHalf", "", 2, "uint32(toHalf(a)) | uint32(toHalf(b))<<16", "float32", "uint32", false},
	{"unpackHalf", "", 1, "fromHalf(uint16(a >> imm))", "uint32", "float32", false},
	{"packByte", "", 2, "a | b&255<<imm", "uint32", "uint32", false},
	{"unpackI8", "", 1, "int32(int8(a >> imm))", "uint32", "int32", false},
	{"unpackU8", "", 1, "a >> imm & 255", "uint32", "uint32", false},
	{"move", "", 1, "a", "uint32", "uint32", false},
	{"mulAdd", "F32", 3, "float32(a*b) + c", "float32", "float32", false},
	{"mulAdd", "U32", 3, "a*b + c", "uint32", "uint32", false},
}

func (e *entry) types() (in, out string) {
	in, out = e.in, e.out
	if in == "" {
		in = goType[e.typ]
	}
	if out == "" {
		out = in
	}
	return in, out
}

func (e *entry) name() string { return strings.ToLower(e.code[:1]) + e.code[1:] + e.typ }

// word replaces the identifiers a, b and c of an expression.
func word(expr string, with map[byte]string) string {
	var s strings.Builder
	ident := func(c byte) bool {
		return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for i := 0; i < len(expr); i++ {
		w, ok := with[expr[i]]
		if ok && (i == 0 || !ident(expr[i-1])) && (i+1 == len(expr) || !ident(expr[i+1])) {
			s.WriteString(w)
		} else {
			s.WriteByte(expr[i])
		}
	}
	return s.String()
}

func (e *entry) write(w *bytes.Buffer) {
	in, out := e.types()
	names := []string{"a", "b", "c"}[:e.arity]

	// One lane.
	args := map[byte]string{}
	for _, n := range names {
		args[n[0]] = n
		switch in {
		case "float32":
			args[n[0]] = "math.Float32frombits(" + n + ")"
		case "int32":
			args[n[0]] = "int32(" + n + ")"
		}
	}
	x := word(e.expr, args)
	if e.wide {
		for _, n := range names {
			args[n[0]] = "float64(math.Float32frombits(" + n + "))"
		}
		x = "float32(" + word(e.expr, args) + ")"
	}
	switch out {
	case "float32":
		x = "math.Float32bits(" + x + ")"
	case "int32":
		x = "uint32(" + x + ")"
	}
	params := append([]string{}, "_", "_", "_")
	copy(params, names)
	imm := "_"
	if strings.Contains(e.expr, "imm") {
		imm = "imm"
	}
	fmt.Fprintf(w, "func lane%s(%s, %s uint32) uint32 { return %s }\n\n", e.title(), strings.Join(params, ", "), imm, x)

	e.writePlane(w, names, params, imm)
}

// writePlane writes the function for a plane, which is a list of blocks of lanes.
func (e *entry) writePlane(w *bytes.Buffer, names, params []string, imm string) {
	in, out := e.types()
	// Without calls the eight lanes of a block are written out.
	fmt.Fprintf(w, "func plane%s(d, %s unsafe.Pointer, o *op) {\n", e.title(), strings.Join(params, ", "))
	if imm == "imm" {
		fmt.Fprintf(w, "imm := o.imm\n")
	}
	fmt.Fprintf(w, "for n := o.blocks; n > 0; n-- {\n")
	fmt.Fprintf(w, "z := (*[block]%s)(d)\n", out)
	for _, n := range names {
		fmt.Fprintf(w, "%s%s := (*[block]%s)(%s)\n", n, n, in, n)
	}
	at := func(i string) map[byte]string {
		m := map[byte]string{}
		for _, n := range names {
			m[n[0]] = n + n + "[" + i + "]"
		}
		return m
	}
	switch {
	case e.code == "Fma" && e.typ == "F32":
		e.writeFma(w)
	case e.wide:
		for i, n := range names {
			fmt.Fprintf(w, "var %s [block]float64\nwiden(&%s, %s%s)\n", wideNames[i], wideNames[i], n, n)
		}
		m := map[byte]string{}
		for i, n := range names {
			m[n[0]] = wideNames[i] + "[i]"
		}
		fmt.Fprintf(w, "for i := range x {\nx[i] = %s\n}\nnarrow(z, &x)\n", word(e.expr, m))
	case called(e.expr):
		fmt.Fprintf(w, "for i := range z {\nz[i] = %s\n}\n", word(e.expr, at("i")))
	default:
		for i := range 8 {
			fmt.Fprintf(w, "z[%d] = %s\n", i, word(e.expr, at(fmt.Sprint(i))))
		}
	}
	fmt.Fprintf(w, "d = unsafe.Add(d, blockBytes)\n")
	for i, n := range names {
		fmt.Fprintf(w, "%s = unsafe.Add(%s, o.stride[%d])\n", n, n, i)
	}
	fmt.Fprintf(w, "}\n}\n\n")
}

var wideNames = []string{"x", "y"}

// writeFma computes a block in float64 and, if a lane of it may have been
// rounded twice, once more lane by lane.
func (e *entry) writeFma(w *bytes.Buffer) {
	var sums, flags, narrow []string
	for i := range 8 {
		fmt.Fprintf(w, "s%d, f%d := sumOf(float64(aa[%d]), float64(bb[%d]), float64(cc[%d]))\n", i, i, i, i, i)
		sums = append(sums, fmt.Sprintf("z[%d]", i))
		flags = append(flags, fmt.Sprintf("f%d", i))
		narrow = append(narrow, fmt.Sprintf("float32(s%d)", i))
	}
	fmt.Fprintf(w, "if (%s)>>63 == 0 {\n%s = %s\n", strings.Join(flags, "|"), strings.Join(sums, ", "), strings.Join(narrow, ", "))
	fmt.Fprintf(w, "} else {\nfor i := range z {\nz[i] = fma(aa[i], bb[i], cc[i])\n}\n}\n")
}

func (e *entry) title() string { return strings.ToUpper(e.code[:1]) + e.code[1:] + e.typ }

// called reports whether an expression calls a function that is more than an
// instruction or two.
func called(expr string) bool {
	name, _, ok := strings.Cut(expr, "(")
	if !ok || name == "" {
		return false
	}
	last := name[strings.LastIndexAny(name, " *+-&|^<>")+1:]
	switch last {
	case "truth", "min", "max", "float32", "uint32", "int32", "":
		return strings.Contains(expr, "toHalf")
	}
	return true
}

func main() {
	var w bytes.Buffer
	w.WriteString("// Code generated by go run gen.go; DO NOT EDIT.\n\npackage interp\n\n")
	w.WriteString("import (\n\"math\"\n\"math/bits\"\n\"unsafe\"\n\n\"github.com/rayo-go/rayo/internal/ir\"\n)\n\n")
	es := table()
	w.WriteString("// elementwise has the functions of each code by the type of its operands.\n")
	w.WriteString("var elementwise = [256][ir.F16 + 1]lanewise{\n")
	var order []string
	by := map[string][]entry{}
	for _, e := range es {
		if by[e.code] == nil {
			order = append(order, e.code)
		}
		by[e.code] = append(by[e.code], e)
	}
	for _, c := range order {
		fmt.Fprintf(&w, "ir.%s: {", c)
		for i, e := range by[c] {
			if i > 0 {
				w.WriteString(", ")
			}
			fmt.Fprintf(&w, "ir.%s: {lane%s, plane%s}", e.typ, e.title(), e.title())
		}
		w.WriteString("},\n")
	}
	w.WriteString("}\n\n")
	for _, e := range append(es, loose...) {
		e.write(&w)
	}
	out, err := format.Source(w.Bytes())
	if err != nil {
		os.Stderr.Write(w.Bytes())
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := genfile.Write("elementwise_gen.go", out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
