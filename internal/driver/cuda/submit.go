package cuda

import (
	"context"
	"fmt"
	"time"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ptxgen"
	"github.com/rayo-go/rayo/internal/ptxkernels"
)

// run is one submission, while it is enqueued and until it is done.
type run struct {
	e   *executable
	ext []driver.Binding

	hw       Hardware // hardware for the calls: the device, or a recording
	layout   layout
	recorded bool     // layout belongs to a graph
	bound    []cu.Ptr // see boundTo

	done   Event
	marks  []Event // events with times: the start, and the end of each step
	number int     // number of recorded marks

	addresses []uint64
	arrays    ptxkernels.Arrays // arrays of a step of native kernels
	borrowed  []Memory          // memory in use until the submission is done
	args      []byte
	params    []byte // address of the parameters of a step
}

// layout says where the arrays of a submission are.
type layout struct {
	placed  bool
	host    []cu.Ptr // address of the bound host memory, indexed by external slot
	scratch cu.Ptr
	faults  cu.Ptr
	memory  Memory // the memory that contains all of these
	size    int64  // size of memory

	in, out transferMode // of the operands, and of the results and the records of faults
	slab    slab
	base    int64   // offset of the slab: 0, or inputs if the operands are not in it
	places  []int64 // offset of staged memory, indexed by external slot; -1 if not staged
	inputs  int64   // staged bytes of the operands, which come first
	staged  int64   // staged bytes of all: operands, results, and records of faults
}

// transferMode says how operands on the host reach the device, or results the host.
type transferMode uint8

const (
	nothing transferMode = iota
	// direct: kernels read and write host memory, which is fastest for small arrays that are used
	// once. Operands and results are direct together.
	direct
	// staged: one copy of all operands, and one of all results.
	staged
	// ringed: each array is copied separately. Parts in locked pages are copied directly until the run
	// ends. Other parts are copied in pieces, and the host waits for results.
	ringed
)

const (
	// maxDirect is the maximum number of bytes for which kernels use host memory.
	maxDirect = 16 << 10
	// maxDirectOnce is the limit for programs that read and write each element once: transfers in
	// both directions overlap, while copies run one after the other.
	maxDirectOnce = maxStaged
)

// Submit implements [driver.Executable].
func (e *executable) Submit(ctx context.Context, s *driver.Submission) (driver.Fence, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := e.Check(s.Ext, behind); err != nil {
		return nil, err
	}
	if e.d.closed.Load() || !e.inUse.Enter() {
		return nil, driver.ErrClosed
	}
	t := e.d.order.Take()
	if s.Wait {
		defer e.inUse.Leave()
		return nil, e.perform(ctx, s, t)
	}
	j := driver.NewJob(s)
	go func() { j.End(e.perform(ctx, &j.Submission, t), &e.inUse) }()
	return j, nil
}

// behind returns the number of bytes of an array from an offset on.
func behind(m driver.Memory, off int64) (int64, error) {
	a, ok := m.(*array)
	switch {
	case !ok:
		return 0, driver.ErrForeign
	case off < 0 || a.ptr == 0:
		return -1, nil
	}
	return a.bytes - off, nil
}

// perform runs a submission when its turn comes.
func (e *executable) perform(ctx context.Context, s *driver.Submission, t driver.FIFOTicket) (err error) {
	if err := t.Await(ctx); err != nil {
		return err
	}
	ended := false
	end := func() {
		if !ended {
			ended = true
			t.End()
		}
	}
	defer end()
	defer driver.Recovered(&err)
	r, err := e.d.newRun()
	if err != nil {
		return err
	}
	r.e, r.ext, r.hw = e, s.Ext, e.d.hw
	finished := false
	defer func() {
		if !finished { // the device may still access locked pages
			_ = e.d.hw.Synchronize()
		}
		e.d.endRun(r)
	}()
	k, err := r.graph(s)
	switch {
	case err != nil:
	case k != nil:
		defer e.graphs.done(k)
		err = r.replay(k)
	default:
		err = r.enqueue(ctx, s)
	}
	// Later submissions may enqueue their work after this one. Results through the ring have been read by
	// now, and those in locked pages are complete when the event has occurred.
	recorded := e.d.hw.Record(r.done)
	if err == nil {
		err = recorded
	}
	end()
	waited := r.done.Synchronize()
	finished = recorded == nil && waited == nil
	if err == nil {
		err = waited
	}
	if err != nil {
		return e.d.translateError(err)
	}
	if err := r.finish(); err != nil {
		return err
	}
	if s.Times != nil {
		return e.d.translateError(r.times(s.Times))
	}
	return nil
}

