package graph

import (
	"slices"

	"github.com/rayo-go/rayo/op"
)

// Group is the nodes that become one kernel: at most one operation that is not
// elementwise, with elementwise ones before and after it.
type Group struct {
	// Root is the last node; the kernel runs at its place in the list. Other
	// groups read no other value of this one.
	Root ID
	// Core is the operation that is not elementwise, or Absent.
	Core ID
	// Pre are the elementwise nodes on operand i of Core, in order; the last one is the operand.
	// Post are the elementwise nodes after it.
	Pre  [op.MaxInputs][]ID
	Post []ID
	// Outs are the values that leave the group, in order: the root, and
	// others that are outputs of the graph.
	Outs []ID
}

const (
	// maxFused bounds the elementwise nodes of a kernel, and maxOperands its
	// arrays: GPUs bind no more than 8 to 16 at once.
	maxFused    = 64
	maxOperands = 8
)

// zone is a place in a group where elementwise nodes go.
type zone struct {
	group int // index, -1 if absent
	place int // 0… for Pre, postZone, coreZone
}

const (
	postZone = op.MaxInputs + iota
	coreZone
	ownZone // a store or a launch, which does not fuse
)

var outside = zone{group: -1}

// Fuse groups the nodes of g into kernels, in the order in which they run.
// prologue and epilogue say whether the device fuses elementwise programs into
// an operation, arrays how many operands and results a kernel may have; 0 is
// no bound but the one on operands.
//
// An elementwise node joins the group of its consumers if all of them are in one place of one group
// and read it element by element. Therefore no value is computed twice, and no cycle can arise,
// because no node outside the group depends on a node that joined.
func Fuse(g *Graph, prologue, epilogue func(*op.Operation) bool, arrays int) []Group {
	f := fuser{g: g, maxArrays: arrays, zones: make([]zone, len(g.Nodes)), uses: make([][]use, len(g.Nodes)), output: make([]bool, len(g.Nodes)),
		epoch: make([]int, len(g.Nodes)), written: g.written()}
	epoch := 0
	for i := range g.Nodes {
		f.zones[i] = outside
		f.epoch[i] = epoch
		if g.Nodes[i].Kind == Store {
			epoch++
		}
		for j, in := range g.Nodes[i].Inputs() {
			if in != Absent {
				f.uses[in] = append(f.uses[in], use{ID(i), j})
			}
		}
	}
	for _, o := range g.Outputs {
		f.output[o] = true
	}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		id := ID(i)
		n := &g.Nodes[i]
		switch {
		case n.Kind == Store || n.Kind == Launch:
			f.start(id, ownZone)
		case n.Kind != Compute || n.View():
		case n.Elementwise():
			if z := f.home(id, prologue); z != outside {
				f.join(id, z)
			} else {
				f.start(id, postZone)
			}
		default:
			if z := f.home(id, nil); z != outside && z.place == postZone && n.Op.Results() == 1 &&
				f.groups[z.group].Core == Absent && epilogue(n.Op) && f.fits(id, z.group) && !f.strided[z.group] {
				f.groups[z.group].Core = id
				f.zones[i] = zone{z.group, coreZone}
				f.reads(id, z.group)
			} else {
				f.start(id, coreZone)
			}
		}
	}
	return f.finish()
}

type use struct {
	by ID
	at int // operand
}

type fuser struct {
	g       *Graph
	groups  []Group // latest root first
	zones   []zone
	uses    [][]use
	output  []bool
	epoch   []int // number of stores before the node
	written map[int32]bool
	arrays  []map[ID]bool // operands of each group, from outside
	outs    []int         // results of each group
	// strided reports, for each group, whether the nodes after its core read an operand in a
	// strided layout: no operation supports that in an epilogue.
	strided   []bool
	maxArrays int // operands and results of a kernel, or 0
}

// fits reports whether a group may have id, one of its operands, as a member.
func (f *fuser) fits(id ID, group int) bool {
	n := len(f.arrays[group]) - 1
	for _, in := range f.g.Nodes[id].Inputs() {
		if in != Absent && !f.arrays[group][in] {
			n++
		}
	}
	outs := f.outs[group]
	if f.output[id] {
		outs++
	}
	return f.maxArrays == 0 || n+outs <= f.maxArrays
}

func (f *fuser) start(id ID, place int) {
	r := Group{Root: id, Core: Absent}
	if place == coreZone {
		r.Core = id
	}
	z := zone{len(f.groups), place}
	f.groups = append(f.groups, r)
	f.arrays = append(f.arrays, map[ID]bool{})
	f.outs = append(f.outs, 1)
	f.strided = append(f.strided, place == postZone && f.g.readsStrided(id))
	f.zones[id] = z
	if place == postZone {
		f.groups[z.group].Post = append(f.groups[z.group].Post, id)
	}
	f.reads(id, z.group)
}

