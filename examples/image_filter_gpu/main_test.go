package main

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/examples/internal/exampletest"
)

func TestOutput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.png")
	var b bytes.Buffer
	if err := run(context.Background(), &b, "", name); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), "192 x 128 pixels on ") {
		t.Error(b.String())
	}
	exampletest.Picture(t, name, 192, 128)
}

// TestFilter compares with the definition, on the CPU and on a software driver of
// WebGPU.
func TestFilter(t *testing.T) {
	t.Run("cpu", func(t *testing.T) { check(t, exampletest.Open(t, device.Require(device.CPU))) })
	t.Run("webgpu", func(t *testing.T) { check(t, exampletest.WebGPU(t)) })
}

func check(t *testing.T, dev *device.Device) {
	for _, size := range [][2]int{{1, 1}, {8, 8}, {7, 9}, {31, 2}, {33, 18}} {
		w, h := size[0], size[1]
		x := make([]float32, 4*w*h)
		for i := range x {
			x[i] = rand.Float32()
		}
		p := params{uint32(w), uint32(h), 0.1 * rand.Float32(), 10 * rand.Float32()}
		got, err := filter(context.Background(), dev, x, p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if want := filtered(x, w, h, i, p); math.Abs(float64(got[i])-want) > 1e-5 {
				t.Fatalf("%v: number %d is %g, not %g", size, i, got[i], want)
			}
		}
	}
}

// filtered is the definition of one number.
func filtered(x []float32, w, h, i int, p params) float64 {
	sum, weight := 0.0, 0.0
	px, py := i/4%w, i/4/w
	for dy := -radius; dy <= radius; dy++ {
		for dx := -radius; dx <= radius; dx++ {
			at := 4 * (min(max(py+dy, 0), h-1)*w + min(max(px+dx, 0), w-1))
			d := 0.0
			for c := range 4 {
				d += math.Pow(float64(x[at+c])-float64(x[i/4*4+c]), 2)
			}
			e := math.Exp(-float64(p.Nearness)*float64(dx*dx+dy*dy) - float64(p.Likeness)*d)
			sum += e * float64(x[at+i%4])
			weight += e
		}
	}
	return sum / weight
}
