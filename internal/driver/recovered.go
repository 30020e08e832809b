package driver

import (
	"fmt"
	"runtime/debug"
)

// Recovered is deferred where a device's code meets its caller's: a panic, which
// would be a defect of the device's, becomes the error.
func Recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("internal error: %v\n%s", r, debug.Stack())
	}
}
