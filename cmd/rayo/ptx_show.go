package main

import (
	"fmt"
	"io"

	"github.com/rayo-go/rayo/ptx"
)

type ptxShowCmd struct {
	Name       string `arg:"" help:"A sample, an operation, or several fused operations, such as mul+add+gelu: see rayo ptx list."`
	ptxTarget  `embed:""`
	ptxRequest `embed:""`
}

func (c *ptxShowCmd) Run(a *app) error {
	m, all, err := c.module(c.Name, c.ptxTarget, false)
	if err != nil {
		return err
	}
	text, err := m.PTX()
	if err != nil {
		return err
	}
	for _, k := range all {
		fmt.Fprintf(a.out, "// %s\n", k.what)
	}
	_, err = io.WriteString(a.out, text)
	return err
}

// module builds a module with the kernels of the given name.
func (r *ptxRequest) module(name string, t ptxTarget, positions bool) (*ptx.Module, []shown, error) {
	target, err := t.find()
	if err != nil {
		return nil, nil, err
	}
	all, err := r.find(name, target)
	if err != nil {
		return nil, nil, err
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("%s needs no kernel", name)
	}
	m := ptx.NewModule(target)
	if positions {
		m.RecordPositions()
	}
	for _, k := range all {
		if err := k.add(m); err != nil {
			return nil, nil, err
		}
	}
	return m, all, nil
}
