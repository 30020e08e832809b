package emu

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// The kernels of these tests. The argument is the name of a defect; "" builds the correct kernel.

// relu computes four elements in each thread, and the last few elements one by one.
func reluKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y")
		n := ptx.Param[ptx.U32](k, "n")
		i := k.Special(ptx.CtaidX).MulAdd(k.Special(ptx.NtidX), k.Special(ptx.TidX)).Mul(ptx.U(4))
		whole := i.Add(ptx.U(4)).Le(n)
		if defect == "bound" {
			whole = i.Lt(n)
		}
		k.IfElse(whole, func() {
			v := x.At(i).Load4()
			for j := range v {
				v[j] = v[j].Max(ptx.F(0))
			}
			y.At(i).Store4(v)
		}, func() {
			k.For(i, n, ptx.U(1), func(i ptx.U32) { y.At(i).Store(x.At(i).Load().Max(ptx.F(0))) })
		})
	}
}

const tile = 16

// gemm multiplies with tiles in shared memory.
func gemmKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		a, b, c := ptx.GlobalParam[ptx.F32](k, "a"), ptx.GlobalParam[ptx.F32](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
		m, n, kk := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
		stride := tile + 1
		if defect == "conflicts" {
			stride = tile
		}
		size := tile * stride
		if defect == "small" {
			size -= 8
		}
		as, bs := ptx.SharedArray[ptx.F32](k, "as", size), ptx.SharedArray[ptx.F32](k, "bs", tile*stride)
		tx, ty := k.Special(ptx.TidX), k.Special(ptx.TidY)
		row, col := k.Special(ptx.CtaidY).MulAdd(ptx.U(tile), ty), k.Special(ptx.CtaidX).MulAdd(ptx.U(tile), tx)
		acc := ptx.NewVar(k, ptx.F(0))
		mine := ty.MulAdd(ptx.N(stride), tx)
		k.For(ptx.U(0), kk, ptx.U(tile), func(t ptx.U32) {
			va, vb := ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, ptx.F(0))
			ac, br := t.Add(tx), t.Add(ty)
			inA := row.Lt(m).And(ac.Lt(kk))
			if defect == "bound" {
				inA = row.Lt(m).And(ac.Le(kk))
			}
			k.If(inA, func() { va.Set(a.At(row.MulAdd(kk, ac)).Load()) })
			k.If(br.Lt(kk).And(col.Lt(n)), func() { vb.Set(b.At(br.MulAdd(n, col)).Load()) })
			as.At(mine).Store(va.Get())
			if defect == "uninitialised" {
				k.If(tx.Ne(ptx.U(3)), func() { bs.At(mine).Store(vb.Get()) })
			} else {
				bs.At(mine).Store(vb.Get())
			}
			if defect != "first barrier" {
				k.Sync()
			}
			ra, cb := as.At(ty.Mul(ptx.N(stride))), bs.At(tx)
			for i := range tile {
				ptx.MulAddTo(acc, ra.Offset(i).Load(), cb.Offset(i*stride).Load())
			}
			if defect != "second barrier" {
				k.Sync()
			}
		})
		k.If(row.Lt(m).And(col.Lt(n)), func() { c.At(row.MulAdd(n, col)).Store(acc.Get()) })
	}
}

