// Command wgsl_particles moves particles around suns with a kernel in WGSL that
// works on structures: many steps are recorded in a batch and run in one round
// trip.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/wgsl"
)

//go:embed particles.wgsl
var text string

const (
	words = 8 // of a particle: place, mass, speed and one that is not used
)

// params are the parameters of the text. WGSL has its suns at offset 16, which is
// no matter here.
type params struct {
	Count    uint32
	Step     float32
	Softness float32
	Suns     [3][4]float32
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	// WGSL runs on devices of WebGPU alone.
	dev, err := device.Open(ctx, device.Require(device.WebGPU))
	if errors.Is(err, device.ErrNoDevice) {
		fmt.Fprintf(w, "needs a device of WebGPU: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer dev.Close()
	p := system(10000)
	before := cloud(int(p.Count))
	const steps = 200
	after, err := simulate(ctx, dev, before, p, steps)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d particles, %d steps on %s: energy %.5f before, %.5f after\n", p.Count, steps, dev.Info().Name, energy(before, p), energy(after, p))
	return nil
}

// simulate returns the particles some steps later. All steps are one submission.
func simulate(ctx context.Context, dev *device.Device, particles []float32, p params, steps int) ([]float32, error) {
	k, err := dev.Kernel(ctx, wgsl.Source{Text: text, Name: "particles"})
	if err != nil {
		return nil, err
	}
	b := batch.New(dev)
	x := b.Upload(particles)
	for range steps {
		x = b.Launch(k, k.GridFor(int(p.Count)), p, batch.InOut(x))[0]
	}
	if err := b.Execute(ctx, x); err != nil {
		return nil, err
	}
	return batch.Read[float32](ctx, b, x)
}

// system returns three suns.
func system(count uint32) params {
	return params{Count: count, Step: 0.005, Softness: 0.05, Suns: [3][4]float32{{0, 0, 0, 1}, {1.5, 0, 0, 0.3}, {0, -1.2, 0.4, 0.2}}}
}

// cloud returns n particles of mass 1/n around the first sun.
func cloud(n int) []float32 {
	rnd := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 0, words*n)
	for range n {
		turn, r := 2*math.Pi*rnd.Float64(), 0.4+0.6*rnd.Float64()
		sin, cos := math.Sincos(turn)
		v := math.Sqrt(1 / r)
		x = append(x, float32(r*cos), float32(r*sin), float32(0.1*rnd.NormFloat64()), 1/float32(n),
			float32(-v*sin), float32(v*cos), 0, 0)
	}
	return x
}

// energy returns the energy of motion and of attraction together, which stays as
// it is up to the error of the steps.
func energy(particles []float32, p params) float64 {
	e := 0.0
	for ; len(particles) > 0; particles = particles[words:] {
		x := particles[:words]
		one := float64(x[4]*x[4]+x[5]*x[5]+x[6]*x[6]) / 2
		for _, s := range p.Suns {
			dx, dy, dz := s[0]-x[0], s[1]-x[1], s[2]-x[2]
			one -= float64(s[3]) / math.Sqrt(float64(dx*dx+dy*dy+dz*dz+p.Softness))
		}
		e += float64(x[3]) * one
	}
	return e
}
