package ptxkernels

import (
	"math"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

func init() { register(planAttention, op.Attention) }

// attentionCut describes how queries become rows of matrices. A matrix has the rows of one head of
// queries. If packed, it has the rows of all query heads that share a head of keys; these rows are
// contiguous.
type attentionCut struct {
	op.AttentionSizes
	causal  bool
	typ     op.DType
	packed  bool
	heads   int // matrices
	rows    int // of each matrix
	group   int // matrices that share a head of keys
	to      *epilogue
	strided attentionStrided
	places  [4]portable.AttentionPlace // of q, k, v and the result, if strided
}

// pack sets packed and computes heads, rows and group. It ignores packed if each head of queries
// has its own head of keys.
func (c *attentionCut) pack(packed bool) {
	share := c.Heads / c.KVHeads
	c.packed = packed && share > 1
	c.heads, c.rows, c.group = c.Batch*c.Heads, c.Tq, share
	if c.packed {
		c.heads, c.rows, c.group = c.Batch*c.KVHeads, c.Tq*share, 1
	}
}

// padded returns the width of a head in the tiles of the kernels, or 0 if the head is too large.
func (c *attentionCut) padded() int {
	for _, n := range []int{64, 128, 256} {
		if c.D <= n {
			return n
		}
	}
	return 0
}

// planAttention plans attention. The kernels round the weights to the type of the operands before
// they multiply them by the values.
func planAttention(r *portable.Request, d *Device) (*Plan, error) {
	for i := op.AttentionLengths; i < len(r.In); i++ {
		if r.In[i].Shape != nil {
			return nil, unsupported("attention with %s", op.Attention.Inputs()[i])
		}
	}
	s, err := op.AttentionOf(&r.Attrs, []op.Shape{r.In[0].Shape, r.In[1].Shape, r.In[2].Shape})
	if err != nil {
		return nil, err
	}
	c := &attentionCut{AttentionSizes: s, causal: op.AttentionOptsOf(&r.Attrs).Causal, typ: r.In[0].Type}
	switch {
	case !s.Plain() || r.In[op.AttentionK].Type != r.In[op.AttentionQ].Type:
		return nil, unsupported("attention with a window, bounded scores or operands that differ")
	case d.Target < ptx.SM80:
		return nil, unsupported("products of %v", d.Target)
	case c.typ != op.F16 && c.typ != op.BF16 && c.typ != op.F32:
		return nil, unsupported("attention of %v", c.typ)
	case s.D*c.typ.Size()%16 != 0 || c.padded() == 0: // rows are copied in pieces of 16 bytes
		return nil, unsupported("heads of %d elements", s.D)
	case !(s.Scale > 0) || math.IsInf(float64(s.Scale), 0): // the greatest score belongs to the greatest product
		return nil, unsupported("a scale of %v", s.Scale)
	}
	if c.to, err = finish(r, s.D); err != nil {
		return nil, err
	}
	if err := c.lay(r); err != nil {
		return nil, err
	}
	return c.choose(d)
}

// attentionTiles are the tiles of the kernel that multiplies with wgmma, by the width of a head. They
// were the fastest of many on an H200: see docs/measurements/gpu.md. The first row that fits decides.
var attentionTiles = []struct {
	head, minKeys        int
	onlyFull             bool // only without a causal mask
	groups, stages, keys int
}{
	// The results need half the registers of a head of 128, so there is room for a third warpgroup.
	{head: 64, groups: 3, stages: 3, keys: 128},
	{head: 128, minKeys: 4096, onlyFull: true, groups: 2, stages: 2, keys: 176},
	{head: 128, groups: 2, stages: 2, keys: 128},
	{head: 192, groups: 2, stages: 2, keys: 112},
	{head: 256, groups: 2, stages: 2, keys: 80},
}

// attentionMMATiles are the tiles of the kernel that multiplies with mma, by the number of queries that share a
// head of keys: at least minQueries, and up to maxQueries unless it is 0. The first row that fits decides.
var attentionMMATiles = []struct {
	wide, float32s         bool // only for heads of more than 128 elements, only for float32
	minQueries, maxQueries int
	rows, sides, keys      int
}{
	{wide: true, maxQueries: mmaFewQueries, rows: 1, sides: 2, keys: 32},
	{maxQueries: mmaFewQueries, rows: 1, sides: 4, keys: 64},
	{wide: true, float32s: true, rows: 4, sides: 1, keys: 16},
	{wide: true, rows: 4, sides: 1, keys: 32},
	{float32s: true, minQueries: minWgmmaQueries, rows: 8, sides: 1, keys: 32},
	{float32s: true, rows: 4, sides: 1, keys: 32},
	{rows: 4, sides: 1, keys: 64},
}

const (
	mmaFewQueries   = 16 // queries up to which warps share them and divide the keys
	minWgmmaQueries = 65 // queries from which on warpgroups are faster
)

// attentionMMATile returns the tile for heads of the given padded width.
func attentionMMATile(t op.DType, head, queries int) attentionMMA {
	for _, r := range attentionMMATiles {
		if (!r.wide || head > 128) && (!r.float32s || t == op.F32) && queries >= r.minQueries && (r.maxQueries == 0 || queries <= r.maxQueries) {
			return attentionMMA{Rows: r.rows, Sides: r.sides, Keys: r.keys}
		}
	}
	panic("the last row of attentionMMATiles fits all requests")
}

// choose returns the fastest plan.
func (c *attentionCut) choose(d *Device) (*Plan, error) {
	queries := c.Tq * (c.Heads / c.KVHeads)
	if w, ok := c.wgmma(d); ok && queries >= minWgmmaQueries && c.fills(w.queries(), d) {
		return c.planWgmma(d, w), nil
	}
	return c.planMMA(d, attentionMMATile(c.typ, c.padded(), queries))
}

// args appends the arguments that follow the arrays.
func (c *attentionCut) args(args ...Arg) []Arg {
	scale := float32(float64(c.Scale) * math.Log2E)
	args = append(args, word(uint32(c.rows)), word(uint32(c.Tq)), word(uint32(c.Tk)), word(uint32(c.group)), word(uint32(c.D/2)), word(math.Float32bits(scale)))
	return append(args, c.steps()...)
}

// planMMA plans the kernel whose warps multiply with mma; attentionMMATile returns s. If
// there are too few tiles to fill the device, blocks divide the keys (split-K), and a second stage
// merges the partials.
func (c *attentionCut) planMMA(d *Device, s attentionMMA) (*Plan, error) {
	s.Type, s.Causal, s.Head, s.Strided = c.typ, c.causal, c.padded(), c.strided
	if s.shared() > d.Shared {
		return nil, unsupported("%d bytes of shared memory", s.shared())
	}
	c.pack(c.Tq < 16*s.Rows)
	s.Packed = c.packed
	tiles := (c.rows-1)/(16*s.Rows) + 1
	splits := 1
	per := max((c.Tk-1)/s.Keys+1, 1) * s.Keys
	if largest := c.Tk / (4 * s.Keys); largest > 1 { // a split has 4 tiles at least
		want := (2*d.Multiprocessors - 1) / (c.heads * tiles)
		if want > 1 {
			splits = min(want, largest, 64)
			per = ((c.Tk-1)/s.Keys/splits + 1) * s.Keys
			splits = (c.Tk-1)/per + 1
		}
	}
	all := c.heads * c.rows
	if splits > 1 && all*c.D > math.MaxInt32/splits {
		splits = 1
	}
	s.Split = splits > 1
	p := &Plan{Variant: "mma"}
	if s.Split {
		p.Variant = "mma split"
		p.Scratch = []int64{4 * int64(splits) * int64(all) * int64(c.D), 8 * int64(splits) * int64(all)}
		args := append(c.args(c.operand(0), c.operand(1), c.operand(2), scratch(0), scratch(1)), word(uint32(tiles)), word(uint32(per)))
		p.Stages = append(p.Stages, Stage{Kernel: attentionKernel(s, nil, "attention_mma", ptx.SM80, s.threads(), s.build),
			Grid: [3]uint32{uint32(c.heads * tiles), uint32(splits), 1}, Args: args, Zero: -1})
		m := attentionMerge{Type: c.typ, Causal: c.causal, Packed: c.packed, Head: s.Head, Strided: c.strided}
		args = append(c.args(c.operand(0), c.operand(1), c.operand(2), scratch(0), scratch(1)), word(uint32(all)), word(uint32(splits)))
		args = append(args, c.to.args()...)
		p.Stages = append(p.Stages, Stage{Kernel: attentionKernel(m, c.to, "attention_merge", ptx.SM80, mergeThreads, m.build),
			Grid: [3]uint32{uint32((all-1)/(mergeThreads/32) + 1), 1, 1}, Args: args, Zero: -1})
		return p, nil
	}
	args := append(c.args(c.operand(0), c.operand(1), c.operand(2)), word(uint32(tiles)))
	p.Stages = []Stage{{Kernel: attentionKernel(s, c.to, "attention_mma", ptx.SM80, s.threads(), s.build),
		Grid: [3]uint32{uint32(c.heads * tiles), 1, 1}, Args: append(args, c.to.args()...), Zero: -1}}
	return p, nil
}

// wgmma returns the fastest kernel that multiplies with wgmma, and whether the device and the
// operands support it.
func (c *attentionCut) wgmma(d *Device) (attentionWgmma, bool) {
	head := (c.D + attentionSlice - 1) &^ (attentionSlice - 1)
	if c.typ == op.F32 || !c.mapped() {
		return attentionWgmma{}, false
	}
	for _, r := range attentionTiles {
		if r.head == head && c.Tk >= r.minKeys && !(r.onlyFull && c.causal) {
			s := attentionWgmma{Type: c.typ, Causal: c.causal, Strided: c.strided, Head: head, Groups: r.groups, Stages: r.stages, Keys: r.keys, Turns: true}
			// If there are more queries than keys, some queries see no keys, which the loops over tiles do not support.
			return s, d.Target == ptx.SM90a && s.shared() <= d.Shared && c.Tk > 0 && (!c.causal || c.Tq <= c.Tk)
		}
	}
	return attentionWgmma{}, false
}

// fills reports whether tiles of the given number of queries keep the multiprocessors busy. If it
// is false, it is faster to divide the keys among blocks too.
func (c *attentionCut) fills(queries int, d *Device) bool {
	tiles := ((c.Tq-1)/queries + 1) * c.Batch * c.Heads
	waves := (tiles-1)/d.Multiprocessors + 1
	return 5*tiles >= 2*waves*d.Multiprocessors || c.Tk < 1024
}

// l2Share is the number of bytes of keys and values that blocks use at the same time, so that they
// stay in the L2 cache. Devices of sm_90 have an L2 cache of 50 MiB or more.
const l2Share = 32 << 20

// planWgmma plans the kernel whose warpgroups multiply with wgmma.
func (c *attentionCut) planWgmma(d *Device, s attentionWgmma) *Plan {
	c.pack(false)
	tiles := (c.rows-1)/s.queries() + 1
	together := min(c.heads, int(max(1, l2Share/(4*int64(c.Tk)*int64(c.D))))*c.group)
	matrix := func(i, rows, heads, tile int) Arg {
		a := c.operand(i)
		t := &Tiles{Type: c.typ, Size: []int{c.D, rows, c.Batch * heads}, Stride: []int{2 * c.D, 2 * c.D * rows},
			Tile: []int{attentionSlice, tile, 1}, Swizzle: ptx.Swizzle128}
		if c.strided.Operands {
			p := c.places[i]
			t.Size, t.Stride, t.Tile = []int{c.D, rows, heads, c.Batch}, []int{2 * p.Row, 2 * p.Head, 2 * p.Batch}, append(t.Tile, 1)
		}
		a.Kind, a.Tiles = Map, t
		return a
	}
	args := c.args(matrix(0, c.rows, c.Heads, s.queries()), matrix(1, c.Tk, c.KVHeads, s.Keys), matrix(2, c.Tk, c.KVHeads, s.Keys),
		c.operand(0), c.operand(1), c.operand(2), scratch(0))
	args = append(args, word(uint32(tiles)), word(uint32(c.heads)), word(uint32(together)))
	args = append(args, c.to.args()...)
	blocks, zero := min(tiles*c.heads, d.Multiprocessors), -1
	if s.Causal && blocks < tiles*c.heads { // a counter assigns the next tile to the block that asks for it
		zero = 0
	}
	return &Plan{Variant: "wgmma", Scratch: []int64{4}, Stages: []Stage{{Kernel: attentionKernel(s, c.to, "attention_wgmma", ptx.SM90a, s.threads(), s.build),
		Grid: [3]uint32{uint32(blocks), 1, 1}, Args: args, Zero: zero}}}
}

var attentionKernels kernelCache[attentionSpec]

// attentionSpec holds the parameters that specialise a kernel.
type attentionSpec struct {
	kernel any // attentionMMA, attentionWgmma or attentionMerge
	key    string
}

// attentionKernel returns the kernel of a specialisation, and builds it with build on first use.
func attentionKernel(spec any, to *epilogue, name string, t ptx.Target, threads int, build func(k *ptx.Kernel, to *epilogue)) *Kernel {
	key := attentionSpec{kernel: spec}
	if to != nil {
		key.key = to.key
	}
	return attentionKernels.of(key, func() *Kernel {
		return &Kernel{Name: name, Target: t, Block: [3]uint32{uint32(threads), 1, 1}, Build: func(k *ptx.Kernel) { build(k, to) }}
	})
}
