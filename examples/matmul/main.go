// Command matmul multiplies matrices, with a bias and an activation, and
// compares with loops in Go.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()

	// C[m,n] = A[m,k] · B[k,n]; all row by row.
	a := []float32{
		1, 2, 3,
		4, 5, 6,
	}
	b := []float32{
		1, 0,
		0, 1,
		1, -1,
	}
	c := make([]float32, 2*2)
	if err := dev.MatMul(ctx, c, a, b, nil, 2, 3, 2); err != nil {
		return err
	}
	fmt.Fprintln(w, "product     ", c)

	// A linear layer whose weights stand as [out, in]: TransB, a bias for
	// every row, and an activation that costs no pass of its own.
	weights := []float32{
		1, 0, 1,
		0, 1, -1,
	}
	bias := []float32{-5, 0.5}
	if err := dev.MatMul(ctx, c, a, weights, bias, 2, 3, 2, op.MatMulOpts{TransB: true, Act: op.Relu}); err != nil {
		return err
	}
	fmt.Fprintln(w, "linear layer", c)

	// A larger one, beside three loops. Memory from Alloc is aligned and on
	// huge pages where the system has them.
	const n = 512
	x, y, z := device.Alloc(n*n), device.Alloc(n*n), device.Alloc(n*n)
	for i := range x {
		x[i], y[i] = rand.Float32()-0.5, rand.Float32()-0.5
	}
	start := time.Now()
	want := loops(x, y, n)
	plain := time.Since(start)
	if err := dev.MatMul(ctx, z, x, y, nil, n, n, n); err != nil { // the first call finds its kernels
		return err
	}
	start = time.Now()
	if err := dev.MatMul(ctx, z, x, y, nil, n, n, n); err != nil {
		return err
	}
	took := time.Since(start)
	worst := 0.0
	for i := range z {
		worst = max(worst, math.Abs(float64(z[i]-want[i])))
	}
	fmt.Fprintf(w, "%d×%d×%d: loops in Go %v, %v %v, %.0f GFLOP/s; they differ by at most %.1g\n", n, n, n,
		plain.Round(time.Millisecond/10), dev, took.Round(time.Microsecond*10), 2*n*n*n/took.Seconds()/1e9, worst)
	return nil
}

// loops multiplies as one would write it by hand, in an order that suits the
// caches.
func loops(x, y []float32, n int) []float32 {
	z := make([]float32, n*n)
	for i := range n {
		row := z[i*n:][:n]
		for k := range n {
			f := x[i*n+k]
			for j, v := range y[k*n:][:n] {
				row[j] += f * v
			}
		}
	}
	return z
}
