package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/rayo-go/rayo/internal/ir"
)

// writeGeneric writes the plain Go twins.
func writeGeneric(ks []*kernel) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\npackage simd\n\nimport (\n\t\"math\"\n\t\"unsafe\"\n\n\t\"github.com/rayo-go/rayo/op\"\n)\n", header)
	for _, k := range ks {
		fmt.Fprintf(&b, "\n// map%sGeneric stores %s.\n", k.symbol(), k.formula())
		fmt.Fprintf(&b, "func map%sGeneric(dst, x, y, z *float32, n int, p *float32) {\n", k.symbol())
		goBody(&b, ir.Lower(k.root, func(c ir.Code) bool { return c == ir.CopySign || c == ir.Round || goHalf[c] != "" }))
		b.WriteString("}\n")
	}
	return gofmt(b.Bytes())
}

var goTypes = map[ir.Type]string{ir.F32: "float32", ir.I32: "int32", ir.U32: "uint32", ir.Bool: "uint32"}

// goBody prints the loop. float32(…) around each product and sum prevents the compiler from fusing
// them, which it does on some architectures.
func goBody(b *bytes.Buffer, root *ir.Node) {
	list, _ := ir.Flatten(root)
	root = list[len(list)-1]
	slice := func(name, pointer string, t ir.Type) {
		fmt.Fprintf(b, "%s := unsafe.Slice((*%s)(unsafe.Pointer(%s)), n)\n", name, goTypes[t], pointer)
	}
	slice("d", "dst", root.Type)
	names := make(map[*ir.Node]string, len(list))
	for _, n := range list {
		switch n.Code {
		case ir.Arg:
			slice(fmt.Sprintf("a%d", n.Index), "xyz"[n.Index:n.Index+1], n.Type)
			fmt.Fprintf(b, "a%d = a%d[:len(d)]\n", n.Index, n.Index)
		case ir.Param:
			names[n] = fmt.Sprintf("p%d", n.Index)
			fmt.Fprintf(b, "p%d := unsafe.Slice(p, %d)[%d]\n", n.Index, n.Index+1, n.Index)
		case ir.Const:
			names[n] = goConst(n)
		}
	}
	fmt.Fprintf(b, "for i := range d {\n")
	for i, n := range list {
		if names[n] != "" {
			continue
		}
		v := fmt.Sprintf("v%d", i)
		names[n] = v
		arg := func(j int) string { return names[n.Args[j]] }
		switch n.Code {
		case ir.Arg:
			s := fmt.Sprintf("a%d[i]", n.Index)
			if n.Type == ir.Bool {
				s += " != 0"
			}
			fmt.Fprintf(b, "%s := %s\n", v, s)
		case ir.Select:
			fmt.Fprintf(b, "%s := %s\nif %s {\n%s = %s\n}\n", v, typed(n.Args[2], arg(2)), arg(0), v, arg(1))
		default:
			fmt.Fprintf(b, "%s := %s\n", v, goValue(n, arg))
		}
	}
	out := names[root]
	if root.Type == ir.Bool {
		out = "truth(" + out + ")"
	}
	fmt.Fprintf(b, "d[i] = %s\n}\n", out)
}

// typed gives a constant its type, as := takes it for a float64 or int.
func typed(n *ir.Node, s string) string {
	if n.Code == ir.Const && n.Type != ir.Bool {
		return goTypes[n.Type] + "(" + s + ")"
	}
	return s
}

func goConst(n *ir.Node) string {
	switch {
	case n.Type == ir.Bool:
		return fmt.Sprint(n.Value != 0)
	case n.Type != ir.F32:
		return fmt.Sprintf("%#x", int64(n.Value))
	case math.IsNaN(n.Value) || math.IsInf(n.Value, 0):
		return fmt.Sprintf("math.Float32frombits(%#x)", math.Float32bits(float32(n.Value)))
	}
	return fmt.Sprintf("%x", float32(n.Value))
}

