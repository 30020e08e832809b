package ptx_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rayo-go/rayo/ptx"
)

// A kernel is a Go function: each method that it calls adds instructions.
func Example() {
	m := ptx.NewModule(ptx.SM80)
	m.Kernel("scale", func(k *ptx.Kernel) {
		x, n := ptx.GlobalParam[ptx.F32](k, "x"), ptx.Param[ptx.U32](k, "n")
		i := k.Special(ptx.CtaidX).MulAdd(k.Special(ptx.NtidX), k.Special(ptx.TidX))
		k.If(i.Lt(n), func() {
			p := x.At(i)
			p.Store(p.Load().Mul(ptx.F(2)))
		})
	})
	text, err := m.PTX()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(text)
	// Output:
	// .version 7.0
	// .target sm_80
	// .address_size 64
	//
	// .visible .entry scale(
	// 	.param .u64 p_x,
	// 	.param .u32 p_n
	// )
	// {
	// 	.reg .pred %p<1>;
	// 	.reg .b32 %r<5>;
	// 	.reg .b64 %d<2>;
	// 	.reg .f32 %f<2>;
	// 	ld.param.u64 %d0, [p_x];
	// 	ld.param.u32 %r0, [p_n];
	// 	mov.u32 %r1, %ctaid.x;
	// 	mov.u32 %r2, %ntid.x;
	// 	mov.u32 %r3, %tid.x;
	// 	mad.lo.u32 %r4, %r1, %r2, %r3;
	// 	setp.lt.u32 %p0, %r4, %r0;
	// 	@!%p0	bra $L0;
	// 	mad.wide.u32 %d1, %r4, 4, %d0;
	// 	ld.global.f32 %f0, [%d1];
	// 	mul.rn.f32 %f1, %f0, 0f40000000;
	// 	st.global.f32 [%d1], %f1;
	// $L0:
	// 	ret;
	// }
}

// Loops of Go unroll, those of the kernel run on the device. A variable carries
// a value around a loop.
func ExampleKernel_For() {
	m := ptx.NewModule(ptx.SM80)
	m.Kernel("sum", func(k *ptx.Kernel) {
		x, y, n := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y"), ptx.Param[ptx.U32](k, "n")
		sum := ptx.NewVar(k, ptx.F(0))
		k.For(ptx.U(0), n, ptx.U(4), func(i ptx.U32) { // on the device
			for _, v := range x.At(i).Load4() { // in the builder
				ptx.AddTo(sum, v)
			}
		})
		y.Store(sum.Get())
	})
	text, err := m.PTX()
	fmt.Println(strings.Count(text, "add.rn.f32"), err)
	// Output: 4 <nil>
}

// Verify finds mistakes that no single call shows. With RecordPositions, a finding names
// the line of the call.
func ExampleModule_Verify() {
	m := ptx.NewModule(ptx.SM80)
	m.RecordPositions()
	m.Kernel("stuck", func(k *ptx.Kernel) {
		k.If(k.Special(ptx.TidX).Lt(ptx.U(7)), func() { k.Sync() })
	})
	var found ptx.Findings
	if errors.As(m.Verify(), &found) {
		msg, _, _ := strings.Cut(found[0].Msg, ", because the condition")
		fmt.Println(found[0].Kernel, found[0].Pos.File != "", msg)
	}
	// Output: stuck true not all threads of the block reach this instruction
}

// An instruction that the target lacks is an error at the line that asks for it.
func ExampleTarget() {
	m := ptx.NewModule(ptx.SM75)
	m.Kernel("wait", func(k *ptx.Kernel) { k.WaitDependencies() })
	_, err := m.PTX()
	fmt.Println(errors.Is(err, ptx.ErrTarget), err.(*ptx.Error).Msg)
	// Output: true griddepcontrol.wait needs sm_90, the module is for sm_75
}

// A warp multiplies matrices in fragments that its lanes share.
func ExampleLoadMatrix4() {
	m := ptx.NewModule(ptx.SM80)
	m.Kernel("tile", func(k *ptx.Kernel) {
		a, b := ptx.SharedArray[ptx.BF16x2](k, "a", 16*8), ptx.SharedArray[ptx.BF16x2](k, "b", 8*8)
		c := ptx.GlobalParam[ptx.F32](k, "c")
		lane := k.Special(ptx.LaneID)
		var acc [4]ptx.Var[ptx.F32]
		for i := range acc {
			acc[i] = ptx.NewVar(k, ptx.F(0))
		}
		// (a and b are filled here, and Sync comes after that)
		fa := ptx.LoadMatrix4(a.At(lane.And(ptx.U(15)).MulAdd(ptx.U(8), lane.Shr(ptx.U(4)).Mul(ptx.U(4)))), false)
		fb := ptx.LoadMatrix2(b.At(lane.And(ptx.U(7)).MulAdd(ptx.U(8), lane.Shr(ptx.U(3)).And(ptx.U(1)).Mul(ptx.U(4)))), false)
		k.MmaBF16(&acc, fa, fb)
		out := c.At(lane.Shr(ptx.U(2)).MulAdd(ptx.U(8), lane.And(ptx.U(3)).Mul(ptx.U(2))))
		out.Store2([2]ptx.F32{acc[0].Get(), acc[1].Get()})
		out.Offset(8 * 8).Store2([2]ptx.F32{acc[2].Get(), acc[3].Get()})
	})
	text, err := m.PTX()
	fmt.Println(strings.Contains(text, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"), err)
	// Output: true <nil>
}

// Raw adds an instruction that the package has no method for.
func ExampleKernel_Raw() {
	m := ptx.NewModule(ptx.SM80)
	m.Kernel("raw", func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.U32](k, "x")
		id := ptx.RawResult[ptx.U32](k, "mov.u32 $=, %nwarpid")
		k.Raw("discard.global.L2 [$$], 128", ptx.Param[ptx.U64](k, "gone"))
		k.Require(7, 4, ptx.SM80)
		x.Store(id)
	})
	text, err := m.PTX()
	fmt.Println(strings.Contains(text, "\tdiscard.global.L2 [%d1], 128;"), err)
	// Output: true <nil>
}
