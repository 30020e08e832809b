//go:build !nowebgpu

package batch

import "github.com/rayo-go/rayo/internal/driver/webgpu"

func init() {
	webgpu.UseOperations()
	webgpu.UseGraphs()
}
