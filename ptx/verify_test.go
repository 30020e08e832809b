package ptx_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// here returns the file and line of its caller, n lines further, as errors do.
func here(n int) string {
	_, file, line, _ := runtime.Caller(1)
	return ptx.Position{File: file, Line: line + n}.String()
}

// verify builds a kernel and verifies it.
func verify(t *testing.T, target ptx.Target, build func(k *ptx.Kernel)) error {
	t.Helper()
	m := ptx.NewModule(target)
	m.RecordPositions()
	m.Kernel("f", build)
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	return m.Verify()
}

func TestVerifyAcceptsKernels(t *testing.T) {
	for _, k := range append(kernels, tensorKernels...) {
		t.Run(k.name, func(t *testing.T) {
			if err := verify(t, ptx.SM90a, k.build); err != nil {
				t.Error(err)
			}
		})
	}
}

// mistakeLine is the line at which the kernel that was built last has its mistake.
var mistakeLine string

// verifyCases are kernels with one mistake each, and the expected finding: "" for none.
var verifyCases = []struct {
	name, want string
	target     ptx.Target
	build      func(k *ptx.Kernel)
}{
	{"read before write", "may be read before it is written", ptx.SM80, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		var v ptx.F32
		k.If(k.Special(ptx.TidX).Lt(ptx.U(3)), func() { v = x.Load() })
		x.Store(v)
		mistakeLine = here(-1)
	}},
	{"read under another condition", "may be read before it is written", ptx.SM80, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		t := k.Special(ptx.TidX)
		var v ptx.F32
		k.When(t.Lt(ptx.U(3)), func() { v = x.Load() })
		k.When(t.Lt(ptx.U(4)), func() { x.Store(v) })
		mistakeLine = here(-1)
	}},
	{"read under the same condition", "", ptx.SM80, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		p := k.Special(ptx.TidX).Lt(ptx.U(3))
		var v ptx.F32
		k.When(p, func() { v = x.Load() })
		k.When(p, func() { x.Store(v) })
	}},
	{"written on both paths", "", ptx.SM80, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		v := ptx.NewVar(k, ptx.F(0))
		k.IfElse(k.Special(ptx.TidX).Lt(ptx.U(3)), func() { v.Set(x.Load()) }, func() { v.Set(ptx.F(1)) })
		x.Store(v.Get())
	}},
	{"written in a loop only", "may be read before it is written", ptx.SM80, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		var v ptx.F32
		k.Count(ptx.Param[ptx.U32](k, "n"), func(i ptx.U32) { v = x.At(i).Load() })
		x.Store(v)
		mistakeLine = here(-1)
	}},
	{"endless loop", "no path leaves the loop", ptx.SM80, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.U32](k, "x")
		k.Loop(func() { ptx.ReduceAdd(x, ptx.U(1)) })
		mistakeLine = here(-1)
	}},
	{"barrier in a divergent branch", "not all threads of the block reach this instruction", ptx.SM80, func(k *ptx.Kernel) {
		k.If(k.Special(ptx.TidX).Lt(ptx.U(64)), func() {
			k.Sync()
			mistakeLine = here(-1)
		})
	}},
	{"barrier in a uniform branch", "", ptx.SM80, func(k *ptx.Kernel) {
		n := ptx.Param[ptx.U32](k, "n")
		k.If(k.Special(ptx.CtaidX).Lt(n), func() { k.Sync() })
	}},
	{"barrier after some threads ended", "not all threads of the block reach this instruction", ptx.SM80, func(k *ptx.Kernel) {
		k.ReturnIf(threadIndex(k).Ge(ptx.Param[ptx.U32](k, "n")))
		k.Sync()
		mistakeLine = here(-1)
	}},
	{"barrier under a condition", "not all threads of the block reach this instruction", ptx.SM80, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.U32](k, "x")
		p := x.At(k.Special(ptx.TidX)).Load().Eq(ptx.U(0))
		v := ptx.NewVar(k, ptx.U(0))
		k.If(p, func() { v.Set(ptx.U(1)) })
		k.If(v.Get().Eq(ptx.U(1)), func() {
			k.Sync()
			mistakeLine = here(-1)
		})
	}},
	{"barrier in a loop of unequal turns", "not all threads of the block reach this instruction", ptx.SM80, func(k *ptx.Kernel) {
		k.Count(k.Special(ptx.TidX), func(i ptx.U32) {
			k.Sync()
			mistakeLine = here(-1)
		})
	}},
	{"barrier in a loop of equal turns", "", ptx.SM80, func(k *ptx.Kernel) {
		k.Count(ptx.Param[ptx.U32](k, "n"), func(i ptx.U32) { k.Sync() })
	}},
	{"barrier of a block of one thread", "", ptx.SM80, func(k *ptx.Kernel) {
		k.Block(1, 1, 1)
		k.If(k.Special(ptx.TidX).Eq(ptx.U(0)), func() { k.Sync() })
	}},
	{"shuffle in half a warp", "not all threads of the warp reach this instruction", ptx.SM80, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		k.If(k.Special(ptx.LaneID).Lt(ptx.U(16)), func() {
			x.Store(ptx.ShuffleXor(x.Load(), ptx.U(1)))
			mistakeLine = here(-1)
		})
	}},
	{"shuffle in one warp", "", ptx.SM80, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		k.If(k.Special(ptx.TidX).Shr(ptx.U(5)).Eq(ptx.U(0)), func() { x.Store(ptx.ShuffleXor(x.Load(), ptx.U(1))) })
	}},
	{"named barrier in one warp", "", ptx.SM80, func(k *ptx.Kernel) {
		k.If(k.Special(ptx.TidX).Shr(ptx.U(5)).Eq(ptx.U(0)), func() { k.SyncSome(1, 32) })
	}},
	{"named barrier in half a warp", "not all threads of the warp reach this instruction", ptx.SM80, func(k *ptx.Kernel) {
		k.If(k.Special(ptx.TidX).Lt(ptx.U(16)), func() {
			k.SyncSome(1, 32)
			mistakeLine = here(-1)
		})
	}},
	{"too much shared memory", "bytes of shared memory", ptx.SM75, func(k *ptx.Kernel) {
		ptx.DynamicShared[ptx.F32](k, 20000)
		mistakeLine = ""
	}},
	{"registers of an open kernel", "is ignored unless", ptx.SM90a, func(k *ptx.Kernel) {
		k.DropRegisters(40)
		mistakeLine = here(-1)
	}},
	{"registers of a fixed kernel", "", ptx.SM90a, func(k *ptx.Kernel) {
		k.Block(384, 1, 1)
		k.MinBlocks(1)
		k.DropRegisters(40)
	}},
	{"product without fence", "no WgmmaFence", ptx.SM90a, func(k *ptx.Kernel) {
		acc, a, b := wgmmaOperands(k)
		k.WgmmaBF16(acc, a, b, ptx.Wgmma{Add: ptx.Is(true)})
		mistakeLine = here(-1)
		k.WgmmaCommit()
		k.WgmmaWait(0)
		storeAll(k, acc)
	}},
	{"accumulator before the wait", "read before WgmmaWait", ptx.SM90a, func(k *ptx.Kernel) {
		acc, a, b := wgmmaOperands(k)
		k.WgmmaFence()
		k.WgmmaBF16(acc, a, b, ptx.Wgmma{})
		k.WgmmaCommit()
		k.WgmmaWait(1)
		y := ptx.GlobalParam[ptx.F32](k, "y")
		y.Store(acc[3].Get())
		mistakeLine = here(-1)
		k.WgmmaWait(0)
	}},
	{"accumulator written in flight", "written before WgmmaWait", ptx.SM90a, func(k *ptx.Kernel) {
		acc, a, b := wgmmaOperands(k)
		k.Count(ptx.Param[ptx.U32](k, "n"), func(ptx.U32) {
			acc[0].Set(ptx.F(0))
			mistakeLine = here(-1)
			k.WgmmaFence()
			k.WgmmaBF16(acc, a, b, ptx.Wgmma{})
			k.WgmmaCommit()
		})
		k.WgmmaWait(0)
	}},
	{"wait without commit", "not waited for", ptx.SM90a, func(k *ptx.Kernel) {
		acc, a, b := wgmmaOperands(k)
		k.WgmmaFence()
		k.WgmmaBF16(acc, a, b, ptx.Wgmma{})
		k.WgmmaWait(0)
		mistakeLine = here(-1)
		k.WgmmaCommit()
		k.WgmmaWait(0)
	}},
	{"swizzled tile in an array aligned to 16", "array s is aligned to 16 bytes, the tile in it needs 1024", ptx.SM90a, func(k *ptx.Kernel) {
		s := ptx.SharedArray[ptx.BF16](k, "s", 2*64*64)
		acc := []ptx.Var[ptx.F32]{}
		for range 4 {
			acc = append(acc, ptx.NewVar(k, ptx.F(0)))
		}
		at := s.At(k.Special(ptx.CtaidX).Mul(ptx.U(64)))
		k.WgmmaFence()
		k.WgmmaBF16(acc, ptx.NewTile(at, ptx.Swizzle128, 16, 1024).Advance(ptx.U(32)), ptx.NewTile(at, ptx.NoSwizzle, 128, 256), ptx.Wgmma{})
		mistakeLine = here(-1)
		k.WgmmaCommit()
		k.WgmmaWait(0)
	}},
	{"tensor copy to an array aligned to 16", "dynamic shared memory is aligned to 16 bytes, the tile in it needs 128", ptx.SM90, func(k *ptx.Kernel) {
		t, n := ptx.TensorMapParam(k, "t"), ptx.Param[ptx.U32](k, "n")
		s, bar := ptx.DynamicShared[ptx.F32](k, 1024), ptx.MBarrierAt(ptx.SharedArray[ptx.U64](k, "bar", 1))
		ptx.TensorLoad(s.At(n), t, bar, ptx.S(0), n.S32())
		mistakeLine = here(-1)
	}},
	{"tensor store from an array aligned to 16", "array s is aligned to 16 bytes, the tile in it needs 128", ptx.SM90, func(k *ptx.Kernel) {
		t := ptx.TensorMapParam(k, "t")
		ptx.TensorStore(t, ptx.SharedArray[ptx.F32](k, "s", 1024), ptx.S(0), ptx.S(0), ptx.S(0))
		mistakeLine = here(-1)
	}},
	{"two groups, the older one waited for", "", ptx.SM90a, func(k *ptx.Kernel) {
		one, a, b := wgmmaOperands(k)
		two := make([]ptx.Var[ptx.F32], len(one))
		for i := range two {
			two[i] = ptx.NewVar(k, ptx.F(0))
		}
		k.WgmmaFence()
		for _, acc := range [][]ptx.Var[ptx.F32]{one, two} {
			k.WgmmaBF16(acc, a, b, ptx.Wgmma{})
			k.WgmmaCommit()
		}
		k.WgmmaWait(1)
		storeAll(k, one)
		k.WgmmaWait(0)
	}},
}

