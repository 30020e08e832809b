package device

import (
	"github.com/rayo-go/rayo/internal/devicehook"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/engine"
)

func init() {
	devicehook.Engine = func(d any) *engine.Engine { return d.(*Device).engine() }
	devicehook.Memory = func(b any) *engine.Buffer { return b.(*Buffer).buf }
	devicehook.NewPending = func(c *driver.Completion, explain func(error) error) any {
		return &Pending{p: c, explain: explain}
	}
}
