package webgpu

import "errors"

// The errors of this package wrap one of these errors, or are a [*CompileError] or the error of a context.
var (
	// ErrNoAdapter: there is no driver, or no adapter with that number.
	ErrNoAdapter = errors.New("no WebGPU adapter")

	// ErrLimit: a size exceeds a limit of the device. The error names the limit.
	ErrLimit = errors.New("beyond a limit of the device")

	// ErrOutOfMemory: the device is full, or the host's memory that it reaches.
	ErrOutOfMemory = errors.New("out of memory")

	// ErrDeviceLost: the device has stopped working. It stays so until it is
	// closed and opened again.
	ErrDeviceLost = errors.New("the device is lost")

	// ErrClosed: something is used after its Free or Close.
	ErrClosed = errors.New("closed")

	// ErrForeign: something belongs to another device.
	ErrForeign = errors.New("it belongs to another device")

	// ErrInvalid: an argument is out of range, or one buffer is bound for
	// reading and for writing.
	ErrInvalid = errors.New("invalid argument")

	// ErrUnsupported: the device lacks something.
	ErrUnsupported = errors.New("not supported by the device")
)
