package engine

import (
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// writer reports whether a device can write the result of an operation in a layout: see
// [driver.Strided].
type writer func(o *op.Operation, s op.Shape, t op.DType, l *op.Layout) bool

// writeThrough removes copies: if only a copy reads a result, the operation writes the result
// directly to the destination of the copy.
func (l *lowerer) writeThrough(writes writer) {
	steps := l.prog.Steps
	readers := make(map[int][]int) // steps that read each slot
	for i := range steps {
		eachOperand(&steps[i], func(o *driver.Operand) { readers[o.Slot] = append(readers[o.Slot], i) })
	}
	gone := make(map[int]bool)
	for i := range steps {
		s := &steps[i]
		if s.Op == nil || s.Post != nil || len(s.Out) != 1 {
			continue
		}
		from := &l.prog.Slots[s.Out[0].Slot]
		rs := readers[s.Out[0].Slot]
		if from.Ext >= 0 || len(rs) != 1 || rs[0] <= i {
			continue
		}
		c := &steps[rs[0]]
		if c.Op != nil || c.Kernel != nil || len(c.Post.Body) > 0 || len(c.Post.In) != 1 || c.Post.In[0].Layout == nil || len(c.Out) != 1 {
			continue
		}
		if l.touches(steps[i:rs[0]], c.Out[0].Slot) {
			continue
		}
		to, ok := c.Post.In[0].Layout.Inverse(s.Out[0].N)
		if in := s.In[0].Layout; s.Op.Class() == op.Row && in != nil && *in != to {
			continue // kernels of columns read and write the same ones
		}
		if ok && writes(s.Op, s.Dims[len(s.In)], s.Out[0].Type, &to) {
			s.Out[0] = driver.Operand{Slot: c.Out[0].Slot, Type: s.Out[0].Type, N: s.Out[0].N, Broadcast: op.Strided, Layout: &to}
			gone[rs[0]] = true
		}
	}
	l.prog.Steps = nil
	for i, s := range steps {
		if !gone[i] {
			l.prog.Steps = append(l.prog.Steps, s)
		}
	}
}

// touches reports whether one of the steps reads or writes the device memory of a slot. It returns
// false if the slot is not in device memory that the program was given.
func (l *lowerer) touches(steps []driver.Step, slot int) (found bool) {
	ref, ok := l.residentOf(slot)
	if !ok {
		return false
	}
	touched := func(o *driver.Operand) {
		r, ok := l.residentOf(o.Slot)
		found = found || ok && r == ref
	}
	for i := range steps {
		eachOperand(&steps[i], touched)
		for k := range steps[i].Out {
			touched(&steps[i].Out[k])
		}
	}
	return found
}

// residentOf returns the device memory that a slot is in, if the program was given that memory.
func (l *lowerer) residentOf(slot int) (ref int32, ok bool) {
	if e := l.prog.Slots[slot].Ext; e >= 0 && l.ext[e].kind == extResident {
		return l.ext[e].ref, true
	}
	return 0, false
}

// detach copies operands of a step to temporaries if they are in device memory that the step writes.
func (l *lowerer) detach() {
	steps := l.prog.Steps
	l.prog.Steps = nil
	for _, s := range steps {
		moved := make(map[int]int)
		for _, o := range s.Out {
			to, ok := l.residentOf(o.Slot)
			if !ok {
				continue
			}
			eachOperand(&s, func(x *driver.Operand) {
				from, ok := l.residentOf(x.Slot)
				if !ok || from != to || x.Slot == o.Slot {
					return
				}
				at, done := moved[x.Slot]
				if !done {
					slot := l.prog.Slots[x.Slot]
					slot.Written = true
					at = l.add(slot, nil)
					moved[x.Slot] = at
					in, out := driver.Operand{Slot: x.Slot, Type: x.Type, N: x.N}, driver.Operand{Slot: at, Type: x.Type, N: x.N}
					l.prog.Steps = append(l.prog.Steps, driver.Step{
						Post: &driver.Fused{In: []driver.Operand{in}, Out: []int{0}, Shape: op.Shape{x.N}}, Out: []driver.Operand{out}})
				}
				if s.Kernel != nil {
					for i, b := range s.Kernel.Bind {
						if b == x.Slot {
							s.Kernel.Bind[i] = at
						}
					}
				}
				x.Slot = at
			})
		}
		l.prog.Steps = append(l.prog.Steps, s)
	}
}
