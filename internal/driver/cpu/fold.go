package cpu

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// A foldTask reduces the middle axis of an array [outer cols inner] by a fold of package op, whose
// expressions run as programs over blocks: a state with many lanes consumes the rows of the array
// one after the other, with adjacent columns in adjacent lanes. Several short rows are processed at
// once, and their states are merged at the end. The division of the elements does not depend on the
// number of threads, so the results do not either.
type foldTask struct {
	d                  *processor
	typ                op.DType
	layout             *op.Layout
	f                  *ir.Reducer
	programs           *foldPrograms
	outer, cols, inner int
	whole              int // number of elements of the operand

	x, dst, scratch unsafe.Pointer
	parts, chunks   int // number of parts of the middle axis, and of chunks of the last axis
	part, chunk     int // their length
	group           int // number of short arrays that are processed at once; 0 for none
	merging         bool
	indexed         bool // the fold uses the indices of elements
	direct          bool // a state is a single element and there are few rows, so they are merged in the result
	count           float32
	ctx             context.Context
	stopped         atomic.Bool
}

const (
	// foldLanes is the number of elements in the states of a chunk.
	foldLanes = 4096
	// foldRows is the number of lanes to which shorter rows are joined.
	foldRows = 1024
	// foldCall is the number of lanes for which a call is efficient. Rows are joined to more lanes
	// only if at least four steps remain, because merging joined rows needs calls.
	foldCall = 64
	// foldSteps is the maximum number of steps in a part, because the error grows with the steps.
	foldSteps = 256
	// foldShort is the maximum number of elements in an array [cols inner] that is transposed and
	// processed together with others.
	foldShort = 256
)

// foldPrograms has the programs of the expressions of a fold.
type foldPrograms struct {
	lift, step, merge, finish *program
}

// operands implements typed.
func (t *foldTask) operands(types []op.DType) { t.typ = types[0] }

// layouts implements reader.
func (t *foldTask) layouts(ls []*op.Layout) { t.layout = ls[0] }

// choose implements [chooser].
func (t *foldTask) choose(o *opStep) core {
	if o.reducesWords() {
		return &wordTask{d: t.d}
	}
	if c := o.exponentials(); c != nil {
		return c
	}
	return o.columns()
}

// configure implements core.
func (t *foldTask) configure(o *op.Operation, a *op.Attrs, dims []op.Shape) error {
	if t.typ == op.InvalidType {
		t.typ = op.F32
	}
	if t.f = irhook.Reducer(o, uint8(t.typ)); t.f == nil {
		return fmt.Errorf("%s of %v: %w", o.Name(), t.typ, driver.ErrUnsupported)
	}
	n, err := dims[0].Size()
	if err != nil {
		return err
	}
	t.whole, t.outer, t.cols, t.inner = n, 1, n, 1 // the order does not matter if all elements are reduced to one
	if a.I[0] == op.AlongRows {
		t.outer, t.cols = dims[0].Rows()
	}
	if t.layout != nil && a.I[0] == op.AlongRows {
		var ok bool
		if t.outer, t.inner, ok = t.layout.Columns(t.outer, t.cols); !ok {
			return fmt.Errorf("%s of %v: %w", o.Name(), t.layout, driver.ErrUnsupported)
		}
	}
	t.programs, err = t.d.foldPrograms(o, t.typ, t.f)
	t.divide()
	return err
}

// divide divides the array into pieces of work.
func (t *foldTask) divide() {
	t.group = 0
	if n := t.cols * t.inner; n > 0 && n <= foldShort && t.outer >= 8 {
		t.group = min(t.outer, max(16, 2*foldLanes/n))
	}
	t.chunk = max(1, foldLanes/t.f.States())
	t.chunks = max(1, (t.inner+t.chunk-1)/t.chunk)
	t.part = foldSteps * t.joined(t.cols)
	t.parts = max(1, (t.cols+t.part-1)/t.part)
	t.indexed = t.f.Indexed()
	t.direct = t.f.States() == 1 && t.f.Lift[0].Code == ir.Arg && !t.indexed && t.cols > 1 && t.cols <= foldSteps
	t.count = float32(t.cols)
}

