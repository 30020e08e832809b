package cpu

import (
	"cmp"
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// prepareStep prepares s for e.
func (d *processor) prepareStep(s *driver.Step, e *executable) (step, error) {
	if err := s.Valid(); err != nil {
		return nil, err
	}
	if s.Kernel != nil {
		return d.prepareLaunch(s, e)
	}
	if s.Op == nil {
		return d.prepareMap(s)
	}
	o, err := d.prepareOp(s, e)
	if err != nil {
		return nil, err
	}
	c := o.newCore()
	switch {
	case c == nil:
		p, err := o.portable()
		if err == nil {
			return o.plain(func() core { return p }), nil
		}
		if d.portable && portable.Has(o.op) && !driver.Factors(o.op) {
			return nil, err
		}
		r, in, out, err := o.request()
		if err != nil {
			return nil, err
		}
		return o.plain(func() core { return &referenceCore{r, in, out} }), nil
	}
	if c, ok := c.(stepper); ok {
		if s, err := c.step(o); s != nil || err != nil {
			return s, err
		}
	}
	if err := c.configure(o.op, &o.attrs, o.dims); err != nil {
		return nil, err
	}
	if c, ok := c.(scratcher); ok {
		o.scratch = o.e.reserve(c.scratch())
	}
	return o.plain(func() core {
		c := o.newCore()
		_ = c.configure(o.op, &o.attrs, o.dims) // it succeeded before
		return c
	}), nil
}

// opStep is a step of an operation that is not elementwise. The operation reads arrays of float32,
// of 32-bit integers, or of blocks if it supports them: see typed. A program converts other
// operands; it includes the prologue. Likewise, a program converts results to their type in memory;
// it includes the epilogue.
//
// A plainStep computes all these arrays in the arena. Operations with a faster way have their own
// steps: see stepper.
type opStep struct {
	d     *processor
	op    *op.Operation
	attrs op.Attrs
	dims  []op.Shape
	in    []arrayOperand
	out   []arrayOperand // results of the operation
	e     *executable
	bytes int // size of an element, if the operation moves elements without conversion: see mover

	scratch int // offset in the arena of the scratch memory for the core of a plainStep, if it needs any
}

// An arrayOperand is an operand or result of an operation.
type arrayOperand struct {
	absent bool
	slot   int      // slot of the array, if p is nil
	p      *program // the program that computes the operand from memory, or that stores the result to memory
	typ    op.DType // type of the array: F32, I32, U32, Bool or quantised
	n      int
	temp   int        // offset in the arena, if p is not nil
	layout *op.Layout // layout of the array, or nil if it is contiguous: see reader
	memory int        // number of elements in memory for the layout
	half   op.DType   // 16-bit type that the operation reads directly
	unread bool       // the result is not used
}

// moves reports whether s moves elements without converting them: see mover.
func (d *processor) moves(s *driver.Step) bool {
	_, is := d.newCore(s.Op).(mover)
	return is && s.Pre == nil && s.Post == nil && (s.Op != op.Scatter || op.ScatterReduceOf(&s.Attrs) == op.ScatterSet)
}

// readsHalves reports whether s reads the 16-bit operand i without conversion. Attention does so
// for keys and values, which may be a large cache, and the product of experts for weights, because
// it reads only a few of them.
func (d *processor) readsHalves(s *driver.Step, i int) bool {
	large := s.Op == op.Attention && (i == op.AttentionK || i == op.AttentionV) || s.Op == op.MatMulExperts && i == 1
	return large && s.In[i].Type.Size() == 2 && s.Pre == nil && !d.portable
}

// prepareOp builds the programs of s.
func (d *processor) prepareOp(s *driver.Step, e *executable) (*opStep, error) {
	o := &opStep{d: d, op: s.Op, attrs: s.Attrs, dims: s.Dims, e: e}
	moves := d.moves(s)
	if moves {
		o.bytes = s.In[0].Type.Size()
	}
	types := make([]op.DType, len(s.In))
	for i := range s.In {
		a, err := d.prepareOperand(s, i, moves)
		if err != nil {
			return nil, err
		}
		if !a.absent {
			types[i] = s.In[i].Type
		}
		o.in = append(o.in, a)
	}
	made, err := s.Op.Types(&s.Attrs, types)
	if err != nil {
		return nil, err
	}
	results := s.Op.Results()
	s, o.attrs = activated(s, made)
	for i := range results {
		a, err := d.prepareResult(s, i, made[i], moves)
		if err != nil {
			return nil, err
		}
		o.out = append(o.out, a)
	}
	return o, nil
}

// prepareOperand builds the program that reads operand i of s.
func (d *processor) prepareOperand(s *driver.Step, i int, moves bool) (arrayOperand, error) {
	in := &s.In[i]
	var pre *driver.Fused
	if s.Pre != nil {
		pre = s.Pre[i]
	}
	a := arrayOperand{slot: in.Slot, typ: register(in.Type)}
	if in.Slot < 0 && pre == nil {
		a.absent = true
		return a, nil
	}
	n, err := s.Dims[i].Size()
	if err != nil {
		return a, err
	}
	a.n = n
	if d.countsBytes(s) {
		a.slot, a.typ = pre.In[0].Slot, op.U8
		return a, nil
	}
	if pre == nil && d.readsHalves(s, i) {
		a.half = in.Type
	}
	if pre == nil && in.Type.Size() != 4 && !in.Type.Quantized() && !moves && a.half == op.InvalidType {
		pre = &driver.Fused{In: []driver.Operand{{Slot: in.Slot, Type: in.Type, N: in.N, Broadcast: in.Broadcast, Layout: in.Layout}}, Out: []int{0}, Shape: s.Dims[i]}
	}
	if pre == nil {
		a.layout, a.memory = in.Layout, in.N
		return a, nil
	}
	if s.Op.Class() == op.Reduction && s.Attrs.I[0] == op.AlongRows && n > 0 && !d.portable {
		if f, l := columnOrder(pre, s.Dims[i]); f != nil && d.Reads(s.Op, i, s.Dims[i], l) {
			pre, a.layout, a.memory = f, l, n
		}
	}
	if a.layout != nil && foldsByteColumns(s.Op) && truthOfBytes(pre) {
		a.slot, a.typ = pre.In[0].Slot, op.U8
		return a, nil
	}
	a.p, err = d.fuse(pre, []driver.Operand{{Slot: -1, Type: a.typ, N: n}})
	return a, err
}

// prepareResult builds the program that writes result i of s, which has type t.
func (d *processor) prepareResult(s *driver.Step, i int, t op.DType, moves bool) (arrayOperand, error) {
	shape := s.Dims[len(s.In)+i]
	n, err := shape.Size()
	if err != nil {
		return arrayOperand{}, err
	}
	a := arrayOperand{slot: -1, typ: register(t), n: n, unread: i < len(s.Out) && s.Out[i].Unwanted}
	switch {
	case s.Post != nil && i > 0:
		return a, fmt.Errorf("epilogue of an operation with %d results: %w", s.Op.Results(), driver.ErrUnsupported)
	case s.Post != nil:
		a.p, err = d.fuse(s.Post, s.Out)
	case i >= len(s.Out):
		return a, fmt.Errorf("%d outputs of %d: %w", len(s.Out), s.Op.Results(), driver.ErrShape)
	case s.Out[i].Type.Size() != 4 && !moves:
		// Convert in the order of the memory.
		y := s.Out[i]
		a.layout, a.memory = y.Layout, y.N
		y.Broadcast, y.Layout = op.Full, nil
		a.p, err = d.fuse(identity(a.typ, shape, n), []driver.Operand{y})
	default:
		a.slot, a.layout, a.memory = s.Out[i].Slot, s.Out[i].Layout, s.Out[i].N
	}
	return a, err
}

// identity returns the program that stores an operation's result unchanged.
func identity(t op.DType, s op.Shape, n int) *driver.Fused {
	return &driver.Fused{In: []driver.Operand{{Slot: -1, Type: t, N: n}}, Out: []int{0}, Shape: s}
}

// activated returns s with its activation, if it has one, moved to the beginning of the epilogue,
// and the remaining parameters. A built-in activation without an epilogue stays, because it has a
// kernel that needs no program.
func activated(s *driver.Step, made []op.DType) (*driver.Step, op.Attrs) {
	act, attrs := s.Attrs.Activation()
	if act == nil || s.Post == nil && activation(act) != nil && made[0].Size() == 4 {
		return s, s.Attrs
	}
	t := *s
	t.Attrs.Act, t.Attrs.ActF = nil, [2]uint32{}
	post := s.Post
	if post == nil {
		d := s.Dims[len(s.In)]
		post = identity(made[0], d, size(d))
	}
	// The activation reads the unrounded result, and its own result is rounded.
	in := append([]driver.Operand(nil), post.In...)
	in[0].Type = register(in[0].Type)
	t.Post = &driver.Fused{In: in, Shape: post.Shape,
		Body: []driver.Instr{{Op: act, Attrs: attrs, Args: []int{0}, Type: made[0]}}}
	// The result of the operation is now the result of the first instruction.
	n := len(post.In)
	moved := func(vs []int) []int {
		m := make([]int, len(vs))
		for i, v := range vs {
			switch {
			case v == 0:
				m[i] = n
			case v >= n:
				m[i] = v + 1
			default:
				m[i] = v
			}
		}
		return m
	}
	for _, b := range post.Body {
		b.Args = moved(b.Args)
		t.Post.Body = append(t.Post.Body, b)
	}
	t.Post.Out = moved(post.Out)
	return &t, t.Attrs
}

// activation returns the kernel of a built-in operation with one float32 operand, or nil.
func activation(o *op.Operation) kernel {
	if o.ID() < 0 {
		return nil
	}
	return kernelNamed(o.Name())
}

// reserve allocates an operand or result in the arena.
func (o *opStep) reserve(a *arrayOperand) {
	if a.p != nil {
		a.temp = o.e.reserve(a.n * 4)
	}
}

// core computes an operation over arrays in memory. Absent arrays are nil.
type core interface {
	// configure sets everything but the memory. Shapes have been checked.
	configure(o *op.Operation, a *op.Attrs, dims []op.Shape) error
	compute(ctx context.Context, in, out []unsafe.Pointer) error
}

// typed is a core that takes operands of more than one type.
type typed interface {
	core
	// operands sets the types of the operands. It is called before configure.
	operands(types []op.DType)
}

// reader is a core that reads operands in layouts.
type reader interface {
	core
	// layouts sets the layout of each operand, nil for contiguous ones. It is called before
	// configure.
	layouts(ls []*op.Layout)
}

// mover is a core that moves elements of any size, so they need not be converted to 32 bits.
type mover interface {
	core
	// elements sets the size of an element in bytes. It is called before configure.
	elements(size int)
}

// stepper is a core with its own kind of step.
type stepper interface {
	core
	// step returns the step, or nil for a [plainStep].
	step(o *opStep) (step, error)
}

// chooser is a core that other cores replace for some types, layouts and shapes.
type chooser interface {
	core
	// choose returns the core for the operands of o, or nil for this one.
	choose(o *opStep) core
}

// fed is a core that reads its only operand block by block from the program that computes it.
type fed interface {
	core
	// source sets this program, and the places of its streams.
	source(p *program, at []place)
}

// newCore returns a new core for the step, not yet configured, or nil.
func (o *opStep) newCore() core {
	c := o.d.newCore(o.op)
	for w, ok := c.(chooser); ok; w, ok = c.(chooser) {
		other := w.choose(o)
		if other == nil {
			break
		}
		c = other
	}
	if t, ok := c.(typed); ok {
		types := make([]op.DType, len(o.in))
		for i := range types {
			types[i] = o.in[i].typ
		}
		t.operands(types)
	}
	if r, ok := c.(reader); ok {
		layouts := make([]*op.Layout, len(o.in))
		for i := range layouts {
			layouts[i] = o.in[i].layout
		}
		r.layouts(layouts)
	}
	if w, ok := c.(*sortTask); ok {
		w.valuesOnly = o.out[1].unread
	}
	if w, ok := c.(*attentionTask); ok {
		w.to, w.half = o.out[0].layout, o.in[op.AttentionK].half
	}
	if w, ok := c.(*expertsTask); ok {
		w.weights = formatOf(&o.in[1])
	}
	if m, ok := c.(mover); ok {
		m.elements(cmp.Or(o.bytes, 4))
	}
	return c
}

// plainStep is a step whose operands and results are arrays in the arena or in memory.
type plainStep struct {
	*opStep
	core func() core // returns a new core for a frame
}

// plainRunner is the runner of a plainStep.
type plainRunner struct {
	s         plainStep
	core      core
	in, out   []unsafe.Pointer
	pre, post []*mapTask
	feed      *mapTask // binds the streams of a fed core
}

func (o *opStep) plain(c func() core) step {
	if _, ok := c().(fed); !ok {
		for i := range o.in {
			o.reserve(&o.in[i])
		}
	}
	for i := range o.out {
		o.reserve(&o.out[i])
	}
	return plainStep{o, c}
}

func (s plainStep) runner(f *frame) runner {
	r := &plainRunner{s: s, core: s.core(), in: make([]unsafe.Pointer, len(s.in)), out: make([]unsafe.Pointer, len(s.out))}
	r.pre, r.post = tasksOf(f, s.in), tasksOf(f, s.out)
	if c, ok := r.core.(fed); ok && r.pre[0] != nil {
		r.feed = r.pre[0]
		c.source(r.feed.p, r.feed.at)
	}
	return r
}

// tasksOf returns a task for each array in as with a program, and nil for the others.
func tasksOf(f *frame, as []arrayOperand) []*mapTask {
	ts := make([]*mapTask, len(as))
	for i := range as {
		if p := as[i].p; p != nil {
			ts[i] = &mapTask{d: f.d, p: p, n: p.n, at: make([]place, len(p.streams))}
		}
	}
	return ts
}

// materialize sets at to the arrays of as, and computes those with programs.
func (f *frame) materialize(ctx context.Context, as []arrayOperand, ts []*mapTask, at []unsafe.Pointer) error {
	for i, t := range ts {
		a := &as[i]
		switch {
		case a.absent:
		case t == nil:
			at[i] = f.base[a.slot]
		default:
			at[i] = unsafe.Add(f.temp, a.temp)
			t.bind(f)
			t.at[t.p.inputs].base = at[i]
			if err := t.run(ctx, &f.lane); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *plainRunner) run(ctx context.Context, f *frame) error {
	if r.feed != nil {
		r.feed.bind(f)
	} else if err := f.materialize(ctx, r.s.in, r.pre, r.in); err != nil {
		return err
	}
	for i, t := range r.post {
		a := &r.s.out[i]
		if t == nil {
			r.out[i] = f.base[a.slot]
		} else {
			r.out[i] = unsafe.Add(f.temp, a.temp)
		}
	}
	if c, ok := r.core.(scratcher); ok {
		c.place(unsafe.Add(f.temp, r.s.scratch))
	}
	if err := r.core.compute(ctx, r.in, r.out); err != nil {
		return err
	}
	for i, t := range r.post {
		if t != nil {
			t.bind(f)
			t.at[0].base = r.out[i]
			if err := t.run(ctx, &f.lane); err != nil {
				return err
			}
		}
	}
	return nil
}

// newCore returns the implementation of operation o on this device, or nil if only the portable
// library or the reference computes it.
func (d *processor) newCore(o *op.Operation) core {
	if d.portable && portable.Has(o) {
		return nil
	}
	if c := cores[o]; c != nil {
		return c(d)
	}
	return nil
}
