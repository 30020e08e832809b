package gonum_test

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/mat"

	"github.com/rayo-go/rayo/gonum"
)

func ExampleNewBLAS() {
	blas32.Use(gonum.NewBLAS())
	a := blas32.General{Rows: 2, Cols: 2, Stride: 2, Data: []float32{1, 2, 3, 4}}
	c := blas32.General{Rows: 2, Cols: 2, Stride: 2, Data: make([]float32, 4)}
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, a, a, 0, c)
	fmt.Println(c.Data)
	// Output: [5 11 11 25]
}

func ExampleFloat32s() {
	m := mat.NewDense(2, 2, []float64{1, 2, 3, 4})
	data, rows, cols := gonum.Float32s(m.T())
	fmt.Println(data, rows, cols)
	// Output: [1 3 2 4] 2 2
}
