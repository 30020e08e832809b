package engine

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/incomparable"
	"github.com/rayo-go/rayo/op"
)

// Plan is a compiled graph, which can run many times. It is safe for concurrent use.
type Plan struct {
	eng  *Engine
	exec *executable
	lowered
	outputs int // number of outputs of the graph
	refs    int // number of references of the graph: inputs and buffers
	stores  bool
	silent  bool      // Stats does not count its runs
	jobs    sync.Pool // of *job
}

// Ref is the binding of a graph's reference in one run: host memory for an input, a buffer for a
// resident.
type Ref struct {
	Host []byte
	Buf  *Buffer
}

// Compile returns a plan of g, whose shapes and types must be valid. It reuses the plan of an equal
// graph; such a plan is shared and never closed.
func (e *Engine) Compile(ctx context.Context, g *graph.Graph) (*Plan, error) {
	return e.compile(ctx, func() (*Plan, error) {
		hash := g.Hash()
		if p := e.plans.get(hash, g); p != nil {
			e.hits.Add(1)
			return p, nil
		}
		g := g.Clone()
		p, err := e.build(ctx, g)
		if err != nil {
			return nil, err
		}
		return e.plans.put(hash, g, p), nil
	})
}

// CompileOwn returns a plan that is not shared. The caller must close it.
func (e *Engine) CompileOwn(ctx context.Context, g *graph.Graph) (*Plan, error) {
	return e.compile(ctx, func() (*Plan, error) { return e.build(ctx, g.Clone()) })
}

func (e *Engine) compile(ctx context.Context, plan func() (*Plan, error)) (p *Plan, err error) {
	defer guard(&err)
	if err := driver.Alive(ctx); err != nil {
		return nil, err
	}
	if !e.enter() {
		return nil, e.Err()
	}
	defer e.exit()
	return plan()
}

// Close waits for running runs and frees the device resources of a plan of CompileOwn: temporary
// memory and kernels. Later runs return ErrClosed. It may be called more than once and at any time.
// If it is not called, the garbage collector frees the resources some time after the last reference
// is gone.
func (p *Plan) Close() { p.exec.end() }

// planning has what graphs need that are more than one elementwise operation, after [UsePlanner] or [UsePasses].
var planning struct {
	passes func() []graph.Pass
	lower  func(e *Engine, g *graph.Graph) (*lowered, error)
}

// UsePlanner links the planning of graphs of several nodes. In pages package device calls it before it makes one.
func UsePlanner() {
	planning.lower = (*Engine).lower
	if planning.passes == nil {
		planning.passes = func() []graph.Pass { return []graph.Pass{graph.Snapshot} }
	}
}

// UsePasses also links the passes. Snapshot is the only pass that changes graphs of one operation or launch. In pages
// package batch calls UsePasses; other programs call it before main begins.
func UsePasses() {
	UsePlanner()
	planning.passes = graph.Passes
}

func (e *Engine) build(ctx context.Context, g *graph.Graph) (*Plan, error) {
	if err := e.MayWait(); err != nil {
		return nil, err
	}
	simple := g
	if planning.passes != nil {
		var err error
		if simple, err = graph.Apply(g, planning.passes()...); err != nil {
			return nil, err
		}
	}
	if err := e.testFunctions(ctx, simple); err != nil {
		return nil, err
	}
	for i := range simple.Nodes {
		if n := &simple.Nodes[i]; n.Kind == graph.Compute {
			if err := e.selfTestNode(ctx, simple, n); err != nil {
				return nil, err
			}
		}
	}
	p, err := e.plan(ctx, g, simple)
	if err == nil {
		e.compiles.Add(1)
	}
	return p, err
}

// plan makes the plan of g. simple is g after [graph.Passes], or g itself.
func (e *Engine) plan(ctx context.Context, g, simple *graph.Graph) (*Plan, error) {
	lower := planning.lower
	if lower == nil {
		lower = (*Engine).lowerOne
	}
	l, err := lower(e, simple)
	if err != nil {
		return nil, err
	}
	if err := within(l.prog, e.lim); err != nil {
		return nil, err
	}
	if l.prog.Arena > e.lim.MaxBuffer {
		return nil, fmt.Errorf("temporaries of %d bytes: at most %d are supported: %w", l.prog.Arena, e.lim.MaxBuffer, driver.ErrLimit)
	}
	p := &Plan{eng: e, lowered: *l, outputs: len(g.Outputs)}
	for i := range g.Nodes {
		switch n := &g.Nodes[i]; n.Kind {
		case graph.Store:
			p.stores = true
			fallthrough
		case graph.Input, graph.Resident:
			p.refs = max(p.refs, int(n.Ref)+1)
		}
	}
	x, err := e.dev.Prepare(ctx, p.prog)
	if err != nil {
		return nil, e.checkLost(err)
	}
	p.exec = e.own(x)
	// The cache evicts plans and users drop them: the device's resources of a plan are freed after
	// its last reference, or with the engine.
	runtime.AddCleanup(p, (*executable).end, p.exec)
	return p, nil
}