// TestVerify checks the finding in each of the kernels with a mistake. Kernels whose
// finding is "" are correct.
func TestVerify(t *testing.T) {
	for _, c := range verifyCases {
		t.Run(c.name, func(t *testing.T) {
			mistakeLine = ""
			err := verify(t, c.target, c.build)
			if c.want == "" {
				if err != nil {
					t.Errorf("nothing is wrong, but: %v", err)
				}
				return
			}
			var found ptx.Findings
			if !errors.As(err, &found) || len(found) == 0 {
				t.Fatalf("found %v, want %q", err, c.want)
			}
			e := found[0]
			if !strings.Contains(e.Msg, c.want) || e.Pos.String() != mistakeLine {
				t.Errorf("found at %q: %v\nwant at %q: %q", e.Pos, err, mistakeLine, c.want)
			}
			var one *ptx.Error
			if !errors.As(err, &one) || one.Kernel != "f" {
				t.Errorf("%v is no *Error of kernel f", err)
			}
		})
	}
}

// wgmmaOperands returns accumulators of 16 columns and two tiles.
func wgmmaOperands(k *ptx.Kernel) (acc []ptx.Var[ptx.F32], a, b ptx.Tile) {
	k.Align(1024)
	s := ptx.SharedArray[ptx.BF16](k, "tiles", 2*64*64)
	for range 8 {
		acc = append(acc, ptx.NewVar(k, ptx.F(0)))
	}
	return acc, ptx.NewTile(s, ptx.Swizzle128, 16, 1024), ptx.NewTile(s.Offset(64*64), ptx.Swizzle128, 16, 1024)
}

func storeAll(k *ptx.Kernel, acc []ptx.Var[ptx.F32]) {
	y := ptx.GlobalParam[ptx.F32](k, fmt.Sprintf("y%d", k.Instructions()))
	for i := range acc {
		y.Offset(i).Store(acc[i].Get())
	}
}
