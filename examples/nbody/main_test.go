package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/examples/internal/exampletest"
)

func TestEnergyIsKept(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	var n, steps int
	var dev string
	var before, after float64
	if _, err := fmt.Sscanf(b.String(), "%d bodies, %d steps on %s energy %f before, %f after\n", &n, &steps, &dev, &before, &after); err != nil {
		t.Fatalf("%v:\n%s", err, &b)
	}
	if before > -0.1 || math.Abs(after-before) > 0.02*math.Abs(before) {
		t.Errorf("energy %v became %v", before, after)
	}
}

func TestSteps(t *testing.T) {
	dev := exampletest.Open(t)
	for _, n := range []int{1, 2, 127, 128, 129, 300} {
		bodies, speed := cloud(n)
		p := params{uint32(n), 0.05, 0.1}
		x, v := doubles(bodies), doubles(speed)
		for range 3 {
			step(x, v, p)
		}
		if err := simulate(context.Background(), dev, bodies, speed, p, 3); err != nil {
			t.Fatal(err)
		}
		for i := range x {
			if math.Abs(x[i]-float64(bodies[i])) > 1e-5 {
				t.Fatalf("%d bodies: component %d is %v, want %v", n, i, bodies[i], x[i])
			}
		}
	}
}

func doubles(x []float32) []float64 {
	d := make([]float64, len(x))
	for i, v := range x {
		d[i] = float64(v)
	}
	return d
}

// step is the kernel in plain Go and float64.
func step(x, v []float64, p params) {
	old := slices.Clone(x)
	for i := 0; i < len(x); i += 4 {
		var f [3]float64
		for j := 0; j < len(x); j += 4 {
			s := float64(p.Softness)
			for c := range 3 {
				s += (old[j+c] - old[i+c]) * (old[j+c] - old[i+c])
			}
			for c := range 3 {
				f[c] += old[j+3] * (old[j+c] - old[i+c]) / (s * math.Sqrt(s))
			}
		}
		for c := range 3 {
			v[i+c] += float64(p.Step) * f[c]
			x[i+c] += float64(p.Step) * v[i+c]
		}
	}
}
