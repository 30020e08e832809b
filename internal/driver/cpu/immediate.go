package cpu

import (
	"context"

	"github.com/rayo-go/rayo/internal/driver"
)

type plain struct{}
type shot struct{}
type users struct{}

func plainKernels() []plain { return nil }

func (d *processor) Run(ctx context.Context, s *driver.Step, ext []driver.Binding) error {
	p := driver.Program{Steps: []driver.Step{*s}, Ext: len(ext)}
	for i := range ext {
		p.Slots = append(p.Slots, driver.Slot{Ext: i, Bytes: int64(len(ext[i].Host))})
	}
	e, err := d.Prepare(ctx, &p)
	if err != nil {
		return err
	}
	defer e.Close()
	_, err = e.Submit(ctx, &driver.Submission{Ext: ext, Wait: true})
	return err
}
