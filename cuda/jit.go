package cuda

import (
	"runtime"
	"strings"
	"unsafe"
)

// logSize is the room for each log of the compiler.
const logSize = 16 << 10

// A jit has the options of a compilation and the buffers for the compiler's logs. It must be on the
// heap, because the driver writes into it.
type jit struct {
	options [8]uint32
	values  [8]uintptr
	count   int
	said    [logSize]byte
	faults  [logSize]byte
}

// Options of the compiler.
const (
	jitMaxRegisters   = 0
	jitInfoLog        = 3
	jitInfoLogSize    = 4
	jitErrorLog       = 5
	jitErrorLogSize   = 6
	jitOptimization   = 7
	jitTarget         = 9
	jitLogVerbose     = 12
	jitGenerateLines  = 13
	jitTargetSpecific = 0x10000 // plus the number, for a target such as sm_90a
	jitTargetFamily   = 0x20000 // likewise, for sm_100f
)

// newJIT returns the options for an image.
//
//go:noinline
func newJIT(o LoadOptions, image []byte) *jit {
	j := new(jit)
	j.set(jitInfoLog, addressOf(&j.said))
	j.set(jitInfoLogSize, logSize)
	j.set(jitErrorLog, addressOf(&j.faults))
	j.set(jitErrorLogSize, logSize)
	j.set(jitLogVerbose, 1)
	if o.MaxRegisters > 0 {
		j.set(jitMaxRegisters, uintptr(min(o.MaxRegisters, 255)))
	}
	if o.Optimization > 0 {
		j.set(jitOptimization, uintptr(min(o.Optimization, 4)))
	}
	if o.LineInfo {
		j.set(jitGenerateLines, 1)
	}
	return j
}

// set appends an option. The value is in the place of the pointer.
func (j *jit) set(option uint32, v uintptr) {
	j.options[j.count], j.values[j.count] = option, v
	j.count++
}

// arguments returns the arguments of the driver's compile functions.
func (j *jit) arguments() (count, options, values uintptr) {
	return uintptr(j.count), addressOf(&j.options), addressOf(&j.values)
}

// log returns the compiler's information log, and errors its error log.
func (j *jit) log() string    { return text(j.said[:]) }
func (j *jit) errors() string { return text(j.faults[:]) }

func text(b []byte) string {
	s := string(b)
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return strings.TrimSpace(strings.ToValidUTF8(s, "?"))
}

// compile makes a cubin of text, which has a zero behind it.
func (d *Device) compile(f *frame, ptx []byte, o LoadOptions) (cubin []byte, log string, err error) {
	// The driver's linker keeps state of a compilation in its thread: begun on one
	// and continued on another, as goroutines do by themselves, it now and then
	// crashes the process (seen with driver 580).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	j := newJIT(o, ptx)
	if t := ownTarget(directive(ptx, ".target")); t != 0 && j.count < len(j.options) {
		j.set(jitTarget, t)
	}
	defer keep(j)
	f.Args[0], f.Args[1], f.Args[2] = j.arguments()
	f.Args[3] = f.out(0)
	if err := d.prim.call(f, cuLinkCreate); err != nil {
		return nil, "", err
	}
	state := f.ptr(0)
	defer func() {
		f.Args[0] = state
		d.prim.destroy(f, cuLinkDestroy)
	}()
	const inputPTX = 1
	name := onHeap("module")
	f.Args[0], f.Args[1], f.Args[2], f.Args[3], f.Args[4] = state, inputPTX, address(ptx), uintptr(len(ptx)), address(name)
	f.Args[5], f.Args[6], f.Args[7] = 0, 0, 0
	err = d.prim.call(f, cuLinkAddData)
	keep(ptx)
	keep(name)
	if err != nil {
		return nil, "", d.explainLoad(err, ptx, j)
	}
	f.Args[0], f.Args[1], f.Args[2] = state, f.out(0), f.out(1)
	if err := d.prim.call(f, cuLinkComplete); err != nil {
		return nil, "", d.explainLoad(err, ptx, j)
	}
	// The cubin belongs to the linker.
	const tooMuch = 1 << 30
	if f.Out[1] > tooMuch {
		return nil, "", invalid("a cubin of %d bytes", f.Out[1])
	}
	return append([]byte(nil), at(f.ptr(0), int(f.Out[1]))...), j.log(), nil
}

// ownTarget returns the number of a target that is one architecture's own, which
// the linker does not choose by itself, or 0.
func ownTarget(target string) uintptr {
	rest, ok := strings.CutPrefix(target, "sm_")
	if !ok || len(rest) < 3 {
		return 0
	}
	n := uintptr(0)
	for _, c := range rest[:len(rest)-1] {
		if c < '0' || c > '9' || n > 999 {
			return 0
		}
		n = 10*n + uintptr(c-'0')
	}
	switch rest[len(rest)-1] {
	case 'a':
		return jitTargetSpecific + n
	case 'f':
		return jitTargetFamily + n
	}
	return 0
}

// keep keeps the memory that the driver was given reachable until here.
func keep(x any) { runtime.KeepAlive(x) }

func addressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }
