package main

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/examples/internal/exampletest"
)

// TestParams holds the struct to the text, which needs no device.
func TestParams(t *testing.T) {
	if n := exampletest.Params(t, text, system(1)); n != 64 {
		t.Errorf("%d bytes", n)
	}
}

func TestParticles(t *testing.T) {
	dev := exampletest.WebGPU(t)
	for _, n := range []int{1, 63, 1000} {
		p := system(uint32(n))
		before := cloud(n)
		got, err := simulate(context.Background(), dev, before, p, 50)
		if err != nil {
			t.Fatal(err)
		}
		if e := energy(got, p); math.Abs(e-energy(before, p)) > 2e-3*math.Abs(e) {
			t.Errorf("%d particles: energy %g before, %g after", n, energy(before, p), e)
		}
		want := inGo(before, p, 50)
		for i := range want {
			if math.Abs(float64(got[i])-want[i]) > 1e-3 {
				t.Fatalf("%d particles: number %d of particle %d is %g, not %g", n, i%words, i/words, got[i], want[i])
			}
		}
	}
}

// inGo takes the steps in float64.
func inGo(particles []float32, p params, steps int) []float64 {
	out := make([]float64, len(particles))
	for i, v := range particles {
		out[i] = float64(v)
	}
	for x := out; len(x) > 0; x = x[words:] {
		kick := func(dt float64) {
			for _, s := range p.Suns {
				var d [3]float64
				r := float64(p.Softness)
				for i := range d {
					d[i] = float64(s[i]) - x[i]
					r += d[i] * d[i]
				}
				for i := range d {
					x[4+i] += dt * float64(s[3]) * d[i] / (r * math.Sqrt(r))
				}
			}
		}
		for range steps {
			dt := float64(p.Step)
			kick(dt / 2)
			for i := range 3 {
				x[i] += dt * x[4+i]
			}
			kick(dt / 2)
		}
	}
	return out
}

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(b.String(), "needs a device of WebGPU: ") {
		return // and says so
	}
	if !strings.HasPrefix(b.String(), "10000 particles, 200 steps on ") {
		t.Error(b.String())
	}
}
