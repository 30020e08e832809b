package interp

import (
	"context"
	"encoding/binary"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// Runner distributes work to goroutines. It calls part(0), part(1) ... part(n-1), at the same time if it can, and
// returns when all calls have returned.
type Runner interface {
	Run(n int, part func(i int))
}

// Goroutines is a [Runner] with the given number of goroutines. With 0 and 1 the caller does all the work.
type Goroutines int

// Run calls each part once.
func (g Goroutines) Run(n int, part func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			part(i)
		}
	}
	var wg sync.WaitGroup
	for range min(int(g), n) - 1 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			work()
		}()
	}
	work()
	wg.Wait()
}

// Launch is a grid of workgroups with their buffers and parameters.
type Launch struct {
	Grid [3]uint32 // workgroups along x, y and z; all must be positive

	// Buffers has the memory of each binding: a multiple of the size of its elements, aligned to 4 bytes (2 for
	// F16), in the byte order of the machine.
	Buffers [][]byte

	Params   []byte // the parameter block, little endian
	Subgroup int    // lanes of a subgroup, a power of two up to 128; 0 is 32
	Runner   Runner // nil runs everything on the caller's goroutine
}

// defaultBudget is the loop limit of programs without one.
const defaultBudget = 1 << 20

// defaultSubgroup is the size on most hardware.
const defaultSubgroup = 32

// launch is a Launch that was checked, while it runs.
type launch struct {
	ctx      context.Context
	kernel   *Kernel
	grid     [3]uint32
	views    []view
	params   []uint32 // by uniform
	subgroup int
	budget   uint32
	stop     atomic.Bool
	canceled atomic.Bool
	mu       sync.Mutex
	found    *Finding
	at       uint64 // the workgroup of found
}

// stopped reports whether a loop shall end now.
func (l *launch) stopped(turns uint32) bool {
	if runtime.GOARCH == "wasm" && turns%1024 == 0 {
		runtime.Gosched() // nobody else can cancel
	}
	return l.stop.Load()
}

// interrupted is the finding of a workgroup that was stopped because of another.
func (l *launch) interrupted() *Finding { return &Finding{} }

// Run runs the kernel. It returns a [*Finding] for a defect (an index out of bounds, a loop that
// exceeds its limit, a barrier that some lanes do not reach), the error of ctx if ctx was
// cancelled, or an error that wraps [ErrLaunch] or [ErrLimit], in which case nothing ran. After
// another error the contents of the buffers that the kernel writes are undefined.
//
// Several launches of a kernel may run at the same time.
func (k *Kernel) Run(ctx context.Context, r Launch) error {
	l, err := k.newLaunch(ctx, &r)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() {
			l.canceled.Store(true)
			l.stop.Store(true)
		})()
	}
	groups := l.gangs() * uint64(l.grid[1]) * uint64(l.grid[2])
	if r.Runner == nil {
		l.part(0, groups)
	} else {
		// More parts than processors, so that a processor that finishes early gets another part.
		parts := min(groups, 64)
		r.Runner.Run(int(parts), func(i int) {
			n, rest := groups/parts, groups%parts
			from := n*uint64(i) + min(uint64(i), rest)
			to := from + n
			if uint64(i) < rest {
				to++
			}
			l.part(from, to)
		})
	}
	if l.found != nil {
		return l.found
	}
	if l.canceled.Load() {
		return ctx.Err()
	}
	return nil
}

// gangs is the number of gangs along x.
func (l *launch) gangs() uint64 {
	g := uint64(l.kernel.gang)
	return (uint64(l.grid[0]) + g - 1) / g
}

// part runs workgroups, or gangs of them, numbered along x first.
func (l *launch) part(from, to uint64) {
	if l.stop.Load() {
		return
	}
	m := l.kernel.machine()
	defer l.kernel.keep(m)
	m.prepare(l)
	x, y := l.gangs(), uint64(l.grid[1])
	for g := from; g < to && !l.stopped(uint32(g)); g++ {
		m.enter([3]uint32{uint32(g % x * uint64(l.kernel.gang)), uint32(g / x % y), uint32(g / x / y)})
		if f := m.run(); f != nil {
			if f.Kind != 0 {
				l.mu.Lock()
				if l.found == nil || g < l.at {
					l.found, l.at = f, g
				}
				l.mu.Unlock()
				l.stop.Store(true)
			}
			return
		}
	}
}

