//go:build !nowebgpu

package device

import (
	"context"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/webgpu"
)

func init() { openers[WebGPU] = openWebGPU }

func openWebGPU(ctx context.Context, c *config) (driver.Device, error) {
	choice := webgpu.Choice{Index: c.index, Name: c.name, Hardware: c.listing}
	if !c.indexed && c.name == "" {
		choice.Index = webgpu.Best
	}
	return webgpu.Open(ctx, choice)
}