// joined returns the number of rows, of n, that are processed as one row: a power of two.
func (t *foldTask) joined(n int) int {
	k := 1
	for 2*k <= n && 2*k*t.inner <= foldRows && (k*t.inner < foldCall || n/(2*k) >= 4) {
		k *= 2
	}
	return k
}

// foldPrograms returns the programs of a fold. It caches them for each operation and type.
func (d *processor) foldPrograms(o *op.Operation, typ op.DType, f *ir.Reducer) (*foldPrograms, error) {
	type key struct {
		id  int
		typ op.DType
	}
	k := key{o.ID(), typ}
	if p, ok := d.folds.Load(k); ok {
		return p.(*foldPrograms), nil
	}
	states := make([]op.DType, f.States())
	for i, s := range f.Identity {
		states[i] = ofIR(s.Type)
	}
	p := &foldPrograms{}
	var err error
	element := append(append([]op.DType(nil), states...), typ, op.I32)
	if !f.Indexed() {
		element = element[:len(element)-1]
	}
	if p.lift, err = d.expressions(f.Lift, element[len(states):], -1); err != nil {
		return nil, err
	}
	if p.step, err = d.expressions(f.Step(), element, -1); err != nil {
		return nil, err
	}
	if p.merge, err = d.expressions(f.Merge, append(states[:len(states):len(states)], states...), -1); err != nil {
		return nil, err
	}
	if p.finish, err = d.expressions([]*ir.Node{f.Finish}, append(states[:len(states):len(states)], op.F32), len(states)); err != nil {
		return nil, err
	}
	d.folds.Store(k, p)
	return p, nil
}

