package driver

import (
	"runtime"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Recovered is deferred where a device's code meets its caller's: a panic, which
// would be a defect of the device's, becomes the error.
func Recovered(err *error) {
	if r := recover(); r != nil {
		stack := make([]byte, 64<<10)
		*err = fmt.Errorf("internal error: %v\n%s", r, stack[:runtime.Stack(stack, false)])
	}
}
