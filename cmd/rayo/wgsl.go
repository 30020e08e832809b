package main

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/devicehook"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wgsl"
)

type wgslCmd struct {
	List  wgslListCmd  `cmd:"" help:"List the kernels that can be shown."`
	Show  wgslShowCmd  `cmd:"" help:"Show the WGSL of a kernel."`
	Check wgslCheckCmd `cmd:"" help:"List the bindings of a WGSL file or a kernel, and compile it with naga and tint."`
}

// wgslTarget has the features and limits for which a kernel is printed: by default the minimum
// limits of all adapters, and the features that most adapters have.
type wgslTarget struct {
	Consumer string   `default:"naga" enum:"naga,tint,naga-go" help:"The WGSL compiler to print for: naga (wgpu), tint (browsers), naga-go (builds without cgo)."`
	Features []string `default:"f16,subgroups" placeholder:"LIST" help:"Features of the device: f16, subgroups, dot4, or none; f16,subgroups by default."`
	Lanes    uint32   `default:"256" placeholder:"N" help:"Maximum number of lanes of a workgroup; 256 by default."`
	Shared   uint32   `default:"16384" placeholder:"BYTES" help:"Bytes of workgroup memory; 16384 by default."`
	Device   string   `placeholder:"NAME" help:"An adapter of this machine, such as 0, radeon or software. Its features and limits replace those of the flags."`
	Buffers  int      `default:"8" placeholder:"N" help:"Maximum number of buffers of a kernel; 8 by default."`
}

// wgslFeatures are the names of features on a command line.
var wgslFeatures = map[string]wgsl.Feature{"f16": wgsl.Half, "subgroups": wgsl.Subgroups, "dot4": wgsl.Dot4, "none": 0}

// targets returns the target for which kernels of the portable library are chosen, and the target
// for which they are printed.
func (t *wgslTarget) targets(a *app) (portable.Target, wgsl.Target, error) {
	if t.Device != "" {
		if err := t.adapter(a); err != nil {
			return portable.Target{}, wgsl.Target{}, err
		}
	}
	l := wgsl.DefaultLimits
	l.Invocations, l.WorkgroupBytes, l.Bindings = t.Lanes, t.Shared, t.Buffers
	for i := range l.Size {
		l.Size[i] = max(l.Size[i], t.Lanes)
	}
	w := wgsl.Target{Limits: l}
	for c := wgsl.Naga; c <= wgsl.NagaGo; c++ {
		if c.String() == t.Consumer {
			w.Consumer = c
		}
	}
	for _, name := range t.Features {
		f, ok := wgslFeatures[name]
		if !ok {
			return portable.Target{}, w, fmt.Errorf("unknown feature %q: give f16, subgroups or dot4, or none", name)
		}
		w.Features |= f
	}
	if w.Consumer == wgsl.NagaGo {
		w.Features &^= wgsl.Half // the compiler does not support it
	}
	return portable.Target{Lanes: int(t.Lanes), Shared: int(t.Shared), Buffers: t.Buffers, Groups: int(l.Grid),
		Subgroups: w.Features&wgsl.Subgroups != 0, F16: w.Features&wgsl.Half != 0}, w, nil
}

// adapter sets the features and limits to those of a device.
func (t *wgslTarget) adapter(a *app) error {
	which := device.WithName(strings.TrimPrefix(t.Device, "webgpu:"))
	if n, err := strconv.Atoi(strings.TrimPrefix(t.Device, "webgpu:")); err == nil {
		which = device.WithIndex(n)
	}
	d, err := device.Open(a.ctx, device.Require(device.WebGPU), which)
	if err != nil {
		return err
	}
	defer d.Close()
	has, ok := devicehook.Engine(d).Target()
	if !ok {
		return fmt.Errorf("%v runs no portable kernels", d)
	}
	t.Lanes, t.Shared, t.Buffers, t.Features = uint32(has.Lanes), uint32(has.Shared), has.Buffers, []string{"none"}
	if has.F16 {
		t.Features = append(t.Features, "f16")
	}
	if has.Subgroups {
		t.Features = append(t.Features, "subgroups")
	}
	return nil
}

// wgslRequest has the arguments for which a kernel is chosen.
type wgslRequest struct {
	kernelRequest `embed:""`
	Rows          int `placeholder:"N" help:"Number of rows of the first operand of a row operation, instead of sizes."`
	Cols          int `placeholder:"N" help:"Length of the rows; 4096 by default."`
}

// printed is a kernel and its text.
type printed struct {
	name string
	what string // the description of the kernel and of its launch, for users
	text wgsl.Shader
}

// rowSizes returns the sizes of the operands of an operation on rows, for --rows and --cols.
func (r *wgslRequest) rowSizes(name string) (string, error) {
	o := op.Lookup(strings.ToLower(name))
	if o == nil || r.Sizes != "" || o.Class() != op.Row && o.Class() != op.Reduction && o != op.LayerNorm && o != op.RMSNorm {
		return "", fmt.Errorf("--rows and --cols need one operation on rows, and exclude --sizes")
	}
	rows, cols := max(r.Rows, 1), r.Cols
	if r.Rows == 0 {
		rows = 4096
	}
	if cols <= 0 {
		cols = 4096
	}
	sizes := fmt.Sprintf("%dx%d", rows, cols)
	operands, _ := o.Arity()
	if text := typical[o]; text != "" {
		operands = 1 + strings.Count(text, ",")
	}
	for range operands - 1 {
		if o.Class() == op.Reduction {
			sizes += fmt.Sprintf(",%dx%d", rows, cols)
		} else {
			sizes += fmt.Sprintf(",%d", cols)
		}
	}
	return sizes, nil
}

