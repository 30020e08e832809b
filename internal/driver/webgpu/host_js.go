//go:build js

package webgpu

import (
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/jshost"
)

// host returns the WebGPU library of this build: that of the browser.
func host() (gpu.Host, error) { return jshost.New() }
