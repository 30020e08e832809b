package interp

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
)

// rate reports lane-operations a second: instructions of the program that
// compute, load or store, times lanes.
func rate(b *testing.B, ops int) {
	b.ReportMetric(float64(ops)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
}

func benchmark(b *testing.B, k *Kernel, l Launch, ops int) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if err := k.Run(context.Background(), l); err != nil {
			b.Fatal(err)
		}
	}
	rate(b, ops)
}

func BenchmarkSaxpy(b *testing.B) {
	const n = 1 << 16
	x, y := random(n), random(n)
	benchmark(b, saxpy().compile(b), Launch{Grid: [3]uint32{n / 256, 1, 1}, Buffers: [][]byte{bytesOf(x), bytesOf(y)},
		Params: paramBytes(n, math.Float32bits(1))}, 7*n)
}

func BenchmarkTiledMatMul(b *testing.B) {
	const n = 128
	x, y, z := random(n*n), random(n*n), make([]float32, n*n)
	// A turn of the inner loop has 2 loads, 2 index sums and an Fma.
	benchmark(b, tiledMatMul().compile(b), Launch{Grid: [3]uint32{n / 16, n / 16, 1},
		Buffers: [][]byte{bytesOf(x), bytesOf(y), bytesOf(z)}, Params: paramBytes(n)}, 5*n*n*n)
}

// BenchmarkCode runs a chain of one code over lanes.
func BenchmarkCode(b *testing.B) {
	type one struct {
		name string
		c    ir.Code
		t    ir.Type
		n    int
	}
	cases := []one{{"add", ir.Add, ir.F32, 2}, {"div", ir.Div, ir.F32, 2}, {"min", ir.Min, ir.F32, 2}, {"fma", ir.Fma, ir.F32, 3}, {"add.u32", ir.Add, ir.U32, 2},
		{"mul.u32", ir.Mul, ir.U32, 2}, {"shl.u32", ir.Shl, ir.U32, 2}, {"idiv.u32", ir.IDiv, ir.U32, 2}, {"lt", ir.Lt, ir.F32, 2}, {"add.f16", ir.Add, ir.F16, 2}}
	for _, c := range []ir.Code{ir.Sqrt, ir.Floor, ir.Round, ir.Exp, ir.Exp2, ir.Expm1, ir.Log, ir.Log1p, ir.Tanh, ir.Sigmoid, ir.Erf, ir.Erfc, ir.NormCDF, ir.Sin, ir.Recip, ir.Rsqrt} {
		cases = append(cases, one{c.String(), c, ir.F32, 1})
	}
	cases = append(cases, one{"pow", ir.Pow, ir.F32, 2})
	for _, c := range cases {
		for _, lanes := range []uint32{64, 256} {
			b.Run(fmt.Sprintf("%s/%d", c.name, lanes), func(b *testing.B) {
				a := newAsm(c.name, lanes, 1, 1)
				x := a.buffer("x", ir.F32, 1, ir.ReadWrite)
				i := a.global()
				v := a.load(x, i)
				args := []ir.Value{a.opT(ir.Abs, ir.F32, 1, v), v, v}
				for k := range args {
					switch {
					case c.t.Integer():
						args[k] = a.opT(ir.Bitcast, c.t, 1, args[k])
					case c.t != ir.F32:
						args[k] = a.opT(ir.Convert, c.t, 1, args[k])
					}
				}
				const chain = 100
				for range chain {
					var r ir.Value
					if c.c == ir.Lt {
						r = a.cmp(c.c, args[0], args[1])
					} else {
						r = a.op(c.c, args[:c.n]...)
					}
					// A variable that takes the value costs nothing.
					a.set(a.sink(r), r)
				}
				k := a.compile(b)
				n := int(lanes) * 64
				benchmark(b, k, Launch{Grid: [3]uint32{64, 1, 1}, Buffers: [][]byte{bytesOf(random(n))}}, chain*n)
			})
		}
	}
}

// sink returns a variable of the type of a value.
func (a *asm) sink(v ir.Value) uint32 {
	in := a.p.Code[v]
	for i, x := range a.p.Vars {
		if x.Type == in.Type && x.Width == in.Width {
			return uint32(i)
		}
	}
	return a.variable("sink", in.Type, in.Width)
}
