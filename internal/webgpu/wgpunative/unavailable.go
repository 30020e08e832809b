//go:build !cgo || nowebgpu || !(linux || darwin || windows) || !(amd64 || arm64) || android || ios

package wgpunative

import (
	"fmt"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// Linked says that the library is part of the program.
const Linked = false

// New returns an error: the library is not linked.
func New() (webgpu.Host, error) {
	return nil, fmt.Errorf("wgpu-native is not part of this program: %w", webgpu.ErrNoAdapter)
}
