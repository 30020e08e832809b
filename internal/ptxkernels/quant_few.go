package ptxkernels

import (
	"fmt"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// quantFewSpec is a product of a few rows of activations with a quantised matrix. The kernel reads
// the matrix once. The grid is persistent, and a warp multiplies 16 rows of the matrix at a time.
// Each warp fills and reads its own ring of stages in shared memory. Shared memory also holds the
// activations, each as three bf16.
type quantFewSpec struct {
	Type, Blocks op.DType
	M            int  // rows of activations
	Room         int  // activations of a row that fit into shared memory
	Short        bool // with Ring: the last group of a row is incomplete
	Whole        bool // rows of the matrix are multiples of 256
	Warps        int
	SharingWarps int // warps that divide 16 rows along K: 1 or all
	Groups       int // groups (see blockGroup) of each row in a stage
	Stages       int
	Tensor       bool // stages are tiles of a tensor map; rows must be multiples of 16 bytes
	Digits       int  // digits of an activation (see digitDecoder), or 0 for bf16
	Full         bool // all stages have Groups groups of a row
	RowStride    int  // row stride of the 16 rows: 2 if rows begin alternately at and 2 bytes after multiples of 4, so that all rows of a block begin alike; else 1
	Ring         bool // all warps of a block share the stages; each multiplies up to Groups groups of a stage
	Width        int  // with Ring: groups of a row in a stage
	Fill         int  // with Ring: warps that fill stages
	Tall         int  // with Ring: rows of a stage, in units of 16; more than 1 if rows are short, and then each group has a warp
	Solid        bool // with Ring: the rows of a stage are contiguous as in the matrix, and one copy loads them
	Bulk         bool // not with Tensor: one bulk copy loads each row of a stage, from a multiple of 16 bytes on
	Split        int  // with Ring: blocks that divide rows along K, because a row's activations do not fit; else 1
	Claim        int  // with Ring: rows that a block claims at a time
	Small        bool // the GPU has little shared memory
	Bias         bool
	Key          string // key of the epilogue
}

const (
	fewRows   = 16 // rows of the matrix that a warp multiplies
	pieces    = 3  // number of bf16 whose sum is a float32
	tileCols  = 8  // pieces of activations that one mma takes
	partPitch = 20 // column stride of a partial, in floats, without bank conflicts
	maxFew    = 8
	fewEvery  = 4 // a team adds its partials after this many times 16 rows, if they are small
)

func (s *quantFewSpec) String() string {
	how := "rows"
	if s.Tensor {
		how = "tiles"
	}
	if s.Bulk {
		how = "bulk"
	}
	if s.Digits > 0 {
		how = fmt.Sprintf("%s_d%d", how, s.Digits)
	}
	if s.Split > 1 {
		how = fmt.Sprintf("%s_p%d", how, s.Split)
	}
	if s.Ring {
		how = fmt.Sprintf("ring%d%s", s.Width, how[4:])
		if s.Tall > 1 {
			how = fmt.Sprintf("%s_x%d", how, s.Tall)
		}
		if s.Solid {
			how += "_solid"
		}
	}
	return fmt.Sprintf("few_m%d_w%d_t%d_g%d_s%d_%s", s.M, s.Warps, s.SharingWarps, s.Groups, s.Stages, how)
}

// tiles is the number of mma that multiply all pieces of all rows of activations.
func (s *quantFewSpec) tiles() int { return ceilDiv(s.M*pieces, tileCols) }

// xPitch is the distance in bytes between pieces of the activations: an odd multiple of 64, so that
// pieces are in different halves of the banks.
func (s *quantFewSpec) xPitch() int { return ceilDiv(2*s.Room, 128)*128 + 64 }

// digitPitch is xPitch for digits.
func (s *quantFewSpec) digitPitch() int { return ceilDiv(s.Room, 128)*128 + 64 }

// xBytes is the size of the activations.
func (s *quantFewSpec) xBytes() int {
	return s.M * max(pieces*s.xPitch(), s.Digits*s.digitPitch())
}

// unitBytes is the size of the scales of groups, and of the flags for groups that digits cannot
// represent.
func (s *quantFewSpec) unitBytes() int {
	if s.Digits == 0 {
		return 0
	}
	return s.M*4*s.Room/digitGroup + 32
}

// sumPitch is the distance in bytes between pieces of the sums of 32 activations.
func (s *quantFewSpec) sumPitch() int { return ceilDiv(s.Room/16, 32)*32 + 16 }

// rowPitch is the distance in bytes between rows of a stage. A row has the same offset from a
// multiple of 16 as in the matrix. The pitch puts eight rows, or four with 8 bytes for each lane,
// into different banks.
func (s *quantFewSpec) rowPitch() int {
	_, bytes := blockGroup(s.Blocks, s.Whole)
	if s.Ring {
		bytes *= s.Width
	} else {
		bytes *= s.Groups
	}
	if s.Solid {
		return bytes
	}
	if blockDecoders[s.Blocks.Block()].aligned() {
		n := bytes / 16
		for n%4 != 2 {
			n++
		}
		return 16 * n
	}
	late := 14
	if s.Tensor { // rows begin at multiples of 16
		late = (16 - bytes&-bytes) & 15
	}
	return 16 * (ceilDiv(bytes+late, 16) | 1)
}

// smallTable reports whether the table of the format is small: see levelDecoder.tableCopies.
func (s *quantFewSpec) smallTable() bool { return s.Small || s.Digits == 0 }

// tableCopies returns the numbers of copies of the tables of the format.
func (s *quantFewSpec) tableCopies() tableCopies {
	if l := blockDecoders[s.Blocks.Block()].levels; l != nil {
		return l.tableCopies(s.smallTable())
	}
	return tableCopies{}
}

// littleShared is the size of shared memory in bytes below which tables are small.
const littleShared = 200 << 10

// stageBytes is the size of a stage: a multiple of 128, because copies of tiles must begin at one.
func (s *quantFewSpec) stageBytes() int {
	n := s.high() * s.rowPitch()
	if s.Solid { // solid rows begin up to 14 bytes after a multiple of 16
		n += 30
	}
	return ceilDiv(n, 128) * 128
}

// high is the number of rows in a stage.
func (s *quantFewSpec) high() int { return fewRows * max(s.Tall, 1) }

// boxRows is the number of rows that a copy of a tile loads. Each copy begins at a multiple of 128
// bytes in a stage.
const boxRows = 8

// tileable reports whether a row of a stage fits into a tile of a tensor map.
func (s *quantFewSpec) tileable() bool { return s.rowPitch() <= 1024 }

// partBytes is the size of a warp's results for 16 rows.
func (s *quantFewSpec) partBytes() int { return 4 * partPitch * tileCols * s.tiles() }

// partsBytes is the size of all partials.
func (s *quantFewSpec) partsBytes() int {
	n := s.Warps * s.partBytes()
	if s.SharingWarps > 1 {
		n *= 2 // one is read while the next is written
	}
	return max(n, 2*fewEvery*s.Warps*fewRows*4)
}

// bytes is the shared memory of a block.
func (s *quantFewSpec) bytes() int {
	rings := s.Warps
	if s.Ring {
		rings = 1
	}
	n := rings*s.Stages*(s.stageBytes()+24) + s.xBytes() + s.unitBytes() + s.partsBytes()
	if blockDecoders[s.Blocks.Block()].mins {
		n += s.M * pieces * s.sumPitch()
	}
	return n + 128 + blockDecoders[s.Blocks.Block()].tableBytes(s.smallTable())
}

// quantFewKind is a set of kinds of products.
type quantFewKind uint8

const (
	memoryBound      quantFewKind = 1 << iota // limited by memory bandwidth
	instructionBound                          // limited by instructions
	shortGroups                               // limited by instructions, and the groups have few bytes
	bf16Activations                           // the activations of several rows, or of rows that are no multiples of 256

	anyProduct = memoryBound | instructionBound | shortGroups
)

// quantFewStages are stages for kinds of products, the fastest on an H200 first (docs/measurements/gpu.md has the speeds). The first that fits into shared memory decides. Two groups are copied together, because longer pieces of a row are read faster.
var quantFewStages = []struct {
	kinds                         quantFewKind
	warps, groups, stages, digits int
}{
	{shortGroups, 8, 4, 4, digits},
	{shortGroups, 8, 4, 3, digits},
	{shortGroups, 8, 4, 2, digits},
	{instructionBound, 16, 2, 2, digits},
	{instructionBound, 12, 2, 2, digits},
	{anyProduct, 8, 2, 3, digits},
	{anyProduct, 8, 2, 2, digits},
	{anyProduct, 8, 2, 2, digits - 2},
	{anyProduct, 7, 2, 2, digits - 2},
	{bf16Activations, 8, 1, 4, 0},
	{bf16Activations, 8, 1, 2, 0},
}

// loneStage has stages for one row of activations and many rows of the matrix, which warps do not share.
type loneStage struct {
	warps, groups, stages int
	tiled                 bool // only if rows begin at multiples of 16 bytes, so that tiles of a tensor map load them
}

// lone has the formats whose decoders limit the speed, and their stages, the fastest first. The first that fits decides. They were
// measured with rows of 5120, 8192, 11008 and 14336 activations on an H200 (docs/measurements/gpu.md).
var lone = map[block.Format][]loneStage{
	block.Q1_0:    {{12, 4, 2, false}},
	block.Q2_0:    {{12, 4, 2, false}},
	block.TQ1_0:   {{8, 8, 2, true}, {12, 4, 2, false}, {8, 4, 2, false}},
	block.TQ2_0:   {{8, 8, 2, true}, {8, 4, 2, true}, {12, 4, 2, false}},
	block.IQ1_S:   {{12, 4, 2, false}, {8, 4, 2, false}},
	block.IQ1_M:   {{16, 2, 2, true}, {8, 4, 2, false}, {8, 2, 2, false}},
	block.IQ2_XXS: {{16, 2, 2, true}, {12, 4, 2, false}, {8, 4, 2, false}, {8, 3, 2, false}},
	block.IQ2_XS:  {{12, 4, 2, false}, {12, 2, 2, false}, {8, 3, 2, false}},
	block.IQ2_S:   {{8, 4, 2, false}, {8, 3, 2, false}},
	block.IQ3_XXS: {{16, 2, 2, true}, {8, 4, 2, false}, {8, 3, 2, false}, {8, 2, 2, false}},
	block.IQ3_S:   {{16, 2, 2, true}, {8, 4, 2, false}, {8, 3, 2, false}, {8, 2, 2, false}},
	block.Q2_K:    {{8, 4, 4, false}, {8, 4, 3, false}, {8, 4, 2, false}},
	block.Q3_K:    {{8, 4, 4, false}, {8, 4, 3, false}, {8, 4, 2, false}},
	block.IQ4_XS:  {{16, 2, 2, false}, {12, 2, 2, false}},
	block.MXFP4:   {{16, 2, 2, false}, {12, 2, 2, false}},
	block.NVFP4:   {{12, 2, 2, false}},
}

// maxLone is the largest number of blocks that may share rows with the stages of lone: each block fills its table and writes its
// partials.
const maxLone = 3

// alone sets the stages of lone, and reports whether there are any that fit.
func (s *quantFewSpec) alone(p op.Product, groups int, d *Device) bool {
	if s.M > 1 || !s.Whole || p.N < 2*fewRows*8*d.Multiprocessors {
		return false
	}
	s.SharingWarps, s.Digits = 1, digits
	for s.Split = 1; s.Split <= min(maxLone, d.Multiprocessors); s.Split++ {
		part := s.part(groups)
		if part*(s.Split-1) >= groups {
			continue
		}
		s.Room = ceilDiv(part*digitGroup, 1024) * 1024
		for _, v := range lone[s.Blocks.Block()] {
			s.Warps, s.Groups, s.Stages = v.warps, v.groups, v.stages
			if s.fitStages(groups, d) && (s.Tensor || !v.tiled) {
				return true
			}
		}
	}
	return false
}

// fitStages chooses how copies load stages, and reports whether the kernel fits into shared memory.
func (s *quantFewSpec) fitStages(groups int, d *Device) bool {
	_, bytes := blockGroup(s.Blocks, s.Whole)
	s.Tensor = d.Target >= ptx.SM90 && groups*bytes%16 == 0 && s.tileable()
	if s.Split > 1 && bytes*s.Groups%16 == 0 && s.part(groups)*bytes%16 != 0 {
		s.Tensor = false // multiplyStage expects that all stages begin at multiples of 16
	}
	s.Bulk = d.Target >= ptx.SM90 && !s.Tensor
	s.RowStride = 1
	return s.bytes() <= d.Shared
}

// quantFewFor returns the schedule of a product of a few rows.
func quantFewFor(p op.Product, t, blocks op.DType, d *Device) (*quantFewSpec, error) {
	if p.M > maxFew || !blockDecoders[blocks.Block()].fits(p.K) {
		return nil, unsupported("%d rows of %d activations", p.M, p.K)
	}
	s := &quantFewSpec{Type: t, Blocks: blocks, M: p.M, Whole: p.K%256 == 0, Small: d.Shared < littleShared}
	weights, bytes := blockGroup(blocks, s.Whole)
	groups := p.K / weights
	splits := min(maxParts, d.Multiprocessors)
	if s.alone(p, groups, d) {
		return s, nil
	}
	kind := memoryBound
	if l := blockDecoders[blocks.Block()].levels; l != nil && s.M == 1 && bytes <= 144 {
		kind = instructionBound
		if l.grid == nil && bytes < 72 {
			kind = shortGroups
		}
	}
	if s.M > 1 || !s.Whole {
		kind, splits = kind|bf16Activations, 1
	}
	for s.Split = 1; s.Split <= splits; s.Split++ {
		part := s.part(groups)
		if part*(s.Split-1) >= groups {
			continue
		}
		s.Room = ceilDiv(part*weights, 1024) * 1024
		for _, z := range quantFewStages {
			if z.kinds&kind == 0 {
				continue
			}
			s.Warps, s.Groups, s.Stages, s.Digits = z.warps, z.groups, z.stages, z.digits
			if !s.Whole {
				s.Groups *= 8
			}
			if s.M > 1 || !s.Whole {
				s.Digits = 0
			}
			s.SharingWarps = s.Warps
			if part < s.Groups*s.Warps {
				s.SharingWarps = 1
			}
			if s.fitStages(groups, d) {
				return s, nil
			}
		}
	}
	return nil, unsupported("%d rows of %d activations", p.M, p.K)
}

// maxParts is the largest number of blocks that may share rows.
const maxParts = 16

// part returns the number of groups of a row that a block multiplies. A part begins at a multiple
// of 8 bytes, or of 2 bytes if a ring supports any alignment.
func (s *quantFewSpec) part(groups int) int {
	if s.Split == 1 {
		return groups
	}
	multiple := 4
	if s.Ring {
		multiple = 1
	}
	return ceilDiv(ceilDiv(groups, s.Split), multiple) * multiple
}

// fit reports whether the kernel fits into shared memory. It reduces the number of stages if
// necessary.
func (s *quantFewSpec) fit(d *Device) bool {
	for s.Stages > 2 && s.bytes() > d.Shared {
		s.Stages--
	}
	return s.bytes() <= d.Shared
}

var quantFewKernels kernelCache[quantFewSpec]

// divideRows divides n rows among blocks. Teams process 16 rows at a time, and adjacent teams have
// adjacent rows. At the end, teams divide the remaining rows evenly: the first full rows are
// processed 16 at a time, and the others share at a time.
func (s *quantFewSpec) divideRows(n, groups int, d *Device) (blocks, full, share int) {
	blocks = d.Multiprocessors / s.Split / s.RowStride * s.RowStride
	if s.Ring {
		s.Claim = s.claimed(s.part(groups) * s.groupBytes())
		full, share = s.tiled(n, blocks/s.RowStride)
		return min(blocks, ceilDiv(n, s.RowStride*share)*s.RowStride), full, share
	}
	teams := blocks * s.Warps / s.SharingWarps
	full = n / (fewRows * teams) * fewRows * teams
	share = ceilDiv(ceilDiv(n-full, teams), boxRows) * boxRows
	if full == 0 {
		blocks = ceilDiv(ceilDiv(n, share), s.Warps/s.SharingWarps)
	}
	return blocks, full, share
}

// plan returns the plan: one launch of the kernel.
func (s *quantFewSpec) plan(r *portable.Request, p op.Product, d *Device) (*Plan, error) {
	e, err := finish(r, p.N)
	if err != nil {
		return nil, err
	}
	spec := *s
	spec.Key = e.key
	spec.Bias = len(r.In) > 2 && r.In[2].Shape != nil
	if spec.Split > 1 {
		spec.Key = ""
	}
	total, err := spec.Blocks.Bytes(r.In[1].Shape)
	if err != nil {
		return nil, err
	}
	weights, _ := blockGroup(spec.Blocks, spec.Whole)
	groups := ceilDiv(p.K, weights)
	spec.Full = groups%spec.Groups == 0 && spec.part(groups)%spec.Groups == 0
	blocks, full, share := spec.divideRows(p.N, groups, d)
	row := int(total) / p.N
	target := ptx.SM80
	if spec.Tensor || spec.Bulk || spec.Ring {
		target = ptx.SM90
	}
	k := quantFewKernels.of(spec, func() *Kernel {
		return &Kernel{Name: fmt.Sprintf("matmul_q_%v_%v", spec.Blocks, &spec), Target: target,
			Block: [3]uint32{uint32(spec.threads()), 1, 1}, Build: func(k *ptx.Kernel) { spec.build(k, e) }}
	})
	args := []Arg{input(0), input(1)}
	if spec.Tensor {
		args[1] = Arg{Kind: Map, Array: portable.Ref{Kind: portable.InputRef, Index: 1}, Tiles: &Tiles{Type: op.U32,
			Size: []int{row / 4, p.N}, Stride: []int{row}, Tile: []int{spec.rowPitch() / 4, boxRows}, Lines: true}}
	}
	plan := &Plan{Variant: spec.String()}
	var after []Stage
	results := e.args()
	if spec.Split > 1 {
		plan.Scratch = []int64{4 * int64(spec.Split) * int64(p.M) * int64(p.N)}
		after = append(after, sumParts(spec.Type, p.M*p.N, p.N, spec.Split, spec.Bias, scratch(0), e))
		results = []Arg{word(uint32(spec.part(groups))), scratch(0)}
	} else if spec.Bias {
		args = append(args, input(2))
	}
	args = append(args, word(uint32(p.N)), word(uint32(groups)), word(uint32(total)), word(uint32(full)), word(uint32(share)))
	if spec.Ring {
		plan.Zeros = []int64{4 * int64(spec.Split*spec.RowStride)}
		args = append(args, scratch(len(plan.Scratch)))
		if spec.Short {
			args = append(args, word(uint32(p.K/spec.Blocks.Block().Elements())))
		}
	}
	first := Stage{Kernel: k, Grid: [3]uint32{uint32(blocks * spec.Split), 1, 1}, Zero: -1, Args: append(args, results...)}
	plan.Stages = append([]Stage{first}, after...)
	return plan, nil
}
