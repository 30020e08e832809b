//go:build !unix && !windows

package gguf

import (
	"errors"
	"os"
)

// mapFile refuses: there are no mappings on this system.
func mapFile(*os.File, int64) (view []byte, unmap func() error, err error) {
	return nil, nil, errors.ErrUnsupported
}
