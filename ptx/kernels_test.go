package ptx_test

import (
	"math"
	"testing"

	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/samples"
)

// The kernels that tests and benchmarks build.

// threadIndex returns the place of the thread in the grid.
func threadIndex(k *ptx.Kernel) ptx.U32 {
	return k.Special(ptx.CtaidX).MulAdd(k.Special(ptx.NtidX), k.Special(ptx.TidX))
}

// relu is y = max(x, 0), four elements a turn. n is a multiple of 4.
func relu(k *ptx.Kernel) {
	x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y")
	n := ptx.Param[ptx.U32](k, "n")
	step := k.Special(ptx.NctaidX).Mul(k.Special(ptx.NtidX)).Mul(ptx.U(4))
	k.For(threadIndex(k).Mul(ptx.U(4)), n, step, func(i ptx.U32) {
		v := x.At(i).Load4()
		for j := range v {
			v[j] = v[j].Max(ptx.F(0))
		}
		y.At(i).Store4(v)
	})
}

// gemmNaive is c = a b, an element a thread.
func gemmNaive(k *ptx.Kernel) {
	a, b, c := ptx.GlobalParam[ptx.F32](k, "a"), ptx.GlobalParam[ptx.F32](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
	m, n, kk := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
	row := k.Special(ptx.CtaidY).MulAdd(k.Special(ptx.NtidY), k.Special(ptx.TidY))
	col := threadIndex(k)
	k.ReturnIf(row.Ge(m).Or(col.Ge(n)))
	acc := ptx.NewVar(k, ptx.F(0))
	left := a.At(row.Mul(kk))
	right := b.At(col)
	k.Count(kk, func(i ptx.U32) {
		ptx.MulAddTo(acc, left.At(i).Load(), right.At(i.Mul(n)).Load())
	})
	c.At(row.MulAdd(n, col)).Store(acc.Get())
}

// gemmTiled is c = a b, an element a thread, by tiles of t rows and columns in
// shared memory.
func gemmTiled(t int) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		T := ptx.N(t)
		a, b, c := ptx.GlobalParam[ptx.F32](k, "a"), ptx.GlobalParam[ptx.F32](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
		m, n, kk := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
		as, bs := ptx.SharedArray[ptx.F32](k, "as", t*t), ptx.SharedArray[ptx.F32](k, "bs", t*t)
		tx, ty := k.Special(ptx.TidX), k.Special(ptx.TidY)
		row, col := k.Special(ptx.CtaidY).MulAdd(T, ty), k.Special(ptx.CtaidX).MulAdd(T, tx)
		rowIn, colIn := row.Lt(m), col.Lt(n)
		acc := ptx.NewVar(k, ptx.F(0))
		mine := ty.MulAdd(T, tx)
		toA, toB := as.At(mine), bs.At(mine)
		fromA, fromB := as.At(ty.Mul(T)), bs.At(tx)
		left, right := a.At(row.Mul(kk)), b.At(col)
		k.For(ptx.U(0), kk, T, func(i ptx.U32) {
			va, vb := ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, ptx.F(0))
			ca, rb := i.Add(tx), i.Add(ty)
			k.When(rowIn.And(ca.Lt(kk)), func() { va.Set(left.At(ca).Load()) })
			k.When(colIn.And(rb.Lt(kk)), func() { vb.Set(right.At(rb.Mul(n)).Load()) })
			toA.Store(va.Get())
			toB.Store(vb.Get())
			k.Sync()
			for j := range t {
				ptx.MulAddTo(acc, fromA.Offset(j).Load(), fromB.Offset(j*t).Load())
			}
			k.Sync()
		})
		k.If(rowIn.And(colIn), func() { c.At(row.MulAdd(n, col)).Store(acc.Get()) })
	}
}

// softmax is over rows of n elements, a warp each, in registers. n is a multiple
// of 128.
func softmax(n int) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y")
		rows := ptx.Param[ptx.U32](k, "rows")
		row := threadIndex(k).Shr(ptx.U(5))
		k.If(row.Lt(rows), func() {
			at := row.MulAdd(ptx.N(n), k.Special(ptx.LaneID).Mul(ptx.U(4)))
			from, to := x.At(at), y.At(at)
			v := make([][4]ptx.F32, n/128)
			for i := range v {
				v[i] = from.Offset(128 * i).Load4()
			}
			top := v[0][0]
			for i := range v {
				for _, e := range v[i] {
					top = top.Max(e)
				}
			}
			for d := uint32(16); d > 0; d /= 2 {
				top = top.Max(ptx.ShuffleXor(top, ptx.U(d)))
			}
			low := top.Mul(ptx.F(-math.Log2E))
			sum := ptx.F(0)
			for i := range v {
				for j := range v[i] {
					v[i][j] = v[i][j].Fma(ptx.F(math.Log2E), low).Ex2Approx()
					sum = sum.Add(v[i][j])
				}
			}
			for d := uint32(16); d > 0; d /= 2 {
				sum = sum.Add(ptx.ShuffleXor(sum, ptx.U(d)))
			}
			r := sum.Rcp()
			for i := range v {
				for j := range v[i] {
					v[i][j] = v[i][j].Mul(r)
				}
				to.Offset(128 * i).Store4(v[i])
			}
		})
	}
}