// place decides where all arrays are.
func (r *run) place() error {
	e, l := r.e, &r.layout
	if l.placed {
		return nil
	}
	l.placed = true
	l.places, l.host = l.places[:0], l.host[:0]
	at := int64(0)
	place := func(written bool) {
		for i := range e.Need {
			if r.ext[i].Mem == nil && e.Need[i] > 0 && e.Written[i] == written {
				l.places[i] = at
				at += alignUp(e.Need[i])
			}
		}
	}
	for range e.Need {
		l.places, l.host = append(l.places, -1), append(l.host, 0)
	}
	place(false)
	l.inputs = at
	place(true)
	faults := at
	at += alignUp(int64(len(e.faults) * ptxgen.FaultBytes))
	l.staged = at
	l.in, l.out = transfer(l.inputs), transfer(at-l.inputs)
	if at > 0 && e.direct && (at <= maxDirect || e.single && at <= maxDirectOnce) {
		l.in, l.out = direct, direct
	}
	if err := l.takeSlab(&e.d.stage); err != nil {
		return err
	}
	bytes, base := e.scratch, cu.Ptr(0)
	if l.in != direct {
		bytes += at
	}
	l.size = bytes
	if bytes > 0 {
		m, err := e.d.hw.Alloc(bytes)
		if err != nil {
			return fmt.Errorf("temporary memory: %w", err)
		}
		l.memory, l.scratch = m, m.Ptr()
		base = l.scratch + cu.Ptr(e.scratch)
	}
	if l.in == direct {
		base = l.slab.Ptr()
	}
	for i, off := range l.places {
		if off >= 0 {
			l.host[i] = base + cu.Ptr(off)
		}
	}
	l.faults = base + cu.Ptr(faults)
	return nil
}

// takeSlab takes memory for the arrays that are not copied by themselves.
func (l *layout) takeSlab(s *staging) (err error) {
	from, to := int64(0), l.staged
	if l.in == ringed {
		from = l.inputs
	}
	if l.out == ringed {
		to = l.inputs
	}
	l.base = from
	if from < to {
		l.slab, err = s.take(to - from)
	}
	return err
}

// transfer returns the mode of transfer of n bytes.
func transfer(n int64) transferMode {
	switch {
	case n == 0:
		return nothing
	case n <= maxCopied:
		return staged
	}
	return ringed
}

// address returns the address of an array.
func (r *run) address(p place) cu.Ptr {
	switch p.kind {
	case inScratch:
		return r.layout.scratch + cu.Ptr(p.off)
	case inConstant:
		return r.e.constant.Ptr() + cu.Ptr(p.off)
	}
	s := &r.e.slots[p.slot]
	switch {
	case s.Data != nil:
		if len(s.Data) == 0 {
			return 0
		}
		return r.e.constant.Ptr() + cu.Ptr(r.e.consts[p.slot])
	case s.Ext < 0:
		return r.layout.scratch + cu.Ptr(s.Off)
	}
	if b := &r.ext[s.Ext]; b.Mem != nil {
		return b.Mem.(*array).ptr + cu.Ptr(b.Off)
	}
	return r.layout.host[s.Ext]
}

// enqueue enqueues all work of the submission on the stream.
func (r *run) enqueue(ctx context.Context, s *driver.Submission) error {
	e := r.e
	if err := r.place(); err != nil {
		return err
	}
	if err := r.fill(); err != nil {
		return err
	}
	if err := r.send(); err != nil {
		return err
	}
	if s.Times != nil {
		if err := r.pause(); err != nil {
			return err
		}
		if err := r.mark(); err != nil {
			return err
		}
	}
	next := 0
	for i, st := range e.steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := st.enqueue(r); err != nil {
			return err
		}
		for s.Times != nil && next < len(e.ends) && e.ends[next] == i+1 {
			if err := r.mark(); err != nil {
				return err
			}
			next++
		}
	}
	if err := r.receive(); err != nil {
		return err
	}
	return r.download()
}

// replay is enqueue for a graph.
func (r *run) replay(k *recorded) error {
	if err := r.fill(); err != nil {
		return err
	}
	if err := k.Launch(); err != nil {
		return err
	}
	return r.download()
}

// fill copies operands to memory that the device can access.
func (r *run) fill() error {
	l := &r.layout
	for i, off := range l.places {
		if off < 0 || r.e.Written[i] {
			continue
		}
		from := r.ext[i].Host[:r.e.Need[i]]
		if l.in == ringed {
			if err := r.upload(l.host[i], from); err != nil {
				return err
			}
			continue
		}
		if err := l.slab.Write(off, from); err != nil {
			return err
		}
	}
	return nil
}

// send enqueues the copies of staged operands to the device, and clears the records of faults.
func (r *run) send() error {
	l := &r.layout
	if l.in == staged {
		if err := r.hw.CopyFromHost(l.scratch+cu.Ptr(r.e.scratch), l.slab.HostMemory, 0, l.inputs); err != nil {
			return err
		}
	}
	if n := int64(len(r.e.faults) * ptxgen.FaultBytes); n > 0 {
		return r.hw.Zero(l.faults, n)
	}
	return nil
}

