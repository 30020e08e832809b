package device

import (
	"context"
	"strings"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/errtree"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

// The errors of this package and of package batch. They are wrapped, mostly in an [OpError]: test
// for them with errors.Is.
var (
	ErrNoDevice    = driver.ErrNoDevice    // no device of the required kind
	ErrUnsupported = driver.ErrUnsupported // not defined for the element type, or not available on the device
	ErrOutOfMemory = driver.ErrOutOfMemory // the device or the system has no memory left
	ErrDeviceLost  = driver.ErrDeviceLost  // the device stopped working: open it again
	ErrClosed      = driver.ErrClosed      // used after Close
	ErrShape       = driver.ErrShape       // lengths, shapes or parameters do not match
	ErrOverlap     = driver.ErrOverlap     // the result shares memory with an operand in a way that the operation forbids
	ErrForeign     = driver.ErrForeign     // a buffer belongs to another device, or a value to another batch
	ErrLimit       = driver.ErrLimit       // larger than the device can handle
	ErrNotExecuted = driver.ErrNotExecuted // a result was requested before Execute
	ErrFault       = driver.ErrFault       // a kernel made an invalid access: see Kernel.Run
	ErrContext     = driver.ErrContext     // a nil context
	ErrExecuted    = driver.ErrExecuted    // a batch was used after Execute, without Reset
)

// OpError is the error of an operation: the operation, the shapes of its operands, the device, and the cause.
type OpError struct {
	Op     string     // the operation, as in docs/OPS.md
	Shapes []op.Shape // shapes of the operands; nil if unknown
	Device string     // kind:index
	Err    error
}

// Error returns the operation, the shapes, the device and the reason in one line.
func (e *OpError) Error() string {
	var s []string
	for _, sh := range e.Shapes {
		if sh == nil {
			s = append(s, "-")
			continue
		}
		s = append(s, sh.String())
	}
	what := e.Op
	if len(s) > 0 {
		what += " " + strings.Join(s, "x")
	}
	return fmt.Sprintf("%s on %s: %v", what, e.Device, e.Err)
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }

// wrap returns err as an OpError, unless it already is one, or is the error of a context.
func (d *Device) wrap(err error, o *op.Operation, shapes ...op.Shape) error {
	name := "nil operation"
	if err != nil && o != nil {
		name = o.Name()
	}
	return d.wrapAs(err, name, shapes...)
}

// wrapAs is wrap with the name of the operation.
func (d *Device) wrapAs(err error, name string, shapes ...op.Shape) error {
	if _, is := errtree.As[*OpError](err); is || err == nil || err == context.Canceled || err == context.DeadlineExceeded {
		return err
	}
	return &OpError{Op: name, Shapes: shapes, Device: d.String(), Err: err}
}

// noDevice is the [ErrNoDevice] of [Open]: a line for each refused device.
type noDevice struct{ refused []Refusal }

// Error returns the reasons, without the words that they share with the rest of the text.
func (e *noDevice) Error() string {
	var lines []string
	for _, r := range e.refused {
		kind := r.Kind.String() + ": "
		reason := strings.TrimSuffix(r.Err.Error(), ": "+ErrNoDevice.Error())
		lines = append(lines, kind+strings.TrimPrefix(reason, kind))
	}
	return ErrNoDevice.Error() + ": " + strings.Join(lines, "\n")
}

// Unwrap returns ErrNoDevice and the reasons.
func (e *noDevice) Unwrap() []error {
	errs := []error{ErrNoDevice}
	for _, r := range e.refused {
		errs = append(errs, r.Err)
	}
	return errs
}
