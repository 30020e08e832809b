package devicetest

import (
	"slices"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
)

// state is the state of a sequential interpreter of a recording: the values and the arrays
// on the device after the nodes that have run so far. The interpreter runs one node at a
// time in recorded order, and does not fuse, move or drop any.
type state struct {
	values []known
	memory []known
}

// run runs a node; compute returns the results of an operation.
func (s *state) run(n *node, compute func(*Case, []known) ([]known, error)) error {
	switch n.kind {
	case input:
		s.values = append(s.values, exactly(n.source))
	case used:
		s.values = append(s.values, s.memory[n.buf].clone())
	case stored:
		v, m := &s.values[n.args[0]], &s.memory[n.buf]
		copy(m.data[n.off:], v.data)
		copy(m.ranges[n.off:], v.ranges)
	case launched:
		doubled, even := relayed(&s.values[n.args[0]], &s.values[n.args[1]])
		s.values = append(s.values, doubled, even)
	default:
		out, err := compute(&n.c, operands(n.args, s.values))
		if err != nil {
			return err
		}
		s.values = append(s.values, out...)
	}
	return nil
}

// clone returns a copy that stores to v do not change.
func (v *known) clone() known {
	c := *v
	c.data, c.ranges = slices.Clone(v.data), slices.Clone(v.ranges)
	return c
}

// play interprets the nodes of a graph with the inputs and arrays that source and buffers return.
func (r *graph) play(source func(*node) Tensor, compute func(*Case, []known) ([]known, error)) (*state, error) {
	s := new(state)
	for _, t := range r.buffers {
		v := exactly(t)
		s.memory = append(s.memory, v.clone())
	}
	for i := range r.nodes {
		n := r.nodes[i]
		if n.kind == input {
			n.source = source(&n)
		}
		if err := s.run(&n, compute); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// own returns the input of a node unchanged.
func own(n *node) Tensor { return n.source }

// relay is the kernel in graphs. It doubles y, and copies the elements of x at even places to z; the other elements
// of z stay 0. All of its results are exact.
var relay = kernel.New("relay", func(b *kernel.Builder, _ *struct{}) {
	b.LocalSize(64, 1, 1)
	x, y, z := kernel.Input[kernel.F32](b, "x"), kernel.InOut[kernel.F32](b, "y"), kernel.Output[kernel.F32](b, "z")
	i := b.Index()
	b.If(i.Lt(x.Len()), func() {
		y.Set(i, y.At(i).Mul(kernel.F(2)))
		b.If(i.Mod(kernel.U(2)).Eq(kernel.U(0)), func() { z.Set(i, x.At(i)) })
	})
})

// relayed returns the results of relay.
func relayed(x, y *known) (doubled, even known) {
	doubled, even = y.clone(), x.clone()
	for i := range doubled.data {
		doubled.data[i] *= 2
		doubled.ranges[i].Lo *= 2
		doubled.ranges[i].Hi *= 2
	}
	for i := 1; i < len(even.data); i += 2 {
		even.data[i], even.ranges[i] = 0, ir.Point(0)
	}
	return doubled, even
}