// lower fuses the nodes of g and converts it to a program.
func (e *Engine) lower(g *graph.Graph) (*lowered, error) {
	prologue := func(o *op.Operation) bool { return e.dev.Fuses(o, driver.Prologue) }
	opt, err := graph.Apply(g, graph.Columns(prologue), graph.Views(e.reads))
	if err != nil {
		return nil, err
	}
	groups := graph.Fuse(opt, prologue,
		func(o *op.Operation) bool { return !inPlace(o) && e.dev.Fuses(o, driver.Epilogue) }, e.lim.MaxBindings)
	return lower(opt, groups, e.lim, e.writes)
}

// reads reports whether the device can read an operand in a layout: see [driver.Strided]. The first operand of an operation
// that works in place may have any layout, because the engine copies it to the result.
func (e *Engine) reads(o *op.Operation, at int, s op.Shape, l *op.Layout) bool {
	if inPlace(o) && at == 0 {
		return true
	}
	d, ok := e.dev.(driver.Strided)
	if !ok {
		return o.Class() == op.Elementwise
	}
	return d.Reads(o, at, s, l)
}

// Columns reports whether the device applies a row operation to columns: to the middle axis of arrays of float32 of shape [outer cols inner],
// without moving the elements.
func (e *Engine) Columns(o *op.Operation, outer, cols, inner int) bool {
	swap, _ := op.PermuteTo(0, 2, 1) // the axes are valid
	seen, made := op.Shape{outer, cols, inner}, op.Shape{outer, inner, cols}
	l, ok := op.Permute.Layout(&swap, op.RowMajor(outer*cols*inner), seen, made, op.F32)
	d, is := e.dev.(driver.Strided)
	return ok && is && d.Reads(o, 0, made, &l) && d.Writes(o, made, op.F32, &l)
}

// writes reports whether the device can write a result in a layout.
func (e *Engine) writes(o *op.Operation, s op.Shape, t op.DType, l *op.Layout) bool {
	d, ok := e.dev.(driver.Strided)
	return ok && d.Writes(o, s, t, l)
}

