package ptx_test

import (
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// tensorKernels use the tensor cores and what moves data to them.
var tensorKernels = []named{
	{"mma_pipeline", mmaPipeline},
	{"wgmma_tma", wgmmaTMA},
	{"cluster_sum", clusterSum},
}

// mmaPipeline multiplies a tile of 64 by 64 by 32-deep steps of bf16, which two
// stages of copies bring. One warp has 16 rows.
func mmaPipeline(k *ptx.Kernel) {
	const rows, depth, stages, pitch = 64, 32, 2, 40 // pitch: a row and 8 elements, against bank conflicts
	k.Block(128, 1, 1)
	a, b, c := ptx.GlobalParam[ptx.BF16x2](k, "a"), ptx.GlobalParam[ptx.BF16x2](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
	kk, n := ptx.Param[ptx.U32](k, "k"), ptx.Param[ptx.U32](k, "n")
	as := ptx.SharedArray[ptx.BF16x2](k, "as", stages*rows*pitch/2)
	bs := ptx.SharedArray[ptx.BF16x2](k, "bs", stages*rows*pitch/2)
	t, lane := k.Special(ptx.TidX), k.Special(ptx.LaneID)
	warp := t.Shr(ptx.U(5))
	// A thread copies 16 bytes of each of two rows of a and b.
	row, col := t.Shr(ptx.U(2)), t.And(ptx.U(3)).Mul(ptx.U(4))
	stage := func(s, step ptx.U32) {
		for h := range 2 {
			r := row.Add(ptx.N(32 * h))
			at := r.Mul(ptx.U(pitch / 2)).Add(col).Add(s.Mul(ptx.U(rows * pitch / 2)))
			from := r.Mul(kk.Shr(ptx.U(1))).Add(step.Mul(ptx.U(depth / 2))).Add(col)
			ptx.CopyAsync(as.At(at), a.At(from), 16)
			ptx.CopyAsync(bs.At(at), b.At(from), 16)
		}
		k.CopyCommit()
	}
	var acc [8][4]ptx.Var[ptx.F32]
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = ptx.NewVar(k, ptx.F(0))
		}
	}
	steps := kk.Shr(ptx.U(5))
	stage(ptx.U(0), ptx.U(0))
	k.Count(steps, func(i ptx.U32) {
		k.IfElse(i.Add(ptx.U(1)).Lt(steps), func() {
			next := i.Add(ptx.U(1))
			stage(next.And(ptx.U(1)), next)
			k.CopyWait(1)
		}, func() { k.CopyWait(0) })
		k.Sync()
		base := i.And(ptx.U(1)).Mul(ptx.U(rows * pitch / 2))
		fromA := as.At(base.Add(warp.MulAdd(ptx.U(16), lane.And(ptx.U(15))).MulAdd(ptx.U(pitch/2), lane.Shr(ptx.U(4)).Mul(ptx.U(4)))))
		fromB := bs.At(base.Add(lane.And(ptx.U(7)).MulAdd(ptx.U(pitch/2), lane.Shr(ptx.U(3)).And(ptx.U(1)).Mul(ptx.U(4)))))
		for d := range depth / 16 {
			fa := ptx.LoadMatrix4(fromA.Offset(8*d), false)
			for j := range acc {
				fb := ptx.LoadMatrix2(fromB.Offset(8*j*pitch/2+8*d), false)
				k.MmaBF16(&acc[j], fa, fb)
			}
		}
		k.Sync()
	})
	out := c.At(warp.MulAdd(ptx.U(16), lane.Shr(ptx.U(2))).MulAdd(n, lane.And(ptx.U(3)).Mul(ptx.U(2))))
	low := out.At(n.Mul(ptx.U(8)))
	for j := range acc {
		out.Offset(8 * j).Store2([2]ptx.F32{acc[j][0].Get(), acc[j][1].Get()})
		low.Offset(8 * j).Store2([2]ptx.F32{acc[j][2].Get(), acc[j][3].Get()})
	}
}

