package ptxkernels

import (
	"fmt"

	"github.com/rayo-go/rayo/ptx"
)

// rowGroup is the lane group of a row, from the view of one thread.
type rowGroup struct {
	s       *rowSpec
	k       *ptx.Kernel
	tid     ptx.U32 // index in the block
	lane    ptx.U32 // index in the group
	number  ptx.U32 // index of the group in the block
	nrows   ptx.U32
	cols    ptx.U32
	all     ptx.U32 // elements of the array
	part    ptx.U32 // part of the row that the block processes, if rows have parts
	parts   ptx.U32 // number of parts of a row
	each    ptx.U32 // vectors of a part
	row     ptx.U32 // row of the part
	states  ptx.Global[ptx.U32]
	counter ptx.Global[ptx.U32] // parts of the row that are finished
	reduced int                 // number of reductions of the block so far
}

func (s *rowSpec) newRowGroup(k *ptx.Kernel, rows, cols ptx.U32) *rowGroup {
	k.Block(s.threads(), 1, 1)
	if s.Blocks > 0 {
		k.MinBlocks(s.Blocks)
	}
	if s.Cluster > 0 {
		k.Cluster(s.Cluster, 1, 1)
	}
	t := &rowGroup{s: s, k: k, tid: k.Special(ptx.TidX), nrows: rows, cols: cols, all: rows.Mul(cols)}
	t.lane = t.tid
	if s.Groups > 1 {
		t.lane, t.number = t.tid.And(ptx.N(s.Lanes-1)), t.tid.Div(ptx.N(s.Lanes))
	}
	return t
}

// rows returns the rows of the group. Adjacent groups have adjacent rows, so that their loads are
// contiguous.
func (t *rowGroup) rows(rows, cols ptx.U32) []*residentRow {
	s, block := t.s, t.k.Special(ptx.CtaidX)
	if s.Groups*s.Rows == 1 {
		if s.Parts != wholeRows {
			t.newPart()
			block = t.row
		}
		r := t.newResidentRow(block, rows, cols)
		if s.Parts != wholeRows || !s.choosesWeights() {
			// The row always exists. A constant predicate removes the predicated loads, which keep
			// the old contents of their registers alive. With code for each shift, the assembler
			// does not gain from it.
			r.is = ptx.Is(true)
		}
		return []*residentRow{r}
	}
	resident := make([]*residentRow, s.Rows)
	first := block.MulAdd(ptx.N(s.Groups*s.Rows), t.number)
	for u := range resident {
		resident[u] = t.newResidentRow(first.Add(ptx.N(u*s.Groups)), rows, cols)
	}
	return resident
}

// run runs f for the resident rows of the group: for all at once, or, if blocks iterate over rows,
// for one after the other. Elements outside a row are replaced by neutral. The results go to y.
func (t *rowGroup) run(x ptx.Global[ptx.B32], y *sink, neutral float32, f func(resident []*residentRow)) {
	s, k := t.s, t.k
	if s.Ring > 0 {
		t.stream(x, neutral, func(r *residentRow) { f([]*residentRow{r}) })
		return
	}
	resident := t.rows(t.nrows, t.cols)
	if s.Staged {
		g := t.stage(x)
		for _, r := range resident {
			g.load(r, neutral)
		}
		f(resident)
		g.flush(ptx.Cast[ptx.B32](y.to[0]))
		return
	}
	for _, r := range resident {
		r.load(x, t, neutral)
	}
	if s.Ahead {
		t.prefetch(x, ptx.Param[ptx.U32](k, "ahead"))
	}
	if s.Shared > 0 {
		k.CopyWait(0)
	}
	f(resident)
}

// prefetch prefetches the row of a later block to L2; each thread prefetches lines of 128 bytes.
// This keeps the memory busy while this block computes and stores.
func (t *rowGroup) prefetch(x ptx.Global[ptx.B32], ahead ptx.U32) {
	next := t.k.Special(ptx.CtaidX).Add(ahead)
	t.k.If(next.Lt(t.nrows), func() {
		line := 128 / t.s.Type.Size()
		from := ptx.Cast[ptx.U8](x).At(next.Mul(t.cols).Mul(ptx.N(t.s.Type.Size())))
		t.k.For(t.tid.Mul(ptx.N(line)), t.cols, ptx.N(line*t.s.threads()), func(i ptx.U32) {
			ptx.Prefetch(from.At(i.Mul(ptx.N(t.s.Type.Size()))))
		})
	})
}

// reduce combines each element of v over the threads of the group. The order depends only on the
// number of threads. f must be commutative.
func (t *rowGroup) reduce(v []ptx.F32, f func(a, b ptx.F32) ptx.F32) []ptx.F32 {
	v = append([]ptx.F32(nil), v...)
	for d := min(t.s.Lanes, 32) / 2; d > 0; d /= 2 {
		for i := range v {
			v[i] = f(v[i], ptx.ShuffleXor(v[i], ptx.N(d)))
		}
	}
	if t.s.Lanes <= 32 {
		return v
	}
	warps := t.s.Lanes / 32
	// Each reduction has its own array, so that no barrier is needed before the next one writes.
	part := ptx.SharedArray[ptx.F32](t.k, fmt.Sprintf("part%d", t.reduced), warps*len(v))
	t.reduced++
	t.k.If(t.tid.And(ptx.U(31)).Eq(ptx.U(0)), func() {
		for i := range v {
			part.At(t.tid.Div(ptx.U(32))).Offset(i * warps).Store(v[i])
		}
	})
	t.k.Sync()
	for i := range v {
		var parts [4]ptx.F32
		for w := 0; w < warps; w += 4 {
			next := part.Offset(i*warps + w).Load4()
			for j := range parts {
				if w == 0 {
					parts[j] = next[j]
				} else {
					parts[j] = f(parts[j], next[j])
				}
			}
		}
		v[i] = f(f(parts[0], parts[1]), f(parts[2], parts[3]))
	}
	return v
}
