package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/examples/internal/exampletest"
	"github.com/rayo-go/rayo/kernel"
)

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(b.String(), "700000 of 700000 pixels counted\n") {
		t.Errorf("got\n%s", &b)
	}
}

func TestHistogram(t *testing.T) {
	ctx, dev := context.Background(), exampletest.Open(t)
	k, err := dev.Kernel(ctx, histogram)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 255, 256, 4095, 4096, 4097, 100003} {
		x, want := make([]uint32, n), make([]uint32, bins)
		for i := range x {
			x[i] = rand.Uint32N(bins)
			want[x[i]]++
		}
		got := make([]uint32, bins)
		if err := k.Run(ctx, kernel.GridOf((n-1)/(lanes*each)+1), nil, device.In(x), device.Out(got)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d values are counted wrong", n)
		}
	}
}
