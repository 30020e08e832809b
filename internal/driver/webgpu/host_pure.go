//go:build !cgo && !js

package webgpu

import (
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/gogpu"
)

// host returns the WebGPU library of this build, which is written in Go.
func host() (gpu.Host, error) { return gogpu.New() }
