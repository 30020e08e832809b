package gonum

import (
	"testing"

	"gonum.org/v1/gonum/mat"
)

func TestMatrices(t *testing.T) {
	m := mat.NewDense(3, 4, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	for _, c := range []struct {
		name       string
		m          mat.Matrix
		rows, cols int
		want       []float32
	}{
		{"all", m, 3, 4, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{"a part, whose rows are apart", m.Slice(1, 3, 1, 3), 2, 2, []float32{6, 7, 10, 11}},
		{"a transpose, which has no rows in memory", m.Slice(0, 2, 0, 3).T(), 3, 2, []float32{1, 5, 2, 6, 3, 7}},
	} {
		got, rows, cols := Float32s(c.m)
		if rows != c.rows || cols != c.cols || len(got) != len(c.want) {
			t.Fatalf("%s: %d×%d, %d elements", c.name, rows, cols, len(got))
		}
		for i, v := range got {
			if v != c.want[i] {
				t.Errorf("%s: element %d is %v, want %v", c.name, i, v, c.want[i])
			}
		}
		back, err := Dense(got, rows, cols)
		if err != nil || !mat.Equal(back, c.m) {
			t.Errorf("%s: %v back, %v", c.name, mat.Formatted(back), err)
		}
	}
	for _, e := range [][2]int{{2, 3}, {0, 0}, {-2, -2}, {4, 0}} {
		if _, err := Dense(make([]float32, 4), e[0], e[1]); err == nil {
			t.Errorf("4 elements as %d×%d: no error", e[0], e[1])
		}
	}
}