// sum adds up the elements of a block with shuffles, then warps through shared memory.
func sumKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y")
		n := ptx.Param[ptx.U32](k, "n")
		part := ptx.SharedArray[ptx.F32](k, "part", 32)
		tid := k.Special(ptx.TidX)
		lane, warp := tid.And(ptx.U(31)), tid.Shr(ptx.U(5))
		s := ptx.NewVar(k, ptx.F(0))
		i := k.Special(ptx.CtaidX).MulAdd(k.Special(ptx.NtidX), tid)
		step := k.Special(ptx.NctaidX).Mul(k.Special(ptx.NtidX))
		if defect == "stride" {
			step = k.Special(ptx.NtidX) // then several blocks add the same elements: the result is wrong, without a race
		}
		k.For(i, n, step, func(i ptx.U32) { ptx.AddTo(s, x.At(i).Load()) })
		reduce := func(v ptx.F32) ptx.F32 {
			for d := 16; d > 0; d /= 2 {
				v = v.Add(ptx.ShuffleXor(v, ptx.N(d)))
			}
			return v
		}
		total := reduce(s.Get())
		if defect == "init" {
			k.If(lane.Eq(ptx.U(0)).And(warp.Ne(ptx.U(1))), func() { part.At(warp).Store(total) })
		} else {
			k.If(lane.Eq(ptx.U(0)), func() { part.At(warp).Store(total) })
		}
		if defect == "divergent" {
			k.If(warp.Lt(ptx.U(2)), func() { k.Sync() })
		} else if defect == "half" {
			k.If(lane.Lt(ptx.U(16)), func() { k.Sync() })
		} else if defect != "barrier" {
			k.Sync()
		}
		k.If(warp.Eq(ptx.U(0)), func() {
			v := ptx.NewVar(k, ptx.F(0))
			k.If(lane.Lt(k.Special(ptx.NtidX).Shr(ptx.U(5))), func() { v.Set(part.At(lane).Load()) })
			if defect == "partial shuffle" {
				k.If(lane.Lt(ptx.U(16)), func() { v.Set(reduce(v.Get())) })
			} else {
				v.Set(reduce(v.Get()))
			}
			k.If(lane.Eq(ptx.U(0)), func() {
				out := y.At(k.Special(ptx.CtaidX))
				if defect == "one place" {
					out = y
				}
				out.Store(v.Get())
			})
		})
	}
}

// tree adds up 128 elements in shared memory.
func treeKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y")
		s := ptx.SharedArray[ptx.F32](k, "s", 128)
		tid := k.Special(ptx.TidX)
		s.At(tid).Store(x.At(k.Special(ptx.CtaidX).MulAdd(ptx.U(128), tid)).Load())
		k.Sync()
		for d := 64; d > 0; d /= 2 {
			k.If(tid.Lt(ptx.N(d)), func() {
				p := s.At(tid)
				p.Store(p.Load().Add(p.Offset(d).Load()))
			})
			switch {
			case defect == "lockstep" && d <= 32: // assumes that the lanes of a warp run in lockstep
			case d <= 32:
				k.SyncWarp(ptx.AllLanes)
				if d == 32 {
					k.Sync()
				}
			default:
				k.Sync()
			}
		}
		k.If(tid.Eq(ptx.U(0)), func() { y.At(k.Special(ptx.CtaidX)).Store(s.Load()) })
	}
}

// softmax computes each row in one warp.
func softmaxKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y")
		rows, cols := ptx.Param[ptx.U32](k, "rows"), ptx.Param[ptx.U32](k, "cols")
		lane := k.Special(ptx.LaneID)
		row := k.Special(ptx.CtaidX).MulAdd(k.Special(ptx.NtidX), k.Special(ptx.TidX)).Shr(ptx.U(5))
		if defect != "row" {
			k.ReturnIf(row.Ge(rows))
		}
		px, py := x.At(row.Mul(cols)), y.At(row.Mul(cols))
		most := ptx.NewVar(k, ptx.F(float32(math.Inf(-1))))
		k.For(lane, cols, ptx.U(32), func(i ptx.U32) { ptx.MaxTo(most, px.At(i).Load()) })
		m := most.Get()
		for d := 16; d > 0; d /= 2 {
			m = m.Max(ptx.ShuffleXor(m, ptx.N(d)))
		}
		sum := ptx.NewVar(k, ptx.F(0))
		each := func(i ptx.U32) ptx.F32 { return px.At(i).Load().Sub(m).Mul(ptx.F(math.Log2E)).Ex2Approx() }
		k.For(lane, cols, ptx.U(32), func(i ptx.U32) { ptx.AddTo(sum, each(i)) })
		s := sum.Get()
		for d := 16; d > 0; d /= 2 {
			s = s.Add(ptx.ShuffleXor(s, ptx.N(d)))
		}
		r := s.RcpApprox()
		k.For(lane, cols, ptx.U(32), func(i ptx.U32) { py.At(i).Store(each(i).Mul(r)) })
	}
}