// within checks a program against the limits of a device.
func within(p *driver.Program, lim driver.Limits) error {
	most := lim.MaxBuffer
	if lim.MaxBinding > 0 {
		most = min(most, lim.MaxBinding)
	}
	for i := range p.Slots {
		if s := &p.Slots[i]; s.Bytes > most {
			return fmt.Errorf("array %v of %d bytes: at most %d are supported: %w", s.Shape, s.Bytes, most, driver.ErrLimit)
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		slots := make(map[int]bool)
		eachOperand(s, func(o *driver.Operand) { slots[o.Slot] = true })
		for _, o := range s.Out {
			slots[o.Slot] = true
		}
		if lim.MaxBindings > 0 && len(slots) > lim.MaxBindings {
			return fmt.Errorf("%s uses %d arrays: at most %d are supported: %w", s.Name(), len(slots), lim.MaxBindings, driver.ErrLimit)
		}
	}
	return nil
}

// executable is a driver.Executable that is closed once.
type executable struct {
	_ incomparable.Type

	driver.Executable
	eng  *Engine
	once sync.Once
}

func (e *Engine) own(x driver.Executable) *executable {
	k := &executable{Executable: x, eng: e}
	e.mu.Lock()
	e.execs[k] = struct{}{}
	e.mu.Unlock()
	return k
}

func (k *executable) end() {
	k.once.Do(func() {
		// In this order, because Engine.Close must find and wait for every open plan.
		k.Close()
		k.eng.mu.Lock()
		delete(k.eng.execs, k)
		k.eng.mu.Unlock()
	})
}

// job is one run of a plan.
type job struct {
	plan *Plan
	sub  driver.Submission
	ext  []driver.Binding
	bufs []*Buffer
	late []lateCopy
	pend *driver.Completion
	done func(error) // the method value job.complete, which is allocated once
}

// lateCopy is a result that is copied to its destination after the run, because the run also reads
// the destination.
type lateCopy struct{ dst, src []byte }

func (p *Plan) job() *job {
	if j, ok := p.jobs.Get().(*job); ok {
		return j
	}
	j := &job{plan: p, ext: make([]driver.Binding, len(p.ext))}
	j.done = j.complete
	return j
}

// bind checks the caller's arguments and fills the bindings.
func (j *job) bind(refs []Ref, outs [][]byte) error {
	p := j.plan
	if len(refs) < p.refs || len(outs) != p.outputs {
		return fmt.Errorf("a plan with %d references and %d outputs was run with %d and %d: %w", p.refs, p.outputs, len(refs), len(outs), driver.ErrShape)
	}
	for i := range p.ext {
		x := &p.ext[i]
		switch x.kind {
		case extInput:
			h := refs[x.ref].Host
			if int64(len(h)) != x.bytes {
				return fmt.Errorf("an input of %d bytes was bound to %d bytes: %w", x.bytes, len(h), driver.ErrShape)
			}
			j.ext[i] = driver.Binding{Host: h}
		case extResident:
			b := refs[x.ref].Buf
			switch {
			case b == nil:
				return fmt.Errorf("no buffer bound: %w", driver.ErrForeign)
			case b.eng != p.eng:
				return p.eng.Foreign("buffer", b.eng)
			case x.off+x.bytes > b.bytes:
				return fmt.Errorf("%d bytes from byte %d on of a buffer of %d bytes: %w", x.bytes, x.off, b.bytes, driver.ErrShape)
			case !b.retain():
				return fmt.Errorf("buffer: %w", driver.ErrClosed)
			}
			j.bufs = append(j.bufs, b)
			j.ext[i] = driver.Binding{Mem: b.mem, Off: x.off}
		case extResult:
			h := outs[x.out]
			if int64(len(h)) != x.bytes {
				return fmt.Errorf("output %d of %d bytes was bound to %d bytes: %w", x.out, x.bytes, len(h), driver.ErrShape)
			}
			j.ext[i] = driver.Binding{Host: h}
		}
	}
	// If a result overlaps an input, it must be copied late, because the run may read the input
	// after it has written the first results.
	for i := range p.ext {
		if p.ext[i].kind != extResult {
			continue
		}
		for k := range p.ext {
			if k != i && p.ext[k].kind != extResident && Overlap(j.ext[i].Host, j.ext[k].Host) {
				h := j.ext[i].Host
				src := make([]byte, len(h)+8)
				src = src[(8-int(uintptr(unsafe.Pointer(&src[0]))&7))&7:][:len(h)]
				j.late = append(j.late, lateCopy{h, src})
				j.ext[i].Host = src
				break
			}
		}
	}
	return nil
}

// Overlap reports whether two byte slices share memory.
func Overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	a0, b0 := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return a0 < b0+uintptr(len(b)) && b0 < a0+uintptr(len(a))
}

// free returns the job to the pool, without references to the caller's memory.
func (j *job) free() {
	for i, b := range j.bufs {
		b.release()
		j.bufs[i] = nil
	}
	j.bufs = j.bufs[:0]
	clear(j.ext)
	clear(j.late)
	j.late = j.late[:0]
	j.pend = nil
	j.sub = driver.Submission{}
	j.plan.jobs.Put(j)
}

// settle copies late results to their destinations.
func (j *job) settle() {
	for _, c := range j.late {
		copy(c.dst, c.src)
	}
}

// Run runs the plan and waits: refs by reference number, outs by output. times, if not nil,
// receives the device times of the steps.
func (p *Plan) Run(ctx context.Context, refs []Ref, outs [][]byte, times *driver.Times) error {
	if err := p.eng.alive(ctx); err != nil {
		return err
	}
	if !p.eng.enter() {
		return p.eng.Err()
	}
	j := p.job()
	err := j.bind(refs, outs)
	if err == nil {
		p.count()
		j.sub = driver.Submission{Ext: j.ext, Wait: true, Times: times}
		var f driver.Fence
		if f, err = p.exec.Submit(ctx, &j.sub); err == nil && f != nil {
			err = f.Wait(ctx)
			if err != nil && ctx.Err() != nil {
				// The submission still uses the caller's memory, so wait until it is done.
				<-f.Done()
			}
		}
		if err == nil {
			j.settle()
		}
	}
	j.free()
	p.eng.exit()
	return p.eng.checkLost(err)
}