// expressions returns the program that computes expressions over operands of the given types.
// Operand single is a single number. The runner provides the memory.
func (d *processor) expressions(roots []*ir.Node, types []op.DType, single int) (*program, error) {
	p := &program{n: 1 << 30, inputs: len(types), even: true}
	b := &builder{p: p, unit: 1}
	var args, results []int
	for i, t := range types {
		o := driver.Operand{Slot: -1, Type: t, N: p.n}
		if i == single {
			o.Broadcast, o.N = op.Scalar, 1
		}
		b.stream(&o)
		v, err := b.load(i, t)
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	var out []driver.Operand
	for _, r := range roots {
		out = append(out, driver.Operand{Slot: -1, Type: ofIR(r.Type), N: p.n})
		p.streams = append(p.streams, stream{size: 4, slot: -1})
	}
	results = b.expressions(roots, args, nil)
	b.prune(results)
	b.combine(results)
	b.store(results, out)
	b.finish()
	return p, nil
}

// states has two copies of the numbers of a state for many lanes: programs read one copy and write
// the other.
type states struct {
	at   [2][]unsafe.Pointer
	now  int
	from []place
}

// number returns the address of number i of the current state.
func (s *states) number(i int) unsafe.Pointer { return s.at[s.now][i] }

// fold runs a program over n lanes. Its operands are the current state and others, and its results
// become the next state.
func (l *lane) fold(p *program, s *states, n int, others ...unsafe.Pointer) {
	s.from = s.from[:0]
	for _, a := range s.at[s.now] {
		s.from = append(s.from, place{base: a})
	}
	for _, a := range others {
		s.from = append(s.from, place{base: a})
	}
	s.now ^= 1
	for _, a := range s.at[s.now] {
		s.from = append(s.from, place{base: a})
	}
	l.over(p, s.from, n)
}

// over runs a program over n elements of its streams.
func (l *lane) over(p *program, at []place, n int) {
	if p.straight {
		c := &p.block[0]
		stream := func(entry int32) *float32 {
			if entry == 0 {
				return nil
			}
			return address(at[entry-1].base)
		}
		var par *float32
		if c.p != 0 {
			par = p.consts[int(c.p)-p.firstConst]
		}
		c.fn(stream(c.dst), stream(c.x), stream(c.y), stream(c.z), n, par)
		return
	}
	if l.begun != p || p.inputs > 0 && p.streams[p.inputs-1].fixed {
		l.begin(p, at, p.size)
	}
	l.run(at, 0, n)
}

// newStates allocates states with the given number of lanes in l.extra, after extra numbers.
func newStates(l *lane, f *ir.Reducer, extra, lanes int) *states {
	k := f.States()
	l.reserve(extra + 2*k*lanes)
	s := &states{}
	for h := range 2 {
		for i := range k {
			s.at[h] = append(s.at[h], unsafe.Pointer(&l.extra[extra+(h*k+i)*lanes]))
		}
	}
	return s
}

// begin initialises lanes of the state to the state of no elements.
func (s *states) begin(f *ir.Reducer, lanes int) {
	for h := range 2 {
		for i, c := range f.Identity {
			bits := bitsOf(c.Value, c.Type)
			w := words((*float32)(s.at[h][i]), lanes)
			for j := range w {
				w[j] = bits
			}
		}
	}
}

// compute implements core.
func (t *foldTask) compute(ctx context.Context, in, out []unsafe.Pointer) (err error) {
	if t.outer*t.inner == 0 {
		return nil
	}
	t.x, t.dst, t.ctx = in[0], out[0], ctx
	t.stopped.Store(false)
	defer func() { t.x, t.dst, t.scratch, t.ctx = nil, nil, nil, nil }()
	ns := float64(t.whole)*float64(t.programs.step.cost.seed+0.1) + 20*float64(t.outer)
	if t.group > 0 {
		t.spread((t.outer+t.group-1)/t.group, ns)
		return t.err()
	}
	if t.parts > 1 {
		b, err := t.d.memory.Get(4 * t.outer * t.parts * t.inner * t.f.States())
		if err != nil {
			return fmt.Errorf("temporary memory: %w", err)
		}
		defer b.Free()
		t.scratch = base(b)
	}
	t.merging = false
	t.spread(t.outer*t.parts*t.chunks, ns)
	if t.parts > 1 && t.err() == nil {
		t.merging = true
		t.spread(t.outer*t.chunks, ns/float64(t.part))
	}
	return t.err()
}

func (t *foldTask) err() error {
	if t.stopped.Load() {
		return t.ctx.Err()
	}
	return nil
}

// spread executes n pieces of work, on several threads if this is faster.
func (t *foldTask) spread(n int, ns float64) {
	if !t.d.pool.Worth(ns) {
		for i := range n {
			t.Part(i)
		}
		return
	}
	t.d.pool.Spread(n, t.d.pool.Turn(), t)
}

// Part implements workers.Task.
func (t *foldTask) Part(i int) {
	if t.stopped.Load() || t.ctx.Err() != nil {
		t.stopped.Store(true)
		return
	}
	l := lanes.Get().(*lane)
	defer func() {
		if l.begun != nil {
			l.end()
		}
		lanes.Put(l)
	}()
	switch {
	case t.group > 0:
		t.together(l, i*t.group, min((i+1)*t.group, t.outer))
	case t.merging:
		t.mergeParts(l, i/t.chunks, i%t.chunks)
	default:
		o, rest := i/(t.parts*t.chunks), i%(t.parts*t.chunks)
		t.piece(l, o, rest/t.chunks, rest%t.chunks)
	}
}

// piece folds a part of the middle axis in a chunk of the last, of array o.
func (t *foldTask) piece(l *lane, o, part, chunk int) {
	from, to := part*t.part, min((part+1)*t.part, t.cols)
	j := chunk * t.chunk
	w := min(t.chunk, t.inner-j)
	if t.direct && w >= foldCall {
		t.columns(l, o, j, w)
		return
	}
	k := 1
	if w == t.inner {
		k = t.joined(to - from)
	}
	index := 0
	if t.indexed {
		index = k * w
	}
	s := newStates(l, t.f, index, k*w)
	s.begin(t.f, k*w)
	places := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(l.extra))), index)
	for i := range places {
		places[i] = int32(from + i/w)
	}
	rows := to - from
	for r := from; r < to; {
		n := k
		if r == from && rows%k > 0 {
			n = rows % k // a partial first group: the last lanes begin with the next rows
		}
		at := unsafe.Add(t.x, 4*((o*t.cols+r)*t.inner+j))
		if index > 0 {
			l.fold(t.programs.step, s, n*w, at, unsafe.Pointer(unsafe.SliceData(places)))
			for i := range places {
				places[i] += int32(n)
			}
		} else {
			l.fold(t.programs.step, s, n*w, at)
		}
		r += n
	}
	t.halve(l, s, k, w)
	if t.parts == 1 {
		finishStates(l, t.programs.finish, s, w, t.cols, unsafe.Add(t.dst, 4*(o*t.inner+j)))
		return
	}
	for i := range t.f.States() {
		at := ((o*t.parts+part)*t.f.States()+i)*t.inner + j
		copy(slice(unsafe.Add(t.scratch, 4*at), w), slice(s.number(i), w))
	}
}