// transpose copies tiles of 32 by 32 elements through shared memory, with 8 rows of threads.
func transposeKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y")
		rows, cols := ptx.Param[ptx.U32](k, "rows"), ptx.Param[ptx.U32](k, "cols")
		stride := 33
		if defect == "stride" {
			stride = 32
		}
		s := ptx.SharedArray[ptx.F32](k, "s", 32*stride)
		tx, ty := k.Special(ptx.TidX), k.Special(ptx.TidY)
		bx, by := k.Special(ptx.CtaidX).Mul(ptx.U(32)), k.Special(ptx.CtaidY).Mul(ptx.U(32))
		for j := 0; j < 32; j += 8 {
			r, c := by.Add(ty).Add(ptx.N(j)), bx.Add(tx)
			k.If(r.Lt(rows).And(c.Lt(cols)), func() {
				s.At(ty.Add(ptx.N(j)).MulAdd(ptx.N(stride), tx)).Store(x.At(r.MulAdd(cols, c)).Load())
			})
		}
		if defect != "barrier" {
			k.Sync()
		}
		for j := 0; j < 32; j += 8 {
			r, c := bx.Add(ty).Add(ptx.N(j)), by.Add(tx)
			in := r.Lt(cols).And(c.Lt(rows))
			if defect == "bound" {
				in = r.Le(cols).And(c.Lt(rows))
			}
			k.If(in, func() {
				y.At(r.MulAdd(rows, c)).Store(s.At(tx.MulAdd(ptx.N(stride), ty.Add(ptx.N(j)))).Load())
			})
		}
	}
}

// histogram counts bytes in shared memory, then adds to global memory.
func histogramKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		x, y := ptx.GlobalParam[ptx.U8](k, "x"), ptx.GlobalParam[ptx.U32](k, "y")
		n := ptx.Param[ptx.U32](k, "n")
		h := ptx.SharedArray[ptx.U32](k, "h", 256)
		tid, threads := k.Special(ptx.TidX), k.Special(ptx.NtidX)
		if defect != "init" {
			k.For(tid, ptx.U(256), threads, func(i ptx.U32) { h.At(i).Store(ptx.U(0)) })
		}
		if defect != "first barrier" {
			k.Sync()
		}
		k.For(k.Special(ptx.CtaidX).MulAdd(threads, tid), n, k.Special(ptx.NctaidX).Mul(threads), func(i ptx.U32) {
			p := h.At(x.At(i).Load().U32())
			if defect == "plain" {
				p.Store(p.Load().Add(ptx.U(1)))
			} else {
				ptx.ReduceAdd(p, ptx.U(1))
			}
		})
		if defect != "last barrier" {
			k.Sync()
		}
		k.For(tid, ptx.U(256), threads, func(i ptx.U32) {
			v := h.At(i).Load()
			if defect == "flush" {
				p := y.At(i)
				p.Store(p.Load().Add(v))
			} else {
				ptx.ReduceAdd(y.At(i), v)
			}
		})
	}
}

// last adds up all elements in one launch. The block that ends last adds the sums of the other blocks.
func lastKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		x, part, count, y := ptx.GlobalParam[ptx.U32](k, "x"), ptx.GlobalParam[ptx.U32](k, "part"), ptx.GlobalParam[ptx.U32](k, "count"), ptx.GlobalParam[ptx.U32](k, "y")
		flag := ptx.SharedArray[ptx.U32](k, "flag", 1)
		tid := k.Special(ptx.TidX)
		sum := func(v ptx.U32) ptx.U32 {
			for d := 16; d > 0; d /= 2 {
				v = v.Add(ptx.ShuffleXor(v, ptx.N(d)))
			}
			return v
		}
		v := sum(x.At(k.Special(ptx.CtaidX).MulAdd(ptx.U(32), tid)).Load())
		k.If(tid.Eq(ptx.U(0)), func() {
			part.At(k.Special(ptx.CtaidX)).Store(v)
			if defect != "release" {
				k.FenceDevice()
			}
			before := ptx.AtomicAdd(count, ptx.U(1))
			if defect != "acquire" {
				k.FenceDevice()
			}
			flag.Store(ptx.Select(before.Eq(k.Special(ptx.NctaidX).Sub(ptx.U(1))), ptx.U(1), ptx.U(0)))
		})
		k.Sync()
		k.If(flag.Load().Ne(ptx.U(0)), func() {
			s := ptx.NewVar(k, ptx.U(0))
			k.For(tid, k.Special(ptx.NctaidX), ptx.U(32), func(i ptx.U32) { ptx.AddTo(s, part.At(i).Load()) })
			all := sum(s.Get())
			k.If(tid.Eq(ptx.U(0)), func() { y.Store(all) })
		})
	}
}

