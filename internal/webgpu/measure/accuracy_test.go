//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64)

package measure

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
)

// TestAccuracy compares every elementwise operation of one operand with its
// reference, over numbers of all sizes.
func TestAccuracy(t *testing.T) {
	g := open(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	const n = 1 << 18
	m := make([]byte, 4*n)
	for i := range n {
		v := rnd.NormFloat64()
		for range i % 8 {
			v *= []float64{4, 0.25}[i/8%2]
		}
		op.F32.PutFloat64(m, i, v)
	}
	x := g.upload(m, 4*n)
	defer x.Release()
	for _, o := range op.Catalogue() {
		if least, most := o.Arity(); o.Class() != op.Elementwise || least != 1 || most != 1 {
			continue
		}
		u := &use{name: o.Name(), o: o, attrs: o.Defaults(), in: []op.Shape{{n}}}
		r, err := u.request(g.target, "")
		if err != nil || r.Out[0].Type != op.F32 {
			continue
		}
		p, err := lib.For(r)
		if err != nil {
			continue
		}
		w := g.prepare(r, p, []webgpu.HostBuffer{x})
		g.run(w.list)
		if err := check(r, [][]byte{m}, [][]byte{g.download(w.out[0], 0, 4*n)}); err != nil {
			fmt.Println(o.Name(), "WRONG:", err)
		} else {
			fmt.Print(o.Name(), " ")
		}
		w.release()
	}
	fmt.Println()
}
