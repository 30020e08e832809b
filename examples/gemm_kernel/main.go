// Command gemm_kernel multiplies matrices of half floats on tensor cores, with a
// kernel that is built twice: once without and once with padding between the rows in
// shared memory. The emulator counts the bank conflicts of both.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

const (
	side = 64 // rows and columns of c that a block computes
	deep = 32 // columns of a, and rows of b, that it has in shared memory
)

// gemm returns the kernel of c = a b, m by k and k by n, all multiples of the
// tiles: a and b half floats, c float32. Rows in shared memory are pad elements
// further apart than they are long.
func gemm(pad int) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		k.Block(128, 1, 1) // four warps, each 32 by 32
		a, b, c := ptx.GlobalParam[ptx.F16x2](k, "a"), ptx.GlobalParam[ptx.F16x2](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
		n, depth := ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
		// Elements are pairs of half floats: a word.
		strideA, strideB := (deep+pad)/2, (side+pad)/2
		as, bs := ptx.SharedArray[ptx.F16x2](k, "as", side*strideA), ptx.SharedArray[ptx.F16x2](k, "bs", deep*strideB)
		t := k.Special(ptx.TidX)
		row, col := k.Special(ptx.CtaidY).Mul(ptx.U(side)), k.Special(ptx.CtaidX).Mul(ptx.U(side))

		// What a thread brings: 16 bytes of two rows of a, and of two of b.
		ay, ax := t.Shr(ptx.U(2)), t.And(ptx.U(3)).Mul(ptx.U(4))
		by, bx := t.Shr(ptx.U(3)), t.And(ptx.U(7)).Mul(ptx.U(4))
		wordsA, wordsB := depth.Shr(ptx.U(1)), n.Shr(ptx.U(1))
		fromA := a.At(row.Add(ay).MulAdd(wordsA, ax))
		fromB := b.At(by.MulAdd(wordsB, col.Shr(ptx.U(1)).Add(bx)))
		toA, toB := as.At(ay.MulAdd(ptx.N(strideA), ax)), bs.At(by.MulAdd(ptx.N(strideB), bx))

		// What ldmatrix reads: a lane names one row of 16 bytes.
		lane, right := t.And(ptx.U(15)), t.Shr(ptx.U(4)).And(ptx.U(1)).Mul(ptx.U(4))
		warpRow, warpCol := t.Shr(ptx.U(5)).And(ptx.U(1)).Mul(ptx.U(32)), t.Shr(ptx.U(6)).Mul(ptx.U(32))
		readA := as.At(warpRow.Add(lane).MulAdd(ptx.N(strideA), right))
		readB := bs.At(lane.MulAdd(ptx.N(strideB), warpCol.Shr(ptx.U(1)).Add(right)))

		var acc [2][4][4]ptx.Var[ptx.F32] // 16 rows, 8 columns, 4 of these in a lane
		for i := range acc {
			for j := range acc[i] {
				for l := range acc[i][j] {
					acc[i][j][l] = ptx.NewVar(k, ptx.F(0))
				}
			}
		}
		k.For(ptx.U(0), wordsA, ptx.U(deep/2), func(i ptx.U32) { // on the device
			from := fromB.At(i.Mul(ptx.U(2)).Mul(wordsB))
			for h := range 2 { // in the builder: unrolled
				toA.Offset(32 * strideA * h).Store4(fromA.At(wordsA.MulAdd(ptx.N(32*h), i)).Load4())
				toB.Offset(16 * strideB * h).Store4(from.At(wordsB.Mul(ptx.N(16 * h))).Load4())
			}
			k.Sync()
			for s := 0; s < deep; s += 16 {
				var y [4][2]ptx.F16x2
				for j := 0; j < 4; j += 2 {
					v := ptx.LoadMatrix4(readB.Offset(s*strideB+4*j), true)
					y[j], y[j+1] = [2]ptx.F16x2{v[0], v[1]}, [2]ptx.F16x2{v[2], v[3]}
				}
				for i := range acc {
					x := ptx.LoadMatrix4(readA.Offset(16*strideA*i+s/2), false)
					for j := range acc[i] {
						k.MmaF16(&acc[i][j], x, y[j])
					}
				}
			}
			k.Sync()
		})
		// A lane has pairs of neighbours of rows l/4 and l/4 + 8.
		first := row.Add(warpRow).Add(t.Shr(ptx.U(2)).And(ptx.U(7)))
		at := c.At(first.MulAdd(n, col.Add(warpCol).Add(t.And(ptx.U(3)).Mul(ptx.U(2)))))
		for i := range acc {
			for h := range 2 {
				to := at.At(n.Mul(ptx.N(16*i + 8*h)))
				for j, v := range acc[i] {
					to.Offset(8 * j).Store2([2]ptx.F32{v[2*h].Get(), v[2*h+1].Get()})
				}
			}
		}
	}
}

