package ptx_test

import (
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// everything calls the functions whose instructions the table alone does not
// show to be put together rightly.
func everything(k *ptx.Kernel) {
	k.Block(128, 1, 1)
	k.MinBlocks(1)
	k.Cluster(2, 1, 1)
	k.Align(1024)
	x, map3 := ptx.GlobalParam[ptx.F32](k, "x"), ptx.TensorMapParam(k, "t")
	half := ptx.GlobalParam[ptx.F16](k, "half")
	n := ptx.Param[ptx.U32](k, "n")
	tile := ptx.SharedArray[ptx.BF16x2](k, "tile", 4096)
	bytes := ptx.CastShared[ptx.B32](tile)
	bar := ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, 4))
	t := k.Special(ptx.TidX)

	one := k.Elect()
	k.When(one, func() { bar.At(n).Init(ptx.U(2)) })
	k.FenceMBarrierInit()
	k.ClusterSync()
	k.If(t.Eq(ptx.U(0)), func() {
		bar.Expect(ptx.U(64))
		bar.ArriveExpect(n)
		hint := ptx.TensorHint{Blocks: ptx.U(3), Policy: k.EvictFirst()}
		ptx.TensorLoad(tile, map3, bar, ptx.S(0))
		ptx.TensorLoadHint(hint, tile.Offset(1024), map3, bar.At(ptx.U(1)), n.S32(), ptx.S(-1), ptx.S(2))
		ptx.TensorLoadHint(ptx.TensorHint{Blocks: n}, tile, map3, bar, n.S32(), n.S32())
		ptx.TensorLoadHint(ptx.TensorHint{Policy: k.EvictLast()}, tile, map3, bar, n.S32(), n.S32(), n.S32(), n.S32(), n.S32())
		ptx.TensorPrefetch(map3, n.S32())
		ptx.TensorStore(map3, tile, n.S32(), n.S32())
		ptx.TensorAdd(map3, tile, n.S32(), n.S32())
		ptx.BulkLoad(ptx.CastShared[ptx.F32](tile), x, n, bar)
		ptx.BulkLoadHint(k.EvictFirst(), ptx.CastShared[ptx.F32](tile), x, n, bar)
		ptx.BulkStore(x.Offset(-4), ptx.CastShared[ptx.F32](tile), ptx.U(128))
		k.BulkCommit()
		k.BulkWait(0)
		bar.ArriveAt(ptx.U(1))
		bar.ArriveNear(ptx.U(1))
		ptx.Prefetch(x.At(n))
	})
	ptx.CopyAsyncZero(ptx.CastShared[ptx.F32](tile), x, 16, n)
	bar.ArriveCopies()
	bar.Wait(n.And(ptx.U(1)))
	done := bar.Test(ptx.U(0))
	bar.Arrive()
	v4 := ptx.LoadMatrix4(tile.At(t.Mul(ptx.U(4))), true)
	ptx.StoreMatrix4(tile.At(t.Mul(ptx.U(4))), v4, true)
	ptx.StoreMatrix2(bytes, ptx.LoadMatrix2(bytes, true), false)
	ptx.StoreMatrix(bytes, ptx.LoadMatrix(bytes, false), false)
	x.Store(ptx.Select(done, k.Clock().F32(), k.GlobalTimer().F32()))
	x.Store(t.Insert(n, ptx.U(3), ptx.U(4)).Lop3(n, t, 0x96).F32())
	k.If(n.Eq(ptx.U(12345)), k.Trap)
	k.Sleep(ptx.U(20))
	k.While(func() ptx.Pred { return x.Hint(ptx.Ordered).Load().Lt(ptx.F(1)) }, func() { k.Sleep(n) })
	h := half.Load()
	half.Store(h.Fma(ptx.H(2), h.Neg()))
	ptx.AtomicCompareExchange(ptx.Cast[ptx.U32](x), n, ptx.U(7))
	ptx.ReduceAdd(ptx.Cast[ptx.BF16x2](x), v4[0])
	remote := ptx.MapShared(bytes, n)
	remote.At(n).Store(remote.Offset(4).Load())
	r4 := remote.Load4()
	remote.Offset(8).Store4(r4)

	a, b := ptx.NewTile(tile, ptx.Swizzle128, 16, 1024), ptx.NewTile(tile.Offset(2048), ptx.Swizzle128, 16, 1024)
	f := make([]ptx.Var[ptx.F32], 12)
	for i := range f {
		f[i] = ptx.NewVar(k, ptx.F(0))
	}
	s := []ptx.Var[ptx.S32]{}
	for range 16 {
		s = append(s, ptx.NewVar(k, ptx.S(0)))
	}
	half2 := []ptx.Var[ptx.F16x2]{ptx.NewVar(k, ptx.H2(0)), ptx.NewVar(k, ptx.H2(0))}
	k.WgmmaFence()
	k.WgmmaF16(f, a, b, ptx.Wgmma{NegateA: true, TransB: true})
	k.WgmmaBF16Regs(f, v4, b, ptx.Wgmma{Add: ptx.Is(true), TransB: true})
	k.WgmmaTF32(f, a, b, ptx.Wgmma{Add: done, NegateB: true})
	k.WgmmaE4M3(f, a, b, ptx.Wgmma{Add: ptx.Is(true)})
	k.WgmmaS8(s, a, b, ptx.Wgmma{})
	k.WgmmaF16Half(half2, a, b, ptx.Wgmma{})
	k.WgmmaCommit()
	k.WgmmaWait(0)
	for i := range f {
		x.At(t).Offset(i).Store(f[i].Get())
	}
	for i := range s {
		x.At(t).Offset(32 + i).Store(s[i].Get().F32())
	}
	ptx.Cast[ptx.F16x2](x).At(t).Store(half2[0].Get().Add(half2[1].Get()))
}

func TestPtxasMethods(t *testing.T) {
	m := ptx.NewModule(ptx.SM90a)
	m.RecordPositions()
	m.Kernel("everything", everything)
	text, err := m.AppendPTX(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
	assemble(t, text, ptx.SM90a)
}

// TestMBarrierOnAmpere shows that waits do without what sm_80 lacks.
func TestMBarrierOnAmpere(t *testing.T) {
	m := ptx.NewModule(ptx.SM80)
	m.Kernel("wait", func(k *ptx.Kernel) {
		bar := ptx.MBarrierAt(ptx.SharedArray[ptx.U64](k, "bar", 1))
		k.If(k.Special(ptx.TidX).Eq(ptx.U(0)), func() { bar.Init(k.Special(ptx.NtidX)) })
		k.Sync()
		ptx.CopyAsync(ptx.SharedArray[ptx.F32](k, "s", 4), ptx.GlobalParam[ptx.F32](k, "x"), 16)
		bar.ArriveCopies()
		bar.Wait(ptx.U(0))
	})
	text, err := m.AppendPTX(nil)
	if err != nil || strings.Contains(string(text), "try_wait") {
		t.Fatalf("%v\n%s", err, text)
	}
	assemble(t, text, ptx.SM80)
}
