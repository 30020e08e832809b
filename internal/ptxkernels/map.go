package ptxkernels

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/ptx"
)

// Memory bandwidth limits elementwise programs, and the portable kernels reach it for elements of
// four bytes and little arithmetic. The kernels here read elements of two bytes directly, eight
// with one access. If there is more arithmetic, a thread processes several vectors, so that address
// computations cost less and loads overlap with arithmetic.

const (
	mapThreads  = 128
	mapVectors  = 2  // vectors of a thread
	mapHeavy    = 8  // values computed for an element from which on these kernels are faster
	mapHeaviest = 40 // values computed for an element from which on twice as many vectors are faster
)

// planMap plans an elementwise program that uses 16-bit floats or computes many values for each
// element.
func planMap(r *portable.Request) (*Plan, error) {
	if r.Post == nil || len(r.Out) == 0 || len(r.Out) != len(r.Post.Exprs) {
		return nil, unsupported("no elementwise program")
	}
	n, err := r.Out[0].Shape.Size()
	if err != nil {
		return nil, err
	}
	if n > maxMapElements {
		return nil, unsupported("%d elements", n)
	}
	short := false
	for _, o := range r.Out {
		if size(o.Shape) != n {
			return nil, unsupported("results of different sizes")
		}
		short = short || o.Type.Size() == 2
	}
	for _, in := range r.Post.In {
		if err := portable.CheckBroadcast(in, n); err != nil {
			return nil, err
		}
		short = short || in.Type.Size() == 2
	}
	for _, x := range r.Post.Exprs {
		list, _ := ir.Flatten(x)
		for _, v := range list {
			if v.Code == ir.Param || v.Code == ir.Arg && (v.Index >= len(r.Post.In) || v.Type != irhook.Register(uint8(r.Post.In[v.Index].Type))) {
				return nil, unsupported("an expression of operand %d, of %d", v.Index, len(r.Post.In))
			}
		}
	}
	if n == 0 {
		return &Plan{}, nil
	}
	e, err := newEpilogue(r, r.Post, 0)
	if err != nil {
		return nil, err
	}
	s := mapSpec{key: e.key, wide: 4, turns: mapVectors}
	switch computed := e.exprs.Len(); {
	case short:
		s.wide = 8
	case computed < mapHeavy && n%s.wide != 0 && n >= mapOdd:
	case computed < mapHeavy || n < mapBusy:
		return nil, unsupported("an elementwise program that computes little")
	case computed >= mapHeaviest:
		s.turns *= 2
	}
	args := append([]Arg{word(uint32(n))}, e.args()...)
	plan := func(s mapSpec) *Plan {
		return &Plan{Stages: []Stage{{Kernel: mapKernel(s, e), Grid: [3]uint32{uint32(s.blocks(n)), 1, 1}, Args: args, Zero: -1}}, Variant: s.name()}
	}
	p := plan(s)
	s.wide, s.turns = 1, 4*mapVectors
	p.Anywhere = plan(s)
	return p, nil
}

const (
	// maxMapElements leaves room for the threads beyond the end.
	maxMapElements = 1<<31 - 1 - 8*2*mapVectors*mapThreads
	// mapBusy is the number of elements from which on all multiprocessors are busy although each
	// thread processes several vectors.
	mapBusy = 1 << 20
	// mapOdd is the number of elements from which on programs that compute little are faster here,
	// if the elements are not whole vectors.
	mapOdd = 1 << 17
)

// mapSpec holds the parameters that specialise a kernel of an elementwise program.
type mapSpec struct {
	key   string // key of the epilogue
	wide  int    // number of elements in a vector
	turns int    // vectors of a thread
}

// block is the maximum number of elements of a block.
func (s mapSpec) block() int { return s.wide * s.turns * mapThreads }

// blocks returns the number of blocks for n elements.
func (s mapSpec) blocks(n int) int {
	left := n % s.block()
	return n/s.block() + ceilDiv(left/s.wide+left%s.wide, mapThreads)
}

func (s mapSpec) name() string {
	switch {
	case s.wide == 1:
		return "elements"
	case s.wide == 8:
		return "short"
	case s.turns > mapVectors:
		return "heaviest"
	}
	return "heavy"
}

var mapKernels kernelCache[mapSpec]

// mapKernel returns the kernel of an elementwise program.
func mapKernel(s mapSpec, e *epilogue) *Kernel {
	return mapKernels.of(s, func() *Kernel {
		return &Kernel{Name: "map", Target: ptx.SM70, Block: [3]uint32{mapThreads, 1, 1}, Build: func(k *ptx.Kernel) { buildMap(k, s, e) }}
	})
}

// buildMap writes the kernel. Most blocks process whole vectors in all threads and iterations; the
// blocks after them process the tail, with one vector or element for each thread. Blocks of the
// tail have the lowest indices, because the others then hide their latency.
func buildMap(k *ptx.Kernel, spec mapSpec, e *epilogue) {
	k.Block(mapThreads, 1, 1)
	n := ptx.Param[ptx.U32](k, "n")
	s := e.sink(k)
	turn := mapThreads * spec.wide
	none := make([]ptx.F32, spec.wide)
	tid, block := k.Special(ptx.TidX), k.Special(ptx.CtaidX)
	whole := n.Div(ptx.N(spec.block()))
	early := k.Special(ptx.NctaidX).Sub(whole)
	k.IfElse(block.Ge(early), func() {
		first := block.Sub(early).MulAdd(ptx.N(spec.block()), tid.Mul(ptx.N(spec.wide)))
		// All loads come before the first store, because the compiler must assume that a store
		// changes the loaded memory.
		read := make([][][]ptx.U32, spec.turns)
		for t := range read {
			read[t] = s.operands(spot{i: first, plus: t * turn}, none)
		}
		for t := range read {
			s.keep(spot{i: first, plus: t * turn}, s.results(read[t]))
		}
	}, func() {
		from := whole.Mul(ptx.N(spec.block()))
		vectors, i := n.Sub(from).Div(ptx.N(spec.wide)), block.MulAdd(ptx.N(mapThreads), tid)
		k.IfElse(i.Lt(vectors), func() { s.set(i.MulAdd(ptx.N(spec.wide), from), none...) }, func() {
			at := vectors.MulAdd(ptx.N(spec.wide-1), from).Add(i)
			k.If(at.Lt(n), func() { s.set(at, ptx.F(0)) })
		})
	})
}
