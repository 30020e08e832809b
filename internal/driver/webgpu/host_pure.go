//go:build !cgo && !js

package webgpu

import (
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/gogpu"
)

// host returns the library that the build has: the one in Go.
func host() (gpu.Host, error) { return gogpu.New() }