// columns merges the rows of array o, in w columns from j on. A sum starts with the identity +0,
// because the sum of elements that are all -0 is +0. Other folds can start with the first element.
func (t *foldTask) columns(l *lane, o, j, w int) {
	dst := place{base: unsafe.Add(t.dst, 4*(o*t.inner+j))}
	at := [3]place{{base: unsafe.Add(t.x, 4*(o*t.cols*t.inner+j))}, {}, dst}
	first := 1
	if t.f.Merge[0].Code == ir.Add {
		l.reserve(w)
		clear(l.extra[:w])
		at[0].base, first = unsafe.Pointer(unsafe.SliceData(l.extra)), 0
	}
	for r := first; r < t.cols; r++ {
		at[1].base = unsafe.Add(t.x, 4*((o*t.cols+r)*t.inner+j))
		l.over(t.programs.merge, at[:], w)
		at[0] = dst
	}
	if t.f.Finish.Code != ir.Arg {
		at[1].base = unsafe.Pointer(&t.count)
		l.over(t.programs.finish, at[:], w)
	}
}

// halve merges the states of k rows of w lanes into the first row; k is a power of two.
func (t *foldTask) halve(l *lane, s *states, k, w int) {
	for k /= 2; k > 0; k /= 2 {
		var upper [4]unsafe.Pointer
		for i := range t.f.States() {
			upper[i] = unsafe.Add(s.number(i), 4*k*w)
		}
		l.fold(t.programs.merge, s, k*w, upper[:t.f.States()]...)
	}
}

// mergeParts merges the parts of array o in a chunk.
func (t *foldTask) mergeParts(l *lane, o, chunk int) {
	j := chunk * t.chunk
	w := min(t.chunk, t.inner-j)
	s := newStates(l, t.f, 0, w)
	s.begin(t.f, w)
	for part := range t.parts {
		var later [4]unsafe.Pointer
		for i := range t.f.States() {
			later[i] = unsafe.Add(t.scratch, 4*(((o*t.parts+part)*t.f.States()+i)*t.inner+j))
		}
		l.fold(t.programs.merge, s, w, later[:t.f.States()]...)
	}
	finishStates(l, t.programs.finish, s, w, t.cols, unsafe.Add(t.dst, 4*(o*t.inner+j)))
}

// finishStates stores the results of the states of n lanes. Each state has count elements.
func finishStates(l *lane, p *program, s *states, n, count int, dst unsafe.Pointer) {
	c := float32(count)
	s.from = s.from[:0]
	for _, a := range s.at[s.now] {
		s.from = append(s.from, place{base: a})
	}
	s.from = append(s.from, place{base: unsafe.Pointer(&c)}, place{base: dst})
	l.over(p, s.from, n)
}

// together folds the short arrays lo to hi. It transposes them, so that there is a lane for each of
// their columns.
func (t *foldTask) together(l *lane, lo, hi int) {
	n, g := t.cols*t.inner, hi-lo
	w := t.inner * g
	extra := n*g + w
	if t.indexed {
		extra += w
	}
	s := newStates(l, t.f, extra, w)
	turned, results := l.extra[:n*g], l.extra[n*g:][:w]
	simd.Transpose(nil, turned, slice(unsafe.Add(t.x, 4*lo*n), n*g), g, n)
	s.begin(t.f, w)
	var places []int32
	if t.indexed {
		places = unsafe.Slice((*int32)(unsafe.Pointer(&l.extra[n*g+w])), w)
		clear(places)
	}
	for r := range t.cols {
		at := unsafe.Pointer(&turned[r*w])
		if places == nil {
			l.fold(t.programs.step, s, w, at)
			continue
		}
		l.fold(t.programs.step, s, w, at, unsafe.Pointer(unsafe.SliceData(places)))
		for i := range places {
			places[i]++
		}
	}
	finishStates(l, t.programs.finish, s, w, t.cols, unsafe.Pointer(unsafe.SliceData(results)))
	simd.Transpose(nil, slice(unsafe.Add(t.dst, 4*lo*t.inner), w), results, t.inner, g)
}
