package ptxkernels

import (
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

func init() { register(planScatter, op.Scatter) }

const (
	// radixScatterRows is the smallest number of rows for which sorting is faster. For fewer rows,
	// the portable kernels fold buckets of rows in shared memory.
	radixScatterRows = 1 << 14
	radixScatterIDs  = 1 << 14
)

// planScatter plans a scatter-add into many rows of one element. It sorts the elements by buckets of 32 rows
// (stably, in the order of the ids); then one warp folds the elements of each bucket.
func planScatter(r *portable.Request, d *Device) (*Plan, error) {
	m, err := op.IndexedOf(&r.Attrs, r.In[0].Shape, r.In[1].Shape)
	if err != nil {
		return nil, err
	}
	if op.ScatterReduceOf(&r.Attrs) != op.ScatterAdd || m.Outer != 1 || m.Inner != 1 || m.Extent < radixScatterRows || m.IDs < radixScatterIDs || !radixFits(r, d, m.IDs) {
		return nil, unsupported("%v into %d rows", op.ScatterReduceOf(&r.Attrs), m.Extent)
	}
	e, err := newEpilogue(r, nil, 0)
	if err != nil {
		return nil, err
	}
	t := r.In[0].Type
	s := &radixSort{radixOrder: bucketsOf(m.Extent, radixFoldBits), rows: 1, cols: m.IDs, limit: m.IDs, d: d, tile: chooseRadixTile(m.IDs), extent: m.Extent}
	s.values = radixValues{r.In[2].Type, input(2)}
	if !r.InPlace {
		s.copied, s.to = radixValues{t, input(0)}, output(0)
	}
	p := &Plan{Variant: s.tile.name(), InPlace: true} // copying an array onto itself is harmless
	rows, values := p.temporary(m.IDs), p.temporary(m.IDs)
	s.sort(p, input(1), rows, values)
	f := radixFold{Type: t}
	p.Stages = append(p.Stages, Stage{
		Kernel: radixKernel(f, "radix_fold", 32*radixFoldWarps, func(k *ptx.Kernel) { f.build(k, e) }),
		Grid:   [3]uint32{uint32(ceil(m.IDs, radixFoldWarps*radixFoldEach)), 1, 1}, Zero: -1,
		Args: append([]Arg{rows, values, input(0), word(uint32(m.IDs)), word(uint32(m.Extent))}, e.args()...),
	})
	return p, nil
}
