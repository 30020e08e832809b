package cuda

import (
	"container/list"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/ptxgen"
	"github.com/rayo-go/rayo/internal/ptxkernels"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// kernelCache keeps compiled kernels: one for each text, shared by all programs. It keeps a limited
// number of kernels that no executable uses.
type kernelCache struct {
	d *gpuDevice

	mu     sync.Mutex
	byText map[textKey]*code
	// byProgram finds the code of programs that are requested again, such as those of the portable
	// library.
	byProgram map[programKey]textKey
	idle      list.List // list of *code, the most recently used first
}

type textKey [sha256.Size]byte

// programKey identifies the source of a kernel: a program, a native kernel, or a type for a
// conversion: see [ptxgen.Convert].
type programKey struct {
	p       *ir.Program
	o       ptxgen.Options
	native  *ptxkernels.Kernel
	convert op.DType
	narrow  bool
}

// lower adds the kernel to a module, and returns the data that launches of it need.
func (k programKey) lower(m *ptx.Module) (c *code, err error) {
	c = &code{name: entryName(k.name())}
	switch {
	case k.native != nil:
		built := m.Kernel(c.name, func(b *ptx.Kernel) {
			ptxgen.Follow(b)
			k.native.Build(b)
		})
		_, c.dynamic = built.SharedBytes()
		err = m.Err()
	case k.p == nil:
		c.entry, err = ptxgen.Convert(m, c.name, k.convert, k.narrow)
	default:
		c.entry, err = ptxgen.Lower(m, c.name, k.p, k.o)
	}
	return c, err
}

func (k programKey) name() string {
	switch {
	case k.native != nil:
		return k.native.Name
	case k.p == nil:
		return k.convert.String()
	}
	return k.p.Name
}

// code is a compiled kernel.
type code struct {
	name    string        // name of the kernel in its module
	entry   *ptxgen.Entry // nil for native kernels
	dynamic int           // shared memory that a launch of a native kernel requests

	key  textKey
	once sync.Once
	err  error
	mod  Module
	fn   Function

	users int           // under kernelCache.mu
	at    *list.Element // element of kernelCache.idle, if there are no users
}

const (
	maxIdle     = 512  // maximum number of compiled kernels without users
	maxPrograms = 4096 // maximum number of programs in byProgram
)

// entryName is the name of a program's kernel in its module, as profilers and compute-sanitizer
// show it. Programs whose texts differ only in their names are compiled separately.
func entryName(program string) string {
	const longest = 120
	name := []byte("rayo_" + program[:min(len(program), longest)])
	for i, c := range name {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			name[i] = '_'
		}
	}
	return string(name)
}

// get returns a compiled kernel and adds the caller to its users.
func (c *kernelCache) get(p programKey) (*code, error) {
	k, text, err := c.find(p)
	if err != nil {
		return nil, err
	}
	k.once.Do(func() { k.err = c.compile(k, text) })
	if k.err != nil {
		c.mu.Lock()
		if c.byText[k.key] == k {
			delete(c.byText, k.key) // a later attempt may succeed, for example if the device was out of memory
		}
		c.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", p.name(), k.err)
	}
	return k, nil
}

// find returns the code of p, and its text if it may have to be compiled.
func (c *kernelCache) find(p programKey) (*code, []byte, error) {
	c.mu.Lock()
	key, known := c.byProgram[p]
	if k := c.byText[key]; known && k != nil && k.fn != nil {
		c.hold(k)
		c.mu.Unlock()
		return k, nil, nil
	}
	c.mu.Unlock()
	m := ptx.NewModule(c.d.target)
	k, err := p.lower(m)
	if err != nil {
		return nil, nil, err
	}
	text, err := m.AppendPTX(nil)
	if err != nil {
		return nil, nil, err
	}
	key = sha256.Sum256(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byText == nil {
		c.byText = make(map[textKey]*code)
	}
	if c.byProgram == nil || len(c.byProgram) >= maxPrograms {
		c.byProgram = make(map[programKey]textKey)
	}
	c.byProgram[p] = key
	if old := c.byText[key]; old != nil {
		k = old
	} else {
		k.key = key
		c.byText[key] = k
	}
	c.hold(k)
	return k, text, nil
}

func (c *kernelCache) hold(k *code) {
	if k.at != nil {
		c.idle.Remove(k.at)
		k.at = nil
	}
	k.users++
}

func (c *kernelCache) compile(k *code, text []byte) error {
	m, err := c.d.hw.Load(text)
	if err != nil {
		return c.d.translateError(err)
	}
	fn, err := m.Function(k.name)
	if err != nil {
		_ = m.Close()
		return c.d.translateError(err)
	}
	c.mu.Lock()
	k.mod, k.fn = m, fn
	c.mu.Unlock()
	return nil
}

// put ends a use of k. No launch of k may be running.
func (c *kernelCache) put(k *code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.users--; k.users > 0 {
		return
	}
	k.at = c.idle.PushFront(k)
	for c.idle.Len() > maxIdle {
		old := c.idle.Remove(c.idle.Back()).(*code)
		old.at = nil
		if c.byText[old.key] == old {
			delete(c.byText, old.key)
		}
		_ = old.mod.Close()
	}
}

// free unloads all kernels.
func (c *kernelCache) free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.byText {
		if k.mod != nil {
			_ = k.mod.Close()
		}
	}
	c.byText, c.byProgram = nil, nil
	c.idle.Init()
}

// faultError is the error of a kernel that caused a fault.
func faultError(k *driver.Kernel, f ptxgen.Fault) error {
	p := k.Program
	where := ""
	if k.Positions != nil {
		if q, err := k.Positions(); err == nil {
			if file, line := ir.Position(q.Pos, f.At); file != "" {
				where = fmt.Sprintf("%s:%d: ", file, line)
			}
		}
	}
	what := fmt.Sprintf("instruction %d", f.At)
	if int(f.At) < len(p.Code) {
		switch in := &p.Code[f.At]; in.Code {
		case ir.For, ir.Loop:
			what = fmt.Sprintf("a loop had more than %d iterations", p.Budget)
		case ir.Load, ir.Store, ir.AtomicOp:
			what = fmt.Sprintf("index %d is out of bounds: buffer %s has %d elements", f.Index, p.Bindings[in.Imm].Name, f.Len)
		default:
			what = fmt.Sprintf("index %d is out of bounds: workgroup array %s has %d elements", f.Index, p.Shared[in.Imm].Name, f.Len)
		}
	}
	return fmt.Errorf("%w: kernel %s: %s%s", driver.ErrFault, p.Name, where, what)
}
