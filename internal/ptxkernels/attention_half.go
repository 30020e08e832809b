package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// half is float16 or bfloat16: the 16-bit types that tensor cores multiply. A register holds two
// elements.
type half op.DType

// pack rounds two numbers and packs them into a register, low in the low half.
func (h half) pack(low, high ptx.F32) ptx.B32 {
	if op.DType(h) == op.BF16 {
		return high.PackBF16(low).B32()
	}
	return high.PackF16(low).B32()
}

// mma adds the product of a, 16 by 16, and b, 16 by 8, to acc.
func (h half) mma(k *ptx.Kernel, acc *[4]ptx.Var[ptx.F32], a [4]ptx.B32, b [2]ptx.B32) {
	if op.DType(h) == op.BF16 {
		k.MmaBF16(acc, [4]ptx.BF16x2{a[0].BF16x2(), a[1].BF16x2(), a[2].BF16x2(), a[3].BF16x2()}, [2]ptx.BF16x2{b[0].BF16x2(), b[1].BF16x2()})
		return
	}
	k.MmaF16(acc, [4]ptx.F16x2{a[0].F16x2(), a[1].F16x2(), a[2].F16x2(), a[3].F16x2()}, [2]ptx.F16x2{b[0].F16x2(), b[1].F16x2()})
}

// wgmma multiplies matrices in shared memory.
func (h half) wgmma(k *ptx.Kernel, acc []ptx.Var[ptx.F32], a, b ptx.Tile, w ptx.Wgmma) {
	if op.DType(h) == op.BF16 {
		k.WgmmaBF16(acc, a, b, w)
		return
	}
	k.WgmmaF16(acc, a, b, w)
}

// wgmmaRegs multiplies a matrix in registers by a matrix in shared memory.
func (h half) wgmmaRegs(k *ptx.Kernel, acc []ptx.Var[ptx.F32], a [4]ptx.B32, b ptx.Tile, w ptx.Wgmma) {
	if op.DType(h) == op.BF16 {
		k.WgmmaBF16Regs(acc, [4]ptx.BF16x2{a[0].BF16x2(), a[1].BF16x2(), a[2].BF16x2(), a[3].BF16x2()}, b, w)
		return
	}
	k.WgmmaF16Regs(acc, [4]ptx.F16x2{a[0].F16x2(), a[1].F16x2(), a[2].F16x2(), a[3].F16x2()}, b, w)
}
