package ptxkernels

import (
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

func init() {
	register(planSort, op.Sort)
	register(planTopK, op.TopK)
}

// radixShortest is the longest row that the portable kernels sort in shared memory.
const radixShortest = 2048

// planSort plans a sort of long rows.
func planSort(r *portable.Request, d *Device) (*Plan, error) {
	_, cols := r.In[0].Shape.Rows()
	if !radixFits(r, d, cols) {
		return nil, unsupported("rows of %d elements", cols)
	}
	return planRadix(r, d, op.SortOptsOf(&r.Attrs).Descending, cols), nil
}

// planTopK plans the search for the greatest elements of long rows. It is a sort whose last pass
// writes only these elements.
func planTopK(r *portable.Request, d *Device) (*Plan, error) {
	_, cols := r.In[0].Shape.Rows()
	k := op.TopKOptsOf(&r.Attrs).K
	if !radixFits(r, d, cols) || !portable.TopKSorts(k, cols) {
		return nil, unsupported("the greatest %d of %d elements", k, cols)
	}
	return planRadix(r, d, true, k), nil
}

// planRadix plans a sort of rows that writes the first limit elements of each row and their columns.
func planRadix(r *portable.Request, d *Device, descending bool, limit int) *Plan {
	rows, cols := r.In[0].Shape.Rows()
	s := &radixSort{radixOrder: orderOf(r.In[0].Type, descending), rows: rows, cols: cols, limit: limit, d: d, tile: chooseRadixTile(cols)}
	p := &Plan{Variant: s.tile.name()}
	s.sort(p, input(0), output(0), output(1))
	return p
}
