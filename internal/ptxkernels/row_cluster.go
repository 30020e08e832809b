package ptxkernels

import (
	"math"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// On devices with clusters of blocks, the blocks of one cluster share a row. They run at the same
// time, and each block writes its partial to the shared memory of the others. Global memory carries
// only the row, which is read once and written once.

// maxRowCluster is the largest number of parts of a row in a cluster: the largest cluster that
// every device with clusters supports.
const maxRowCluster = ptx.MaxCluster

// planRowCluster plans an operation on rows whose parts the blocks of a cluster process. w is the
// schedule of a part.
func planRowCluster(r *portable.Request, w rowSchedule, parts int) (*Plan, error) {
	rows, cols := r.In[0].Shape.Rows()
	e, err := finish(r, cols)
	if err != nil {
		return nil, err
	}
	s, each := partsOfRow(r, w, parts)
	s.Parts, s.Cluster = clusterOfParts, parts
	p := &Plan{Variant: w.name() + "-cluster", InPlace: s.inPlace(r)}
	args, _ := rowArgs(r, &s, p, e, rows, cols)
	args = append(args, word(uint32(each)))
	grid := [3]uint32{uint32(rows * parts), 1, 1}
	p.Stages = append(p.Stages, Stage{Kernel: s.kernel(e), Grid: grid, Args: args, Zero: -1})
	return p, nil
}

// partsOfRow returns the spec of a kernel for rows of several parts, and the number of vectors in a
// part.
func partsOfRow(r *portable.Request, w rowSchedule, parts int) (s rowSpec, each int) {
	_, cols := r.In[0].Shape.Rows()
	s = rowSpec{Op: r.Op.Name(), Type: r.In[0].Type, rowSchedule: w, Misaligned: cols%w.Width != 0}
	each = (rowVectors(cols, w.Width)-1)/parts + 1
	last := max(cols/w.Width-each*(parts-1), 0)
	s.Whole = min(last/w.Lanes, w.Registers+w.Shared)
	return s, each
}

// rowArgs returns the first arguments of kernels for parts of rows, and the number of words in a
// partial.
func rowArgs(r *portable.Request, s *rowSpec, p *Plan, e *epilogue, rows, cols int) (args []Arg, states int) {
	states = 2
	args = append(append(s.operands(r, p), e.args()...), word(uint32(rows)), word(uint32(cols)))
	if isNorm(r.Op) {
		args = append(args, word(math.Float32bits(op.NormOptsOf(&r.Attrs).Eps)))
		states = 3
	}
	return args, states
}

// newClusterPart computes the row and the part of the block.
func (t *rowGroup) newClusterPart() {
	k := t.k
	t.each = ptx.Param[ptx.U32](k, "each")
	t.row = k.Special(ptx.CtaidX).Div(ptx.N(t.s.Cluster))
	t.part = k.Special(ptx.ClusterRank)
	// A block must not write to the shared memory of a block that has not started. Each block
	// signals its start here; tell waits for all signals before it writes.
	k.ClusterArriveRelaxed()
}

// tell is exchange between the blocks of a cluster.
func (t *rowGroup) tell(mine []ptx.B32, merge func(a, b []ptx.B32) []ptx.B32) []ptx.B32 {
	k, parts := t.k, t.s.Cluster
	states := ptx.SharedArray[ptx.B32](k, "states", len(mine)*parts)
	k.ClusterWait()
	k.If(t.tid.Lt(ptx.N(parts)), func() { // each thread writes to one block
		to := ptx.MapShared(states.At(t.part), t.tid)
		for i, v := range mine {
			to.Offset(i * parts).Store(v)
		}
	})
	k.ClusterSync()
	// Merge as a balanced tree. All blocks use the same order, so that they get the same result.
	all := make([][]ptx.B32, parts)
	for p := range all {
		for i := range mine {
			all[p] = append(all[p], states.Offset(i*parts+p).Load())
		}
	}
	for len(all) > 1 {
		n := len(all) / 2
		for p := range n {
			all[p] = merge(all[2*p], all[2*p+1])
		}
		if len(all)%2 == 1 {
			all[n] = all[len(all)-1]
			n++
		}
		all = all[:n]
	}
	return all[0]
}
