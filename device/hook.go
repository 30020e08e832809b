package device

import (
	"github.com/rayo-go/rayo/internal/devicehook"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/kernel"
)

func init() {
	devicehook.Engine = func(d any) *engine.Engine { return d.(*Device).engine() }
	devicehook.Memory = func(b any) *engine.Buffer { return b.(*Buffer).buf }
	devicehook.Launch = func(k any, grid kernel.Size, params any) (*graph.Kernel, []byte, error) {
		block, err := k.(*Kernel).parameters(grid, params)
		if err != nil {
			return nil, nil, err
		}
		return k.(*Kernel).launched(grid), block, nil
	}
	devicehook.Fits = fits
	devicehook.NewPending = func(c *driver.Completion, explain func(error) error) any {
		return &Pending{p: c, explain: explain}
	}
}
