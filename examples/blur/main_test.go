package main

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/examples/internal/exampletest"
)

func TestOutput(t *testing.T) {
	out := filepath.Join(t.TempDir(), "blur.png")
	var b bytes.Buffer
	if err := run(context.Background(), &b, out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), "steepest step between neighbours: 1.00 before, 0.1") {
		t.Errorf("got %s", &b)
	}
	exampletest.Picture(t, out, 320, 240)
}

func TestBlur(t *testing.T) {
	dev := exampletest.Open(t)
	for _, c := range [][3]int{{1, 1, 2}, {7, 5, 0}, {128, 3, 4}, {129, 127, 6}, {31, 200, 20}} {
		w, h, r := c[0], c[1], c[2]
		x := make([]float32, w*h)
		for i := range x {
			x[i] = rand.Float32()
		}
		got, err := blur(context.Background(), dev, x, w, h, r)
		if err != nil {
			t.Fatal(err)
		}
		// Both passes at once, in float64.
		g := gaussian(r)
		for i := range x {
			want := 0.0
			for dy := -r; dy <= r; dy++ {
				for dx := -r; dx <= r; dx++ {
					px, py := min(max(i%w+dx, 0), w-1), min(max(i/w+dy, 0), h-1)
					want += float64(g[dx+r]) * float64(g[dy+r]) * float64(x[py*w+px])
				}
			}
			if math.Abs(want-float64(got[i])) > 1e-5 {
				t.Fatalf("%d×%d, radius %d: pixel %d is %v, want %v", w, h, r, i, got[i], want)
			}
		}
	}
}
