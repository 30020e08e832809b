package kernel_test

import (
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
)

type saxpyParams struct {
	N     uint32
	Scale float32
}

var saxpy = kernel.New("saxpy", func(b *kernel.Builder, p *saxpyParams) {
	b.LocalSize(256, 1, 1)
	x := kernel.Input[kernel.F32](b, "x")
	y := kernel.InOut[kernel.F32](b, "y")
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		y.Set(i, x.At(i).Fma(b.F32(&p.Scale), y.At(i)))
	})
})

func TestBuild(t *testing.T) {
	p, err := saxpy.Program()
	if err != nil {
		t.Fatal(err)
	}
	count := map[ir.Code]int{}
	for _, in := range p.Code {
		count[in.Code]++
	}
	for _, c := range []ir.Code{ir.If, ir.End, ir.Store, ir.Fma} {
		if count[c] != 1 {
			t.Errorf("%d of %v", count[c], c)
		}
	}
	if count[ir.Load] != 2 {
		t.Errorf("%d loads", count[ir.Load])
	}
	if _, err := saxpy.Positions(); err != nil {
		t.Error(err)
	}
}
