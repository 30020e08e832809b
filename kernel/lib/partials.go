//go:build !js || !nowebgpu

package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// partKind is what the result needs to know of a part of a row: see [fact].
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

// words returns how many words that is.
func (k partKind) words() int {
	if k.keyed {
		return k.numbers + 1
	}
	return k.numbers
}

// rowParts makes of each part of a row what the result needs to know of it.
var rowParts = newMaker("row_parts", func(b *kernel.Builder, p *rowParams, s rowSpec, _ *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	x := s.input(b, "x")
	k := s.partials(b, p)
	r := newRow(b, t, p, &s, x)
	of := r.reduceLocal(s.Part)
	b.If(r.is.And(t.lane.Eq(kernel.U(0))), func() { k.set(r.piece, of) })
})

// combinedParts makes what is known of rows from what is known of their parts.
var combinedParts = newMaker("row_facts", func(b *kernel.Builder, p *rowParams, s rowSpec, _ *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	from := s.partials(b, p)
	to := &partials{kind: s.Part, all: b.U32(&p.Rows)}
	to.declare(b, "row", kernel.Output[kernel.U32], kernel.Output[kernel.F32])
	t.number = t.number.Mul(b.U32(&p.Parts))
	r := placePart(b, t, p, &s, raggedInput{})
	of := from.ofRow(r)
	b.If(r.is.And(t.lane.Eq(kernel.U(0))), func() { to.set(r.number, of) })
})

// partial is what is known of some elements of a row: of a softmax the key of the
// greatest one and the sum of e**(x-greatest), of an RMS norm the sum of squares, and of a
// layer norm how many they are, their mean, and the sum of the squares of the distances
// from it.
type partial struct {
	key     kernel.U32
	numbers []kernel.F32
	count   kernel.F32
}

// reduceLocal returns what is known of the row, or the part of one, when its elements have been looked at.
func (r *row) reduceLocal(kind partKind) partial {
	switch kind.name {
	case "softmax":
		key, sum := r.exponentials(false)
		return partial{key: key, numbers: []kernel.F32{sum}}
	case "norm_l2":
		return partial{numbers: []kernel.F32{r.t.sum(r.squares())}}
	}
	count := r.elements(r.piece).Max(kernel.F(1)) // a part may be empty
	if r.Each > 0 {
		mean, squares := r.moments(count)
		return partial{numbers: []kernel.F32{mean, squares}}
	}
	mean, squares := r.readMoments(r.last.Sub(r.first), count)
	return partial{numbers: []kernel.F32{mean, squares}}
}

// combine returns what is known of what two facts are of.
func (kind partKind) combine(x, y partial) partial {
	switch kind.name {
	case "softmax":
		k := x.key.Max(y.key)
		// Who has -Inf alone adds nothing to what has something else.
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

// groupReduce returns what is known of what the lanes of a team know something of, in each of them.
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

// partials is what is known of parts of rows.
type partials struct {
	kind partKind
	// What one launch leaves to another, of parts or of rows that are joined. Of numbers one is
	// there for all, then the next.
	keys    kernel.Buffer[kernel.U32]
	numbers kernel.Buffer[kernel.F32]
	all     kernel.U32 // how many there are
	joined  bool
	// What workgroups of a flow tell each other: the words of a part stand together, and
	// are 0 until they are known.
	singlePass bool
	words      kernel.Atomics[kernel.U32]
}

// partials declares what is known of parts; nil if rows have none.
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

// declare declares buffers for what is known of each of something: see scratch.
func (k *partials) declare(b *kernel.Builder, of string, keys func(*kernel.Builder, string) kernel.Buffer[kernel.U32], numbers func(*kernel.Builder, string) kernel.Buffer[kernel.F32]) {
	if k.kind.keyed {
		k.keys = keys(b, of+"_keys")
	}
	k.numbers = numbers(b, of+"_numbers")
}

// scratch adds those buffers for n of them.
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

// place returns where number n of what there is for i is.
func (k *partials) place(i kernel.U32, n int) kernel.U32 {
	return k.all.Mul(kernel.U(uint32(n))).Add(i)
}

// ofRow returns what is known of a row from what is known of its parts, in every lane of
// the team.
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
	if k.singlePass { // a lane has a part, or none
		b.If(first.Lt(last), func() { set(of(first, k.spinWait(r, first))) })
		return k.kind.groupReduce(r.t, get())
	}
	b.ForStep(first, last, kernel.U(uint32(r.t.GroupLanes)), func(piece kernel.U32) {
		set(k.kind.combine(get(), of(piece, k.at(piece))))
	})
	return k.kind.groupReduce(r.t, get())
}
