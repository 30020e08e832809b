package main

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/op"
)

// parameters returns the arguments of a method that stand for parameters, each
// with a comma before it, and the expression of the Attrs.
func parameters(o *op.Operation) (args, attrs string) {
	if o == op.Cast {
		return ", to op.DType", "op.CastTo(to)"
	}
	if o.Options() != "" {
		return ", opts ...op." + o.Options(), "op.AttrsOf(opts)"
	}
	var names []string
	for _, p := range o.Params() {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return "", "op.Attrs{}"
	}
	list := strings.Join(names, ", ")
	return ", " + list + " float32", "op.Floats(" + list + ")"
}

// oneShot reports whether the operation has a method on slices of float32:
// truth values are not numbers.
func oneShot(o *op.Operation) bool {
	types := make([]op.DType, len(o.Inputs()))
	for i := range types {
		types[i] = op.F32
	}
	out, err := o.Types(new(op.Attrs), types)
	return err == nil && (out[0] == op.F32 || out[0] == op.I32 && o.Class() == op.Reduction)
}

// file collects the methods of one package.
type file struct {
	bytes.Buffer
	receiver string
}

// method writes a method with its comment.
func (f *file) method(doc, signature, body string) {
	fmt.Fprintf(f, "\n%sfunc (%s) %s {\n\t%s\n}\n", comment(doc), f.receiver, signature, body)
}

func (f *file) format() ([]byte, error) { return format.Source(f.Bytes()) }

func deviceMethods() ([]byte, error) {
	f := &file{receiver: "d *Device"}
	f.WriteString(header + "package device\n\nimport (\n\t\"context\"\n\n\t\"github.com/rayo-go/rayo/op\"\n)\n")
	for _, o := range op.Catalogue() {
		if !oneShot(o) {
			continue
		}
		switch o.Class() {
		case op.Elementwise:
			f.elementwise(o)
		case op.Reduction:
			f.reduction(o)
		case op.Row:
			f.row(o)
		}
	}
	return f.format()
}

// deviceDoc returns the comment of a method that waits. The package comment lists the errors
// that all of them have in common.
func deviceDoc(name string, o *op.Operation, what, shape string) string {
	return fmt.Sprintf("%s %s\n\n%s\n\n# Accuracy\n\n%s", name, what, strings.TrimSpace(shape+" "+o.Special()), accuracy(o))
}

// async writes the method that does not wait.
func (f *file) async(name, of, args, result, call string) {
	f.method(fmt.Sprintf("%s starts [Device.%s] and returns a pending result.", name, of),
		fmt.Sprintf("%s(ctx context.Context, %s) %s", name, args, result), "return d."+call)
}

func (f *file) elementwise(o *op.Operation) {
	args, attrs := parameters(o)
	in := o.Inputs()
	operands := slices.Clone(in)
	for len(operands) < 3 {
		operands = append(operands, "nil")
	}
	list := "dst, " + strings.Join(in, ", ") + " []float32" + args
	call := fmt.Sprintf("(ctx, op.%s, %s, dst, %s)", o.GoName(), attrs, strings.Join(operands, ", "))
	name := o.GoName()
	f.method(deviceDoc(name, o, fmt.Sprintf("computes %s: dst = %s.", o.Doc(), o.Formula()),
		fmt.Sprintf("%s have the same length, and dst may be %s.", join(append([]string{"dst"}, in...), "and"), join(in, "or"))),
		fmt.Sprintf("%s(ctx context.Context, %s) error", name, list), "return d.elementwise"+call)
	f.async(name+"Async", name, list, "*Pending", "elementwiseAsync"+call)
}

func (f *file) reduction(o *op.Operation) {
	args, attrs := parameters(o)
	name, in := o.GoName(), o.Inputs()
	second := "nil"
	if len(in) > 1 {
		second = in[1]
	}
	types, _ := o.Types(new(op.Attrs), slices.Repeat([]op.DType{op.F32}, len(in)))
	value, kind, operands := "float32", "", in[0]+", "+second
	if types[0] == op.I32 {
		value, kind, operands = "int", "Index", in[0]
	}
	operand := join(in, "and")
	list := strings.Join(in, ", ") + " []float32" + args
	call := fmt.Sprintf("(ctx, op.%s, %s, %s)", name, attrs, operands)
	same := ""
	if len(in) > 1 {
		same = operand + " have the same length. "
	}
	f.method(deviceDoc(name, o, fmt.Sprintf("returns %s of %s: %s.", o.Doc(), operand, o.Formula()), same),
		fmt.Sprintf("%s(ctx context.Context, %s) (%s, error)", name, list, value), "return d.reduce"+kind+call)
	f.async(name+"Async", name, list, "*Future["+value+"]", "reduce"+kind+"Async"+call)
}

