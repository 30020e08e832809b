package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/op"
)

// Pipeline computes a function over a stream of rows that need not fit into the memory of the
// device or the host. It divides the stream into chunks of many rows. It reads one chunk while the
// device computes another and the caller takes the results of a third. Results come in the order of
// the rows. During the first chunks, the pipeline measures how many rows a chunk should have and
// how many chunks should be under way, and it keeps these numbers for later runs.
//
//	p, err := batch.NewPipeline[float32, float32](dev, func(b *batch.Batch, x batch.Value) batch.Value {
//		return b.Sum(b.Relu(x))
//	}, batch.PipelineOpts{})
//	defer p.Close()
//	total := 0.0
//	for sum, err := range p.RunReader(ctx, file) {
//		if err != nil {
//			return err
//		}
//		total += float64(sum[0])
//	}
//
// A Pipeline is safe for concurrent use.
type Pipeline[In, Out device.Element] struct {
	flow *flow
}

// PipelineOpts are the options of [NewPipeline]. The zero value suits streams of
// single numbers.
type PipelineOpts struct {
	// Row has the extents of one row; empty for a row of one element.
	Row []int
	// Rows is the number of rows of each chunk but the last, or 0 to choose it by measurement. If
	// each chunk has one result, for example a sum, set it to get the same results in every run.
	Rows int
	// Memory bounds the bytes of the chunks under way, operands and results together, in host
	// memory; a device with its own memory holds the same amount and its temporaries. 0 means 256
	// MiB. A pipeline holds at least two chunks of one row.
	Memory int64
}

// defaultMemory is the budget of a Pipeline without Memory.
const defaultMemory = 256 << 20

