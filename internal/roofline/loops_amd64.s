//go:build !noasm

#include "textflag.h"

// Twelve accumulators: two units of a latency of four or five need ten at least.
// All are zero, and stay so.
#define ZERO12 \
	VXORPS X0, X0, X0 \
	VXORPS X1, X1, X1 \
	VXORPS X2, X2, X2 \
	VXORPS X3, X3, X3 \
	VXORPS X4, X4, X4 \
	VXORPS X5, X5, X5 \
	VXORPS X6, X6, X6 \
	VXORPS X7, X7, X7 \
	VXORPS X8, X8, X8 \
	VXORPS X9, X9, X9 \
	VXORPS X10, X10, X10 \
	VXORPS X11, X11, X11 \
	VXORPS X12, X12, X12

// func fmaAVX2(n int)
TEXT ·fmaAVX2(SB), NOSPLIT, $0-8
	MOVQ n+0(FP), CX
	ZERO12

loop:
	VFMADD231PS Y12, Y12, Y0
	VFMADD231PS Y12, Y12, Y1
	VFMADD231PS Y12, Y12, Y2
	VFMADD231PS Y12, Y12, Y3
	VFMADD231PS Y12, Y12, Y4
	VFMADD231PS Y12, Y12, Y5
	VFMADD231PS Y12, Y12, Y6
	VFMADD231PS Y12, Y12, Y7
	VFMADD231PS Y12, Y12, Y8
	VFMADD231PS Y12, Y12, Y9
	VFMADD231PS Y12, Y12, Y10
	VFMADD231PS Y12, Y12, Y11
	DECQ        CX
	JNZ         loop
	VZEROUPPER
	RET

// func fmaAVX512(n int)
TEXT ·fmaAVX512(SB), NOSPLIT, $0-8
	MOVQ n+0(FP), CX
	ZERO12

loop:
	VFMADD231PS Z12, Z12, Z0
	VFMADD231PS Z12, Z12, Z1
	VFMADD231PS Z12, Z12, Z2
	VFMADD231PS Z12, Z12, Z3
	VFMADD231PS Z12, Z12, Z4
	VFMADD231PS Z12, Z12, Z5
	VFMADD231PS Z12, Z12, Z6
	VFMADD231PS Z12, Z12, Z7
	VFMADD231PS Z12, Z12, Z8
	VFMADD231PS Z12, Z12, Z9
	VFMADD231PS Z12, Z12, Z10
	VFMADD231PS Z12, Z12, Z11
	DECQ        CX
	JNZ         loop
	VZEROUPPER
	RET

// func readAVX2(x *float32, n int)
// n is a multiple of 64. The prefetches reach across the page, which the
// processor's own do not.
TEXT ·readAVX2(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	SHRQ $6, CX
	JZ   done

loop:
	PREFETCHT0 2048(SI)
	PREFETCHT0 2112(SI)
	PREFETCHT0 2176(SI)
	PREFETCHT0 2240(SI)
	VMOVUPS    (SI), Y0
	VMOVUPS    32(SI), Y1
	VMOVUPS    64(SI), Y2
	VMOVUPS    96(SI), Y3
	VMOVUPS    128(SI), Y4
	VMOVUPS    160(SI), Y5
	VMOVUPS    192(SI), Y6
	VMOVUPS    224(SI), Y7
	ADDQ       $256, SI
	DECQ       CX
	JNZ        loop

done:
	VZEROUPPER
	RET

// func streamAVX2(dst, src *float32, n int)
// n is a multiple of 32 and dst aligned to 32 bytes. The stores do not read the
// lines that they replace.
TEXT ·streamAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	SHRQ $5, CX
	JZ   done

loop:
	VMOVUPS  (SI), Y0
	VMOVUPS  32(SI), Y1
	VMOVUPS  64(SI), Y2
	VMOVUPS  96(SI), Y3
	VMOVNTPS Y0, (DI)
	VMOVNTPS Y1, 32(DI)
	VMOVNTPS Y2, 64(DI)
	VMOVNTPS Y3, 96(DI)
	ADDQ     $128, SI
	ADDQ     $128, DI
	DECQ     CX
	JNZ      loop

done:
	SFENCE
	VZEROUPPER
	RET