// Start runs the plan without waiting. The caller may reuse refs and outs at once, but the memory
// that they refer to only after completion.
func (p *Plan) Start(ctx context.Context, refs []Ref, outs [][]byte) *driver.Completion {
	if err := driver.Alive(ctx); err != nil {
		return driver.Completed(err)
	}
	if !p.eng.enter() {
		return driver.Completed(p.eng.Err())
	}
	j := p.job()
	err := j.bind(refs, outs)
	if err == nil {
		p.count()
		pend := driver.NewCompletion()
		if p.eng.imm == nil {
			pend.MayWait = p.eng.MayWait
		}
		j.pend = pend
		j.sub = driver.Submission{Ext: j.ext, Complete: j.done}
		if _, err = p.exec.Submit(ctx, &j.sub); err == nil {
			return pend
		}
	}
	j.free()
	p.eng.exit()
	return driver.Completed(p.eng.checkLost(err))
}

// complete is called by the driver when an asynchronous run is over.
func (j *job) complete(err error) {
	if err == nil {
		j.settle()
	}
	pend, eng := j.pend, j.plan.eng
	j.free()
	pend.Complete(eng.checkLost(err))
	eng.exit()
}

func (p *Plan) count() {
	if p.silent {
		return
	}
	p.eng.submissions.Add(1)
	p.eng.steps.Add(int64(len(p.prog.Steps)))
}

// Program returns the program, for listings and profiles. Do not change it.
func (p *Plan) Program() *driver.Program { return p.prog }

// Engine returns the engine that made the plan.
func (p *Plan) Engine() *Engine { return p.eng }

// Listing lists the steps with their fused expressions and slots, and the memory that the plan
// saves.
func (p *Plan) Listing() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan for %s: %d steps, %d slots, temporaries %d bytes", p.eng.name, len(p.prog.Steps), len(p.prog.Slots), p.prog.Arena)
	if p.unshared > p.prog.Arena {
		fmt.Fprintf(&b, " (%d saved by reuse)", p.unshared-p.prog.Arena)
	}
	b.WriteByte('\n')
	rows := make([][4]string, len(p.prog.Steps))
	var notes []string // what follows the columns
	var widths [4]int
	for i := range p.prog.Steps {
		s := &p.prog.Steps[i]
		var in, out []string
		eachOperand(s, func(o *driver.Operand) { in = append(in, p.slotName(o.Slot)) })
		for _, o := range s.Out {
			out = append(out, p.slotName(o.Slot))
		}
		name := s.Name()
		if name == "" {
			name = "copy"
		}
		rows[i] = [4]string{strconv.Itoa(i), name, strings.Join(out, " "), "<- " + strings.Join(in, " ")}
		for j, text := range rows[i] {
			widths[j] = max(widths[j], utf8.RuneCountInString(text))
		}
		note := ""
		for j, f := range s.Pre {
			if f != nil {
				note += fmt.Sprintf("operand %d: %s ", j, f.Formulas())
			}
		}
		if s.Post != nil && len(s.Post.Body) > 0 {
			note += s.Post.Formulas()
		}
		notes = append(notes, note)
	}
	for i, row := range rows {
		for j, text := range row {
			b.WriteString(text + strings.Repeat(" ", widths[j]+2-utf8.RuneCountInString(text)))
		}
		b.WriteString(notes[i] + "\n")
	}
	return b.String()
}

// slotName writes a slot as kind, number, type and shape: in0:f32[4 4].
func (p *Plan) slotName(i int) string {
	s := &p.prog.Slots[i]
	kind := fmt.Sprintf("tmp@%d", s.Off)
	switch {
	case s.Data != nil:
		kind = "const"
	case s.Ext >= 0:
		x := &p.ext[s.Ext]
		switch x.kind {
		case extInput:
			kind = fmt.Sprintf("in%d", x.ref)
		case extResident:
			kind = fmt.Sprintf("buf%d+%d", x.ref, x.off)
		case extResult:
			kind = fmt.Sprintf("out%d", x.out)
		}
	}
	return fmt.Sprintf("%s:%v%v", kind, s.Type, s.Shape)
}
