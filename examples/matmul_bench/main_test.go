package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/rayo-go/rayo/device"
)

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b, 33, 0); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^8 products of 33×33 matrices, one after the other:\n(.*\n)*cpu:0 .* GFLOP/s`).Match(b.Bytes()) {
		t.Errorf("got\n%s", &b)
	}
	for _, n := range []int{0, -1, 1 << 20} {
		if err := run(context.Background(), &b, n, 0); err == nil {
			t.Errorf("matrices of %d rows are multiplied", n)
		}
	}
}

func TestChain(t *testing.T) {
	ctx := context.Background()
	infos, err := device.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 7, 20} {
		x, m := make([]float32, n*n), make([]float32, n*n)
		for i := range x {
			x[i], m[i] = rand.Float32(), rand.Float32()/float32(n)
		}
		want := x
		for range products {
			next := make([]float32, n*n)
			for i := range next {
				sum := 0.0
				for k := range n {
					sum += float64(want[i/n*n+k]) * float64(m[k*n+i%n])
				}
				next[i] = float32(sum)
			}
			want = next
		}
		for _, info := range infos {
			y, best, err := chain(ctx, info, x, m, n, 0)
			if err != nil || best <= 0 {
				t.Fatal(err, best)
			}
			if d := difference(want, y); d > 1e-5 {
				t.Errorf("%v, %d×%d: the products are off by %g", info, n, n, d)
			}
		}
	}
}
