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
}

// ringed has the formats for which the ring is the fastest kernel, by measurements of one row of
// 2048 to 28672 activations on an H200 (docs/measurements/gpu.md). The other formats use it only in
// tests.
var ringed = map[block.Format]ringUse{
	block.Q4_0: {}, block.Q8_0: {}, block.Q4_K: {}, block.Q6_K: {}, block.Q4_1: {}, block.Q5_1: {},
	block.IQ4_NL: {wide: 12, row: 24},
	block.IQ4_XS: {from: 16, wide: 16, row: 24},
	block.MXFP4:  {from: 16, wide: 16, row: 24},
	block.NVFP4:  {from: 16, wide: 16, row: 24},
	block.Q2_K:   {from: 33, wide: 33, row: 24},
	block.Q3_K:   {wide: 16, row: 20},
}

// quantRingFor returns the schedule with shared stages for a product of one row or of a few, if it
// is the fastest.
func quantRingFor(p op.Product, t, blocks op.DType, d *Device) (*quantFewSpec, error) {
	use, ok := ringed[blocks.Block()]
	groups := ceilDiv(p.K, digitGroup)
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
	s := &quantFewSpec{Type: t, Blocks: blocks, M: p.M, Whole: true, Ring: true, Fill: ringFill, Tall: 1, RowStride: 1, Split: 1}
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
	// If there is not enough memory for four stages (five of Q6_K), several blocks share rows if
	// their parts are equal. Otherwise the kernel uses three stages, and fewer digits.
	type schedule struct {
		digits   []int
		lowest   int // stages
		from, to int // range of the number of blocks that share rows
		more     int // groups by which all parts together may exceed a row
	}
	schedules := []schedule{{[]int{digits}, 4, 1, 4, groups / 16}, {[]int{digits, digits - 2}, 3, 1, maxParts, groups}}
	_, bytes := blockGroup(blocks, true)
	switch {
	case bytes <= shortGroup && longRow(groups):
		schedules = append([]schedule{{[]int{digits}, 3, 3, maxParts, groups}}, schedules...)
	case blocks == op.Q6_K:
		schedules[0].lowest = 5
		if groups > 64 && s.RowStride == 1 {
			schedules[0].from, schedules[0].to = 4, maxParts
		}
	case blocks == op.Q8_0:
		schedules[0].more = 0
	}
	if p.M > 1 { // leaving out two digits costs less than sharing rows
		schedules = []schedule{{[]int{digits}, 4, 1, 1, groups}, {[]int{digits - 2}, 3, 1, maxParts, groups}}
	}
	for _, w := range schedules {
		for s.Split = w.from; s.Split <= min(w.to, d.Multiprocessors/s.RowStride); s.Split++ {
			part := s.part(groups)
			if more := part*s.Split - groups; more >= part || more > w.more || w.lowest > 3 && s.Split == 3 {
				continue
			}
			s.Room = ceilDiv(part*digitGroup, 1024) * 1024
			largest, minimum := s.divide(groups), w.lowest
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
	crowd := 2
	if s.Blocks == op.Q4_0 { // Q4_0 is the most sensitive to the latency of these reads
		crowd = 1
	}
	crowded := s.crowd() > crowd
	if crowded {
		s.Solid, s.Fill = false, ringFill
	}
	_, bytes := blockGroup(s.Blocks, true)
	room, largest := 112<<10, ringStages // approximate size of all stages
	if s.Blocks == op.Q6_K {
		room = 136 << 10
	}
	for s.Tall*groups <= tallWarps {
		s.Tall *= 2
	}
	for ; s.Tall > 0; s.Tall /= 2 {
		s.Warps, s.Groups = s.Tall*groups, 1
		if s.Tall == 1 {
			if crowded || groups < 7 {
				return false
			}
			s.Warps = 8
			if s.Blocks == op.Q6_K && groups <= 12 {
				s.Warps = 12
			}
			s.Groups = ceilDiv(groups, s.Warps)
			if bytes <= shortGroup {
				largest = 4
			}
		}
		s.SharingWarps = s.Warps
		s.Stages = min(largest, max(minWhole, (room+s.stageBytes()/2)/s.stageBytes()))
		if s.bytes() <= d.Shared {
			return !crowded || bytes*groups >= 1024 && bytes%16 == 0
		}
	}
	return false
}

// crowd is the largest number of rows that lanes read at once from the same bank.
func (s *quantFewSpec) crowd() int {
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
	switch {
	case blocks == op.Q8_0 && groups == 9: // four rows would need a second stage for the last group
		return 3
	case blocks == op.Q8_0:
		return maxRing
	case groups >= 16 || blocks == op.Q6_K && groups >= 12:
		return 3
	case groups >= 10 || blocks == op.Q6_K:
		return 2
	}
	return 1
}

// longRow reports whether at least three blocks should share a row of Q4_K or Q4_0 with this number
// of groups. A row of 80 groups is an exception: two blocks share it with full stages.
func longRow(groups int) bool { return groups > 64 && groups != 80 }

// divide chooses the number of warps and the width of a stage for rows with the given number of
// groups. It returns the maximum number of stages.
func (s *quantFewSpec) divide(groups int) int {
	part, largest := s.part(groups), ringStages
	s.Warps, s.Width = 8, min(part, 8)
	_, bytes := blockGroup(s.Blocks, true)
	switch few := part > 8 && part <= 12; {
	case bytes <= shortGroup && few: // a stage holds whole rows
		s.Width, largest = part, 5
		if part == 12 {
			largest = 3
		}
	case bytes <= shortGroup && longRow(groups):
		s.Width, largest = ceilDiv(part, ceilDiv(part, 15)), 3
		switch {
		case part%12 == 0:
			s.Warps, s.Width = 12, 12
		case s.Width == 14:
			s.Width = ceilDiv(part, 3)
		}
	case bytes <= shortGroup:
		largest = 6
		if groups%8 == 0 {
			largest = 4
		}
	case s.Blocks == op.Q6_K && (few || part > 16 && part < 20 || part > 24 && part < 27 || part > 32 && part <= 36): // stages have equal widths
		s.Warps, s.Width = 12, ceilDiv(part, ceilDiv(part, 12))
	}
	s.SharingWarps, s.Groups = s.Warps, ceilDiv(s.Width, s.Warps)
	return largest
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
