package cpu

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/interp"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/workers"
)

// programs caches kernels that were compiled for the interpreter. The zero value is ready to use.
type programs struct {
	mu   sync.Mutex
	made map[*ir.Program]compiled
}

// compiled is an [interp.Kernel].
type compiled interface {
	Lanes() int
	Run(ctx context.Context, l interp.Launch) error
}

// compile compiles programs. UseKernels sets it.
var compile atomic.Pointer[func(p *ir.Program) (compiled, error)]

// UseKernels links the interpreter of kernels into the program. Code that creates kernels calls it,
// so that pages without kernels need not load the interpreter.
func UseKernels() {
	UsePrograms()
	f := func(p *ir.Program) (compiled, error) { return interp.Compile(p, interp.Limits{}) }
	compile.CompareAndSwap(nil, &f)
}

// maxPrograms is the maximum number of cached kernels. When it is reached, the cache is cleared.
const maxPrograms = 512

// of returns the compiled kernel of p.
func (c *programs) of(p *ir.Program) (compiled, error) {
	c.mu.Lock()
	k := c.made[p]
	c.mu.Unlock()
	if k != nil {
		return k, nil
	}
	f := compile.Load()
	if f == nil {
		return nil, fmt.Errorf("the interpreter of kernels is not linked into this program: %w", driver.ErrUnsupported)
	}
	k, err := (*f)(p)
	if err != nil {
		return nil, launchError(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.made[p]; old != nil {
		return old, nil
	}
	if c.made == nil || len(c.made) >= maxPrograms {
		c.made = make(map[*ir.Program]compiled)
	}
	c.made[p] = k
	return k, nil
}

// Compile implements [driver.Compiler].
func (d *processor) Compile(ctx context.Context, p *ir.Program) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.closed.Load() {
		return driver.ErrClosed
	}
	_, err := d.programs.of(p)
	return err
}

// launchError wraps an error of the interpreter in the error of package driver for the same cause.
func launchError(err error) error {
	var f *interp.Finding
	switch {
	case errors.As(err, &f):
		return fmt.Errorf("%w: %w", driver.ErrFault, err)
	case errors.Is(err, interp.ErrLimit):
		return fmt.Errorf("%w: %w", driver.ErrLimit, err)
	case errors.Is(err, interp.ErrLaunch):
		return fmt.Errorf("%w: %w", driver.ErrShape, err)
	case errors.Is(err, interp.ErrProgram):
		return fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
	}
	return err
}

// launchStep runs a kernel in the interpreter.
type launchStep struct {
	d      *processor
	kernel compiled
	driver.Kernel
	slots  []driver.Slot
	serial bool // too short for several threads
}

// serialWork is the maximum number of lane-instructions of a launch that stays on one thread: about
// ten microseconds.
const serialWork = 5000

func (d *processor) prepareLaunch(s *driver.Step, e *executable) (step, error) {
	k, err := d.programs.of(s.Kernel.Program)
	if err != nil {
		return nil, err
	}
	work := float64(k.Lanes()) * float64(len(s.Kernel.Program.Code))
	for _, n := range s.Kernel.Grid {
		work *= float64(n)
	}
	return &launchStep{d, k, *s.Kernel, e.slots, work < serialWork}, nil
}

func (s *launchStep) runner(*frame) runner {
	return &launchRunner{s: s, buffers: make([][]byte, len(s.Bind))}
}

// launchRunner is the runner of a launchStep.
type launchRunner struct {
	s       *launchStep
	buffers [][]byte
}

func (r *launchRunner) run(ctx context.Context, f *frame) error {
	s := r.s
	for i, slot := range s.Bind {
		r.buffers[i] = s.memory(f, slot)
	}
	defer clear(r.buffers)
	l := interp.Launch{Grid: s.Grid, Buffers: r.buffers}
	if s.Params >= 0 {
		l.Params = s.memory(f, s.Params)
	}
	if !s.serial {
		l.Runner = poolRunner{s.d.pool}
	}
	err := s.kernel.Run(ctx, l)
	if err == nil {
		return nil
	}
	var found *interp.Finding
	if errors.As(err, &found) && found.File == "" && s.Positions != nil {
		if p, perr := s.Positions(); perr == nil {
			located := *found
			located.File, located.Line = ir.Position(p.Pos, found.Value)
			err = &located
		}
	}
	return launchError(err)
}

func (s *launchStep) memory(f *frame, slot int) []byte {
	return unsafe.Slice((*byte)(f.base[slot]), s.slots[slot].Bytes)
}

// poolRunner adapts the device's pool to the interface of the interpreter.
type poolRunner struct{ pool *workers.Pool }

func (p poolRunner) Run(n int, f func(int)) { p.pool.Do(n, part(f)) }

// part is a task of the pool.
type part func(int)

func (f part) Part(i int) {
	f(i)
	if runtime.GOARCH == "wasm" {
		runtime.Gosched()
	}
}
