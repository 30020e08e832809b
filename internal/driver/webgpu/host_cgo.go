//go:build cgo

package webgpu

import (
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/wgpunative"
)

// host returns the WebGPU library of this build: wgpu-native.
func host() (gpu.Host, error) { return wgpunative.New() }
