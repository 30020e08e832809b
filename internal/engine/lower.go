package engine

import (
	"slices"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/op"
)

// extern describes the binding of an external slot of a program.
type extern struct {
	kind  externKind
	ref   int32 // reference of the graph, for inputs and residents
	off   int64 // offset in a resident, in bytes
	out   int   // index of the output of the graph, for results
	bytes int64
}

type externKind uint8

const (
	extInput externKind = iota
	extResident
	extResult
)

// lowered is a program with the bindings of its external slots.
type lowered struct {
	prog     *driver.Program
	ext      []extern
	unshared int64 // bytes of the temporaries without sharing
}

// lower converts the groups of g to a program.
func lower(g *graph.Graph, groups []graph.Group, lim driver.Limits, writes writer) (*lowered, error) {
	l := newLowerer(g)
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == graph.Result {
			l.more[resultKey{n.In[0], n.Ref}] = graph.ID(i)
		}
	}
	result := make(map[graph.ID]int) // values that are computed directly in the memory of an output
	for k, o := range g.Outputs {
		b := g.Base(o)
		if _, ok := result[b]; !ok && computed(&g.Nodes[b]) {
			result[b] = k
		}
	}
	direct, skip := l.directStores(groups, result)
	for i := range groups {
		if err := l.group(&groups[i], result, direct, skip); err != nil {
			return nil, err
		}
	}
	if err := l.outputs(result); err != nil {
		return nil, err
	}
	l.writeThrough(writes)
	for i, s := range l.prog.Steps {
		l.prog.Steps[i] = transposed(s)
	}
	l.prog.Ext = len(l.ext)
	if lim.SeparateBindings {
		l.detach()
	}
	l.unshared = placeTemporaries(l.prog, lim)
	return &l.lowered, nil
}

// group makes the step of a group, or the copy of a store.
func (l *lowerer) group(r *graph.Group, result map[graph.ID]int, direct map[graph.ID]graph.ID, skip map[graph.ID]bool) error {
	root := &l.g.Nodes[r.Root]
	switch {
	case root.Kind == graph.Store && skip[r.Root]:
		return nil
	case root.Kind == graph.Store:
		dst, err := l.resident(root)
		if err != nil {
			return err
		}
		return l.copy(root.In[0], dst, root.Shape)
	case root.Kind == graph.Launch:
		return l.launch(r.Root, result, direct)
	}
	outs := append([]graph.ID(nil), r.Outs...)
	if root.Kind == graph.Compute {
		for k := 1; k < root.Op.Results(); k++ {
			outs = append(outs, l.result(r.Root, k))
		}
	}
	var out []driver.Operand
	for k, id := range outs {
		s, err := l.define(id, k, r.Root, result, direct)
		if err != nil {
			return err
		}
		out = append(out, s)
	}
	return l.step(r, out)
}

// outputs copies the outputs that no step computes directly in their memory. result has the others.
func (l *lowerer) outputs(result map[graph.ID]int) error {
	for k, o := range l.g.Outputs {
		if at, ok := result[l.g.Base(o)]; ok && at == k {
			continue
		}
		n := &l.g.Nodes[o]
		bytes, err := bytesOf(n)
		if err != nil {
			return err
		}
		dst := l.add(driver.Slot{Type: n.Type, Shape: n.Shape, Bytes: bytes, Written: true}, &extern{kind: extResult, out: k, bytes: bytes})
		if err := l.copy(o, dst, n.Shape); err != nil {
			return err
		}
	}
	return nil
}

