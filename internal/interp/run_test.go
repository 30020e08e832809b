package interp

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
)

// saxpy is y = a*x + y with a guard.
func saxpy() *asm {
	a := newAsm("saxpy", 256, 1, 1)
	x := a.buffer("x", ir.F32, 1, ir.ReadOnly)
	y := a.buffer("y", ir.F32, 1, ir.ReadWrite)
	n, s := a.param("n", ir.U32), a.param("s", ir.F32)
	i := a.global()
	a.ifThen(a.cmp(ir.Lt, i, n))
	a.store(y, i, a.op(ir.Fma, a.load(x, i), s, a.load(y, i)))
	a.end()
	return a
}

func random(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = rand.Float32()*2 - 1
	}
	return v
}

func TestSaxpy(t *testing.T) {
	k := saxpy().compile(t)
	for _, n := range []int{1, 255, 256, 257, 1000, 4096} {
		x, y := random(n), random(n)
		want := make([]float32, n)
		for i := range x {
			want[i] = float32(math.FMA(float64(x[i]), 2.5, float64(y[i])))
		}
		err := k.Run(context.Background(), Launch{Grid: [3]uint32{uint32(n+255) / 256, 1, 1}, Buffers: [][]byte{bytesOf(x), bytesOf(y)},
			Params: paramBytes(uint32(n), math.Float32bits(2.5)), Runner: Goroutines(2)})
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if y[i] != want[i] {
				t.Fatalf("n %d: y[%d] = %v, want %v", n, i, y[i], want[i])
			}
		}
	}
}

// tiledMatMul is C = A·B of n×n matrices by tiles of 16×16 in workgroup memory.
func tiledMatMul() *asm {
	const tile = 16
	a := newAsm("matmul", tile, tile, 1)
	x := a.buffer("a", ir.F32, 1, ir.ReadOnly)
	y := a.buffer("b", ir.F32, 1, ir.ReadOnly)
	z := a.buffer("c", ir.F32, 1, ir.WriteOnly)
	ta, tb := a.shared("ta", ir.F32, 1, tile*tile, false), a.shared("tb", ir.F32, 1, tile*tile, false)
	acc := a.variable("acc", ir.F32, 1)
	n := a.param("n", ir.U32)
	lx, ly := a.builtIn(ir.BuiltInLocalX), a.builtIn(ir.BuiltInLocalY)
	sixteen := a.u(tile)
	row := a.op(ir.Add, a.op(ir.Mul, a.builtIn(ir.BuiltInGroupY), sixteen), ly)
	col := a.op(ir.Add, a.op(ir.Mul, a.builtIn(ir.BuiltInGroupX), sixteen), lx)
	at := a.op(ir.Add, a.op(ir.Mul, ly, sixteen), lx)
	a.set(acc, a.f(0))
	t := a.forRange(a.u(0), n, sixteen, ir.Bounded)
	a.storeShared(ta, at, a.load(x, a.op(ir.Add, a.op(ir.Mul, row, n), a.op(ir.Add, t, lx))))
	a.storeShared(tb, at, a.load(y, a.op(ir.Add, a.op(ir.Mul, a.op(ir.Add, t, ly), n), col)))
	a.barrier()
	for k := range uint32(tile) {
		p := a.loadShared(ta, a.op(ir.Add, a.op(ir.Mul, ly, sixteen), a.u(k)))
		q := a.loadShared(tb, a.op(ir.Add, a.u(k*tile), lx))
		a.set(acc, a.op(ir.Fma, p, q, a.get(acc)))
	}
	a.barrier()
	a.end()
	a.store(z, a.op(ir.Add, a.op(ir.Mul, row, n), col), a.get(acc))
	return a
}

func TestTiledMatMul(t *testing.T) {
	k := tiledMatMul().compile(t)
	const n = 64
	x, y, z := random(n*n), random(n*n), make([]float32, n*n)
	err := k.Run(context.Background(), Launch{Grid: [3]uint32{n / 16, n / 16, 1}, Buffers: [][]byte{bytesOf(x), bytesOf(y), bytesOf(z)},
		Params: paramBytes(n), Runner: Goroutines(2)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		for j := range n {
			want := 0.0
			for k := range n {
				want += float64(x[i*n+k]) * float64(y[k*n+j])
			}
			if got := z[i*n+j]; math.Abs(float64(got)-want) > 1e-5 {
				t.Fatalf("c[%d,%d] = %v, want %v", i, j, got, want)
			}
		}
	}
}

// TestConcurrent runs one kernel from several goroutines.
func TestConcurrent(t *testing.T) {
	k := tiledMatMul().compile(t)
	const n = 32
	x, y := random(n*n), random(n*n)
	var results [4][]float32
	errs := make(chan error)
	for g := range results {
		results[g] = make([]float32, n*n)
		go func() {
			var err error
			for range 10 {
				if e := k.Run(context.Background(), Launch{Grid: [3]uint32{n / 16, n / 16, 1}, Params: paramBytes(n), Subgroup: 4 << g,
					Buffers: [][]byte{bytesOf(x), bytesOf(y), bytesOf(results[g])}, Runner: Goroutines(2)}); e != nil {
					err = e
				}
			}
			errs <- err
		}()
	}
	for range results {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for g := range results {
		if !slices.Equal(results[g], results[0]) {
			t.Errorf("goroutine %d has another result", g)
		}
	}
}