// print returns the kernels with the given name: one kernel, or the kernels of an operation.
func (r *wgslRequest) print(a *app, name string, t *wgslTarget) ([]printed, error) {
	target, w, err := t.targets(a)
	if err != nil {
		return nil, err
	}
	k := r.kernelRequest
	if r.Rows < 0 || r.Cols < 0 {
		return nil, fmt.Errorf("--rows and --cols must be positive")
	}
	if r.Rows > 0 || r.Cols > 0 {
		if k.Sizes, err = r.rowSizes(name); err != nil {
			return nil, err
		}
	}
	req, err := k.named(name, target, "rayo wgsl list")
	if err != nil {
		return nil, err
	}
	p, err := k.portable(req)
	if err != nil {
		return nil, err
	}
	var all []printed
	for i := range p.Stages {
		s := &p.Stages[i]
		text, err := wgsl.Kernel(s.Kernel, w)
		if err != nil {
			return nil, err
		}
		name := stageName(kernelBase(name), i, len(p.Stages))
		variant := ""
		if p.Variant != "" {
			variant = ", variant " + p.Variant
		}
		what := fmt.Sprintf("%s of %s for %v%s: %d x %d x %d workgroups of %d x %d x %d lanes, %d bytes of workgroup memory", name, describe(req), w.Consumer,
			variant, s.Grid[0], s.Grid[1], s.Grid[2], text.Local[0], text.Local[1], text.Local[2], text.SharedBytes)
		all = append(all, printed{name, what, text})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s needs no kernel", name)
	}
	return all, nil
}

type wgslListCmd struct {
	wgslTarget `embed:""`
}

func (c *wgslListCmd) Run(a *app) error {
	target, _, err := c.targets(a)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OPERATIONS, and the variants of their kernels: the one that is taken by itself comes first")
	var elementwise []string
	for _, o := range op.Catalogue() {
		if o.Class() == op.Elementwise && o != op.Cast {
			elementwise = append(elementwise, o.Name())
			continue
		}
		r, err := (&kernelRequest{}).build(o, target)
		if err != nil {
			continue
		}
		p, err := portable.For(r)
		if err != nil || len(p.Stages) == 0 {
			continue
		}
		names := []string{p.Variant}
		for _, v := range portable.Variants(o) {
			r.Variant = v
			if _, err := portable.For(r); err == nil && v != p.Variant {
				names = append(names, v)
			}
		}
		fmt.Fprintf(w, "  %s\t%s\n", o.Name(), strings.Join(names, " "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.out, "\nELEMENTWISE OPERATIONS, alone, or several in one kernel, as in mul+add+gelu and matmul+relu")
	writeWrapped(a.out, elementwise)
	_, err = fmt.Fprintln(a.out, "\nrayo wgsl show NAME shows one.")
	return err
}

type wgslShowCmd struct {
	Name        string `arg:"" help:"An operation, or several fused operations, such as mul+add+gelu: see rayo wgsl list."`
	Lines       bool   `help:"Print the line of rayo's source for each line."`
	wgslTarget  `embed:""`
	wgslRequest `embed:""`
}

func (c *wgslShowCmd) Run(a *app) error {
	all, err := c.print(a, c.Name, &c.wgslTarget)
	if err != nil {
		return err
	}
	for i := range all {
		k := &all[i]
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintf(a.out, "// %s\n", k.what)
		if !c.Lines {
			if _, err := fmt.Fprint(a.out, k.text.Text); err != nil {
				return err
			}
			continue
		}
		last := ""
		for n, line := range strings.Split(strings.TrimSuffix(k.text.Text, "\n"), "\n") {
			from := ""
			if file, at := k.text.Position(n + 1); file != "" {
				from = fmt.Sprintf("%s:%d", file[strings.LastIndexByte(file, '/')+1:], at)
			}
			if from == last {
				from = ""
			} else if from != "" {
				last = from
			}
			if from == "" {
				fmt.Fprintln(a.out, line)
				continue
			}
			fmt.Fprintf(a.out, "%-80s // %s\n", line, from)
		}
	}
	return nil
}

// describeBinding prints a variable of a text.
func describeBinding(v *wgsl.Variable) string {
	access := "read"
	if v.Access == wgsl.ReadWrite {
		access = "read_write"
	}
	return fmt.Sprintf("@group(%d) @binding(%d) %s: %v, %s", v.Group, v.Binding, v.Name, v.Type, access)
}

// interfaceOf returns the requirements of a user's text, one line for each.
func interfaceOf(i *wgsl.Interface) []string {
	s := []string{fmt.Sprintf("%s: workgroups of %d x %d x %d lanes, %d bytes of workgroup memory", i.Entry, i.Local[0], i.Local[1], i.Local[2], i.SharedBytes)}
	for n := range i.Buffers {
		s = append(s, fmt.Sprintf("buffer %d: %s", n, describeBinding(&i.Buffers[n])))
	}
	if p := i.Params; p != nil {
		s = append(s, fmt.Sprintf("parameters: @group(%d) @binding(%d) %s: %v, %d bytes", p.Group, p.Binding, p.Name, p.Type, p.Type.Size))
		for _, f := range p.Type.Fields {
			s = append(s, fmt.Sprintf("            %s: %v at %d", f.Name, f.Type, f.Offset))
		}
	}
	return s
}

// textOf returns the text of a kernel for a compiler.
func textOf(k *kernel.Kernel, c wgsl.Consumer) (string, error) {
	s, err := wgsl.Kernel(k, wgsl.Target{Consumer: c, Features: wgsl.Half | wgsl.Subgroups | wgsl.Dot4,
		Limits: wgsl.Limits{Invocations: 1 << 16, Size: [3]uint32{1 << 16, 1 << 16, 1 << 16}, WorkgroupBytes: 1 << 20, Bindings: 1000}})
	return s.Text, err
}