func (f *fuser) reads(id ID, group int) {
	delete(f.arrays[group], id)
	if f.output[id] && id != f.groups[group].Root {
		f.outs[group]++
	}
	for _, in := range f.g.Nodes[id].Inputs() {
		if in != Absent {
			f.arrays[group][in] = true
		}
	}
}

func (f *fuser) join(id ID, z zone) {
	r := &f.groups[z.group]
	if z.place == postZone {
		r.Post = append(r.Post, id)
		f.strided[z.group] = f.strided[z.group] || f.g.readsStrided(id)
	} else {
		r.Pre[z.place] = append(r.Pre[z.place], id)
	}
	f.zones[id] = z
	f.reads(id, z.group)
}

// home returns the zone into which id can be fused, or outside. All consumers of id must be there.
func (f *fuser) home(id ID, prologue func(*op.Operation) bool) zone {
	z := f.consumers(id, prologue)
	if z == outside {
		return z
	}
	r := &f.groups[z.group]
	switch {
	case f.output[id] && z.place != postZone:
		return outside
	case z.place == postZone && (r.Core != Absent || f.g.copies(id)) && f.g.readsStrided(id):
		return outside
	case !f.room(id, z.group), !f.fits(id, z.group):
		return outside
	case f.reader(id) && f.epoch[id] != f.epoch[r.Root]:
		// A kernel runs at the place of its root. A read of memory that is stored to must not move
		// across a store.
		return outside
	}
	return z
}

// consumers returns the zone that all consumers of id have in common, or outside.
func (f *fuser) consumers(id ID, prologue func(*op.Operation) bool) zone {
	n := &f.g.Nodes[id]
	z := outside
	for i, u := range f.uses[id] {
		c := &f.g.Nodes[u.by]
		at := f.zones[u.by]
		if at == outside {
			return outside
		}
		switch at.place {
		case ownZone:
			return outside
		case coreZone:
			if prologue == nil || f.output[id] || !prologue(c.Op) {
				return outside
			}
			at.place = u.at
		default:
			if !c.Shape.Equal(n.Shape) {
				return outside
			}
		}
		if i > 0 && at != z {
			return outside
		}
		z = at
	}
	return z
}

// room reports whether a group can have one more fused node, with its operands.
func (f *fuser) room(id ID, group int) bool {
	r := &f.groups[group]
	fused := len(r.Post)
	for i := range r.Pre {
		fused += len(r.Pre[i])
	}
	more := 0
	for _, in := range f.g.Nodes[id].Inputs() {
		if in != Absent && !f.arrays[group][in] {
			more++
		}
	}
	return fused < maxFused && len(f.arrays[group])-1+more <= maxOperands
}

// copies reports whether a node copies its operand: one that its consumers do not
// read where it lies must be there before them. See [Views].
func (g *Graph) copies(id ID) bool {
	n := &g.Nodes[id]
	return n.Kind == Compute && n.Op == op.Cast && g.Nodes[n.In[0]].Type == n.Type
}

// readsStrided reports whether an elementwise node reads an operand in a layout
// that has no name.
func (g *Graph) readsStrided(id ID) bool {
	n := &g.Nodes[id]
	if !n.Elementwise() {
		return false
	}
	for _, in := range n.Inputs() {
		if in == Absent || !g.Nodes[in].View() && g.Nodes[in].Shape.Equal(n.Shape) {
			continue
		}
		base, l, ok := g.Seen(in)
		if ok {
			var err error
			l, err = l.Over(g.Nodes[in].Shape, n.Shape)
			ok = err == nil
		}
		size, err := g.Nodes[base].Shape.Size()
		if !ok || err != nil || l.BroadcastKind(size) == op.Strided {
			return true
		}
	}
	return false
}

// reader reports whether id reads memory that the graph writes.
func (f *fuser) reader(id ID) bool {
	for _, in := range f.g.Nodes[id].Inputs() {
		if in != Absent {
			if b := &f.g.Nodes[f.g.Base(in)]; b.Kind == Resident && f.written[b.Ref] {
				return true
			}
		}
	}
	return false
}

func (f *fuser) finish() []Group {
	out := make([]Group, 0, len(f.groups))
	for i := len(f.groups) - 1; i >= 0; i-- {
		r := f.groups[i]
		slices.Reverse(r.Post)
		for j := range r.Pre {
			slices.Reverse(r.Pre[j])
		}
		r.Outs = append(r.Outs, r.Root)
		if r.Core != Absent && r.Core != r.Root && f.output[r.Core] {
			r.Outs = append(r.Outs, r.Core)
		}
		for _, id := range r.Post {
			if id != r.Root && f.output[id] {
				r.Outs = append(r.Outs, id)
			}
		}
		out = append(out, r)
	}
	return out
}