// NewPipeline returns a pipeline that computes f. f records the work on one chunk: x has the
// extents [rows, opts.Row...], and the value that f returns comes back to the host for each chunk.
// If f computes each row independently, like relu, softmax or a product with weights, the
// concatenated results are the result of the whole stream. If it reduces the rows, like a sum,
// there is one result for each chunk, and the caller combines them. To carry a value from chunk to
// chunk, keep it in a [device.Buffer] that f reads with Use and writes with Store: the chunks take
// effect in order. If f returns the zero Value, there are no results; each chunk then gives an
// empty slice.
//
// NewPipeline calls f, and so do runs, for each number of rows that occurs. f must record the same
// operations each time, for any number of rows from 1 on (up to opts.Rows, if it is set).
//
// # Errors
//   - the first mistake of f, with file and line.
//   - [device.ErrShape] for a negative extent or number, or an f that returns a value of another batch.
//   - [device.ErrUnsupported] if f returns a value that slices of Out do not hold.
//   - [device.ErrLimit] if opts.Rows rows are more than opts.Memory bytes.
func NewPipeline[In, Out device.Element](dev *device.Device, f func(b *Batch, x Value) Value, opts PipelineOpts) (*Pipeline[In, Out], error) {
	if f == nil {
		return nil, fmt.Errorf("pipeline: nil function: expected a function that records the operations of a chunk: %w", device.ErrUnsupported)
	}
	p := &flow{dev: dev, opts: opts, in: device.TypeOf[In](), out: device.TypeOf[Out](), holds: device.Holds[Out], plans: make(map[int]*chunkPlan)}
	p.size = p.in.Size()
	var blank []In // represents the chunks in the recording
	p.record = func(b *Batch, rows int) (Value, Value) {
		n := rows * (p.row / p.size)
		if len(blank) < n {
			blank = make([]In, n)
		}
		x := Upload(b, blank[:n:n], append([]int{rows}, opts.Row...)...)
		if b.Err() != nil {
			return Value{}, Value{}
		}
		return x, f(b, x)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	return &Pipeline[In, Out]{p}, nil
}

// Run computes over the rows that src yields, in slices of any length: many small ones are gathered
// into chunks, long ones are cut. Run copies each slice before it requests the next one. An error
// that src yields ends the stream after the results of the rows before it.
//
// Run returns the results of one chunk after the other. A slice of results is valid until the next
// iteration. src runs in its own goroutine, ahead of the results. When the loop over the results
// ends, for example by break, yield returns false to src, and Run waits until src has returned. An
// error comes with a nil slice and is the last result.
//
// # Errors
//   - the error of src.
//   - [io.ErrUnexpectedEOF] for a stream that ends in the middle of a row.
//   - the error of ctx. Run does not wait for src then, which ends by itself when it next yields.
//   - what [Plan.Run] returns, and [device.ErrClosed] after Close.
func (p *Pipeline[In, Out]) Run(ctx context.Context, src iter.Seq2[[]In, error]) iter.Seq2[[]Out, error] {
	return results[Out](p.flow, ctx, false, func(r *running) error {
		var fault error
		for data, err := range src {
			ok := r.write(engine.Bytes(data))
			if fault = err; err != nil || !ok {
				break
			}
		}
		return fault
	})
}

// RunReader is [Pipeline.Run] over the elements that r delivers, in the byte order of the machine,
// until [io.EOF]. RunReader reads from r directly into the memory of the chunks, so a
// [bufio.Reader] around a file makes it slower. When ctx is cancelled, RunReader does not wait for
// a running Read: do not use r elsewhere until that Read has returned. If r is a regular [os.File] and the device the
// CPU, RunReader reads several parts of the file at a time. It then waits for these reads also when ctx is cancelled, and
// [io.ErrUnexpectedEOF] means that the file became shorter meanwhile.
func (p *Pipeline[In, Out]) RunReader(ctx context.Context, r io.Reader) iter.Seq2[[]Out, error] {
	return results[Out](p.flow, ctx, p.flow != nil && p.flow.inTurns, func(run *running) error { return run.readFrom(r) })
}

// RunSlice is [Pipeline.Run] over an array in memory, which is not copied: do not change the
// elements until the loop over the results has ended. Over memory whose pages are locked
// ([device.LockPages]), a pipeline on an NVIDIA GPU runs almost at the speed of the bus.
func (p *Pipeline[In, Out]) RunSlice(ctx context.Context, data []In) iter.Seq2[[]Out, error] {
	return results[Out](p.flow, ctx, false, func(r *running) error {
		r.lend(engine.Bytes(data))
		return nil
	})
}

// Copy computes over the elements of src and writes the results to dst, both in the byte order of
// the machine, and returns the number of bytes written. It reads, computes and writes at the same
// time. It returns the errors of [Pipeline.RunReader] and of dst.
func (p *Pipeline[In, Out]) Copy(ctx context.Context, dst io.Writer, src io.Reader) (int64, error) {
	var written int64
	for out, err := range p.RunReader(ctx, src) {
		if err != nil {
			return written, err
		}
		b := engine.Bytes(out)
		n, err := dst.Write(b)
		written += int64(max(n, 0))
		if err == nil && n != len(b) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return written, fmt.Errorf("pipeline: write: %w", err)
		}
	}
	return written, nil
}

// Close frees the pipeline's device memory, after the chunks that are being computed. Running and
// later runs end with [device.ErrClosed]. A second Close does nothing.
func (p *Pipeline[In, Out]) Close() error {
	if p.flow == nil {
		return errNoPlan
	}
	p.flow.close()
	return nil
}

// flow is a Pipeline over bytes.
type flow struct {
	dev     *device.Device
	opts    PipelineOpts
	in, out op.DType
	size    int                                   // bytes of an element of the operand
	record  func(b *Batch, rows int) (x, y Value) // called by one goroutine at a time
	holds   func(op.DType) bool                   // whether slices of Out hold a type

	row     int  // bytes of a row
	remote  bool // the device is not the CPU
	stores  bool // chunks must run in order, because record stores
	inTurns bool // runs that read use lanes
	// A chunk of n rows has fixed + n*perRow bytes of results.
	fixed, perRow int64

	mu     sync.Mutex
	plans  map[int]*chunkPlan // plans by number of rows
	trials *sizing            // the measurements of all runs
	closed bool
}

// chunkPlan is the plan for chunks of one number of rows.
type chunkPlan struct {
	plan *Plan
	x, y Value
	out  int // bytes of the result
}