func (f *file) row(o *op.Operation) {
	args, attrs := parameters(o)
	name, in := o.GoName(), o.Inputs()
	weights := ""
	for _, w := range []string{"gamma", "beta"} {
		if slices.Contains(in, w) {
			weights += ", " + w
		} else {
			weights += ", nil"
		}
	}
	list := "dst, " + strings.Join(in, ", ") + " []float32, rows, cols int" + args
	call := fmt.Sprintf("(ctx, op.%s, %s, dst, x%s, rows, cols)", name, attrs, weights)
	shape := "dst and x have rows·cols elements, row after row, and dst may be x."
	if len(in) > 1 {
		shape += " " + join(in[1:], "and") + " cols; nil stands for " + map[bool]string{true: "ones and zeros.", false: "ones."}[len(in) > 2]
		shape = strings.Replace(shape, "beta cols;", "beta have cols;", 1)
		if len(in) == 2 {
			shape = strings.Replace(shape, "gamma cols;", "gamma has cols;", 1)
		}
	}
	f.method(deviceDoc(name, o, fmt.Sprintf("computes, for each row of x, %s: dst = %s.", o.Doc(), o.Formula()), shape),
		fmt.Sprintf("%s(ctx context.Context, %s) error", name, list), "return d.rowwise"+call)
	f.async(name+"Async", name, list, "*Pending", "rowwiseAsync"+call)
}

func join(names []string, word string) string {
	if len(names) == 1 {
		return names[0]
	}
	n := len(names) - 1
	return strings.Join(names[:n], ", ") + " " + word + " " + names[n]
}

// inputsStruct names the structs of package batch with the optional operands of an operation that
// has several.
var inputsStruct = map[*op.Operation]string{op.Attention: "AttentionInputs", op.Rope: "RopeInputs"}

func batchMethods() ([]byte, error) {
	f := &file{receiver: "r *Batch"}
	f.WriteString(header + "package batch\n\nimport \"github.com/rayo-go/rayo/op\"\n")
	for _, o := range op.Catalogue() {
		if o.Results() != 1 || o.CheckedAsWhole() && o != op.Cholesky || o.View() && o != op.Transpose || o == op.Concat || o == op.SliceAt || o == op.Update || o == op.Iota || o == op.BitcastF32 || o == op.BitcastI32 || o == op.BitcastU32 || o == op.Gather || o == op.Scatter {
			continue // written by hand
		}
		f.recorded(o)
	}
	return f.format()
}

// recorded writes the methods of package batch for one operation.
func (f *file) recorded(o *op.Operation) {
	args, attrs := parameters(o)
	name, in := o.GoName(), o.Inputs()
	fewest, _ := o.Arity()
	doc := func(name string) string {
		return fmt.Sprintf("%s records %s: %s.\n\nShapes: %s. %s\n\n# Accuracy\n\n%s",
			name, o.Doc(), o.Formula(), o.ShapeDoc(), o.Special(), accuracy(o))
	}
	record, also, doc2 := "apply", "", ""
	switch {
	case o == op.MatMul:
		record = "product"
	case o.Class() == op.Reduction && o.Options() == "":
		record, also, doc2 = "reduce", ", along", "\n\nUse [op.Axes] to reduce along some axes: b."+name+"("+strings.Join(in, ", ")+", op.Axes(0)). "+
			"The result lacks these axes, or has extents of 1 in their place with KeepDims."
	case o.Class() == op.Reduction:
		record, also, doc2 = "reduce", ", op.AlongOf(opts)", "\n\nUse the option Along to reduce along some axes."
	case o.Scans():
		record, doc2 = "scan", "\n\nWith the option Reverse the scan starts at the end of each row. With Exclusive a result does not include the element at its own place. Along selects other axes than the last."
	case o.Class() == op.Row && len(in) == 1 && o.Options() == "":
		record, also, doc2 = "alongRows", ", along", "\n\nUse [op.Axes] to work along other axes than the last: b."+name+"(x, op.Axes(0))."
	}
	signature, list := strings.Join(in, ", ")+" Value", strings.Join(in, ", ")
	if optional := in[fewest:]; inputsStruct[o] != "" {
		signature = strings.Join(in[:fewest], ", ") + " Value, in " + inputsStruct[o]
		list = strings.Join(in[:fewest], ", ")
		for _, operand := range optional {
			list += ", in." + strings.ToUpper(operand[:1]) + operand[1:]
		}
		doc2 += "\n\nThe zero " + inputsStruct[o] + " has no " + join(optional, "or") + "."
	} else if len(optional) > 0 {
		doc2 += "\n\nPass [None] for " + join(optional, "or") + " to leave it out."
	}
	switch {
	case also == ", along":
		args += ", along ...op.Along"
	case record == "scan":
		attrs, args = "opts", ", opts ...op.ScanOpts"
	}
	f.method(doc(name)+doc2, fmt.Sprintf("%s(%s%s) Value", name, signature, args),
		fmt.Sprintf("return r.%s(op.%s, %s%s, %s)", record, o.GoName(), attrs, also, list))
}
