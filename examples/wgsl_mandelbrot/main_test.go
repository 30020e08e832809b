package main

import (
	"bytes"
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/examples/internal/exampletest"
)

// TestParams holds the struct to the text, which needs no device.
func TestParams(t *testing.T) {
	if n := exampletest.Params(t, text, params{}); n != 32 {
		t.Errorf("%d bytes", n)
	}
}

func TestMandelbrot(t *testing.T) {
	dev := exampletest.WebGPU(t)
	// No multiples of a workgroup.
	p := params{Center: [2]float32{-0.5, 0}, Pixel: 0.03, Size: [2]uint32{101, 67}, MaxSteps: 200}
	got, err := mandelbrot(context.Background(), dev, p)
	if err != nil {
		t.Fatal(err)
	}
	inside, off := 0, 0
	for i, s := range got {
		want := steps(p, i%101, i/101)
		if want < 0 {
			inside++
		}
		if d := math.Abs(float64(s) - want); d < 0.01 && (s < 0) == (want < 0) {
			continue
		}
		// Near the set the last bit of a step decides how many there are.
		if off++; want >= 0 && want < 15 {
			t.Errorf("point %d takes %g steps, not %g", i, s, want)
		}
	}
	if inside < 1000 || inside > 3000 || off > len(got)/50 {
		t.Errorf("%d points of %d differ; %d are in the set", off, len(got), inside)
	}
}

// steps computes one point as the text does, in float64.
func steps(p params, x, y int) float64 {
	cx := float64(p.Center[0]) + float64(p.Pixel)*(float64(x)+0.5-0.5*float64(p.Size[0]))
	cy := float64(p.Center[1]) - float64(p.Pixel)*(float64(y)+0.5-0.5*float64(p.Size[1]))
	zx, zy := 0.0, 0.0
	for n := range p.MaxSteps {
		if r := zx*zx + zy*zy; r > 64 {
			return float64(n) - math.Log2(math.Log2(r)/6)
		}
		zx, zy = zx*zx-zy*zy+cx, 2*zx*zy+cy
	}
	return -1
}

func TestOutput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "set.png")
	var b bytes.Buffer
	if err := run(context.Background(), &b, name); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(b.String(), "needs a device of WebGPU: ") {
		return // and says so
	}
	exampletest.Picture(t, name, 960, 640)
	if !strings.Contains(b.String(), "of them in the set") {
		t.Error(b.String())
	}
}
