//go:build nowebgpu || goffi_static || !(linux || darwin || windows) || !(amd64 || arm64) || android || ios

package gogpu

import (
	"fmt"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// Linked says that the library is part of the program.
const Linked = false

// New returns an error: the library is not linked.
func New() (webgpu.Host, error) {
	return nil, fmt.Errorf("this build has no Vulkan without cgo: %w", webgpu.ErrNoAdapter)
}