// lowerOne converts a graph of one elementwise operation to the program that [Engine.lower] makes of it. Graphs are no
// larger in programs that do not call [UsePlanner].
func (e *Engine) lowerOne(g *graph.Graph) (*lowered, error) {
	id := graph.ID(len(g.Nodes) - 1)
	if len(g.Outputs) != 1 || g.Outputs[0] != id || !g.Nodes[id].Elementwise() {
		return nil, fmt.Errorf("a graph of %d nodes, which is more than one elementwise operation: %w", len(g.Nodes), op.ErrUnsupported)
	}
	l := newLowerer(g)
	size, err := g.Nodes[id].Shape.Size()
	if err != nil {
		return nil, err
	}
	out := l.place(id, size, map[graph.ID]int{id: 0}, nil)
	l.prog.Steps = []driver.Step{{Post: l.fused(g.Outputs, graph.Absent, g.Outputs), Out: []driver.Operand{out}}}
	l.prog.Ext = len(l.ext)
	return &l.lowered, nil
}

type lowerer struct {
	lowered
	g    *graph.Graph
	slot []int // slot of each base node, -1 until it has one
	more map[resultKey]graph.ID
}

func newLowerer(g *graph.Graph) *lowerer {
	l := &lowerer{g: g, slot: make([]int, len(g.Nodes)), more: make(map[resultKey]graph.ID)}
	l.prog = new(driver.Program)
	for i := range l.slot {
		l.slot[i] = -1
	}
	return l
}

// resultKey identifies a result of a node other than the first.
type resultKey struct {
	of graph.ID
	at int32
}

// result returns the node of result k of id, or Absent if no node uses it.
func (l *lowerer) result(id graph.ID, k int) graph.ID {
	if k == 0 {
		return id
	}
	if r, ok := l.more[resultKey{id, int32(k)}]; ok {
		return r
	}
	return graph.Absent
}

// computed reports whether a step computes the value of n.
func computed(n *graph.Node) bool {
	return n.Kind == graph.Compute || n.Kind == graph.Result || n.Kind == graph.Launch
}

func bytesOf(n *graph.Node) (int64, error) {
	k, err := n.Type.Bytes(n.Shape)
	return int64(k), err
}

func (l *lowerer) add(s driver.Slot, e *extern) int {
	s.Ext = -1
	if e != nil {
		s.Ext = len(l.ext)
		l.ext = append(l.ext, *e)
	}
	l.prog.Slots = append(l.prog.Slots, s)
	return len(l.prog.Slots) - 1
}

// resident returns the slot that store n writes.
func (l *lowerer) resident(n *graph.Node) (int, error) {
	bytes, err := bytesOf(n)
	if err != nil {
		return 0, err
	}
	return l.add(driver.Slot{Type: n.Type, Shape: n.Shape, Bytes: bytes, Written: true},
		&extern{kind: extResident, ref: n.Ref, off: n.Off, bytes: bytes}), nil
}

// define assigns a slot to the result id of the group rooted at root: the host memory of an output,
// the device memory of a store, or a temporary.
func (l *lowerer) define(id graph.ID, k int, root graph.ID, result map[graph.ID]int, direct map[graph.ID]graph.ID) (driver.Operand, error) {
	n := &l.g.Nodes[root]
	if id == graph.Absent {
		// The operation has several results, and nothing uses this one.
		t, shapes, err := l.results(n)
		if err != nil {
			return driver.Operand{}, err
		}
		return l.unwanted(t[k], shapes[k])
	}
	size, err := l.g.Nodes[id].Shape.Size()
	if err != nil {
		return driver.Operand{}, err
	}
	return l.place(id, size, result, direct), nil
}

// place assigns a slot to a value of size elements: see define.
func (l *lowerer) place(id graph.ID, size int, result map[graph.ID]int, direct map[graph.ID]graph.ID) driver.Operand {
	n := &l.g.Nodes[id]
	bytes := int64(size) * int64(n.Type.Size())
	slot := driver.Slot{Type: n.Type, Shape: n.Shape, Bytes: bytes, Written: true}
	if k, ok := result[id]; ok {
		l.slot[id] = l.add(slot, &extern{kind: extResult, out: k, bytes: bytes})
	} else if s, ok := direct[id]; ok {
		st := &l.g.Nodes[s]
		l.slot[id] = l.add(slot, &extern{kind: extResident, ref: st.Ref, off: st.Off, bytes: bytes})
	} else {
		l.slot[id] = l.add(slot, nil)
	}
	return driver.Operand{Slot: l.slot[id], Type: n.Type, N: size}
}