var goInfix = map[ir.Code]string{ir.Add: "+", ir.Sub: "-", ir.Mul: "*", ir.Div: "/", ir.And: "&", ir.Or: "|", ir.Xor: "^",
	ir.Eq: "==", ir.Ne: "!=", ir.Lt: "<", ir.Le: "<="}

var goMath = map[ir.Code]string{ir.Sqrt: "Sqrt", ir.Floor: "Floor", ir.Ceil: "Ceil", ir.Trunc: "Trunc", ir.Round: "RoundToEven"}

// goHalf maps the codes that round to a 16-bit format to its name in the conversions of package op.
var goHalf = map[ir.Code]string{ir.RoundF16: "F16", ir.RoundBF16: "BF16"}

// goValue returns the Go expression of one code.
func goValue(n *ir.Node, arg func(int) string) string {
	t := n.Type
	if n.Code != ir.Select && n.Code.Arity() > 0 {
		t = n.Args[0].Type
	}
	if t == ir.Bool {
		switch n.Code {
		case ir.And:
			return arg(0) + " && " + arg(1)
		case ir.Or:
			return arg(0) + " || " + arg(1)
		case ir.Xor:
			return arg(0) + " != " + arg(1)
		case ir.Not:
			return "!" + arg(0)
		case ir.Convert:
			return fmt.Sprintf("%s(truth(%s))", goTypes[n.Type], arg(0))
		}
	}
	if s, ok := goInfix[n.Code]; ok {
		s = arg(0) + " " + s + " " + arg(1)
		if t == ir.F32 && n.Type == ir.F32 {
			return "float32(" + s + ")"
		}
		return s
	}
	if h, ok := goHalf[n.Code]; ok {
		return fmt.Sprintf("op.%sToFloat32(op.%sFromFloat32(%s))", h, h, arg(0))
	}
	if f, ok := goMath[n.Code]; ok {
		return fmt.Sprintf("float32(math.%s(float64(%s)))", f, arg(0))
	}
	switch n.Code {
	case ir.Neg:
		return "-" + arg(0)
	case ir.Not:
		return "^" + arg(0)
	case ir.Abs:
		if t == ir.F32 {
			return fmt.Sprintf("math.Float32frombits(math.Float32bits(%s) &^ (1 << 31))", arg(0))
		}
		if t == ir.U32 {
			return arg(0)
		}
		return fmt.Sprintf("max(%s, -%s)", arg(0), arg(0))
	case ir.Min, ir.Max:
		return fmt.Sprintf("%s(%s, %s)", n.Code, arg(0), arg(1))
	case ir.Fma:
		return fmt.Sprintf("fma(%s, %s, %s)", arg(0), arg(1), arg(2))
	case ir.CopySign:
		return fmt.Sprintf("float32(math.Copysign(float64(%s), float64(%s)))", arg(0), arg(1))
	case ir.Shl:
		return fmt.Sprintf("%s << (%s & 31)", arg(0), arg(1))
	case ir.Shr:
		return fmt.Sprintf("%s >> (%s & 31)", arg(0), arg(1))
	case ir.Convert:
		switch {
		case n.Type == ir.Bool:
			return arg(0) + " != 0"
		case t == ir.F32:
			return "to" + strings.ToUpper(n.Type.String()) + "(" + arg(0) + ")"
		}
		return goTypes[n.Type] + "(" + arg(0) + ")"
	case ir.Bitcast:
		switch {
		case t == ir.F32:
			return fmt.Sprintf("%s(math.Float32bits(%s))", goTypes[n.Type], arg(0))
		case n.Type == ir.F32:
			return fmt.Sprintf("math.Float32frombits(uint32(%s))", arg(0))
		}
		return goTypes[n.Type] + "(" + arg(0) + ")"
	}
	check(fmt.Errorf("no Go for %v", n.Code))
	return ""
}