// check records f for one row and for two rows (or for opts.Rows rows) and derives the size of the
// results of any chunk.
func (p *flow) check() error {
	if p.opts.Memory == 0 {
		p.opts.Memory = defaultMemory
	}
	n, err := op.Shape(p.opts.Row).Size()
	switch {
	case err != nil:
		return err
	case p.opts.Memory < 0 || p.opts.Rows < 0:
		return fmt.Errorf("options Rows %d and Memory %d: expected 0 or more: %w", p.opts.Rows, p.opts.Memory, device.ErrShape)
	case n == 0:
		return fmt.Errorf("rows of shape %v have no elements: expected positive extents in PipelineOpts.Row: %w", op.Shape(p.opts.Row), device.ErrShape)
	case n > math.MaxInt32/p.size:
		return fmt.Errorf("rows of %d elements: expected at most %d: %w", n, math.MaxInt32/p.size, device.ErrLimit)
	}
	p.opts.Row = append([]int(nil), p.opts.Row...)
	p.row = n * p.size
	most := min(p.opts.Memory, math.MaxInt) / (fewest * int64(p.row))
	if int64(p.opts.Rows) > max(most, 1) {
		return fmt.Errorf("%d chunks of %d rows of %d bytes are more than the %d bytes of the budget: raise PipelineOpts.Memory or lower Rows: %w",
			fewest, p.opts.Rows, p.row, p.opts.Memory, device.ErrLimit)
	}
	one := max(p.opts.Rows, 1)
	p.fixed, err = p.outBytes(one)
	p.remote = err == nil && p.dev.Info().Kind != device.CPU
	p.inTurns = err == nil && !p.remote && !p.stores && runtime.GOMAXPROCS(0) > 1
	if err != nil || p.opts.Rows > 0 {
		return err
	}
	two, err := p.outBytes(2)
	p.perRow = max(two-p.fixed, 0)
	p.fixed -= min(p.perRow, p.fixed)
	return err
}

// outBytes records f and returns the bytes of its result.
func (p *flow) outBytes(rows int) (int64, error) {
	b := New(p.dev)
	_, y := p.record(b, rows)
	p.stores = slices.ContainsFunc(b.g.Nodes, func(n graph.Node) bool { return n.Kind == graph.Store })
	return p.result(b, y)
}

// result returns the size in bytes of the value that f returned.
func (p *flow) result(b *Batch, y Value) (int64, error) {
	switch {
	case b.Err() != nil:
		return 0, b.Err()
	case y == Value{}:
		return 0, nil
	case !b.own(y):
		return 0, b.foreign(y)
	case !p.holds(y.Type()):
		return 0, fmt.Errorf("the function returns %v, but slices of the pipeline hold %v: %w", y.Type(), p.out, device.ErrUnsupported)
	}
	n, err := y.Shape().Size()
	return int64(n) * int64(y.Type().Size()), err
}

// keptPlans limits the plans that a pipeline keeps: plans for the chunk sizes that it measures, and
// for a few last chunks.
const keptPlans = 12

// plan returns the plan for a number of rows.
func (p *flow) plan(ctx context.Context, rows int) (*chunkPlan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, device.ErrClosed
	}
	if c := p.plans[rows]; c != nil {
		return c, nil
	}
	b := New(p.dev)
	x, y := p.record(b, rows)
	bytes, err := p.result(b, y)
	if err != nil {
		return nil, err
	}
	var outs []Value
	if y != (Value{}) {
		outs = []Value{y}
	}
	c := &chunkPlan{x: x, y: y, out: int(bytes)}
	if c.plan, err = b.Compile(ctx, outs...); err != nil {
		return nil, err
	}
	if len(p.plans) >= keptPlans {
		// A run may still use the plan, so the garbage collector closes it.
		best, _ := p.trials.next()
		for old := range p.plans {
			if old != best.rows {
				delete(p.plans, old)
				break
			}
		}
	}
	p.plans[rows] = c
	return c, nil
}

func (p *flow) close() {
	p.mu.Lock()
	plans := p.plans
	p.plans, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range plans {
		_ = c.plan.Close()
	}
}

// bindings returns the bindings of the plan of a chunk.
func (c *chunk) bindings(p *flow) []Binding {
	bind := []Binding{{v: c.plan.x, data: c.in, typ: p.in, set: true}}
	if c.plan.y != (Value{}) {
		bind = append(bind, Binding{v: c.plan.y, data: c.out, typ: p.out})
	}
	return bind
}

// tooLarge reports whether smaller chunks may succeed after the error err.
func tooLarge(err error) bool {
	return errors.Is(err, device.ErrOutOfMemory) || errors.Is(err, device.ErrLimit)
}