// receive enqueues the copies of staged results to the host.
func (r *run) receive() error {
	l := &r.layout
	if n := l.staged - l.inputs; l.out == staged {
		return r.hw.CopyToHost(l.slab.HostMemory, l.inputs-l.base, l.scratch+cu.Ptr(r.e.scratch+l.inputs), n)
	}
	return nil
}

// download copies results that are not staged to the host.
func (r *run) download() error {
	l := &r.layout
	if l.out != ringed {
		return nil
	}
	for i, off := range l.places {
		if off < 0 || !r.e.Written[i] {
			continue
		}
		if err := r.fetch(r.ext[i].Host[:r.e.Need[i]], l.host[i]); err != nil {
			return err
		}
	}
	if n := len(r.e.faults) * ptxgen.FaultBytes; n > 0 {
		records := make([]byte, n)
		if err := r.hw.Download(records, l.faults); err != nil {
			return err
		}
		return r.fault(records)
	}
	return nil
}

// finish copies results to the memory of the caller after the device has finished.
func (r *run) finish() error {
	l := &r.layout
	if l.out != staged && l.out != direct {
		return nil
	}
	if n := len(r.e.faults) * ptxgen.FaultBytes; n > 0 {
		if err := r.fault(l.slab.Bytes()[l.staged-l.base-alignUp(int64(n)):][:n]); err != nil {
			return err
		}
	}
	for i, off := range l.places {
		if off >= 0 && r.e.Written[i] {
			if err := l.slab.Read(r.ext[i].Host[:r.e.Need[i]], off-l.base); err != nil {
				return err
			}
		}
	}
	return nil
}

// fault returns the error of the first kernel that caused a fault.
func (r *run) fault(records []byte) error {
	for i, k := range r.e.faults {
		if f, ok := ptxgen.FaultOf(records[i*ptxgen.FaultBytes:]); ok {
			return faultError(k, f)
		}
	}
	return nil
}

// mark records an event with the current time of the device.
func (r *run) mark() error {
	if r.number == len(r.marks) {
		ev, err := r.hw.NewEvent(true)
		if err != nil {
			return err
		}
		r.marks = append(r.marks, ev)
	}
	r.number++
	return r.hw.Record(r.marks[r.number-1])
}

// times reads the recorded times.
func (r *run) times(t *driver.Times) error {
	last := time.Duration(0)
	for i := 1; i < r.number; i++ {
		at, err := r.hw.Elapsed(r.marks[0], r.marks[i])
		if err != nil {
			return err
		}
		if i-1 < len(t.Steps) {
			t.Steps[i-1] = driver.Span{Start: last, End: at}
		}
		last = at
	}
	t.Total = driver.Span{End: last}
	return nil
}

// maxIdleRuns limits the runs that are kept for later submissions.
const maxIdleRuns = 64

// newRun returns an unused run with an event.
func (d *gpuDevice) newRun() (*run, error) {
	d.runsMu.Lock()
	if n := len(d.runs); n > 0 {
		r := d.runs[n-1]
		d.runs = d.runs[:n-1]
		d.runsMu.Unlock()
		return r, nil
	}
	d.runsMu.Unlock()
	ev, err := d.hw.NewEvent(false)
	if err != nil {
		return nil, d.translateError(err)
	}
	return &run{done: ev}, nil
}

// endRun frees the resources of a run that the device has finished.
func (d *gpuDevice) endRun(r *run) {
	for _, m := range r.borrowed {
		_ = m.Free()
	}
	r.borrowed = r.borrowed[:0]
	if r.recorded {
		r.layout, r.recorded = layout{}, false
	}
	d.freeLayout(&r.layout)
	r.e, r.ext, r.hw, r.number = nil, nil, nil, 0
	for _, m := range r.marks {
		_ = m.Close()
	}
	r.marks = nil
	d.runsMu.Lock()
	defer d.runsMu.Unlock()
	if len(d.runs) < maxIdleRuns {
		d.runs = append(d.runs, r)
		return
	}
	_ = r.done.Close()
}

// freeLayout frees the memory of a submission.
func (d *gpuDevice) freeLayout(l *layout) {
	if l.memory != nil {
		_ = l.memory.Free()
	}
	if l.slab.HostMemory != nil {
		d.stage.give(l.slab)
	}
	l.memory, l.slab, l.placed = nil, slab{}, false
}

// freeRuns frees the events of unused runs.
func (d *gpuDevice) freeRuns() {
	d.runsMu.Lock()
	defer d.runsMu.Unlock()
	for _, r := range d.runs {
		_ = r.done.Close()
	}
	d.runs = nil
}