// unwanted assigns a temporary to an unused result.
func (l *lowerer) unwanted(t op.DType, s op.Shape) (driver.Operand, error) {
	size, err := s.Size()
	if err != nil {
		return driver.Operand{}, err
	}
	at := l.add(driver.Slot{Type: t, Shape: s, Bytes: int64(size * t.Size()), Written: true}, nil)
	return driver.Operand{Slot: at, Type: t, N: size, Unwanted: true}, nil
}

// results returns the types and the shapes of the results of an operation.
func (l *lowerer) results(n *graph.Node) ([]op.DType, []op.Shape, error) {
	types, shapes := make([]op.DType, n.NIn), make([]op.Shape, n.NIn)
	for i, in := range n.Inputs() {
		if in != graph.Absent {
			types[i], shapes[i] = l.g.Nodes[in].Type, l.g.Nodes[in].Shape
		}
	}
	t, err := n.Op.Types(&n.Attrs, types)
	if err != nil {
		return nil, nil, err
	}
	s, err := n.Op.Shapes(&n.Attrs, shapes)
	return t, s, err
}

// use returns the slot of the value of id, and creates one for an external value.
func (l *lowerer) use(id graph.ID) int {
	b := l.g.Base(id)
	if l.slot[b] >= 0 {
		return l.slot[b]
	}
	n := &l.g.Nodes[b]
	bytes, err := bytesOf(n)
	if err != nil {
		panic(fmt.Sprintf("BUG: %v was checked when it was recorded", n.Shape))
	}
	slot := driver.Slot{Type: n.Type, Shape: n.Shape, Bytes: bytes}
	switch n.Kind {
	case graph.Input:
		l.slot[b] = l.add(slot, &extern{kind: extInput, ref: n.Ref, bytes: bytes})
	case graph.Resident:
		l.slot[b] = l.add(slot, &extern{kind: extResident, ref: n.Ref, off: n.Off, bytes: bytes})
	case graph.Constant:
		slot.Data = l.g.Data[n.Ref]
		if len(slot.Data) == 0 {
			slot.Data = []byte{} // marks the slot as a constant although it is empty
		}
		l.slot[b] = l.add(slot, nil)
	default:
		panic(fmt.Sprintf("BUG: node %d is used before it is computed", b))
	}
	return l.slot[b]
}

// operand returns the operand for the value of id: of an elementwise program with the result shape
// over or, if over is nil, of another operation.
func (l *lowerer) operand(id graph.ID, over op.Shape) driver.Operand {
	n := &l.g.Nodes[id]
	base, lay, ok := l.g.Seen(id)
	if ok && over != nil {
		var err error
		lay, err = lay.Over(n.Shape, over)
		ok = err == nil
	}
	if !ok {
		panic(fmt.Sprintf("BUG: %v over %v was checked when the graph was planned", n.Shape, over))
	}
	size, _ := l.g.Nodes[base].Shape.Size()
	o := driver.Operand{Slot: l.use(id), Type: n.Type, N: size, Broadcast: lay.BroadcastKind(size)}
	if over == nil && o.Broadcast != op.Full {
		o.Broadcast = op.Strided // operations that are not elementwise read layouts and do not broadcast
	}
	if o.Broadcast == op.Strided {
		o.Layout = &lay
	}
	return o
}

// copy adds a step that copies the value of id, broadcast to shape, to slot dst.
func (l *lowerer) copy(id graph.ID, dst int, shape op.Shape) error {
	if t := l.g.Nodes[id].Type; t.Quantized() {
		return fmt.Errorf("copy of %v %v: %w", t, shape, op.ErrUnsupported)
	}
	x := l.operand(id, shape)
	n, _ := shape.Size()
	l.prog.Steps = append(l.prog.Steps, driver.Step{
		Post: &driver.Fused{In: []driver.Operand{x}, Out: []int{0}, Shape: shape},
		Out:  []driver.Operand{{Slot: dst, Type: x.Type, N: n}},
	})
	return nil
}

