//go:build js

package webgpu

import (
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/jshost"
)

// host returns the library that the build has: the one of the page.
func host() (gpu.Host, error) { return jshost.New() }
