package engine

import (
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/graph"
)

// launch adds the step of a user's kernel. Before the kernel, each array that it writes gets its
// initial contents.
func (l *lowerer) launch(id graph.ID, result map[graph.ID]int, direct map[graph.ID]graph.ID) error {
	n := &l.g.Nodes[id]
	k := l.g.Launches[n.Ref]
	s := driver.Step{Kernel: &driver.Kernel{Program: k.Program, Grid: k.Grid, Params: -1, Positions: k.Positions}}
	written := graph.Written(k.Program)
	bind := make([]int, len(k.Program.Bindings))
	for i := range bind {
		bind[i] = -1
	}
	for r, at := range written {
		var o driver.Operand
		var err error
		if v := l.result(id, r); v != graph.Absent {
			o, err = l.define(v, 0, id, result, direct)
		} else {
			o, err = l.unwanted(k.Results[r].Type, k.Results[r].Shape)
		}
		if err != nil {
			return err
		}
		if before := n.In[at]; !l.same(before, o.Slot) {
			if err := l.copy(before, o.Slot, k.Results[r].Shape); err != nil {
				return err
			}
		}
		bind[at] = o.Slot
		s.In = append(s.In, o)
		s.Out = append(s.Out, o)
	}
	for i := range bind {
		if bind[i] < 0 {
			x := l.operand(n.In[i], nil)
			bind[i] = x.Slot
			s.In = append(s.In, x)
		}
	}
	if len(k.Program.Uniforms) > 0 {
		x := l.operand(n.In[len(bind)], nil)
		s.Kernel.Params = x.Slot
		s.In = append(s.In, x)
	}
	s.Kernel.Bind = bind
	l.prog.Steps = append(l.prog.Steps, s)
	return nil
}

// same reports whether the value of id is in the device memory of slot, so that a kernel can update
// it in place.
func (l *lowerer) same(id graph.ID, slot int) bool {
	n := &l.g.Nodes[id]
	s := &l.prog.Slots[slot]
	if n.Kind != graph.Resident || s.Ext < 0 {
		return false
	}
	x := &l.ext[s.Ext]
	return x.kind == extResident && x.ref == n.Ref && x.off == n.Off && n.Shape.Equal(s.Shape)
}

// before returns the node with the initial contents of array v, which a kernel writes. It returns
// Absent if v is neither a result of a kernel nor an update.
func (l *lowerer) before(v graph.ID) graph.ID {
	n := &l.g.Nodes[l.g.Producer(v)]
	if n.Kind == graph.Compute && inPlace(n.Op) {
		return n.In[0]
	}
	if n.Kind != graph.Launch {
		return graph.Absent
	}
	r := 0
	if m := &l.g.Nodes[v]; m.Kind == graph.Result {
		r = int(m.Ref)
	}
	return n.In[graph.Written(l.g.Launches[n.Ref].Program)[r]]
}