// step adds the kernel of a group.
func (l *lowerer) step(r *graph.Group, out []driver.Operand) error {
	s := driver.Step{Out: out}
	if r.Core != graph.Absent {
		n := &l.g.Nodes[r.Core]
		s.Op, s.Attrs = n.Op, n.Attrs
		for i, in := range n.Inputs() {
			switch {
			case in == graph.Absent:
				s.In = append(s.In, driver.Operand{Slot: -1})
				s.Dims = append(s.Dims, nil)
				continue
			case len(r.Pre[i]) > 0:
				if s.Pre == nil {
					s.Pre = make([]*driver.Fused, n.NIn)
				}
				a := &l.g.Nodes[in]
				s.Pre[i] = l.fused(r.Pre[i], graph.Absent, []graph.ID{in})
				size, _ := a.Shape.Size()
				s.In = append(s.In, driver.Operand{Slot: -1, Type: a.Type, N: size})
			default:
				s.In = append(s.In, l.operand(in, nil))
			}
			s.Dims = append(s.Dims, l.g.Nodes[in].Shape)
		}
		s.Dims = append(s.Dims, n.Shape)
		if n.Op.Results() > 1 {
			_, shapes, err := l.results(n)
			if err != nil {
				return err
			}
			s.Dims = append(s.Dims, shapes[1:]...)
		}
	}
	if len(r.Post) > 0 {
		s.Post = l.fused(r.Post, r.Core, r.Outs)
	}
	if inPlace(s.Op) {
		// The operation updates the memory of the result, which must contain the old contents.
		if x := l.g.Nodes[r.Core].In[0]; !l.same(x, out[0].Slot) {
			if err := l.copy(x, out[0].Slot, l.g.Nodes[r.Core].Shape); err != nil {
				return err
			}
		}
		s.In[0] = out[0]
	}
	l.prog.Steps = append(l.prog.Steps, s)
	return nil
}

// inPlace reports whether an operation changes some elements of its first operand.
func inPlace(o *op.Operation) bool { return o == op.Update || o == op.Scatter }

// transposed replaces a copy that is a transposition by the operation transpose, for which devices
// have kernels.
func transposed(s driver.Step) driver.Step {
	f := s.Post
	if s.Op != nil || f == nil || len(f.Body) > 0 || len(f.In) != 1 || len(s.Out) != 1 || f.In[0].Layout == nil {
		return s
	}
	x := f.In[0]
	fs := x.Layout.Factors()
	m := 1
	if len(fs) == 3 {
		m, fs = fs[0].N, fs[1:]
	}
	if len(fs) != 2 || x.Layout.Off != 0 || x.Layout.Windowed() {
		return s
	}
	rows, cols := fs[1].N, fs[0].N
	if fs[0].Stride != 1 || fs[1].Stride != cols || x.N != m*rows*cols || m > 1 && x.Layout.F[0].Stride != rows*cols {
		return s
	}
	return driver.Step{Op: op.Transpose, In: []driver.Operand{{Slot: x.Slot, Type: x.Type, N: x.N}}, Out: s.Out,
		Dims: []op.Shape{{m, rows, cols}, {m, cols, rows}}}
}

