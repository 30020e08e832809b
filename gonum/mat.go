package gonum

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// Float32s returns the elements of m in row-major order, rounded to float32, as
// batch.Upload and the methods of device take them, and the number of rows and columns. Values
// beyond float32 become infinities.
func Float32s(m mat.Matrix) (data []float32, rows, cols int) {
	rows, cols = m.Dims()
	data = make([]float32, 0, rows*cols)
	if raw, ok := m.(mat.RawMatrixer); ok {
		r := raw.RawMatrix()
		for i := range rows {
			for _, v := range r.Data[i*r.Stride : i*r.Stride+cols] {
				data = append(data, float32(v))
			}
		}
		return data, rows, cols
	}
	for i := range rows {
		for j := range cols {
			data = append(data, float32(m.At(i, j)))
		}
	}
	return data, rows, cols
}

// Dense returns a matrix of the elements of data, which are in row-major order. It
// returns an error if data does not have rows·cols elements, or none.
func Dense(data []float32, rows, cols int) (*mat.Dense, error) {
	if rows <= 0 || cols <= 0 || len(data)%cols != 0 || len(data)/cols != rows {
		return nil, fmt.Errorf("gonum: Dense: %d elements for a matrix of %d×%d; both extents must be positive and their product the number of elements", len(data), rows, cols)
	}
	m := mat.NewDense(rows, cols, nil)
	raw := m.RawMatrix().Data
	for i, v := range data {
		raw[i] = float64(v)
	}
	return m, nil
}
