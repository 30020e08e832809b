package device

import (
	"github.com/rayo-go/rayo/internal/devicehook"
	"github.com/rayo-go/rayo/internal/driver"
)

func init() {
	devicehook.NewPending = func(c *driver.Completion, explain func(error) error) any {
		return &Pending{p: c, explain: explain}
	}
}
