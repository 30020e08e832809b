package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// quantProgram returns a program of one product of m rows and n·k weights of type d, and its
// memory.
func quantProgram(tb testing.TB, d op.DType, o op.MatMulQOpts, m, k, n int) (*driver.Program, []driver.Binding) {
	tb.Helper()
	p := &driver.Program{Ext: 3}
	s := driver.Step{Op: op.MatMulQ, Attrs: o.Attrs(), Dims: []op.Shape{{m, k}, {n, k}, {m, n}}}
	var ext []driver.Binding
	for i, t := range []op.DType{op.F32, d, op.F32} {
		size, _ := s.Dims[i].Size()
		bytes, err := t.Bytes(s.Dims[i])
		if err != nil {
			tb.Fatal(err)
		}
		p.Slots = append(p.Slots, driver.Slot{Type: t, Shape: s.Dims[i], Bytes: int64(bytes), Ext: i, Written: i == 2})
		ext = append(ext, driver.Binding{Host: make([]byte, bytes)})
		o := driver.Operand{Slot: i, Type: t, N: size}
		if i < 2 {
			s.In = append(s.In, o)
		} else {
			s.Out = append(s.Out, o)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range m * k {
		op.F32.PutFloat64(ext[0].Host, i, r.NormFloat64())
	}
	f := d.Block()
	x := make([]float32, 1<<12)
	for at := 0; at < n*k; at += len(x) {
		x := x[:min(len(x), n*k-at)]
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		first := at / f.Elements() * f.Bytes()
		if at > 0 && at%len(x) == 0 && at >= 1<<16 {
			// Enough different blocks.
			copy(ext[1].Host[first:], ext[1].Host[:len(x)/f.Elements()*f.Bytes()])
			continue
		}
		if err := f.Quantize(ext[1].Host[first:][:len(x)/f.Elements()*f.Bytes()], x); err != nil {
			tb.Fatal(err)
		}
	}
	p.Steps = []driver.Step{s}
	return p, ext
}

// BenchmarkMatMulQ reports the bytes of the weights per second, because reading the weights limits
// a product with one row.
func BenchmarkMatMulQ(b *testing.B) {
	for _, m := range []int{1, 3, 4, 8, 128, 512} {
		for _, d := range op.QuantTypes() {
			if d.Block().Layout().Weighted {
				continue // has the same derived decoder as the other formats
			}
			for _, o := range []op.MatMulQOpts{{}, {Int8: true}} {
				b.Run(fmt.Sprintf("%v/%dx4096x4096/int8=%v", d, m, o.Int8), func(b *testing.B) {
					p, ext := quantProgram(b, d, o, m, 4096, 4096)
					e, err := open(b, 2).Prepare(b.Context(), p)
					if err != nil {
						b.Fatal(err)
					}
					defer e.Close()
					sub := &driver.Submission{Ext: ext, Wait: true}
					b.SetBytes(int64(len(ext[1].Host)))
					for b.Loop() {
						if _, err := e.Submit(b.Context(), sub); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(m)*4096*4096*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gmac/s")
				})
			}
		}
	}
}
