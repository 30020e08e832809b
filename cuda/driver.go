package cuda

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/internal/dl"
)

// A library finds functions and calls them. It is a shared library, or a fake one in tests.
type library interface {
	Symbol(name string) (uintptr, error)
	call(f *frame)
}

// shared is a loaded shared library.
type shared struct{ *dl.Library }

func (shared) call(f *frame) { f.Call() }

// loadShared loads the first library that is found of names.
func loadShared(names []string) (library, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("NVIDIA has no driver for %s", runtime.GOOS)
	}
	l, err := dl.Open(names...)
	if err != nil {
		return nil, err
	}
	return shared{l}, nil
}

// driverNames are the names of the driver's library, most usual first.
func driverNames() []string {
	switch runtime.GOOS {
	case "linux":
		return []string{"libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1", "/run/opengl-driver/lib/libcuda.so.1"}
	case "windows":
		return []string{"nvcuda.dll"}
	}
	return nil
}

// A driver is the library of the driver, found and initialised at first use.
type driver struct {
	load func() (library, error)

	once    sync.Once
	err     error // why it cannot be used
	lib     library
	version Version
	addr    [entryCount]atomic.Uintptr

	mu        sync.Mutex
	primaries map[int]*primary // contexts in use, by ordinal
}

// system is the driver of this machine.
var system = &driver{load: func() (library, error) { return loadShared(driverNames()) }}

// use loads and initialises the driver the first time, and returns why it
// cannot be used.
func (d *driver) use() error {
	d.once.Do(func() { d.err = d.init() })
	return d.err
}

func (d *driver) init() error {
	if unsafe.Sizeof(uintptr(0)) < 8 {
		return fmt.Errorf("cuda: %w: a program of 32 bits cannot use it", ErrNoDriver)
	}
	lib, err := d.load()
	if err != nil {
		return fmt.Errorf("cuda: %w: %w", ErrNoDriver, err)
	}
	d.lib = lib
	d.primaries = map[int]*primary{}
	f := newFrame()
	defer f.release()
	f.Args[0] = f.out(0)
	if err := d.call(f, cuDriverGetVersion, 0); err != nil {
		return fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	d.version = Version(f.int(0))
	if d.version < need {
		return &VersionError{What: "this program", Have: d.version, Need: need}
	}
	f.Args[0] = 0
	if err := d.call(f, cuInit, 0); err != nil {
		if f.code() == codeNoDevice {
			return err
		}
		return fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	return nil
}

// find returns the address of a function, which is looked up at its first use.
func (d *driver) find(e entry) (uintptr, error) {
	if a := d.addr[e].Load(); a != 0 {
		return a, nil
	}
	a, err := d.lib.Symbol(entries[e].name)
	if err != nil {
		if since := entries[e].since; since > d.version {
			return 0, &VersionError{What: entries[e].name, Have: d.version, Need: since}
		}
		return 0, fmt.Errorf("cuda: %w: %w (the driver is for CUDA %v)", ErrMissingSymbol, err, d.version)
	}
	d.addr[e].Store(a)
	return a, nil
}

// call calls a function with the arguments that are in the frame, with context
// current on the thread unless it is 0.
func (d *driver) call(f *frame, e entry, context uintptr) error {
	fn, err := d.find(e)
	if err != nil {
		f.Result = uintptr(codeUnknown)
		return err
	}
	f.Fn, f.Bind, f.Context = fn, 0, 0
	if context != 0 {
		if f.Bind, err = d.find(cuCtxSetCurrent); err != nil {
			f.Result = uintptr(codeUnknown)
			return err
		}
		f.Context = context
	}
	d.lib.call(f)
	f.live()
	switch f.code() {
	case codeSuccess:
		return nil
	case codeNotReady:
		return errNotReady // an answer rather than a mistake, and a frequent one
	}
	if f.Refused != 0 {
		e = cuCtxSetCurrent
	}
	return d.fail(e, f.code())
}

// callUnbound calls a function without binding a context, and returns its answer.
func (d *driver) callUnbound(f *frame, e entry) Code {
	if f.Fn = d.addr[e].Load(); f.Fn == 0 {
		var err error
		if f.Fn, err = d.find(e); err != nil {
			return codeUnknown // call says why
		}
	}
	f.Bind = 0
	d.lib.call(f)
	f.live()
	return f.code()
}

// errNotReady is the result of a query of unfinished work.
var errNotReady error = &Error{Call: "query", Code: codeNotReady, Name: "CUDA_ERROR_NOT_READY"}

// fail returns the error for a result that is not success.
func (d *driver) fail(e entry, c Code) error {
	err := &Error{Call: entries[e].name, Code: c}
	err.Name, err.Text = d.describe(c)
	return err
}

// describe asks the driver for the name and the meaning of a result.
func (d *driver) describe(c Code) (name, text string) {
	f := newFrame()
	defer f.release()
	ask := func(e entry) string {
		fn, err := d.find(e)
		if err != nil {
			return ""
		}
		f.Fn, f.Bind = fn, 0
		f.Args[0], f.Args[1] = uintptr(c), f.out(0)
		d.lib.call(f)
		if f.code() != codeSuccess {
			return ""
		}
		return cstring(f.ptr(0))
	}
	return ask(cuGetErrorName), ask(cuGetErrorString)
}

// DriverVersion returns the version of CUDA that the driver is for. The error
// wraps [ErrNoDriver], [ErrDriverTooOld] or [ErrNoDevice] if it cannot be used.
func DriverVersion() (Version, error) {
	if err := system.use(); err != nil {
		return 0, err
	}
	return system.version, nil
}

// Missing returns the names of the functions that this package calls and the driver does not have.
// Nearly all of them are optional: a method that needs a missing one returns an error.
func Missing() ([]string, error) {
	if err := system.use(); err != nil {
		return nil, err
	}
	var names []string
	for e := range entryCount {
		if _, err := system.find(e); err != nil {
			names = append(names, entries[e].name)
		}
	}
	return names, nil
}
