package ptxkernels

import (
	"slices"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// A product of one row, or of a few, is bound by how fast weights come. The second cache is read
// in lines of 128 bytes, and two pieces of a row that meet within a line read it
// twice: so the longer the pieces are, the better. Here all warps of a block share
// its stages, which are 16 rows high and as wide as all warps multiply together; more
// warps fill them. Stages of short rows are whole and higher, and one copy fills them.
//
// The read speeds of multiprocessors differ by up to a fifth: the multiprocessors of a GPC share
// its connection to L2, and GPCs differ in size. Therefore blocks claim tiles of rows from a
// counter; an extra warp claims them ahead of the warps that fill stages. The last claim resets the
// counter to 0.

const (
	// ringFill is the warps that fill stages: each starts a copy in about 150 cycles,
	// and a block wants one in 60.
	ringFill   = 4
	ringStages = 8 // at most
	// shortGroup is bytes of groups that few stages are faster with: of Q4_K, 4 where all
	// stages are full (8192 activations: 4.0 TB/s, and 3.6 with 8), and 6 otherwise.
	shortGroup = 144
)

// ringed is the formats that this is the fastest for. The others have it to be
// tested with.
var ringed = map[block.Format]bool{block.Q4_0: true, block.Q8_0: true, block.Q4_K: true, block.Q6_K: true,
	block.Q4_1: true, block.Q5_1: true}

// quantRingFor returns how a product of one row, or of a few, is made, if by stages that
// all warps of a block share.
func quantRingFor(p op.Product, t, blocks op.DType, d *Device) (*quantFewSpec, error) {
	if !ringed[blocks.Block()] || p.M > 1 && p.K%digitGroup != 0 {
		return nil, unsupported("%v", blocks)
	}
	return ringFor(p, t, blocks, d)
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
		from, to int // blocks that share rows
		more     int // groups that parts may have more than rows
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
	if p.M > 1 { // two digits less cost less than blocks that share rows
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
			if s.Width > 8 && (s.Width == part || part > 32) { // wide stages, of whole rows or thirds
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

// Short rows are copied by the stage, where they may lie behind each other as in the
// matrix, and as many at once as give enough warps a group each.
const (
	wholeGroups = 16 // of a row at most
	tallWarps   = 9  // and more than these
	minWhole    = 3  // stages
)

// whole makes stages of whole rows of so many groups, if it can.
func (s *quantFewSpec) whole(groups int, d *Device) bool {
	s.Width, s.Room = groups, ceilDiv(groups*digitGroup, 1024)*1024
	s.Solid, s.Fill, s.Digits = true, 1, digits
	if s.Short || s.RowStride > 1 || groups > wholeGroups {
		return false
	}
	crowd := 2
	if s.Blocks == op.Q4_0 { // which waits for these reads most
		crowd = 1
	}
	crowded := s.crowd() > crowd
	if crowded {
		s.Solid, s.Fill = false, ringFill
	}
	_, bytes := blockGroup(s.Blocks, true)
	room, largest := 112<<10, ringStages // of all stages, roughly
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

// crowd is the largest number of rows in the same bank among the rows that lanes read at once.
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

// maxRing is how many rows of activations this multiplies at most: of more, registers do
// not hold the sums.
const maxRing = 4

// ringRows is up to how many rows of activations, of so many groups, this is the fastest for.
// It is for others too where a warp's own stages have no room.
func ringRows(blocks op.DType, groups int) int {
	switch {
	case blocks == op.Q8_0 && groups == 9: // of four rows it would have a second stage for the last
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

// longRow reports whether no less than three blocks share rows of so many groups of Q4_K
// or Q4_0. 80 are two parts of full stages.
func longRow(groups int) bool { return groups > 64 && groups != 80 }

// divide chooses the warps of a block, and their parts of rows with the given number of groups at a
// time: it returns the maximum number of stages.
func (s *quantFewSpec) divide(groups int) int {
	part, largest := s.part(groups), ringStages
	s.Warps, s.Width = 8, min(part, 8)
	_, bytes := blockGroup(s.Blocks, true)
	switch few := part > 8 && part <= 12; {
	case bytes <= shortGroup && few: // rows are stages
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
	case s.Blocks == op.Q6_K && (few || part > 16 && part < 20 || part > 24 && part < 27 || part > 32 && part <= 36): // stages alike
		s.Warps, s.Width = 12, ceilDiv(part, ceilDiv(part, 12))
	}
	s.SharingWarps, s.Groups = s.Warps, ceilDiv(s.Width, s.Warps)
	return largest
}

func rowBytes(blocks op.DType, k int) int {
	weights, bytes := blockGroup(blocks, false)
	return k / weights * bytes
}

// ringClaim is the least bytes of rows that a block claims at a time, but for the last: a
// claim takes more than a microsecond.
const ringClaim = 60 << 10

// claimed is how many rows that is, of so many bytes each.
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
