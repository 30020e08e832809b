// Command matmul_bench multiplies matrices on every device of the machine, and
// says how fast each is and how far their results are apart.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"text/tabwriter"
	"time"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
)

func main() {
	size := flag.Int("size", 512, "rows and columns of the matrices")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *size, 300*time.Millisecond); err != nil {
		log.Fatal(err)
	}
}

// products is how many products are one round trip: each takes the result of the
// one before, so that a device cannot run them at once or leave one out.
const products = 8

func run(ctx context.Context, w io.Writer, n int, budget time.Duration) error {
	if n < 1 || n > 16384 {
		return fmt.Errorf("matrices of %d rows: there may be 1 to 16384", n)
	}
	infos, err := device.List(ctx)
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	x, m := make([]float32, n*n), make([]float32, n*n)
	for i := range x {
		x[i] = float32(rnd.NormFloat64())
		m[i] = float32(rnd.NormFloat64() / math.Sqrt(float64(n))) // keeps the size of numbers
	}
	fmt.Fprintf(w, "%d products of %d×%d matrices, one after the other:\n", products, n, n)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var first []float32
	for _, info := range infos {
		y, best, err := chain(ctx, info, x, m, n, budget)
		if err != nil {
			return fmt.Errorf("%v: %w", info, err)
		}
		apart := ""
		if first == nil {
			first = y
		} else {
			apart = fmt.Sprintf("at most %.1e from the first", difference(first, y))
		}
		gflops := 2 * products * float64(n) * float64(n) * float64(n) / best.Seconds() / 1e9
		fmt.Fprintf(t, "%v\t%s\t%v\t%.0f GFLOP/s\t%s\n", info, info.Name, best.Round(time.Microsecond), gflops, apart)
	}
	return t.Flush()
}

// chain multiplies x by m several times on a device. The matrices stay there, so
// that only the products are measured. It returns the result and the shortest time.
func chain(ctx context.Context, info device.Info, x, m []float32, n int, budget time.Duration) (y []float32, best time.Duration, err error) {
	dev, err := device.Open(ctx, device.Require(info.Kind), device.WithIndex(info.Index))
	if err != nil {
		return nil, 0, err
	}
	defer dev.Close()
	var buf [3]*device.Buffer
	for i, data := range [][]float32{x, m, x} {
		if buf[i], err = device.Upload(ctx, dev, data, n, n); err != nil {
			return nil, 0, err
		}
		defer buf[i].Close()
	}
	b := batch.New(dev)
	v, weights := b.Use(buf[0]), b.Use(buf[1])
	for range products {
		v = b.MatMul(v, weights, batch.None)
	}
	b.Store(buf[2], 0, v)
	plan, err := b.Compile(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer plan.Close()
	// The first run makes kernels and wakes the device.
	end := time.Time{}
	for i := 0; i == 0 || time.Now().Before(end); i++ {
		start := time.Now()
		if err := plan.Run(ctx); err != nil {
			return nil, 0, err
		}
		switch took := time.Since(start); {
		case i == 0:
			end = time.Now().Add(budget)
			best = took
		default:
			best = min(best, took)
		}
	}
	y = make([]float32, n*n)
	return y, best, device.Read(ctx, y, buf[2])
}

// difference returns the greatest difference, as a part of the largest number.
func difference(x, y []float32) float64 {
	most, largest := 0.0, 0.0
	for i := range x {
		most = max(most, math.Abs(float64(x[i])-float64(y[i])))
		largest = max(largest, math.Abs(float64(x[i])))
	}
	return most / largest
}
