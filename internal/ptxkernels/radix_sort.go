package ptxkernels

import (
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

func init() {
	register(planSort, op.Sort)
	register(planTopK, op.TopK)
}

// radixShortest is the length of rows up to which the portable kernels sort them in the memory of a
// workgroup.
const radixShortest = 2048

// planSort plans a sort of long rows.
func planSort(r *portable.Request, d *Device) (*Plan, error) {
	rows, cols := r.In[0].Shape.Rows()
	if !radixFits(r, d, cols) {
		return nil, unsupported("rows of %d elements", cols)
	}
	s := &radixSort{radixOrder: orderOf(r.In[0].Type, op.SortOptsOf(&r.Attrs).Descending), rows: rows, cols: cols, limit: cols, d: d}
	s.tile = chooseRadixTile(cols)
	p := &Plan{Variant: s.tile.name()}
	s.sort(p, input(0), output(0), output(1))
	return p, nil
}

// planTopK plans the search for the greatest elements of long rows: the last pass of a sort writes
// these only.
func planTopK(r *portable.Request, d *Device) (*Plan, error) {
	rows, cols := r.In[0].Shape.Rows()
	k := op.TopKOptsOf(&r.Attrs).K
	if !radixFits(r, d, cols) || !portable.TopKSorts(k, cols) {
		return nil, unsupported("the greatest %d of %d elements", k, cols)
	}
	s := &radixSort{radixOrder: orderOf(r.In[0].Type, true), rows: rows, cols: cols, limit: k, d: d}
	s.tile = chooseRadixTile(cols)
	p := &Plan{Variant: s.tile.name()}
	s.sort(p, input(0), output(0), output(1))
	return p, nil
}