// wgmmaTMA multiplies tiles of 128 by 128 of bf16: one warp brings them by
// tensor maps, four stages ahead, and two warpgroups multiply.
func wgmmaTMA(k *ptx.Kernel) {
	const stages, depth = 4, 64
	k.Block(384, 1, 1)
	k.MinBlocks(1)
	k.Align(1024)
	ta, tb := ptx.TensorMapParam(k, "a"), ptx.TensorMapParam(k, "b")
	c, n, steps := ptx.GlobalParam[ptx.F32](k, "c"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "steps")
	as := ptx.DynamicShared[ptx.BF16](k, stages*128*depth)
	bs := ptx.DynamicShared[ptx.BF16](k, stages*128*depth)
	full, empty := ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, stages)), ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, stages))
	t := k.Special(ptx.TidX)
	row, col := k.Special(ptx.CtaidY).Mul(ptx.U(128)), k.Special(ptx.CtaidX).Mul(ptx.U(128))
	k.If(t.Eq(ptx.U(0)), func() {
		ta.Prefetch()
		tb.Prefetch()
		for i := range stages {
			full.At(ptx.N(i)).Init(ptx.U(1))
			empty.At(ptx.N(i)).Init(ptx.U(2))
		}
		k.FenceMBarrierInit()
	})
	k.Sync()
	group := t.Shr(ptx.U(7))
	k.IfElse(group.Eq(ptx.U(0)), func() {
		k.DropRegisters(40)
		k.If(t.Eq(ptx.U(0)), func() {
			k.Count(steps, func(i ptx.U32) {
				s, phase := i.And(ptx.U(stages-1)), i.Shr(ptx.U(2)).And(ptx.U(1))
				empty.At(s).Wait(phase.Xor(ptx.U(1)))
				bar := full.At(s)
				bar.ArriveExpect(ptx.U(2 * 128 * depth * 2))
				at := s.Mul(ptx.U(128 * depth))
				x := i.Mul(ptx.U(depth)).S32()
				ptx.TensorLoad(as.At(at), ta, bar, x, row.S32())
				ptx.TensorLoad(bs.At(at), tb, bar, x, col.S32())
			})
		})
	}, func() {
		k.RaiseRegisters(232)
		mine := group.Sub(ptx.U(1))
		acc := make([]ptx.Var[ptx.F32], 64)
		for i := range acc {
			acc[i] = ptx.NewVar(k, ptx.F(0))
		}
		k.Count(steps, func(i ptx.U32) {
			s, phase := i.And(ptx.U(stages-1)), i.Shr(ptx.U(2)).And(ptx.U(1))
			full.At(s).Wait(phase)
			at := s.Mul(ptx.U(128 * depth))
			a := ptx.NewTile(as.At(mine.MulAdd(ptx.U(64*depth), at)), ptx.Swizzle128, 16, 1024)
			b := ptx.NewTile(bs.At(at), ptx.Swizzle128, 16, 1024)
			k.WgmmaFence()
			for d := range depth / 16 {
				k.WgmmaBF16(acc, a.Advance(ptx.N(32*d)), b.Advance(ptx.N(32*d)), ptx.Wgmma{Add: ptx.Is(true)})
			}
			k.WgmmaCommit()
			k.WgmmaWait(0)
			k.If(t.And(ptx.U(127)).Eq(ptx.U(0)), func() { empty.At(s).Arrive() })
		})
		lane, warp := t.And(ptx.U(31)), t.Shr(ptx.U(5)).And(ptx.U(3))
		r := row.Add(mine.MulAdd(ptx.U(64), warp.MulAdd(ptx.U(16), lane.Shr(ptx.U(2)))))
		out := c.At(r.MulAdd(n, lane.And(ptx.U(3)).MulAdd(ptx.U(2), col)))
		low := out.At(n.Mul(ptx.U(8)))
		for j := range 16 {
			out.Offset(8 * j).Store2([2]ptx.F32{acc[4*j].Get(), acc[4*j+1].Get()})
			low.Offset(8 * j).Store2([2]ptx.F32{acc[4*j+2].Get(), acc[4*j+3].Get()})
		}
	})
}

// clusterSum adds the numbers of the blocks of a cluster, through the shared
// memory of the first, and stores the sum by a bulk copy.
func clusterSum(k *ptx.Kernel) {
	k.Cluster(2, 1, 1)
	k.Block(128, 1, 1)
	y := ptx.GlobalParam[ptx.F32](k, "y")
	s := ptx.SharedArray[ptx.F32](k, "s", 2*128)
	t, rank := k.Special(ptx.TidX), k.Special(ptx.ClusterRank)
	k.WaitDependencies()
	k.ClusterSync()
	ptx.MapShared(s, ptx.U(0)).At(rank.MulAdd(ptx.U(128), t)).Store(t.F32())
	k.ClusterSync()
	k.LaunchDependents()
	k.If(rank.Eq(ptx.U(0)), func() {
		at := s.At(t)
		at.Store(at.Load().Add(at.Offset(128).Load()))
		k.FenceAsyncShared()
		k.Sync()
		k.If(t.Eq(ptx.U(0)), func() {
			ptx.BulkStore(y, s, ptx.U(512))
			k.BulkCommit()
			k.BulkWaitRead(0)
		})
	})
}

// TestPtxasTensor assembles the tensor kernels: no register is spilt and no
// product is serialised, which ptxas says in remarks numbered C75xx.
func TestPtxasTensor(t *testing.T) {
	for _, k := range tensorKernels {
		t.Run(k.name, func(t *testing.T) {
			m := ptx.NewModule(ptx.SM90a)
			m.Kernel(k.name, k.build)
			text, err := m.AppendPTX(nil)
			if err != nil {
				t.Fatal(err)
			}
			s := assemble(t, text, ptx.SM90a, "-v")
			if strings.Contains(s, "C75") || !strings.Contains(s, " 0 bytes spill stores") {
				t.Error(s)
			}
		})
	}
}
