package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/rayo-go/rayo/op"
)

type opsCmd struct {
	Name string `arg:"" optional:"" help:"An operation, by its own name or its name in NumPy, PyTorch or ONNX: clip, np.clip, torch.clamp, ReduceSum."`
}

func (c *opsCmd) Run(a *app) error {
	if c.Name != "" {
		return c.show(a)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	class := op.Class(255)
	for _, o := range op.Catalogue() {
		if o.Class() != class {
			if class != 255 {
				fmt.Fprintln(w)
			}
			class = o.Class()
			fmt.Fprintln(w, strings.ToUpper(class.String()))
		}
		fmt.Fprintf(w, "  %s\t%s\n", signature(o), o.Doc())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.out, "\nrayo ops NAME shows one in full.")
	return err
}

// signature writes an operation with its operands, optional ones in brackets,
// and the parameters without default.
func signature(o *op.Operation) string {
	fewest, _ := o.Arity()
	var s strings.Builder
	s.WriteString(o.Name() + "(")
	for i, in := range o.Inputs() {
		switch {
		case i >= fewest && i > 0:
			s.WriteString("[, " + in + "]")
		case i > 0:
			s.WriteString(", " + in)
		default:
			s.WriteString(in)
		}
	}
	for _, p := range o.Params() {
		if p.Required {
			s.WriteString(", " + p.Name)
		}
	}
	return s.String() + ")"
}

func (c *opsCmd) show(a *app) error {
	name := strings.ToLower(c.Name)
	if o := op.Lookup(name); o != nil {
		return showOperation(a, o)
	}
	found := op.PeersNamed(name)
	if m := methodNamed(name); m != nil {
		found = append(found, *m)
	}
	for i, p := range found {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		if err := showPeer(a, &p); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("unknown operation %q%s; rayo ops lists the operations", c.Name, similar(name))
	}
	return nil
}

// methodNamed returns the method of package batch of that name in lower case, or nil.
func methodNamed(name string) *op.Peer {
	for _, p := range op.Peers() {
		if p.Method != "" && strings.ToLower(p.Method) == strings.ReplaceAll(name, "_", "") && len(op.PeersNamed(name)) == 0 {
			return &p
		}
	}
	return nil
}

// showPeer writes an operation in full, or names a method.
func showPeer(a *app, p *op.Peer) error {
	if p.Name != "" {
		return showOperation(a, op.Lookup(p.Name))
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "method\tbatch.Batch.%s, composed of operations\n", p.Method)
	fmt.Fprintf(w, "elsewhere\t%s\n", strings.Join(p.Names(), ", "))
	fmt.Fprintf(w, "documentation\tgo doc github.com/rayo-go/rayo/batch Batch.%s\n", p.Method)
	return w.Flush()
}

func showOperation(a *app, o *op.Operation) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	row := func(key, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", key, value)
		}
	}
	row("operation", signature(o))
	row("also called", strings.Join(o.Aliases(), ", "))
	row("elsewhere", strings.Join(o.Elsewhere(), ", "))
	row("class", o.Class().String())
	row("computes", o.Doc())
	row("formula", o.Formula())
	row("shapes", o.ShapeDoc())
	row("types", types(o))
	if o.Options() != "" {
		row("options", "op."+o.Options())
	}
	for i, p := range o.Params() {
		key := ""
		if i == 0 {
			key = "parameters"
		}
		value := p.Name + ": " + p.Doc
		if !p.Required {
			value += fmt.Sprintf("; default %g, op.Zero for 0", p.Default)
		}
		fmt.Fprintf(w, "%s\t%s\n", key, value)
	}
	row("special values", o.Special())
	row("tolerance", o.Tolerance().String())
	return w.Flush()
}

// types returns the element types that the operation accepts for its last operand,
// which is never a condition or optional.
func types(o *op.Operation) string {
	if o.Class() != op.Elementwise || o == op.Cast {
		return ""
	}
	var ok []string
	a := o.Defaults()
	for _, d := range op.DTypes() {
		_, n := o.Arity()
		in := make([]op.DType, n)
		for i := range in {
			in[i] = d
		}
		if o == op.Where {
			in[0] = op.Bool
		}
		if _, err := o.Types(&a, in); err == nil {
			ok = append(ok, d.String())
		}
	}
	return strings.Join(ok, " ")
}

// similar returns a text with the operations whose names contain the name or are contained in it.
func similar(name string) string {
	var near []string
	for _, o := range op.Catalogue() {
		for _, n := range append([]string{o.Name()}, o.Aliases()...) {
			plain := strings.ReplaceAll(n, "_", "")
			want := strings.NewReplacer("_", "", "-", "").Replace(name)
			if len(want) > 1 && (strings.Contains(plain, want) || strings.Contains(want, plain)) {
				near = append(near, o.Name())
				break
			}
		}
	}
	if len(near) == 0 || len(near) > 6 {
		return ""
	}
	return " (is it " + strings.Join(near, " or ") + "?)"
}
