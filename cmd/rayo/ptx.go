package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/ptxkernels"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/samples"
)

type ptxCmd struct {
	List  ptxListCmd  `cmd:"" help:"List the kernels that can be shown."`
	Show  ptxShowCmd  `cmd:"" help:"Show the PTX of a kernel."`
	Check ptxCheckCmd `cmd:"" help:"Check a PTX file or a kernel for mistakes, without running it."`
	Run   ptxRunCmd   `cmd:"" help:"Run a kernel of a PTX file on a GPU, or in the emulator, which reports races and memory errors."`
}

// ptxTarget is a flag for a target.
type ptxTarget struct {
	Target string `default:"sm_90a" placeholder:"SM" help:"The GPU: sm_70 to sm_121, sm_90a by default."`
}

func (p ptxTarget) find() (ptx.Target, error) {
	var names []string
	for _, t := range ptx.Targets() {
		if t.String() == p.Target {
			return t, nil
		}
		names = append(names, t.String())
	}
	return 0, fmt.Errorf("unknown target %q: the targets are %s", p.Target, strings.Join(names, " "))
}

type ptxListCmd struct {
	ptxTarget `embed:""`
}

func (c *ptxListCmd) Run(a *app) error {
	target, err := c.find()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SAMPLES, short kernels to be read")
	for _, s := range samples.All() {
		if s.Least <= target {
			fmt.Fprintf(w, "  sample/%s\t%s\n", s.Name, s.Doc)
		}
	}
	fmt.Fprintf(w, "\nOPERATIONS, as a GPU of %v computes them: by native kernels in PTX, and by portable kernels\n", target)
	var elementwise []string
	for _, o := range op.Catalogue() {
		if o.Class() == op.Elementwise && o != op.Cast {
			elementwise = append(elementwise, o.Name())
			continue
		}
		if ways := ways(o, target); ways != nil {
			fmt.Fprintf(w, "  %s\t%s\n", o.Name(), strings.Join(ways, ", "))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.out, "\nELEMENTWISE OPERATIONS, alone, or several in one kernel, as in mul+add+gelu and matmul+relu")
	writeWrapped(a.out, elementwise)
	_, err = fmt.Fprintln(a.out, "\nrayo ptx show NAME shows one.")
	return err
}

// ways returns the kernels that an operation has at the sizes that are shown: native ones,
// with their types, and portable ones.
func ways(o *op.Operation, target ptx.Target) (s []string) {
	for _, t := range []op.DType{op.F32, op.F16, op.BF16} {
		r, err := (&kernelRequest{Type: t.String()}).build(o, libraryTarget)
		if err != nil {
			continue
		}
		if p, err := ptxkernels.For(r, hardware(target)); err == nil && len(p.Stages) > 0 {
			s = append(s, fmt.Sprintf("%v native %s", t, p.Variant))
		}
	}
	r, err := (&kernelRequest{}).build(o, libraryTarget)
	if err != nil {
		return s
	}
	if p, err := portable.For(r); err == nil && len(p.Stages) > 0 {
		s = append(s, strings.TrimSpace("portable "+p.Variant))
	}
	return s
}

// hardware returns the parameters of the device that decide the choice of a native kernel, with the
// values of an H200 and an A100.
func hardware(t ptx.Target) ptxkernels.Device {
	return ptxkernels.Device{Target: t, Multiprocessors: 132, Shared: t.MaxShared()}
}
