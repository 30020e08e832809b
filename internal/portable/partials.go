//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// partKind describes the partials of a row operation: see [partial].
type partKind struct {
	name    string
	keyed   bool
	counted bool
	numbers int
}

var partKinds = map[*op.Operation]partKind{
	op.RMSNorm:    {name: "norm_l2", numbers: 1},
	op.LayerNorm:  {name: "var", counted: true, numbers: 2},
	op.Softmax:    {name: "softmax", keyed: true, numbers: 1},
	op.LogSoftmax: {name: "softmax", keyed: true, numbers: 1},
}

// words returns the number of words of a partial.
func (k partKind) words() int {
	if k.keyed {
		return k.numbers + 1
	}
	return k.numbers
}

// rowParts computes the partial of each part of a row.
var rowParts = maker[rowParams, rowSpec]{name: "row_parts", build: func(b *kernel.Builder, p *rowParams, s rowSpec, _ *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	x := s.input(b, "x")
	k := s.partials(b, p)
	r := newRow(b, t, p, &s, x)
	of := r.reduceLocal(s.Part)
	b.If(r.is.And(t.lane.Eq(kernel.U(0))), func() { k.set(r.piece, of) })
}}

// combinedParts combines the partials of the parts of each row.
var combinedParts = maker[rowParams, rowSpec]{name: "row_facts", build: func(b *kernel.Builder, p *rowParams, s rowSpec, _ *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	from := s.partials(b, p)
	to := &partials{kind: s.Part, all: b.U32(&p.Rows)}
	to.declare(b, "row", kernel.Output[kernel.U32], kernel.Output[kernel.F32])
	t.number = t.number.Mul(b.U32(&p.Parts))
	r := placePart(b, t, p, &s, raggedInput{})
	of := from.ofRow(r)
	b.If(r.is.And(t.lane.Eq(kernel.U(0))), func() { to.set(r.number, of) })
}}

// partial is the result of reducing some elements of a row. For a softmax it is the key of
// the greatest element and the sum of e**(x-greatest), for an RMS norm the sum of squares,
// and for a layer norm the number of elements, their mean, and the sum of squared
// distances from the mean.
type partial struct {
	key     kernel.U32
	numbers []kernel.F32
	count   kernel.F32
}

// reduceLocal reduces the elements of the row, or of the part of a row, of a lane group.
func (r *row) reduceLocal(kind partKind) partial {
	switch kind.name {
	case "softmax":
		key, sum := r.exponentials(false)
		return partial{key: key, numbers: []kernel.F32{sum}}
	case "norm_l2":
		return partial{numbers: []kernel.F32{r.t.sum(r.squares())}}
	}
	count := r.elements(r.piece).Max(kernel.F(1)) // a part may have no elements
	if r.Each > 0 {
		mean, squares := r.moments(count)
		return partial{numbers: []kernel.F32{mean, squares}}
	}
	mean, squares := r.readMoments(r.last.Sub(r.first), count)
	return partial{numbers: []kernel.F32{mean, squares}}
}

// combine returns the partial of the union of two sets of elements.
func (kind partKind) combine(x, y partial) partial {
	switch kind.name {
	case "softmax":
		k := x.key.Max(y.key)
		// A partial of -Inf elements only does not change the other partial.
		greatest := numberOf(k.Max(kernel.U(lowestKey)))
		down := func(f partial) kernel.F32 { return f.numbers[0].Mul(numberOf(f.key).Sub(greatest).Exp()) }
		return partial{key: k, numbers: []kernel.F32{down(x).Add(down(y))}}
	case "norm_l2":
		return partial{numbers: []kernel.F32{x.numbers[0].Add(y.numbers[0])}}
	}
	n := x.count.Add(y.count)
	of := n.Max(kernel.F(1))
	share, d := y.count.Div(of), y.numbers[0].Sub(x.numbers[0])
	return partial{count: n, numbers: []kernel.F32{
		y.numbers[0].Fma(share, x.numbers[0].Mul(x.count.Div(of))),
		d.Mul(d.Mul(x.count.Mul(share))).Add(x.numbers[1].Add(y.numbers[1])),
	}}
}

// groupReduce combines the partials of the lanes of a lane group, and returns the result in each lane.
func (kind partKind) groupReduce(t *laneGroup, f partial) partial {
	switch kind.name {
	case "softmax":
		key, sum := t.addExponentials(f.key, f.numbers[0])
		return partial{key: key, numbers: []kernel.F32{sum}}
	case "norm_l2":
		return partial{numbers: []kernel.F32{t.sum(f.numbers[0])}}
	}
	mean, squares := t.addMoments(f.count, f.numbers[0], f.numbers[1])
	return partial{numbers: []kernel.F32{mean, squares}}
}

