package device

import (
	"context"
	"errors"
	"strings"

	"github.com/rayo-go/rayo/internal/ascii"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/internal/env"
	"github.com/rayo-go/rayo/internal/fmt"
)

// Kind is a kind of device.
type Kind = driver.Kind

// The kinds of devices.
const (
	CPU    = driver.CPU    // the CPU, with its vector instructions
	WebGPU = driver.WebGPU // any GPU, through WebGPU
	CUDA   = driver.CUDA   // NVIDIA GPUs, through their driver
	Wasm   = driver.Wasm   // the CPU with the WebAssembly kernels of browsers, in builds with the tag wazero
)

// Info describes a device.
type Info struct {
	Kind   Kind
	Index  int    // index among the devices of its kind
	Name   string // name given by the vendor
	Detail string // instruction set, driver version, API
	// Identity changes whenever something changes that affects measurements: the model, the driver,
	// the threads, or rayo's kernels. Measurements are stored under it.
	Identity string
	Memory   int64 // bytes that the device can hold, 0 if unknown
	Threads  int   // number of CPU threads; 0 for a GPU
}

// String returns the text that RAYO_DEVICE accepts: kind:index.
func (i Info) String() string { return driver.Info(i).String() }

// Limits are the limits of a device.
type Limits struct {
	MaxBuffer   int64 // maximum bytes of one buffer, and of all temporaries of a batch
	MaxBinding  int64 // maximum bytes of one array of a kernel; 0 if only MaxBuffer limits it
	MaxBindings int   // maximum number of arrays of one kernel, including results; 0 for no limit
	MaxRank     int   // maximum number of extents of a shape
}

// An Option selects the device that [Open] returns, or changes how it works.
type Option func(*config) error

// logFunc writes one line of the log: a message, then names and values in turn.
type logFunc func(ctx context.Context, msg string, args ...any)

type config struct {
	kind    Kind // required; 0 for any
	index   int
	indexed bool   // index was given
	name    string // a part of the name, "" for any
	listing bool   // for List
	threads int
	log     logFunc
	pinned  bool
	// cpu opens the CPU with the given number of threads. If it is nil, the CPU driver of this
	// package is used.
	cpu func(threads int) (driver.Device, error)
}

// Require makes [Open] return a device of kind k, or ErrNoDevice with the reason. The device is
// pinned: it never sends work to another device.
func Require(k Kind) Option {
	return func(c *config) error {
		switch k {
		case CPU, WebGPU, CUDA, Wasm:
			c.kind, c.pinned = k, true
			return nil
		}
		return fmt.Errorf("kind %d is invalid: use CPU, WebGPU, CUDA or Wasm: %w", k, ErrNoDevice)
	}
}

// WithIndex selects a device of a kind by its index. The default is 0.
func WithIndex(i int) Option {
	return func(c *config) error {
		if i < 0 {
			return fmt.Errorf("device index %d is negative: %w", i, ErrNoDevice)
		}
		c.index, c.indexed = i, true
		return nil
	}
}

// WithName selects a device by a part of its name or of the name of its driver, ignoring case, and
// pins it. WithIndex then counts only devices with matching names. WithName can also select a
// software WebGPU device, such as Mesa's llvmpipe, which otherwise only its index selects. The name
// "software" matches every software device.
func WithName(part string) Option {
	return func(c *config) error {
		c.name, c.pinned = part, c.pinned || part != ""
		return nil
	}
}

// WithThreads limits the threads with which the CPU computes, including the thread of the caller.
// For n <= 0 the limit is GOMAXPROCS, which is the default.
func WithThreads(n int) Option {
	return func(c *config) error {
		c.threads = max(n, 0)
		return nil
	}
}

// WithPortableKernels makes the CPU device run the portable kernels of GPUs in the interpreter,
// instead of its own kernels, for all operations that are not elementwise. Tests use it to test the
// portable kernels. It is slow. Other devices ignore it.
func WithPortableKernels() Option {
	return func(c *config) error {
		c.cpu = cpu.OpenPortable
		return nil
	}
}

// environment applies RAYO_DEVICE and RAYO_THREADS, if no option has priority. RAYO_DEVICE is a
// kind, kind:index as [Device.String] prints it, or kind:name with a part of a name as [WithName]
// accepts it. With [Require], the variable selects among the devices of that kind.
func (c *config) environment() error {
	if v := env.Get("RAYO_THREADS"); v != "" && c.threads == 0 {
		n, ok := ascii.Natural(v)
		if !ok || n < 1 {
			return fmt.Errorf("RAYO_THREADS=%q: expected a positive number of threads: %w", v, ErrUnsupported)
		}
		c.threads = n
	}
	v := env.Get("RAYO_DEVICE")
	if v == "" || c.name != "" || c.kind != 0 && c.indexed || c.listing {
		return nil
	}
	kind, which, _ := strings.Cut(v, ":")
	name := ""
	if ascii.Trim(which, "+-0123456789") != "" {
		v, name = kind, which
	}
	k, i, err := ParseName(v)
	switch {
	case c.kind != 0 && (err != nil || k != c.kind):
		return nil // an option has priority
	case err != nil:
		return fmt.Errorf("RAYO_DEVICE=%q: %w", v, err)
	}
	c.kind, c.index, c.name, c.pinned = k, i, name, true
	c.indexed = which != "" && name == ""
	return nil
}

// named opens the first device that matches the name and the index in c, among the devices that
// open returns by index.
func (c *config) named(open func(i int) (driver.Device, error)) (driver.Device, error) {
	if c.name == "" {
		return open(c.index)
	}
	left := c.index
	for i := 0; ; i++ {
		d, err := open(i)
		switch {
		case err != nil && i > 0 && errors.Is(err, ErrNoDevice):
			return nil, fmt.Errorf("no device has a name that contains %q: the command rayo devices lists the names: %w", c.name, ErrNoDevice)
		case err != nil:
			return nil, err
		}
		if strings.Contains(ascii.Lower(d.Info().Name), ascii.Lower(c.name)) {
			if left == 0 {
				return d, nil
			}
			left--
		}
		_ = d.Close()
	}
}

// ParseName parses the text that [Device.String] returns and RAYO_DEVICE accepts: a kind (cpu,
// webgpu, cuda, wasm) or kind:index.
func ParseName(s string) (Kind, int, error) {
	name, num, found := strings.Cut(s, ":")
	i := 0
	if found {
		var ok bool
		if i, ok = ascii.Natural(num); !ok {
			return 0, 0, fmt.Errorf("device index %q is invalid: expected a number from 0 to 999999999: %w", num, ErrNoDevice)
		}
	}
	for _, k := range driver.Kinds() {
		if k.String() == ascii.Lower(name) {
			return k, i, nil
		}
	}
	return 0, 0, fmt.Errorf("device kind %q is unknown: use cuda, webgpu or cpu: %w", name, ErrNoDevice)
}
