//go:build !js || nowebgpu

package jshost

import (
	"fmt"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// New returns the host, where there is JavaScript.
func New() (webgpu.Host, error) {
	return nil, fmt.Errorf("there is no JavaScript: %w", webgpu.ErrNoAdapter)
}
