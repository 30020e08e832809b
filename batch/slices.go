package batch

import (
	"context"
	"fmt"

	"github.com/rayo-go/rayo/device"
)

// UploadSlices records a matrix of f32 whose rows are slices of one length. It copies
// them now, unlike [Batch.Upload].
//
//	x := b.UploadSlices([][]float32{{1, 2}, {3, 4}})
//
// Execute or Compile returns [op.ErrShape] for rows of different lengths.
func (b *Batch) UploadSlices(rows [][]float32) Value {
	cols := 0
	if len(rows) > 0 {
		cols = len(rows[0])
	}
	for i, r := range rows {
		if len(r) != cols {
			return b.fail(fmt.Errorf("upload: row %d has %d elements, row 0 has %d: %w", i, len(r), cols, device.ErrShape))
		}
	}
	data := device.Alloc(len(rows) * cols)
	for i, r := range rows {
		copy(data[i*cols:], r)
	}
	return b.Upload(data, len(rows), cols)
}

// ReadSlices returns the rows of a value of f32 [m n], as [Read] does its elements.
//
// Another number of extents is [op.ErrShape].
func (b *Batch) ReadSlices(ctx context.Context, v Value) ([][]float32, error) {
	s := v.Shape()
	if b.own(v) && len(s) != 2 {
		return nil, fmt.Errorf("slices of %v with %d extents: reshape it to 2: %w", s, len(s), device.ErrShape)
	}
	data, err := Read[float32](ctx, b, v)
	if err != nil {
		return nil, err
	}
	rows := make([][]float32, s[0])
	for i := range rows {
		rows[i] = data[i*s[1] : (i+1)*s[1] : (i+1)*s[1]]
	}
	return rows, nil
}
