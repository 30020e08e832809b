//go:build (linux || windows) && !nocuda

package device

import (
	"context"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cuda"
)

func init() { openers[CUDA] = openCUDA }

func openCUDA(_ context.Context, c *config) (driver.Device, error) { return c.named(cuda.Open) }
