//go:build !windows && !(cgo && unix) && !(!cgo && !goffi_static && (linux || darwin) && !android && (amd64 || arm64))

package dl

import (
	"fmt"
	"runtime"
)

func load(string) (uintptr, error) {
	return 0, fmt.Errorf("%w (%s/%s, without cgo)", ErrUnsupported, runtime.GOOS, runtime.GOARCH)
}

func find(uintptr, string) (uintptr, error) { return 0, ErrUnsupported }

// Call does nothing: this platform cannot load libraries.
func (f *Frame) Call() { f.Result, f.Refused = 1, 1 }
