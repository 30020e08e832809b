package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/examples/internal/exampletest"
)

func TestOutput(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.png"), filepath.Join(dir, "second.png")
	var b bytes.Buffer
	if err := run(context.Background(), &b, "", first, 2, 1.5); err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), &b, first, second, 2, 1.5); err != nil {
		t.Fatal(err)
	}
	if want := "320×240 pixels sharpened: " + first + "\n320×240 pixels sharpened: " + second + "\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
	exampletest.Picture(t, second, 320, 240)
}

// TestSharpen compares a few pixels with the definition.
func TestSharpen(t *testing.T) {
	dev := exampletest.Open(t)
	const h, w, amount = 20, 31, 1.25
	before := planes(drawing(w, h))
	after := append([]float32{}, before...)
	if err := sharpen(context.Background(), dev, after, h, w, 1.5, amount); err != nil {
		t.Fatal(err)
	}
	g := gaussian(1.5)
	r := len(g) / 2
	for i := range before {
		plane, y, x := i/(h*w), i/w%h, i%w
		sum, weight := 0.0, 0.0
		for dy := -r; dy <= r; dy++ {
			for dx := -r; dx <= r; dx++ {
				if y+dy >= 0 && y+dy < h && x+dx >= 0 && x+dx < w {
					k := float64(g[r+dy]) * float64(g[r+dx])
					sum += k * float64(before[plane*h*w+(y+dy)*w+x+dx])
					weight += k
				}
			}
		}
		v := float64(before[i])
		want := math.Min(math.Max(v+amount*(v-sum/weight), 0), 1)
		if math.Abs(float64(after[i])-want) > 1e-5 {
			t.Fatalf("plane %d row %d column %d: %v, want %v", plane, y, x, after[i], want)
		}
	}
}

func TestMistakes(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in, out string
		sigma   float64
		want    string
	}{
		{filepath.Join(dir, "none"), "", 1, "none"},
		{text, "", 1, "unknown format"},
		{"", filepath.Join(dir, "no", "where.png"), 1, "where.png"},
		{"", "", 0, "a blur of 0 pixels"},
		{"", "", math.NaN(), "a blur of NaN pixels"},
	} {
		if err := run(ctx, new(bytes.Buffer), c.in, c.out, c.sigma, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}
