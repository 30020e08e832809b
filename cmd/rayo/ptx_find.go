package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/ptxgen"
	"github.com/rayo-go/rayo/internal/ptxkernels"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/samples"
)

// ptxRequest has the arguments for which a kernel is chosen.
type ptxRequest struct {
	kernelRequest `embed:""`
	Portable      bool `help:"Show the portable kernel even if a native PTX kernel exists."`
}

// libraryTarget has the features that the portable library may use on an NVIDIA GPU.
var libraryTarget = portable.Target{Lanes: 1024, Shared: ptx.MaxStaticShared, Buffers: 60, Groups: 65535, Subgroups: true, F16: true}

// shown is a kernel that can be put into a module.
type shown struct {
	name string
	what string // the description of the kernel and of its launch, for users
	add  func(m *ptx.Module) error
}

// find returns the kernels with the given name: one kernel, or the kernels of an operation.
func (r *ptxRequest) find(name string, target ptx.Target) ([]shown, error) {
	if s, ok := strings.CutPrefix(name, "sample/"); ok {
		for _, x := range samples.All() {
			if x.Name == s {
				what := fmt.Sprintf("%s: %s; blocks of %d x %d threads", name, x.Doc, x.Block[0], x.Block[1])
				return []shown{{s, what, func(m *ptx.Module) error { m.Kernel(s, x.Build); return m.Err() }}}, nil
			}
		}
		return nil, fmt.Errorf("unknown sample %q; rayo ptx list lists the samples", s)
	}
	req, err := r.named(name, libraryTarget, "rayo ptx list")
	if err != nil {
		return nil, err
	}
	base := kernelBase(name)
	var refused error
	if !r.Portable && r.Variant == "" && (req.Op == nil || ptxkernels.Has(req.Op)) {
		p, err := ptxkernels.For(req, hardware(target))
		if err == nil {
			return native(base, describe(req), p), nil
		}
		if !errors.Is(err, op.ErrUnsupported) {
			return nil, err
		}
		refused = err
	}
	p, err := r.portable(req)
	if err != nil && refused != nil {
		return nil, fmt.Errorf("there is no native kernel (%v) and no portable one: %w", refused, err)
	}
	if err != nil {
		return nil, err
	}
	return portableTexts(base, describe(req), p)
}

func native(base, operands string, p *ptxkernels.Plan) []shown {
	var all []shown
	for i := range p.Stages {
		s := &p.Stages[i]
		name := stageName(base, i, len(p.Stages))
		what := fmt.Sprintf("%s of %s, written in PTX, variant %s: %d x %d x %d blocks of %d x %d x %d threads", base, operands, p.Variant,
			s.Grid[0], s.Grid[1], s.Grid[2], s.Kernel.Block[0], s.Kernel.Block[1], s.Kernel.Block[2])
		all = append(all, shown{name, what, func(m *ptx.Module) error { m.Kernel(name, s.Kernel.Build); return m.Err() }})
	}
	return all
}

func portableTexts(base, operands string, p *portable.Plan) ([]shown, error) {
	var all []shown
	for i := range p.Stages {
		s := &p.Stages[i]
		program, err := s.Kernel.Program()
		if err != nil {
			return nil, err
		}
		name := stageName(base, i, len(p.Stages))
		variant := ""
		if p.Variant != "" {
			variant = ", variant " + p.Variant
		}
		what := fmt.Sprintf("%s of %s, portable%s: %d x %d x %d blocks of %d x %d x %d threads", base, operands, variant,
			s.Grid[0], s.Grid[1], s.Grid[2], program.Local[0], program.Local[1], program.Local[2])
		all = append(all, shown{name, what, func(m *ptx.Module) error { return lower(m, name, program) }})
	}
	return all, nil
}

func lower(m *ptx.Module, name string, p *ir.Program) error {
	_, err := ptxgen.Lower(m, name, p, ptxgen.Options{})
	return err
}
