// Command nbody moves bodies that attract each other. Every workgroup brings the
// positions into its own memory, a tile at a time, so that each is read from the
// buffer once a workgroup instead of once a body.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
)

type params struct {
	N        uint32  // bodies
	Step     float32 // of time
	Softness float32 // added to each squared distance, so that bodies that meet do not fly apart
}

const lanes = 128

// move advances every body by one step. A body is x, y, z and its mass.
var move = kernel.New("nbody", func(b *kernel.Builder, p *params) {
	b.LocalSize(lanes, 1, 1)
	old := kernel.Input[kernel.Vec4F](b, "old")
	next := kernel.Output[kernel.Vec4F](b, "next")
	speed := kernel.InOut[kernel.Vec4F](b, "speed")
	tile := kernel.Shared[kernel.Vec4F](b, "tile", lanes)

	n, soft, dt := b.U32(&p.N), b.F32(&p.Softness), b.F32(&p.Step)
	i, lane := b.Index(), b.Lane()
	empty := kernel.F(0).Splat4() // a body of mass 0
	me := kernel.NewVar(b, "me", empty)
	b.If(i.Lt(n), func() { me.Set(old.At(i)) })
	force := kernel.NewVar(b, "force", empty)
	b.ForStep(kernel.U(0), n, kernel.U(lanes), func(first kernel.U32) {
		b.Barrier() // until every lane has finished with the last tile
		j := first.Add(lane)
		tile.Set(lane, empty)
		b.If(j.Lt(n), func() { tile.Set(lane, old.At(j)) })
		b.Barrier()
		b.For(kernel.U(0), kernel.U(lanes), func(k kernel.U32) {
			other := tile.At(k)
			d := other.Sub(me.Get())
			square := d.At(0).Fma(d.At(0), d.At(1).Fma(d.At(1), d.At(2).Fma(d.At(2), soft)))
			r := square.Rsqrt()
			f := other.At(3).Mul(r).Mul(r).Mul(r) // mass / distance³
			force.Set(d.Fma(f.Splat4(), force.Get()))
		})
	})
	b.If(i.Lt(n), func() {
		v := force.Get().Fma(dt.Splat4(), speed.At(i))
		speed.Set(i, v)
		at := v.Fma(dt.Splat4(), me.Get())
		next.Set(i, b.Vec4F(at.At(0), at.At(1), at.At(2), me.Get().At(3)))
	})
})

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	const n, steps = 300, 60
	bodies, speed := cloud(n)
	p := params{n, 0.01, 0.01}
	before := energy(bodies, speed, p.Softness)
	if err := simulate(ctx, dev, bodies, speed, p, steps); err != nil {
		return err
	}
	after := energy(bodies, speed, p.Softness)
	fmt.Fprintf(w, "%d bodies, %d steps on %v: energy %.4f before, %.4f after\n", n, steps, dev, before, after)
	return nil
}

// simulate advances bodies and their speeds by some steps.
func simulate(ctx context.Context, dev *device.Device, bodies, speed []float32, p params, steps int) error {
	k, err := dev.Kernel(ctx, move)
	if err != nil {
		return err
	}
	var buf [3]*device.Buffer // old, next, speed
	for i, data := range [][]float32{bodies, bodies, speed} {
		if buf[i], err = device.Upload(ctx, dev, data); err != nil {
			return err
		}
		defer buf[i].Close()
	}
	old, next := buf[0], buf[1]
	for range steps {
		err := k.Run(ctx, k.GridFor(int(p.N)), p, device.Bind(old), device.Bind(next), device.Bind(buf[2]))
		if err != nil {
			return err
		}
		old, next = next, old
	}
	if err := device.Read(ctx, bodies, old); err != nil {
		return err
	}
	return device.Read(ctx, speed, buf[2])
}

// cloud returns n bodies of mass 1/n in a ball that turns slowly.
func cloud(n int) (bodies, speed []float32) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for len(bodies) < 4*n {
		x, y, z := rnd.Float32()*2-1, rnd.Float32()*2-1, rnd.Float32()*2-1
		if x*x+y*y+z*z > 1 {
			continue
		}
		bodies = append(bodies, x, y, z, 1/float32(n))
		speed = append(speed, -0.4*y, 0.4*x, 0, 0)
	}
	return bodies, speed
}

// energy returns the energy of motion and of attraction together, which stays
// as it is up to the error of the steps.
func energy(bodies, speed []float32, soft float32) float64 {
	e := 0.0
	for i := 0; i < len(bodies); i += 4 {
		a, v := bodies[i:][:4], speed[i:][:4]
		m := float64(a[3])
		e += m * float64(v[0]*v[0]+v[1]*v[1]+v[2]*v[2]) / 2
		for j := 0; j < i; j += 4 {
			b := bodies[j:][:4]
			x, y, z := a[0]-b[0], a[1]-b[1], a[2]-b[2]
			e -= m * float64(b[3]) / math.Sqrt(float64(x*x+y*y+z*z+soft))
		}
	}
	return e
}