// fused makes the elementwise program of nodes. core, if not Absent, is its operand 0.
func (l *lowerer) fused(nodes []graph.ID, core graph.ID, outs []graph.ID) *driver.Fused {
	f := &driver.Fused{Shape: l.g.Nodes[nodes[len(nodes)-1]].Shape}
	value := make(map[graph.ID]int) // numbers of operands from 0 on, and of instructions from -1 downwards
	var body []graph.ID
	copies := make(map[graph.ID]graph.ID) // casts to the type of their operand
	for _, id := range nodes {
		if n := &l.g.Nodes[id]; n.Op == op.Cast && l.g.Nodes[n.In[0]].Type == n.Type {
			copies[id] = n.In[0]
			continue
		}
		value[id] = -1 - len(body)
		body = append(body, id)
	}
	if core != graph.Absent {
		n := &l.g.Nodes[core]
		size, _ := n.Shape.Size()
		f.In = append(f.In, driver.Operand{Slot: -1, Type: n.Type, N: size})
		if value[core] = 0; n.Type.Size() == 2 {
			f.Round = n.Type
		}
	}
	for _, id := range nodes {
		for _, in := range l.g.Nodes[id].Inputs() {
			_, ok := value[in]
			if _, is := copies[in]; !ok && !is {
				value[in] = len(f.In)
				f.In = append(f.In, l.operand(in, f.Shape))
			}
		}
	}
	number := func(id graph.ID) int {
		for of, is := copies[id]; is; of, is = copies[id] {
			id = of
		}
		if v := value[id]; v < 0 {
			return len(f.In) - 1 - v
		}
		return value[id]
	}
	for _, id := range body {
		n := &l.g.Nodes[id]
		in := driver.Instr{Op: n.Op, Attrs: n.Attrs, Type: n.Type}
		for _, a := range n.Inputs() {
			in.Args = append(in.Args, number(a))
		}
		f.Body = append(f.Body, in)
	}
	for _, o := range outs {
		f.Out = append(f.Out, number(o))
	}
	return f
}

// movable reports whether the step that computes v can write it to any memory. This holds for
// launches and for operations with one result.
func (l *lowerer) movable(v graph.ID) bool {
	n := &l.g.Nodes[v]
	return n.Kind == graph.Compute && n.Op.Results() == 1 || l.g.Nodes[l.g.Producer(v)].Kind == graph.Launch
}

// directStores finds the stores whose value the producing kernel may write directly into device
// memory: no other store is between the two, no other node uses the value later, and no step reads
// the memory in between. It returns the store for each such value, and the stores that need no
// step.
func (l *lowerer) directStores(groups []graph.Group, result map[graph.ID]int) (direct map[graph.ID]graph.ID, skip map[graph.ID]bool) {
	g := l.g
	direct, skip = make(map[graph.ID]graph.ID), make(map[graph.ID]bool)
	read := make(map[int32][]graph.ID)
	roots := make(map[graph.ID]bool)
	for i := range groups {
		roots[groups[i].Root] = true
	}
	consumers := make(map[graph.ID]int)
	last := make(map[graph.ID]int) // stores before the last consumer
	epoch := make([]int, len(g.Nodes))
	stores := 0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		epoch[i] = stores
		switch n.Kind {
		case graph.Resident:
			read[n.Ref] = append(read[n.Ref], graph.ID(i))
		case graph.Store:
			stores++
		case graph.Result:
			continue // it reads no value that the same step computes
		}
		for _, in := range n.Inputs() {
			if in != graph.Absent {
				consumers[g.Base(in)]++
				last[g.Base(in)] = epoch[i]
			}
		}
	}
	for _, o := range g.Outputs {
		last[g.Base(o)] = stores
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind != graph.Store {
			continue
		}
		v := g.Base(n.In[0])
		if slices.ContainsFunc(read[n.Ref], func(r graph.ID) bool {
			if int(r) > i || last[r] < epoch[v] {
				return false // it is read before, or after everything was written
			}
			// A kernel may read an array that it updates in place.
			return consumers[r] > 1 || r != l.before(v) || epoch[r] != epoch[v] ||
				g.Nodes[r].Off != n.Off || !g.Nodes[r].Shape.Equal(n.Shape)
		}) {
			continue
		}
		if !g.Nodes[n.In[0]].Shape.Equal(n.Shape) {
			continue // the store broadcasts the value
		}
		_, wanted := result[v]
		if roots[g.Producer(v)] && l.movable(v) && !wanted && consumers[v] == 1 && epoch[v] == epoch[i] {
			direct[v] = graph.ID(i)
			skip[graph.ID(i)] = true
		}
	}
	return direct, skip
}
