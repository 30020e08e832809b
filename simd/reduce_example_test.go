package simd_test

import (
	"fmt"

	"github.com/rayo-go/rayo/simd"
)

func ExampleReduce() {
	x := []float32{3, -4, 0, 12}
	fmt.Println(simd.Sum(x), simd.Reduce(nil, simd.ReduceNorm, x, nil), simd.ArgMax(x))
	// Output: 11 13 3
}

func ExampleFold() {
	// Neighbouring parts may be reduced one by one, for instance as they come
	// in, and joined in their order.
	a := simd.Fold(nil, simd.ReduceVar, []float32{1, 2}, nil)
	b := simd.Fold(nil, simd.ReduceVar, []float32{3, 6}, nil)
	fmt.Println(simd.ReduceVar.Value(simd.ReduceVar.Join(a, b), 0))
	// Output: 3.5
}

func ExampleReduceRows() {
	x := []float32{
		1, 2, 3,
		4, 5, 6,
	}
	dst := make([]float32, 2)
	simd.ReduceRows(nil, simd.ReduceMean, 0, dst, x, nil, 2, 3)
	fmt.Println(dst)
	// Output: [2 5]
}

func ExampleSoftmax() {
	x := []float32{1, 1, 1, 1}
	simd.Softmax(nil, x, x, 2, 2)
	fmt.Println(x)
	// Output: [0.5 0.5 0.5 0.5]
}

func ExampleRowOp() {
	o := simd.RowOp{Kind: simd.RowRMSNorm, Gamma: []float32{1, 10}}
	x := []float32{1, -1}
	o.Row(x, x)
	fmt.Println(x)
	// Output: [1 -10]
}

func ExampleTopK() {
	values, columns := make([]float32, 2), make([]int32, 2)
	simd.TopK(nil, values, columns, []float32{0.5, 2, -1, 2}, 1, 4, 2)
	fmt.Println(values, columns)
	// Output: [2 2] [1 3]
}

func ExampleGather() {
	table := []float32{0, 0, 1, 1, 2, 2}
	dst := make([]float32, 4)
	simd.Gather(nil, dst, table, []int32{2, 0}, 1, 3, 2, 0)
	fmt.Println(dst)
	// Output: [2 2 0 0]
}

func ExampleTranspose() {
	dst := make([]float32, 6)
	simd.Transpose(nil, dst, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	fmt.Println(dst)
	// Output: [1 4 2 5 3 6]
}

func ExampleRope() {
	// The first vector stands at position 0 and does not turn.
	x := []float32{1, 0, 1, 0}
	simd.Rope{Positions: 2, Dim: 2}.Run(nil, x, x)
	fmt.Printf("%.3f\n", x)
	// Output: [1.000 0.000 0.540 0.841]
}

func ExampleAttention() {
	// The query is far closer to the second key.
	a := simd.Attention{
		Heads: 1, KVHeads: 1, Queries: 1, Keys: 2, Dim: 2,
		Q:   []float32{0, 100},
		K:   []float32{1, 0, 0, 1},
		V:   []float32{1, 2, 3, 4},
		Dst: make([]float32, 2),
	}
	a.Run(nil)
	fmt.Println(a.Dst)
	// Output: [3 4]
}