// machine returns an idle machine, or a new one.
func (k *Kernel) machine() *machine {
	k.mu.Lock()
	n := len(k.idle)
	if n == 0 {
		k.mu.Unlock()
		return newMachine(k)
	}
	m := k.idle[n-1]
	k.idle = k.idle[:n-1]
	k.mu.Unlock()
	return m
}

// keep takes a machine back for the next launch.
func (k *Kernel) keep(m *machine) {
	m.views, m.launch = nil, nil // the caller's memory
	k.mu.Lock()
	if len(k.idle) < runtime.GOMAXPROCS(0) {
		k.idle = append(k.idle, m)
	}
	k.mu.Unlock()
}

// list returns the three numbers for a format. A launch stays on the stack of its caller, because they are copied.
func list(n [3]uint32) []uint32 { return n[:] }

// newLaunch checks a launch.
func (k *Kernel) newLaunch(ctx context.Context, r *Launch) (*launch, error) {
	p := k.program
	fail := func(format string, args ...any) error {
		return fmt.Errorf("kernel %s: %w", p.Name, fmt.Errorf(format, args...))
	}
	l := &launch{ctx: ctx, kernel: k, grid: r.Grid, subgroup: r.Subgroup, budget: p.Budget}
	if l.budget == 0 {
		l.budget = defaultBudget
	}
	groups := uint64(1)
	for _, n := range r.Grid {
		if n == 0 {
			return nil, fail("%w: grid %v has no workgroups", ErrLaunch, list(r.Grid))
		}
		if uint64(n) > uint64(k.limits.Groups) {
			return nil, fail("%w: grid %v has more than %d workgroups along one dimension", ErrLimit, list(r.Grid), k.limits.Groups)
		}
		if groups > math.MaxInt64/uint64(n) {
			return nil, fail("%w: grid %v", ErrLimit, list(r.Grid))
		}
		groups *= uint64(n)
	}
	if l.subgroup == 0 {
		l.subgroup = defaultSubgroup
	}
	if s := l.subgroup; s < 1 || s > 128 || s&(s-1) != 0 {
		return nil, fail("%w: subgroups of %d lanes", ErrLaunch, r.Subgroup)
	}
	if len(r.Buffers) != len(p.Bindings) {
		return nil, fail("%w: %d buffers for %d bindings", ErrLaunch, len(r.Buffers), len(p.Bindings))
	}
	l.views = make([]view, len(r.Buffers))
	for i, b := range r.Buffers {
		v, err := newView(&p.Bindings[i], b)
		if err != nil {
			return nil, fail("%w", err)
		}
		l.views[i] = v
	}
	l.params = make([]uint32, len(p.Uniforms))
	for i, u := range p.Uniforms {
		if uint64(u.Offset)+4 > uint64(len(r.Params)) {
			return nil, fail("%w: parameter %s is beyond the %d bytes of parameters", ErrLaunch, u.Name, len(r.Params))
		}
		l.params[i] = binary.LittleEndian.Uint32(r.Params[u.Offset:])
	}
	return l, nil
}

// newView views the memory of a binding as its elements. An incomplete last vector does not count,
// as on devices.
func newView(b *ir.Binding, mem []byte) (v view, err error) {
	size := 4
	if b.Type == ir.F16 {
		size = 2
	}
	element := size * int(b.Width)
	if len(mem)%size != 0 {
		return v, fmt.Errorf("%w: buffer %s has %d bytes, which is not a multiple of %d", ErrLaunch, b.Name, len(mem), size)
	}
	n := len(mem) / element
	if uint64(n) > math.MaxUint32 {
		return v, fmt.Errorf("%w: buffer %s has %d elements", ErrLimit, b.Name, n)
	}
	v.len = uint32(n)
	if n == 0 {
		return v, nil
	}
	at := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(at)%uintptr(size) != 0 {
		return v, fmt.Errorf("%w: buffer %s is not aligned to %d bytes", ErrLaunch, b.Name, size)
	}
	if size == 2 {
		v.halves = unsafe.Slice((*uint16)(at), len(mem)/2)
	} else {
		v.words = unsafe.Slice((*uint32)(at), len(mem)/4)
	}
	return v, nil
}
