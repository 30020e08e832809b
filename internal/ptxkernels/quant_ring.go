package ptxkernels

import (
	"slices"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// The memory bandwidth limits a product of one row or of a few. The L2 cache is read in lines of
// 128 bytes, and a line that contains the end of one piece and the beginning of the next is read
// twice, so long pieces are better. Here all warps of a block share its stages. A stage is 16 rows
// high and as wide as all warps multiply together; extra warps fill it. Short rows fit into a stage
// as a whole; then a stage has more rows, and one copy fills it.
//
// The read speeds of multiprocessors differ by up to a fifth: the multiprocessors of a GPC share
// its connection to L2, and GPCs differ in size. Therefore blocks claim tiles of rows from a
// counter; an extra warp claims them ahead of the warps that fill stages. The last claim resets the
// counter to 0.

const (
	// ringFill is the number of warps that fill stages. A warp needs about 150 cycles to start a
	// copy, and a block needs a copy every 60 cycles.
	ringFill   = 4
	ringStages = 8 // at most
	// shortGroup is the largest size of a group, in bytes, for which few stages are faster. For
	// example, Q4_K uses 4 stages if all stages are full (with 8192 activations: 4.0 TB/s, and 3.6
	// TB/s with 8 stages), and 6 otherwise.
	shortGroup = 144
)

// ringUse says for which rows a format uses the ring. The numbers are groups of 256 weights in a row.
type ringUse struct {
	from int // with fewer groups, the kernel for few rows is faster
	// wide is the smallest number of groups for stages in which each warp multiplies two or three
	// groups, or 0 if one group is faster. Decoders that take many instructions gain from more of them
	// between two stages.
	wide int
	row  int // with wide: the largest number of groups for which a stage has whole rows
	// tiled is like from, for rows that begin at multiples of 16 bytes.
	tiled int
}

// ringed has the formats for which the ring is the fastest kernel, by measurements of one row of
// 2048 to 28672 activations on an H200 (docs/measurements/gpu.md). The other formats use it only in
// tests.
var ringed = map[block.Format]ringUse{
	block.Q4_0: {}, block.Q8_0: {}, block.Q4_K: {}, block.Q6_K: {}, block.Q4_1: {}, block.Q5_1: {},
	block.IQ4_NL: {wide: 12, row: 24},
	block.IQ4_XS: {from: 16, wide: 16, row: 24},
	block.MXFP4:  {from: 16, wide: 16, row: 24},
	block.NVFP4:  {from: 24, wide: 16, row: 24},
	block.Q2_K:   {from: 33, wide: 33, row: 24},
	block.Q3_K:   {wide: 16, row: 20, tiled: 33},
}

// quantRingFor returns the schedule with shared stages for a product of one row or of a few, if it
// is the fastest.
func quantRingFor(p op.Product, t, blocks op.DType, d *Device) (*quantFewSpec, error) {
	use, ok := ringed[blocks.Block()]
	groups := ceilDiv(p.K, digitGroup)
	if p.M == 1 && rowBytes(blocks, p.K)%16 == 0 {
		use.from = max(use.from, use.tiled)
	}
	if !ok || groups < use.from || p.M > 1 && (use.wide > 0 || p.K%digitGroup != 0) {
		return nil, unsupported("%d rows of %d activations by %v", p.M, p.K, blocks)
	}
	s, err := ringFor(p, t, blocks, d)
	if err == nil && use.wide > 0 && groups >= use.wide {
		if w := *s; w.widen(groups, use.row, d) {
			return &w, nil
		}
	}
	return s, err
}

func ringFor(p op.Product, t, blocks op.DType, d *Device) (*quantFewSpec, error) {
	groups := ceilDiv(p.K, digitGroup)
	s := &quantFewSpec{Type: t, Blocks: blocks, M: p.M, Whole: true, Ring: true, Fill: ringFill, Tall: 1, RowStride: 1, Split: 1, Small: d.Shared < littleShared}
	s.Short = p.K%digitGroup != 0
	if p.M > maxRing || !blockDecoders[blocks.Block()].fits(p.K) || d.Target < ptx.SM90 || d.Multiprocessors < 2 {
		return nil, unsupported("%d rows of %d activations", p.M, p.K)
	}
	if rowBytes(blocks, p.K)%4 != 0 {
		s.RowStride = 2
	}
	if short := *s; short.whole(groups, d) {
		return &short, nil
	}
	if groups < 7 {
		return nil, unsupported("%d rows of %d activations", p.M, p.K)
	}
	kind := ringKindOf(s, groups)
	for _, w := range ringSchedules {
		if w.kinds&kind == 0 {
			continue
		}
		for s.Split = w.minSplit; s.Split <= min(w.maxSplit, d.Multiprocessors/s.RowStride); s.Split++ {
			part := s.part(groups)
			if more := part*s.Split - groups; more >= part || more > groups*w.excess/16 || w.minStages > 3 && s.Split == 3 {
				continue
			}
			s.Room = ceilDiv(part*digitGroup, 1024) * 1024
			largest, minimum := s.divide(groups), w.minStages
			if s.Width > 8 && (s.Width == part || part > 32) { // wide stages that hold a row or a third of it
				minimum = 3
			}
			for _, s.Digits = range w.digits {
				for s.Stages = largest; s.Stages >= minimum; s.Stages-- {
					if s.bytes() <= d.Shared {
						return s, nil
					}
				}
			}
		}
	}
	return nil, unsupported("%d rows of %d activations", p.M, p.K)
}

// widen sets the schedule to stages in which each warp multiplies two or three groups, and reports
// whether it fits. A stage has whole rows of up to row groups. If rows begin at different distances
// from a multiple of 4, warps multiply one group: their code is twice as long, and more of it would
// not fit into the cache of instructions.
func (s *quantFewSpec) widen(groups, row int, d *Device) bool {
	s.Solid, s.Tall, s.Fill, s.Digits = false, 1, ringFill, digits
	for s.Split = 1; s.Split <= min(maxParts, d.Multiprocessors/s.RowStride); s.Split++ {
		part := s.part(groups)
		if part*s.Split-groups >= part {
			continue
		}
		s.Room = ceilDiv(part*digitGroup, 1024) * 1024
		s.Warps, s.Width = 8, min(part, 16)
		switch {
		case s.RowStride > 1:
			s.Warps, s.Width = 12, min(part, 12)
		case part <= row:
			s.Width = part
		case part%16 > 0 && part%16 <= 8: // avoid a narrow stage at the end
			s.Width = ceilDiv(part, ceilDiv(part, 16))
		}
		s.SharingWarps, s.Groups = s.Warps, ceilDiv(s.Width, s.Warps)
		for s.Stages = 4; s.Stages >= minWhole; s.Stages-- {
			if s.bytes() <= d.Shared {
				return true
			}
		}
	}
	return false
}

// One copy loads a stage of short rows, because they are contiguous in the matrix. A stage has
// enough rows to give each warp a group.
const (
	wholeGroups = 16 // largest number of groups in a row
	tallWarps   = 9  // a stage needs more than this many warps
	minWhole    = 3  // smallest number of stages of whole rows or wide ones
)

// whole sets the schedule to stages of whole rows with the given number of groups, and reports whether it fits.
func (s *quantFewSpec) whole(groups int, d *Device) bool {
	s.Width, s.Room = groups, ceilDiv(groups*digitGroup, 1024)*1024
	s.Solid, s.Fill, s.Digits = true, 1, digits
	if s.Short || s.RowStride > 1 || groups > wholeGroups {
		return false
	}
	format := ringFormatOf(s.Blocks.Block())
	conflicts := s.conflict() > format.maxConflict
	if conflicts {
		s.Solid, s.Fill = false, ringFill
	}
	_, bytes := blockGroup(s.Blocks, true)
	largest := ringStages
	for s.Tall*groups <= tallWarps {
		s.Tall *= 2
	}
	for ; s.Tall > 0; s.Tall /= 2 {
		s.Warps, s.Groups = s.Tall*groups, 1
		if s.Tall == 1 {
			if conflicts || groups < 7 {
				return false
			}
			s.Warps = 8
			if groups <= 12 {
				s.Warps = format.warps
			}
			s.Groups = ceilDiv(groups, s.Warps)
			if bytes <= shortGroup {
				largest = 4
			}
		}
		s.SharingWarps = s.Warps
		s.Stages = min(largest, max(minWhole, (format.room+s.stageBytes()/2)/s.stageBytes()))
		if s.bytes() <= d.Shared {
			return !conflicts || bytes*groups >= 1024 && bytes%16 == 0
		}
	}
	return false
}

// ringFormat has the settings of a format for stages of whole rows, measured on an H200 (2026-11-22; docs/measurements/gpu.md has the speeds).
type ringFormat struct {
	maxConflict int // the largest number of rows that may be read at once from one bank (see conflict) if a stage is contiguous
	room        int // approximate size in bytes of all stages
	warps       int // warps of a block if a stage has 16 rows of at most 12 groups
}

// ringFormats has the formats whose settings differ from otherRingFormat.
var ringFormats = map[block.Format]ringFormat{
	block.Q4_0: {maxConflict: 1, room: 112 << 10, warps: 8}, // the most sensitive to the latency of these reads
	block.Q6_K: {maxConflict: 2, room: 136 << 10, warps: 12},
}

var otherRingFormat = ringFormat{maxConflict: 2, room: 112 << 10, warps: 8}

func ringFormatOf(f block.Format) ringFormat {
	if r, ok := ringFormats[f]; ok {
		return r
	}
	return otherRingFormat
}

// ringKind is a kind of product by the ring kernel.
type ringKind uint8

const (
	plainRing   ringKind = 1 << iota
	longRing             // long rows of small groups (see longRow)
	q6Ring               // Q6_K
	q6LongRing           // long rows of Q6_K that begin at multiples of 4 bytes
	q8Ring               // Q8_0
	severalRing          // several rows of activations

	oneRing = plainRing | longRing | q6Ring | q6LongRing | q8Ring // one row of activations
)

// ringKindOf returns the kind of a product with the given number of groups in a row.
func ringKindOf(s *quantFewSpec, groups int) ringKind {
	_, bytes := blockGroup(s.Blocks, true)
	switch {
	case s.M > 1:
		return severalRing
	case bytes <= shortGroup && longRow(groups):
		return longRing
	case s.Blocks == op.Q6_K && groups > 64 && s.RowStride == 1:
		return q6LongRing
	case s.Blocks == op.Q6_K:
		return q6Ring
	case s.Blocks == op.Q8_0:
		return q8Ring
	}
	return plainRing
}

// ringSchedules are the schedules of kinds of products, the fastest on an H200 first (measured with ringFormats). The
// first that fits into shared memory decides. If there is not enough memory for four stages (five of Q6_K), several
// blocks share rows if their parts are nearly equal. Otherwise the kernel uses three stages, and fewer digits. For several
// rows of activations, leaving out two digits costs less than sharing rows.
var ringSchedules = []struct {
	kinds              ringKind
	digits             []int
	minStages          int
	minSplit, maxSplit int // number of blocks that share rows
	excess             int // by how much all parts together may exceed a row, in sixteenths of the row
}{
	{longRing, []int{digits}, 3, 3, maxParts, 16},
	{plainRing | longRing, []int{digits}, 4, 1, 4, 1},
	{q6Ring, []int{digits}, 5, 1, 4, 1},
	{q6LongRing, []int{digits}, 5, 4, maxParts, 1},
	{q8Ring, []int{digits}, 4, 1, 4, 0},
	{oneRing, []int{digits, digits - 2}, 3, 1, maxParts, 16},
	{severalRing, []int{digits}, 4, 1, 1, 16},
	{severalRing, []int{digits - 2}, 3, 1, maxParts, 16},
}

// conflict is the largest number of rows that lanes read at once from the same bank.
func (s *quantFewSpec) conflict() int {
	rows, words := 8, 4
	if !blockDecoders[s.Blocks.Block()].split {
		rows, words = 4, 8
	}
	var banks [32]int
	for i := range rows {
		for j := range words {
			banks[(i*s.rowPitch()/4+j)%32]++
		}
	}
	return slices.Max(banks[:])
}

// maxRing is the largest number of rows of activations that the ring kernel multiplies. The sums of
// more rows do not fit into registers.
const maxRing = 4

// ringRows is the largest number of rows of activations for which the ring kernel is the fastest.
// The kernel is also used for more rows if the stages of single warps do not fit into shared
// memory.
func ringRows(blocks op.DType, groups int) int {
	for _, r := range ringRowLimits {
		if (r.blocks == op.InvalidType || r.blocks == blocks) && groups >= r.minGroups && (r.maxGroups == 0 || groups <= r.maxGroups) {
			return r.rows
		}
	}
	return 1
}

// ringRowLimits are the limits of ringRows, measured with ringFormats. The first row that fits decides.
var ringRowLimits = []struct {
	blocks               op.DType // InvalidType: all formats
	minGroups, maxGroups int      // 0: no limit
	rows                 int
}{
	{op.Q8_0, 9, 9, 3}, // four rows would need a second stage for the last group
	{op.Q8_0, 0, 0, maxRing},
	{op.InvalidType, 16, 0, 3},
	{op.Q6_K, 12, 0, 3},
	{op.InvalidType, 10, 0, 2},
	{op.Q6_K, 0, 0, 2},
}

// longRow reports whether at least three blocks should share a row of Q4_K or Q4_0 with this number
// of groups. A row of 80 groups is an exception: two blocks share it with full stages.
func longRow(groups int) bool { return groups > 64 && groups != 80 }

// ringStage is a rule for dividing a row, or the part of a row that one block multiplies, into stages.
type ringStage struct {
	// The rule applies if all of these conditions hold.
	short            bool     // the groups of the format have at most shortGroup bytes
	blocks           op.DType // the format; InvalidType for all formats
	minPart, maxPart int      // the smallest and the largest number of groups in a part; 0 for no limit
	long             bool     // the row is long: see longRow
	part, row        int      // the number of groups in a part, or in a row, is a multiple of this; 0 for any number

	// The result. Either width or widest is set.
	warps  int
	width  int // each stage has this number of groups; the last stage may have fewer
	widest int // stages have equal widths, at most this
	thirds int // with widest: if stages would have this width, the part has three stages instead
	stages int // the maximum number of stages
}

// ringDivisions are measured. The first entry that fits decides.
var ringDivisions = []ringStage{
	{short: true, minPart: 12, maxPart: 12, warps: 8, widest: 12, stages: 3}, // a stage holds whole rows
	{short: true, minPart: 9, maxPart: 11, warps: 8, widest: 11, stages: 5},
	{short: true, long: true, part: 12, warps: 12, widest: 12, stages: 3},
	{short: true, long: true, warps: 8, widest: 15, thirds: 14, stages: 3},
	{short: true, row: 8, warps: 8, width: 8, stages: 4},
	{short: true, warps: 8, width: 8, stages: 6},
	{blocks: op.Q6_K, minPart: 9, maxPart: 12, warps: 12, widest: 12, stages: ringStages},
	{blocks: op.Q6_K, minPart: 17, maxPart: 19, warps: 12, widest: 12, stages: ringStages},
	{blocks: op.Q6_K, minPart: 25, maxPart: 26, warps: 12, widest: 12, stages: ringStages},
	{blocks: op.Q6_K, minPart: 33, maxPart: 36, warps: 12, widest: 12, stages: ringStages},
	{warps: 8, width: 8, stages: ringStages},
}

// fits reports whether the rule applies to rows with the given number of groups, if each block
// multiplies part groups of a row.
func (r *ringStage) fits(blocks op.DType, groups, part int) bool {
	_, bytes := blockGroup(blocks, true)
	return (!r.short || bytes <= shortGroup) && (r.blocks == op.InvalidType || r.blocks == blocks) &&
		part >= r.minPart && (r.maxPart == 0 || part <= r.maxPart) && (!r.long || longRow(groups)) &&
		(r.part == 0 || part%r.part == 0) && (r.row == 0 || groups%r.row == 0)
}

// divide chooses the number of warps and the width of a stage for rows with the given number of
// groups. It returns the maximum number of stages.
func (s *quantFewSpec) divide(groups int) int {
	part := s.part(groups)
	i := slices.IndexFunc(ringDivisions, func(r ringStage) bool { return r.fits(s.Blocks, groups, part) })
	r := &ringDivisions[i]
	s.Warps, s.Width = r.warps, min(part, r.width)
	if r.widest > 0 {
		s.Width = ceilDiv(part, ceilDiv(part, r.widest))
	}
	if r.thirds > 0 && s.Width == r.thirds {
		s.Width = ceilDiv(part, 3)
	}
	s.SharingWarps, s.Groups = s.Warps, ceilDiv(s.Width, s.Warps)
	return r.stages
}

func rowBytes(blocks op.DType, k int) int {
	weights, bytes := blockGroup(blocks, false)
	return k / weights * bytes
}

// ringClaim is the smallest number of bytes that a block claims at a time, except for the last
// tiles, because a claim takes more than a microsecond.
const ringClaim = 60 << 10

// claimed returns the number of rows of row bytes that a block claims at a time.
func (s *quantFewSpec) claimed(row int) int { return ceilDiv(ringClaim, s.high()*row) * s.high() }

// tiled returns how the rows of a matrix are divided among blocks with equal parts: full rows in
// claims of Claim rows, and the others in claims of share rows, at most a tile.
func (s *quantFewSpec) tiled(n, blocks int) (full, share int) {
	rows, round := ceilDiv(n, s.RowStride), s.Claim*blocks
	full = rows / round * round
	if full > 0 && rows-full < boxRows*blocks { // avoid tiny tiles
		full -= round
	}
	share = ceilDiv(rows-full, ceilDiv(rows-full, s.high()*blocks)*blocks)
	if full == 0 && share < boxRows {
		share = boxRows
	}
	return full, share
}
