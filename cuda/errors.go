package cuda

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The errors of this package wrap one or more of these.
var (
	// ErrNoDriver: the library of the driver is missing, or could not be
	// initialised.
	ErrNoDriver = errors.New("no NVIDIA driver")

	// ErrNoDevice: there is a driver, and no device of that number.
	ErrNoDevice = errors.New("no such CUDA device")

	// ErrDriverTooOld: the driver lacks a function or feature. The error is a [*VersionError] with
	// the driver's version and the required one.
	ErrDriverTooOld = errors.New("the NVIDIA driver is too old")

	// ErrMissingSymbol: the library of the driver does not export a function,
	// although its version says that it should.
	ErrMissingSymbol = errors.New("the NVIDIA driver lacks a function")

	// ErrPTXTooNew: the text is in a version of PTX that the driver does not
	// understand. Such an error wraps ErrDriverTooOld too.
	ErrPTXTooNew = errors.New("the PTX version is too new for the driver")

	// ErrLocked: pages of the host are locked already.
	ErrLocked = errors.New("the pages are locked already")
	// ErrBadImage: the driver refuses a module. The error contains the compiler's log.
	ErrBadImage = errors.New("the module cannot be loaded")

	// ErrOutOfMemory: the device, or the memory that can be locked on the host,
	// is full.
	ErrOutOfMemory = errors.New("out of memory")

	// ErrDeviceLost: a kernel failed, or the device did. All calls fail until every [Device] of
	// this GPU is closed and the GPU is opened again. After some failures only a new process can
	// open it.
	ErrDeviceLost = errors.New("the device is lost")

	// ErrIllegalAddress: a kernel read or wrote memory that is not its own.
	// Such an error wraps ErrDeviceLost too.
	ErrIllegalAddress = errors.New("a kernel used an illegal address")

	// ErrClosed: something is used after its Close.
	ErrClosed = errors.New("closed")

	// ErrInvalid: an argument is out of range.
	ErrInvalid = errors.New("invalid argument")

	// ErrForeign: something belongs to another device.
	ErrForeign = errors.New("it belongs to another device")

	// ErrNotFound: a module has no function or variable of that name.
	ErrNotFound = errors.New("not found")

	// ErrCapturing: the call is not possible on a stream that records a graph.
	ErrCapturing = errors.New("the stream is being captured")

	// ErrUnsupported: the device cannot do it.
	ErrUnsupported = errors.New("not supported by the device")
)

// A Code is the result of a function of the driver.
type Code int32

// The codes that have a meaning to this package.
const (
	codeSuccess           Code = 0
	codeInvalidValue      Code = 1
	codeOutOfMemory       Code = 2
	codeNotInitialized    Code = 3
	codeDeinitialized     Code = 4
	codeStubLibrary       Code = 34
	codeNoDevice          Code = 100
	codeInvalidDevice     Code = 101
	codeInvalidImage      Code = 200
	codeNoBinaryForGPU    Code = 209
	codeECC               Code = 214
	codeInvalidPTX        Code = 218
	codeNVLink            Code = 220
	codeUnsupportedPTX    Code = 222
	codeInvalidSource     Code = 300
	codeNotFound          Code = 500
	codeNotReady          Code = 600
	codeIllegalAddress    Code = 700
	codeOutOfResources    Code = 701
	codeLaunchTimeout     Code = 702
	codePeerAlreadyOn     Code = 704
	codeContextDestroyed  Code = 709
	codeAssert            Code = 710
	codeHardwareStack     Code = 714
	codeIllegalInstr      Code = 715
	codeMisaligned        Code = 716
	codeAddressSpace      Code = 717
	codeInvalidPC         Code = 718
	codeLaunchFailed      Code = 719
	codeAlreadyLocked     Code = 712
	codeNotSupported      Code = 801
	codeSystemNotReady    Code = 802
	codeDriverMismatch    Code = 803
	codeCompatUnsupported Code = 804
	codeUpdateFailed      Code = 910
	codeUnknown           Code = 999
)

// sticky reports whether the context is unusable after this code.
func (c Code) sticky() bool {
	switch c {
	case codeDeinitialized, codeECC, codeNVLink, codeIllegalAddress, codeLaunchTimeout, codeContextDestroyed, codeAssert,
		codeHardwareStack, codeIllegalInstr, codeMisaligned, codeAddressSpace, codeInvalidPC, codeLaunchFailed:
		return true
	}
	return false
}

