package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rayo-go/rayo/op"
)

// writeFunctions writes the functions on slices, one for each elementwise operation of float32 numbers,
// and their kernels: one file for pages, and one for other programs. A page looks a kernel up when it
// calls the function, because the linker cannot leave out a variable that a call initialises.
func writeFunctions() (functions, kernels, pages []byte) {
	var b, ks, ps bytes.Buffer
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
		fmt.Fprintf(&ks, "kernel%s = Map(%q)\n", name, o.Name())
		fmt.Fprintf(&ps, "kernel%s MapFunc = func(dst, x, y, z *float32, n int, p *float32) { Map(%q)(dst, x, y, z, n, p) }\n", name, o.Name())
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
	variables := func(constraint string, list bytes.Buffer) []byte {
		return gofmt([]byte(header + constraint + "\npackage simd\n\nvar (\n" + list.String() + ")\n"))
	}
	return gofmt([]byte(header + "\npackage simd\n" + b.String())), variables("\n//go:build !js\n", ks), variables("", ps)
}
