package device

import (
	"context"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/internal/fmt"
)

func openCPU(_ context.Context, c *config) (driver.Device, error) {
	return c.named(func(i int) (driver.Device, error) {
		if i > 0 {
			return nil, fmt.Errorf("cpu:%d does not exist: the only CPU device is cpu:0: %w", i, ErrNoDevice)
		}
		if c.cpu != nil {
			return c.cpu(c.threads)
		}
		return cpu.Open(c.threads)
	})
}