// sgemm is c = a b of sizes that are multiples of 128 and 16: a block has 256
// threads and 128 by 128 elements, a thread 8 by 8.
func sgemm(k *ptx.Kernel) {
	const tile, depth = 128, 16
	k.Block(256, 1, 1)
	a, b, c := ptx.GlobalParam[ptx.F32](k, "a"), ptx.GlobalParam[ptx.F32](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
	n, kk := ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
	as, bs := ptx.SharedArray[ptx.F32](k, "as", tile*depth), ptx.SharedArray[ptx.F32](k, "bs", tile*depth)
	t := k.Special(ptx.TidX)
	row, col := t.Shr(ptx.U(4)).Mul(ptx.U(8)), t.And(ptx.U(15)).Mul(ptx.U(8))
	top, left := k.Special(ptx.CtaidY).Mul(ptx.U(tile)), k.Special(ptx.CtaidX).Mul(ptx.U(tile))
	// A thread brings 8 elements of a row of a, and 8 of a row of b.
	ar, ac := t.Shr(ptx.U(1)), t.And(ptx.U(1)).Mul(ptx.U(8))
	br, bc := t.Shr(ptx.U(4)), t.And(ptx.U(15)).Mul(ptx.U(8))
	fromA := a.At(top.Add(ar).MulAdd(kk, ac))
	fromB := b.At(br.MulAdd(n, left.Add(bc)))
	toA, toB := as.At(ac.MulAdd(ptx.U(tile), ar)), bs.At(br.MulAdd(ptx.U(tile), bc))
	readA, readB := as.At(row), bs.At(col)
	var acc [8][8]ptx.Var[ptx.F32]
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = ptx.NewVar(k, ptx.F(0))
		}
	}
	k.For(ptx.U(0), kk, ptx.U(depth), func(i ptx.U32) {
		pa, pb := fromA.At(i), fromB.At(i.Mul(n))
		for h := range 2 {
			va, vb := pa.Offset(4*h).Load4(), pb.Offset(4*h).Load4()
			for j := range va {
				toA.Offset((4*h + j) * tile).Store(va[j])
			}
			toB.Offset(4 * h).Store4(vb)
		}
		k.Sync()
		for d := range depth {
			var u, v [8]ptx.F32
			for h := range 2 {
				x, y := readA.Offset(d*tile+4*h).Load4(), readB.Offset(d*tile+4*h).Load4()
				copy(u[4*h:], x[:])
				copy(v[4*h:], y[:])
			}
			for i := range u {
				for j := range v {
					ptx.MulAddTo(acc[i][j], u[i], v[j])
				}
			}
		}
		k.Sync()
	})
	out := c.At(top.Add(row).MulAdd(n, left.Add(col)))
	for i := range acc {
		for h := range 2 {
			var v [4]ptx.F32
			for j := range v {
				v[j] = acc[i][4*h+j].Get()
			}
			out.Offset(4 * h).Store4(v)
		}
		if i < 7 {
			out = out.At(n)
		}
	}
}

// named is a kernel with its name.
type named struct {
	name  string
	build func(k *ptx.Kernel)
}

var kernels = []named{
	{"relu", relu},
	{"gemm_naive", gemmNaive},
	{"gemm_tiled", gemmTiled(16)},
	{"softmax", softmax(1024)},
	{"sgemm", sgemm},
}

// TestQuickKernels holds that all ways to write an instruction give the same
// text, in kernels of all kinds, and where registers and offsets are beyond what
// tables have.
func TestQuickKernels(t *testing.T) {
	m := ptx.NewModule(ptx.SM90a)
	for _, k := range append(append([]named(nil), kernels...), tensorKernels...) {
		m.Kernel(k.name, k.build)
	}
	for _, s := range samples.All() {
		m.Kernel("sample_"+s.Name, s.Build)
	}
	m.Kernel("wide", func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "a_name_that_is_longer_than_what_fits_into_a_word")
		s := ptx.SharedArray[ptx.F16](k, "another_such_name_of_an_array", 4096)
		all := ptx.DynamicShared[ptx.F32](k, 0)
		for range 300 {
			for _, n := range []int{0, 4, 248, 252, 1000, 25000, 300000, -4, -100000} {
				v := x.Offset(n).Load4()
				x.Offset(n).Store4(v)
				all.Store(ptx.ShuffleXor(v[0], ptx.U(16)).Add(ptx.F(2)))
			}
			for _, n := range []int{0, 8, 504, 2048} {
				m := ptx.LoadMatrix4(ptx.CastShared[ptx.F16x2](s.Offset(n)), true)
				ptx.CopyAsync(s.Offset(n), ptx.Cast[ptx.F16](x).Offset(n), 16)
				ptx.CopyAsyncZero(s.Offset(n), ptx.Cast[ptx.F16](x).Offset(n), 8, m[0].B32().U32())
			}
			k.If(k.Special(ptx.TidX).Lt(ptx.U(7)), func() { k.Sync() })
		}
	})
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	m.Quick(t)
}
