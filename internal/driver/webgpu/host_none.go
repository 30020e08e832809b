package webgpu

import (
	"errors"

	gpu "github.com/rayo-go/rayo/internal/webgpu"
)

// host returns the library that the build has.
func host() (gpu.Host, error) {
	return nil, errors.New("this build has no library of WebGPU")
}
