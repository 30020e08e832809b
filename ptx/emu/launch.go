package emu

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
)

// Dim is the size of a grid or a block. A size of 0 counts as 1.
type Dim struct{ X, Y, Z int }

func (d Dim) sizes() [3]int { return [3]int{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }

// Limits of a launch.
const (
	maxBlocks   = 1<<22 - 1
	maxThreads  = 1024
	maxResident = 64
	maxPlanes   = 1 << 23 // planes of a block; a plane has 256 bytes
)

// launch is a running launch.
type launch struct {
	m           *Machine
	k           *Kernel
	grid, block [3]int
	blocks      int
	threads     int // threads of a block
	dynamic     int
	sharedBytes int
	params      []byte
	number      uint32
	counts      []Counts
	report      report
	releases    map[uint64]epochs // for each word with strong writes: the accesses that happen before a read of the word
	maps        map[int]*TensorMap
	last        *allocation
	done        <-chan struct{} // closed when the context ends
	variables   map[int]uint64  // addresses of variables of the module
	stacks      int             // bytes of the stacks of all threads
	clock       uint64          // steps of all warps so far
}

// thread returns the position of a thread in its block.
func (r *launch) thread(t int) [3]int {
	return [3]int{t % r.block[0], t / r.block[0] % r.block[1], t / r.block[0] / r.block[1]}
}

// blockAt returns the position of a block in the grid.
func (r *launch) blockAt(n int) [3]int {
	return [3]int{n % r.grid[0], n / r.grid[0] % r.grid[1], n / r.grid[0] / r.grid[1]}
}

// Launch runs a kernel over a grid of blocks with the given bytes of dynamic shared memory, and
// waits for it. A parameter is a Ptr, a Go number of the parameter's size (uint32, int32, float32,
// uint64 ...), or a *TensorMap.
//
// The error is [Findings] if the kernel has defects, ctx.Err() if ctx ended, and wraps [ErrLaunch]
// or [ErrLimit] if the launch did not start. Instructions before a finding have changed memory.
func (m *Machine) Launch(ctx context.Context, k *Kernel, grid, block Dim, shared int, params ...any) error {
	if k == nil {
		return fmt.Errorf("%w: the kernel is nil: take one from Module.Kernel", ErrLaunch)
	}
	for _, d := range []Dim{grid, block} {
		if min(d.X, d.Y, d.Z) < 0 {
			return fmt.Errorf("%w: the grid or block has the size %d x %d x %d, expected 0 or more along each axis", ErrLaunch, d.X, d.Y, d.Z)
		}
	}
	if k.err != nil {
		return fmt.Errorf("%w: %w", ErrLaunch, k.err)
	}
	r := &launch{m: m, k: k, grid: grid.sizes(), block: block.sizes(), dynamic: shared}
	m.stats = Stats{}
	if err := r.check(params); err != nil {
		return err
	}
	if err := r.placeVariables(); err != nil {
		return err
	}
	m.launch++
	r.number = m.launch
	r.counts = make([]Counts, len(k.code))
	r.done = ctx.Done()
	r.report = report{seen: map[sighting]bool{}, limit: m.config.Findings}
	err := r.run(ctx)
	m.stats = Stats{k: k, at: r.counts}
	for i := range r.counts {
		m.stats.add(&r.counts[i])
	}
	if err == nil && len(r.report.findings) > 0 {
		return r.report.findings
	}
	return err
}

func (r *launch) check(params []any) error {
	k := r.k
	r.blocks = 1
	for _, n := range r.grid {
		if n > maxBlocks || r.blocks > maxBlocks/n {
			return fmt.Errorf("%w: the grid has %v blocks; at most %d are supported", ErrLimit, r.grid, maxBlocks)
		}
		r.blocks *= n
	}
	r.threads = 1
	for _, n := range r.block {
		if n > maxThreads || r.threads > maxThreads/n {
			return fmt.Errorf("%w: the block has %v threads; at most %d are supported", ErrLimit, r.block, maxThreads)
		}
		r.threads *= n
	}
	if k.cluster > 1 && k.remote {
		return fmt.Errorf("%w: kernel %s copies to other blocks of its clusters or uses their mbarriers, which is not supported", ErrLaunch, k.name)
	}
	if r.grid[0]%r.size() != 0 {
		return fmt.Errorf("%w: the grid has %v blocks, but kernel %s needs a multiple of %d along x, the size of its clusters", ErrLaunch, r.grid, k.name, k.cluster)
	}
	if k.exactly && k.threads != r.block {
		return fmt.Errorf("%w: the block has %v threads, but kernel %s needs %v", ErrLaunch, r.block, k.name, k.threads)
	}
	if n := k.threads[0] * k.threads[1] * k.threads[2]; n > 0 && r.threads > n {
		return fmt.Errorf("%w: the block has %v threads, but kernel %s allows at most %d", ErrLaunch, r.block, k.name, n)
	}
	if r.dynamic < 0 || r.dynamic > maxSharedBytes {
		return fmt.Errorf("%w: the launch asks for %d bytes of dynamic shared memory, expected 0 to %d", ErrLimit, r.dynamic, maxSharedBytes)
	}
	r.sharedBytes = k.static - sharedBase + r.dynamic
	used := r.dynamic
	for _, a := range k.arrays {
		used += max(a.size, 0)
	}
	if used > maxSharedBytes {
		return fmt.Errorf("%w: the block needs %d bytes of shared memory; at most %d are supported", ErrLimit, used, maxSharedBytes)
	}
	if n := (r.threads + 31) / 32 * k.planes; n > maxPlanes {
		return fmt.Errorf("%w: the warps of a block need %d registers; at most %d are supported", ErrLimit, n, maxPlanes)
	}
	if n := int64(r.threads) * int64(k.routines[0].frame); n > maxStacks/2 {
		return fmt.Errorf("%w: the threads of a block need %d bytes of local memory; at most %d are supported", ErrLimit, n, maxStacks/2)
	}
	if len(params) != len(k.params) {
		return fmt.Errorf("%w: the launch passes %d parameters, but kernel %s has %d", ErrLaunch, len(params), k.name, len(k.params))
	}
	r.params = make([]byte, k.bytes)
	for i, v := range params {
		if err := r.param(i, v); err != nil {
			return err
		}
	}
	return nil
}

// param stores a parameter in the parameter memory of the kernel.
func (r *launch) param(i int, v any) error {
	p, at := r.k.params[i], r.k.offsets[i]
	var bits uint64
	size := 8
	switch x := v.(type) {
	case Ptr:
		bits = uint64(x)
	case uint64:
		bits = x
	case int64:
		bits = uint64(x)
	case float64:
		bits = math.Float64bits(x)
	case uint32:
		bits, size = uint64(x), 4
	case int32:
		bits, size = uint64(uint32(x)), 4
	case float32:
		bits, size = uint64(math.Float32bits(x)), 4
	case uint16:
		bits, size = uint64(x), 2
	case int16:
		bits, size = uint64(uint16(x)), 2
	case uint8:
		bits, size = uint64(x), 1
	case int8:
		bits, size = uint64(uint8(x)), 1
	case *TensorMap:
		if x == nil {
			return fmt.Errorf("%w: parameter %s of kernel %s is a nil tensor map", ErrLaunch, p.name, r.k.name)
		}
		if p.bytes != tensorMapBytes {
			return fmt.Errorf("%w: parameter %s of kernel %s is a tensor map of %d bytes, expected %d bytes", ErrLaunch, p.name, r.k.name, tensorMapBytes, p.bytes)
		}
		if err := x.check(r.m); err != nil {
			return err
		}
		if r.maps == nil {
			r.maps = map[int]*TensorMap{}
		}
		c := *x
		r.maps[at] = &c
		return nil
	default:
		return fmt.Errorf("%w: parameter %s of kernel %s is a %T, expected a Ptr, a sized number or a *TensorMap", ErrLaunch, p.name, r.k.name, v)
	}
	if size != p.bytes {
		return fmt.Errorf("%w: parameter %s of kernel %s has %d bytes, but a %T has %d", ErrLaunch, p.name, r.k.name, p.bytes, v, size)
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	copy(r.params[at:at+size], b[:])
	return nil
}

// stepsAfter limits the steps of a launch after the first finding. Later findings are usually
// repetitions, and a loop whose bound is wrong would run for minutes.
const stepsAfter = 1 << 22

// sliceSteps is the number of steps of a block before other blocks run.
const sliceSteps = 1 << 18

// order returns the clusters in the order in which they start, or nil for ascending order.
func (r *launch) order(clusters int) []int {
	var order []int
	switch r.m.config.Schedule {
	case Descending:
		order = make([]int, clusters)
		for i := range order {
			order[i] = clusters - 1 - i
		}
	case Shuffled:
		order = rand.New(rand.NewPCG(r.m.config.Seed, 2)).Perm(clusters)
	}
	return order
}

// turns is the state of a launch whose blocks run in turns.
type turns struct {
	resident, idle []*block
	window         int   // the number of clusters that run
	slice          int   // the number of steps of each block before others run
	left           int64 // the steps until the launch ends
	cut            bool  // there was a finding, so the launch must end soon
	stalled        int   // steps since a block has ended
	ended          bool
}

// run runs all blocks of the launch.
func (r *launch) run(ctx context.Context) error {
	size := r.size()
	clusters := r.blocks / size
	order := r.order(clusters)
	t := turns{window: 1, slice: sliceSteps, left: r.m.config.Steps}
	if r.m.config.Schedule == Shuffled {
		t.window, t.slice = min(max(4/size, 1), clusters), 256
	}
	for next := 0; ; {
		for len(t.resident) <= (t.window-1)*size && next < clusters {
			n := next
			if order != nil {
				n = order[next]
			}
			next++
			t.resident, t.idle = r.admit(n, t.resident, t.idle)
		}
		if len(t.resident) == 0 {
			return nil
		}
		did, err := r.turn(ctx, &t)
		if err != nil || t.ended {
			return err
		}
		if did == 0 && len(t.resident) > 0 {
			t.resident[0].stuck() // a cluster in which no warp can continue
			return nil
		}
		if t.stalled >= t.window*sliceSteps && size*t.window < maxResident {
			// The remaining warps may wait for blocks that have not started.
			t.stalled = 0
			if room := int64(t.window+1) * int64(size) * int64((r.threads+31)/32*r.k.planes); room < maxPlanes && r.stacks < maxStacks/4 {
				t.window++
			}
		}
	}
}

// turn runs each resident block for some steps, and returns the number of all steps.
func (r *launch) turn(ctx context.Context, t *turns) (did int, err error) {
	live := t.resident[:0]
	for _, b := range t.resident {
		steps := b.advance(int(min(int64(t.slice), max(t.left, 0)+1)))
		if runtime.GOARCH == "wasm" { // if the context cannot be cancelled, there is no timer either
			runtime.Gosched()
		}
		if err := ctx.Err(); err != nil {
			return did, err
		}
		t.left -= int64(steps)
		t.stalled += steps
		did += steps
		if b.slept { // it probably waits for another block
			t.stalled += sliceSteps
			did++
			b.slept = false
		}
		if t.ended = r.report.full(); t.ended {
			return did, nil
		}
		if len(r.report.findings) > 0 && t.left > stepsAfter && !t.cut {
			t.cut, t.left = true, stepsAfter
		}
		if t.ended = t.left < 0; t.ended {
			if !t.cut {
				r.overrun(b)
			}
			return did, nil
		}
		if b.live > 0 {
			live = append(live, b)
		} else {
			t.idle = append(t.idle, b)
			t.stalled = 0
		}
	}
	t.resident = live
	return did, nil
}

// admit appends the blocks of cluster n to the resident blocks, and reuses idle ones.
func (r *launch) admit(n int, resident, idle []*block) (_, _ []*block) {
	c, size := &cluster{}, r.size()
	for i := range size {
		var b *block
		if last := len(idle) - 1; last >= 0 {
			b, idle = idle[last], idle[:last]
		} else {
			b = newBlock(r)
		}
		b.enter(size*n+i, c)
		resident = append(resident, b)
	}
	return resident, idle
}

// overrun reports that the launch takes too many steps.
func (r *launch) overrun(b *block) {
	after := fmt.Sprintf("after %d steps", r.m.config.Steps)
	for _, w := range b.warps {
		if w.state == running {
			w.stop(Budget, w.pc, lowest(w.mask), after)
			return
		}
	}
	b.warps[0].stop(Budget, b.warps[0].pc, 0, after)
}