// copyKernel doubles a row through two stages of asynchronous copies.
func copyKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y")
		tiles := ptx.Param[ptx.U32](k, "tiles")
		s := ptx.DynamicShared[ptx.F32](k, 2*256)
		tid := k.Special(ptx.TidX)
		start := func(t ptx.U32) {
			p := s.At(t.And(ptx.U(1)).MulAdd(ptx.U(256), tid.Mul(ptx.U(4))))
			ptx.CopyAsync(p, x.At(t.MulAdd(ptx.U(256), tid.Mul(ptx.U(4)))), 16)
		}
		start(ptx.Reg(k, ptx.U(0)))
		k.CopyCommit()
		k.For(ptx.U(0), tiles, ptx.U(1), func(t ptx.U32) {
			next := t.Add(ptx.U(1))
			k.If(next.Lt(tiles), func() { start(next) })
			if defect != "commit" {
				k.CopyCommit()
			}
			switch defect {
			case "wait":
			case "one group":
				k.CopyWait(2)
			default:
				k.CopyWait(1)
			}
			if defect != "first barrier" {
				k.Sync()
			}
			for j := range 4 {
				e := tid.Add(ptx.N(64 * j))
				v := s.At(t.And(ptx.U(1)).MulAdd(ptx.U(256), e)).Load()
				y.At(t.MulAdd(ptx.U(256), e)).Store(v.Add(v))
			}
			if defect != "second barrier" {
				k.Sync()
			}
		})
	}
}

// ordered is spin with an acquiring load and a releasing store instead of fences.
func orderedKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		flag, y := ptx.GlobalParam[ptx.U32](k, "flag"), ptx.GlobalParam[ptx.U32](k, "y")
		load, store := flag.Hint(ptx.Ordered), flag.Hint(ptx.Ordered)
		switch defect {
		case "load":
			load = flag.Hint(ptx.Volatile)
		case "store":
			store = flag.Hint(ptx.Volatile)
		case "plain":
			load, store = flag, flag
		}
		k.If(k.Special(ptx.TidX).Eq(ptx.U(0)), func() {
			k.IfElse(k.Special(ptx.CtaidX).Eq(ptx.U(0)), func() {
				k.Loop(func() { k.BreakIf(load.Load().Ne(ptx.U(0))) })
				y.Offset(1).Store(y.Load())
			}, func() {
				y.Store(ptx.U(7))
				store.Store(ptx.U(1))
			})
		})
	}
}

// spin is a kernel that ends only if another block sets a flag.
func spinKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		flag, y := ptx.GlobalParam[ptx.U32](k, "flag"), ptx.GlobalParam[ptx.U32](k, "y")
		k.IfElse(k.Special(ptx.CtaidX).Eq(ptx.U(0)), func() {
			k.Loop(func() { k.BreakIf(flag.Hint(ptx.Volatile).Load().Ne(ptx.U(0))) })
			if defect != "acquire" {
				k.FenceDevice()
			}
			k.If(k.Special(ptx.TidX).Eq(ptx.U(0)), func() { y.Offset(1).Store(y.Load()) })
		}, func() {
			k.If(k.Special(ptx.TidX).Eq(ptx.U(0)), func() {
				y.Store(ptx.U(7))
				if defect != "release" {
					k.FenceDevice()
				}
				if defect != "endless" {
					flag.Hint(ptx.Volatile).Store(ptx.U(1))
				}
			})
		})
	}
}

func build(t testing.TB, f func(k *ptx.Kernel)) *Kernel {
	t.Helper()
	k, err := Build(ptx.SM80, "kernel", f)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func randoms(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// device is a machine whose errors fail the test.
type device struct {
	*Machine
	t testing.TB
}

func newDevice(t testing.TB, c Config) device { return device{NewMachine(c), t} }

func (d device) floats(name string, v []float32) Ptr {
	d.t.Helper()
	p, err := d.Floats(name, v)
	d.must(err)
	return p
}

func (d device) words(name string, v []uint32) Ptr {
	d.t.Helper()
	p, err := d.Words(name, v)
	d.must(err)
	return p
}

func (d device) empty(name string, bytes int) Ptr {
	d.t.Helper()
	p, err := d.Alloc(name, bytes)
	d.must(err)
	return p
}

func (d device) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d device) launch(k *Kernel, grid, block Dim, shared int, params ...any) {
	d.t.Helper()
	d.must(d.Launch(context.Background(), k, grid, block, shared, params...))
}

// near compares values with float64 references. The error must be at most tol times the greater of scale and the
// reference.
func near(t testing.TB, got []float32, want []float64, tol, scale float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tol*max(scale, math.Abs(want[i]))) {
			t.Fatalf("element %d is %v, not %v", i, got[i], want[i])
		}
	}
}
