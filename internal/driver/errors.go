package driver

import (
	"errors"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
)

// The errors that callers test for with errors.Is. Package device exports
// them.
var (
	ErrNoDevice    = errors.New("no device")
	ErrOutOfMemory = memory.ErrOutOfMemory
	ErrDeviceLost  = errors.New("device lost")
	ErrClosed      = errors.New("used after Close")
	ErrOverlap     = errors.New("operands overlap")
	ErrForeign     = errors.New("not of this device or batch")
	ErrLimit       = errors.New("larger than the device can handle")
	ErrNotExecuted = errors.New("not executed")
	ErrContext     = errors.New("nil context: use context.Background() if there is no other")
	ErrExecuted    = errors.New("executed already")
	ErrFault       = errors.New("kernel fault")
	ErrUnsupported = op.ErrUnsupported
	ErrShape       = op.ErrShape
)