// partials are the partials of the parts of all rows, in memory.
type partials struct {
	kind partKind
	// Written by one launch for the next, for parts or for combined rows: the first number of
	// all parts, then the second number of all parts.
	keys    kernel.Buffer[kernel.U32]
	numbers kernel.Buffer[kernel.F32]
	all     kernel.U32 // number of partials
	joined  bool
	// In a single pass with look-back, workgroups publish partials in these words. The words
	// of a part are consecutive, and 0 until they are published.
	singlePass bool
	words      kernel.Atomics[kernel.U32]
}

// partials declares the buffers of partials. It returns nil if rows have no parts.
func (s *rowSpec) partials(b *kernel.Builder, p *rowParams) *partials {
	if !s.Split {
		return nil
	}
	k := &partials{kind: s.Part, singlePass: s.LookBack > 0, joined: s.Joined, all: b.U32(&p.Rows)}
	if !s.Joined {
		k.all = k.all.Mul(b.U32(&p.Parts))
	}
	switch {
	case s.LookBack > 0:
		k.words = kernel.Atomic[kernel.U32](b, "part_words")
	case s.Parts:
		k.declare(b, "part", kernel.Output[kernel.U32], kernel.Output[kernel.F32])
	case s.Joined:
		k.declare(b, "row", kernel.Input[kernel.U32], kernel.Input[kernel.F32])
	default:
		k.declare(b, "part", kernel.Input[kernel.U32], kernel.Input[kernel.F32])
	}
	return k
}

// declare declares the buffers that scratch allocates.
func (k *partials) declare(b *kernel.Builder, of string, keys func(*kernel.Builder, string) kernel.Buffer[kernel.U32], numbers func(*kernel.Builder, string) kernel.Buffer[kernel.F32]) {
	if k.kind.keyed {
		k.keys = keys(b, of+"_keys")
	}
	k.numbers = numbers(b, of+"_numbers")
}

// scratch allocates the buffers for n partials.
func (kind partKind) scratch(p *planner, n int) (rs []Ref) {
	if kind.keyed {
		rs = append(rs, p.scratch(n))
	}
	return append(rs, p.scratch(kind.numbers*n))
}

func (k *partials) at(i kernel.U32) (f partial) {
	if k.kind.keyed {
		f.key = k.keys.At(i)
	}
	for n := range k.kind.numbers {
		f.numbers = append(f.numbers, k.numbers.At(k.place(i, n)))
	}
	return f
}

func (k *partials) set(i kernel.U32, f partial) {
	if k.kind.keyed {
		k.keys.Set(i, f.key)
	}
	for n, v := range f.numbers {
		k.numbers.Set(k.place(i, n), v)
	}
}

// place returns the index of number n of partial i.
func (k *partials) place(i kernel.U32, n int) kernel.U32 {
	return k.all.Mul(kernel.U(uint32(n))).Add(i)
}

// ofRow combines the partials of the parts of a row, and returns the result in every lane
// of the lane group.
func (k *partials) ofRow(r *row) partial {
	if k.joined {
		return k.at(r.number)
	}
	b, zero, first, last := r.t.b, kernel.F(0), r.pieces[0].Add(r.t.lane), r.pieces[1]
	key, count, numbers := kernel.NewVar(b, "key", kernel.U(ninfKey)), kernel.NewVar(b, "count", zero), kernel.NewVars(b, "number", k.kind.numbers, zero)
	get := func() partial { return partial{key.Get(), values(numbers), count.Get()} }
	set := func(f partial) {
		if k.kind.keyed {
			key.Set(f.key)
		}
		if k.kind.counted {
			count.Set(f.count)
		}
		for i, v := range f.numbers {
			numbers[i].Set(v)
		}
	}
	of := func(piece kernel.U32, f partial) partial {
		if k.kind.counted {
			f.count = r.elements(piece)
		}
		return f
	}
	if k.singlePass { // with look-back, a lane group has at least as many lanes as a row has parts
		b.If(first.Lt(last), func() { set(of(first, k.spinWait(r, first))) })
		return k.kind.groupReduce(r.t, get())
	}
	b.ForStep(first, last, kernel.U(uint32(r.t.GroupLanes)), func(piece kernel.U32) {
		set(k.kind.combine(get(), of(piece, k.at(piece))))
	})
	return k.kind.groupReduce(r.t, get())
}