// causes returns the errors of this package that the code means.
func (c Code) causes() []error {
	switch c {
	case codeInvalidValue, codeOutOfResources:
		return []error{ErrInvalid}
	case codeOutOfMemory:
		return []error{ErrOutOfMemory}
	case codeAlreadyLocked:
		return []error{ErrLocked}
	case codeNotInitialized, codeStubLibrary, codeSystemNotReady, codeDriverMismatch, codeCompatUnsupported:
		return []error{ErrNoDriver}
	case codeNoDevice, codeInvalidDevice:
		return []error{ErrNoDevice}
	case codeInvalidImage, codeNoBinaryForGPU, codeInvalidPTX, codeInvalidSource:
		return []error{ErrBadImage}
	case codeUnsupportedPTX:
		return []error{ErrPTXTooNew, ErrDriverTooOld, ErrBadImage}
	case codeNotFound:
		return []error{ErrNotFound}
	case codeIllegalAddress:
		return []error{ErrDeviceLost, ErrIllegalAddress}
	case codeNotSupported:
		return []error{ErrUnsupported}
	}
	if c.sticky() {
		return []error{ErrDeviceLost}
	}
	return nil
}

// An Error is an error code returned by a function of the driver.
type Error struct {
	Call   string // the function: "cuLaunchKernel"
	Code   Code   // its result
	Name   string // the name of the result: "CUDA_ERROR_INVALID_VALUE"
	Text   string // the driver's description of the error
	Detail string // the context of the error: the kernel and its grid, or the compiler's log
}

// Error returns the description on one line, followed by the compiler's log.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("cuda: ")
	b.WriteString(e.Call)
	b.WriteString(": ")
	if e.Name != "" {
		b.WriteString(e.Name)
	} else {
		b.WriteString("error " + strconv.Itoa(int(e.Code)))
	}
	if e.Text != "" {
		b.WriteString(" (" + e.Text + ")")
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	return b.String()
}

// Unwrap returns the errors of this package that the code means.
func (e *Error) Unwrap() []error { return e.Code.causes() }

// A VersionError says that the driver is too old for something. It wraps
// [ErrDriverTooOld].
type VersionError struct {
	What       string  // the feature that needs a newer driver
	Have, Need Version // the driver's version and the required one
}

// Error names the feature, the required version, and the version of the driver.
func (e *VersionError) Error() string {
	return fmt.Sprintf("cuda: %s needs a driver for CUDA %v; this one is for CUDA %v", e.What, e.Need, e.Have)
}

// Unwrap returns [ErrDriverTooOld].
func (e *VersionError) Unwrap() error { return ErrDriverTooOld }

// A PTXError says that the text of a module is in a newer language than the
// driver understands. It wraps [ErrPTXTooNew], [ErrDriverTooOld] and
// [ErrBadImage].
type PTXError struct {
	Have   PTXVersion // the newest version that the driver understands, or 0 if that is not known
	Need   PTXVersion // the version of the text
	Driver Version    // the version of the driver
	Update Version    // the oldest driver that understands the text, or 0 if that is not known
}

// Error says which version the text needs, and which one the driver has.
func (e *PTXError) Error() string {
	s := fmt.Sprintf("cuda: the module is in PTX %v; this driver is for CUDA %v", e.Need, e.Driver)
	if e.Have != 0 {
		s += fmt.Sprintf(" and understands PTX %v", e.Have)
	}
	if e.Update != 0 {
		s += fmt.Sprintf("; a driver for CUDA %v would do", e.Update)
	}
	return s
}

// Unwrap returns [ErrPTXTooNew], [ErrDriverTooOld] and [ErrBadImage].
func (e *PTXError) Unwrap() []error { return codeUnsupportedPTX.causes() }

// invalid returns an error that wraps ErrInvalid.
func invalid(format string, args ...any) error {
	return fmt.Errorf("cuda: %w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// closed returns an error that wraps ErrClosed and names the closed object.
func closed(what string) error { return fmt.Errorf("cuda: %s: %w", what, ErrClosed) }

// foreign returns an error that wraps ErrForeign and names the object.
func foreign(what string) error { return fmt.Errorf("cuda: %s: %w", what, ErrForeign) }

// errCapturingAlloc is the answer to an allocation that would become a part of
// the graph that is recorded.
var errCapturingAlloc = fmt.Errorf("cuda: Alloc: %w, and no memory of that size is kept: allocate before, or free some", ErrCapturing)

// capturing returns an error that wraps ErrCapturing and names the operation that is not possible
// during a capture.
func capturing(what string) error { return fmt.Errorf("cuda: %s: %w", what, ErrCapturing) }
