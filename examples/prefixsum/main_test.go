package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/examples/internal/exampletest"
)

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	const want = `of [0 1 2 3 4 5 6 0 1 2 3 4] ...
    [0 1 3 6 10 15 21 21 22 24 27 31] ...
the last of 100000 is 299995
`
	if b.String() != want {
		t.Errorf("got\n%s", &b)
	}
}

func TestSums(t *testing.T) {
	dev := exampletest.Open(t)
	for _, n := range []int{0, 1, 255, 256, 257, 65535, 65536, 65537, 200003} {
		x, want := make([]uint32, n), make([]uint32, n)
		var s uint32
		for i := range x {
			x[i] = rand.Uint32() // sums wrap
			s += x[i]
			want[i] = s
		}
		got, err := sums(context.Background(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("running sums of %d are wrong", n)
		}
	}
}
