package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rayo-go/rayo/op"
)

// writeFunctions writes the functions on slices: one for each elementwise
// operation of float32 numbers.
func writeFunctions() []byte {
	var b, kernels bytes.Buffer
	for _, o := range op.Catalogue() {
		if o.Class() != op.Elementwise || !o.Plain() || o == op.Cast || o == op.Where {
			continue
		}
		name := camel(o.Name())
		args, slices := "dst", []string{"dst"}
		for _, in := range o.Inputs() {
			args += ", " + in
			slices = append(slices, in)
		}
		args += " []float32"
		var params []string
		for _, p := range o.Params() {
			params = append(params, p.Name)
		}
		if params != nil {
			args += ", " + strings.Join(params, ", ") + " float32"
		}
		fmt.Fprintf(&kernels, "kernel%s = Map(%q)\n", name, o.Name())
		fmt.Fprintf(&b, "\n// %s stores %s in dst: %s. %s\n", name, o.Doc(), o.Formula(), o.Special())
		for _, p := range o.Params() {
			fmt.Fprintf(&b, "// %s is %s.\n", strings.ToUpper(p.Name[:1])+p.Name[1:], p.Doc)
		}
		fmt.Fprintf(&b, "func %s(%s) {\n", name, args)
		pointer := "nil"
		if params != nil {
			fmt.Fprintf(&b, "p := [...]float32{%s}\n", strings.Join(params, ", "))
			pointer = "&p[0]"
		}
		for len(slices) < 4 {
			slices = append(slices, "nil")
		}
		fmt.Fprintf(&b, "apply(kernel%s, %s, %d, %s)\n}\n", name, strings.Join(slices, ", "), len(o.Inputs()), pointer)
	}
	return gofmt([]byte(header + "\npackage simd\n\nvar (\n" + kernels.String() + ")\n" + b.String()))
}