func run(ctx context.Context, w io.Writer) error {
	const m, n, depth = 128, 64, 96
	a, b := random(m*depth), random(depth*n)
	for _, pad := range []int{0, 8} {
		mod := ptx.NewModule(ptx.SM80)
		mod.Kernel("gemm", gemm(pad))
		module, err := emu.Load(mod)
		if err != nil {
			return err
		}
		k, err := module.Kernel("gemm")
		if err != nil {
			return err
		}
		machine := emu.NewMachine(emu.Config{})
		pa, errA := machine.Words("a", a)
		pb, errB := machine.Words("b", b)
		pc, errC := machine.Alloc("c", 4*m*n)
		if err := errors.Join(errA, errB, errC); err != nil {
			return err
		}
		// The emulator returns an error for a race or an invalid address.
		if err := machine.Launch(ctx, k, emu.Dim{X: n / side, Y: m / side}, emu.Dim{X: 128}, 0, pa, pb, pc, uint32(n), uint32(depth)); err != nil {
			return err
		}
		c, err := machine.ReadFloats(pc, m*n)
		if err != nil {
			return err
		}
		if e := worst(c, a, b, m, n, depth); e > 1e-5 {
			return fmt.Errorf("the product is off by %g", e)
		}
		s := machine.Stats()
		fmt.Fprintf(w, "padding %d: right; %d passes of shared memory, %d of them bank conflicts\n", pad, s.SharedPasses, s.Conflicts)
	}
	err := measure(w)
	if errors.Is(err, cuda.ErrNoDriver) || errors.Is(err, cuda.ErrNoDevice) {
		return nil // no GPU
	}
	return err
}

// random returns random half floats, two in a word.
func random(n int) []uint32 {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	words := make([]uint32, n/2)
	for i := range words {
		words[i] = uint32(op.F16FromFloat32(float32(rnd.NormFloat64()))) | uint32(op.F16FromFloat32(float32(rnd.NormFloat64())))<<16
	}
	return words
}

func half(words []uint32, i int) float64 {
	return float64(op.F16ToFloat32(uint16(words[i/2] >> (16 * (i % 2)))))
}

// worst returns the greatest difference to the product in float64.
func worst(c []float32, a, b []uint32, m, n, depth int) float64 {
	e := 0.0
	for i := range m {
		for j := range n {
			want := 0.0
			for l := range depth {
				want += half(a, i*depth+l) * half(b, l*n+j)
			}
			e = max(e, math.Abs(float64(c[i*n+j])-want))
		}
	}
	return e
}

// measure times both kernels on the first GPU.
func measure(w io.Writer) error {
	dev, err := cuda.Open(0)
	if err != nil {
		return err
	}
	defer dev.Close()
	s, err := dev.NewStream(0)
	if err != nil {
		return err
	}
	const n = 2048
	mem, err := s.Alloc(8 * n * n)
	if err != nil {
		return err
	}
	a, b, c := mem.Ptr(), mem.Ptr()+2*n*n, mem.Ptr()+4*n*n
	x := random(n * n)
	if err := errors.Join(s.Upload(a, cuda.AsBytes(x)), s.Upload(b, cuda.AsBytes(x))); err != nil {
		return err
	}
	for _, pad := range []int{0, 8} {
		mod := ptx.NewModule(ptx.SM80)
		mod.Kernel("gemm", gemm(pad))
		text, err := mod.AppendPTX(nil)
		if err != nil {
			return err
		}
		loaded, err := dev.Load(text)
		if err != nil {
			return err
		}
		k, err := loaded.Function("gemm")
		if err != nil {
			return err
		}
		var p cuda.Params
		p.Ptr(a)
		p.Ptr(b)
		p.Ptr(c)
		p.U32(n)
		p.U32(n)
		const launches = 20
		start := time.Now()
		for i := range launches + 1 {
			if i == 1 { // the first one is slower
				if err := s.Synchronize(); err != nil {
					return err
				}
				start = time.Now()
			}
			if err := s.Launch(k, cuda.Config{Grid: cuda.Dim{X: n / side, Y: n / side}, Block: cuda.Dim{X: 128}}, p); err != nil {
				return err
			}
		}
		if err := s.Synchronize(); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s, padding %d: %.1f TFLOP/s\n", dev.Info().Name, pad, 2*launches*float64(n)*n*n/time.Since(start).Seconds()/1e12)
	}
	return nil
}
