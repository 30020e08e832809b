package ptxkernels

import (
	"math"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// The schedules below were the fastest of many on an H200. The speed depends on the bytes in flight
// in a multiprocessor: it needs enough resident blocks, or blocks that prefetch the next row while
// they process this one.

// planRows plans an operation on rows.
func planRows(r *portable.Request, d *Device) (*Plan, error) {
	rows, cols := r.In[0].Shape.Rows()
	if err := rowRequest(r, d); err != nil {
		return nil, err
	}
	t := r.In[0].Type
	n := rowVectors(cols, rowVector(t))
	weights := 0
	for _, x := range r.In[1:] {
		if x.Shape != nil {
			weights++
		}
	}
	switch {
	case n <= maxVectors:
	case d.Target >= ptx.SM90 && 4*rows >= d.Multiprocessors && (t == op.F32 && n <= maxClusterVectors || n > maxHalves && n <= 2*maxVectors):
		return planClusteredRows(r, n)
	case n > 2*maxVectors, rows < d.Multiprocessors/2, t == op.F32 && n > 3*maxVectors/2 && !isNorm(r.Op):
		return planLongRows(r, rows, n, d)
	}
	w := chooseRowSchedule(r.Op, t, cols, weights, d)
	if w.Registers == 1 && w.Width > 1 && rows >= 16*w.Groups*d.Multiprocessors {
		w.Rows = 4 // a block takes as long to start as to process such a short row
	}
	w.AlignedWeights = w.AlignedWeights && weights > 0 && cols%w.Width != 0 && rows >= minAligned/cols
	if w.Ring > 0 && w.Ring <= w.Shared { // the device has too little shared memory
		return planLongRows(r, rows, n, d)
	}
	return planRowsBy(r, w, d)
}

// minAligned is the smallest number of elements for which a launch that aligns the weights pays
// off.
const minAligned = 1 << 22

// maxVectors is the number of vectors of the longest row that one block holds, and maxHalves that
// for 16-bit elements: a misaligned row of 64K elements has one more vector.
const (
	maxVectors = 8192
	maxHalves  = maxVectors + 1
)

func isNorm(o *op.Operation) bool { return o == op.LayerNorm || o == op.RMSNorm }

// by returns the schedule that holds a row of n vectors in the registers of the given
// lanes, and bounds the registers so that a multiprocessor can hold the given blocks.
func (w rowSchedule) by(lanes, blocks, n int) rowSchedule {
	w.Lanes, w.Groups, w.Blocks, w.Registers = lanes, max(1, 128/lanes), blocks, (n-1)/lanes+1
	return w
}

// chooseRowSchedule returns the schedule of an operation on rows of cols elements, with the given
// number of weight operands. One multiprocessor holds a whole row.
func chooseRowSchedule(o *op.Operation, t op.DType, cols, weights int, d *Device) rowSchedule {
	v := rowVector(t)
	w := rowSchedule{Lanes: 1, Groups: 1, Rows: 1, Width: v, Load: ptx.Once, Save: ptx.Once}
	ragged := cols%v != 0
	if ragged {
		// Adjacent rows share vectors, which are read twice.
		w.Load, w.Save = ptx.Cached, ptx.Cached
		if t == op.F32 && cols <= 256 || t != op.F32 && cols < 33 {
			return w.singles(t, cols)
		}
		if t != op.F32 {
			if n, ok := w.narrow(cols, weights); ok {
				return n
			}
			if p, ok := w.pairs(cols, weights); ok {
				return p
			}
		}
	}
	n := rowVectors(cols, v)
	rules, cached := floatRowRules, 256*9
	if t != op.F32 {
		w.AlignedWeights = weights > 0
		rules, cached = halfRowRules, 16*9
	}
	if ragged && weights > 0 && n > cached {
		w.Save = ptx.Once // the weights stay in L1
	}
	resident := 32 / v // vectors that fill 32 registers
	for _, r := range rules {
		if r.fits(o, ragged, weights, n, d) {
			return r.schedule(w, n)
		}
	}
	return w.stream(n, resident, d)
}

// pairSchedules are the schedules of misaligned rows of 16-bit elements for which loading two
// elements at once is the fastest, by the number of weights and the length. They read the weights
// in place, and L1 serves them to all rows; aligned copies of the weights would come from L2.
var pairSchedules = []struct{ weights, above, limit, lanes, blocks int }{
	{2, 1008, 1400, 32, 6},
	{2, 3328, 4097, 128, 8},
	{2, 7000, 8190, 256, 5},
	{2, 8190, 11264, 128, 4},
	{2, 11264, 13310, 256, 3},
	{2, 13310, 18430, 384, 3},
	{2, 18430, 23550, 256, 2},
	{2, 23550, 25598, 512, 2},
	{2, 25598, 29438, 640, 2},
	{2, 29438, 30718, 512, 2},
	{1, 8190, 8702, 128, 4},
	{1, 8702, 13310, 256, 3},
	{1, 19000, 25598, 256, 2},
}

// pairs returns the schedule that pairSchedules lists for the length of the rows.
func (w rowSchedule) pairs(cols, weights int) (rowSchedule, bool) {
	for _, p := range pairSchedules {
		if p.weights != weights || cols <= p.above || cols > p.limit {
			continue
		}
		w.Width, w.Packed, w.Load, w.Save = 2, true, ptx.Once, ptx.Once
		return w.by(p.lanes, p.blocks, rowVectors(cols, w.Width)), true
	}
	return w, false
}

// stream returns the schedule of persistent blocks of 1024 threads. A thread holds up to resident
// of its vectors in registers, and has a slot in shared memory for each other vector, as far as
// they fit beside the partials.
func (w rowSchedule) stream(n, resident int, d *Device) rowSchedule {
	w.Lanes = 1024
	each := (n-1)/w.Lanes + 1
	w.Registers = min(each, resident)
	w.Shared = each - w.Registers
	room := (d.Shared/max(w.Blocks, 1) - 2<<10) / (16 * w.Lanes)
	w.Ring = min(room, each)
	return w
}

// singles returns the schedule for short rows that are loaded element by element. Adjacent threads
// load adjacent elements, so the accesses of a row cover whole cache lines. The shortest rows go
// through shared memory.
func (w rowSchedule) singles(t op.DType, cols int) rowSchedule {
	w.Width = 1
	for _, s := range singleSchedules {
		if cols > s.limit || s.float32s && t != op.F32 {
			continue
		}
		if w.Staged = s.staged; w.Staged {
			w.Rows = 2
		}
		for w.Lanes < 32 && cols > s.each*w.Lanes {
			w.Lanes *= 2
		}
		break
	}
	w.Groups = 128 / w.Lanes
	w.Registers = (cols-1)/w.Lanes + 1
	if w.Registers <= 3 {
		w.Rows = 4
	}
	return w
}

// singleSchedules are the schedules of rows of up to limit elements that are loaded element by element: up to each
// elements for each of 1 to 32 lanes. The first row that fits decides.
var singleSchedules = []struct {
	limit    int
	float32s bool // only float32; other types need more computation for each byte
	staged   bool // through shared memory
	each     int
}{
	{limit: 16, float32s: true, staged: true, each: 9},
	{limit: math.MaxInt, float32s: true, each: 5},
	{limit: 64, staged: true, each: 9},
	{limit: math.MaxInt, each: 9},
}

// narrow returns the schedule for short rows of 16-bit elements that are not aligned to 16 bytes. A
// thread loads four elements if rows are aligned to four, otherwise two; then only the first and
// the last pair may contain an element of another row.
func (w rowSchedule) narrow(cols, weights int) (rowSchedule, bool) {
	w.Width, w.AlignedWeights = 2, weights > 0
	if cols%4 == 0 {
		w.Width = 4
	}
	n := rowVectors(cols, w.Width)
	if w.Width == 2 && n < 25 { // adjacent threads would read the same cache lines too often
		return w.singles(op.BF16, cols), true
	}
	if cols%2 != 0 {
		for _, s := range oddSchedules {
			if weights == s.weights && n > s.above && n <= s.limit {
				w = w.by(s.lanes, s.blocks, n)
				w.Rows, w.AlignedWeights = s.rows, s.aligned
				return w, true
			}
		}
	}
	weightedPairs := weights > 0 && w.Width == 2
	for _, s := range narrowSchedules {
		if n <= s.lanes*s.registers && (weightedPairs || !s.weightedPairs) && (cols%2 == 0 || !s.even) {
			w.Lanes, w.Groups, w.Registers = s.lanes, 128/s.lanes, (n-1)/s.lanes+1
			if weightedPairs && w.Lanes*w.Registers <= 16*6 {
				w.Rows = 2
			}
			w.Packed = w.Packed || s.lanes == 16 && w.Registers > 9
			return w, true
		}
	}
	return w, false
}

// narrowSchedules are the schedules of rows that narrow divides: lanes, and the largest number of vectors that a
// lane holds. The first row that fits decides.
var narrowSchedules = []struct {
	lanes, registers    int
	weightedPairs, even bool // only rows of pairs with weights; only an even number of elements
}{
	{lanes: 4, registers: 4},
	{lanes: 8, registers: 5},
	{lanes: 8, registers: 7, weightedPairs: true},
	{lanes: 16, registers: 8},
	{lanes: 16, registers: 11, weightedPairs: true, even: true}, // each lane of a whole warp would have little work
	{lanes: 32, registers: 11},
}

// oddSchedules are exceptions for rows with an odd number of 16-bit elements, by the number of
// weights and the number of pairs in a row (more than above, up to limit).
var oddSchedules = []struct {
	weights, above, limit, lanes, rows, blocks int
	aligned                                    bool
}{
	{1, 16 * 6, 16 * 7, 16, 2, 0, false},
	{1, 16 * 8, 16 * 9, 16, 2, 6, true},
	{1, 32 * 5, 32 * 7, 32, 2, 0, true},
	{2, 16 * 5, 16 * 6, 16, 2, 8, true},
	{2, 16 * 8, 16 * 10, 16, 2, 6, true},
	{2, 16 * 10, 16 * 11, 16, 1, 0, true},
	{2, 16 * 11, 32 * 7, 32, 2, 8, true},
}

// maxClusterVectors is the number of vectors of the longest row that a cluster holds.
const maxClusterVectors = 512 * 8 * maxRowCluster

// clusterVectors is the largest number of vectors that a block of a cluster holds: half in
// registers and half in shared memory, so that two such blocks fit on a multiprocessor. A block
// with at most residentVectors holds them in the registers of half as many threads, which is
// faster.
const (
	clusterVectors  = 2 * 512 * 8
	residentVectors = 256 * 25
	fourthVectors   = 256 * 14 // three resident blocks, if rows are aligned
)

// clusterSchedules are the schedules of rows that clusters share, measured. The first entry that fits
// decides. Some lengths with two weights are faster with one block on a multiprocessor.
var clusterSchedules = []struct {
	single, half bool // only float32, only 16-bit elements
	two, fewer   bool // only with two weights, only with fewer
	aligned      bool // only rows that begin at vectors
	maxParts     int  // the blocks of the cluster, 0 without limit
	maxBlock     int  // the vectors of a block, 0 without limit
	maxRow       int  // the vectors of a row, 0 without limit

	split         int // each block of the cluster becomes this many
	lanes, blocks int
	registers     int // the most vectors in the registers of a thread; others are in shared memory. 0: no limit
}{
	{half: true, fewer: true, maxBlock: 512 * 9, split: 1, lanes: 512, blocks: 2}, // nine vectors for each thread instead of 18
	{maxBlock: residentVectors, split: 1, lanes: 256, blocks: 2},
	{single: true, aligned: true, fewer: true, maxParts: 2, maxRow: 4 * fourthVectors, split: 2, lanes: 256, blocks: 3},
	{single: true, aligned: true, maxParts: 2, maxRow: 4 * fourthVectors, split: 2, lanes: 256, blocks: 2},
	{single: true, two: true, aligned: true, maxRow: 15000, split: 1, lanes: 512},
	{half: true, two: true, aligned: true, split: 1, lanes: 512},
	{single: true, split: 1, lanes: 512, blocks: 2, registers: 8},
	{half: true, split: 1, lanes: 512, blocks: 2, registers: 10},
}

// planClusteredRows plans an operation on rows of n vectors that clusters share.
func planClusteredRows(r *portable.Request, n int) (*Plan, error) {
	rows, cols := r.In[0].Shape.Rows()
	w := rowSchedule{Groups: 1, Rows: 1, Width: rowVector(r.In[0].Type), Load: ptx.Once, Save: ptx.Once}
	parts := 2
	for parts*clusterVectors < n {
		parts *= 2
	}
	two := len(r.In) > 2 && r.In[1].Shape != nil && r.In[2].Shape != nil
	shift, f32 := cols%w.Width != 0, r.In[0].Type == op.F32
	if shift {
		w.Load, w.Save = ptx.Cached, ptx.Cached
		w.AlignedWeights = (two || !f32) && rows >= minAligned/cols
	}
	w.Packed = !f32
	for _, c := range clusterSchedules {
		if c.single && !f32 || c.half && f32 || c.two && !two || c.fewer && two || c.aligned && shift ||
			c.maxParts > 0 && parts > c.maxParts || c.maxBlock > 0 && n > parts*c.maxBlock || c.maxRow > 0 && n > c.maxRow {
			continue
		}
		parts *= c.split
		w.Lanes, w.Blocks = c.lanes, c.blocks
		w.Registers = ((n-1)/parts)/w.Lanes + 1
		if c.registers > 0 && w.Registers > c.registers {
			w.Registers, w.Shared = c.registers, w.Registers-c.registers
		}
		break
	}
	return planRowCluster(r, w, parts)
}

// planLongRows plans an operation on rows of n vectors that several blocks share, because rows are
// few or long.
func planLongRows(r *portable.Request, rows, n int, d *Device) (*Plan, error) {
	v := rowVector(r.In[0].Type)
	w := rowSchedule{Lanes: 256, Groups: 1, Rows: 1, Width: v, Registers: 32 / v, Blocks: 4, Load: ptx.Once, Save: ptx.Once}
	parts := (n-1)/(w.Lanes*w.Registers) + 1
	// Give each block less work if more multiprocessors are busy then.
	for 2*rows*parts <= d.Multiprocessors && w.Registers > 1 {
		w.Registers /= 2
		parts = (n-1)/(w.Lanes*w.Registers) + 1
	}
	return planRowParts(r, w, parts, parts > maxRowParts)
}
