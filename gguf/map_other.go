//go:build !unix && !windows

package gguf

import (
	"errors"
	"os"
)

// mapFile returns an error: this system has no memory mapping.
func mapFile(*os.File, int64) (view []byte, unmap func() error, err error) {
	return nil, nil, errors.ErrUnsupported
}
