// Package cpu runs programs on the processor: it uses the vector kernels of package simd and a pool
// of worker threads.
//
// From the call down: a [driver.Program] is prepared as a list of runners, one for each step
// (step.go); an elementwise program becomes a list of kernel calls over blocks that stay in the
// first cache (fuse.go, lower.go, block.go), alone or before and after an operation of another
// class (reduce.go, row.go, matmul.go and so on). An operation without a kernel runs its reference
// (reference.go). order.go orders submissions that share device memory, queue.go runs asynchronous
// submissions, and immediate.go is the fast path of single operations over host memory.
package cpu

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/workers"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// kernelVersion is part of a device's identity: raise it when the speed of
// kernels changes, so that stored measurements are taken again.
const kernelVersion = "1"

// processor is the CPU device. It has no settings that change: all methods
// are safe for concurrent use.
type processor struct {
	info    driver.Info
	pool    *workers.Pool
	memory  *memory.Pool
	tracker accessTracker
	queue   queue
	users   users

	programs programs
	variants driver.Variants
	portable bool // use only portable kernels where they exist

	folds sync.Map // *foldPrograms by operation and type

	// plain has the data for calls of single operations, indexed by op.Operation.ID.
	plain  [op.MaxID]atomic.Pointer[plain]
	recent recent

	closed atomic.Bool
}

// Open returns a device with the given number of threads, including the calling one. With 0 or
// less, it uses as many threads as the process may use.
func Open(threads int) (driver.Device, error) { return newDevice(threads, false) }

// OpenPortable returns a device that computes all operations that are not elementwise with the
// portable library, in the interpreter.
func OpenPortable(threads int) (driver.Device, error) {
	UseKernels()
	return newDevice(threads, true)
}

func newDevice(threads int, portable bool) (driver.Device, error) {
	if why := simd.Refused(); why != "" {
		return nil, fmt.Errorf("%s: %w", why, driver.ErrUnsupported)
	}
	d := &processor{
		portable: portable,
		pool:     workers.New(threads),
		memory:   memory.NewPool(memory.Options{}),
	}
	d.queue.tracker = &d.tracker
	d.queue.idle.L = &d.queue.mu
	name := memory.ProcessorName()
	if name == "" {
		name = runtime.GOARCH + " processor"
	}
	n := d.pool.Threads()
	d.info = driver.Info{
		Kind:     driver.CPU,
		Name:     name,
		Detail:   fmt.Sprintf("%v, %d threads", simd.Active(), n),
		Identity: fmt.Sprintf("cpu/%s/%v/threads=%d/kernels=%s", name, simd.Active(), n, kernelVersion),
		Threads:  n,
	}
	if n == 1 {
		d.info.Detail = fmt.Sprintf("%v, 1 thread", simd.Active())
	}
	if portable {
		d.info.Detail += ", portable kernels"
		d.info.Identity += "/portable"
	}
	return d, nil
}

func (d *processor) Info() driver.Info { return d.info }

func (d *processor) Limits() driver.Limits {
	return driver.Limits{MaxBuffer: min(math.MaxInt, 1<<46), MaxRank: op.MaxRank}
}

// fuses is [processor.Fuses] after [UsePrograms]. Reductions and row operations process blocks of a row, to which
// prologues and epilogues are applied in the cache. Products call epilogues for finished pieces of
// the result. A prologue of a product would be computed each time the operand is read, or need a
// copy of the operand, so a separate step is as fast. The other operations only move elements and
// gain nothing.
func (d *processor) fuses(o *op.Operation, at driver.Place) bool {
	if o.Class() == op.Reduction || o.Class() == op.Row {
		return true
	}
	return at == driver.Epilogue && (o == op.MatMul || o == op.MatVec || o == op.Conv2D)
}

// reads is [processor.Reads] after [UsePrograms]: operations that only move elements read any layout, reductions,
// scans and softmax read columns, products take any strides except those that repeat elements of a matrix, and attention and rope any
// strides except between the elements of a row.
func (d *processor) reads(o *op.Operation, at int, s op.Shape, l *op.Layout) bool {
	if d.portable && portable.Has(o) {
		return o.Class() != op.Reduction && portable.Reads(o, at, s, l)
	}
	if o.Class() == op.Elementwise {
		return true
	}
	switch o {
	case op.Var:
		return variesColumns(s, l)
	case op.ArgMin, op.ArgMax:
		return false // the kernels that find the index of an element read rows
	}
	if o.Class() == op.Reduction {
		return o.ReadsColumns(s, l)
	}
	if o.Class() == op.Row {
		return scansColumns(o, s, l)
	}
	axes := append(op.Shape{1, 1}, s...)
	var strides []int
	var ok bool
	switch {
	case o == op.Concat, o == op.Update && at == 2:
		return true
	case o == op.MatMul && at < 2:
		_, axes, strides, ok = matricesOf(l, s)
	case o == op.Rope && at == 0:
		axes = s
		_, strides, ok = l.Strides(s)
	case o == op.Attention && at < 3:
		axes = axes[len(axes)-4:]
		_, strides, ok = l.Strides(axes)
	}
	if !ok {
		return false
	}
	for i, n := range strides {
		ok = ok && n >= 0 && (n > 0 || axes[i] == 1 || i < len(axes)-2)
	}
	n := len(axes)
	return ok && (o == op.MatMul || axes[n-1] == 1 || strides[n-1] == 1)
}

// writes is [processor.Writes] after [UsePrograms]: attention supports any strides between rows of the result, and scans write columns.
func (d *processor) writes(o *op.Operation, s op.Shape, _ op.DType, l *op.Layout) bool {
	return (o == op.Attention || o.Class() == op.Row) && d.reads(o, 0, s, l)
}

// Close waits for queued submissions, which the engine has waited for already,
// and stops the workers.
func (d *processor) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.queue.wait()
	d.pool.Close()
	d.memory.Close()
	return nil
}
